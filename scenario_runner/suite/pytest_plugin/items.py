"""Scenario files as items of pytest, their runs in processes, verdicts as outcomes, and the fixture."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy
import pytest

from scenario_runner.compare.differences import compare
from scenario_runner.compare.wrong_elements import Rule
from scenario_runner.errors import ScenarioRunnerError, UnsupportedError
from scenario_runner.errors.text import one_line, share_of, visible
from scenario_runner.files.input import SCENARIO_FILE
from scenario_runner.processes.jobs import TIMEOUT_S
from scenario_runner.runner import Runner
from scenario_runner.suite.discovery import NOT_SEARCHED, Discovery, is_item
from scenario_runner.suite.outcomes import NOT_RUN, EvaluationOptions, Item, Result, SuiteProblems
from scenario_runner.suite.reports.summary import Repeat, SuiteInfo, details, full_text, headline
from scenario_runner.suite.suite_run import Lists, read_baselines, read_patterns
from scenario_runner.suite.suite_workers import SuiteWork, SuiteWorkers, suite_options
from scenario_runner.suite.verdicts_and_retries import RetryRules
from scenario_runner.view.contents import content_of

if TYPE_CHECKING:
    from scenario_runner.run.result import Result as RunResult
    from scenario_runner.runner import AnyScenario


class Session:
    """The lists, options and worker of a run of pytest. The first scenario starts the pool and the worker.

    Names of scenarios are relative to pytest's root directory, like node ids. Raises ScenarioRunnerError for unusable
    lists, and pytest.UsageError for wrong options.
    """

    def __init__(self, config: pytest.Config) -> None:
        device = config.getoption("--scenario-device") or config.getini("scenario_device")
        results = config.getoption("--scenario-results") or config.getini("scenario_results")
        self._config = config
        self.mark = cache(self._mark)
        problems = SuiteProblems(lambda problem: None, strict=True)
        with problems.together():
            self.lists = Lists(
                read_baselines([*map(str, config.getini("scenario_baseline"))], problems),
                read_patterns([*map(str, config.getini("scenario_skips"))], problems),
                read_patterns([*map(str, config.getini("scenario_flakes"))], problems),
            )
        self.discovery = Discovery(str(config.rootpath), problems)
        self._results = os.path.abspath(config.rootpath / results) if results else None
        self._timeout_s = _seconds(config.getini("scenario_timeout"))
        self._devices = (str(device),) if device else ()
        is_default = self._timeout_s == TIMEOUT_S
        options = () if is_default else (f"--timeout={self._timeout_s:.12g}",)
        lists = [
            (f"--{name}", str(path)) for name in ("baseline", "flakes") for path in config.getini(f"scenario_{name}")
        ]
        repeat = Repeat(options, (*lists, ("--root", str(config.rootpath))), self._devices)
        folder = str(config.invocation_params.dir)
        self.info = SuiteInfo(folder=folder, results=self._results or "", repeat=lambda result: repeat)

    def _mark(self, name: str) -> pytest.MarkDecorator:
        """Return a mark for items, after registering it for --strict-markers. The caller caches marks."""
        self._config.addinivalue_line("markers", f"{name}: scenarios in a folder of this name")
        mark: pytest.MarkDecorator = getattr(pytest.mark, name)
        return mark

    def run(self, item: Item) -> Result:
        """Run an item, with retries after an unexpected status, and judge it. Raises ScenarioRunnerError."""
        return self._workers.run_one(item, self.lists.expected(item.id))

    @cached_property
    def _workers(self) -> SuiteWorkers:
        work = SuiteWork(options=EvaluationOptions(self._results))
        options = suite_options(work, RetryRules(), devices=self._devices, jobs=1)
        return SuiteWorkers(options._replace(timeout_s=self._timeout_s, timeout_origin="scenario_timeout"))

    def close(self) -> None:
        """End the processes."""
        if "_workers" in self.__dict__:
            self._workers.close()


_KEY: Final = pytest.StashKey[Session]()


def begin(config: pytest.Config) -> None:
    """Open the session of a pytest run; pytest closes it at the end. Raises pytest.UsageError for wrong options."""
    try:
        session = config.stash[_KEY] = Session(config)
    except ScenarioRunnerError as error:
        raise pytest.UsageError(str(error)) from None
    config.add_cleanup(session.close)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < math.inf:
        raise pytest.UsageError(f"scenario_timeout is {text!r}, expected seconds above 0")
    return seconds


# Marks with a meaning for pytest.
_PYTEST_MARKS: Final = frozenset(
    {"filterwarnings", "parametrize", "skip", "skipif", "tryfirst", "trylast", "usefixtures", "xfail"}
)


class ScenarioWarning(pytest.PytestWarning):
    """Warning about a metric beyond a bound."""


class ScenarioFlakeWarning(ScenarioWarning):
    """Warning about a scenario that passed only in another attempt."""


class ScenarioFailure(Exception):  # noqa: N818  (a failure of a scenario, not an error)
    """Unexpected failure of a scenario."""

    def __init__(self, result: Result) -> None:
        super().__init__(headline(result))
        self.result = result


class ScenarioFile(pytest.File):
    """A scenario file with a single item, or an item for each combination of parameters."""

    def collect(self) -> Iterator[ScenarioItem]:
        """Yield items with the name of the file, or of the folder for a scenario.json."""
        # no item if the scenario was found before, or if lists cannot hold the name
        for scenario in self.config.stash[_KEY].discovery.items([str(self.path)]):
            name = self.path.parent.name if self.path.name == SCENARIO_FILE else self.path.stem
            yield ScenarioItem.from_parent(self, name=one_line(name + scenario.variant), scenario=scenario)


def collector_of(file_path: Path, parent: pytest.Collector) -> ScenarioFile | None:
    """Return the collector for a scenario, an unreadable file, or a file in the command line."""
    if not parent.session.isinitpath(file_path):
        with suppress(OSError):  # the run reports an unreadable file
            if not (_is_searched(file_path.parent, parent.session) and is_item(str(file_path))):
                return None
    return ScenarioFile.from_parent(parent, path=file_path)


def _is_searched(folder: Path, session: pytest.Session) -> bool:
    """Return whether the search may enter a folder: no folder on the path from a named folder is excluded."""
    for parent in (folder, *folder.parents):
        if session.isinitpath(parent):
            return True
        if (parent / NOT_SEARCHED).exists():
            return False
    return True


class ScenarioItem(pytest.Item):
    """A scenario with expectations. The marks are 'scenario' and the names of all folders."""

    def __init__(self, *, scenario: Item, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.scenario = scenario
        for name in ("scenario", *_marks(scenario.id.removesuffix(scenario.variant))):
            self.add_marker(self._suite.mark(name))

    @property
    def _suite(self) -> Session:
        return self.config.stash[_KEY]

    def runtest(self) -> None:
        """Run the scenario in a worker, and end according to the verdict."""
        if self._suite.lists.skips.match(self.scenario.id):
            raise _skipped("scenario_skips names it")
        result = self._suite.run(self.scenario)
        properties = {"verdict": result.verdict, "device": result.device, "driver": result.driver}
        self.user_properties += [(name, visible(value)) for name, value in properties.items() if value]
        last = result.last
        if last is not None and last.output:
            self.add_report_section("call", "stderr", visible(last.output))
        self._end(result, one_line(last.reason) if last is not None else "")

    def _end(self, result: Result, reason: str) -> None:
        if result.is_bad:
            raise ScenarioFailure(result)
        if result.verdict in NOT_RUN:
            raise _skipped(reason or result.verdict)
        if result.verdict in ("ExpectedFail", "KnownFlake"):
            pytest.xfail(f"{result.verdict}: {reason}")
        if result.verdict in ("Flake", "Warn"):
            self.add_report_section("call", "scenario", full_text(result, self._suite.info))
            first = next((attempt.reason for attempt in result.attempts if attempt.reason), reason)
            category = ScenarioFlakeWarning if result.verdict == "Flake" else ScenarioWarning
            self.warn(category(one_line(f"{result.verdict}: {first}")))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Return a short text about a failure. Other exceptions get pytest's text."""
        error = excinfo.value
        if isinstance(error, ScenarioFailure):
            result = error.result
            lines = [headline(result), *details(result), f"repeat: {self._suite.info.repeat_command(result)}"]
            if result.verdict.startswith("UnexpectedImprovement"):
                lines[0] = f"[XPASS(strict)] {lines[0]}"
            return visible("\n".join(lines))
        if isinstance(error, ScenarioRunnerError):
            return visible("\n".join(f"error: {problem}" for problem in error.problems))
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Return the place of the item and the name for reports."""
        return self.path, 0, one_line(self.scenario.id)


def _skipped(reason: str) -> BaseException:
    """Make the exception for a skipped test, with the place of the scenario."""
    return pytest.skip.Exception(reason, _use_item_location=True)


def _marks(id: str) -> Iterator[str]:
    """Yield the names of folders as marks. The folder of a scenario.json is the name of the item, and no mark."""
    *folders, name = id.split("/")
    for folder in folders[:-1] if name == SCENARIO_FILE else folders:
        name = re.sub(r"[^\w+.-]", "_", folder).lstrip("_")  # for the syntax of -m
        if name and name not in _PYTEST_MARKS:
            yield name


class ScenarioRunner:
    """One `Runner` for all tests of a run of pytest, in this process. The `Runner` itself is ``runner``.

    If the device cannot run a scenario, the test is skipped.
    """

    def __init__(self, device: str | None = None) -> None:
        self.runner = Runner(device)

    def run(self, scenario: AnyScenario, inputs: Mapping[str, object] | None = None, **options: Any) -> RunResult:
        """Run a scenario, and return the result, with the options and errors of `Runner.run`.

        By default no file is written: ``write_files=False``.
        """
        try:
            return self.runner.run(scenario, inputs, **{"write_files": False, **options})
        except UnsupportedError as error:
            pytest.skip(str(error))

    def check(
        self,
        scenario: AnyScenario,
        inputs: Mapping[str, object] | None = None,
        *,
        expected: Mapping[str, object],
        atol: float = 0.0,
        rtol: float = 0.0,
        **options: Any,
    ) -> RunResult:
        """Run a scenario, and compare outputs with ``expected`` arrays by uid.

        The array gives the type of the items in a buffer. An element may differ by ``atol`` plus ``rtol`` times the
        expected value; NaN equals NaN. Raises AssertionError with the number of wrong elements, the first wrong element
        and the greatest error.
        """
        __tracebackhide__ = True
        rule = Rule(atol, rtol, nan="equal")
        result = self.run(scenario, inputs, outputs=list(expected), **options)
        for uid, value in expected.items():
            reference = numpy.asarray(value)
            actual = result[uid]
            is_buffer = actual.ndim == 1 and actual.dtype == "int8"
            if is_buffer and actual.nbytes % reference.dtype.itemsize == 0:
                actual = result.array(uid, reference.dtype)
            assert actual.size == reference.size, f"{uid!r} has {actual.size} elements, expected {reference.size}"
            actual = actual.reshape(reference.shape)
            difference = compare(content_of(uid, reference), content_of(uid, actual), rule)
            if difference.first is not None:
                index, wanted, got = difference.first
                text = f"{share_of(difference.count, difference.total, 'element')} wrong"
                text += f", the first one at {list(index)}: got {got}, expected {wanted}"
                error = difference.errors.get("absolute")
                text += f"; the greatest error is {error.value:.9g}" if error else ""
                raise AssertionError(f"output {uid!r}: {text}; allowed: atol {atol:g}, rtol {rtol:g}")
        return result
