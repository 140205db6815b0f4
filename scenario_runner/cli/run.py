"""``scenario-runner [run] FILE…``: run scenarios, one after the other, on one device."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from scenario_runner.cli.arguments import add_compiler_options, add_logging_option, compiler_arguments
from scenario_runner.errors import DeviceError, ScenarioRunnerError, UsageError

if TYPE_CHECKING:
    from scenario_runner.runner import Runner

# Options of the reference runner that change no result: scripts that give them keep working.
_WITHOUT_EFFECT = {
    "--pipeline-caching": 0,
    "--clear-pipeline-cache": 0,
    "--cache-path": 1,
    "--enable-gpu-debug-markers": 0,
    "--capture-frame": 0,
}
# Options of the reference runner whose results somebody waits for: refused by name.
_NOT_SUPPORTED = {
    "--profiling-dump-path": 1,
    "--perf-counters-dump-path": 1,
    "--fail-on-pipeline-cache-miss": 0,
    "--emulation-layer-profiling-dump-dir": 1,
    "--neural-debug-database-dump-dir": 1,
    "--neural-statistics-dump-dir": 1,
    "--neural-statistics-mode": 1,
    "--session-memory-dump-dir": 1,
}


def main(argv: Sequence[str]) -> int:
    """Returns 0, or the exit code of the first scenario that failed."""
    options = _parse(argv)
    if options.version:
        from scenario_runner.cli.version import show_version

        return show_version()
    if options.list_devices:
        from scenario_runner.cli.devices import list_devices

        return list_devices()
    files = [*options.scenario, *options.files]
    if not files:
        raise UsageError("no scenario file was given", help="scenario-runner test.json, or --help for all options")
    repeat = options.repeat
    if repeat < 1:
        raise UsageError(f"--repeat is {repeat}, expected 1 or more")
    from scenario_runner.cli.report import set_up_logging, show_error, write

    set_up_logging(options.log_level)
    for option in _WITHOUT_EFFECT:
        if getattr(options, _attribute(option)):
            write("warning", f"option {option} has no effect in this program")
    if options.dry_run and repeat > 1:
        write("warning", "a dry run runs nothing, so --repeat is 1")
        repeat = 1
    if options.wait_for_key_stroke_before_run:
        input("press Enter to run")
    code = 0
    runner = _runner(options)
    try:
        for file in files:
            started = time.perf_counter()
            try:
                plan = runner.run_to_files(
                    file,
                    output_dir=options.output,
                    capture_dir=options.capture_dir,
                    repeat=repeat,
                    keep_state=options.repeat_keep_state,
                    dry_run=options.dry_run,
                )
            except ScenarioRunnerError as error:
                show_error(error)
                code = code or error.exit_code
                if isinstance(error, DeviceError) and len(files) > 1:
                    runner.close()  # the next scenario gets a device of its own
                    runner = _runner(options)
                continue
            if not options.quiet:
                _summarise(file, plan.dispatch_count, len(plan.outputs), repeat, options.dry_run, started, runner)
    finally:
        runner.close()
        if options.pause_on_exit:
            input("press Enter to exit")
    return code


def _runner(options: argparse.Namespace) -> Runner:
    # The driver starts while Python imports what reads the scenario: each takes about as long as the other.
    import scenario_runner.start as start

    starting = start.InstanceStart(options.device, validation=options.validation)
    from scenario_runner.runner import Runner

    return Runner(
        options.device,
        robustness=options.enable_robustness_features,
        disabled_extensions=[name for names in options.disable_extension for name in names],
        validation=options.validation,
        timeout_s=options.timeout,
        starting=starting,
        **compiler_arguments(options),
    )


def _summarise(
    file: str, dispatches: int, outputs: int, repeat: int, dry_run: bool, started: float, runner: Runner
) -> None:
    milliseconds = (time.perf_counter() - started) * 1e3
    done = "checked (dry run)" if dry_run else "ok"
    times = f" x {repeat}" if repeat > 1 else ""
    ran = _count(dispatches, "dispatch", "dispatches") + times
    wrote = _count(0 if dry_run else outputs, "output", "outputs")
    print(f"{file}: {done}: {ran}, {wrote}, {milliseconds:.1f} ms on {runner.physical_device.name}")


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def _attribute(option: str) -> str:
    return option.lstrip("-").replace("-", "_")


class _NotSupported(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        name = self.option_strings[0]
        raise UsageError(f"option {name} of the reference runner is not supported by this version")


def _positive_seconds(text: str) -> float:
    seconds = float(text)
    if not 0 < seconds < 1e9:
        raise ValueError
    return seconds


_positive_seconds.__name__ = "number of seconds"


def _parse(argv: Sequence[str]) -> argparse.Namespace:
    from scenario_runner.cli.arguments import Parser

    parser = Parser(
        prog="scenario-runner",
        usage="scenario-runner [run] FILE… [options]\n       scenario-runner {validate|schema|doctor} --help",
        description="Run GPU workloads described in JSON on a Vulkan device.",
    )
    parser.add_argument("files", nargs="*", metavar="FILE", help="scenario files (JSON), run one after the other")
    parser.add_argument("--scenario", action="append", default=[], metavar="FILE", help="a scenario file as well")
    parser.add_argument("--output", metavar="DIR", help="base of relative dst paths (default: the scenario's folder)")
    parser.add_argument("--device", metavar="D", help="index, UUID or part of the name of the device to use")
    parser.add_argument("--list-devices", action="store_true", help="list the Vulkan devices and exit")
    parser.add_argument("--dry-run", action="store_true", help="do everything but run the commands and write files")
    parser.add_argument("--repeat", type=int, default=1, metavar="N", help="run the commands N times")
    parser.add_argument(
        "--repeat-keep-state",
        action="store_true",
        help="with --repeat: do not restore the inputs before each iteration",
    )
    parser.add_argument(
        "--timeout", type=_positive_seconds, metavar="S", help="give up on submitted work after S seconds"
    )
    parser.add_argument("--capture-dir", metavar="DIR", help="write what each frame boundary names into folders of DIR")
    parser.add_argument("--validation", action="store_true", help="load the Khronos validation layer")
    parser.add_argument(
        "--disable-extension", action="append", nargs="+", default=[], metavar="E", help="device extensions not to use"
    )
    parser.add_argument(
        "--enable-robustness-features",
        action="store_true",
        help="robust buffer and image access, where the device has it",
    )
    add_compiler_options(parser)
    add_logging_option(parser)
    parser.add_argument("--quiet", action="store_true", help="print no summary line")
    parser.add_argument("--wait-for-key-stroke-before-run", action="store_true", help="wait for Enter before running")
    parser.add_argument("--pause-on-exit", action="store_true", help="wait for Enter at the end")
    parser.add_argument("--version", "-v", action="store_true", help="print versions as JSON and exit")
    for option, values in _WITHOUT_EFFECT.items():
        if values:
            parser.add_argument(option, help=argparse.SUPPRESS)
        else:
            parser.add_argument(option, action="store_true", help=argparse.SUPPRESS)
    for option, values in _NOT_SUPPORTED.items():
        parser.add_argument(option, nargs=values, action=_NotSupported, help=argparse.SUPPRESS)
    return parser.parse_args(argv)
