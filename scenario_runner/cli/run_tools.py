"""Tools of a run: files of times, dumps, captures, measurements of the device and the cache of pipelines."""

from __future__ import annotations

import argparse
from typing import Any

from scenario_runner import progress
from scenario_runner.cli.arguments import value_of
from scenario_runner.cli.options import GRAPH_REPORTS
from scenario_runner.errors import UsageError
from scenario_runner.plan.dumps import DumpTarget
from scenario_runner.run.capture_tools import set_up_gfxreconstruct
from scenario_runner.run.dump_files import DumpRequest
from scenario_runner.run.pipeline_caching import PipelineCaching
from scenario_runner.run.report_files import GraphReportFiles, InstrumentationFile
from scenario_runner.run.traces import WRITERS, TimingFiles


class RunTools:
    """Tools that the options ask for: files of times, dumps, and ``arguments`` of Runner."""

    def __init__(self, options: argparse.Namespace, scenario: str) -> None:
        """Raises UsageError, UnsupportedError and FileError. gfxreconstruct is set up."""
        paths = {option: path for option in WRITERS if (path := value_of(options, option)) is not None}
        self.timing = TimingFiles(paths, scenario) if paths else None
        self.dump = _dump_request(options)
        self.arguments = _tool_arguments(options)


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
    if any(value_of(options, option) is not None for option in GRAPH_REPORTS):
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


def _dumped(text: str) -> DumpTarget:
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
    return DumpTarget(int(numbers[0]), int(numbers[-1]), uid or None)
