"""Measurement of several ways to do the same work, in turns in one process."""

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from benchmarks.bounds import Bound, Spread, ratio
from benchmarks.workloads.dispatches import Dispatches

Ways = Mapping[str, Callable[[], object]]
OPTION_BOUND = Bound(must=1.02)


def in_turns(
    ways: Ways,
    runs: int,
    *,
    warmup: int = 1,
    before: Callable[[str], object] = lambda name: None,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, list[float]]:
    """Measure the seconds of each run of each way. Every other turn is backwards; ``before`` is not measured."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(runs + warmup):
        for name in list(ways)[:: 1 if turn % 2 else -1]:
            before(name)
            started = clock()
            ways[name]()
            if turn >= warmup:
                times[name].append(clock() - started)
    return times


def shown(times: list[float]) -> str:
    """Format median and range in milliseconds."""
    spread = Spread.of(times)
    return f"{spread.median * 1e3:.2f} ms ({spread.least * 1e3:.2f} to {spread.greatest * 1e3:.2f})"


def judged(value: float, bound: Bound) -> str:
    """Format a ratio with the bound."""
    return f"{value:.4f}, must <= {bound.must:g}: {bound.verdict(value)}"


@contextmanager
def many_dispatches(argv: list[str] | None, what: str) -> Iterator[tuple[argparse.Namespace, Path]]:
    """Parse the command line of the benchmark for the option ``what``, and make the benchmark's scenario."""
    description = f"The cost of {what}: many short dispatches with and without them, in turns in one process."
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.{what}", description=description)
    parser.add_argument("--runs", type=int, default=21, metavar="N", help="measured pairs of runs (default 21)")
    parser.add_argument("--device", metavar="D", help="index, UUID or part of the name of the device")
    parser.add_argument("--quick", action="store_true", help="100 dispatches: shows that the benchmark works")
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="scenario-benchmarks-") as folder:
        Dispatches().make(Path(folder), quick=options.quick)
        yield options, Path(folder) / "scenario.json"


def show_cost(what: str, runs: int, without: Callable[[], object], with_it: Callable[[], object]) -> None:
    """Measure both ways and print the results. A missed bound is no failure."""
    times = in_turns({f"without {what}": without, f"with {what}": with_it}, runs, warmup=2)
    for name, measured in times.items():
        print(f"{name}: {shown(measured)}")
    off, on = times.values()
    pairs = Spread.of([with_one / without_one for with_one, without_one in zip(on, off, strict=True)])
    print(f"median of the ratios of pairs {pairs.median:.4f}")
    print(f"ratio of medians {judged(ratio(on, off).median, OPTION_BOUND)}")
