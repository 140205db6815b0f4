"""``scenario-runner [run] FILE…``: run scenarios, one after the other, on one device."""

import argparse
import os
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any, Final, NoReturn

from scenario_runner.cli import supervisor
from scenario_runner.cli.arguments import shared_arguments, value_of
from scenario_runner.cli.console import set_up_logging, show_error, write
from scenario_runner.cli.options import GRAPH_REPORTS, TIMING_FILES
from scenario_runner.cli.run_files import RunFile, refuse_collisions, run_files
from scenario_runner.errors import DeviceError, NoDeviceError, ScenarioRunnerError, UnsupportedError, UsageError, log
from scenario_runner.errors.text import counted, one_line
from scenario_runner.files.input import is_model
from scenario_runner.plan.plan import Plan
from scenario_runner.processes import progress
from scenario_runner.runner import Runner
from scenario_runner.vulkan.device import Instance
from scenario_runner.vulkan.physical_device import choose
from scenario_runner.vulkan.vulkan_loader import version_text

if TYPE_CHECKING:
    from scenario_runner.processes.crash import Crash

# Greater than the number of files.
_ENDLESS: Final = 0x7FFFFFFF
# Options that take the files of one scenario, and of other tools, which most runs do not need.
_OF_ONE_SCENARIO: Final = (*GRAPH_REPORTS, *TIMING_FILES, "--profiling", "--dump-dir", "--dump-all")
_OF_OTHER_TOOLS: Final = ("--shader-instrumentation", "--pipeline-caching", "--dump-after", "--capture-frame", "--gfxr")
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
    ("--profiling", "--dry-run", "a dry run runs nothing to measure"),
    ("--capture-frame", "--gfxr", "capture with one tool at a time"),
    ("--capture-frame", "--watch", "capture with a single run"),
    ("--gfxr", "--watch", "capture with a single run"),
    ("--dump-after", "--dump-all", "--dump-all writes all that --dump-after can ask for"),
    ("--clear-pipeline-cache", "--fail-on-pipeline-cache-miss", "fill the cache by --pipeline-caching alone first"),
    *(
        (option, other, f"{other} takes frames apart, which would show: run the scenario twice")
        for option in ("--capture-frame", "--gfxr", "--shader-instrumentation")
        for other in ("--dump-dir", "--dump-all", "--printf", "--printf-size")
    ),
)


def main(options: argparse.Namespace) -> int:
    """Run scenarios, or a model. Returns 0, or the exit code of the first scenario that failed.

    After a crash of the process before this one, it says so and goes on with what is left (see `supervisor`).
    """
    _settle(options)
    paths = [*options.scenario, *options.files]
    if not paths:
        raise UsageError("no scenario file was given", help="scenario-runner test.json, or --help for all options")
    # what is said of the caches is what they were asked for
    default_level = "info" if options.pipeline_caching and not options.quiet else "warning"
    set_up_logging(options.log_level or default_level, lines=True)
    if options.watch:
        _watch(paths, options)
    files = _files(paths, options)
    crash = supervisor.crash
    if crash is not None:
        _show_crash(crash, paths, options)
        return _run(files, options, crash.file + 1)
    refuse_collisions(files, options)
    progress.numbers[progress.TOTAL] = len(files)
    if options.dry_run and options.repeat > 1:
        write("warning", "a dry run runs nothing, so --repeat is 1")
    if options.wait_for_key_stroke_before_run:
        _wait_for_enter("press Enter to run")
    return _run(files, options)


def _files(paths: Sequence[str], options: argparse.Namespace) -> list[RunFile]:
    """The scenarios, or the model. Raises UsageError, and for a model the error of reading it."""
    if any(map(is_model, paths)):
        if options.set:
            raise UsageError("--set is for scenarios, and a model was given")
        from scenario_runner.cli.model import read_model

        return [read_model(paths, options)]
    if options.input or options.shader or options.push_constants:
        message = "--input, --shader and --push-constants are for models, and no model was given"
        raise UsageError(message, help="scenario-runner MODEL.vgf --input NAME=FILE")
    return run_files(paths, options)


def _show_crash(crash: "Crash", paths: Sequence[str], options: argparse.Namespace) -> None:
    error = crash.error(paths[crash.file] if crash.file < len(paths) else None)
    _annotate(error, options)
    show_error(error)
    if crash.native_stack:
        write("stack", crash.native_stack)
    if crash.stack:
        log.debug(__name__, "%s", crash.stack)


def _watch(paths: Sequence[str], options: argparse.Namespace) -> NoReturn:
    """Run, and again whenever a file changes, with one Runner. After a crash the next process waits for a change.

    Ends with KeyboardInterrupt. Raises UsageError and MissingPackageError."""
    from scenario_runner.cli.watch import Files, check_watchable, watch  # the imports of suites
    from scenario_runner.suite.hashes import sources_of

    check_watchable(paths)
    run_files([] if any(map(is_model, paths)) else paths, options)  # raises for options
    progress.numbers[progress.TOTAL] = _ENDLESS
    crash = supervisor.crash
    warm = None if _has_tools(options) else _runner(paths, options, {})

    def run() -> None:
        nonlocal crash
        first = 0
        if crash is not None:
            _show_crash(crash, paths, options)
            first, crash = crash.file + 1, None
        else:
            progress.numbers[progress.ENDED] = progress.numbers[progress.CODE] = 0
        files = _files(paths, options)
        refuse_collisions(files, options)
        _run(files, options, first, warm)

    def reads() -> Files:
        parameters = dict(options.set)
        files = dict(file for path in paths for file in sources_of(path, _files_of_model(options), parameters))
        if any(map(is_model, paths)):
            return files
        written = {os.path.realpath(path) for file in run_files(paths, options) for path in file.declared().writes}
        return {path: hash for path, hash in files.items() if os.path.realpath(path) not in written}

    watch(run, reads)


def _has_tools(options: argparse.Namespace) -> bool:
    return any(value_of(options, option) is not None for option in (*_OF_ONE_SCENARIO, *_OF_OTHER_TOOLS))


def _files_of_model(options: argparse.Namespace) -> list[str]:
    return [file for _, file in (*options.input, *options.shader, *options.push_constants)]


def _runner(paths: Sequence[str], options: argparse.Namespace, tools: Mapping[str, Any]) -> Runner:
    starting, options.starting = options.starting, None  # for one Runner only
    arguments = shared_arguments(options)
    if options.watch and supervisor.is_supervised:
        arguments["timeout_s"] = None  # work that is given up would go on: the supervisor ends the process
    return Runner(
        starting=starting,
        strict=options.strict,
        sandbox_files=[*filter(is_model, paths), *_files_of_model(options)],
        **arguments,
        **tools,
    )


def _settle(options: argparse.Namespace) -> None:
    """Correct the options by each other, and warn of those without effect. Raises UsageError for contradictions."""

    def is_given(option: str) -> bool:
        return value_of(options, option) is not None

    captured = options.capture_frame or ""
    if captured.lower().endswith(".json") or is_model(captured):
        # without a value in the reference runner, so that a file may follow it
        options.files.insert(0, captured)
        options.capture_frame = "run"
    for option, other, help in _CONTRADICTIONS:
        if is_given(option) and is_given(other):
            raise UsageError(f"{option} and {other} contradict each other", help=help)
    if options.core_dumps and sys.platform != "linux":
        raise UnsupportedError("--core-dumps needs Linux")
    if len(options.files) + len(options.scenario) > 1:
        for option in filter(is_given, _OF_ONE_SCENARIO):
            raise UsageError(f"{option} takes the files of one scenario", help="run the scenarios one by one")
    for option, needed in _NEEDED.items():
        if is_given(option) and not is_given(needed):
            write("warning", f"option {option} has no effect without {needed}")


def _run(files: Sequence[RunFile], options: argparse.Namespace, first: int = 0, warm: Runner | None = None) -> int:
    """Run the files from number ``first`` on, on the device of a ``warm`` Runner or a new one; returns the exit code of
    the first that failed, of all files."""
    is_isolated = options.isolate or (options.isolate is None and (options.printf or options.printf_size))
    if (is_isolated or options.watch) and options.timeout is not None:
        progress.doing("reading it")  # the limit counts from here
        progress.limit(options.timeout)
    code = progress.numbers[progress.CODE]
    runner_tools: Mapping[str, Any] = {}
    run_tools: Mapping[str, Any] = {}
    if _has_tools(options):
        from scenario_runner.cli.run_tools import tool_arguments

        runner_tools, run_tools = tool_arguments(options, files[0].path)
    runner = warm or _runner([file.path for file in files], options, runner_tools)
    has_captures = options.capture_dir is None or options.dry_run
    try:
        for file in files[first:]:
            started = time.perf_counter()
            captured = len(runner.frame_captures)
            try:
                plan = _run_file(file, runner, options, run_tools)
            except ScenarioRunnerError as error:
                if options.watch and isinstance(error, NoDeviceError):
                    raise
                _annotate(error, options, file.path)
                show_error(error.at(path=file.path) if is_model(file.path) else error.of_scenario(file.path))
                note = None if options.dry_run else file.note_of_failure()
                if note is not None:
                    write("note", note, "--clean removes the outputs of earlier runs before a run")
                code = code or error.exit_code
                progress.ended(code)
                if isinstance(error, NoDeviceError):  # there is none for the other files either
                    break
                if isinstance(error, DeviceError) and (len(files) > 1 or warm):
                    progress.doing("closing the device")
                    runner.close()  # the next scenario gets a device of its own
                continue
            has_captures = has_captures or any(frame.captures for frame in plan.frames)
            progress.ended(0)
            for path in runner.frame_captures[captured:]:
                print(f"{one_line(file.path)}: captured {one_line(path)}", flush=True)
            if not options.quiet:
                took = f"{(time.perf_counter() - started) * 1e3:.1f} ms on {runner.physical_device.name}"
                print(f"{_summary(file.path, plan, options)}, {took}", flush=True)
            if options.profiling:
                from scenario_runner.cli.run_tools import show_times

                show_times(run_tools["timings"], runner_tools["graph_reports"])
    finally:
        if warm is None:
            progress.doing("closing the device")
            runner.close()
        if options.gfxr is not None:
            capture_code = _check_capture(options.gfxr)  # removes a capture that is not whole, also of a failed run
            code = code or capture_code
        if options.pause_on_exit:
            _wait_for_enter("press Enter to exit")
    if not has_captures and not code:
        write("warning", "nothing was captured: no mark_boundary names a resource")
    if options.annotations is not None:
        end = f"failed with exit code {code}" if code else "ok"
        options.annotations.result = f"{counted(len(files), 'scenario')}: {end}"
    return code


def _annotate(error: ScenarioRunnerError, options: argparse.Namespace, path: str | None = None) -> None:
    if options.annotations is not None:
        for problem in error.problems:
            options.annotations.add(problem, path=path)


def _check_capture(path: str) -> int:
    """Check the file of gfxreconstruct, after the last instance. Returns the exit code of what is wrong with it."""
    from scenario_runner.run.capture_tools import check_gfxreconstruct

    try:
        check_gfxreconstruct(path)
    except ScenarioRunnerError as error:
        show_error(error)
        return error.exit_code
    return 0


def _run_file(file: RunFile, runner: Runner, options: argparse.Namespace, tools: Mapping[str, Any]) -> Plan:
    """Run one file; ``tools`` are arguments for the tools of the options."""
    if isinstance(file.scenario, ScenarioRunnerError):
        raise file.scenario
    if options.clean and not options.dry_run:
        file.clean()
    if runner.renderdoc is not None:
        runner.renderdoc.folder = file.frame_capture_dir
    plan = runner.run_to_files(
        file.scenario,
        output_dir=file.output_dir,
        capture_dir=file.capture_dir,
        repeat=1 if options.dry_run else options.repeat,
        keep_state=options.repeat_keep_state,
        dry_run=options.dry_run,
        **tools,
    )
    if tools.get("timings") is not None:
        tools["timings"].write()
    return plan


def _summary(path: str, plan: Plan, options: argparse.Namespace) -> str:
    """The line of a file that was run, but for the time."""
    ran = counted(plan.dispatch_count, "dispatch")
    if options.dry_run:
        return f"{one_line(path)}: checked (dry run): {ran}, 0 outputs"
    ran += f" x {options.repeat}" if options.repeat > 1 else ""
    wrote = counted(len(plan.outputs), "output")
    if is_model(path):
        wrote = one_line(", ".join(os.path.basename(output.destination or output.uid) for output in plan.outputs))
    return f"{one_line(path)}: ok: {ran}, {wrote}"


def _wait_for_enter(prompt: str) -> None:
    with suppress(EOFError):  # standard input is closed
        input(prompt)


def list_devices(options: argparse.Namespace) -> None:
    """Print index, name, type, UUID and driver of every device; the one that a run takes by itself is marked "default".

    Raises NoDeviceError when there is none."""
    if supervisor.crash is not None:
        raise supervisor.crash.error(None)
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
