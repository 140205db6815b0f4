"""What a graph's SPIR-V declares against what it is given: the emulation layers abort the process on most mistakes.

Source: SPV_ARM_graph, and the Vulkan specification's valid usage of VkDataGraphPipelineCreateInfoARM.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scenario_runner.checks.tensors import holds
from scenario_runner.errors import Problem, ShaderError
from scenario_runner.formats import format_of_value

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from scenario_runner.plan.model.graphs import GraphConstantPlan
    from scenario_runner.plan.model.tensors import TensorDescription
    from scenario_runner.spirv import GraphEntryPoint, Module, Tensor


def graph_entry(module: Module, name: str, what: str) -> GraphEntryPoint:
    """The graph entry point called ``name``. Raises ShaderError that lists those that there are."""
    for entry in module.graph_entry_points:
        if entry.name == name:
            return entry
    there_are = ", ".join(repr(entry.name) for entry in module.graph_entry_points) or "none"
    raise ShaderError(Problem(f"{what} has no graph entry point {name!r}; its graph entry points are: {there_are}"))


def binding_problems(
    entry: GraphEntryPoint, given: Mapping[tuple[int, int], TensorDescription], names: Mapping[tuple[int, int], str]
) -> Iterator[str]:
    """What is wrong with the tensors at (set, binding) for a graph; ``names`` are what the user calls them."""
    for direction, resources in (("input", entry.inputs), ("output", entry.outputs)):
        for declared in resources:
            place = (declared.set, declared.binding)
            found = given.get(place)
            where = f"{direction} {declared.name!r} at set {place[0]}, binding {place[1]}"
            if found is None:
                yield f"nothing is bound to the graph's {where}, which is {declared.tensor}"
                continue
            mismatch = _mismatch(declared.tensor, found)
            if mismatch:
                yield f"the graph's {where} is {declared.tensor}; {names[place]} {mismatch}"


def constant_problems(module: Module, given: Mapping[int, GraphConstantPlan]) -> Iterator[str]:
    """What is wrong with the constants of a module: one missing, too many, or of another type."""
    declared = {constant.id: constant.tensor for constant in module.graph_constants}
    for number, tensor in declared.items():
        constant = given.get(number)
        if constant is None:
            yield f"the graph constant {number}, which is {tensor}, is missing"
            continue
        found = constant.description
        mismatch = _mismatch(tensor, found)
        if mismatch:
            yield f"the graph constant {number} is {tensor}; what is given for it {mismatch}"
    for number in given.keys() - declared.keys():
        there_are = ", ".join(map(str, declared)) or "none"
        yield f"the graph has no constant {number}; its constants are: {there_are}"


def _mismatch(declared: Tensor, found: TensorDescription) -> str | None:
    """What a tensor has that the declared type has not, as the end of a sentence; None where they agree."""
    format = format_of_value(found.format)
    if not holds(format, declared.element):
        return f"has the format {format.name}"
    if declared.shape is not None and all(size > 0 for size in declared.shape) and declared.shape != found.dims:
        return f"has the shape {list(found.dims)}"
    if declared.rank is not None and declared.rank != len(found.dims):
        return f"has {len(found.dims)} dimensions (shape {list(found.dims)})"
    return None
