"""The pytest plugin: scenario files as tests, and the fixture ``scenario_runner`` for tests written in Python.

Every run of pytest loads this module if the package is installed, so other modules are imported only for scenarios.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from scenario_runner.suite.pytest_plugin.items import ScenarioFile, ScenarioRunner

_LISTS: Final = {
    "scenario_baseline": "files of lines 'name,status': expected results, such as failures.csv",
    "scenario_skips": "files of regular expressions: names that are not run",
    "scenario_flakes": "files of regular expressions: names whose failures are accepted",
}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options in docs/pytest_plugin.md."""
    group = parser.getgroup("scenario-runner")
    group.addoption("--scenarios", action="store_true", help="collect scenario files (.json) as tests")
    group.addoption("--scenario-device", metavar="DEVICE", help="index, UUID or name of the device that scenarios use")
    group.addoption("--scenario-results", metavar="DIR", help="folder for files about outputs that are wrong")
    parser.addini("scenarios", "collect scenario files (.json) as tests", type="bool", default=False)
    parser.addini("scenario_device", "index, UUID or name of the device that scenarios use", default="")
    parser.addini("scenario_results", "folder for files about outputs that are wrong", default="")
    parser.addini("scenario_timeout", "seconds that one scenario may take", default="60")
    for name, help in _LISTS.items():
        parser.addini(name, help, type="paths", default=[])


def pytest_configure(config: pytest.Config) -> None:
    """Check the options and read the lists if scenarios are collected."""
    if _is_on(config):
        from scenario_runner.suite.pytest_plugin.items import begin

        begin(config)


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> ScenarioFile | None:
    """Collect a scenario, a model with expectations, or a file in the command line."""
    if file_path.suffix not in (".json", ".vgf", ".pte") or not _is_on(parent.config):
        return None
    from scenario_runner.suite.pytest_plugin.items import collector_of

    return collector_of(file_path, parent)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a passed run if scenarios did not run because this machine lacks tools."""
    if session.exitstatus == pytest.ExitCode.OK and _lacking(session.config):
        from scenario_runner.errors import MissingToolError

        session.exitstatus = MissingToolError.exit_code


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Report once for all scenarios that this machine lacks tools."""
    reasons = _lacking(config)
    if reasons:
        message = f"error: {len(reasons)} scenarios did not run, because this machine lacks a tool: {reasons[0]}"
        terminalreporter.write_line(f"{message}\n  help: 'scenario-runner doctor' shows all", red=True)


def _lacking(config: pytest.Config) -> list[str]:
    """Return the reasons of all MissingTool results, with xdist from all workers."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    reports = reporter.stats.get("skipped", []) if reporter is not None and _is_on(config) else []
    lacking = (report for report in reports if ("verdict", "MissingTool") in report.user_properties)
    return [report.longrepr[2].removeprefix("Skipped: ") for report in lacking]


@pytest.fixture(scope="session")
def scenario_runner(request: pytest.FixtureRequest) -> Iterator[ScenarioRunner]:
    """Give tests a `ScenarioRunner`, which runs scenarios in this process on one open device."""
    from scenario_runner.suite.pytest_plugin.items import ScenarioRunner

    config = request.config
    runner = ScenarioRunner(config.getoption("--scenario-device") or config.getini("scenario_device") or None)
    yield runner
    runner.runner.close()


def _is_on(config: pytest.Config) -> bool:
    return bool(config.getoption("--scenarios") or config.getini("scenarios"))
