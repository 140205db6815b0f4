"""dispatch_spirv_graph: a graph module without a file around it, with its constants from graph_constant resources."""

from __future__ import annotations

from typing import Any

from scenario_runner.errors import ScenarioRunnerError
from scenario_runner.graphs.module import shape_problems
from scenario_runner.plan.context import Tables
from scenario_runner.plan.graphs.interface import binding_problems, constant_problems, graph_resources
from scenario_runner.plan.graphs.model import SpirvGraph
from scenario_runner.plan.model.commands import (
    ConstantData,
    FilePart,
    GraphConstantPlan,
    GraphDispatch,
    GraphPipelinePlan,
)
from scenario_runner.plan.model.plan import Operation
from scenario_runner.plan.model.records import Descriptor, DescriptorList, LayoutBinding, Source
from scenario_runner.plan.model.resources import TensorDescription, TensorPlan
from scenario_runner.plan.problems import Problems
from scenario_runner.plan.sources import NpySource, source_of
from scenario_runner.plan.tensors import check_content, tensor_format
from scenario_runner.scenario import DispatchSpirvGraph, Scenario


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
    constants = _constants(command, scenario, pointer, problems)
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


def _constants(
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
