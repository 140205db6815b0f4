"""Places of errors that the device found: file, line and column in place of JSON pointers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scenario_runner.errors import ScenarioRunnerError
    from scenario_runner.scenario import Scenario


def give_places(error: ScenarioRunnerError, load: Callable[[], Scenario]) -> None:
    """Turn the JSON pointers of problems without a file into places of the scenario, which is loaded where needed."""
    if not any(problem.path is None and problem.pointer is not None for problem in error.problems):
        return
    scenario = load()
    error.problems = tuple(
        scenario.placed(problem) if problem.path is None and problem.pointer is not None else problem
        for problem in error.problems
    )
