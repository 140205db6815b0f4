"""The options of ``run`` for files about data graphs, as the reference runner names them."""

from __future__ import annotations

import argparse
from collections.abc import Collection
from typing import TYPE_CHECKING

from scenario_runner.errors import UsageError

if TYPE_CHECKING:
    from scenario_runner.run.graph_report_files import GraphReportFiles

_MODE = "--neural-statistics-mode"
_FOLDERS = {
    "--session-memory-dump-dir": ("session_memory_dir", "write the memory of graph sessions as hexadecimal text"),
    "--emulation-layer-profiling-dump-dir": (
        "emulation_profiling_dir",
        "write what the ML emulation layers measured as JSON",
    ),
    "--neural-debug-database-dump-dir": ("neural_debug_database_dir", "write debug databases of neural accelerators"),
    "--neural-statistics-dump-dir": ("neural_statistics_dir", "write statistics of neural accelerators"),
}
OPTIONS = (*_FOLDERS, _MODE)


def add_graph_report_options(parser: argparse.ArgumentParser, wanted: Collection[str]) -> None:
    """Define those options that are in ``wanted``: each takes a while."""
    for option, (name, purpose) in _FOLDERS.items():
        if option in wanted:
            parser.add_argument(option, dest=name, metavar="DIR", help=f"{purpose}, into an existing folder")
    if _MODE in wanted:
        parser.add_argument(_MODE, type=int, choices=(0, 1), help="which statistics are written (default: 1)")


def graph_report_files(options: argparse.Namespace, files: int) -> GraphReportFiles | None:
    """What the options ask for, for a call with so many scenarios. Raises UsageError and FileError."""
    given = vars(options)
    folders = {name: given[name] for name, _ in _FOLDERS.values() if given.get(name) is not None}
    mode = given.get("neural_statistics_mode")
    if mode is not None and "neural_statistics_dir" not in folders:
        from scenario_runner.cli.messages import write

        write("warning", f"option {_MODE} has no effect without --neural-statistics-dump-dir")
    if not folders:
        return None
    if files > 1:
        option = next(option for option, (name, _) in _FOLDERS.items() if name in folders)
        raise UsageError(f"{option} takes the files of one scenario", help="run the scenarios one by one")
    from scenario_runner.run.graph_report_files import GraphReportFiles

    return GraphReportFiles(**folders, neural_statistics_mode=1 if mode is None else mode)
