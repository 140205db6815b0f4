"""Write results.csv and failures.csv as deqp-runner does, and compare the tables of two runs. Standard library only."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from statistics import median
from typing import Final, NamedTuple

from scenario_runner.files.output import OutputFile
from scenario_runner.suite.records import is_bad
from scenario_runner.suite.verdicts import listed

RESULTS_NAME: Final = "results.csv"
FAILURES_NAME: Final = "failures.csv"


class Row(NamedTuple):
    """What the tables say of an item."""

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
    """What has changed from one run to the next, each part in the order of the ids.

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
    found = [
        Slower(id, before[id].seconds, after[id].seconds)
        for id in sorted(ratios)
        if ratios[id] - typical > least and after[id].seconds - before[id].seconds * math.exp(typical) > _LEAST_SECONDS
    ]
    return tuple(found), math.exp(typical)
