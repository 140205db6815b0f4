"""dispatch_spirv_graph: a graph module without a file around it, with its constants from graph_constant resources.

What a graph's SPIR-V declares against what it is given: the emulation layers abort the process on most mistakes.

Source: SPV_ARM_graph, and the Vulkan specification's valid usage of VkDataGraphPipelineCreateInfoARM.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from scenario_runner.checks.resources import holds
from scenario_runner.errors import ScenarioRunnerError
from scenario_runner.formats import Format, format_of_value
from scenario_runner.graphs.module import shape_problems
from scenario_runner.plan.context import Tables
from scenario_runner.plan.graph_models import SpirvGraph
from scenario_runner.plan.model.commands import (
    ConstantData,
    FilePart,
    GraphConstantPlan,
    GraphDispatch,
    GraphPipelinePlan,
    GraphResourcePlan,
)
from scenario_runner.plan.model.plan import Operation
from scenario_runner.plan.model.records import Descriptor, DescriptorList, LayoutBinding, Source
from scenario_runner.plan.model.resources import TensorDescription, TensorPlan
from scenario_runner.plan.problems import Problems
from scenario_runner.plan.sources import NpySource, source_of
from scenario_runner.plan.tensors import check_content, tensor_format
from scenario_runner.scenario import DispatchSpirvGraph, Scenario
from scenario_runner.spirv import GraphEntryPoint, Module, Scalar, Tensor


def resolve_spirv_dispatch(
    graph: SpirvGraph,
    command: DispatchSpirvGraph,
    index: int,
    scenario: Scenario,
    tables: Tables,
    problems: Problems,
) -> list[Operation]:
    """The dispatch as an operation; nothing where something is wrong, which is noted."""
    pointer = scenario.command_pointer(index)
    before = len(problems.errors)
    given: dict[tuple[int, int], TensorDescription] = {}
    uids: dict[tuple[int, int], str] = {}
    declared = dict.fromkeys((each.set, each.binding) for each in (*graph.entry.inputs, *graph.entry.outputs))
    for number, binding in enumerate(command.bindings):
        plan = tables.resources.get(binding.resource_ref)
        place = f"{pointer}/bindings/{number}"
        if plan is None:
            continue  # reported where the resource is
        if not isinstance(plan, TensorPlan):
            problems.error(
                "SR-BIND-003", f"{place}/resource_ref", f"{plan.uid!r} is not a tensor; graphs take nothing else"
            )
        elif (binding.set, binding.id) not in declared:
            there_are = ", ".join(f"set {owner}, binding {number}" for owner, number in declared)
            problems.error(
                "SR-GRAPH-005",
                place,
                f"graph {graph.uid!r} has nothing at set {binding.set}, binding {binding.id}; it has: {there_are}",
            )
        else:
            given[binding.set, binding.id] = plan.description
            uids[binding.set, binding.id] = plan.uid
    constants = _graph_constants(command, scenario, pointer, problems)
    if len(problems.errors) > before:
        return []
    names = {place: f"tensor {uid!r}" for place, uid in uids.items()}
    for code, message in binding_problems(graph.entry, given, names):
        problems.error(code, f"{pointer}/bindings", f"graph {graph.uid!r}: {message}")
    for code, message in constant_problems(graph.module, constants):
        problems.error(
            code,
            f"{pointer}/graph_constants",
            f"graph {graph.uid!r}: {message}",
            "the position in graph_constants is the id of the constant",
        )
    if len(problems.errors) > before:
        return []
    shapes = {place: tensor.dims for place, tensor in given.items()}
    try:
        fixed = graph.body.fixed(graph.entry, shapes)
    except ScenarioRunnerError as error:
        problems.add_error(error, f"{pointer}/bindings")
        return []
    for code, message in shape_problems(graph.entry, fixed, shapes, names):
        problems.error(code, f"{pointer}/bindings", f"graph {graph.uid!r}: {message}")
    if len(problems.errors) > before or fixed.code is None:
        return []
    layouts = tuple(
        tuple(LayoutBinding(number, "tensor") for owner, number in sorted(declared) if owner == each)
        for each in range(max(owner for owner, _ in declared) + 1)
    )
    pipeline = GraphPipelinePlan(
        code=fixed.code,
        entry=graph.entry.name,
        set_layouts=layouts,
        resources=graph_resources(graph.entry, given),
        constants=tuple(constants.values()),
        label=f"graph {graph.uid!r}",
        pointer=graph.pointer,
        largest=fixed.largest,
        unbuildable=graph.body.unbuildable,
        name=graph.uid,
    )
    tables.graph_modules[f"graph {graph.uid!r}"] = graph.module, graph.pointer
    found = tuple(Descriptor(*place, "tensor", uid) for place, uid in uids.items())
    wanted = DescriptorList(layouts, found)
    tables.names[index] = (graph.uid,)
    return [
        GraphDispatch(
            tables.graph_pipelines.add(pipeline, pipeline.content),
            tables.lists.add(wanted, wanted),
            command.implicit_barrier,
            index,
        )
    ]


def _graph_constants(
    command: DispatchSpirvGraph, scenario: Scenario, pointer: str, problems: Problems
) -> dict[int, GraphConstantPlan]:
    found: dict[int, GraphConstantPlan] = {}
    for number, uid in enumerate(command.graph_constants):
        constant: Any = scenario.resource(uid)
        place = scenario.resource_pointer(uid)
        try:
            format = tensor_format(constant.format, f"{place}/format", problems)
            source = source_of(scenario, constant, {})
            assert source is not None, "the model sees to it"
            if format is not None and check_content(
                source, format, constant.dims, f"graph constant {uid!r}", place, problems
            ):
                description = TensorDescription(format.value, constant.dims)
                found[number] = GraphConstantPlan(number, description, _data(source))
        except ScenarioRunnerError as error:
            problems.add_error(error, f"{place}/src")
    return found


def _data(source: Source) -> ConstantData:
    """The bytes: of a plain file where they lie in it, so that large constants take no memory of ours."""
    if isinstance(source, NpySource) and source.header.is_plain and source.size_bytes:
        with source.opened() as file:
            return ConstantData(FilePart(source.path, file.identity, file.header.data_offset, source.size_bytes))
    content = bytearray(source.size_bytes)
    source.read_into(memoryview(content))
    return ConstantData(memoryview(content).toreadonly())


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
