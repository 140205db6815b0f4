"""Tools for a run: timing files, dumps, captures, measurements and the pipeline cache."""

import argparse
from collections import defaultdict
from collections.abc import Mapping
from operator import itemgetter
from typing import Any

from scenario_runner.cli.arguments import value_of
from scenario_runner.cli.console import show_table
from scenario_runner.cli.options import GRAPH_REPORTS
from scenario_runner.errors import UsageError
from scenario_runner.errors.text import one_line
from scenario_runner.plan.accesses import DumpTarget
from scenario_runner.run.dump_files import DumpRequest
from scenario_runner.run.graph_reports import GraphReportFiles, InstrumentationFile
from scenario_runner.run.pipeline_caching import PipelineCaching
from scenario_runner.run.timings import WRITERS, TimingFiles, Timings
from scenario_runner.vulkan.capture_tools import set_up_gfxreconstruct

_MOST_ROWS = 20


def tool_arguments(options: argparse.Namespace, scenario: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Make the tools requested by options, as arguments for Runner and for `Runner.run_to_files`.

    Also set up gfxreconstruct. Raises UsageError, UnsupportedError and FileError.
    """
    paths = {option: path for option in WRITERS if (path := value_of(options, option)) is not None}
    run_tools = {
        "timings": TimingFiles(paths, scenario) if paths or options.profiling else None,
        "dump": _dump_request(options),
    }
    arguments: dict[str, Any] = {}
    if options.shader_instrumentation is not None:
        # all scenarios share a file, even after a lost device or a crash
        replaced = options.replaced_measurements
        arguments["shader_instrumentation"] = InstrumentationFile(options.shader_instrumentation, replaced)
    if options.pipeline_caching:
        arguments["pipeline_cache"] = PipelineCaching(
            options.cache_path, clear=options.clear_pipeline_cache, fail_on_miss=options.fail_on_pipeline_cache_miss
        )
    if options.profiling or any(value_of(options, option) is not None for option in GRAPH_REPORTS):
        arguments["graph_reports"] = GraphReportFiles(
            session_memory_dir=options.session_memory_dump_dir,
            emulation_profiling_dir=options.emulation_layer_profiling_dump_dir,
            neural_debug_database_dir=options.neural_debug_database_dump_dir,
            neural_statistics_dir=options.neural_statistics_dump_dir,
            neural_statistics_mode=1 if options.neural_statistics_mode is None else options.neural_statistics_mode,
            operators=options.profiling,
        )
    if options.gfxr is not None:
        set_up_gfxreconstruct(options.gfxr)
    if options.capture_frame is not None:
        arguments["capture_frame"] = options.capture_frame
        arguments["capture_frame_dir"] = options.capture_dir or options.output or "."
    return arguments, run_tools


def _dump_request(options: argparse.Namespace) -> DumpRequest | None:
    """Return the dumps to write, None for no dumps. Raises UsageError."""
    after, folder, everything = options.dump_after, options.dump_dir, options.dump_all
    if after is None and folder is None and everything is None:
        return None
    if (after is None) != (folder is None):
        message = "--dump-after needs --dump-dir" if folder is None else "--dump-dir needs --dump-after"
        raise UsageError(message, help="--dump-after 3:RESOURCE --dump-dir DIR, or --dump-all DIR for everything")
    targets = tuple(DumpTarget(*target) for target in after or ())
    return DumpRequest(folder or everything or "", targets, everything is not None)


def show_times(timings: Timings, reports: GraphReportFiles) -> None:
    """Print the slowest dispatches and graph operators, with times per iteration."""
    times: dict[tuple[str, ...], float] = defaultdict(float)
    for dispatch in timings.dispatches:
        times[str(dispatch.command), dispatch.name] += dispatch.time_ns / 1e6
    _show_slowest(("command", "dispatch"), times, timings.repeat)
    operators: dict[tuple[str, ...], float] = defaultdict(float)
    for graph, number, operator, time_ms in reports.operator_times:
        shapes = " ".join("?" if shape is None else "x".join(map(str, shape)) or "scalar" for shape in operator.shapes)
        operators[graph, str(number), operator.name, operator.label, shapes] += time_ms
    graphs = {graph for graph, *_ in operators}
    if len(graphs) == 1:  # one title instead of a column
        print(f"  graph {one_line(graphs.pop())}:")
        operators = {("", *row): time_ms for (_, *row), time_ms in operators.items()}
    _show_slowest(("graph", "#", "operator", "name", "output"), operators, timings.repeat)


def _show_slowest(headings: tuple[str, ...], times: Mapping[tuple[str, ...], float], repeat: int) -> None:
    """Print the rows with the longest times in milliseconds, without empty columns."""
    total = sum(times.values()) or 1.0
    rows = [
        (*row, f"{time_ms / repeat:.3f}", f"{100 * time_ms / total:.1f} %")
        for row, time_ms in sorted(times.items(), key=itemgetter(1), reverse=True)
    ]
    columns = [column for column in zip((*headings, "ms", "share"), *rows, strict=True) if any(column[1:])]
    if columns:
        show_table(list(zip(*columns, strict=True)), right=(len(columns) - 2, len(columns) - 1), most=_MOST_ROWS)
