"""``scenario-runner [run] FILE…``: run scenarios, one after the other, on one device."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from scenario_runner import log, progress
from scenario_runner.cli import supervisor
from scenario_runner.errors import DeviceError, ScenarioRunnerError, UsageError
from scenario_runner.visible import counted, one_line

if TYPE_CHECKING:
    import argparse

    from scenario_runner.cli.run_outputs import RunOutputs
    from scenario_runner.cli.timing_files import TimingFiles
    from scenario_runner.run.crash import Crash
    from scenario_runner.run.driver_start import InstanceStart
    from scenario_runner.run.dump_files import DumpRequest
    from scenario_runner.run.instrumentation_file import InstrumentationFile
    from scenario_runner.runner import Runner
    from scenario_runner.scenario import Scenario

# With one of these nothing is run.
_WITHOUT_DRIVER = frozenset({"-h", "--help", "-v", "--version", "--list-devices"})
# With one of these a capture tool comes before the driver.
_CAPTURING = ("--capture-frame", "--gfxr")
# With one of these the device is not opened as it is by default.
_CHOOSING = (
    "--device",
    "--ml-emulation",
    "--disable-extension",
    "--enable-robustness",
    "--shader-instrumentation",
    "--trace",
)
_MOST_LOOKED_AT = 8
# A wait for the device ends by itself after --timeout. What does not is ended from outside so much later.
_LEAST_MORE_S = 1.0
_MORE = 0.1


def main(argv: Sequence[str]) -> int:
    """Returns 0, or the exit code of the first scenario that failed.

    After a crash of the process before this one, it says so and goes on with what is left (see `supervisor`).
    """
    crash = supervisor.crash
    starting = _start_driver(argv) if crash is None else None
    if argv and argv[0].lower().endswith(".vgf"):
        if crash is not None:
            raise _crashed(crash, argv[0])
        from scenario_runner.cli.model import main as run_model

        return run_model(argv, starting)
    from scenario_runner.cli.run_options import parse

    options = parse(argv)
    if options.version:
        from scenario_runner.cli.version import show_version

        return show_version()
    if options.list_devices:
        if crash is not None:
            raise _crashed(crash, None)
        from scenario_runner.cli.devices import list_devices

        return list_devices()
    files = [*options.scenario, *options.files]
    if not files:
        raise UsageError("no scenario file was given", help="scenario-runner test.json, or --help for all options")
    if options.repeat < 1:
        raise UsageError(f"--repeat is {options.repeat}, expected 1 or more")
    from scenario_runner.cli.messages import set_up_logging, show_error

    set_up_logging(options.log_level)
    if options.isolate and options.timeout is not None:
        progress.limit(options.timeout + max(_LEAST_MORE_S, _MORE * options.timeout))
    from scenario_runner.cli.run_outputs import RunOutputs, read_streams

    streams = read_streams(files)
    outputs = RunOutputs(
        files,
        streams,
        output=options.output,
        capture_dir=options.capture_dir,
        folder_each=options.folder_each,
        frame_captures=getattr(options, "capture_frame", None) is not None,
    )
    if crash is None:
        outputs.refuse_collisions()
        progress.files(len(files))
        _announce(options)
        return _run(files, streams, outputs, options, starting)
    show_error(_crashed(crash, files[crash.file] if crash.file < len(files) else None))
    if crash.stack:
        log.debug(__name__, "%s", crash.stack)
    return _run(files, streams, outputs, options, None, crash.file + 1)


def _crashed(crash: Crash, file: str | None) -> DeviceError:
    from scenario_runner.run.crash import crash_error

    return crash_error(crash, file)


def _announce(options: argparse.Namespace) -> None:
    """What is to be said, and waited for, before the first scenario."""
    from scenario_runner.cli.messages import write

    if options.dry_run and options.repeat > 1:
        write("warning", "a dry run runs nothing, so --repeat is 1")
    if options.wait_for_key_stroke_before_run:
        _wait_for_enter("press Enter to run")


def _run(
    files: Sequence[str],
    streams: Mapping[str, Scenario | ScenarioRunnerError],
    outputs: RunOutputs,
    options: argparse.Namespace,
    starting: InstanceStart | None,
    first: int = 0,
) -> int:
    """Run the files from number ``first`` on; the exit code of the first that failed, of all files."""
    from scenario_runner.cli.messages import show_error, write

    repeat = 1 if options.dry_run else options.repeat
    code = progress.number(progress.CODE)
    measured = _instrumentation_file(options.shader_instrumentation)
    timing = _timing_files(options, files)
    rare: Mapping[str, Any] = {}
    dump: DumpRequest | None = None
    if options.rare:
        from scenario_runner.cli.dump_options import dump_request
        from scenario_runner.cli.rare_options import check_tool_files, runner_arguments

        dump = dump_request(options, len(files))
        rare = runner_arguments(options, len(files))
    runner = _runner(options, measured, rare, starting)
    has_captures = options.capture_dir is None or options.dry_run
    try:
        for file in files[first:]:
            started = time.perf_counter()
            captured = len(runner.frame_captures)
            try:
                scenario = streams.get(file, file)
                if isinstance(scenario, ScenarioRunnerError):
                    raise scenario
                if options.clean and not options.dry_run:
                    outputs.clean(file)
                if runner.renderdoc is not None:
                    runner.renderdoc.folder = outputs.frame_capture_dir(file)
                plan = runner.run_to_files(
                    scenario,
                    output_dir=outputs.output_dir(file),
                    capture_dir=outputs.capture_dir(file),
                    repeat=repeat,
                    keep_state=options.repeat_keep_state,
                    dry_run=options.dry_run,
                    timings=timing.timings if timing else None,
                    dump=dump,
                )
                if timing is not None:
                    timing.write()
                has_captures = has_captures or any(frame.captures for frame in plan.frames)
            except ScenarioRunnerError as error:
                show_error(error.of_scenario(file))
                note = None if options.dry_run else outputs.note_of_failure(file)
                if note is not None:
                    write("note", note, "--clean removes the outputs of earlier runs before a run")
                code = code or error.exit_code
                progress.ended(code)
                if isinstance(error, DeviceError) and len(files) > 1:
                    progress.doing("closing the device")
                    runner.close()  # the next scenario gets a device of its own
                    runner = _runner(options, measured, rare)
                continue
            progress.ended(0)
            for path in runner.frame_captures[captured:]:
                print(f"{one_line(file)}: captured {one_line(path)}", flush=True)
            if not options.quiet:
                _summarise(file, plan.dispatch_count, len(plan.outputs), repeat, options.dry_run, started, runner)
    finally:
        if timing is not None:
            timing.discard()
        progress.doing("closing the device")
        runner.close()
        if options.rare:
            wrong = check_tool_files(options)
            code = code or wrong
        if options.pause_on_exit:
            _wait_for_enter("press Enter to exit")
    if not has_captures and not code:
        write("warning", "nothing was captured: no mark_boundary names a resource")
    return code


def _start_driver(argv: Sequence[str]) -> InstanceStart | None:
    """Start the driver before anything else is imported: it takes as long as the rest, and mostly beside it."""
    if not argv or not _WITHOUT_DRIVER.isdisjoint(argv) or any(each.startswith(_CAPTURING) for each in argv):
        return None
    if any(argument.startswith("--emulation-layer-profiling") for argument in argv):
        return None  # the layers read the environment, which is changed for them, when they are loaded
    from scenario_runner.run.driver_start import InstanceStart

    files: Sequence[str] = ()
    if not any(argument.startswith(_CHOOSING) for argument in argv):
        files = [argument for argument in argv if argument[:1] != "-"][:_MOST_LOOKED_AT]
    validation = "--validation" in argv or "--validation-report" in argv
    labels = "--debug-labels" in argv or "--enable-gpu-debug-markers" in argv
    return InstanceStart(validation="sync" if "--validation-sync" in argv else validation, labels=labels, files=files)


def _instrumentation_file(path: str | None) -> InstrumentationFile | None:
    """One for all scenarios, also where a device is lost or a process crashes in between."""
    if path is None:
        return None
    from scenario_runner.run.instrumentation_file import InstrumentationFile

    return InstrumentationFile(path, keep=progress.number(progress.MEASURED))


def _timing_files(options: argparse.Namespace, files: Sequence[str]) -> TimingFiles | None:
    if options.profiling_dump_path is None and options.perf_counters_dump_path is None and options.trace is None:
        return None
    from scenario_runner.cli.timing_files import TimingFiles

    return TimingFiles(options, files)


def _runner(
    options: argparse.Namespace,
    measured: InstrumentationFile | None,
    rare: Mapping[str, Any],
    starting: InstanceStart | None = None,
) -> Runner:
    from scenario_runner.cli.arguments import compiler_arguments, device_arguments, feature_arguments
    from scenario_runner.runner import Runner

    return Runner(
        shader_instrumentation=measured,
        sandbox=options.sandbox,
        strict=options.strict,
        starting=starting,
        **device_arguments(options),
        **feature_arguments(options),
        **compiler_arguments(options),
        **rare,
    )


def _summarise(
    file: str, dispatches: int, outputs: int, repeat: int, dry_run: bool, started: float, runner: Runner
) -> None:
    milliseconds = (time.perf_counter() - started) * 1e3
    done = "checked (dry run)" if dry_run else "ok"
    times = f" x {repeat}" if repeat > 1 else ""
    ran = counted(dispatches, "dispatch") + times
    wrote = counted(0 if dry_run else outputs, "output")
    took = f"{milliseconds:.1f} ms on {runner.physical_device.name}"
    print(f"{one_line(file)}: {done}: {ran}, {wrote}, {took}", flush=True)


def _wait_for_enter(prompt: str) -> None:
    try:
        input(prompt)
    except EOFError:
        pass  # standard input is closed
