"""Verdicts and retries: which items run again, how lists judge outcomes, and the tables for deqp-runner."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple, get_args

from scenario_runner.errors.text import counted
from scenario_runner.files.output import OutputFile
from scenario_runner.suite.outcomes import BAD, NOT_RUN, Item, Outcome, Result, Status, is_bad

STATUSES: Final[tuple[str, ...]] = get_args(Status)

_IMPROVED: Final = re.compile(r"UnexpectedImprovement(?:\((\w+)\))?")


class Expected(NamedTuple):
    """The entries for an item in the lists: the status in a baseline, if any, and whether the item is a known flake."""

    status: str | None = None
    is_flake: bool = False


UNLISTED: Final = Expected()


def expected_status(word: str) -> str | None:
    """Return the status that a word of a baseline expects, "KnownFlake", or None for the word "Flake".

    A baseline may be the failures.csv of a run, which has verdicts. Raises ValueError for other words.
    """
    improved = _IMPROVED.fullmatch(word)
    if improved:
        word = improved[1] or "Pass"
    if word == "Flake":
        return None
    if word == "ExpectedFail":
        return "Fail"
    if word not in STATUSES and word != "KnownFlake":
        raise ValueError(word)
    return word


def is_verdict(word: str) -> bool:
    """Return whether `RetryRules.verdict` can give a word."""
    improved = _IMPROVED.fullmatch(word)
    return (improved[1] if improved else word) in STATUSES or word in ("Flake", "KnownFlake", "ExpectedFail")


def not_run(verdicts: Iterable[str], count: int, reason: str) -> str:
    """Return a sentence if no item is supported, with the reason of the first item; else ""."""
    if {*verdicts, "Skip"} != {"NotSupported", "Skip"}:
        return ""
    return f"none of {counted(count, 'item')} could run: {reason}"


def judged(status: str, expected: str | None) -> str:
    """Return the verdict on an attempt, by the status that a baseline expects."""
    if expected is None or status == "MissingTool":
        return status
    if listed(status) == listed(expected):
        return "ExpectedFail" if status in BAD else status
    if expected not in BAD:
        return status
    if status not in BAD or (status == "Fail" and expected in ("Crash", "Timeout")):
        return f"UnexpectedImprovement({listed(status)})"
    return status


def judged_outcome(outcome: Outcome, expected: Expected) -> str:
    """Return the verdict on an attempt. An entry in a baseline comes before the item's own ``expected_fail``."""
    own = "Fail" if outcome.expected_fail else None
    return judged(outcome.status, own if expected.status is None else expected.status)


class RetryRules(NamedTuple):
    """The number of attempts for an item: ``repeat`` good attempts, and ``retries`` more after an unexpected status."""

    retries: int = 1
    repeat: int = 1

    def again(self, expected: Expected, attempts: Sequence[Outcome]) -> bool:
        """Return whether an item with these attempts, at least one, runs once more."""
        first = self._first_bad(expected, attempts)
        if first is None:
            return len(attempts) < self.repeat and attempts[-1].status not in NOT_RUN
        if expected.is_flake or attempts[first].status == "Missing":
            return False  # the verdict is known, or the next attempt would find the same files
        return attempts[-1].status == attempts[first].status and len(attempts) - 1 - first < self.retries

    def replayed(self, expected: Expected, attempts: tuple[Outcome, ...]) -> tuple[Outcome, ...] | None:
        """Return the earlier attempts that these rules need, or None if there are too few."""
        ends = (count for count in range(1, len(attempts) + 1) if not self.again(expected, attempts[:count]))
        return next((attempts[:count] for count in ends), None)

    def verdict(self, expected: Expected, attempts: Sequence[Outcome]) -> str:
        """Return the verdict on an item with these attempts, at least one.

        After an unexpected status, another status makes the item a flake, which is not a failure.
        """
        first = self._first_bad(expected, attempts)
        if first is None:
            return judged_outcome(attempts[-1], expected)
        if expected.is_flake:
            return "KnownFlake"
        # Missing shows nothing: the crash may have left no device for the next attempt.
        if any(attempt.status not in (attempts[first].status, "Missing") for attempt in attempts[first:]):
            return "Flake"
        return judged_outcome(attempts[-1], expected)

    def result(self, item: Item, expected: Expected, *attempts: Outcome) -> Result:
        """Make the result of an item with these attempts."""
        return Result(item, self.verdict(expected, attempts), attempts)

    def _first_bad(self, expected: Expected, attempts: Sequence[Outcome]) -> int | None:
        for number, attempt in enumerate(attempts):
            if is_bad(judged_outcome(attempt, expected)):
                return number
        return None


def listed(verdict: str) -> str:
    """Spell a verdict like deqp-runner, which says "Skip" for all items that did not run."""
    return "Skip" if verdict in NOT_RUN else verdict


RESULTS_NAME: Final = "results.csv"
FAILURES_NAME: Final = "failures.csv"


class Row(NamedTuple):
    """The columns of an item in the tables."""

    verdict: str
    seconds: float


def write_tables(folder: str, rows: Mapping[str, Row]) -> None:
    """Write results.csv (``test,status,seconds`` of all items) and failures.csv (``test,status`` of failed items).

    The second file can be a baseline for the next run. Raises FileError.
    """
    results, failures = [], []
    for id in sorted(rows):
        verdict, seconds = rows[id]
        line = f"{_field(id)},{listed(verdict)}"
        results.append(f"{line},{seconds:.6f}\n")
        if is_bad(verdict):
            failures.append(f"{line}\n")
    for name, lines in ((RESULTS_NAME, results), (FAILURES_NAME, failures)):
        with OutputFile(os.path.join(folder, name)) as file:
            file.write("".join(lines).encode())


def _field(name: str) -> str:
    """Format a name as a column, with quotes if a reader would misunderstand it."""
    if name.startswith("#") or name != name.strip() or any(letter in name for letter in ',"'):
        return '"' + name.replace('"', '""') + '"'
    return name
