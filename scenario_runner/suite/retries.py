"""The retry policy: which outcomes run again, and how often."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from scenario_runner.suite.outcomes import NOT_RUN, Item, Outcome, Result, is_bad
from scenario_runner.suite.verdicts import Expected, judged_outcome


class Rules(NamedTuple):
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
        """Return as many earlier attempts as these rules want, or None if they want more."""
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
