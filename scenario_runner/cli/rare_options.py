"""Options of ``run`` that few calls have: this module is imported for those alone."""

from __future__ import annotations

import argparse
from collections.abc import Collection
from typing import Any

from scenario_runner.cli import cache_options, capture_options, dump_options, graph_report_options


def add_rare_options(parser: argparse.ArgumentParser, given: Collection[str]) -> None:
    """Define the options that are given, or all of them for the help text."""
    if not {"-h", "--help"}.isdisjoint(given):
        given = {
            *cache_options.OPTIONS,
            *capture_options.OPTIONS,
            *dump_options.OPTIONS,
            *graph_report_options.OPTIONS,
        }
    capture_options.add_capture_options(parser, given)
    cache_options.add_pipeline_cache_options(parser, given)
    graph_report_options.add_graph_report_options(parser, given)
    dump_options.add_dump_options(parser, given)


def check_rare_options(options: argparse.Namespace) -> None:
    """Refuse options that contradict each other. Raises UsageError."""
    capture_options.check_capture_options(options)


def check_tool_files(options: argparse.Namespace) -> int:
    """After the last run: the exit code for the file of a capture tool that is not whole, which is said; else 0."""
    return capture_options.check_capture_file(options)


def runner_arguments(options: argparse.Namespace, files: int) -> dict[str, Any]:
    """The values of the options as arguments of Runner, for a call with so many files. Raises UsageError, FileError."""
    return {
        **capture_options.capture_arguments(options),
        "pipeline_cache": cache_options.pipeline_caching(options) or False,
        "graph_reports": graph_report_options.graph_report_files(options, files),
    }
