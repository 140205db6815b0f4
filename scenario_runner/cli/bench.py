"""``scenario-runner bench FILE…``: run scenarios many times and show what they take, or compare two measurements."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from scenario_runner.cli.arguments import (
    Parser,
    add_compiler_options,
    add_device_options,
    add_logging_option,
    add_sandbox_option,
    compiler_arguments,
    device_arguments,
    positive_seconds,
)
from scenario_runner.errors import DeviceError, ScenarioRunnerError, UsageError

if TYPE_CHECKING:
    import argparse

    from scenario_runner.plan.model.plan import Plan
    from scenario_runner.runner import Runner
    from scenario_runner.timing.samples import ScenarioSamples

_WARMUP, _REPEAT = 3, 20
_THRESHOLD_PERCENT = 2.0


def main(argv: Sequence[str]) -> int:
    """Returns 0, or the exit code of the first scenario that failed; with --compare 1 where something is slower beyond
    noise."""
    options = _parse(argv)
    from scenario_runner.cli.messages import set_up_logging, show_error

    set_up_logging(options.log_level)
    if options.compare is not None:
        from scenario_runner.cli.bench_comparison import show_comparison

        if options.files:
            raise UsageError("--compare takes two files of --json and no scenario")
        threshold = _THRESHOLD_PERCENT if options.threshold is None else options.threshold
        return show_comparison(*options.compare, threshold_percent=threshold)
    if not options.files:
        raise UsageError("no scenario file was given", help="scenario-runner bench test.json")
    if options.threshold is not None:
        raise UsageError("--threshold is an option of --compare")
    if options.time is not None and options.repeat is not None:
        raise UsageError("--time and --repeat both say when to stop", help="give one of them")
    from scenario_runner.cli.bench_report import show
    from scenario_runner.files.output import OutputFile
    from scenario_runner.runner import Runner
    from scenario_runner.timing.samples import text

    code = 0
    file = None
    if options.json is not None:
        if os.path.realpath(options.json) in map(os.path.realpath, options.files):
            raise UsageError(f"--json: {options.json} is a scenario", help="choose another file")
        file = OutputFile(options.json)
    try:
        measured = []
        with Runner(sandbox=options.sandbox, **device_arguments(options), **compiler_arguments(options)) as runner:
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
        if file is not None and measured:
            file.write(text(measured).encode() + b"\n")
            file.commit()
    finally:
        if file is not None:
            file.discard()
    return code


def _measure(runner: Runner, path: str, options: argparse.Namespace) -> ScenarioSamples:
    """Plan the scenario once and run it again and again on one device."""
    from scenario_runner import clock
    from scenario_runner.clock import Clock
    from scenario_runner.run.timings import Timings
    from scenario_runner.scenario import load
    from scenario_runner.timing.samples import ScenarioSamples

    samples = ScenarioSamples(path)
    before = Clock()
    with clock.measuring(before):
        with clock.phase("parse", "scenario"):
            scenario = load(path)
        written = [each.uid for each in scenario.resources if getattr(each, "dst", None)]
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
    count = _REPEAT if options.repeat is None else options.repeat
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


def _parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = Parser(
        prog="scenario-runner bench",
        usage="scenario-runner bench FILE… [options]\n       scenario-runner bench --compare A.json B.json",
        description="Run scenarios many times; show what each dispatch and each phase takes. No result is written.",
    )
    parser.add_argument("files", nargs="*", metavar="FILE", help="scenario files (JSON)")
    parser.add_argument(
        "--warmup",
        type=_count(0),
        default=_WARMUP,
        metavar="W",
        help=f"runs before those that are measured (default {_WARMUP})",
    )
    parser.add_argument(
        "--repeat", type=_count(1), metavar="N", help=f"measured runs of each scenario (default {_REPEAT})"
    )
    parser.add_argument(
        "--time", type=positive_seconds, metavar="S", help="measure each scenario for S seconds instead"
    )
    parser.add_argument("--json", metavar="FILE", help="write every sample to FILE")
    parser.add_argument("--compare", nargs=2, metavar=("A.json", "B.json"), help="show what changed from A to B")
    parser.add_argument(
        "--threshold",
        type=_percent,
        metavar="PERCENT",
        help=f"with --compare: smaller changes are ignored (default {_THRESHOLD_PERCENT:g})",
    )
    add_device_options(parser)
    add_compiler_options(parser)
    add_sandbox_option(parser)
    add_logging_option(parser)
    return parser.parse_args(argv)


def _count(least: int) -> Callable[[str], int]:
    """What reads a whole number from ``least`` on."""

    def read(text: str) -> int:
        value = int(text)
        if value < least:
            raise ValueError
        return value

    read.__name__ = f"number ({least} or more)"
    return read


def _percent(text: str) -> float:
    value = float(text)
    if not 0 <= value < 1e6:
        raise ValueError
    return value


_percent.__name__ = "percentage"
