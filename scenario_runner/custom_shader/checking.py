"""Shaders compiled and compared with their attributes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from scenario_runner.custom_shader.agreement import check_agreement
from scenario_runner.custom_shader.attributes import Attributes, ValueType
from scenario_runner.custom_shader.compiling import compile_shaders
from scenario_runner.custom_shader.parsing import placed
from scenario_runner.diagnostics import Diagnostic
from scenario_runner.errors import ScenarioRunnerError
from scenario_runner.spirv import Interface, read_module

Types = tuple[Sequence[ValueType], Sequence[ValueType]]
"""The types of the operands and of the results of an operation."""


class CheckedShader(NamedTuple):
    """A shader and what was found. ``module`` is SPIR-V and ``interface`` that of the entry point; both are None for a
    placeholder and for what does not compile. ``findings`` leave out the warnings of `Attributes`."""

    attributes: Attributes
    module: bytes | None
    interface: Interface | None
    findings: tuple[Diagnostic, ...]

    @property
    def is_good(self) -> bool:
        """Whether no finding is an error."""
        return all(finding.severity != "error" for finding in self.findings)


def check_shaders(
    shaders: Sequence[Attributes],
    types: Sequence[Types | None] | None = None,
    *,
    compiler: str | None = None,
    cache_dir: str | None = None,
    use_cache: bool = True,
) -> list[CheckedShader]:
    """Compile shaders side by side and compare each with its attributes, and with the ``types`` of its operation.

    Nothing is raised for what is wrong with a shader. Raises UsageError as `compile_shaders` does.
    """
    made = compile_shaders(shaders, compiler=compiler, cache_dir=cache_dir, use_cache=use_cache)
    known = types or [None] * len(shaders)
    return [_checked(*each) for each in zip(shaders, made, known, strict=True)]


def _checked(attributes: Attributes, module: bytes | ScenarioRunnerError | None, types: Types | None) -> CheckedShader:
    found: list[Diagnostic] = []
    interface = None
    if isinstance(module, ScenarioRunnerError):
        found += _of_code(module)
        module = None
    elif module is not None:
        try:
            interface, found = check_agreement(attributes, read_module(module, name=attributes.operation), types)
        except ScenarioRunnerError as error:
            found = _of_code(error)
    if interface is None:
        from scenario_runner.custom_shader.operands import check_types

        found += check_types(attributes, types)
    return CheckedShader(attributes, module, interface, tuple(placed(found, attributes.origin)))


def _of_code(error: ScenarioRunnerError) -> list[Diagnostic]:
    """Problems of the code; those without a line of the source stand at the attribute."""
    return [
        problem if problem.path else problem._replace(pointer=problem.pointer or "/shader_code")
        for problem in error.problems
    ]
