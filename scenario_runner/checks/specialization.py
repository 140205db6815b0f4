"""Specialization constants: the values of a scenario against the constants of a module."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scenario_runner.diagnostics import Diagnostic, error, warning
from scenario_runner.errors import SpirvError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from scenario_runner.scenario import SpecializationConstant
    from scenario_runner.spirv import Module

MOST_NAMED = 20
"""Constants of a module that one message lists."""


def specialize(
    module: Module, uid: str, constants: Iterable[SpecializationConstant], pointer: str
) -> tuple[dict[int, tuple[bytes, bool | int | float]], list[Diagnostic]]:
    """The values that the module has constants for, as bytes and as numbers by SpecId; and what is wrong.

    ``pointer`` is where the list of constants is.
    """
    values: dict[int, tuple[bytes, bool | int | float]] = {}
    found: list[Diagnostic] = []
    for index, constant in enumerate(constants):
        declared = module.spec_constant(constant.id)
        if declared is None:
            ids = [str(each.id) for each in module.spec_constants]
            there_are = ", ".join(ids[:MOST_NAMED]) + (", …" if len(ids) > MOST_NAMED else "") or "none"
            found.append(
                warning(
                    "SR-SPEC-001",
                    f"{pointer}/{index}/id",
                    f"shader {uid!r} declares no specialization constant {constant.id} (it has: {there_are})",
                )
            )
            continue
        try:
            values[constant.id] = declared.encode(constant.value), constant.value
        except SpirvError as problem:
            found.append(error("SR-SPEC-002", f"{pointer}/{index}/value", str(problem)))
    return values, found
