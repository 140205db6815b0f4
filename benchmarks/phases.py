"""The phases of a small scenario, measured by commands that each do a little more."""

import statistics
import sys

from benchmarks.measurement import Bench
from benchmarks.workloads.small import write_small


def phases(bench: Bench, command: tuple[str, ...]) -> list[tuple[str, float]]:
    """Measure the median seconds of each phase, from starting Python to a whole run. Raises RunError."""
    folder = bench.root / "phases"
    folder.mkdir()
    scenario = str(write_small(folder, "small", spirv=False))
    run = [*command, scenario, "--output", str(folder)]
    steps = [
        ("start Python", [sys.executable, "-c", "pass"]),
        ("start the program (--help)", [*command, "--help"]),
        ("read and check the scenario (validate)", [*command, "validate", scenario]),
        ("start the driver (--list-devices)", [*command, "--list-devices"]),
        ("everything but the submission (--dry-run)", [*run, "--dry-run"]),
        ("whole run", run),
    ]
    times: dict[str, list[float]] = {what: [] for what, _ in steps}
    for turn in range(bench.runs + 1):
        for what, line in steps:
            wall_s = bench.time(line)
            if turn:
                times[what].append(wall_s)
    return [(what, statistics.median(values)) for what, values in times.items()]
