"""The options of ``scenario-runner test`` as they belong together, and the reports that they name."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

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
    # the lists that verdicts depend on, and what the names in them are relative to
    lists = [(f"--{name}", os.path.abspath(path)) for name in ("baseline", "flakes") for path in getattr(options, name)]
    lists.append(("--root", os.path.abspath(options.root)))
    options.repeating = Repeat(repeated, tuple(lists), options.devices, _given(options.run_actions, options))


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


_WRITERS: Final = {"junit": write_junit, "json": write_ctrf, "html": write_html}


def report_paths(options: argparse.Namespace) -> dict[str, str]:
    """The paths of the reports that the options name, by option. Raises FileError where no file can be written."""
    paths = {name: getattr(options, name) for name in _WRITERS if getattr(options, name) is not None}
    for path in paths.values():
        check_destination(path)
    return paths


def write_reports(
    paths: Mapping[str, str], results: Iterable[Result], info: SuiteInfo, problems: SuiteProblems
) -> list[str]:
    """Write reports, and return a line about each. One that cannot be written is a problem, and the others are
    written. ``results`` can be iterated several times."""
    written: list[str] = []
    for name, path in paths.items():
        try:
            written += _WRITERS[name](path, results, info)
        except FileError as error:
            problems.failed(error)
    return [f"report: {path}" for path in written]
