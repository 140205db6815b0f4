"""--update in a worker: what becomes of the expectations of an item, as an `Outcome`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

from scenario_runner.errors import MissingToolError, ScenarioRunnerError, UnsupportedError
from scenario_runner.suite.records import Item, Outcome, OutputCheck, Status
from scenario_runner.suite.update import Change, update_or_keep

if TYPE_CHECKING:
    from scenario_runner.suite.evaluation import Runners

FILE = "file"
"""Where the expectation of an output stands."""

DIGEST = "digest"
"""Beside the file of an output: the SHA-256 of what it gives, "" where the file has more in it."""

TASK = "scenario_runner.suite.updating:update_item"


class UpdateOptions(NamedTuple):
    """Without ``write`` it is only told what would change."""

    write: bool = True


def update_item(item: Item, runners: Runners, options: UpdateOptions) -> Outcome:
    """Run an item and let its expectations be what it gives. Pass has a Warn for the output of each of them that
    changes, and a Pass for that of each file that is kept; Missing says why there is nothing to expect."""
    start = time.perf_counter()
    try:
        changes = update_or_keep(item, runners, write=options.write)
    except ScenarioRunnerError as error:
        status: Status = "NotSupported" if isinstance(error, UnsupportedError) else "Missing"
        if isinstance(error, MissingToolError):
            status = "MissingTool"
        problems = tuple(problem.as_json() for problem in error.problems)
        return Outcome(status, time.perf_counter() - start, str(error.problems[0]), error.exit_code, problems)
    return Outcome("Pass", time.perf_counter() - start, outputs=tuple(map(_check_of, changes)))


def _check_of(change: Change) -> OutputCheck:
    files = {FILE: change.path, DIGEST: change.digest}
    if change.kind == "kept":
        return OutputCheck(change.output, "Pass", files=files)
    return OutputCheck(change.output, "Warn", f"{change.kind}: {change.message}", files=files)
