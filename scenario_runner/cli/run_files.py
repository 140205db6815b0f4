"""Running files one after the other on one device: scenarios, or a model with the scenario that it runs in."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from scenario_runner import progress
from scenario_runner.cli.arguments import shared_arguments
from scenario_runner.cli.messages import show_error, write
from scenario_runner.cli.options import GRAPH_REPORTS, TIMING_FILES
from scenario_runner.cli.run_outputs import RunOutputs
from scenario_runner.errors import DeviceError, ScenarioRunnerError
from scenario_runner.plan.plan import Plan
from scenario_runner.runner import Runner
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


def announce(options: argparse.Namespace) -> None:
    """Say and wait for what comes before the first scenario."""
    if options.dry_run and options.repeat > 1:
        write("warning", "a dry run runs nothing, so --repeat is 1")
    if options.wait_for_key_stroke_before_run:
        _wait_for_enter("press Enter to run")


def run_files(
    files: Sequence[str],
    streams: Mapping[str, Scenario | ScenarioRunnerError],
    outputs: RunOutputs,
    options: argparse.Namespace,
    first: int = 0,
    *,
    is_model: bool = False,
    sandbox_files: Sequence[str] = (),
) -> int:
    """Run the files from number ``first`` on; the exit code of the first that failed, of all files.

    ``streams`` has the scenarios that are not read from their file; that of a model is no place that users know.
    ``sandbox_files`` are in the sandbox, too.
    """
    if options.isolate and options.timeout is not None:
        progress.limit(options.timeout)
    code = progress.number(progress.CODE)
    tools = _tools(options, files[0])
    arguments = shared_arguments(options) | {"sandbox_files": sandbox_files, "strict": options.strict}
    if tools is not None:
        arguments |= tools.arguments
    runner = Runner(starting=options.starting, **arguments)
    has_captures = options.capture_dir is None or options.dry_run
    try:
        for file in files[first:]:
            started = time.perf_counter()
            captured = len(runner.frame_captures)
            try:
                plan = _run_file(file, streams.get(file, file), runner, outputs, options, tools)
            except ScenarioRunnerError as error:
                _show_failure(error.at(path=file) if is_model else error.of_scenario(file), file, outputs, options)
                code = code or error.exit_code
                progress.ended(code)
                if isinstance(error, DeviceError) and len(files) > 1:
                    progress.doing("closing the device")
                    runner.close()  # the next scenario gets a device of its own
                    runner = Runner(**arguments)
                continue
            has_captures = has_captures or any(frame.captures for frame in plan.frames)
            progress.ended(0)
            for path in runner.frame_captures[captured:]:
                print(f"{one_line(file)}: captured {one_line(path)}", flush=True)
            if not options.quiet:
                _summarise(file, plan, options, started, runner, name_outputs=is_model)
    finally:
        if tools is not None and tools.timing is not None:
            tools.timing.discard()
        progress.doing("closing the device")
        runner.close()
        if tools is not None:
            capture_code = tools.check_capture()
            code = code or capture_code
        if options.pause_on_exit:
            _wait_for_enter("press Enter to exit")
    if not has_captures and not code:
        write("warning", "nothing was captured: no mark_boundary names a resource")
    return code


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
        timings=timing.timings if timing else None,
        dump=None if tools is None else tools.dump,
    )
    if timing is not None:
        timing.write()
    return plan


def _show_failure(error: ScenarioRunnerError, file: str, outputs: RunOutputs, options: argparse.Namespace) -> None:
    """Print an error, and which outputs are those of an earlier run."""
    show_error(error)
    note = None if options.dry_run else outputs.note_of_failure(file)
    if note is not None:
        write("note", note, "--clean removes the outputs of earlier runs before a run")


def _tools(options: argparse.Namespace, scenario: str) -> RunTools | None:
    """The tools that the options ask for: most runs need none of them."""
    if all(getattr(options, name[2:].replace("-", "_")) in (None, False) for name in _TOOLS):
        return None
    from scenario_runner.cli.run_tools import RunTools

    return RunTools(options, scenario)


def _summarise(
    file: str, plan: Plan, options: argparse.Namespace, started: float, runner: Runner, *, name_outputs: bool
) -> None:
    """Print the line of a file that was run."""
    milliseconds = (time.perf_counter() - started) * 1e3
    ran = counted(plan.dispatch_count, "dispatch")
    done, wrote = "ok", counted(len(plan.outputs), "output")
    if options.dry_run:
        done, wrote = "checked (dry run)", counted(0, "output")
    elif name_outputs:
        wrote = one_line(", ".join(os.path.basename(output.destination or output.uid) for output in plan.outputs))
    if options.repeat > 1 and not options.dry_run:
        ran += f" x {options.repeat}"
    took = f"{milliseconds:.1f} ms on {runner.physical_device.name}"
    print(f"{one_line(file)}: {done}: {ran}, {wrote}, {took}", flush=True)


def _wait_for_enter(prompt: str) -> None:
    try:
        input(prompt)
    except EOFError:
        pass  # standard input is closed
