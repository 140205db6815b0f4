"""Scenarios as callers of the Python API give them: a path, a `Scenario`, or a mapping like the JSON."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from scenario_runner.errors import ScenarioRunnerError

if TYPE_CHECKING:
    from scenario_runner.scenario import Scenario

StrPath = str | os.PathLike[str]
AnyScenario: TypeAlias = "StrPath | Scenario | Mapping[str, Any]"


def written(scenario: Scenario) -> list[str]:
    """The resources that shaders may have written."""
    return [each.uid for each in scenario.resources if getattr(each, "shader_access", "readonly") != "readonly"]


def path_of(scenario: AnyScenario) -> str | None:
    """The file that errors of a scenario begin with; None where there is none."""
    return os.fspath(scenario) if isinstance(scenario, str | os.PathLike) else getattr(scenario, "path", None)


def as_scenario(scenario: AnyScenario) -> Scenario:
    """The scenario itself. Raises ScenarioError and FileError."""
    from scenario_runner.scenario import Scenario, from_dict, load

    if isinstance(scenario, Mapping):
        return from_dict(scenario)
    return scenario if isinstance(scenario, Scenario) else load(os.fspath(scenario))


def give_places(error: ScenarioRunnerError, scenario: AnyScenario) -> None:
    """Turn the JSON pointers that errors of the device and of files carry into file, line and column."""
    if not any(problem.path is None and problem.pointer is not None for problem in error.problems):
        return
    loaded = as_scenario(scenario)
    error.problems = tuple(
        loaded.placed(problem) if problem.path is None and problem.pointer is not None else problem
        for problem in error.problems
    )
