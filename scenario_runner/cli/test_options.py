"""The options of ``scenario-runner test``, and the reports that they name."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from scenario_runner.cli.arguments import (
    Parser,
    add_checking_options,
    add_compiler_options,
    add_device_options,
    add_feature_options,
    add_label_option,
    add_logging_option,
    feature_arguments,
    shared_arguments,
    whole_number,
)
from scenario_runner.errors import FileError, UsageError
from scenario_runner.files.output import check_destination
from scenario_runner.suite.problems import SuiteProblems
from scenario_runner.suite.records import Result
from scenario_runner.suite.reports.text import Repeat, SuiteInfo
from scenario_runner.suite.running.options import WorkerOptions
from scenario_runner.system_limits import processors

_DESCRIPTION: Final = """\
Run scenarios with expectations, each in a process that may crash, and say which results are unexpected.
PATH is a scenario, a folder that is searched, @FILE for a list of those, or - for a list on standard input.
"""
_EPILOG: Final = """\
exit codes: 0: nothing unexpected; 1: unexpected failures; 2: the command line or a list is wrong; 17: items
did not run, as this machine lacks a tool; others: see
'scenario-runner run --help' and docs/suites.md
"""

# For each device, where there are not more processors. A worker takes four open files here, and tens of MiB of memory.
_MOST_JOBS: Final = 256
_NUMBER, _COUNT = whole_number(0), whole_number(1)


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """The options as a namespace; ``repeating`` tells how one item runs again in the same way.

    Raises UsageError.
    """
    parser = Parser(prog="scenario-runner test", description=_DESCRIPTION, epilog=_EPILOG)
    parser.add_argument("paths", nargs="*", metavar="PATH", help="scenarios, folders, @lists, or -")
    _add_selection(parser)
    retries, repeat = _add_running(parser)
    _add_results(parser)
    titles = ("device", "checking", "shaders and caches", "debugging")
    groups = device, checking, compiling, debugging = [parser.add_argument_group(title) for title in titles]
    add_device_options(device, f"{WorkerOptions().timeout_s:g}")
    add_feature_options(device)
    add_checking_options(checking)
    add_compiler_options(compiling)
    add_label_option(debugging)
    run_actions = [action for group in groups for action in group._group_actions]
    add_logging_option(debugging)
    options = parser.parse_args(argv)
    repeated = _given([*run_actions, retries, repeat], options)
    _check(options)
    run_options = _given(run_actions, options)
    options.repeating = Repeat(repeated, tuple(_lists(options)), options.devices, run_options)
    return options


def runner_arguments(options: argparse.Namespace) -> dict[str, Any]:
    """The options as arguments of Runner, but for the device and the timeout."""
    given = {**shared_arguments(options), **feature_arguments(options)}
    return {name: value for name, value in given.items() if name not in ("device", "timeout_s")}


def _add_selection(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("which scenarios run")
    group.add_argument("--root", default=".", metavar="DIR", help="names are relative to DIR (default: here)")
    group.add_argument(
        "-t",
        "--include-tests",
        nargs="+",
        action="extend",
        default=[],
        metavar="REGEX",
        help="only those whose name matches one of these; FILE.txt: one a line",
    )
    lists: dict[str, Any] = {"nargs": "+", "action": "extend", "default": [], "metavar": "FILE"}
    group.add_argument("--skips", help="do not run names that match a regular expression of these lists", **lists)
    group.add_argument("--flakes", help="accept failures of names that match one of these lists", **lists)
    group.add_argument("--baseline", help="expect 'name,status' of these lists, such as failures.csv", **lists)
    group.add_argument("--fraction", type=_COUNT, default=1, metavar="M", help="run every M-th scenario")
    group.add_argument(
        "--fraction-start",
        type=_COUNT,
        default=1,
        metavar="N",
        help="begin with the N-th, which counts from 1",
    )
    group.add_argument("--shuffle", type=_seed, metavar="SEED", help="run in an order that SEED determines")
    group.add_argument("--failed-first", action="store_true", help="begin with those that failed in --results before")
    group.add_argument("--list", action="store_true", help="print the names of what would run, and run nothing")


def _add_running(parser: argparse.ArgumentParser) -> tuple[argparse.Action, argparse.Action]:
    """Returns those of --retries and --repeat."""
    group = parser.add_argument_group("how they run")
    group.add_argument(
        "--devices", type=_names, default=(), metavar="D,…", help="'all', or indexes, UUIDs or names of devices"
    )
    group.add_argument("--jobs", type=_jobs, metavar="N", help="processes for each device (default: what suits it)")
    group.add_argument(
        "--cluster",
        metavar="SCHEDULER",
        help="run on the workers of Dask: tcp://host:8786, the *.json of a scheduler, or local:N for N workers here",
    )
    retries = group.add_argument(
        "--retries", type=_NUMBER, metavar="N", help="run unexpected results up to N times more (default: 1)"
    )
    repeat = group.add_argument(
        "--repeat", type=_COUNT, default=1, metavar="N", help="run each N times, or until it fails"
    )
    group.add_argument(
        "--fail-fast",
        type=_COUNT,
        nargs="?",
        const=1,
        metavar="N",
        help="start nothing more after N failures (1)",
    )
    group.add_argument(
        "--core-dumps", action="store_true", help="keep core files of crashes, and show the native stack (needs gdb)"
    )
    group.add_argument("--max-failures", type=_COUNT, metavar="N", help="skip what is left after N failures")
    group.add_argument(
        "--strict-environment",
        action="store_true",
        help="start nothing more once an item lacks a tool of this machine",
    )
    group.add_argument(
        "--strict", action="store_true", help="stop at anything that is wrong with lists, folders and expectations"
    )
    return retries, repeat


def _add_results(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what is written")
    group.add_argument("--results", metavar="DIR", help="folder of journal.jsonl, results.csv and failures.csv")
    group.add_argument(
        "--max-evidence",
        type=_NUMBER,
        metavar="MIB",
        default=64,
        help="keep no more than MIB of files about the failures of an item (default: 64)",
    )
    group.add_argument("--resume", action="store_true", help="keep the results in --results that are still valid")
    group.add_argument(
        "--resume-anyway",
        action="store_true",
        help="the same, and keep those of another device, driver, program, time limit or other options too",
    )
    add_report_options(group)
    group.add_argument("--update", action="store_true", help="write expectations from this run, showing what changes")
    group.add_argument("--dry-run", action="store_true", help="with --update: only show what would change")
    group.add_argument("--quiet", action="store_true", help="show failures and the last line only")
    group.add_argument("--verbose", action="store_true", help="show a line for each scenario")


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
            words += [f"{name}={each}" for each in value]
        else:
            words.append(f"{name}={value:.12g}" if isinstance(value, float) else f"{name}={value}")
    return tuple(words)


def _lists(options: argparse.Namespace) -> Iterator[tuple[str, str]]:
    """The lists that verdicts depend on, and what the names in them are relative to."""
    for name in ("baseline", "flakes"):
        yield from ((f"--{name}", os.path.abspath(path)) for path in getattr(options, name))
    yield "--root", os.path.abspath(options.root)


def _jobs(text: str) -> int:
    jobs = _COUNT(text)
    most = max(_MOST_JOBS, processors())
    if jobs > most:
        raise argparse.ArgumentTypeError(f"{text!r}: expected at most {most}")
    return jobs


def _seed(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a whole number") from None


def _names(text: str) -> tuple[str, ...]:
    names = tuple(name for name in (each.strip() for each in text.split(",")) if name)
    if not names:
        raise argparse.ArgumentTypeError("expected 'all', or indexes, UUIDs or names of devices")
    return names


def add_report_options(group: argparse._ActionsContainer) -> None:
    """--junit, --json and --html."""
    group.add_argument("--junit", metavar="FILE", help="write a report as JUnit XML")
    group.add_argument("--json", metavar="FILE", help="write a report as JSON (CTRF)")
    group.add_argument("--html", metavar="FILE", help="write a report as one HTML page")


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
    from scenario_runner.suite.reports.ci import write_ctrf, write_junit
    from scenario_runner.suite.reports.html import write_html

    written: list[str] = []
    for path, write in ((options.junit, write_junit), (options.json, write_ctrf), (options.html, write_html)):
        if path is not None:
            try:
                written += write(path, results, info)
            except FileError as error:
                problems.failed(error)
    return [f"report: {path}" for path in written]
