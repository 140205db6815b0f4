"""Runs one scenario again and again in one process, each time with another Vulkan call failing.

Usage: fault_walk.py SCENARIO LOG. Environment as fault_layer.c wants it, but for FAULT_AT. Prints a line of JSON for
each run; in the first one no call fails, which tells how many there are.
"""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from scenario_runner import Runner
from scenario_runner.errors import ScenarioRunnerError


def one(path: Path, log: Path, number: int) -> dict[str, Any]:
    """One run with the call ``number`` failing, and one more with the same Runner afterwards."""
    os.environ["FAULT_AT"] = str(number)
    log.write_text("")
    folder = path.parent
    before = set(folder.iterdir())
    report: dict[str, Any] = {"number": number, "error": None, "again": None}
    with Runner(timeout_s=20) as runner:
        try:
            runner.run_to_files(path, repeat=2, capture_dir=folder / "frames")
        except ScenarioRunnerError as error:
            report["error"] = [type(error).__name__, error.problems[0].code, str(error)]
            report["left"] = sorted(entry.name for entry in set(folder.iterdir()) - before if entry.name != "frames")
            report["left"] += sorted(entry.name for entry in folder.rglob("*.tmp"))
        report["calls"] = len(log.read_text().splitlines())
        os.environ["FAULT_AT"] = "0"  # read when an instance is made: this is about the next one
        try:
            runner.run_to_files(path, repeat=2)
        except ScenarioRunnerError as error:
            report["again"] = [type(error).__name__, str(error)]
        else:
            report["outputs"] = {file.name: file.read_bytes().hex() for file in sorted(folder.glob("*.out.npy"))}
    report["live"] = {kind: count for kind, count in runner.live_objects.items() if count}
    for file in folder.glob("*.out.npy"):
        file.unlink()
    lines = log.read_text().splitlines()
    report["failed"] = next((line.split()[0] for line in lines if line.endswith("FAILS")), None)
    report["alive"] = [line for line in lines if line.startswith("ALIVE")]
    report["ended"] = lines[-1:] == ["END"]
    return report


def walk(path: Path, log: Path) -> Iterator[dict[str, Any]]:
    whole = one(path, log, 0)
    yield whole
    for number in range(1, whole["calls"] + 1):
        yield one(path, log, number)


if __name__ == "__main__":
    for line in walk(Path(sys.argv[1]), Path(sys.argv[2])):
        print(json.dumps(line), flush=True)
