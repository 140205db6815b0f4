"""``scenario-runner bench FILE…``: measure scenarios over many runs, or compare measurements."""

import argparse
import json
import os
import shutil
import sys
import time
from collections.abc import Sequence
from statistics import median
from typing import Final

from scenario_runner.cli.arguments import shared_arguments
from scenario_runner.cli.bench.changes import PROCESSES, compare_files, describe_runs, measure_in_turns, show_changes
from scenario_runner.cli.bench.samples import (
    Measurement,
    Row,
    ScenarioSamples,
    Side,
    Summary,
    duration,
    read_measurement,
    refuse_own_file,
    summary,
    write_measurement,
)
from scenario_runner.cli.console import show_error, show_table, terminal
from scenario_runner.cli.options import THRESHOLD_PERCENT
from scenario_runner.errors import DeviceError, FileError, ScenarioRunnerError, UsageError
from scenario_runner.errors.text import one_line
from scenario_runner.files.output import check_destination
from scenario_runner.files.sandbox import check_folder_to_write
from scenario_runner.processes import progress
from scenario_runner.processes.progress import Clock
from scenario_runner.run.timings import Timings
from scenario_runner.runner import Runner
from scenario_runner.scenario import load
from scenario_runner.suite.discovery import scenario_with
from scenario_runner.suite.hashes import file_hash

_PLOT_COLUMNS: Final = 30
_LEAST_PLOT_COLUMNS: Final = 8
_TIMES_COLUMNS: Final = 50  # for three times and a spread
_MOST_DISPATCHES: Final = 20


def main(options: argparse.Namespace) -> int:
    """Measure scenarios, or compare measurements.

    Return 0, or the exit code of the first failed scenario. A comparison returns 1 if anything is slower.
    """
    _refuse_contradictions(options)
    threshold = THRESHOLD_PERCENT if options.threshold is None else options.threshold
    if options.compare is not None:
        return compare_files(*options.compare, threshold_percent=threshold)
    if options.json is not None:
        if os.path.realpath(options.json) in map(os.path.realpath, options.files):
            raise UsageError(f"--json: {options.json} is a scenario", help="choose another file")
        check_destination(options.json)
        check_folder_to_write(os.path.dirname(os.path.abspath(options.json)))

    words = [*options.measured_words, *([f"--device={options.device}"] if options.device else [])]
    words += [f"--set={name}={json.dumps(value)}" for name, value in options.set]
    side = Side(os.getcwd(), options.files, words)
    timing = [f"--warmup={options.warmup}"]
    timing.append(f"--repeat={options.repeat}" if options.time is None else f"--time={options.time!r}")
    code = 0
    if options.interleave or options.against is not None:
        if options.interleave:
            sides = [side._replace(files=[file]) for file in options.files]
        else:
            sides = [_side_of(options.against), side]
        before, after = measure_in_turns(sides, options.processes or PROCESSES, timing, options.json)
        code = show_changes(before, after, threshold_percent=threshold)
        measured = Measurement([*before, *after]) if options.interleave else Measurement(after, side)
    elif options.processes is not None:
        (scenarios,) = measure_in_turns([side], options.processes, timing, options.json)
        for samples in scenarios:
            _show(samples)
        measured = Measurement(scenarios, side)
    else:
        scenarios, code = _measure_all(options)
        measured = Measurement(scenarios, side)
    if options.json is not None and measured.scenarios:
        write_measurement(options.json, options.json_format or "samples", measured)
    return code


def _refuse_contradictions(options: argparse.Namespace) -> None:
    """Raise UsageError for options that contradict each other."""
    compares = options.interleave or options.against is not None or options.compare is not None
    if options.compare is not None:
        if options.files or options.interleave or options.against is not None:
            raise UsageError("--compare takes two files of --json and no scenario")
    elif not options.files:
        raise UsageError("no scenario file was given", help="scenario-runner bench test.json")
    if options.interleave and (len(options.files) != 2 or options.against is not None):
        raise UsageError("--interleave takes two scenario files", help="scenario-runner bench A B --interleave")
    if options.threshold is not None and not compares:
        raise UsageError("--threshold is an option of --compare, --interleave and --against")
    if options.json_format is not None and options.json is None:
        raise UsageError("--json-format needs --json")


def _side_of(path: str) -> Side:
    """Read the side from a --json file. Raises FileError if nobody can measure the side again."""
    earlier = read_measurement(path)
    if earlier.side is None:
        raise FileError(f"{path}: has no options to measure again", help="write the file with bench FILE --json")
    for samples in earlier.scenarios:
        for name, content in samples.files.items():
            if content is not None and file_hash(os.path.join(earlier.side.folder, name)) != content:
                message = f"{path}: {name} has changed since the measurement"
                help = "compare with a copy of the earlier scenario: scenario-runner bench EARLIER NEW --interleave"
                raise FileError(message, help=help)
    return earlier.side


def _measure_all(options: argparse.Namespace) -> tuple[list[ScenarioSamples], int]:
    """Measure scenarios in this process and print the times. Return the samples and the exit code."""
    code = 0
    measured = []
    with Runner(**shared_arguments(options)) as runner:
        for path in options.files:
            try:
                samples = _measure(runner, path, options)
            except ScenarioRunnerError as error:  # keep the samples of earlier scenarios
                show_error(error.of_scenario(path))
                code = code or error.exit_code
                if isinstance(error, DeviceError):
                    runner.close()  # the next scenario opens the device again
                continue
            _show(samples)
            measured.append(samples)
    return measured, code


def _measure(runner: Runner, path: str, options: argparse.Namespace) -> ScenarioSamples:
    """Plan a scenario once, and run it many times on the same device."""
    samples = ScenarioSamples(path)
    before = Clock()
    with progress.measuring(before):
        with progress.phase("parse", "scenario"):
            scenario = load(scenario_with(path, dict(options.set)))
        written = [resource.uid for resource in scenario.resources if getattr(resource, "dst", None)]
        prepared = runner.prepare(scenario, outputs=written)
    if options.json is not None:
        samples.note_files(prepared.plan)
        refuse_own_file(options.json, samples)
    for span in before.spans:
        samples.once[span.phase] = samples.once.get(span.phase, 0.0) + span.own_ns

    def run() -> Timings:
        timings = Timings(warn=False)  # the table has the warning
        prepared.run(write_files=False, timings=timings)
        return timings

    for turn in range(options.warmup):
        timings = run()
        if turn == 0:  # only the first run opens the device and makes pipelines
            samples.once |= {phase: timings.phases.get(phase, 0.0) * 1e9 for phase in ("device", "pipelines")}
    end = None if options.time is None else time.monotonic() + options.time
    while samples.runs < options.repeat if end is None else samples.runs == 0 or time.monotonic() < end:
        started = time.process_time_ns()
        timings = run()
        samples.add(timings, float(time.process_time_ns() - started))
    return samples


def _show(samples: ScenarioSamples) -> None:
    """Print a scenario's times."""
    print(f"{one_line(samples.scenario)}: {describe_runs(samples)} on {samples.device}")
    if samples.why_none is not None:
        print(f"  {samples.why_none}")
    dispatches = samples.rows_of("device")
    if len(dispatches) > _MOST_DISPATCHES + 1:
        *numbered, total = enumerate(dispatches)
        slowest = sorted(numbered, key=lambda pair: median(pair[1].samples))[-_MOST_DISPATCHES:]
        title = f"on the device, the slowest {_MOST_DISPATCHES} of {len(numbered)}"
        _show_rows(title, [row for _, row in (*sorted(slowest), total)])
    elif dispatches:
        _show_rows("on the device", dispatches)
    _show_rows("on the host", samples.rows_of("host"))
    _show_rows("on the processors", samples.rows_of("processor"))
    if samples.once:
        print(f"once: {', '.join(f'{phase} {duration(value)}' for phase, value in samples.once.items() if value)}")


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
        # the last row, the sum of the others, needs a separate scale
        scale = times.p95 if times is summaries[-1] else greatest
        spread = f"{100 * times.mad / times.median if times.median else 0.0:.1f} %"
        columns_of_times = (*map(duration, (times.min, times.median, times.p95)), spread)
        lines.append((row.title, *columns_of_times, _plot(times, scale, columns, *marks)))
    show_table(lines, right=range(1, 5))


def _plot(times: Summary, greatest: float, columns: int, line: str, mark: str) -> str:
    """Draw a line from the minimum to the 95th percentile, with a mark at the median. ``greatest`` is the right end."""
    last = columns - 1
    left, middle, right = (
        min(round(last * value / (greatest or 1)), last) for value in (times.min, times.median, times.p95)
    )
    middle = min(max(middle, left), right)
    return " " * left + line * (middle - left) + mark + line * (right - middle)
