"""``scenario-runner report JOURNAL…``: show, merge and compare the results of suites."""

import argparse
import math
import os
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from statistics import median
from typing import Final

from scenario_runner.cli.console import show_first, write_finding
from scenario_runner.cli.suites.suite_display import counts_text, verdict_line
from scenario_runner.errors import FileError, ScenarioRunnerError
from scenario_runner.errors.text import one_line
from scenario_runner.files.output import check_destination
from scenario_runner.suite.journal import MergedJournals
from scenario_runner.suite.outcomes import Result, SuiteProblems, is_bad, refuse
from scenario_runner.suite.reports.ci_reports import write_ctrf, write_junit
from scenario_runner.suite.reports.pages import write_html
from scenario_runner.suite.reports.sarif import write_sarif
from scenario_runner.suite.reports.summary import (
    SuiteInfo,
    cause_lines,
    causes_of,
    headline,
    missing_tools,
    seconds_text,
)
from scenario_runner.suite.verdicts_and_retries import Row, write_tables

_MOST_SHOWN: Final = 50
_NEW_FAILURES: Final = "new failures"
# Fewer items than this cannot measure the noise.
_LEAST_ITEMS: Final = 10
_LEAST_DEVIATIONS: Final = 4 * 1.4826  # median absolute deviations in four standard deviations
_LEAST_FACTOR: Final = 1.5
_FACTOR_OF_FEW: Final = 2.0
_LEAST_SECONDS: Final = 0.02
_WRITERS: Final = {"junit": write_junit, "json": write_ctrf, "html": write_html, "sarif": write_sarif}


def main(options: argparse.Namespace) -> int:
    """Show the results of journals.

    Return 0 without unexpected failures (with --compare: without new failures), else 1, or the exit code of a journal
    problem.
    """
    problems = SuiteProblems(write_finding, strict=options.strict)
    paths = report_paths(options)
    with problems.together():
        merged = MergedJournals(options.journals, problems)
        incomplete = list(merged.incomplete())
        help = "run the rest with --resume"
        for file in incomplete:
            if file.path not in merged.unusable:
                problems.found("SR-SUITE-014", file.path, file.message, help)
    if not merged.results:
        help = "the suite ended before the first result; run it again"
        refuse("SR-SUITE-011", None, f"there is no result in {', '.join(map(repr, options.journals))}", help)
    if options.csv is not None:
        write_tables(options.csv, merged.rows())
    not_run = merged.not_run()
    if not_run:
        problems.found("SR-SUITE-015", None, not_run)
    lacking = missing_tools([result for result in merged.results.values() if result.verdict == "MissingTool"])
    if lacking is not None:
        problems.failed(lacking)
    info = _info(options.journals, merged, lacking)
    written = write_reports(paths, merged, info, problems)
    bad = sorted(id for id, result in merged.results.items() if result.is_bad)
    if options.compare is not None:
        bad = _compare(options.compare, merged, problems)
    else:
        show_first([headline(merged.results[name]) for name in bad], _MOST_SHOWN)
    counts = Counter(result.verdict for result in merged.results.values())
    print(counts_text(counts.most_common(), sum(result.is_uncompared for result in merged.results.values())))
    for line in cause_lines(causes_of(merged.results.values())):
        print(line)
    for path in written:
        print(f"report: {one_line(path)}")
    ended = incomplete[0].ended if incomplete else "not run" if not_run else "incomplete" if lacking else ""
    print(verdict_line(len(bad), len(merged.results), ended, problem_text(paths, written, problems)))
    return 1 if bad else problems.exit_code


def _compare(old: str, merged: MergedJournals, problems: SuiteProblems) -> list[str]:
    """Print the changes since an older journal. Return the items with new failures."""
    parts = changes(MergedJournals([old], problems).rows(), merged.rows())
    for title, lines in parts.items():
        if lines:
            print(f"{title} ({len(lines)}):")
            show_first(list(map(one_line, lines.values())), _MOST_SHOWN, "  ")
    if not any(parts.values()):
        print("nothing has changed")
    return list(parts[_NEW_FAILURES])


def changes(before: Mapping[str, Row], after: Mapping[str, Row]) -> dict[str, dict[str, str]]:
    """Describe the changes from a run to the next: title → item id → line."""
    parts: dict[str, dict[str, str]] = {_NEW_FAILURES: {}, "fixed": {}, "changed": {}}
    for id in sorted(after):
        old, new = before[id].verdict if id in before else "", after[id].verdict
        if is_bad(new) != is_bad(old) or (old and old != new):
            title = _NEW_FAILURES if is_bad(new) > is_bad(old) else "fixed" if is_bad(old) > is_bad(new) else "changed"
            parts[title][id] = f"{id}: {old or 'new'} -> {new}"
    slower, factor = _slower(before, after)
    parts[f"slower, where the typical item takes {factor:.2f} times as long"] = slower
    parts["new items"] = {id: id for id in sorted(after.keys() - before.keys())}
    parts["items without a result now"] = {id: id for id in sorted(before.keys() - after.keys())}
    return parts


def _slower(before: Mapping[str, Row], after: Mapping[str, Row]) -> tuple[dict[str, str], float]:
    """Describe the items that became slower beyond noise, and return the typical item's factor.

    Each run times an item only once, so all items together measure the noise. The median time ratio tells how the
    machines compare. The median absolute deviation of the ratios' logarithms is the noise.
    """
    ratios = {
        id: math.log(row.seconds / before[id].seconds)
        for id, row in sorted(after.items())
        if id in before and row.verdict == before[id].verdict and row.seconds > 0 and before[id].seconds > 0
    }
    typical, least = 0.0, math.log(_FACTOR_OF_FEW)
    if len(ratios) >= _LEAST_ITEMS:
        typical = median(ratios.values())
        deviation = median(abs(ratio - typical) for ratio in ratios.values())
        least = max(_LEAST_DEVIATIONS * deviation, math.log(_LEAST_FACTOR))
    slower = {}
    for id, ratio in ratios.items():
        old, new = before[id].seconds, after[id].seconds
        if ratio - typical > least and new - old * math.exp(typical) > _LEAST_SECONDS:
            slower[id] = f"{id}: {seconds_text(old)} -> {seconds_text(new)}, {new / old:.1f} times"
    return slower, math.exp(typical)


def _info(journals: Sequence[str], merged: MergedJournals, lacking: ScenarioRunnerError | None) -> SuiteInfo:
    headers = [run.header for run in merged.runs]
    ends = [run.end for run in merged.runs if run.end is not None]
    messages = [f"{file.path}: {file.message}" for file in merged.incomplete()]
    if lacking is not None:
        messages.append(lacking.problems[0].message)
    return SuiteInfo(
        title=", ".join(journals),
        started=min((header.started for header in headers), default=0.0),
        seconds=sum(result.seconds for result in merged.results.values()),
        devices=tuple({uuid: name for end in ends for uuid, name in end.devices.items()}.items()),
        host=", ".join(dict.fromkeys(header.host for header in headers)),
        version=", ".join(dict.fromkeys(header.program for header in headers)),
        command=headers[0].command if len(journals) == 1 else (),
        folder=os.getcwd(),
        repeat=merged.repeat,
        incomplete="; ".join(messages) or merged.not_run(),
    )


def report_paths(options: argparse.Namespace) -> dict[str, str]:
    """Return report paths by option. Raises FileError for a path where no file can be written."""
    paths = {name: getattr(options, name) for name in _WRITERS if getattr(options, name) is not None}
    for path in paths.values():
        check_destination(path)
    return paths


def problem_text(paths: Mapping[str, str], written: Collection[str], problems: SuiteProblems) -> str:
    """Return why a suite without failures has another exit code than 0, for the last line; else ""."""
    lost = [one_line(path) for path in paths.values() if path not in written]
    if lost:
        return f"report {lost[0]} was not written" if len(lost) == 1 else f"reports {', '.join(lost)} were not written"
    return f"had problems (exit code {problems.exit_code})" if problems.exit_code else ""


def write_reports(
    paths: Mapping[str, str], results: Iterable[Result], info: SuiteInfo, problems: SuiteProblems
) -> list[str]:
    """Write reports, and return the written paths. A failed report is a problem of the suite.

    ``results`` is iterated several times.
    """
    written: list[str] = []
    for name, path in paths.items():
        try:
            written += _WRITERS[name](path, results, info)
        except FileError as error:
            problems.failed(error)
    return written
