"""Running files one after the other on one device: scenarios, or a model with the scenario that it runs in."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from scenario_runner import progress
from scenario_runner.cli.arguments import shared_arguments, value_of
from scenario_runner.cli.messages import show_error, write
from scenario_runner.cli.options import GRAPH_REPORTS, TIMING_FILES
from scenario_runner.cli.run_outputs import RunOutputs, Streams
from scenario_runner.errors import DeviceError, ScenarioRunnerError
from scenario_runner.plan.plan import Plan
from scenario_runner.runner import Runner, is_model
from scenario_runner.text import counted, one_line

if TYPE_CHECKING:
    from scenario_runner.cli.run_tools import RunTools
    from scenario_runner.scenario import Scenario


_TOOLS = (
    *GRAPH_REPORTS,
    *TIMING_FILES,
    "--shader-instrumentation",
    "--pipeline-caching",
    "--dump-after",
    "--dump-dir",
    "--dump-all",
    "--capture-frame",
    "--gfxr",
)


def run_files(
    files: Sequence[str], streams: Streams, outputs: RunOutputs, options: argparse.Namespace, first: int = 0
) -> int:
    """Run the files from number ``first`` on; returns the exit code of the first that failed, of all files."""
    if options.isolate and options.timeout is not None:
        progress.limit(options.timeout)
    code = progress.number(progress.CODE)
    tools = _tools(options, files[0])
    files_of_model = [pair.partition("=")[2] for pair in (*options.input, *options.shader, *options.push_constants)]
    runner = Runner(
        starting=options.starting,
        strict=options.strict,
        sandbox_files=[*filter(is_model, files), *files_of_model],
        **shared_arguments(options),
        **(tools.arguments if tools else {}),
    )
    has_captures = options.capture_dir is None or options.dry_run
    try:
        for file in files[first:]:
            started = time.perf_counter()
            captured = len(runner.frame_captures)
            try:
                plan = _run_file(file, streams.get(file, file), runner, outputs, options, tools)
            except ScenarioRunnerError as error:
                show_error(error.at(path=file) if is_model(file) else error.of_scenario(file))
                note = None if options.dry_run else outputs.note_of_failure(file)
                if note is not None:
                    write("note", note, "--clean removes the outputs of earlier runs before a run")
                code = code or error.exit_code
                progress.ended(code)
                if isinstance(error, DeviceError) and len(files) > 1:
                    progress.doing("closing the device")
                    runner.close()  # the next scenario gets a device of its own
                continue
            has_captures = has_captures or any(frame.captures for frame in plan.frames)
            progress.ended(0)
            for path in runner.frame_captures[captured:]:
                print(f"{one_line(file)}: captured {one_line(path)}", flush=True)
            if not options.quiet:
                _summarise(file, plan, options, started, runner)
    finally:
        progress.doing("closing the device")
        runner.close()
        if options.gfxr is not None:
            capture_code = _check_capture(options.gfxr)  # removes a capture that is not whole, also of a failed run
            code = code or capture_code
        if options.pause_on_exit:
            wait_for_enter("press Enter to exit")
    if not has_captures and not code:
        write("warning", "nothing was captured: no mark_boundary names a resource")
    return code


def _check_capture(path: str) -> int:
    """Check the file of gfxreconstruct, after the last instance. Returns the exit code of what is wrong with it."""
    from scenario_runner.run.capture_tools import check_gfxreconstruct

    try:
        check_gfxreconstruct(path)
    except ScenarioRunnerError as error:
        show_error(error)
        return error.exit_code
    return 0


def _run_file(
    file: str,
    scenario: str | Scenario | ScenarioRunnerError,
    runner: Runner,
    outputs: RunOutputs,
    options: argparse.Namespace,
    tools: RunTools | None,
) -> Plan:
    if isinstance(scenario, ScenarioRunnerError):
        raise scenario
    if options.clean and not options.dry_run:
        outputs.clean(file)
    if runner.renderdoc is not None:
        runner.renderdoc.folder = outputs.frame_capture_dir(file)
    timing = None if tools is None else tools.timing
    plan = runner.run_to_files(
        scenario,
        output_dir=outputs.output_dir(file),
        capture_dir=outputs.capture_dir(file),
        repeat=1 if options.dry_run else options.repeat,
        keep_state=options.repeat_keep_state,
        dry_run=options.dry_run,
        timings=timing,
        dump=None if tools is None else tools.dump,
    )
    if timing is not None:
        timing.write()
    return plan


def _tools(options: argparse.Namespace, scenario: str) -> RunTools | None:
    """The tools that the options ask for: most runs need none of them."""
    if all(value_of(options, option) in (None, False) for option in _TOOLS):
        return None
    from scenario_runner.cli.run_tools import RunTools

    return RunTools(options, scenario)


def _summarise(file: str, plan: Plan, options: argparse.Namespace, started: float, runner: Runner) -> None:
    """Print the line of a file that was run."""
    milliseconds = (time.perf_counter() - started) * 1e3
    ran = counted(plan.dispatch_count, "dispatch")
    done, wrote = "ok", counted(len(plan.outputs), "output")
    if options.dry_run:
        done, wrote = "checked (dry run)", counted(0, "output")
    elif is_model(file):
        wrote = one_line(", ".join(os.path.basename(output.destination or output.uid) for output in plan.outputs))
    if options.repeat > 1 and not options.dry_run:
        ran += f" x {options.repeat}"
    took = f"{milliseconds:.1f} ms on {runner.physical_device.name}"
    print(f"{one_line(file)}: {done}: {ran}, {wrote}, {took}", flush=True)


def wait_for_enter(prompt: str) -> None:
    """Wait for Enter, or for the end of standard input."""
    try:
        input(prompt)
    except EOFError:
        pass  # standard input is closed
