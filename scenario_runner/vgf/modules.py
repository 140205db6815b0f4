"""The module section: names, entry points and code of the shaders and graphs."""

from __future__ import annotations

from typing import Any

from scenario_runner.vgf.budget import Budget
from scenario_runner.vgf.library import decoder, kind_number
from scenario_runner.vgf.model import Kind, Language, Module

_KINDS: tuple[Kind, ...] = ("compute", "graph")


def read_modules(section: bytes, path: str) -> tuple[Module, ...]:
    """Decode the module section. Raises FileError when it is damaged."""
    table = decoder("CreateModuleTableDecoder", section, path, "module")
    budget = Budget(len(section), path, "module")
    return tuple(_module(table, i, budget, path) for i in budget.elements(table.size()))


def _module(table: Any, i: int, budget: Budget, path: str) -> Module:
    kind = _KINDS[kind_number(table.getModuleType(i), path, f"/modules/{i}/type", _KINDS)]
    language: Language | None = None
    code: bytes | str | None = None
    if table.hasSPIRVCode(i):
        language, code = "SPIR-V", budget.code(table.getSPIRVModuleCode(i))
    elif table.hasGLSLCode(i):
        language, code = "GLSL", budget.text(table.getGLSLModuleCode(i))
    elif table.hasHLSLCode(i):
        language, code = "HLSL", budget.text(table.getHLSLModuleCode(i))
    if not code:
        language = code = None
    name, entry_point = budget.text(table.getModuleName(i)), budget.text(table.getModuleEntryPoint(i))
    return Module(kind, name, entry_point, language, code)
