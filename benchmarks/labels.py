"""``python -m benchmarks.labels``: what labels cost, with and without them in turns in one process."""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.bounds import Bound, Spread, ratio
from benchmarks.workloads.dispatches import Dispatches
from scenario_runner import Runner

BOUND = Bound(must=1.02)


def main(argv: list[str] | None = None) -> int:
    """Returns 0; a bound that is missed is reported and no failure."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.labels", description=__doc__)
    parser.add_argument("--runs", type=int, default=21, metavar="N", help="measured pairs of runs (default 21)")
    parser.add_argument("--device", metavar="D", help="index, UUID or part of the name of the device")
    parser.add_argument("--quick", action="store_true", help="100 dispatches: shows that the benchmark works")
    options = parser.parse_args(argv)
    times: dict[bool, list[float]] = {False: [], True: []}
    with (
        tempfile.TemporaryDirectory(prefix="scenario-benchmarks-") as folder,
        Runner(options.device) as plain,
        Runner(options.device, debug_labels=True) as labelled,
    ):
        Dispatches().make(Path(folder), quick=options.quick)
        prepared = {
            has: runner.prepare(Path(folder) / "scenario.json") for has, runner in ((False, plain), (True, labelled))
        }
        for turn in range(options.runs + 2):
            for has in (False, True) if turn % 2 else (True, False):
                started = time.perf_counter()
                prepared[has].run(write_files=False)
                if turn >= 2:
                    times[has].append(time.perf_counter() - started)
        print(f"device: {plain.physical_device.name}")
    for name, has in (("without labels", False), ("with labels", True)):
        spread = Spread.of(times[has])
        print(f"{name}: {spread.median * 1e3:.2f} ms ({spread.least * 1e3:.2f} to {spread.greatest * 1e3:.2f})")
    found = ratio(times[True], times[False])
    of_pairs = statistics.median(on / off for on, off in zip(times[True], times[False], strict=True))
    print(f"ratio of medians {found.median:.4f}, median of the ratios of pairs {of_pairs:.4f}", end="")
    print(f", must <= {BOUND.must:g}: {BOUND.verdict(found.median)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
