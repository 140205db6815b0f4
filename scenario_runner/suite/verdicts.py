"""Verdicts: what lists and repeated attempts make of statuses, and the tables of deqp-runner that list them."""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple, get_args

from scenario_runner.files.output import OutputFile
from scenario_runner.suite.records import BAD, NOT_RUN, Item, Outcome, Result, Status, is_bad
from scenario_runner.text import counted

STATUSES: Final[tuple[str, ...]] = get_args(Status)

_IMPROVED: Final = re.compile(r"UnexpectedImprovement(?:\((\w+)\))?")


class Expected(NamedTuple):
    """An item's entry in the lists: the status that a baseline expects, if any, and whether it is a known flake."""

    status: str | None = None
    is_flake: bool = False


UNLISTED: Final = Expected()


def expected_status(word: str) -> str | None:
    """The status that a word of a baseline expects, or "KnownFlake"; None for one that says nothing about the next run.

    A baseline may be the failures.csv of a run, so that verdicts stand in it. Raises ValueError for other words.
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
    """Return whether a word is one that `Rules.verdict` gives."""
    improved = _IMPROVED.fullmatch(word)
    return (improved[1] if improved else word) in STATUSES or word in ("Flake", "KnownFlake", "ExpectedFail")


def not_run(verdicts: Iterable[str], count: int, reason: str) -> str:
    """A sentence where none of the items is supported, with what the first one needs; else nothing."""
    if {*verdicts, "Skip"} != {"NotSupported", "Skip"}:
        return ""
    return f"none of {counted(count, 'item')} could run: {reason}"


def judged(status: str, expected: str | None) -> str:
    """The verdict on one run with a status, where a baseline expects ``expected``."""
    if expected is None or status == "MissingTool":
        return status
    if listed(status) == listed(expected):
        return "ExpectedFail" if status in BAD else status
    if expected not in BAD:
        return status
    if status not in BAD or (status == "Fail" and expected in ("Crash", "Timeout")):
        return f"UnexpectedImprovement({listed(status)})"
    return status


def listed(verdict: str) -> str:
    """A verdict as deqp-runner's files spell it, which have one word for what did not run."""
    return "Skip" if verdict in NOT_RUN else verdict


class Rules(NamedTuple):
    """The number of runs of an item: ``repeat`` times while nothing is wrong, and ``retries`` times more once something
    is."""

    retries: int = 1
    repeat: int = 1

    def again(self, expected: Expected, attempts: Sequence[Outcome]) -> bool:
        """Return whether an item with these attempts, at least one, runs once more."""
        first = self._first_bad(expected, attempts)
        if first is None:
            return len(attempts) < self.repeat and attempts[-1].status not in NOT_RUN
        if expected.is_flake or attempts[first].status == "Missing":
            return False  # the verdict is known, or the next run would find the same files
        return attempts[-1].status == attempts[first].status and len(attempts) - 1 - first < self.retries

    def replayed(self, expected: Expected, attempts: tuple[Outcome, ...]) -> tuple[Outcome, ...] | None:
        """The first of these attempts, as many as would be made now; None where more would be."""
        ends = (count for count in range(1, len(attempts) + 1) if not self.again(expected, attempts[:count]))
        return next((attempts[:count] for count in ends), None)

    def verdict(self, expected: Expected, attempts: Sequence[Outcome]) -> str:
        """The verdict on an item with these attempts, at least one.

        A run that gave something unexpected is repeated; another status then makes it a flake, which is no failure.
        """
        first = self._first_bad(expected, attempts)
        if first is None:
            return judged(attempts[-1].status, expected.status)
        if expected.is_flake:
            return "KnownFlake"
        # one that could not run again, as where its crash has left no device, has shown nothing
        if any(attempt.status not in (attempts[first].status, "Missing") for attempt in attempts[first:]):
            return "Flake"
        return judged(attempts[-1].status, expected.status)

    def result(self, item: Item, expected: Expected, *attempts: Outcome) -> Result:
        """Make the result of an item with these attempts."""
        return Result(item, self.verdict(expected, attempts), attempts)

    def _first_bad(self, expected: Expected, attempts: Sequence[Outcome]) -> int | None:
        for number, attempt in enumerate(attempts):
            if is_bad(judged(attempt.status, expected.status)):
                return number
        return None


RESULTS_NAME: Final = "results.csv"
FAILURES_NAME: Final = "failures.csv"


class Row(NamedTuple):
    """An item in the tables."""

    verdict: str
    seconds: float


def write_tables(folder: str, rows: Mapping[str, Row]) -> None:
    """Write both into a folder: ``test,status,seconds`` of all items, and ``test,status`` of those whose verdict is a
    failure that nothing expects. The latter is a baseline for the next run. Raises FileError."""
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
    """A name as a column, quoted where a reader would take it for something else."""
    if name.startswith("#") or name != name.strip() or any(letter in name for letter in ',"'):
        return '"' + name.replace('"', '""') + '"'
    return name
