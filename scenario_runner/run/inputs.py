"""Inputs as callers of the Python API give them: by name in a mapping, or those of a model by position."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from scenario_runner.errors import UsageError

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
