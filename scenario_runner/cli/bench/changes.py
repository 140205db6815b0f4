"""Two sides of ``bench`` compared: each is measured in several processes, and chance decides between their medians.

Processes of unchanged code differ: memory lies elsewhere, threads share other processors, the machine's load changes.
So the comparison counts the median of each process, and the sides take turns.
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
"""The number of processes of each side, if no other is asked for."""
# Unchanged code is called changed in one of so many comparisons.
_COMPARISONS_PER_FALSE_ALARM: Final = 100
_MOST_SIGNS: Final = 1 << 13
_HOST_RESOLUTION_NS: Final = 1000.0  # uncertainty of the host's clock and interruptions
_SLOWER_EXIT_CODE: Final = 1
_SEED: Final = 1


def chances(changes: Sequence[Sequence[float]]) -> list[float]:
    """Return for each row the probability that chance alone gives a row as unequal as it, in either direction.

    A row has the change of each pair of processes. Where nothing has changed, each sign of a pair is as likely as the
    other, for all rows of the pair at once. The test compares Wilcoxon's sum of signed ranks of a row with the greatest
    sum of all rows under all signs, or under a sample of them. So one probability covers all rows together.
    """
    table = np.array(changes)
    pairs = table.shape[1]
    if 1 << pairs <= _MOST_SIGNS:
        signs = 1 - 2 * (np.arange(1 << pairs)[:, None] >> np.arange(pairs) & 1)
    else:
        signs = np.random.default_rng(_SEED).choice([-1, 1], (_MOST_SIGNS, pairs))
        signs[0] = 1  # the measured signs are one of the cases
    ranks = np.sign(table) * (1 + np.argsort(np.argsort(np.abs(table), axis=1), axis=1))
    greatest = np.abs(signs @ ranks.T).max(axis=1)
    return [float((greatest >= total).mean()) for total in np.abs(ranks.sum(axis=1))]


class Change(NamedTuple):
    """One row of both sides: the medians of their processes, and the median of the ratios of pairs of processes."""

    row: Row
    before_ns: float
    after_ns: float
    ratio: float
    chance: float
    verdict: str


def changes(
    before: ScenarioSamples, after: ScenarioSamples, *, threshold_percent: float, most_chance: float
) -> list[Change]:
    """Compare the rows that both sides have.

    The verdict "slower" or "faster" needs a chance of at most ``most_chance``, and a change above ``threshold_percent``
    and above the resolution of the clock. Else the verdict is "same", or "unknown" with fewer than `fewest_processes`.
    """
    others = after.by_key()
    pairs = [(row, others[key]) for key, row in before.by_key().items() if key in others]
    if not pairs:
        return []
    table = [list(zip(before.medians(row), after.medians(other), strict=False)) for row, other in pairs]
    tick_ns = 2 * max(before.timestamp_period_ns, after.timestamp_period_ns)
    resolutions = [max(tick_ns if row.kind == "device" else _HOST_RESOLUTION_NS, 1.0) for row, _ in pairs]
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
    """Return the least number of pairs whose equal signs are less likely than ``most_chance`` in all rows together."""
    return 1 + math.ceil(math.log2(rows / most_chance))


def compare_files(before_path: str, after_path: str, *, threshold_percent: float) -> int:
    """Compare two files of ``--json``; returns the exit code. Raises FileError."""
    before, after = read_measurement(before_path).scenarios, read_measurement(after_path).scenarios
    if {each.scenario for each in before}.isdisjoint(each.scenario for each in after) and len(before + after) > 2:
        raise FileError(f"{before_path} and {after_path} have no scenario in common")
    code = show_changes(before, after, threshold_percent=threshold_percent)
    if code:
        print(
            "a machine that has slowed down in between looks the same: compare in turns, with --interleave or --against"
        )
    return code


def show_changes(
    before: Sequence[ScenarioSamples], after: Sequence[ScenarioSamples], *, threshold_percent: float
) -> int:
    """Print every change; returns 1 where something is slower, else 0. Single scenarios belong together."""
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
    """Print the changes of one scenario; returns how many rows are slower."""
    print(f"{one_line(after.scenario)}: {extent(before)} before, {extent(after)} after")
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


def extent(samples: ScenarioSamples) -> str:
    """Return the number of runs and of processes."""
    processes = len(samples.processes)
    return counted(samples.runs, "run") + (f" in {processes} processes" if processes > 1 else "")


def measure_in_turns(
    sides: Sequence[Side], processes: int, timing: Sequence[str], own_file: str | None = None
) -> list[list[ScenarioSamples]]:
    """Measure each side in so many processes, and return the samples of its scenarios.

    Every other turn goes through the sides backwards: neither side is always the first. All sides share the options
    ``timing``. No scenario may read or write ``own_file``. A failed process says why, and ends the command with its
    exit code.
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
    """Run ``bench`` for one side in a process of its own. With ``quiet`` it says only why it failed."""
    path = [os.path.abspath(entry) for entry in sys.path]
    code = f"import sys; sys.path[:] = {path}; from scenario_runner.__main__ import console; console()"
    words = ["bench", *options, *side.options, "--", *side.files]
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    try:
        process = Program([sys.executable, "-P", "-c", code, *words], threading.TIMEOUT_MAX, cwd=side.folder, **streams)
    except OSError as error:
        raise FileError(f"{side.folder}: the process for a measurement cannot be started: {error.strerror}") from error
    with process:
        said = process.communicate()[1].decode(errors="replace")
    if process.returncode or not quiet:
        print(said, end="", file=sys.stderr)
    if process.returncode < 0:
        raise DriverCrashError(f"{side.files[0]}: a process of its measurement {process.failure}")
    if process.returncode:
        raise SystemExit(process.returncode)  # it has said why
