"""What a graph's SPIR-V declares against what it is given: the emulation layers abort the process on most mistakes.

Source: SPV_ARM_graph, and the Vulkan specification's valid usage of VkDataGraphPipelineCreateInfoARM.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from scenario_runner.checks.resources import holds
from scenario_runner.diagnostics import Diagnostic
from scenario_runner.errors import ShaderError
from scenario_runner.formats import Format, format_of_value
from scenario_runner.plan.model.commands import GraphConstantPlan, GraphResourcePlan
from scenario_runner.plan.model.resources import TensorDescription
from scenario_runner.spirv import GraphEntryPoint, Module, Scalar, Tensor


def graph_entry(module: Module, name: str, what: str) -> GraphEntryPoint:
    """The graph entry point called ``name``. Raises ShaderError that lists those that there are."""
    for entry in module.graph_entry_points:
        if entry.name == name:
            return entry
    there_are = ", ".join(repr(entry.name) for entry in module.graph_entry_points) or "none"
    raise ShaderError(
        Diagnostic(
            "SR-GRAPH-001",
            "error",
            None,
            f"{what} has no graph entry point {name!r}; its graph entry points are: {there_are}",
        )
    )


def graph_resources(
    entry: GraphEntryPoint, given: Mapping[tuple[int, int], TensorDescription]
) -> tuple[GraphResourcePlan, ...]:
    """What a graph finds at each of its bindings; ``given`` has a tensor for each (set, binding) that it declares."""
    inputs = dict.fromkeys((each.set, each.binding) for each in entry.inputs)
    outputs = dict.fromkeys((each.set, each.binding) for each in entry.outputs)
    return tuple(
        GraphResourcePlan(*place, given[place], place in inputs, place in outputs) for place in inputs | outputs
    )


def binding_problems(
    entry: GraphEntryPoint, given: Mapping[tuple[int, int], TensorDescription], names: Mapping[tuple[int, int], str]
) -> Iterator[tuple[str, str]]:
    """Codes and messages: what is wrong with the tensors at (set, binding) for a graph, by the user's ``names``."""
    for direction, resources in (("input", entry.inputs), ("output", entry.outputs)):
        for declared in resources:
            place = (declared.set, declared.binding)
            found = given.get(place)
            where = f"{direction} {declared.name!r} at set {place[0]}, binding {place[1]}"
            if found is None:
                yield "SR-BIND-001", f"nothing is bound to the graph's {where}, which is {declared.tensor}"
                continue
            mismatch = _mismatch(declared.tensor, found)
            if mismatch is not None:
                code, found_there = mismatch
                yield code, f"the graph's {where} is {declared.tensor}; {names[place]} {found_there}"


def superfluous_bindings(entry: GraphEntryPoint, given: Mapping[tuple[int, int], TensorDescription]) -> Iterator[str]:
    """What is bound where the graph declares nothing, in a file whose tables and modules are made for each other."""
    declared = dict.fromkeys((each.set, each.binding) for each in (*entry.inputs, *entry.outputs))
    there_are = ", ".join(f"set {owner}, binding {number}" for owner, number in declared) or "none"
    for owner, number in given.keys() - declared.keys():
        yield (
            f"its tables have a resource at set {owner}, binding {number}, where the graph {entry.name!r:.100} has"
            f" neither an input nor an output; those of the graph are at: {there_are}"
        )


def constant_problems(module: Module, given: Mapping[int, GraphConstantPlan]) -> Iterator[tuple[str, str]]:
    """Codes and messages: what is wrong with the constants of a module: one missing, too many, or of another type."""
    declared = {constant.id: constant.tensor for constant in module.graph_constants}
    for number, tensor in declared.items():
        constant = given.get(number)
        if constant is None:
            yield "SR-GRAPH-002", f"the graph constant {number}, which is {tensor}, is missing"
            continue
        found = constant.description
        mismatch = _mismatch(tensor, found)
        if mismatch is not None:
            yield "SR-GRAPH-003", f"the graph constant {number} is {tensor}; what is given for it {mismatch[1]}"
    for number in given.keys() - declared.keys():
        there_are = ", ".join(map(str, declared)) or "none"
        yield "SR-GRAPH-004", f"the graph has no constant {number}; its constants are: {there_are}"


def _mismatch(declared: Tensor, found: TensorDescription) -> tuple[str, str] | None:
    """The code, and what a tensor has that the declared type has not, as the end of a sentence; None if they agree."""
    format = format_of_value(found.format)
    if not holds(format, declared.element) or not _is_for_graphs(format, declared.element):
        return "SR-TENSOR-002", f"has the format {format.name}"
    if declared.shape is not None and all(size > 0 for size in declared.shape) and declared.shape != found.dims:
        return "SR-TENSOR-003", f"has the shape {list(found.dims)}"
    if declared.rank is not None and declared.rank != len(found.dims):
        return "SR-TENSOR-001", f"has {len(found.dims)} dimensions (shape {list(found.dims)})"
    return None


# What graphs compute with; normalized integers are a matter of shaders.
_KINDS = {"int": ("sint", "uint"), "uint": ("sint", "uint"), "bool": ("bool",)}


def _is_for_graphs(format: Format, element: Scalar) -> bool:
    """Whether a graph can take a format for its elements: whoever compiles it looks operators up by the format.

    Source: Vulkan specification, VkTensorDescriptionARM, the formats that correspond to OpTypeTensorARM's element type.
    """
    return format.components == 1 and format.numeric in _KINDS.get(element.kind, (format.numeric,))
