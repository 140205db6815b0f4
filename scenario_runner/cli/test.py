"""``scenario-runner test PATH…``: run scenarios with expectations, isolated from each other, and judge them."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from itertools import chain, islice
from socket import gethostname
from typing import TYPE_CHECKING, Final

from scenario_runner import __version__
from scenario_runner.cli import DEPENDENCIES
from scenario_runner.cli.messages import set_up_logging
from scenario_runner.cli.options import ITEM_TIMEOUT_S
from scenario_runner.cli.suite_display import SuiteDisplay, verdict_line
from scenario_runner.cli.test_options import report_paths, runner_arguments, settle, write_reports
from scenario_runner.diagnostics import Diagnostic
from scenario_runner.errors import FileError, MissingToolError, ScenarioRunnerError, UsageError, error_class
from scenario_runner.suite.discovery import Discovery, listed
from scenario_runner.suite.hashes import program_hash
from scenario_runner.suite.journal import FILE_NAME, End, Ended, Header, Journal, header
from scenario_runner.suite.lists import Lists, Selection, given_patterns, read_baselines, read_patterns
from scenario_runner.suite.merging import EarlierResults, MergedJournals
from scenario_runner.suite.problems import SuiteProblems, refuse
from scenario_runner.suite.records import EvaluationOptions, Item, Result
from scenario_runner.suite.reports.text import SuiteInfo, missing_tools
from scenario_runner.suite.running.options import WorkerOptions
from scenario_runner.suite.running.workers import Workers
from scenario_runner.suite.session import Limits, Session
from scenario_runner.suite.verdicts import Rules, not_run, write_tables
from scenario_runner.temporary import temporary_folder
from scenario_runner.text import counted

if TYPE_CHECKING:
    from scenario_runner.suite.cluster_workers import ClusterWorkers

UNEXPECTED: Final = 1
"""The exit code where results are unexpected failures."""

# So many items are found before the first one runs: their expectations are checked, and the end may be known.
_LOOKED_AHEAD: Final = 1000
_EMPTY: Final = "SR-SUITE-009"


def main(options: argparse.Namespace) -> int:
    """Run a suite.

    Returns 0 where every result is expected, 1 where some are not, or the exit code of what is wrong with the suite
    itself.
    """
    settle(options)
    for package in DEPENDENCIES:  # without one of them no worker would start
        if find_spec(package) is None:
            raise ModuleNotFoundError(name=package)
    set_up_logging(options.log_level)
    with SuiteDisplay(verbose=options.verbose, quiet=options.quiet) as display:

        def show(problem: Diagnostic) -> None:
            display.note(problem.severity, f"{problem} [{problem.code}]", problem.help)

        return _Suite(options, display, SuiteProblems(show, strict=options.strict)).run()


def _title(path: str) -> str:
    """A PATH as a heading of reports: '.' is the name of the folder."""
    return os.path.basename(os.path.abspath(path)) if os.path.normpath(path) in (".", "..") else path


class _Suite:
    """Life cycle: made; `run` once."""

    def __init__(self, options: argparse.Namespace, display: SuiteDisplay, problems: SuiteProblems) -> None:
        self._options = options
        self._display = display
        self._problems = problems
        self._clock_start_s = time.perf_counter()
        self._total: int | None = None  # of the items, once it is known
        self._included = 0  # items that --include-tests lets through, of which --fraction takes a share
        self._folder = ""  # of the results; a temporary one where reports need it and nobody named one
        self._report_paths = report_paths(options)
        self._info = SuiteInfo(
            title=" ".join(map(_title, options.paths)),
            started=time.time(),
            host=gethostname(),
            version=__version__,
            command=("scenario-runner", "test", *options.argv),
            folder=os.getcwd(),
            is_temporary=options.results is None,
            repeat=lambda result: options.repeating,
        )
        self._devices: tuple[tuple[str, str], ...] = ()
        self._drivers: dict[str, None] = {}
        self._lacking = ""  # what the first item needs that is not supported
        self._without_tool: list[Result] = []

    def run(self) -> int:
        """Run it; the exit code."""
        options = self._options
        with ExitStack() as stack:
            with self._reporting_emptiness(), self._problems.together():
                lists = Lists(
                    read_baselines(options.baseline, self._problems),
                    read_patterns(options.skips, self._problems),
                    read_patterns(options.flakes, self._problems),
                    given_patterns(options.include_tests, self._problems),
                )
                earlier = self._earlier()
                items = self._items(lists, earlier)
                ahead = list(items if options.strict else islice(items, _LOOKED_AHEAD + 1))
                if options.strict:
                    self._report_unmatched(lists)
            if options.list:
                for item in chain(ahead, items):
                    if not lists.skips.match(item.id):
                        print(listed(item))
                self._report_unmatched(lists)
                return self._problems.exit_code
            if options.update:
                from scenario_runner.cli.test_update import update  # heavy: numpy and pydantic

                chosen = (item for item in chain(ahead, items) if not lists.skips.match(item.id))
                return update(options, chosen, self._worker_options(), self._problems) or self._problems.exit_code
            return self._run(ahead, items, lists, earlier, stack)

    @contextmanager
    def _reporting_emptiness(self) -> Iterator[None]:
        """Write the reports where there is no item, too: they say so."""
        try:
            yield
        except UsageError as error:
            empty = next((problem.message for problem in error.problems if problem.code == _EMPTY), None)
            if empty is not None and not self._options.list:
                write_reports(self._report_paths, (), self._info._replace(incomplete=empty), self._problems)
            raise

    def _earlier(self) -> MergedJournals | None:
        """The results of the run before, where they are asked for and there are any."""
        options = self._options
        if not (options.resume or options.failed_first):
            return None
        path = os.path.join(options.results, FILE_NAME)
        if not os.path.exists(path) or not os.path.getsize(path):
            return None
        try:
            return MergedJournals([path], self._problems)
        except FileError as error:  # what cannot be used does not stop what runs; the journal begins anew
            if options.strict:
                raise
            self._problems.failed(error)
            return None

    def _items(self, lists: Lists, earlier: MergedJournals | None) -> Iterator[Item]:
        """The items of the command line, found as they are asked for. Raises UsageError where there are none."""
        options = self._options

        first: frozenset[str] = frozenset()
        if options.failed_first and earlier is not None:
            first = frozenset(id for id, result in earlier.results.items() if result.is_bad)
        discovery = Discovery(options.root, self._problems)
        selection = Selection(options.fraction, options.fraction_start, options.shuffle, first)
        is_empty = True
        for item in selection.items(self._count_included(lists.included(discovery.items(options.paths)))):
            is_empty = is_empty and bool(lists.skips) and lists.skips.match(item.id)
            yield item
        if not discovery.count:
            names = ", ".join(map(repr, options.paths))
            help = 'name scenario files, or folders with .json files that have "commands" or "resources"'
            refuse(_EMPTY, None, f"no scenario was found in {names}", help)
        reason = f"of {counted(discovery.count, 'scenario')} none is selected"
        if not self._included:
            refuse(_EMPTY, None, f"{reason} by --include-tests", "--list without it prints all names")
        if is_empty and options.fraction == 1:
            refuse(_EMPTY, None, f"{reason}: --skips matches all", "--list without it prints all names")
        if is_empty:
            self._display.note("note", f"nothing runs in this share of {counted(self._included, 'scenario')}")

    def _count_included(self, items: Iterable[Item]) -> Iterator[Item]:
        for item in items:
            self._included += 1
            yield item

    def _run(
        self,
        ahead: Sequence[Item],
        items: Iterator[Item],
        lists: Lists,
        earlier: MergedJournals | None,
        stack: ExitStack,
    ) -> int:
        options = self._options
        if len(ahead) <= _LOOKED_AHEAD or options.strict:
            self._total = len(ahead)
        journal, header = self._journal(stack, resume=options.resume and earlier is not None)
        kept = EarlierResults(earlier) if options.resume and earlier is not None else None
        session = Session(
            lists,
            Rules(options.retries, options.repeat),
            Limits(options.fail_fast, options.max_failures, options.strict_environment),
            self._take,
            journal=journal,
            program_hash=header and header.program_hash,
            earlier=None if kept is None else kept.result,
        )
        ended: Ended = "complete"
        try:
            self._run_items(session, ahead, items, None if options.resume_anyway else kept, header)
            if session.is_complete:
                self._report_unmatched(lists)
            else:
                ended = "stopped"
        except KeyboardInterrupt:
            ended = "interrupted"
            raise
        except BaseException:
            ended = "stopped by an error"
            raise
        finally:
            if journal is not None:
                try:
                    journal.end(End(ended, self._total, dict(self._devices)))
                except FileError as error:
                    if ended != "stopped by an error":  # which says the same
                        self._problems.failed(error)
                journal.close()
            lacking = missing_tools(self._without_tool)
            if lacking is not None:
                self._problems.failed(lacking)
            nothing = not_run((row.verdict for row in session.rows.values()), len(session.rows), self._lacking)
            lines = self._written(session, journal, lacking)
            word = ended if ended != "complete" else "not run" if nothing else "incomplete" if lacking else ""
            self._display.end(*lines, verdict_line(session.bad, len(session.rows), word))
        if nothing:
            self._problems.found("SR-SUITE-015", None, nothing, "'scenario-runner doctor' shows what this machine has")
        return UNEXPECTED if session.bad else self._problems.exit_code

    def _take(self, result: Result) -> None:
        """Show a result, and keep what the end of the suite is about."""
        self._display.finished(result, self._info.repeat_commands(result) if result.is_bad else ())
        if result.verdict == "MissingTool":
            self._without_tool.append(result)
        if result.verdict == "NotSupported" and result.last is not None:
            self._lacking = self._lacking or result.last.reason
        if result.driver:
            self._drivers[result.driver] = None

    def _run_items(
        self,
        session: Session,
        ahead: Sequence[Item],
        items: Iterator[Item],
        kept: EarlierResults | None,
        header: Header | None,
    ) -> None:
        with self._workers(session) as workers:
            self._check_expectations(ahead)  # while the process that workers are forked from imports what they need
            if kept is not None and header is not None:
                for difference in kept.compare(header, workers.find_devices()):
                    self._display.note("warning", difference, "--resume-anyway keeps what is of the same files")
            self._display.start(self._total)
            try:
                session.run(self._counted(chain(ahead, items)), workers)
            finally:
                self._devices = tuple((device.uuid, device.name) for device in workers.devices)

    def _workers(self, session: Session) -> Workers | ClusterWorkers:
        def note(text: str) -> None:
            self._display.note("warning", text)

        if self._options.cluster is not None:
            from scenario_runner.suite.cluster_workers import ClusterWorkers

            options = self._worker_options()
            return ClusterWorkers(
                self._options.cluster, options, session.rules, session.lists.expected, self._problems, on_note=note
            )

        return Workers(
            self._worker_options(), on_start=lambda item, worker: self._display.started(item, str(worker)), on_note=note
        )

    def _worker_options(self) -> WorkerOptions:
        options = self._options

        return WorkerOptions(
            timeout_s=options.timeout or ITEM_TIMEOUT_S,
            timeout_origin="the default of --timeout" if options.timeout is None else "--timeout",
            devices=options.devices,
            jobs=options.jobs or 0,
            runner=runner_arguments(options),
            task_options=EvaluationOptions(self._folder or None, options.max_evidence << 20),
            core_dumps=options.core_dumps,
        )

    def _counted(self, items: Iterable[Item]) -> Iterator[Item]:
        """The items; when there are no more, the display learns how many there were."""
        count = 0
        for item in items:
            count += 1
            yield item
        self._total = count
        self._display.start(count)

    def _check_expectations(self, items: Sequence[Item]) -> None:
        """Say what is wrong with expectations before anything runs, of all items where they are few or with --strict.

        Such items are Missing; in larger suites the expectations of an item are looked at when it runs."""
        if len(items) <= _LOOKED_AHEAD or self._options.strict:
            from scenario_runner.suite.expectations.validation import check  # heavy: numpy and pydantic

            problems = [problem for item in items for problem in check(item)]
            # what this machine lacks is said once, at the end
            self._problems.show_all(
                [problem for problem in problems if not issubclass(error_class(problem.code), MissingToolError)]
            )

    def _journal(self, stack: ExitStack, *, resume: bool) -> tuple[Journal | None, Header | None]:
        """A journal in --results, or in a temporary folder where reports are made of it."""
        options = self._options

        if options.results is not None:
            self._folder = os.path.abspath(options.results)
        elif self._report_paths:
            self._folder = stack.enter_context(temporary_folder())
        else:
            return None, None
        arguments = runner_arguments(options)
        journal = stack.enter_context(Journal(self._folder, resume=resume))
        begun = header(
            program_hash(arguments),
            command=("scenario-runner", "test", *options.argv),
            runner=arguments,
            repeat=options.repeating,
            items=self._total,
            timeout_s=self._worker_options().timeout_s,
        )
        journal.begin(begun)
        return journal, begun

    def _written(self, session: Session, journal: Journal | None, lacking: MissingToolError | None) -> list[str]:
        """Write the tables and reports; what there is to say about them."""
        options = self._options
        lines = []
        if session.taken_over:
            lines.append(f"{counted(session.taken_over, 'result')} of the run before taken over")
        if journal is not None and journal.is_lost:  # nothing is left to report, nor a folder to write to
            return lines
        if options.results is not None:
            try:
                write_tables(options.results, session.rows)
                lines.append(f"results: {options.results}")
            except ScenarioRunnerError as error:
                self._problems.failed(error)
        try:
            if journal is not None and self._report_paths:
                merged = MergedJournals([journal.path], self._problems)
                merged.keep(session.rows)
                messages = [file.message for file in merged.incomplete()]
                messages += [lacking.problems[0].message] if lacking else []
                info = self._info._replace(
                    seconds=time.perf_counter() - self._clock_start_s,
                    devices=self._devices,
                    drivers=tuple(self._drivers),
                    results=self._folder,
                    incomplete="; ".join(messages) or merged.not_run(),
                )
                lines += write_reports(self._report_paths, merged, info, self._problems)
        except ScenarioRunnerError as error:
            self._problems.failed(error)
        return lines

    def _report_unmatched(self, lists: Lists) -> None:
        for entry, place in lists.unmatched():
            where = "--include-tests" if place.path is None else place.path
            message = f"{entry!r} matches no scenario of the suite"
            self._problems.found("SR-SUITE-004", where, message, line=place.line, severity="warning")
