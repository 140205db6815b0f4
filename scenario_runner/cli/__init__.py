"""The command line: `main` parses the words, starts the driver, imports the module of the command, and calls it."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from types import ModuleType

from scenario_runner.cli.arguments import json_output, parse, report_error, sandboxed, start_driver, start_pool
from scenario_runner.cli.console import keep_absolute_paths, set_up_logging, write
from scenario_runner.errors.installation import MIXED_PACKAGES_FIX, mixed_packages_problem
from scenario_runner.errors.text import one_line
from scenario_runner.processes import progress, signals, temporary


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line and return the exit code. The docstring of `errors` lists the codes."""
    try:
        words = sys.argv[1:] if argv is None else argv
        options = parse(words)
        set_up_logging(options.log_level, lines=options.command == "run")
        if options.command in ("run", "compare-layers") and options.action != "versions":
            progress.announce_crashes(_only_file(options))
        if options.command == "run":
            options.starting = start_driver(options) if options.files and not options.isolate else None
        if options.command == "test":
            options.pool = start_pool(options)
        mixed = mixed_packages_problem()
        if mixed:
            write("warning", mixed, MIXED_PACKAGES_FIX)
        keep_absolute_paths(words)
        work: Callable[[argparse.Namespace], int | None] = getattr(_module_of(options), options.action)
        with _annotations(options) as options.annotations, sandboxed(options), json_output(options):
            code = work(options) or 0
    except BaseException as error:
        signals.hold()
        code = report_error(error)
    signals.hold()
    temporary.remove_all()
    return code


def _only_file(options: argparse.Namespace) -> str:
    """Return the file or model that this process runs, in one line; empty if there are several, or none."""
    files: Sequence[str] = [options.model] if options.command == "compare-layers" else options.files or []
    return one_line(files[0]) if len(files) == 1 else ""


def _module_of(options: argparse.Namespace) -> ModuleType:
    """Import the module of a command. Its function called ``options.action`` does the work."""
    module: ModuleType
    match options.command:
        case "run" if options.action != "versions":
            from scenario_runner.cli import run as module
        case "test" if options.action == "each_device":
            from scenario_runner.cli.suites import whole_suites as module
        case "test":
            from scenario_runner.cli.suites import test as module
        case "validate" | "schema":
            from scenario_runner.cli import validate as module
        case "report":
            from scenario_runner.cli.suites import report as module
        case "bench":
            from scenario_runner.cli import bench as module
        case "reduce" | "pack":
            from scenario_runner.cli import reduce as module
        case "view":
            from scenario_runner.cli import view as module
        case "diff":
            from scenario_runner.cli import diff as module
        case "shader":
            from scenario_runner.cli import shader as module
        case "init" | "import":
            from scenario_runner.cli import new_scenarios as module
        case "vgf":
            from scenario_runner.cli import vgf as module
        case "convert" | "custom-op":
            from scenario_runner.cli import tosa_models as module
        case "compare-layers":
            from scenario_runner.cli import compare_layers as module
        case "doctor":
            from scenario_runner.cli import doctor as module
        case _:
            from scenario_runner.cli import about as module
    return module


def _annotations(options: argparse.Namespace) -> AbstractContextManager[object]:
    """Return the annotations for a GitHub job, or an empty context outside of GitHub."""
    if not (os.environ.get("GITHUB_ACTIONS") if options.github is None else options.github):
        return nullcontext()
    from scenario_runner.cli.github import Annotations

    return Annotations(options.command)
