"""What the reports say of the suite as a whole, and the words that all of them share."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Final, Literal, NamedTuple

from scenario_runner.suite.records import OutputCheck, Result
from scenario_runner.suite.repeating import Repeat, shown_path

INCOMPLETE: Final = "suite is incomplete"
"""The name of the failed test that CI systems are shown where not every item has a result."""

Kind = Literal["passed", "failed", "skipped", "tolerated"]

_KINDS: Final[dict[str, Kind]] = {
    "Pass": "passed",
    "Warn": "passed",
    "Flake": "passed",
    "KnownFlake": "tolerated",
    "ExpectedFail": "tolerated",
    "NotSupported": "skipped",
    "MissingTool": "skipped",
    "Skip": "skipped",
}


class SuiteInfo(NamedTuple):
    """A suite that has run.

    ``started`` is in seconds since 1970 (UTC), ``seconds`` how long it took. ``devices`` are pairs of the UUID of a
    device and its name. ``command`` is the command line that started it, ``folder`` the folder that it was started in,
    and ``results`` the folder of the results, to which the paths in `OutputCheck.files` are relative; no report names
    them where it ``is_temporary``. ``incomplete`` says why not every item has a result, where one has none. ``repeat``
    tells how the item of a result runs again.
    """

    title: str = "scenario-runner"
    started: float = 0.0
    seconds: float = 0.0
    devices: tuple[tuple[str, str], ...] = ()
    drivers: tuple[str, ...] = ()
    host: str = ""
    version: str = ""
    command: tuple[str, ...] = ()
    folder: str = ""
    results: str = ""
    is_temporary: bool = False
    incomplete: str = ""
    repeat: Callable[[Result], Repeat] = lambda result: Repeat()

    def repeat_command(self, result: Result) -> str:
        """The command that runs one item again, for a shell in ``folder``."""
        return self.repeat(result).command(result, self.folder)

    def repeat_commands(self, result: Result) -> list[str]:
        """The same, and after a crash or a timeout the command for a debugger."""
        commands = [self.repeat_command(result)]
        if result.last is not None and result.last.status in ("Crash", "Timeout"):
            commands.append(self.repeat(result).debug_command(result, self.folder))
        return commands

    def shown_path(self, path: str) -> str:
        """A path as the user would write it: relative to ``folder`` where it lies below it."""
        return shown_path(path, self.folder)

    def files_of(self, output: OutputCheck) -> dict[str, str]:
        """The absolute paths of an output's files, by what they show, in the order in which they are shown."""
        order = {"expected": 0, "actual": 1, "error": 2}
        names = sorted(output.files, key=lambda name: order.get(name, len(order)))
        return {name: os.path.join(self.results, output.files[name]) for name in names}


def kind_of(result: Result) -> Kind:
    """What a verdict is in formats that know fewer: a tolerated result is a failure that lists expect."""
    return "failed" if result.is_bad else _KINDS.get(result.verdict, "failed")
