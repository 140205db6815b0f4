"""What the scenarios of one run of pytest share: the lists, and the processes that run them."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from scenario_runner.errors import ScenarioRunnerError
from scenario_runner.suite.discovery import Discovery
from scenario_runner.suite.lists import Lists, read_baselines, read_patterns
from scenario_runner.suite.problems import SuiteProblems
from scenario_runner.suite.records import Item, Outcome, Result
from scenario_runner.suite.repeating import Repeat
from scenario_runner.suite.reports.suite_info import SuiteInfo
from scenario_runner.suite.running.options import WorkerOptions
from scenario_runner.suite.verdicts import Rules

if TYPE_CHECKING:
    from scenario_runner.suite.evaluation_options import EvaluationOptions
    from scenario_runner.suite.running.workers import Workers


class Session:
    """Life cycle: made when pytest starts; the first scenario starts the supervisor and a worker; `close`.

    Names of scenarios are relative to pytest's root directory, as its node ids are. Raises ScenarioRunnerError for
    lists that cannot be used, and pytest.UsageError for other options.
    """

    def __init__(self, config: pytest.Config) -> None:
        device = config.getoption("--scenario-device") or config.getini("scenario_device")
        results = config.getoption("--scenario-results") or config.getini("scenario_results")
        self._config = config
        self._marks: dict[str, pytest.MarkDecorator] = {}
        problems = SuiteProblems(lambda problem: None, strict=True)
        with problems.together():
            self._lists = Lists(
                read_baselines([str(path) for path in config.getini("scenario_baseline")], problems),
                read_patterns([str(path) for path in config.getini("scenario_skips")], problems),
                read_patterns([str(path) for path in config.getini("scenario_flakes")], problems),
            )
        self._rules = Rules()
        self._discovery = Discovery(str(config.rootpath), problems)
        self._results = os.path.abspath(config.rootpath / results) if results else None
        self._timeout_s = _seconds(config.getini("scenario_timeout"))
        self._devices = (str(device),) if device else ()
        self._workers: Workers | None = None
        self._refused: ScenarioRunnerError | None = None
        repeat = Repeat(_options(self._timeout_s), tuple(_lists(config)), self._devices)
        self.info = SuiteInfo(
            folder=str(config.invocation_params.dir),
            results=self._results or "",
            repeat=lambda result: repeat,
        )

    def item(self, path: Path) -> Item | None:
        """The item of a scenario file; None for one that was found before, or whose name lists cannot hold."""
        return next(self._discovery.items([str(path)]), None)

    def mark(self, name: str) -> pytest.MarkDecorator:
        """A mark for items. Each is registered once, as --strict-markers wants it: pytest goes through all of them for
        each that is new to it."""
        if name not in self._marks:
            self._config.addinivalue_line("markers", f"{name}: scenarios in a folder of this name")
            self._marks[name] = getattr(pytest.mark, name)
        return self._marks[name]

    def is_skipped(self, item: Item) -> bool:
        """Whether a list says that it is not run."""
        return self._lists.skips.match(item.id)

    def run(self, item: Item) -> Result:
        """Run an item, again where its first result is unexpected, and judge it. Raises ScenarioRunnerError."""
        expected = self._lists.expected(item.id)

        def again(item: Item, attempts: tuple[Outcome, ...]) -> bool:
            return self._rules.again(expected, attempts)

        finished = self._started().run_one(item, again)
        verdict = self._rules.verdict(expected, finished.attempts)
        return Result(item, verdict, finished.attempts, finished.device, finished.driver)

    def _started(self) -> Workers:
        """The workers. What refused to start is not tried again for each item."""
        if self._refused is not None:
            raise self._refused
        if self._workers is None:
            from scenario_runner.suite.running.workers import Workers

            options = WorkerOptions(
                devices=self._devices,
                jobs=1,
                timeout_s=self._timeout_s,
                timeout_origin="scenario_timeout",
                task_options=_task_options(self._results),
            )
            try:
                self._workers = Workers(options)
            except ScenarioRunnerError as error:
                self._refused = error
                raise
        return self._workers

    def close(self) -> None:
        """End the processes."""
        workers, self._workers = self._workers, None
        if workers is not None:
            workers.close()


_KEY: Final = pytest.StashKey[Session]()


def begin(config: pytest.Config) -> None:
    """Make the session of a run. Raises pytest.UsageError."""
    try:
        config.stash[_KEY] = Session(config)
    except ScenarioRunnerError as error:
        raise pytest.UsageError(str(error)) from None


def session_of(config: pytest.Config) -> Session:
    """The session of a run that collects scenarios."""
    return config.stash[_KEY]


def end(config: pytest.Config) -> None:
    """Close the session of a run, if there is one."""
    session = config.stash.get(_KEY, None)
    if session is not None:
        session.close()


def _task_options(results_folder: str | None) -> EvaluationOptions | None:
    """What a worker is told of each item. Nothing where there is no folder: the import takes 0.2 s."""
    if results_folder is None:
        return None
    from scenario_runner.suite.evaluation_options import EvaluationOptions

    return EvaluationOptions(results_folder=results_folder)


def _options(timeout_s: float) -> tuple[str, ...]:
    """The options of the program that do the same."""
    return () if timeout_s == WorkerOptions().timeout_s else (f"--timeout={timeout_s:.12g}",)


def _lists(config: pytest.Config) -> Iterator[tuple[str, str]]:
    for name in ("baseline", "flakes"):
        yield from ((f"--{name}", str(path)) for path in config.getini(f"scenario_{name}"))
    yield "--root", str(config.rootpath)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < math.inf:
        raise pytest.UsageError(f"scenario_timeout is {text!r}, expected seconds above 0")
    return seconds
