"""The command that runs one item of a suite again, with all options that decide its result. Standard library only."""

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
    for, if any.
    """

    options: tuple[str, ...] = ()
    lists: tuple[tuple[str, str], ...] = ()
    devices: tuple[str, ...] = ()

    def command(self, result: Result, folder: str) -> str:
        """The command that runs an item again, for a shell in ``folder``."""
        path = shown_path(result.item.path, folder)
        path = f"./{path}" if path.startswith(("-", "@")) else path
        return shlex.join(["scenario-runner", "test", *self.options, *self._more(result, folder), path])

    def _more(self, result: Result, folder: str) -> Iterator[str]:
        if len(self.devices) == 1 and self.devices[0] != "all":
            yield f"--device={self.devices[0]}"
        elif self.devices and not result.host:  # of several the one that it ran on; those of other hosts are not here
            yield f"--device={result.device}" if result.device else f"--devices={','.join(self.devices)}"
        if result.verdict.startswith("UnexpectedImprovement") or result.verdict in ("ExpectedFail", "KnownFlake"):
            yield from (f"{name}={shown_path(path, folder)}" for name, path in self.lists if path != folder)


def shown_path(path: str, folder: str) -> str:
    """A path as the user would write it: relative to ``folder`` where it lies below it."""
    below = folder.rstrip(os.sep) + os.sep
    return path[len(below) :] if folder and path.startswith(below) else path
