"""``scenario-runner [run] FILE…``: run scenarios one after the other on one device, or run a model.

`cli.options` declares the options.
"""

import argparse
import faulthandler
import os
import sys
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from functools import partial
from typing import TYPE_CHECKING, Final, NoReturn, TypeAlias

from scenario_runner.cli.arguments import value_of
from scenario_runner.cli.console import show_error, write
from scenario_runner.cli.run.run_files import (
    SINGLE_SCENARIO_OPTIONS,
    FileEnd,
    FileRunner,
    RunFile,
    files_to_run,
    model_files,
    needs_tools,
    refuse_collisions,
)
from scenario_runner.errors import (
    NoDeviceError,
    ScenarioRunnerError,
    UnsupportedError,
    UsageError,
    error_of,
    log,
)
from scenario_runner.errors.diagnostic import Diagnostic
from scenario_runner.errors.text import counted
from scenario_runner.files.input import is_model
from scenario_runner.vulkan.instance import devices

if TYPE_CHECKING:
    from scenario_runner.cli.run.isolated_runner import IsolatedRunner
    from scenario_runner.ml.model_scenario import Kind

    _OpenRunner: TypeAlias = "FileRunner | IsolatedRunner"

_MODEL_OPTIONS: Final[dict["Kind", str]] = {"input": "--input", "shader": "--shader", "raw_data": "--push-constants"}
# Options without effect, unless the second option is given.
_REQUIRED_OPTIONS: Final = {
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
    ("--dump-after", "--dump-all", "--dump-all includes the dumps of --dump-after"),
    ("--clear-pipeline-cache", "--fail-on-pipeline-cache-miss", "first fill the cache with --pipeline-caching alone"),
    *(
        (option, other, f"{other} splits frames, and the tool would record the parts: run the scenario twice")
        for option in ("--capture-frame", "--gfxr", "--shader-instrumentation")
        for other in ("--dump-dir", "--dump-all", "--printf", "--printf-size")
    ),
)


def main(options: argparse.Namespace) -> int:
    """Run scenarios, or a model. Return 0, or the exit code of the first failed scenario."""
    _refuse_contradictions(options)
    paths = options.files
    if not paths:
        raise UsageError(
            "no scenario file was given", help="scenario-runner test.json, or scenario-runner --help for all commands"
        )
    if not options.isolate and options.log_level == "debug":
        faulthandler.enable()
    if options.watch:
        _watch(paths, options)
    files = _files(paths, options)
    refuse_collisions(files, options)
    if options.dry_run and options.repeat > 1:
        write("warning", "a dry run runs nothing, so --repeat is 1")
    if options.wait_for_key_stroke_before_run:
        _wait_for_enter("press Enter to run")
    return _run(files, options)


def _files(paths: Sequence[str], options: argparse.Namespace) -> list[RunFile]:
    """Return the scenarios, or the model. Raises UsageError and the errors of reading a model."""
    if any(map(is_model, paths)):
        if options.set:
            raise UsageError("--set is for scenarios, and a model was given")
        return [_read_model(paths, options)]
    if model_files(options):
        message = "--input, --shader and --push-constants are for models, and no model was given"
        raise UsageError(message, help="scenario-runner MODEL.vgf --input NAME=FILE")
    return files_to_run(paths, options)


def _read_model(paths: Sequence[str], options: argparse.Namespace) -> RunFile:
    """Make a scenario that runs a model with the given files.

    Outputs go to the current folder, unless --output names another. Raises FileError and UsageError.
    """
    if len(paths) > 1:
        raise UsageError(f"{paths[0]} and {paths[1]} are given", help="run models one by one")
    from scenario_runner.ml.model_scenario import BareModel  # pydantic

    path = paths[0]
    model = BareModel(path)
    for kind, option in _MODEL_OPTIONS.items():
        for name, file in value_of(options, option):
            model.give(kind, name, file, partial(Diagnostic._replace, path=f"{path}: {option} {name}"), option)
    model.check_outputs()
    lacks = model.lacks()
    if lacks:
        kind = lacks[0].kind
        file = "FILE" if kind == "shader" else "FILE.npy"
        help = " ".join(f"{_MODEL_OPTIONS[kind]} {lack.name}={file}" for lack in lacks if lack.kind == kind)
        raise UsageError(f"{path}: {lacks[0].message}", help=help)
    return RunFile(path, model.scenario(), options.output or ".", options.capture_dir)


def _watch(paths: Sequence[str], options: argparse.Namespace) -> NoReturn:
    """Run, and run again whenever a file changes, until Ctrl-C. All runs share a Runner or a worker.

    Raises UsageError, MissingPackageError and KeyboardInterrupt.
    """
    from scenario_runner.cli.watch import Files, check_watchable, hashes_of, watch  # imports suite/

    check_watchable(paths)
    files_to_run([] if any(map(is_model, paths)) else paths, options)  # checks the options

    def reads() -> Files:
        files = hashes_of(paths, model_files(options), dict(options.set))
        if any(map(is_model, paths)):
            return files
        written = {os.path.realpath(path) for file in files_to_run(paths, options) for path in file.named().writes}
        return {path: hash for path, hash in files.items() if os.path.realpath(path) not in written}

    def run() -> None:
        files = _files(paths, options)
        refuse_collisions(files, options)
        _run(files, options, warm)

    warm: _OpenRunner | None = None
    if options.isolate or not needs_tools(options):
        warm = _open_runner(paths, options)
    with warm or nullcontext():
        watch(run, reads)


def _open_runner(paths: Sequence[str], options: argparse.Namespace) -> "_OpenRunner":
    """Open a runner for the files, in this process or in a worker. Raises ScenarioRunnerError."""
    if not options.isolate:
        return FileRunner(options, paths)
    from scenario_runner.cli.run.isolated_runner import IsolatedRunner  # multiprocessing

    return IsolatedRunner(options, paths)


def _refuse_contradictions(options: argparse.Namespace) -> None:
    """Raise UsageError for options that contradict each other, and warn of options without effect."""

    def is_given(option: str) -> bool:
        return value_of(options, option) is not None

    for option, other, help in _CONTRADICTIONS:
        if is_given(option) and is_given(other):
            raise UsageError(f"{option} and {other} contradict each other", help=help)
    if options.core_dumps and sys.platform != "linux":
        raise UnsupportedError("--core-dumps needs Linux")
    if len(options.files) > 1:
        for option in filter(is_given, SINGLE_SCENARIO_OPTIONS):
            raise UsageError(f"{option} takes the files of one scenario", help="run the scenarios one by one")
    for option, needed in _REQUIRED_OPTIONS.items():
        if is_given(option) and not is_given(needed):
            write("warning", f"option {option} has no effect without {needed}")


def _run(files: Sequence[RunFile], options: argparse.Namespace, warm: "_OpenRunner | None" = None) -> int:
    """Run the files with the ``warm`` runner, or start a new runner. Return the exit code of the first failed file."""
    code, has_captures = 0, options.capture_dir is None or options.dry_run
    opened = nullcontext(warm) if warm else _open_runner([file.path for file in files], options)
    try:
        with opened as runner:
            for end in runner.run(files):
                if end.is_over and options.watch and end.problems:
                    raise error_of(end.problems)
                _show(end, options)
                code = code or end.code
                has_captures = has_captures or end.has_captures
                if end.is_over:
                    break
            if warm is None or needs_tools(options):
                for end in runner.close_device():
                    _show(end, options)
                    code = code or end.code
    finally:
        if options.gfxr is not None:
            capture_code = _check_capture(options.gfxr)  # removes an incomplete capture, also after a failed run
            code = code or capture_code
        if options.pause_on_exit:
            _wait_for_enter("press Enter to exit")
    if not has_captures and not code:
        write("warning", "nothing was captured: no mark_boundary names a resource")
    if options.annotations is not None:
        result = f"failed with exit code {code}" if code else "ok"
        options.annotations.result = f"{counted(len(files), 'scenario')}: {result}"
    return code


def _show(end: FileEnd, options: argparse.Namespace) -> None:
    """Annotate the problems of a file. After a crash, also print them."""
    if options.annotations is not None:
        for problem in end.problems:
            options.annotations.add(problem)
    if end.is_crash:
        show_error(error_of(end.problems))
        if end.native_stack:
            write("stack", end.native_stack)
        if end.stack:
            log.debug(__name__, "%s", end.stack)


def _check_capture(path: str) -> int:
    """Check gfxreconstruct's capture, after the last instance is gone. Return a problem's exit code, or 0."""
    from scenario_runner.vulkan.capture_tools import check_gfxreconstruct

    try:
        check_gfxreconstruct(path)
    except ScenarioRunnerError as error:
        show_error(error)
        return error.exit_code
    return 0


def _wait_for_enter(prompt: str) -> None:
    with suppress(EOFError):  # standard input is closed
        input(prompt)


def list_devices(options: argparse.Namespace) -> None:
    """Print every device's index, name, type, UUID and driver, and mark the default device.

    Raises NoDeviceError if the machine has no device.
    """
    found = devices()
    if not found:
        raise NoDeviceError("there are no Vulkan devices", help="'scenario-runner doctor' shows what is missing")
    for device in found:
        note = f" - not usable: {device.problem}" if device.problem else " - default" if device.is_default else ""
        about = f"{device.type}, Vulkan {device.vulkan}, {device.driver}"
        print(f"{device.index}: {device.name} ({about}) uuid {device.uuid}{note}")
