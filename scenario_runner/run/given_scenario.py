"""Scenarios and inputs as callers of the Python API give them.

A scenario is a path, a `Scenario`, a mapping like the JSON, or the path of a model, which runs in a scenario of its own
(`run.bare_model`). Inputs are given by name in a mapping, or those of a model by position.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from scenario_runner.errors import ScenarioRunnerError, UsageError

if TYPE_CHECKING:
    from scenario_runner.scenario import Scenario

StrPath = str | os.PathLike[str]
AnyScenario: TypeAlias = "StrPath | Scenario | Mapping[str, Any]"

# What the files of models are called; ExecuTorch programs hold one, TOSA models have to be converted.
_MODELS = (".vgf", ".pte", ".tosa")


Inputs: TypeAlias = Mapping[Any, Any] | tuple[Any, ...]
"""By name, or by position."""


def given_inputs(inputs: Any, more: tuple[Any, ...]) -> Inputs:
    """The inputs of a call: one mapping, or arrays. Raises UsageError for both."""
    if isinstance(inputs, Mapping):
        if more:
            raise UsageError("inputs are given both by name and by position, expected one mapping, or arrays")
        return inputs
    return () if inputs is None and not more else (inputs, *more)


def by_uid(inputs: Inputs) -> Mapping[str, Any]:
    """The inputs of a scenario. Raises UsageError for those that are given by position."""
    if isinstance(inputs, Mapping):
        return inputs
    if inputs:
        raise UsageError(
            f"inputs[0] is a {type(inputs[0]).__name__}, expected a mapping: only the inputs of models have positions",
            help="give the inputs of a scenario by uid: {'x': array}",
        )
    return {}


def is_model(scenario: AnyScenario) -> bool:
    """Return whether a scenario is the path of a model, by its extension."""
    return isinstance(scenario, str | os.PathLike) and os.fspath(scenario).lower().endswith(_MODELS)


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
