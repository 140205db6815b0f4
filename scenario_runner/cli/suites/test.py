"""``scenario-runner test PATH…``: run scenarios with expectations, isolated from each other, and judge them."""

from __future__ import annotations

import os
import time
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext, suppress
from functools import partial
from importlib.util import find_spec
from itertools import chain, islice
from socket import gethostname
from typing import TYPE_CHECKING, Final

from scenario_runner.cli.arguments import DEMO, DEPENDENCIES, shared_arguments
from scenario_runner.cli.options import ITEM_TIMEOUT_S
from scenario_runner.cli.suites.report import problem_text, report_paths, write_reports
from scenario_runner.cli.suites.suite_display import SuiteDisplay, verdict_line
from scenario_runner.cli.watch import watch_suite
from scenario_runner.errors import FileError, MissingToolError, ScenarioRunnerError, UsageError, error_class
from scenario_runner.errors.installation import own_version
from scenario_runner.errors.text import counted
from scenario_runner.processes.temporary import temporary_folder
from scenario_runner.shaders.compilers.search import find_validator
from scenario_runner.suite.discovery import Discovery, check_paths, listed
from scenario_runner.suite.hashes import program_hash
from scenario_runner.suite.journal import FILE_NAME, End, Ended, Header, Journal, MergedJournals, header
from scenario_runner.suite.outcomes import EvaluationOptions, Item, Result, SuiteProblems, refuse
from scenario_runner.suite.reports.summary import Repeat, SuiteInfo, missing_tools
from scenario_runner.suite.suite_run import (
    Limits,
    Lists,
    Session,
    given_patterns,
    read_baselines,
    read_patterns,
    selected,
)
from scenario_runner.suite.suite_workers import SuiteWork, SuiteWorkers, rules_of, suite_options
from scenario_runner.suite.verdicts_and_retries import RetryRules, not_run, write_tables

if TYPE_CHECKING:
    from scenario_runner.suite.cluster_workers import ClusterWorkers

UNEXPECTED: Final = 1
"""The exit code for unexpected failures."""

# Before the first result, the suite checks the expectations of so many items: all, in small suites.
_CHECKED_AHEAD: Final = 1000
# Arguments of Runner that WorkerOptions have already.
_WORKER_ARGUMENTS: Final = ("device", "timeout_s")
_EMPTY_SUITE: Final = "SR-SUITE-009"
_OnResults = Callable[[MergedJournals, SuiteInfo, list[str]], object]


def main(options: Namespace) -> int:
    """Run a suite.

    Return 0 if all results are expected, 1 for unexpected results, or the exit code of a problem in the suite itself.
    """
    settle(options)
    for package in DEPENDENCIES:  # no worker starts without them
        if find_spec(package) is None:
            raise ModuleNotFoundError(name=package)
    results: AbstractContextManager[str] = temporary_folder() if options.reports or options.watch else nullcontext("")
    if options.results is not None:
        results = nullcontext(os.path.abspath(options.results))
    with results as folder:
        if options.watch:
            watch_suite(options, lambda kept: run_suite(options, folder, kept))
        return run_suite(options, folder)


def run_suite(
    options: Namespace, folder: str, kept: list[SuiteWorkers] | None = None, on_results: _OnResults | None = None
) -> int:
    """Run a suite with settled options. The journal goes to ``folder``.

    At the end, ``on_results`` is called with all results, facts about the suite, and report paths.
    """
    with SuiteDisplay(verbose=options.verbose, quiet=options.quiet, annotations=options.annotations) as display:
        return _Suite(options, folder, display, kept, on_results).run()


def settle(options: Namespace) -> None:
    """Check the options of ``test``. Add ``repeating``, the options that repeat an item, and ``reports``, the paths.

    Raises UsageError and FileError.
    """
    _check(options)
    check_paths(options.paths)
    # verdicts depend on these lists, and names in the lists on --root
    lists = [(f"--{name}", os.path.abspath(path)) for name in ("baseline", "flakes") for path in getattr(options, name)]
    lists.append(("--root", os.path.abspath(options.root)))
    options.reports = report_paths(options)
    if options.device is not None:
        options.devices = (options.device,)
    options.repeating = Repeat(options.repeated_words, tuple(lists), options.devices, options.run_words)


def _check(options: Namespace) -> None:
    """Raise UsageError for options that contradict each other."""
    start, step = options.fraction_start, options.fraction
    has_results = options.results is not None
    mistakes = {
        "no scenario, folder or list was given: name it before options that take several values": not options.paths,
        f"--fraction-start is {start}, expected at most --fraction ({step})": start > step,
        "--demo and PATH or --root name two suites": options.demo and options.paths != [DEMO],
        "--demo and --update: the expectations of the demo cannot change": options.demo and options.update,
        "--resume needs --results, the folder of the run before": options.resume and not has_results,
        "--failed-first needs --results, the folder of the run before": options.failed_first and not has_results,
        "--dry-run belongs to --update; --list shows the chosen scenarios": options.dry_run and not options.update,
        "--update writes expectations on this machine, --cluster runs on others": options.update and options.cluster,
        "--update and --results contradict each other: give one of them": options.update and has_results,
        "--watch and --cluster: --watch runs scenarios on this machine only": options.watch and options.cluster,
        "--watch and --list or --update contradict each other": options.watch and (options.list or options.update),
        "--device and --devices were given; --devices takes one or several": options.device and options.devices,
        "standard input was given twice": options.paths.count("-") > 1,
    }
    for message, is_made in mistakes.items():
        if is_made:
            raise UsageError(message, help="scenario-runner test --help shows all options")


def _title(path: str) -> str:
    """Return the report heading for a path. For '.' the heading is the folder's name."""
    return os.path.basename(os.path.abspath(path)) if os.path.normpath(path) in (".", "..") else path


def _validator_key() -> str:
    """Return the path, size and time of spirv-val; empty if shaders are not checked, or if each item reports why."""
    with suppress(ScenarioRunnerError):
        validator = find_validator()
        return validator.identity if validator is not None else ""
    return ""


class _Suite:
    """A suite run. Create an object, then call `run` once.

    ``folder`` gets a journal and files about failures; "" means neither. The suite takes workers from ``kept`` and puts
    them back at the end, except after an error.
    """

    def __init__(
        self,
        options: Namespace,
        folder: str,
        display: SuiteDisplay,
        kept: list[SuiteWorkers] | None,
        on_results: _OnResults | None,
    ) -> None:
        self._options = options
        self._on_results = on_results
        self._folder = folder
        self._display = display
        self._problems = SuiteProblems(display.problem, strict=options.strict)
        self._discovery = Discovery(options.root, self._problems)
        self._kept_workers = kept
        self._clock_start_s = time.perf_counter()
        self._total: int | None = None  # the number of items, once known
        self._info = SuiteInfo(
            title=" ".join(map(_title, options.paths)),
            started=time.time(),
            host=gethostname(),
            version=own_version(),
            command=("scenario-runner", "test", *options.argv),
            folder=os.getcwd(),
            is_temporary=options.results is None,
            repeat=lambda result: options.repeating,
        )
        runner = {name: value for name, value in shared_arguments(options).items() if name not in _WORKER_ARGUMENTS}
        self._worker_options = suite_options(
            SuiteWork(
                options=EvaluationOptions(folder or None, options.max_evidence << 20, options.require_expectations),
                runner=runner,
            ),
            RetryRules(options.retries, options.repeat),
            timeout_s=options.timeout or ITEM_TIMEOUT_S,
            timeout_origin="the default of --timeout" if options.timeout is None else "--timeout",
            devices=options.devices,
            jobs=options.jobs or 0,
            core_dumps=options.core_dumps,
        )
        self._devices: tuple[tuple[str, str], ...] = ()
        self._drivers: dict[str, None] = {}
        self._lacking = ""  # why the first unsupported item cannot run
        self._without_tool: list[Result] = []
        self._written: list[str] = []  # the paths of reports

    def run(self) -> int:
        """Run the suite, and return the exit code."""
        options = self._options
        try:
            with self._problems.together():
                baseline = read_baselines(options.baseline, self._problems)
                skips, flakes = (read_patterns(paths, self._problems) for paths in (options.skips, options.flakes))
                self._lists = Lists(baseline, skips, flakes, given_patterns(options.include_tests, self._problems))
                earlier = self._read_earlier()
                items = self._select_items(earlier)
                ahead = list(items if options.strict else islice(items, _CHECKED_AHEAD + 1))
                if options.strict:
                    self._report_unmatched()
        except UsageError as error:
            empty = [problem.message for problem in error.problems if problem.code == _EMPTY_SUITE]
            if empty and not options.list:  # reports tell that the suite is empty
                write_reports(options.reports, (), self._info._replace(incomplete=empty[0]), self._problems)
            if not (empty and self._discovery.has_refused):  # discovery has printed the refused files
                raise
            return error.exit_code
        if not (options.list or options.update):
            return self._run_items(ahead, items, earlier)
        chosen = (item for item in chain(ahead, items) if not self._lists.skips.match(item.id))
        if options.update:
            from scenario_runner.cli.suites.test_update import update  # imports numpy and pydantic

            return update(options, chosen, self._worker_options, self._problems) or self._problems.exit_code
        for item in chosen:
            print(listed(item))
        self._report_unmatched()
        return self._problems.exit_code

    def _read_earlier(self) -> MergedJournals | None:
        """Read the previous run's results, if any, for --resume and --failed-first."""
        options = self._options
        path = os.path.join(options.results or self._folder, FILE_NAME)
        if not (options.resume or options.failed_first) or not os.path.exists(path) or not os.path.getsize(path):
            return None
        try:
            return MergedJournals([path], self._problems)
        except FileError as error:  # the suite ignores the damaged journal, and begins a new journal
            if options.strict:
                raise
            self._problems.failed(error)
            return None

    def _select_items(self, earlier: MergedJournals | None) -> Iterator[Item]:
        """Yield the selected items. Raises UsageError if there are none."""
        options = self._options
        results = earlier.results if options.failed_first and earlier is not None else {}
        first = {id for id, result in results.items() if result.is_bad}
        included = 0  # items that match --include-tests, before --fraction takes a part

        def counting() -> Iterator[Item]:
            nonlocal included
            for item in self._lists.included(self._discovery.items(options.paths)):
                included += 1
                yield item

        is_empty = True
        for item in selected(counting(), options.fraction, options.fraction_start, options.shuffle, first):
            is_empty = is_empty and self._lists.skips.match(item.id)
            yield item
        if not self._discovery.ids:
            message = f"no scenario was found in {', '.join(map(repr, options.paths))}"
            help = 'name scenarios or models, or folders with scenarios (.json files with "commands" or "resources")'
            refuse(_EMPTY_SUITE, None, message, help)
        reason = f"none of {counted(len(self._discovery.ids), 'scenario')} is selected"
        if not included or (is_empty and options.fraction == 1):
            reason += ": --skips matches all" if included else " by --include-tests"
            refuse(_EMPTY_SUITE, None, reason, "to print all names: --list alone")
        if is_empty:
            self._display.note("note", f"this fraction of {counted(included, 'scenario')} has no scenario to run")

    def _run_items(self, ahead: Sequence[Item], items: Iterator[Item], earlier: MergedJournals | None) -> int:
        options = self._options
        if len(ahead) <= _CHECKED_AHEAD or options.strict:
            self._total = len(ahead)
        kept = earlier if options.resume else None
        journal, header = self._journal(resume=kept is not None)
        session = Session(
            self._lists,
            rules_of(self._worker_options),
            Limits(options.fail_fast, options.max_failures, options.strict_environment),
            self._take_result,
            journal=journal,
            program_hash=header.program_hash if header is not None else "",
            earlier={} if kept is None else kept.results,
        )
        ended: Ended = "complete"
        try:
            with ExitStack() as stack:
                workers = self._workers()
                stack.enter_context(workers)
                if options.strict:
                    self._check_expectations(ahead)
                if kept is not None and header is not None and not options.resume_anyway:
                    for difference in kept.forget_void(header, workers.find_devices()):
                        self._display.note("warning", difference, "to keep results of unchanged files: --resume-anyway")
                self._display.start(self._total)
                try:
                    session.run(self._count_items(ahead, items), workers)
                finally:
                    self._devices = tuple((device.uuid, device.name) for device in workers.devices)
                if self._kept_workers is not None and isinstance(workers, SuiteWorkers):
                    stack.pop_all()
                    self._kept_workers.append(workers)
            if session.is_complete:
                self._report_unmatched()
            else:
                ended = "stopped"
        except KeyboardInterrupt:
            ended = "interrupted"
            raise
        except BaseException:
            ended = "stopped by an error"
            raise
        finally:
            nothing = self._finish(session, journal, ended)
        if nothing:
            self._problems.found("SR-SUITE-015", None, nothing, "'scenario-runner doctor' shows what this machine has")
        return UNEXPECTED if session.bad else self._problems.exit_code

    def _finish(self, session: Session, journal: Journal | None, ended: Ended) -> str:
        """End the journal, write the reports and print the last lines. Return why nothing ran, or ""."""
        if journal is not None:
            try:
                journal.write(End(ended, self._total, dict(self._devices)))
            except FileError as error:
                if ended != "stopped by an error":  # else the error is printed already
                    self._problems.failed(error)
            journal.close()
        lacking = missing_tools(self._without_tool)
        if lacking is not None:
            self._problems.failed(lacking)
        nothing = not_run((row.verdict for row in session.rows.values()), len(session.rows), self._lacking)
        lines = self._write_results(session, journal, lacking)
        word = ended if ended != "complete" else "not run" if nothing else "incomplete" if lacking else ""
        problem = problem_text(self._options.reports, self._written, self._problems)
        self._display.end(*lines, verdict_line(session.bad, len(session.rows), word, problem))
        return nothing

    def _take_result(self, result: Result) -> None:
        """Show a result, and note facts for the end of the suite."""
        self._display.finished(result, self._info.repeat_commands(result) if result.is_bad else ())
        if result.verdict == "MissingTool":
            self._without_tool.append(result)
        if result.verdict == "NotSupported" and result.last is not None:
            self._lacking = self._lacking or result.last.reason
        if result.driver:
            self._drivers[result.driver] = None

    def _workers(self) -> SuiteWorkers | ClusterWorkers:
        note = partial(self._display.note, "warning")
        if self._kept_workers:
            workers = self._kept_workers.pop()
            workers.listen(self._display.started, note)
            return workers
        if self._options.cluster is None:
            pool = vars(self._options).pop("pool", None)  # the first run of --watch takes it
            return SuiteWorkers(self._worker_options, on_start=self._display.started, on_note=note, pool=pool)
        if find_spec("distributed") is None:
            message = "--cluster needs the package 'distributed', which is not installed"
            refuse("SR-CLUSTER-001", None, message, "pip install distributed")
        from scenario_runner.suite.cluster_workers import ClusterWorkers

        return ClusterWorkers(self._options.cluster, self._worker_options, self._problems, on_note=note)

    def _count_items(self, ahead: Sequence[Item], items: Iterable[Item]) -> Iterator[Item]:
        """Yield all items, then tell the display the total. ``ahead`` are the first items."""
        first = ahead[: self._options.jobs or 1]
        yield from first
        if len(ahead) <= _CHECKED_AHEAD and not self._options.strict:
            self._check_expectations(ahead)  # the first items run meanwhile, and have no results yet
        count = len(first)
        for item in chain(ahead[count:], items):
            count += 1
            yield item
        self._total = count
        self._display.start(count)

    def _check_expectations(self, items: Sequence[Item]) -> None:
        """Report problems in expectations before any result: in small suites, or with --strict.

        Items with such problems get the verdict Missing. In larger suites, workers check expectations with each item.
        """
        from scenario_runner.suite.expectations.validation import check  # imports numpy and pydantic

        problems = dict.fromkeys(problem for item in items for problem in check(item))  # items share suite.json
        # the last lines name missing tools
        item_problems = [problem for problem in problems if not issubclass(error_class(problem.code), MissingToolError)]
        self._problems.show_all(item_problems)

    def _journal(self, *, resume: bool) -> tuple[Journal | None, Header | None]:
        if not self._folder:
            return None, None
        options = self._worker_options
        runner, is_kept = dict(options.task_options.runner), self._options.results is not None
        if is_kept:
            runner["spirv-val"] = _validator_key()
        if self._options.require_expectations:
            runner["require-expectations"] = True
        begun = header(
            program_hash(runner) if is_kept else "",  # no later run takes results from a temporary journal
            command=self._info.command,
            runner=runner,
            repeat=self._options.repeating,
            items=self._total,
            timeout_s=options.timeout_s,
        )
        journal = Journal(self._folder, resume=resume)
        journal.write(begun)
        return journal, begun

    def _write_results(self, session: Session, journal: Journal | None, lacking: MissingToolError | None) -> list[str]:
        """Write the tables and reports, and return lines about them."""
        options = self._options
        lines = []
        if session.taken_over:
            lines.append(f"{counted(session.taken_over, 'result')} kept from the run before")
        if journal is not None and journal.is_lost:  # the folder and all results are gone
            return lines
        try:
            if options.results is not None:
                write_tables(options.results, session.rows)
                lines.append(f"results: {options.results}")
        except ScenarioRunnerError as error:
            self._problems.failed(error)
        if journal is None or not (options.reports or self._on_results):
            return lines
        try:
            merged = MergedJournals([journal.path], self._problems)
        except ScenarioRunnerError as error:
            self._problems.failed(error)
            return lines
        merged.results = {id: result for id, result in merged.results.items() if id in session.rows}
        messages = [file.message for file in merged.incomplete()]
        messages += [lacking.problems[0].message] if lacking else []
        info = self._info._replace(
            seconds=time.perf_counter() - self._clock_start_s,
            devices=self._devices,
            drivers=tuple(self._drivers),
            results=self._folder,
            incomplete="; ".join(messages) or merged.not_run(),
        )
        self._written = write_reports(options.reports, merged, info, self._problems)
        if self._on_results is not None:
            self._on_results(merged, info, self._written)
        return [*lines, *(f"report: {path}" for path in self._written)]

    def _report_unmatched(self) -> None:
        for entry, place in self._lists.unmatched():
            path, message = place.path or "--include-tests", f"{entry!r} matches no scenario of the suite"
            self._problems.found("SR-SUITE-004", path, message, line=place.line, severity="warning")
