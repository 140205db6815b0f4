"""``python -m benchmarks.warm``: the time that repeated inferences of a model add to the device's time.

This is the processor time of the calling thread, which prepares, submits and reads results, and sleeps while the device
works. The networks are small, since the number of operators matters, not their size.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.bounds import Spread
from benchmarks.turns import Ways, in_turns, shown
from benchmarks.workloads.models import all_models
from scenario_runner import Runner

MOST_S = 0.002


def main(argv: list[str] | None = None) -> int:
    """Return 0. A missed bound is reported, but is no failure."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.warm", description=__doc__)
    parser.add_argument("--runs", type=int, default=11, metavar="N", help="measured runs of each way (default 11)")
    options = parser.parse_args(argv)
    for workload in all_models():
        with tempfile.TemporaryDirectory(prefix="scenario-benchmarks-") as folder, Runner() as runner:
            workload.make(Path(folder), quick=True)
            for name, times in _times(runner, folder, options.runs).items():
                verdict = "reached" if Spread.of(times).median <= MOST_S else "missed"
                print(f"{workload.name}, {name}: {shown(times)}, must <= {MOST_S * 1e3:g} ms: {verdict}", flush=True)
    return 0


def _times(runner: Runner, folder: str, runs: int) -> dict[str, list[float]]:
    model, x = f"{folder}/model.vgf", np.load(f"{folder}/x.npy")
    prepared = runner.prepare(model, x)
    ways: Ways = {
        "Runner.run(scenario)": lambda: runner.run(f"{folder}/scenario.json", write_files=False),
        "Runner.run(model, x)": lambda: runner.run(model, x),
        "Prepared.run(x)": lambda: prepared.run(x),
    }
    return in_turns(ways, runs, warmup=2, clock=time.thread_time)


if __name__ == "__main__":
    sys.exit(main())
