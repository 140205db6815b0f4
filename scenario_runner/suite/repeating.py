"""The commands that run one item of a suite again, with all options that decide its result. Standard library only."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from typing import NamedTuple

from scenario_runner.suite.records import Result


class Repeat(NamedTuple):
    """What a suite was called with, as words of a command line.

    ``options`` decide every result. ``lists`` decide what a status is called: pairs of an option and an absolute path,
    of which the one of --root says what the names in the others are relative to. ``devices`` are those that were asked
    for, if any. ``run_options`` are those of the options that ``scenario-runner run`` has as well.
    """

    options: tuple[str, ...] = ()
    lists: tuple[tuple[str, str], ...] = ()
    devices: tuple[str, ...] = ()
    run_options: tuple[str, ...] = ()

    def command(self, result: Result, folder: str) -> str:
        """The command that runs an item again, for a shell in ``folder``."""
        words = [*self.options, *self._device(result), *self._lists(result, folder)]
        return shlex.join(["scenario-runner", "test", *words, _path(result, folder)])

    def debug_command(self, result: Result, folder: str) -> str:
        """The command that runs its scenario in a debugger."""
        words = [*self.run_options, *self._device(result), _path(result, folder)]
        return shlex.join(["gdb", "--args", "python3", "-m", "scenario_runner", "run", "--no-isolate", *words])

    def _device(self, result: Result) -> Iterator[str]:
        if len(self.devices) == 1 and self.devices[0] != "all":
            yield f"--device={self.devices[0]}"
        elif self.devices and not result.host:  # of several the one that it ran on; those of other hosts are not here
            yield f"--device={result.device}" if result.device else f"--devices={','.join(self.devices)}"

    def _lists(self, result: Result, folder: str) -> Iterator[str]:
        if result.verdict.startswith("UnexpectedImprovement") or result.verdict in ("ExpectedFail", "KnownFlake"):
            yield from (f"{name}={shown_path(path, folder)}" for name, path in self.lists if path != folder)


def _path(result: Result, folder: str) -> str:
    path = shown_path(result.item.path, folder)
    return f"./{path}" if path.startswith(("-", "@")) else path


def shown_path(path: str, folder: str) -> str:
    """A path as the user would write it: relative to ``folder`` where it lies below it."""
    below = folder.rstrip(os.sep) + os.sep
    return path[len(below) :] if folder and path.startswith(below) else path
