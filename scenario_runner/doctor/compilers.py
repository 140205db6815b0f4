"""The shader compilers of this machine, what each can do, and the validator of SPIR-V, for the report."""

from __future__ import annotations

import os
from typing import Any, Literal

from scenario_runner.errors import ScenarioRunnerError
from scenario_runner.shaders.compilers.compiler import GLSLANG_VARIABLE, Compiler
from scenario_runner.shaders.discovery import find_compilers
from scenario_runner.shaders.spirv_val import OFF, VARIABLE, find_validator, validator_version

_LANGUAGES: tuple[Literal["GLSL", "HLSL"], ...] = ("GLSL", "HLSL")


def compilers(named: str | None = None) -> dict[str, Any]:
    """Compilers by language, the preferred one first; in ``problems`` why a named one cannot be used, in ``named`` the
    GLSL compiler that the user named."""
    found: dict[str, Any] = {}
    problems: dict[str, Any] = {}
    for language in _LANGUAGES:
        problems[language] = None
        try:
            # Past the cache: this is the moment to ask the programs themselves.
            usable = find_compilers(named, language=language, use_cache=False)
        except ScenarioRunnerError as error:
            usable = []
            problems[language] = {"message": str(error), "help": error.problems[0].help}
        found[language] = [_describe(one) for one in usable]
    named = named or os.environ.get(GLSLANG_VARIABLE) or None
    return {**found, "problems": problems, "named": named, "spirv_val": _spirv_val()}


def _spirv_val() -> dict[str, Any]:
    """The validator, its version where it can be asked, and why there is none."""
    try:
        found = find_validator()
    except ScenarioRunnerError as error:
        return {"path": None, "version": None, "problem": str(error)}
    if found is None:
        off = os.environ.get(VARIABLE) == OFF
        return {"path": None, "version": None, "problem": f"{VARIABLE} is {OFF!r}" if off else None}
    return {"path": found.path, "version": validator_version(found), "problem": None}


def _describe(one: Compiler) -> dict[str, Any]:
    return {
        "path": one.path,
        "flavour": one.flavour,
        "version": one.version,
        "languages": list(one.languages),
        "tensors": one.knows_tensors,
        "renames_entry": one.renames_entry,
        "batches": one.many_at_once,
    }
