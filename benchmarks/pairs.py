"""What an option costs: many short dispatches with and without it, in turns in one process."""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple, TypeAlias

from benchmarks.bounds import Bound, Spread, ratio
from benchmarks.workloads.dispatches import Dispatches

_WARMUP = 2


class Pair(NamedTuple):
    """The runs to compare: ``run`` is told whether with the option; ``device`` gives the name of the device."""

    run: Callable[[bool], object]
    device: Callable[[], str]


Opened: TypeAlias = Callable[[str | None, Path], AbstractContextManager[Pair]]
"""Opens what runs the scenario at a path on a device."""


def compare(argv: list[str] | None, program: str, what: str, bound: Bound, opened: Opened) -> int:
    """Measure and print it; ``what`` names the option. Returns 0: a bound that is missed is reported and no failure."""
    parser = argparse.ArgumentParser(prog=program, description=f"What {what} cost, with and without them in turns.")
    parser.add_argument("--runs", type=int, default=21, metavar="N", help="measured pairs of runs (default 21)")
    parser.add_argument("--device", metavar="D", help="index, UUID or part of the name of the device")
    parser.add_argument("--quick", action="store_true", help="100 dispatches: shows that the benchmark works")
    options = parser.parse_args(argv)
    times: dict[bool, list[float]] = {False: [], True: []}
    with tempfile.TemporaryDirectory(prefix="scenario-benchmarks-") as folder:
        Dispatches().make(Path(folder), quick=options.quick)
        with opened(options.device, Path(folder) / "scenario.json") as pair:
            for turn in range(options.runs + _WARMUP):
                for has in (False, True) if turn % 2 else (True, False):
                    started = time.perf_counter()
                    pair.run(has)
                    if turn >= _WARMUP:
                        times[has].append(time.perf_counter() - started)
            print(f"device: {pair.device()}")
    for name, has in ((f"without {what}", False), (f"with {what}", True)):
        spread = Spread.of(times[has])
        print(f"{name}: {spread.median * 1e3:.2f} ms ({spread.least * 1e3:.2f} to {spread.greatest * 1e3:.2f})")
    found = ratio(times[True], times[False])
    of_pairs = statistics.median(on / off for on, off in zip(times[True], times[False], strict=True))
    print(f"ratio of medians {found.median:.4f}, median of the ratios of pairs {of_pairs:.4f}", end="")
    print(f", must <= {bound.must:g}: {bound.verdict(found.median)}")
    return 0
