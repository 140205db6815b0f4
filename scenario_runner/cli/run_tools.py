"""Tools of a run: files of times, dumps, captures, measurements of the device and the cache of pipelines."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from typing import Any

from scenario_runner import progress
from scenario_runner.cli.messages import show_error
from scenario_runner.cli.options import GRAPH_REPORTS
from scenario_runner.errors import FileError, UnsupportedError, UsageError
from scenario_runner.files.output import OutputFile
from scenario_runner.plan.dumps import Wanted
from scenario_runner.plan.plan import Plan
from scenario_runner.run.capture_tools import check_gfxreconstruct, set_up_gfxreconstruct
from scenario_runner.run.dump_files import DumpRequest
from scenario_runner.run.pipeline_caching import PipelineCaching
from scenario_runner.run.report_files import GraphReportFiles, InstrumentationFile
from scenario_runner.run.timings import Timings
from scenario_runner.run.traces import counters, profile, trace

_WRITERS: dict[str, Callable[[Timings], str]] = {
    "--profiling-dump-path": profile,
    "--perf-counters-dump-path": counters,
    "--trace": trace,
}


class RunTools:
    """Tools that the options ask for: files of times, dumps, and ``arguments`` of Runner."""

    def __init__(self, options: argparse.Namespace, scenario: str) -> None:
        """gfxreconstruct is set up. Raises UsageError, UnsupportedError and FileError."""
        given = {name: path for name in _WRITERS if (path := _value(options, name)) is not None}
        self.timing = TimingFiles(given, scenario) if given else None
        self.dump = _dump_request(options)
        self.arguments = _tool_arguments(options)
        self._captured = options.gfxr

    def check_capture(self) -> int:
        """After the last instance: the exit code for a file of gfxreconstruct that is not whole, which is said;
        else 0."""
        try:
            if self._captured is not None:
                check_gfxreconstruct(self._captured)
        except FileError as error:
            show_error(error)
            return error.exit_code
        return 0


def _value(options: argparse.Namespace, option: str) -> Any:
    return getattr(options, option[2:].replace("-", "_"))


class TimingFiles:
    """Files with the times of a run, created before it and given their names when it has ended well."""

    def __init__(self, paths: dict[str, str], scenario: str) -> None:
        """``paths`` are those of options. Raises UsageError for contradictions and FileError for a file that cannot be
        written."""
        self.timings = Timings()
        self.timings.on_start = self._check
        self._paths = paths
        owners = {os.path.realpath(scenario): "the scenario"}
        for name, path in self._paths.items():
            owner = owners.setdefault(os.path.realpath(path), name)
            if owner != name:
                raise UsageError(f"{name}: {path} is also the file of {owner}", help="give each a file of its own")
        self._outputs: dict[str, OutputFile] = {}
        try:
            for name, path in self._paths.items():
                self._outputs[name] = OutputFile(path)
        except BaseException:
            self.discard()
            raise

    def _check(self, plan: Plan) -> None:
        """Refuse files that are the scenario's own, and a profile of a device that has no timestamps.

        Raises FileError and UnsupportedError.
        """
        if "--profiling-dump-path" in self._paths and self.timings.why_none is not None and not self.timings.dry_run:
            raise UnsupportedError(
                self.timings.why_none, help="run without --profiling-dump-path, or on a device that has them"
            )
        taken = {os.path.realpath(path): "reads it" for path in plan.reads}
        for output in plan.outputs:
            if output.destination is not None:
                taken[os.path.realpath(output.destination)] = "has it as a dst"
        for name, path in self._paths.items():
            why = taken.get(os.path.realpath(path))
            if why is not None:
                raise FileError(f"{name}: {path} is a file of the scenario, which {why}", help="choose another file")

    def write(self) -> None:
        """Write the files, after a run that ended well. Raises FileError."""
        try:
            for name, file in self._outputs.items():
                file.write(_WRITERS[name](self.timings).encode())
            for file in self._outputs.values():
                file.commit()
        finally:
            self.discard()

    def discard(self) -> None:
        """Remove what is not complete; after `write` it does nothing."""
        for file in self._outputs.values():
            file.discard()


def _tool_arguments(options: argparse.Namespace) -> dict[str, Any]:
    """The options for capture tools, caches and graphs as arguments of Runner."""
    arguments: dict[str, Any] = {}
    if options.shader_instrumentation is not None:
        # one for all scenarios, also where a device is lost or a process crashes in between
        kept = progress.number(progress.MEASURED)
        arguments["shader_instrumentation"] = InstrumentationFile(options.shader_instrumentation, keep=kept)
    if options.pipeline_caching:
        arguments["pipeline_cache"] = PipelineCaching(
            options.cache_path, clear=options.clear_pipeline_cache, fail_on_miss=options.fail_on_pipeline_cache_miss
        )
    if any(_value(options, option) is not None for option in GRAPH_REPORTS):
        arguments["graph_reports"] = GraphReportFiles(
            session_memory_dir=options.session_memory_dump_dir,
            emulation_profiling_dir=options.emulation_layer_profiling_dump_dir,
            neural_debug_database_dir=options.neural_debug_database_dump_dir,
            neural_statistics_dir=options.neural_statistics_dump_dir,
            neural_statistics_mode=1 if options.neural_statistics_mode is None else options.neural_statistics_mode,
        )
    if options.gfxr is not None:
        set_up_gfxreconstruct(options.gfxr)
    if options.capture_frame is not None:
        arguments["capture_frame"] = options.capture_frame
        arguments["capture_frame_dir"] = options.capture_dir or options.output or "."
    return arguments


def _dump_request(options: argparse.Namespace) -> DumpRequest | None:
    """The dumps to write. Raises UsageError."""
    after, folder, everything = options.dump_after, options.dump_dir, options.dump_all
    if after is None and folder is None and everything is None:
        return None
    if (after is None) != (folder is None):
        raise UsageError(
            "--dump-after needs --dump-dir" if folder is None else "--dump-dir needs --dump-after",
            help="--dump-after 3:RESOURCE --dump-dir DIR, or --dump-all DIR for everything",
        )
    return DumpRequest(folder or everything or "", tuple(map(_dumped, after or ())), everything is not None)


def _dumped(text: str) -> Wanted:
    """The commands and the resource that an argument of --dump-after names. Raises UsageError."""
    commands, colon, uid = text.partition(":")
    first, dash, last = commands.partition("-")
    numbers = [first, last] if dash else [first]
    if not all(number.isascii() and number.isdigit() and len(number) < 10 for number in numbers) or (colon and not uid):
        raise UsageError(
            f"--dump-after {text!r:.100}: expected COMMAND or COMMAND:RESOURCE, with the number of a command from 0 on"
            " or a range such as 2-5",
            help="--dump-after 3:result --dump-dir dumps",
        )
    if int(numbers[0]) > int(numbers[-1]):
        raise UsageError(f"--dump-after {text!r:.100}: the range ends before it begins")
    return Wanted(int(numbers[0]), int(numbers[-1]), uid or None)
