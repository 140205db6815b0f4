"""``scenario-runner bench FILE…``: run scenarios many times and show what they take, or compare two measurements.

Times are skewed and have outliers, so statistics are built on medians: the median absolute deviation (MAD) measures
the spread, and 1.4826 times it estimates the standard deviation.
"""

import argparse
import json
import math
import os
import shutil
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median, quantiles
from typing import Annotated, Any, Final, NamedTuple

from pydantic import Field, FiniteFloat, TypeAdapter

from scenario_runner.cli.arguments import shared_arguments
from scenario_runner.cli.console import set_up_logging, show_error, show_table, terminal
from scenario_runner.cli.options import THRESHOLD_PERCENT
from scenario_runner.errors import DeviceError, FileError, ScenarioRunnerError, UsageError
from scenario_runner.errors.text import counted, one_line, reason_of
from scenario_runner.files.input import read_file
from scenario_runner.files.output import OutputFile, check_destination
from scenario_runner.files.sandbox import check_folder_to_write
from scenario_runner.plan.plan import Plan
from scenario_runner.processes import progress
from scenario_runner.processes.progress import PHASES, Clock
from scenario_runner.run.timings import Timings
from scenario_runner.runner import Runner
from scenario_runner.scenario import load
from scenario_runner.suite.discovery import scenario_with

SCHEMA: Final = 1
"""Version of the JSON; a key that changes its meaning raises it."""
MIN_SAMPLES: Final = 5
"""Fewer samples than this say nothing about noise."""
_MAD_TO_SIGMA: Final = 1.4826
# The standard error of a median is this many times that of a mean (of normally distributed values).
_MEDIAN_ERROR: Final = math.sqrt(math.pi / 2)
# Chance alone exceeds this many standard errors in one of 300 comparisons, of normally and of exponentially distributed
# samples. Few samples take more, as their MAD is often much too small (from a simulation of 60,000 pairs).
_SIGMAS: Final = 3.0
_SIGMAS_OF_FEW: Final = 15.0
_HOST_RESOLUTION_NS: Final = 1000.0  # uncertainty of the host's clock and interruptions
_SLOWER_EXIT_CODE: Final = 1

_PLOT_COLUMNS: Final = 30
_LEAST_PLOT_COLUMNS: Final = 8
_TIMES_COLUMNS: Final = 50  # three times and a spread, with the space around them
_MOST_DISPATCHES: Final = 20


class Summary(NamedTuple):
    """Of ``number`` samples in nanoseconds; ``mad`` is their median absolute deviation from the median."""

    number: int
    min: float
    median: float
    p95: float
    mad: float

    @property
    def error(self) -> float:
        """The standard error of the median, in nanoseconds."""
        return _MEDIAN_ERROR * _MAD_TO_SIGMA * self.mad / math.sqrt(self.number)


def summary(samples: Sequence[float]) -> Summary:
    """Summarize at least one sample."""
    middle = median(samples)
    p95 = quantiles(samples, n=20, method="inclusive")[-1] if len(samples) > 1 else middle
    return Summary(len(samples), min(samples), middle, p95, median(abs(time_ns - middle) for time_ns in samples))


def compare(before: Summary, after: Summary, *, threshold_percent: float, resolution_ns: float) -> tuple[str, float]:
    """Return the verdict "slower", "faster", "same", or "unknown" with too few samples; and the noise, which is the
    difference of medians in nanoseconds that chance explains.

    Two medians differ where the difference is greater than three standard errors of it (more with few samples), than
    ``threshold_percent`` of the earlier median, and than ``resolution_ns``, below which the clock cannot tell times
    apart.
    """
    fewest = min(before.number, after.number)
    noise = (_SIGMAS + _SIGMAS_OF_FEW / (max(fewest, MIN_SAMPLES) - 2)) * math.hypot(before.error, after.error)
    difference = after.median - before.median
    verdict = "slower" if difference > 0 else "faster"
    if fewest < MIN_SAMPLES:
        verdict = "unknown"
    elif abs(difference) <= max(noise, before.median * threshold_percent / 100, resolution_ns):
        verdict = "same"
    return verdict, noise


@dataclass
class Row:
    """Samples of one dispatch or phase in nanoseconds; ``kind`` is "device" or "host".

    ``command`` is the index of the scenario's command, None for a phase.
    """

    kind: str
    name: str
    command: int | None
    samples: Annotated[list[FiniteFloat], Field(min_length=1)]

    @property
    def title(self) -> str:
        return one_line(self.name if self.command is None else f"{self.command} {self.name}")


@dataclass
class ScenarioSamples:
    """The samples of one scenario, with the keys of its JSON; ``once`` has the nanoseconds of the phases that only come
    once. ``why_none``, which the JSON leaves out, says why there are no times of the device."""

    scenario: str
    device: str = ""
    timestamp_period_ns: float = 0.0
    runs: int = 0
    once: dict[str, float] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)
    why_none: Annotated[str | None, Field(exclude=True)] = None

    def add(self, timings: Timings) -> None:
        """Add one more run."""
        self.device, self.timestamp_period_ns, self.why_none = timings.device, timings.period_ns, timings.why_none
        times = [dispatch.time_ns for dispatch in timings.dispatches]
        times += [sum(times)] if times else []
        phases = {name: seconds * 1e9 for name, seconds in timings.phases.items()}
        if not self.rows:
            self.rows = [Row("device", dispatch.name, dispatch.command, []) for dispatch in timings.dispatches]
            self.rows += [Row("device", "all dispatches", None, [])] if times else []
            self.rows += [Row("host", name, None, []) for name in PHASES if name in phases]
            self.rows.append(Row("host", "whole run", None, []))
        times += [phases.get(row.name, 0.0) for row in self.rows[len(times) : -1]]
        for row, time_ns in zip(self.rows, [*times, sum(phases.values())], strict=True):
            row.samples.append(time_ns)
        self.runs += 1

    def by_key(self) -> dict[tuple[Any, ...], Row]:
        """The rows, each by a key that no other row of the scenario has."""
        seen: Counter[tuple[Any, ...]] = Counter()
        rows = {}
        for row in self.rows:
            key = (row.kind, row.name, row.command)
            seen[key] += 1
            rows[*key, seen[key]] = row
        return rows


_SCENARIOS: Final = TypeAdapter(list[ScenarioSamples])


def _read_samples(path: str) -> list[ScenarioSamples]:
    """Read a file of ``--json``. Raises FileError."""
    help = "expected a file of scenario-runner bench --json"
    try:
        content = json.loads(read_file(path))
        if content["schema"] != SCHEMA:
            raise FileError(f"{path}: has the schema {content['schema']!r}, expected {SCHEMA}", help=help)
        return _SCENARIOS.validate_python(content["scenarios"])
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {reason_of(error)}") from error
    except (ValueError, RecursionError, KeyError, TypeError) as error:
        raise FileError(f"{path}: does not hold the samples of a benchmark", help=help) from error


def main(options: argparse.Namespace) -> int:
    """Measure scenarios, or compare measurements. Returns 0, or the exit code of the first scenario that failed; with
    --compare 1 where something is slower beyond noise."""
    set_up_logging(options.log_level)
    if options.compare is not None:
        if options.files:
            raise UsageError("--compare takes two files of --json and no scenario")
        threshold = THRESHOLD_PERCENT if options.threshold is None else options.threshold
        return _compare_files(*options.compare, threshold_percent=threshold)
    if not options.files:
        raise UsageError("no scenario file was given", help="scenario-runner bench test.json")
    if options.threshold is not None:
        raise UsageError("--threshold is an option of --compare")
    if options.json_format is not None and options.json is None:
        raise UsageError("--json-format needs --json")

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
            _show(samples)
            measured.append(samples)
    if options.json is not None and measured:
        content = _FORMATS[options.json_format or "samples"](measured)
        with OutputFile(options.json) as file:
            file.write(json.dumps(content).encode() + b"\n")
    return code


def _all_samples(measured: list[ScenarioSamples]) -> Any:
    return {"schema": SCHEMA, "unit": "nanoseconds", "scenarios": _SCENARIOS.dump_python(measured)}


def _summaries(measured: Sequence[ScenarioSamples]) -> dict[str, Summary]:
    """Summaries of all rows, by names that are the same in each measurement of the same scenarios."""
    return {
        f"{samples.scenario}: {row.kind}: {row.title}" + (f" ({number})" if number > 1 else ""): summary(row.samples)
        for samples in measured
        for (*_, number), row in samples.by_key().items()
    }


def _for_bencher(measured: Sequence[ScenarioSamples]) -> Any:
    """Bencher Metric Format; its measure "latency" is in nanoseconds."""
    return {
        name: {"latency": {"value": times.median, "lower_value": times.min, "upper_value": times.p95}}
        for name, times in _summaries(measured).items()
    }


def _for_github(measured: Sequence[ScenarioSamples]) -> Any:
    """The form of github-action-benchmark's tool "customSmallerIsBetter"."""
    return [
        {"name": name, "unit": "ns", "value": times.median, "range": f"± {_MAD_TO_SIGMA * times.mad:.0f}"}
        for name, times in _summaries(measured).items()
    ]


_FORMATS: Final = {"samples": _all_samples, "bencher": _for_bencher, "github": _for_github}


def _measure(runner: Runner, path: str, options: argparse.Namespace) -> ScenarioSamples:
    """Plan the scenario once and run it again and again on one device."""
    samples = ScenarioSamples(path)
    before = Clock()
    with progress.measuring(before):
        with progress.phase("parse", "scenario"):
            scenario = load(scenario_with(path, dict(options.set)))
        written = [resource.uid for resource in scenario.resources if getattr(resource, "dst", None)]
        prepared = runner.prepare(scenario, outputs=written)
    if options.json is not None:
        _refuse_own_file(options.json, prepared.plan)
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
    while samples.runs < options.repeat if end is None else samples.runs == 0 or time.monotonic() < end:
        samples.add(run())
    return samples


def _refuse_own_file(path: str, plan: Plan) -> None:
    """Raise UsageError for a file of samples that the scenario reads or writes."""
    own = [*plan.reads, *(output.destination for output in plan.outputs if output.destination is not None)]
    if os.path.realpath(path) in map(os.path.realpath, own):
        raise UsageError(f"--json: {path} is a file of the scenario {plan.name}", help="choose another file")


def _show(samples: ScenarioSamples) -> None:
    """Print the times of one scenario."""
    print(f"{one_line(samples.scenario)}: {counted(samples.runs, 'run')} on {samples.device}")
    if samples.why_none is not None:
        print(f"  {samples.why_none}")
    dispatches = [row for row in samples.rows if row.kind == "device"]
    if len(dispatches) > _MOST_DISPATCHES + 1:
        *numbered, total = enumerate(dispatches)
        slowest = sorted(numbered, key=lambda pair: median(pair[1].samples))[-_MOST_DISPATCHES:]
        title = f"on the device, the slowest {_MOST_DISPATCHES} of {len(numbered)}"
        _show_rows(title, [row for _, row in (*sorted(slowest), total)])
    elif dispatches:
        _show_rows("on the device", dispatches)
    _show_rows("on the host", [row for row in samples.rows if row.kind == "host"])
    if samples.once:
        print(f"once: {', '.join(f'{phase} {_duration(value)}' for phase, value in samples.once.items() if value)}")


def _show_rows(title: str, rows: Sequence[Row]) -> None:
    summaries = [summary(row.samples) for row in rows]
    greatest = max((times.p95 for times in summaries[:-1]), default=0.0)
    columns, marks = _PLOT_COLUMNS, ("-", "*")
    if terminal(sys.stdout):
        names = max(map(len, [title, *(row.title for row in rows)]))
        left = shutil.get_terminal_size().columns - names - _TIMES_COLUMNS
        columns, marks = min(max(left, _LEAST_PLOT_COLUMNS), _PLOT_COLUMNS), ("━", "●")
    lines: list[Sequence[str]] = [(title, "min", "median", "p95", "spread", "")]
    for row, times in zip(rows, summaries, strict=True):
        # the last row is the sum of the others: it has a scale of its own
        scale = times.p95 if times is summaries[-1] else greatest
        spread = f"{100 * times.mad / times.median if times.median else 0.0:.1f} %"
        columns_of_times = (*map(_duration, (times.min, times.median, times.p95)), spread)
        lines.append((row.title, *columns_of_times, _plot(times, scale, columns, *marks)))
    show_table(lines, right=range(1, 5))


def _plot(times: Summary, greatest: float, columns: int, line: str, mark: str) -> str:
    """A line from the least to the 95th percentile with a mark at the median; ``greatest`` is at the right end."""
    last = columns - 1
    left, middle, right = (
        min(round(last * value / (greatest or 1)), last) for value in (times.min, times.median, times.p95)
    )
    middle = min(max(middle, left), right)
    return " " * left + line * (middle - left) + mark + line * (right - middle)


def _duration(nanoseconds: float) -> str:
    """A time with a unit that leaves one to three digits before the point."""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if abs(nanoseconds) >= size:
            return f"{nanoseconds / size:.3f} {unit}"
    return f"{nanoseconds:.0f} ns"


def _compare_files(before_path: str, after_path: str, *, threshold_percent: float) -> int:
    """Print every change; returns 1 where something is slower, else 0. Raises FileError."""
    before, after = _read_samples(before_path), _read_samples(after_path)
    if len(before) == len(after) == 1:
        before[0].scenario = after[0].scenario  # two single scenarios belong together
    old, new = ({samples.scenario: samples for samples in file} for file in (before, after))
    if old.keys().isdisjoint(new):
        raise FileError(f"{before_path} and {after_path} have no scenario in common")
    slower = sum(_show_changes(old[name], new[name], threshold_percent) for name in old if name in new)
    for name in sorted(old.keys() ^ new.keys()):
        print(f"{one_line(name)}: only in one of the files")
    return _SLOWER_EXIT_CODE if slower else 0


def _show_changes(before: ScenarioSamples, after: ScenarioSamples, threshold_percent: float) -> int:
    """Print the changes of one scenario; returns how many rows are slower."""
    print(f"{one_line(after.scenario)}: {before.runs} runs before, {after.runs} after")
    if before.device != after.device:
        print(f"  the devices differ: {one_line(before.device)} before, {one_line(after.device)} after")
    rows, others = before.by_key(), after.by_key()
    tick_ns = 2 * max(before.timestamp_period_ns, after.timestamp_period_ns)
    counts: Counter[str] = Counter()
    lines = [("", "before", "after", "change", "noise", "")]
    for key, row in rows.items():
        if key not in others:
            continue
        old, new = summary(row.samples), summary(others[key].samples)
        resolution_ns = tick_ns if row.kind == "device" else _HOST_RESOLUTION_NS
        verdict, noise = compare(old, new, threshold_percent=threshold_percent, resolution_ns=resolution_ns)
        counts[verdict] += 1
        if verdict in ("slower", "faster"):
            percent = f"{100 * (new.median / old.median - 1) if old.median else 0.0:+.1f} %"
            times = (_duration(old.median), _duration(new.median), percent, _duration(noise))
            lines.append((f"{row.kind}: {row.title}", *times, verdict))
    if len(lines) > 1:
        show_table(lines, right=range(1, 5))
    unknown = f", {counts['unknown']} with fewer than {MIN_SAMPLES} samples" if counts["unknown"] else ""
    lost = len(rows.keys() ^ others.keys())
    different = f", {lost} in one file alone" if lost else ""
    print(f"  {counts['slower']} slower, {counts['faster']} faster, {counts['same']} unchanged{unknown}{different}")
    return counts["slower"]
