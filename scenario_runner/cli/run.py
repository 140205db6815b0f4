"""``scenario-runner [run] FILE…``: run scenarios, one after the other, on one device."""

from __future__ import annotations

import argparse
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Final

from scenario_runner import log, progress
from scenario_runner.cli import supervisor
from scenario_runner.cli.arguments import value_of
from scenario_runner.cli.messages import set_up_logging, show_error, write
from scenario_runner.cli.options import GRAPH_REPORTS, TIMING_FILES
from scenario_runner.cli.run_files import run_files, wait_for_enter
from scenario_runner.cli.run_outputs import RunOutputs, Streams, read_streams
from scenario_runner.errors import DeviceError, NoDeviceError, UsageError
from scenario_runner.runner import is_model
from scenario_runner.vulkan.device import Instance
from scenario_runner.vulkan.loader import version_text
from scenario_runner.vulkan.physical_device import choose

if TYPE_CHECKING:
    from scenario_runner.run.crash import Crash

# Options that take the files of one scenario.
_OF_ONE_SCENARIO: Final = (*GRAPH_REPORTS, *TIMING_FILES, "--dump-dir", "--dump-all")
# Options that have no effect without another one.
_NEEDED: Final = {
    "--clear-pipeline-cache": "--pipeline-caching",
    "--fail-on-pipeline-cache-miss": "--pipeline-caching",
    "--cache-path": "--pipeline-caching",
    "--neural-statistics-mode": "--neural-statistics-dump-dir",
}
_CONTRADICTIONS: Final = (
    ("--capture-frame", "--dry-run", "a dry run submits nothing to capture"),
    ("--gfxr", "--dry-run", "a dry run submits nothing to capture"),
    ("--capture-frame", "--gfxr", "capture with one tool at a time"),
    ("--dump-after", "--dump-all", "--dump-all writes all that --dump-after can ask for"),
    (
        "--clear-pipeline-cache",
        "--fail-on-pipeline-cache-miss",
        "fill the cache by a run with --pipeline-caching alone, then give --fail-on-pipeline-cache-miss",
    ),
    *(
        (option, dump, "a dump takes frames apart, which would show: run the scenario twice")
        for option in ("--capture-frame", "--gfxr", "--shader-instrumentation")
        for dump in ("--dump-dir", "--dump-all")
    ),
)


def main(options: argparse.Namespace) -> int:
    """Run scenarios, or a model. Returns 0, or the exit code of the first scenario that failed.

    After a crash of the process before this one, it says so and goes on with what is left (see `supervisor`).
    """
    _settle(options)
    files = [*options.scenario, *options.files]
    if not files:
        raise UsageError("no scenario file was given", help="scenario-runner test.json, or --help for all options")
    set_up_logging(options.log_level, lines=True)
    if any(map(is_model, files)):
        from scenario_runner.cli.model import read_model

        streams: Streams = read_model(files, options)
    elif options.input or options.shader or options.push_constants:
        raise UsageError(
            "--input, --shader and --push-constants are for models, and no model was given",
            help="scenario-runner MODEL.vgf --input NAME=FILE",
        )
    else:
        streams = read_streams(files)
    outputs = RunOutputs(files, streams, options)
    crash = supervisor.crash
    if crash is None:
        outputs.refuse_collisions()
        progress.files(len(files))
        if options.dry_run and options.repeat > 1:
            write("warning", "a dry run runs nothing, so --repeat is 1")
        if options.wait_for_key_stroke_before_run:
            wait_for_enter("press Enter to run")
        return run_files(files, streams, outputs, options)
    show_error(_crashed(crash, files[crash.file] if crash.file < len(files) else None))
    if crash.stack:
        log.debug(__name__, "%s", crash.stack)
    return run_files(files, streams, outputs, options, crash.file + 1)


def _settle(options: argparse.Namespace) -> None:
    """Correct the options by each other, and warn of those without effect. Raises UsageError for contradictions."""

    def is_given(option: str) -> bool:
        value = value_of(options, option)
        return value is not None and value is not False  # 0 is a value

    if options.capture_frame is not None and options.capture_frame.lower().endswith((".json", ".vgf")):
        # without a value in the reference runner, so that a file may follow it
        options.files.insert(0, options.capture_frame)
        options.capture_frame = "run"
    for option, other, help in _CONTRADICTIONS:
        if is_given(option) and is_given(other):
            raise UsageError(f"{option} and {other} contradict each other", help=help)
    if len(options.files) + len(options.scenario) > 1:
        for option in filter(is_given, _OF_ONE_SCENARIO):
            raise UsageError(f"{option} takes the files of one scenario", help="run the scenarios one by one")
    for option, needed in _NEEDED.items():
        if is_given(option) and not is_given(needed):
            write("warning", f"option {option} has no effect without {needed}")
    if options.repeat < 1:
        raise UsageError(f"--repeat is {options.repeat}, expected 1 or more")
    log_level_given = any(argument.partition("=")[0] == "--log-level" for argument in options.argv)
    if options.pipeline_caching and not options.quiet and not log_level_given:
        options.log_level = "info"  # what is said of the caches is what they were asked for


def _crashed(crash: Crash, file: str | None) -> DeviceError:
    from scenario_runner.run.crash import crash_error

    return crash_error(crash, file)


def list_devices(options: argparse.Namespace) -> None:
    """Print index, name, type, UUID and driver of every device; the one that a run takes by itself is marked "default".

    Raises NoDeviceError when there is none."""
    if supervisor.crash is not None:
        raise _crashed(supervisor.crash, None)
    with closing(Instance()) as instance:
        devices = instance.physical_devices
        if not devices:
            raise NoDeviceError("there are no Vulkan devices", help="'scenario-runner doctor' shows what is missing")
        default = None  # where none of them is usable; each line says why
        with suppress(NoDeviceError):
            default = choose(devices, None).index
        for device in devices:
            reason = device.unusable_because()
            note = f" - not usable: {reason}" if reason else " - default" if device.index == default else ""
            api = f"Vulkan {version_text(device.api_version)}"
            print(f"{device.index}: {device.name} ({device.type}, {api}, {device.driver}) uuid {device.uuid}{note}")
