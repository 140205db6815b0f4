"""``scenario-runner bench FILE…``: run scenarios many times and show what they take, or compare two measurements."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import time
from collections import Counter
from collections.abc import Sequence

from scenario_runner import progress
from scenario_runner.cli.arguments import shared_arguments
from scenario_runner.cli.messages import is_terminal, set_up_logging, show_error, show_table
from scenario_runner.cli.options import REPEAT, THRESHOLD_PERCENT
from scenario_runner.cli.samples import (
    MIN_SAMPLES,
    Change,
    Row,
    ScenarioSamples,
    Summary,
    compare,
    read_samples,
    samples_text,
    summary,
)
from scenario_runner.errors import DeviceError, FileError, ScenarioRunnerError, UsageError
from scenario_runner.files.output import OutputFile, check_destination
from scenario_runner.files.source import check_folder_to_write
from scenario_runner.plan.plan import Plan
from scenario_runner.progress import Clock
from scenario_runner.run.timings import Timings
from scenario_runner.runner import Runner
from scenario_runner.scenario import load
from scenario_runner.text import counted, one_line

_PLOT_COLUMNS = 30
_LEAST_PLOT_COLUMNS = 8
_TIMES_COLUMNS = 50  # three times and a spread, with the space around them
_MOST_DISPATCHES = 20

_SLOWER_EXIT_CODE = 1
_HOST_RESOLUTION_NS = 1000.0  # what the host's clock and its interruptions leave unclear


def show(samples: ScenarioSamples) -> None:
    """Print what one scenario took."""
    print(f"{one_line(samples.scenario)}: {counted(samples.runs, 'run')} on {samples.device}")
    if samples.why_none is not None:
        print(f"  {samples.why_none}")
    dispatches = [row for row in samples.rows if row.kind == "device"]
    if dispatches:
        note = ""
        *numbered, total = enumerate(dispatches)
        if len(numbered) > _MOST_DISPATCHES:
            note = f", the slowest {_MOST_DISPATCHES} of {len(numbered)}"
            numbered.sort(key=lambda pair: summary(pair[1].samples).median)
            numbered = sorted(numbered[-_MOST_DISPATCHES:])
        _show_rows(f"on the device{note}", [row for _, row in (*numbered, total)])
    _show_rows("on the host", [row for row in samples.rows if row.kind == "host"])
    if samples.once:
        once = ", ".join(f"{phase} {duration(value)}" for phase, value in samples.once.items() if value)
        print(f"once: {once}")


def _show_rows(title: str, rows: Sequence[Row]) -> None:
    summaries = [summary(row.samples) for row in rows]
    greatest = max((times.p95 for times in summaries[:-1]), default=0.0)
    names = [_name(row) for row in rows]
    columns, marks = _PLOT_COLUMNS, ("-", "*")
    if is_terminal(sys.stdout):
        left = shutil.get_terminal_size().columns - max(map(len, [title, *names])) - _TIMES_COLUMNS
        columns, marks = min(max(left, _LEAST_PLOT_COLUMNS), _PLOT_COLUMNS), ("━", "●")
    lines: list[Sequence[str]] = [(title, "min", "median", "p95", "spread", "")]
    for name, times in zip(names, summaries, strict=True):
        # the last row is the sum of the others: it has a scale of its own
        scale = times.p95 if times is summaries[-1] else greatest
        columns_of_times = (*map(duration, (times.min, times.median, times.p95)), f"{times.spread_percent:.1f} %")
        lines.append((name, *columns_of_times, _plot(times, scale, columns, marks)))
    show_table(lines, right=range(1, 5))


def _name(row: Row) -> str:
    return one_line(row.name if row.command is None else f"{row.command} {row.name}")


def _plot(times: Summary, greatest: float, columns: int, marks: tuple[str, str]) -> str:
    """A line from the least to the 95th percentile with a mark at the median; ``greatest`` is at the right end."""
    line, mark = marks
    last = columns - 1
    left, middle, right = (
        min(round(last * value / (greatest or 1)), last) for value in (times.min, times.median, times.p95)
    )
    middle = min(max(middle, left), right)
    return " " * left + line * (middle - left) + mark + line * (right - middle)


def duration(nanoseconds: float) -> str:
    """A time with a unit that leaves one to three digits before the point."""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if abs(nanoseconds) >= size:
            return f"{nanoseconds / size:.3f} {unit}"
    return f"{nanoseconds:.0f} ns"


def _show_comparison(before_path: str, after_path: str, *, threshold_percent: float) -> int:
    """Print every change; returns 1 where something is slower, else 0. Raises FileError."""
    before, after = read_samples(before_path), read_samples(after_path)
    if len(before) == len(after) == 1:
        before[0].scenario = after[0].scenario  # two single scenarios belong together
    old, new = ({samples.scenario: samples for samples in file} for file in (before, after))
    if old.keys().isdisjoint(new):
        raise FileError(f"{before_path} and {after_path} have no scenario in common")
    slower = sum(_show(old[name], new[name], threshold_percent) for name in old if name in new)
    for name in sorted(old.keys() ^ new.keys()):
        print(f"{one_line(name)}: only in one of the files")
    return _SLOWER_EXIT_CODE if slower else 0


def _show(before: ScenarioSamples, after: ScenarioSamples, threshold_percent: float) -> int:
    """Print the changes of one scenario; returns how many rows are slower."""
    print(f"{one_line(after.scenario)}: {before.runs} runs before, {after.runs} after")
    if before.device != after.device:
        print(f"  the devices differ: {one_line(before.device)} before, {one_line(after.device)} after")
    rows, others = dict(before.keyed()), dict(after.keyed())
    tick_ns = 2 * max(before.timestamp_period_ns, after.timestamp_period_ns)
    changes: list[tuple[str, Change]] = []
    for key, row in rows.items():
        if key in others:
            times = (summary(row.samples), summary(others[key].samples))
            resolution_ns = tick_ns if row.kind == "device" else _HOST_RESOLUTION_NS
            change = compare(*times, threshold_percent=threshold_percent, resolution_ns=resolution_ns)
            changes.append((f"{row.kind}: {_name(row)}", change))
    counts = Counter(change.verdict for _, change in changes)
    lines = [("", "before", "after", "change", "noise", "")]
    for name, change in changes:
        if change.verdict in ("slower", "faster"):
            medians = (duration(change.before.median), duration(change.after.median))
            lines.append((name, *medians, f"{change.percent:+.1f} %", duration(change.noise), change.verdict))
    if len(lines) > 1:
        show_table(lines, right=range(1, 5))
    unknown = f", {counts['unknown']} with fewer than {MIN_SAMPLES} samples" if counts["unknown"] else ""
    lost = len(rows.keys() ^ others.keys())
    different = f", {lost} in one file alone" if lost else ""
    print(f"  {counts['slower']} slower, {counts['faster']} faster, {counts['same']} unchanged{unknown}{different}")
    return counts["slower"]


def main(options: argparse.Namespace) -> int:
    """Measure scenarios, or compare measurements. Returns 0, or the exit code of the first scenario that failed; with
    --compare 1 where something is slower beyond noise."""
    set_up_logging(options.log_level)
    if options.compare is not None:
        if options.files:
            raise UsageError("--compare takes two files of --json and no scenario")
        threshold = THRESHOLD_PERCENT if options.threshold is None else options.threshold
        return _show_comparison(*options.compare, threshold_percent=threshold)
    if not options.files:
        raise UsageError("no scenario file was given", help="scenario-runner bench test.json")
    if options.threshold is not None:
        raise UsageError("--threshold is an option of --compare")
    if options.time is not None and options.repeat is not None:
        raise UsageError("--time and --repeat both say when to stop", help="give one of them")

    if options.json is not None:
        if os.path.realpath(options.json) in map(os.path.realpath, options.files):
            raise UsageError(f"--json: {options.json} is a scenario", help="choose another file")
        check_destination(options.json)
        check_folder_to_write(os.path.dirname(os.path.abspath(options.json)))
    code = 0
    measured = []
    with Runner(**shared_arguments(options)) as runner:
        for path in options.files:
            try:
                samples = _measure(runner, path, options)
            except ScenarioRunnerError as error:  # what was measured before took long enough
                show_error(error.of_scenario(path))
                code = code or error.exit_code
                if isinstance(error, DeviceError):
                    runner.close()  # the next scenario gets a device of its own
                continue
            show(samples)
            measured.append(samples)
    if options.json is not None and measured:
        with OutputFile(options.json) as file:
            file.write(samples_text(measured).encode() + b"\n")
    return code


def _measure(runner: Runner, path: str, options: argparse.Namespace) -> ScenarioSamples:
    """Plan the scenario once and run it again and again on one device."""
    samples = ScenarioSamples(path)
    before = Clock()
    with progress.measuring(before):
        with progress.phase("parse", "scenario"):
            scenario = load(path)
        written = [resource.uid for resource in scenario.resources if getattr(resource, "dst", None)]
        prepared = runner.prepare(scenario, outputs=written)
    _check_file(options.json, prepared.plan)
    for span in before.spans:
        samples.once[span.phase] = samples.once.get(span.phase, 0.0) + span.own_ns

    def run() -> Timings:
        timings = Timings(warn=False)  # the table says it
        prepared.run(write_files=False, timings=timings)
        return timings

    for turn in range(options.warmup):
        timings = run()
        if turn == 0:  # the device is opened and its pipelines are made in the first run alone
            samples.once |= {phase: timings.phases.get(phase, 0.0) * 1e9 for phase in ("device", "pipelines")}
    end = None if options.time is None else time.monotonic() + options.time
    count = REPEAT if options.repeat is None else options.repeat
    while samples.runs < count if end is None else samples.runs == 0 or time.monotonic() < end:
        samples.add(run())
    return samples


def _check_file(path: str | None, plan: Plan) -> None:
    """Refuse a file of samples that the scenario reads or writes. Raises UsageError."""
    if path is None:
        return
    own = [*plan.reads, *(output.destination for output in plan.outputs if output.destination is not None)]
    if os.path.realpath(path) in map(os.path.realpath, own):
        raise UsageError(f"--json: {path} is a file of the scenario {plan.name}", help="choose another file")
