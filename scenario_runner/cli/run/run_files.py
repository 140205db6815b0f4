"""Files to run: each scenario with output folders, and the runner for files in this process."""

from __future__ import annotations

import argparse
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from scenario_runner.cli.arguments import shared_arguments, value_of
from scenario_runner.cli.console import live, show_error, write
from scenario_runner.cli.options import GRAPH_REPORTS, TIMING_FILES
from scenario_runner.errors import DeviceError, NoDeviceError, ScenarioRunnerError, UsageError, ValidationLayerError
from scenario_runner.errors.diagnostic import Diagnostic
from scenario_runner.errors.text import Json, counted, first_of, one_line
from scenario_runner.files.input import MAX_SCENARIO_BYTES, ParameterizedFile, is_model, is_stream, read_file
from scenario_runner.files.sandbox import around
from scenario_runner.plan.plan import Plan
from scenario_runner.processes import progress, signals
from scenario_runner.runner import Runner

if TYPE_CHECKING:
    from scenario_runner.run.named_files import NamedFiles
    from scenario_runner.scenario import Scenario


class RunFile(NamedTuple):
    """A file to run, with the folders for outputs and captures.

    ``scenario`` is a path. For pipes and models, ``scenario`` is a `Scenario`, or the error from reading the file.
    """

    path: str
    scenario: str | ParameterizedFile | Scenario | ScenarioRunnerError
    output_dir: str | None = None
    capture_dir: str | None = None

    @property
    def frame_capture_dir(self) -> str:
        """The folder for captures of --capture-frame."""
        return self.capture_dir or self.output_dir or "."

    def clean(self) -> None:
        """Remove outputs from earlier runs. Raises FileError."""
        with around(self.path, self.output_dir):
            self.named().remove()

    def leftover_note(self) -> str | None:
        """Return a note about outputs from earlier runs, None without such outputs."""
        with around(self.path, self.output_dir):
            left = self.named().on_disk()
        return f"from an earlier run (--clean removes such outputs): {first_of(left)}" if left else None

    def named(self) -> NamedFiles:
        """Find the files named in the scenario. An invalid scenario may yield fewer: the run reports errors."""
        from scenario_runner.run.named_files import named_files

        text, folder = "", os.path.dirname(os.path.abspath(self.path))
        if isinstance(self.scenario, str | ParameterizedFile):
            with suppress(OSError, ValueError):
                text = read_file(self.path, MAX_SCENARIO_BYTES).decode("utf-8-sig", "replace")
        elif not isinstance(self.scenario, ScenarioRunnerError):
            text, folder = self.scenario.text or "", self.scenario.base_dir
        return named_files(text, folder, self.output_dir, getattr(self.scenario, "parameters", {}))


def files_to_run(paths: Sequence[str], options: argparse.Namespace) -> list[RunFile]:
    """Make the files of a run. Standard input and pipes are read here, since a second read finds nothing.

    With --folder-each every scenario gets a folder, named like the path from the common parent folder. Raises
    UsageError.
    """
    if options.folder_each and options.output is None and options.capture_dir is None:
        raise UsageError("--folder-each needs --output or --capture-dir", help="name one of them")
    folders = _own_folders(paths) if options.folder_each else {}

    def own(folder: str | None, path: str) -> str | None:
        return os.path.join(folder, folders[path]) if folder is not None and folders else folder

    scenarios = {path: _scenario(path, dict(options.set)) for path in dict.fromkeys(paths)}
    return [RunFile(path, scenarios[path], own(options.output, path), own(options.capture_dir, path)) for path in paths]


def _scenario(path: str, parameters: Mapping[str, Json]) -> str | ParameterizedFile | Scenario | ScenarioRunnerError:
    """Return ``RunFile.scenario`` of a path: the path with parameters, or for a pipe the scenario or an error."""
    try:
        if is_stream(path):
            from scenario_runner.scenario import load

            return load(path, parameters)
        with suppress(OSError, ValueError):
            if path.endswith("]") or b"${" in read_file(path, MAX_SCENARIO_BYTES):
                from scenario_runner.suite.discovery import scenario_with

                return scenario_with(path, parameters)
    except ScenarioRunnerError as error:
        return error
    return ParameterizedFile(path, parameters) if parameters else path


def _own_folders(files: Sequence[str]) -> dict[str, str]:
    """Name a folder for each file: the path, without the extension unless two paths differ only there."""
    paths = {file: os.path.abspath(file) for file in files}
    common = os.path.commonpath([os.path.dirname(path) for path in paths.values()])
    names = {file: os.path.relpath(os.path.splitext(path)[0], common) for file, path in paths.items()}
    owners: dict[str, set[str]] = {}
    for file, name in names.items():
        owners.setdefault(name, set()).add(paths[file])
    return {
        file: name if len(owners[name]) == 1 else os.path.relpath(paths[file], common) for file, name in names.items()
    }


def refuse_collisions(files: Sequence[RunFile], options: argparse.Namespace) -> None:
    """Raise UsageError if two scenarios would write the same file, or a scenario would overwrite another."""
    different = {os.path.realpath(file.path): file for file in reversed(files)}
    if len(different) < 2:
        return
    help = "run them one by one" + ("" if options.folder_each else ", or with --folder-each and --output")
    owners: dict[object, str] = {}

    def claim(key: object, file: RunFile, conflict: str) -> None:
        owner = owners.setdefault(key, file.path)
        if owner != file.path:
            raise UsageError(f"{owner} and {file.path} would {conflict}", help=help)

    for own, file in reversed(different.items()):
        named = file.named()
        for path in map(os.path.realpath, named.writes):
            if path in different and path != own:
                raise UsageError(f"{file.path}: an output would overwrite the scenario {different[path].path}: {path}")
            claim(path, file, f"write the same file: {path}")
        folder = file.capture_dir
        for number, uid in named.captures if folder is not None else ():
            claim((folder, number, uid), file, f"both capture {uid!r} of frame {number} into {folder!r}")
        if options.capture_frame is not None:
            stem = os.path.join(file.frame_capture_dir, os.path.splitext(os.path.basename(file.path))[0])
            claim(os.path.realpath(stem), file, f"both be captured into files called {stem}-….rdc")


# Options for a single scenario, and options of other tools. Few runs need such tools.
_SILENT_S: Final = 1.0
SINGLE_SCENARIO_OPTIONS: Final = (*GRAPH_REPORTS, *TIMING_FILES, "--profiling", "--dump-dir", "--dump-all")
_OTHER_TOOL_OPTIONS: Final = (
    "--shader-instrumentation",
    "--pipeline-caching",
    "--dump-after",
    "--capture-frame",
    "--gfxr",
)


def needs_tools(options: argparse.Namespace) -> bool:
    """Return whether the options need a tool of `run_tools`."""
    return any(value_of(options, option) is not None for option in (*SINGLE_SCENARIO_OPTIONS, *_OTHER_TOOL_OPTIONS))


def model_files(options: argparse.Namespace) -> list[str]:
    """List the files given to a model by options."""
    return [file for _, file in (*options.input, *options.shader, *options.push_constants)]


class FileEnd(NamedTuple):
    """The end of a file's run: exit code, problems, and after a crash the native stack and the Python stack.

    With ``is_over`` no other file can run. After a crash, nobody has printed the problems yet.
    """

    code: int = 0
    problems: tuple[Diagnostic, ...] = ()
    has_captures: bool = False
    is_over: bool = False
    is_crash: bool = False
    native_stack: str = ""
    stack: str = ""


class FileRunner(AbstractContextManager["FileRunner"]):
    """Runs files in this process. The first file opens the device."""

    def __init__(self, options: argparse.Namespace, paths: Sequence[str]) -> None:
        """Raises ScenarioRunnerError for the options of tools."""
        self._options = options
        self._runner_tools: Mapping[str, Any] = {}
        self._run_tools: Mapping[str, Any] = {}
        self._show_times: Callable[[], None] = lambda: None
        if needs_tools(options):
            from scenario_runner.cli.run.run_tools import show_times, tool_arguments

            self._runner_tools, self._run_tools = tool_arguments(options, paths[0])
            if options.profiling:
                self._show_times = partial(show_times, self._run_tools["timings"], self._runner_tools["graph_reports"])
        self._is_alone = len(paths) == 1 and not options.watch
        starting, options.starting = options.starting, None  # only one Runner can take the instance
        self._runner = Runner(
            starting=starting,
            strict=options.strict,
            sandbox_files=[*filter(is_model, paths), *model_files(options)],
            **shared_arguments(options),
            **self._runner_tools,
        )

    def __exit__(self, *_: object) -> None:
        self.close_device()

    def close_device(self) -> Iterable[FileEnd]:
        """Close the device; the next file opens it again."""
        if signals.arrived is None:  # an interrupt names the work before
            progress.set_work("closing the device")
        self._runner.close()
        return ()

    def run(self, files: Iterable[RunFile]) -> Iterator[FileEnd]:
        """Run files. Print the result of each file."""
        return map(self.run_file, files)

    def run_file(self, file: RunFile) -> FileEnd:
        """Run a file."""
        options, runner = self._options, self._runner
        started = time.perf_counter()
        captured = len(runner.frame_captures)
        progress.set_work("reading it")
        try:
            plan = _run_file(file, runner, options, self._run_tools)
        except ScenarioRunnerError as error:
            if options.watch and isinstance(error, NoDeviceError):
                return FileEnd(error.exit_code, tuple(error.problems), is_over=True)
            show_error(error.at(path=file.path) if is_model(file.path) else error.of_scenario(file.path))
            if isinstance(error, DeviceError | ValidationLayerError) and not options.dry_run:
                note = file.leftover_note()
                if note is not None:
                    write("note", note)
            if isinstance(error, DeviceError) and not isinstance(error, NoDeviceError) and not self._is_alone:
                self.close_device()  # the next scenario opens the device again
            problems = tuple(problem._replace(path=problem.path or file.path) for problem in error.problems)
            return FileEnd(error.exit_code, problems, is_over=isinstance(error, NoDeviceError))
        for path in runner.frame_captures[captured:]:
            print(f"{one_line(file.path)}: captured {one_line(path)}", flush=True)
        if not options.quiet:
            took = f"{(time.perf_counter() - started) * 1e3:.1f} ms on {runner.physical_device.name}"
            print(f"{_summary(file.path, plan, options)}, {took}", flush=True)
        self._show_times()
        return FileEnd(has_captures=any(frame.captures for frame in plan.frames))


def _run_file(file: RunFile, runner: Runner, options: argparse.Namespace, tools: Mapping[str, Any]) -> Plan:
    """Run a file with arguments from `tool_arguments`."""
    if isinstance(file.scenario, ScenarioRunnerError):
        raise file.scenario
    if options.clean and not options.dry_run:
        file.clean()
    if runner.renderdoc is not None:
        runner.renderdoc.folder = file.frame_capture_dir
    with _shown_work(file.path):
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


@contextmanager
def _shown_work(path: str) -> Iterator[None]:
    """On a terminal, show the current work and the time from the first second on, until the block ends."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield
        return
    ended = threading.Event()
    shown, since_s = None, time.monotonic()

    def row() -> list[list[str]]:
        nonlocal shown, since_s
        work = progress.work()
        if work != shown:
            since_s = since_s if shown is None else time.monotonic()
            shown = work
        place = f" at {work[1]}" if work[1] else ""
        return [[f"{work[0]}{place}, {time.monotonic() - since_s:.0f} s ({one_line(path)})"]]

    def show() -> None:
        if not ended.wait(_SILENT_S):
            with live(sys.stderr, row):
                ended.wait()

    thread = threading.Thread(target=show, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _summary(path: str, plan: Plan, options: argparse.Namespace) -> str:
    """Describe a successful run in a line, without the time."""
    ran = counted(plan.dispatch_count, "dispatch")
    if options.dry_run:
        return f"{one_line(path)}: checked (dry run): {ran}, 0 outputs"
    ran += f" x {options.repeat}" if options.repeat > 1 else ""
    wrote = counted(len(plan.outputs), "output")
    if is_model(path):
        wrote = one_line(", ".join(os.path.basename(output.destination or output.uid) for output in plan.outputs))
    return f"{one_line(path)}: ok: {ran}, {wrote}"
