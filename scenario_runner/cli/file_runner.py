"""Run the files of a command line, one after the other, on the device of this process."""

import argparse
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final, NamedTuple

from scenario_runner.cli.arguments import shared_arguments, value_of
from scenario_runner.cli.console import show_error, write
from scenario_runner.cli.options import GRAPH_REPORTS, TIMING_FILES
from scenario_runner.cli.run_files import RunFile
from scenario_runner.errors import DeviceError, NoDeviceError, ScenarioRunnerError
from scenario_runner.errors.diagnostic import Diagnostic
from scenario_runner.errors.text import counted, one_line
from scenario_runner.files.input import is_model
from scenario_runner.plan.plan import Plan
from scenario_runner.processes import progress
from scenario_runner.runner import Runner

# Options that take the files of one scenario, and of other tools, which most runs do not need.
OF_ONE_SCENARIO: Final = (*GRAPH_REPORTS, *TIMING_FILES, "--profiling", "--dump-dir", "--dump-all")
_OF_OTHER_TOOLS: Final = ("--shader-instrumentation", "--pipeline-caching", "--dump-after", "--capture-frame", "--gfxr")


def has_tools(options: argparse.Namespace) -> bool:
    """Return whether the options ask for one of the tools of `run_tools`."""
    return any(value_of(options, option) is not None for option in (*OF_ONE_SCENARIO, *_OF_OTHER_TOOLS))


def files_of_model(options: argparse.Namespace) -> list[str]:
    """List the files that options name for a model."""
    return [file for _, file in (*options.input, *options.shader, *options.push_constants)]


class FileEnd(NamedTuple):
    """The end of one file, with the exit code and the ``problems`` of an error. With ``is_over`` no other file can run.
    After a crash nobody has shown the problems yet, and there are the native and the Python stack."""

    code: int = 0
    problems: tuple[Diagnostic, ...] = ()
    has_captures: bool = False
    is_over: bool = False
    is_crash: bool = False
    native_stack: str = ""
    stack: str = ""


class FileRunner(AbstractContextManager["FileRunner"]):
    """Runs files in this process, on one device, which is opened when it is needed."""

    def __init__(self, options: argparse.Namespace, paths: Sequence[str]) -> None:
        """Raises ScenarioRunnerError for the options of tools."""
        self._options = options
        self._runner_tools: Mapping[str, Any] = {}
        self._run_tools: Mapping[str, Any] = {}
        if has_tools(options):
            from scenario_runner.cli.run_tools import tool_arguments

            self._runner_tools, self._run_tools = tool_arguments(options, paths[0])
        self._is_alone = len(paths) == 1 and not options.watch
        starting, options.starting = options.starting, None  # for one Runner only
        self._runner = Runner(
            starting=starting,
            strict=options.strict,
            sandbox_files=[*filter(is_model, paths), *files_of_model(options)],
            **shared_arguments(options),
            **self._runner_tools,
        )

    def __exit__(self, *_: object) -> None:
        self.close_device()

    def close_device(self) -> Iterable[FileEnd]:
        """Close the device; the next file opens it again."""
        progress.doing("closing the device")
        self._runner.close()
        return ()

    def run(self, files: Iterable[RunFile]) -> Iterator[FileEnd]:
        """Run files, and say on standard output and error how each has ended."""
        return map(self.run_file, files)

    def run_file(self, file: RunFile) -> FileEnd:
        """Run one file."""
        options, runner = self._options, self._runner
        started = time.perf_counter()
        captured = len(runner.frame_captures)
        progress.doing("reading it")
        try:
            plan = _run_file(file, runner, options, self._run_tools)
        except ScenarioRunnerError as error:
            if options.watch and isinstance(error, NoDeviceError):
                return FileEnd(error.exit_code, tuple(error.problems), is_over=True)
            show_error(error.at(path=file.path) if is_model(file.path) else error.of_scenario(file.path))
            note = None if options.dry_run else file.note_of_failure()
            if note is not None:
                write("note", note, "--clean removes the outputs of earlier runs before a run")
            if isinstance(error, DeviceError) and not isinstance(error, NoDeviceError) and not self._is_alone:
                self.close_device()  # the next scenario gets a device of its own
            problems = tuple(problem._replace(path=problem.path or file.path) for problem in error.problems)
            return FileEnd(error.exit_code, problems, is_over=isinstance(error, NoDeviceError))
        for path in runner.frame_captures[captured:]:
            print(f"{one_line(file.path)}: captured {one_line(path)}", flush=True)
        if not options.quiet:
            took = f"{(time.perf_counter() - started) * 1e3:.1f} ms on {runner.physical_device.name}"
            print(f"{_summary(file.path, plan, options)}, {took}", flush=True)
        if options.profiling:
            from scenario_runner.cli.run_tools import show_times

            show_times(self._run_tools["timings"], self._runner_tools["graph_reports"])
        return FileEnd(has_captures=any(frame.captures for frame in plan.frames))


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
    """Return the line about a file that has run, without the time."""
    ran = counted(plan.dispatch_count, "dispatch")
    if options.dry_run:
        return f"{one_line(path)}: checked (dry run): {ran}, 0 outputs"
    ran += f" x {options.repeat}" if options.repeat > 1 else ""
    wrote = counted(len(plan.outputs), "output")
    if is_model(path):
        wrote = one_line(", ".join(os.path.basename(output.destination or output.uid) for output in plan.outputs))
    return f"{one_line(path)}: ok: {ran}, {wrote}"
