"""The reports of a suite that the command line asks for."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from scenario_runner.errors import FileError

if TYPE_CHECKING:
    from scenario_runner.suite.problems import SuiteProblems
    from scenario_runner.suite.records import Result
    from scenario_runner.suite.reports.text import SuiteInfo


def add_report_options(group: argparse._ActionsContainer) -> None:
    """--junit, --json and --html."""
    group.add_argument("--junit", metavar="FILE", help="write a report as JUnit XML")
    group.add_argument("--json", metavar="FILE", help="write a report as JSON (CTRF)")
    group.add_argument("--html", metavar="FILE", help="write a report as one HTML page")


def wants_reports(options: argparse.Namespace) -> bool:
    """Whether one of them is given."""
    return any(path is not None for path in (options.junit, options.json, options.html))


def check_destinations(options: argparse.Namespace) -> None:
    """Refuse what no report can be written to, before any work. Raises FileError."""
    from scenario_runner.files.output import check_destination

    for path in (options.junit, options.json, options.html):
        if path is not None:
            check_destination(path)


def write_reports(
    options: argparse.Namespace, results: Iterable[Result], info: SuiteInfo, problems: SuiteProblems
) -> list[str]:
    """Write those that are given; a line about each. One that cannot be written is a problem, and the others are
    written. ``results`` can be iterated several times."""
    written: list[str] = []

    def attempt(write: Callable[[], list[str]]) -> None:
        try:
            written.extend(write())
        except FileError as error:
            problems.failed(error)

    if options.junit is not None:
        from scenario_runner.suite.reports.ci import write_junit

        attempt(lambda: write_junit(options.junit, results, info))
    if options.json is not None:
        from scenario_runner.suite.reports.ci import write_ctrf

        attempt(lambda: write_ctrf(options.json, results, info))
    if options.html is not None:
        from scenario_runner.suite.reports.html import write_html

        attempt(lambda: write_html(options.html, results, info))
    return [f"report: {path}" for path in written]
