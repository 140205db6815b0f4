"""The options of ``scenario-runner test`` as they belong together, and the reports that they name."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from scenario_runner.cli.arguments import shared_arguments
from scenario_runner.errors import FileError, UsageError
from scenario_runner.files.output import check_destination
from scenario_runner.suite.problems import SuiteProblems
from scenario_runner.suite.records import Result
from scenario_runner.suite.reports.ci import write_ctrf, write_junit
from scenario_runner.suite.reports.html import write_html
from scenario_runner.suite.reports.text import Repeat, SuiteInfo


def settle(options: argparse.Namespace) -> None:
    """Check the options of ``test`` and complete them: ``repeating`` tells how one item runs again in the same way.

    Raises UsageError.
    """
    repeated = _given(options.repeated_actions, options)
    _check(options)
    run_options = _given(options.run_actions, options)
    options.repeating = Repeat(repeated, tuple(_lists(options)), options.devices, run_options)


def runner_arguments(options: argparse.Namespace) -> dict[str, Any]:
    """The options as arguments of Runner, but for the device and the timeout."""
    return {name: value for name, value in shared_arguments(options).items() if name not in ("device", "timeout_s")}


def _help_without_paths(options: argparse.Namespace) -> str:
    """The help of the error; options that take several values may have taken the paths."""
    for name in ("include_tests", "skips", "flakes", "baseline"):
        values = getattr(options, name)
        if len(values) > 1 and os.path.exists(values[-1]):
            option = "--" + name.replace("_", "-")
            return f"{option} takes several values, such as {values[-1]!r}: name it before {option}, or after '--'"
    return "scenario-runner test FOLDER; options that take several values, such as --skips, come after it"


def _check(options: argparse.Namespace) -> None:
    if not options.paths:
        raise UsageError("no scenario, folder or list was given", help=_help_without_paths(options))
    if options.fraction_start > options.fraction:
        raise UsageError(
            f"--fraction-start is {options.fraction_start}, expected at most --fraction ({options.fraction})"
        )
    options.resume = options.resume or options.resume_anyway
    for name in ("resume", "failed_first"):
        if getattr(options, name) and options.results is None:
            raise UsageError(f"--{name.replace('_', '-')} needs --results, the folder of the run before")
    if options.dry_run and not options.update:
        raise UsageError("--dry-run belongs to --update", help="--list shows what would run")
    if options.update and options.cluster is not None:
        raise UsageError("--update writes expectations on this machine, and --cluster runs on others: give one of them")
    if options.update and options.results is not None:
        raise UsageError("--update writes expectations, and --results results: give one of them")
    if options.device is not None:
        if options.devices:
            raise UsageError("--device and --devices were given; --devices takes several")
        options.devices = (options.device,)
    if options.paths.count("-") > 1:
        raise UsageError("standard input was given twice")
    if options.retries is None:
        options.retries = 1 if options.repeat == 1 else 0


def _given(actions: Sequence[argparse.Action], options: argparse.Namespace) -> tuple[str, ...]:
    """The options that were given, but for the device, as words of a command line."""
    words: list[str] = []
    for action in actions:
        value = getattr(options, action.dest)
        if value == action.default or action.dest == "device":
            continue
        name = action.option_strings[0]
        if action.dest == "glslang" and os.path.dirname(value):
            value = os.path.abspath(value)  # the command may be for another folder
        if value is True:
            words.append(name)
        elif isinstance(value, list):
            words += [f"{name}={entry}" for entry in value]
        else:
            words.append(f"{name}={value:.12g}" if isinstance(value, float) else f"{name}={value}")
    return tuple(words)


def _lists(options: argparse.Namespace) -> Iterator[tuple[str, str]]:
    """The lists that verdicts depend on, and what the names in them are relative to."""
    for name in ("baseline", "flakes"):
        yield from ((f"--{name}", os.path.abspath(path)) for path in getattr(options, name))
    yield "--root", os.path.abspath(options.root)


def wants_reports(options: argparse.Namespace) -> bool:
    """Return whether one of them is given."""
    return any(path is not None for path in (options.junit, options.json, options.html))


def check_destinations(options: argparse.Namespace) -> None:
    """Refuse what no report can be written to, before any work. Raises FileError."""
    for path in (options.junit, options.json, options.html):
        if path is not None:
            check_destination(path)


def write_reports(
    options: argparse.Namespace, results: Iterable[Result], info: SuiteInfo, problems: SuiteProblems
) -> list[str]:
    """Write those that are given; a line about each. One that cannot be written is a problem, and the others are
    written. ``results`` can be iterated several times."""
    written: list[str] = []
    for path, write in ((options.junit, write_junit), (options.json, write_ctrf), (options.html, write_html)):
        if path is not None:
            try:
                written += write(path, results, info)
            except FileError as error:
                problems.failed(error)
    return [f"report: {path}" for path in written]
