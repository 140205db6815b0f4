"""What attempts at an item, a baseline and a list of flakes make of each other. The rules are those of deqp-runner."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, get_args

from scenario_runner.suite.records import BAD, NOT_RUN, Outcome, Status, is_bad
from scenario_runner.text import counted

STATUSES: Final[tuple[str, ...]] = get_args(Status)

_IMPROVED: Final = re.compile(r"UnexpectedImprovement(?:\((\w+)\))?")


class Expected(NamedTuple):
    """What lists say of an item: the status that a baseline expects, if any, and whether it is a known flake."""

    status: str | None = None
    is_flake: bool = False


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
    """Whether a word is one that `Rules.verdict` gives."""
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
    """How often an item runs: ``repeat`` times while nothing is wrong, and ``retries`` times more once something is."""

    retries: int = 1
    repeat: int = 1

    def again(self, expected: Expected, attempts: Sequence[Outcome]) -> bool:
        """Whether an item with these attempts, at least one, runs once more."""
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
        if any(each.status != attempts[first].status for each in attempts[first:]):
            return "Flake"
        return judged(attempts[-1].status, expected.status)

    def _first_bad(self, expected: Expected, attempts: Sequence[Outcome]) -> int | None:
        for number, attempt in enumerate(attempts):
            if is_bad(judged(attempt.status, expected.status)):
                return number
        return None
