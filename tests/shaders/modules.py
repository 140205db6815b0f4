"""Contents of compiled modules, the problem of a failed compilation, and the types of fixtures."""

import struct
from collections.abc import Callable

from scenario_runner.errors import CompileError, ScenarioRunnerError
from scenario_runner.errors.diagnostic import Diagnostic
from scenario_runner.shaders.compile import compile_all
from scenario_runner.shaders.source import CompileRequest
from scenario_runner.shaders.spirv import DescriptorBinding, EntryPoint, Module, read_module
from tests.scenes import assemble, error_of, kernel

Compile = Callable[..., bytes]
Entry = Callable[..., EntryPoint]
Bindings = Callable[..., dict[str, DescriptorBinding]]

MINIMAL = "#version 450\nlayout(local_size_x = 1) in;\nvoid main() {}\n"


def holds(module: bytes, value: float) -> bool:
    """Tell whether a 32-bit float is somewhere in it."""
    return struct.pack("<f", value) in module


def version(module: bytes) -> tuple[int, int]:
    """The version of SPIR-V."""
    return module[6], module[5]


def made_by(module: bytes) -> int:
    """The tool that made it, by SPIR-V's registry of generators."""
    return int.from_bytes(module[10:12], "little")


def problem_of(
    request: CompileRequest, kind: type[ScenarioRunnerError] = CompileError, compiler: str | None = None
) -> Diagnostic:
    """Return the only problem of a failed compilation."""
    (problem,) = error_of(kind, compile_all, [request], compiler=compiler).problems
    return problem


def read_kernel(text: str) -> Module:
    """Assemble and read a module; `kernel` completes its text."""
    return read_module(assemble(kernel(text)))


def kernel_entry(text: str) -> EntryPoint:
    """Assemble a module, and return the first entry point."""
    return read_kernel(text).entry_points[0]


def by_name(entry_point: EntryPoint) -> dict[str, DescriptorBinding]:
    """Return the bindings of an entry point by their names."""
    return {binding.name: binding for binding in entry_point.interface.bindings}
