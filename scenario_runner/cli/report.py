"""``scenario-runner report JOURNAL…``: show, merge and compare the results of suites."""

from __future__ import annotations

import argparse
import os
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

from scenario_runner.cli.messages import write
from scenario_runner.cli.suite_display import verdict_line
from scenario_runner.cli.test_options import report_paths, write_reports
from scenario_runner.diagnostics import Diagnostic
from scenario_runner.errors import ScenarioRunnerError
from scenario_runner.suite.merging import MergedJournals
from scenario_runner.suite.problems import SuiteProblems, refuse
from scenario_runner.suite.reports.text import SuiteInfo, headline, missing_tools, seconds_text
from scenario_runner.suite.verdicts import compare, write_tables
from scenario_runner.text import one_line

_MOST_SHOWN: Final = 50


def main(options: argparse.Namespace) -> int:
    """Show the results of journals.

    Returns 0 without unexpected failures (with --compare: without new ones), else 1, or the exit code of what is wrong
    with the journals.
    """

    def show(problem: Diagnostic) -> None:
        write(problem.severity, f"{problem} [{problem.code}]", problem.help)

    problems = SuiteProblems(show, strict=options.strict)
    paths = report_paths(options)
    with problems.together():
        merged = MergedJournals(options.journals, problems)
        incomplete = list(merged.incomplete())
        for file in incomplete:
            if file.path not in merged.unusable:
                problems.found(
                    "SR-SUITE-014", file.path, file.message, "run it again with --resume, which runs the rest"
                )
    if not merged.results:
        help = "a suite that ended before its first result has written it; run it again"
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
    lines = write_reports(paths, merged, info, problems)
    bad = sorted(id for id, result in merged.results.items() if result.is_bad)
    if options.compare is not None:
        bad = _compare(options.compare, merged, problems)
    else:
        _show_first(bad, lambda name: headline(merged.results[name]))
    counts = Counter(result.verdict for result in merged.results.values())
    if counts:
        print(", ".join(f"{count} {verdict}" for verdict, count in counts.most_common()))
    for line in lines:
        print(one_line(line))
    ended = incomplete[0].ended if incomplete else "not run" if not_run else "incomplete" if lacking else ""
    print(verdict_line(len(bad), len(merged.results), ended))
    return 1 if bad else problems.exit_code


def _show_first(entries: Sequence[str], text: Callable[[str], str], indent: str = "") -> None:
    """Print the first of many entries."""
    for entry in entries[:_MOST_SHOWN]:
        print(indent + text(entry))
    if len(entries) > _MOST_SHOWN:
        print(f"{indent}and {len(entries) - _MOST_SHOWN} more")


def _compare(old: str, merged: MergedJournals, problems: SuiteProblems) -> list[str]:
    """Print what has changed since an older journal; the items that are failures only now."""
    changes = compare(MergedJournals([old], problems).rows(), merged.rows())
    verdicts = {"new failures": changes.new_failures, "fixed": changes.fixed, "changed": changes.changed}
    parts: dict[str, Sequence[str]] = {
        title: [f"{change.id}: {change.before or 'new'} -> {change.after}" for change in changed]
        for title, changed in verdicts.items()
    }
    parts[f"slower, where the typical item takes {changes.factor:.2f} times as long"] = [
        f"{item.id}: {seconds_text(item.before)} -> {seconds_text(item.after)}, {item.after / item.before:.1f} times"
        for item in changes.slower
    ]
    parts |= {"new items": changes.added, "items without a result now": changes.removed}
    for title, lines in parts.items():
        if lines:
            print(f"{title} ({len(lines)}):")
            _show_first(lines, one_line, "  ")
    if not any(parts.values()):
        print("nothing has changed")
    return [change.id for change in changes.new_failures]


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
