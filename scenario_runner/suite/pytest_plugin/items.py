"""Scenario files as items of pytest, and verdicts as its outcomes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from scenario_runner.errors import ScenarioRunnerError
from scenario_runner.suite.discovery import NOT_SEARCHED, is_scenario
from scenario_runner.suite.pytest_plugin.session import Session, session_of
from scenario_runner.suite.records import NOT_RUN, Item, Result
from scenario_runner.suite.reports.text import details, full_text, headline
from scenario_runner.visible import one_line, visible

_NAMELESS: Final = "scenario.json"  # the folder of such a file names it

# Marks that do something.
_PYTEST_MARKS: Final = frozenset(
    {"filterwarnings", "parametrize", "skip", "skipif", "tryfirst", "trylast", "usefixtures", "xfail"}
)


class ScenarioWarning(pytest.PytestWarning):
    """A bound for warnings is exceeded."""


class ScenarioFlakeWarning(ScenarioWarning):
    """A scenario passed only when it ran again."""


class ScenarioFailure(Exception):  # noqa: N818  (what failed is the scenario)
    """A scenario whose result is an unexpected failure."""

    def __init__(self, result: Result) -> None:
        super().__init__(headline(result))
        self.result = result


class ScenarioFile(pytest.File):
    """A scenario file. It has one item."""

    def collect(self) -> Iterator[ScenarioItem]:
        """The item, named like the file, or like its folder where the file is a scenario.json."""
        scenario = session_of(self.config).item(self.path)
        if scenario is not None:
            name = self.path.parent.name if self.path.name == _NAMELESS else self.path.stem
            yield ScenarioItem.from_parent(self, name=one_line(name), scenario=scenario)


def collected(file_path: Path, parent: pytest.Collector) -> ScenarioFile | None:
    """The collector of a file that is a scenario, that cannot be read, or that was named in the command line."""
    is_named = parent.session.isinitpath(file_path)
    if is_named or (_is_searched(file_path.parent, parent.session) and _may_be_scenario(file_path)):
        return ScenarioFile.from_parent(parent, path=file_path)
    return None


def _is_searched(folder: Path, session: pytest.Session) -> bool:
    """Whether no folder is excluded from the search, from this one up to the one that was named."""
    for each in (folder, *folder.parents):
        if session.isinitpath(each):
            return True
        if (each / NOT_SEARCHED).exists():
            return False
    return True


def _may_be_scenario(path: Path) -> bool:
    try:
        return is_scenario(str(path))
    except OSError:
        return True  # its run says why it cannot be read


class ScenarioItem(pytest.Item):
    """A scenario with expectations. Its marks are 'scenario' and the names of the folders that it lies in."""

    def __init__(self, *, scenario: Item, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.scenario = scenario
        for name in ("scenario", *_marks(scenario.id)):
            self.add_marker(self._suite.mark(name))

    @property
    def _suite(self) -> Session:
        return session_of(self.config)

    def runtest(self) -> None:
        """Run the scenario in a process of its own, and end as its verdict says."""
        if self._suite.is_skipped(self.scenario):
            raise _skipped("scenario_skips names it")
        result = self._suite.run(self.scenario)
        self._describe(result)
        self._end(result)

    def _describe(self, result: Result) -> None:
        """What reports of others show beside the outcome."""
        given = {"verdict": result.verdict, "device": result.device, "driver": result.driver}
        self.user_properties += [(name, visible(value)) for name, value in given.items() if value]
        last = result.last
        if last is not None and last.output:
            self.add_report_section("call", "stderr", visible(last.output))

    def _end(self, result: Result) -> None:
        reason = one_line(result.last.reason) if result.last is not None else ""
        if result.is_bad:
            raise ScenarioFailure(result)
        if result.verdict in NOT_RUN:
            raise _skipped(reason or result.verdict)
        if result.verdict in ("ExpectedFail", "KnownFlake"):
            pytest.xfail(f"{result.verdict}: {reason}")
        if result.verdict in ("Flake", "Warn"):
            self.add_report_section("call", "scenario", full_text(result, self._suite.info))
            first = next((each.reason for each in result.attempts if each.reason), reason)
            category = ScenarioFlakeWarning if result.verdict == "Flake" else ScenarioWarning
            self.warn(category(one_line(f"{result.verdict}: {first}")))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """The short text of a failure; pytest's own where this program or pytest is the cause."""
        error = excinfo.value
        if isinstance(error, ScenarioFailure):
            result = error.result
            lines = [headline(result), *details(result), f"repeat: {self._suite.info.repeat_command(result)}"]
            if result.verdict.startswith("UnexpectedImprovement"):
                lines[0] = f"[XPASS(strict)] {lines[0]}"
            return visible("\n".join(lines))
        if isinstance(error, ScenarioRunnerError):
            return visible("\n".join(f"error: {each}" for each in error.problems))
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Where the item is, and how reports call it."""
        return self.path, 0, one_line(self.scenario.id)


def _skipped(reason: str) -> BaseException:
    """What ends a test as skipped. Its place is that of the scenario, not a line of this file."""
    return pytest.skip.Exception(reason, _use_item_location=True)


def _marks(id: str) -> Iterator[str]:
    """The folders that an item lies in as names of marks; one that has the item alone is its name."""
    *folders, name = id.split("/")
    for folder in folders[:-1] if name == _NAMELESS else folders:
        name = re.sub(r"[^\w+.-]", "_", folder).lstrip("_")  # what -m understands
        if name and name not in _PYTEST_MARKS:
            yield name
