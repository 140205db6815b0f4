"""Verdicts: what lists and repeated attempts make of statuses, and the tables of deqp-runner that list them."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Final, NamedTuple, get_args

from scenario_runner.files.output import OutputFile
from scenario_runner.suite.records import BAD, NOT_RUN, Outcome, Status, is_bad
from scenario_runner.text import counted

STATUSES: Final[tuple[str, ...]] = get_args(Status)

_IMPROVED: Final = re.compile(r"UnexpectedImprovement(?:\((\w+)\))?")


class Expected(NamedTuple):
    """An item's entry in the lists: the status that a baseline expects, if any, and whether it is a known flake."""

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
        if any(attempt.status != attempts[first].status for attempt in attempts[first:]):
            return "Flake"
        return judged(attempts[-1].status, expected.status)

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


# With fewer items in both runs their times say nothing about the noise.
_LEAST_ITEMS: Final = 10
_MAD_TO_SIGMA: Final = 1.4826
_SIGMAS: Final = 4.0
_LEAST_FACTOR: Final = 1.5
_FACTOR_OF_FEW: Final = 2.0
_LEAST_SECONDS: Final = 0.02


class Change(NamedTuple):
    """The verdict on an item before and now; "" where there is none."""

    id: str
    before: str
    after: str


class Slower(NamedTuple):
    """The time of an item before and now, in seconds."""

    id: str
    before: float
    after: float


class Comparison(NamedTuple):
    """Changes from one run to the next, each part in the order of the ids.

    ``new_failures`` are bad now and were not, or are new and bad; ``fixed`` were bad and are not any more; ``changed``
    have another verdict without being one of these. ``slower`` take longer than noise explains. ``added`` and
    ``removed`` are in one of the runs only. ``factor`` is how many times longer the typical item takes.
    """

    new_failures: tuple[Change, ...]
    fixed: tuple[Change, ...]
    changed: tuple[Change, ...]
    slower: tuple[Slower, ...]
    added: tuple[str, ...]
    removed: tuple[str, ...]
    factor: float


def compare(before: Mapping[str, Row], after: Mapping[str, Row]) -> Comparison:
    """Compare the rows of two runs, by the ids of their items."""
    new_failures, fixed, changed = [], [], []
    for id in sorted(after):
        old, new = before[id].verdict if id in before else "", after[id].verdict
        if is_bad(new) and not is_bad(old):
            new_failures.append(Change(id, old, new))
        elif is_bad(old) and not is_bad(new):
            fixed.append(Change(id, old, new))
        elif old and old != new:
            changed.append(Change(id, old, new))
    slower, factor = _slower(before, after)
    return Comparison(
        tuple(new_failures),
        tuple(fixed),
        tuple(changed),
        slower,
        tuple(sorted(after.keys() - before.keys())),
        tuple(sorted(before.keys() - after.keys())),
        factor,
    )


def _slower(before: Mapping[str, Row], after: Mapping[str, Row]) -> tuple[tuple[Slower, ...], float]:
    """The items that take longer than noise explains, and the factor of the typical item.

    Each item was timed once in each run. So the noise is taken from all of them: how the ratios of their times spread
    around the median ratio, which is that of the machines, by the median absolute deviation of their logarithms.
    """
    ratios = {
        id: math.log(row.seconds / before[id].seconds)
        for id, row in after.items()
        if id in before and row.verdict == before[id].verdict and row.seconds > 0 and before[id].seconds > 0
    }
    if not ratios:
        return (), 1.0
    typical, least = 0.0, math.log(_FACTOR_OF_FEW)
    if len(ratios) >= _LEAST_ITEMS:
        typical = median(ratios.values())
        spread = _MAD_TO_SIGMA * median(abs(ratio - typical) for ratio in ratios.values())
        least = max(_SIGMAS * spread, math.log(_LEAST_FACTOR))
    slower = [
        Slower(id, before[id].seconds, after[id].seconds)
        for id in sorted(ratios)
        if ratios[id] - typical > least and after[id].seconds - before[id].seconds * math.exp(typical) > _LEAST_SECONDS
    ]
    return tuple(slower), math.exp(typical)
