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
from scenario_runner.errors import DeviceError, FileError, ScenarioRunnerError, UsageError
from scenario_runner.files.output import OutputFile, check_destination
from scenario_runner.files.source import check_folder_to_write
from scenario_runner.plan.plan import Plan
from scenario_runner.progress import Clock
from scenario_runner.run.timings import (
    MIN_SAMPLES,
    Change,
    Row,
    ScenarioSamples,
    Summary,
    Timings,
    compare,
    keyed,
    read_samples,
    samples_text,
    summary,
)
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
    print(f"{one_line(samples.scenario)}: {counted(samples.count, 'run')} on {samples.device}")
    if samples.why_none is not None:
        print(f"  {samples.why_none}")
    dispatches = [row for row in samples.rows if row.kind == "device"]
    if dispatches:
        note = ""
        shown = dispatches
        if len(dispatches) > _MOST_DISPATCHES + 1:  # and the row of them all
            slowest = sorted(dispatches[:-1], key=lambda row: summary(row.samples).median)[-_MOST_DISPATCHES:]
            kept = {id(row) for row in slowest}
            shown = [row for row in dispatches[:-1] if id(row) in kept] + dispatches[-1:]
            note = f", the slowest {_MOST_DISPATCHES} of {len(dispatches) - 1}"
        _show_rows(f"on the device{note}", shown)
    _show_rows("on the host", [row for row in samples.rows if row.kind == "host"])
    if samples.once:
        once = ", ".join(f"{phase} {duration(value)}" for phase, value in samples.once.items() if value)
        print(f"once: {once}")


def _show_rows(title: str, rows: Sequence[Row]) -> None:
    summaries = [summary(row.samples) for row in rows]
    # the last row is the sum of the others: it has a scale of its own
    greatest = max((each.p95 for each in summaries[:-1]), default=summaries[-1].p95)
    names = [_name(row) for row in rows]
    columns, marks = _PLOT_COLUMNS, ("-", "*")
    if is_terminal(sys.stdout):
        left = shutil.get_terminal_size().columns - max(map(len, [title, *names])) - _TIMES_COLUMNS
        columns, marks = min(max(left, _LEAST_PLOT_COLUMNS), _PLOT_COLUMNS), ("━", "●")
    lines = [(title, "min", "median", "p95", "spread", "")]
    for name, row, each in zip(names, rows, summaries, strict=True):
        scale = greatest if row is not rows[-1] else each.p95
        times = (duration(each.min), duration(each.median), duration(each.p95), f"{each.spread_percent:.1f} %")
        lines.append((name, *times, _plot(each, scale, columns, marks)))
    show_table(lines, right=range(1, 5))


def _name(row: Row) -> str:
    return one_line(row.name if row.command is None else f"{row.command} {row.name}")


def _plot(each: Summary, greatest: float, columns: int, marks: tuple[str, str]) -> str:
    """A line from the least to the 95th percentile with a mark at the median; ``greatest`` is at the right end."""
    line, mark = marks
    last = columns - 1
    left, middle, right = (
        min(round(last * value / greatest), last) if greatest > 0 else 0 for value in (each.min, each.median, each.p95)
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
    pairs, alone = _pairs(before, after)
    if not pairs:
        raise FileError(f"{before_path} and {after_path} have no scenario in common")
    slower = 0
    for one, other in pairs:
        slower += _show(one, other, threshold_percent)
    for name in alone:
        print(f"{one_line(name)}: only in one of the files")
    return _SLOWER_EXIT_CODE if slower else 0


def _pairs(
    before: list[ScenarioSamples], after: list[ScenarioSamples]
) -> tuple[list[tuple[ScenarioSamples, ScenarioSamples]], list[str]]:
    """The scenarios in both, by name, and the names of the others; two single scenarios belong together."""
    if len(before) == len(after) == 1:
        return [(before[0], after[0])], []
    others = {later.scenario: later for later in after}
    names = {earlier.scenario for earlier in before}
    pairs = [(earlier, others[earlier.scenario]) for earlier in before if earlier.scenario in others]
    return pairs, sorted(names ^ others.keys())


def _show(before: ScenarioSamples, after: ScenarioSamples, threshold_percent: float) -> int:
    """Print the changes of one scenario; returns how many rows are slower."""
    print(f"{one_line(after.scenario)}: {before.count} runs before, {after.count} after")
    if before.device != after.device:
        print(f"  the devices differ: {one_line(before.device)} before, {one_line(after.device)} after")
    rows, others = dict(keyed(before)), dict(keyed(after))
    changes: list[tuple[str, Change]] = []
    for key, row in rows.items():
        if key in others:
            resolution_ns = 2 * max(before.period_ns, after.period_ns) if row.kind == "device" else _HOST_RESOLUTION_NS
            change = compare(
                summary(row.samples),
                summary(others[key].samples),
                threshold_percent=threshold_percent,
                resolution_ns=resolution_ns,
            )
            changes.append((f"{row.kind}: {_name(row)}", change))
    counts = Counter(change.verdict for _, change in changes)
    lines = []
    for name, change in changes:
        if change.verdict in ("slower", "faster"):
            times = (duration(change.before.median), duration(change.after.median))
            lines.append((name, *times, f"{change.percent:+.1f} %", duration(change.noise), change.verdict))
    if lines:
        show_table([("", "before", "after", "change", "noise", ""), *lines], right=range(1, 5))
    unknown = f", {counts['unknown']} with fewer than {MIN_SAMPLES} samples" if counts["unknown"] else ""
    lost = len(rows.keys() ^ others.keys())
    different = f", {lost} in one file alone" if lost else ""
    print(f"  {counts['slower']} slower, {counts['faster']} faster, {counts['same']} unchanged{unknown}{different}")
    return counts["slower"]


def main(options: argparse.Namespace) -> int:
    """Returns 0, or the exit code of the first scenario that failed; with --compare 1 where something is slower beyond
    noise."""
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
    for turn in range(options.warmup):
        timings = Timings(warn=False)  # the table says it
        prepared.run(write_files=False, timings=timings)
        if turn == 0:  # the device is opened and its pipelines are made in the first run alone
            for phase in ("device", "pipelines"):
                samples.once[phase] = timings.phases.get(phase, 0.0) * 1e9
    end = None if options.time is None else time.monotonic() + options.time
    count = REPEAT if options.repeat is None else options.repeat
    while samples.count < count if end is None else samples.count == 0 or time.monotonic() < end:
        timings = Timings(warn=False)
        prepared.run(write_files=False, timings=timings)
        samples.add(timings)
    return samples


def _check_file(path: str | None, plan: Plan) -> None:
    """Refuse a file of samples that the scenario reads or writes. Raises UsageError."""
    if path is None:
        return
    own = [*plan.reads, *(output.destination for output in plan.outputs if output.destination is not None)]
    if os.path.realpath(path) in map(os.path.realpath, own):
        raise UsageError(f"--json: {path} is a file of the scenario {plan.name}", help="choose another file")
