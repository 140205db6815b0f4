"""Comparisons by ``bench``: each side runs in several processes, and a significance test compares the medians.

Processes of unchanged code differ: memory lies elsewhere, threads share other processors, and the load changes. So the
sides take turns, and each process contributes a single median.
"""

import math
import os
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Sequence
from statistics import median
from typing import Final, NamedTuple

import numpy as np

from scenario_runner.cli.bench.samples import (
    Row,
    ScenarioSamples,
    Side,
    duration,
    read_measurement,
    refuse_own_file,
)
from scenario_runner.cli.console import live, show_table
from scenario_runner.errors import DriverCrashError, FileError
from scenario_runner.errors.text import counted, one_line
from scenario_runner.processes.programs import Program
from scenario_runner.processes.temporary import temporary_folder

PROCESSES: Final = 20
"""The default number of processes of each side."""
# One in so many comparisons of unchanged code reports a change.
_COMPARISONS_PER_FALSE_ALARM: Final = 100
_MOST_SIGNS: Final = 1 << 13
_HOST_RESOLUTION_NS: Final = 1000.0  # uncertainty of the host's clock and interruptions
_SLOWER_EXIT_CODE: Final = 1
_SEED: Final = 1


def chances(changes: Sequence[Sequence[float]]) -> list[float]:
    """Return each row's probability that chance alone makes such a difference, in either direction.

    A row has a change for each pair of processes. In unchanged code, both signs of a change are equally likely. So the
    test flips the signs of whole pairs, in all ways or in a sample. The test counts how often the greatest signed-rank
    sum (Wilcoxon) among all rows reaches this row's sum. So the probability accounts for testing all rows together.
    """
    table = np.array(changes)
    pairs = table.shape[1]
    if 1 << pairs <= _MOST_SIGNS:
        signs = 1 - 2 * (np.arange(1 << pairs)[:, None] >> np.arange(pairs) & 1)
    else:
        signs = np.random.default_rng(_SEED).choice([-1, 1], (_MOST_SIGNS, pairs))
        signs[0] = 1  # the measured signs are in the sample
    ranks = np.sign(table) * (1 + np.argsort(np.argsort(np.abs(table), axis=1), axis=1))
    greatest = np.abs(signs @ ranks.T).max(axis=1)
    return [float((greatest >= total).mean()) for total in np.abs(ranks.sum(axis=1))]


class Change(NamedTuple):
    """A change in a measured row: the medians over processes, and the median ratio after/before.

    Each process before the change is paired with a process after it, which gives a ratio.
    """

    row: Row
    before_ns: float
    after_ns: float
    ratio: float
    chance: float
    verdict: str


def changes(
    before: ScenarioSamples, after: ScenarioSamples, *, threshold_percent: float, most_chance: float
) -> list[Change]:
    """Compare the rows common to both sides.

    "slower" and "faster" need a chance of at most ``most_chance``, and a change above ``threshold_percent`` and above
    the resolution of the clock. Other verdicts are "same", and "unknown" with fewer than `fewest_processes`.
    """
    others = after.by_key()
    pairs = [(row, others[key]) for key, row in before.by_key().items() if key in others]
    if not pairs:
        return []
    table = [list(zip(before.medians(row), after.medians(other), strict=False)) for row, other in pairs]
    tick_ns = 2 * max(before.timestamp_period_ns, after.timestamp_period_ns)
    by_kind = {"device": max(tick_ns, 1.0)}
    resolutions = [by_kind.get(row.kind, _HOST_RESOLUTION_NS) for row, _ in pairs]
    logarithms = [
        [math.log(max(new, least) / max(old, least)) for old, new in medians]
        for medians, least in zip(table, resolutions, strict=True)
    ]
    found = []
    for (row, _), medians, least, logs, chance in zip(
        pairs, table, resolutions, logarithms, chances(logarithms), strict=True
    ):
        old, new = map(median, zip(*medians, strict=True))
        ratio = math.exp(median(logs))
        verdict = "slower" if ratio > 1 else "faster"
        if len(medians) < fewest_processes(len(pairs), most_chance):
            verdict = "unknown"
        elif chance > most_chance or abs(ratio - 1) * 100 <= threshold_percent or abs(new - old) <= least:
            verdict = "same"
        found.append(Change(row, old, new, ratio, chance, verdict))
    return found


def fewest_processes(rows: int, most_chance: float) -> int:
    """Return how many pairs the test needs: fewer pairs have equal signs by chance too often."""
    return 1 + math.ceil(math.log2(rows / most_chance))


def compare_files(before_path: str, after_path: str, *, threshold_percent: float) -> int:
    """Compare two ``--json`` files and return the exit code. Raises FileError."""
    before, after = read_measurement(before_path).scenarios, read_measurement(after_path).scenarios
    if {each.scenario for each in before}.isdisjoint(each.scenario for each in after) and len(before + after) > 2:
        raise FileError(f"{before_path} and {after_path} have no scenario in common")
    code = show_changes(before, after, threshold_percent=threshold_percent)
    if code:
        print("a slower machine looks the same as slower code: compare in turns, with --interleave or --against")
    return code


def show_changes(
    before: Sequence[ScenarioSamples], after: Sequence[ScenarioSamples], *, threshold_percent: float
) -> int:
    """Print every change. Return 1 if anything is slower, else 0.

    The names of scenarios must be equal, unless each side has a single scenario.
    """
    if len(before) == len(after) == 1:
        pairs = [(before[0], after[0])]
        alone: set[str] = set()
    else:
        old, new = ({samples.scenario: samples for samples in side} for side in (before, after))
        pairs = [(old[name], new[name]) for name in old if name in new]
        alone = old.keys() ^ new.keys()
    most_chance = 1 / (_COMPARISONS_PER_FALSE_ALARM * len(pairs))
    slower = sum(_show_scenario(*pair, threshold_percent, most_chance) for pair in pairs)
    for name in sorted(alone):
        print(f"{one_line(name)}: only on one side")
    return _SLOWER_EXIT_CODE if slower else 0


def _show_scenario(
    before: ScenarioSamples, after: ScenarioSamples, threshold_percent: float, most_chance: float
) -> int:
    """Print a scenario's changes, and return the number of slower rows."""
    print(f"{one_line(after.scenario)}: {describe_runs(before)} before, {describe_runs(after)} after")
    if before.device != after.device:
        print(f"  the devices differ: {one_line(before.device)} before, {one_line(after.device)} after")
    found = changes(before, after, threshold_percent=threshold_percent, most_chance=most_chance)
    lines = [("", "before", "after", "change", "chance", "")]
    for change in found:
        if change.verdict in ("slower", "faster"):
            times = (duration(change.before_ns), duration(change.after_ns), f"{100 * (change.ratio - 1):+.1f} %")
            chance = f"{100 * change.chance:.2f} %"
            lines.append((f"{change.row.kind}: {change.row.title}", *times, chance, change.verdict))
    if len(lines) > 1:
        show_table(lines, right=range(1, 5))
    counts = Counter(change.verdict for change in found)
    fewest = fewest_processes(max(len(found), 1), most_chance)
    unknown = f", {counts['unknown']} with fewer than {fewest} processes" if counts["unknown"] else ""
    lost = len(before.by_key().keys() ^ after.by_key().keys())
    different = f", {lost} on one side alone" if lost else ""
    print(f"  {counts['slower']} slower, {counts['faster']} faster, {counts['same']} unchanged{unknown}{different}")
    return counts["slower"]


def describe_runs(samples: ScenarioSamples) -> str:
    """Say how many runs and processes were measured."""
    processes = len(samples.processes)
    return counted(samples.runs, "run") + (f" in {processes} processes" if processes > 1 else "")


def measure_in_turns(
    sides: Sequence[Side], processes: int, timing: Sequence[str], own_file: str | None = None
) -> list[list[ScenarioSamples]]:
    """Measure each side in several processes, and return the scenarios' samples.

    Every second turn reverses the order of the sides. ``timing`` are options for all sides. No scenario may read or
    write ``own_file``. A failed process prints the error, and the command ends with the same exit code.
    """
    measured: list[dict[str, ScenarioSamples]] = [{} for _ in sides]
    done = 0
    with (
        temporary_folder() as folder,
        live(sys.stderr, lambda: [[f"{done} of {processes * len(sides)} processes"]]),
    ):
        path = os.path.join(folder, "samples.json")
        for turn in range(processes):
            for number in sorted(range(len(sides)), reverse=bool(turn % 2)):
                _run_bench(sides[number], ["--json", path, *timing], quiet=turn > 0)
                for samples in read_measurement(path).scenarios:
                    if own_file is not None:
                        refuse_own_file(own_file, samples)
                    total = measured[number].setdefault(samples.scenario, ScenarioSamples(samples.scenario))
                    total.add_process(samples)
                done += 1
    return [list(each.values()) for each in measured]


def _run_bench(side: Side, options: Sequence[str], *, quiet: bool) -> None:
    """Run ``bench`` for a side in a new process. ``quiet`` prints only a failed process's error."""
    path = [os.path.abspath(entry) for entry in sys.path]
    code = f"import sys; sys.path[:] = {path}; from scenario_runner.__main__ import console; console()"
    words = ["bench", *options, *side.options, "--", *side.files]
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    try:
        process = Program([sys.executable, "-P", "-c", code, *words], threading.TIMEOUT_MAX, cwd=side.folder, **streams)
    except OSError as error:
        raise FileError(f"{side.folder}: cannot start a process for the measurement: {error.strerror}") from error
    with process:
        messages = process.communicate()[1].decode(errors="replace")
    if process.returncode or not quiet:
        print(messages, end="", file=sys.stderr)
    if process.returncode < 0:
        raise DriverCrashError(f"{side.files[0]}: a process of the measurement {process.failure}")
    if process.returncode:
        raise SystemExit(process.returncode)
