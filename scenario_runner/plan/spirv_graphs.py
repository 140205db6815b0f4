"""dispatch_spirv_graph: a graph in a SPIR-V module, with constants from graph_constant resources.

The planner checks tensors and constants against a graph's declarations: the emulation layers abort the process on most
mistakes.

Source: SPV_ARM_graph, and the Vulkan specification's valid usage of VkDataGraphPipelineCreateInfoARM.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from scenario_runner.checks.bindings import holds
from scenario_runner.errors import ScenarioRunnerError
from scenario_runner.files.vk_formats import Format, format_named, format_of_value
from scenario_runner.ml.graph_module import GraphModule
from scenario_runner.ml.tosa_operators import merged
from scenario_runner.plan.command_parts import CommandContext
from scenario_runner.plan.graph_files import SpirvGraph
from scenario_runner.plan.graph_records import (
    GraphConstantPlan,
    GraphDispatch,
    GraphPipelinePlan,
    GraphResourcePlan,
    TensorDescription,
    TensorPlan,
)
from scenario_runner.plan.records import Descriptor, DescriptorList, LayoutBinding, Source
from scenario_runner.plan.sources import ConstantData, FilePart, NpySource, content_of
from scenario_runner.scenario import DispatchSpirvGraph, GraphConstant
from scenario_runner.shaders.spirv import GraphEntryPoint, Module, Scalar, Tensor
from scenario_runner.shaders.spirv.module import GraphResource

Place = tuple[int, int]
"""Set and binding."""
Report = Callable[[str, str, str], None]
"""Takes the subject of an error ("bindings", "graph_constants" or "shapes"), a code, and a message."""


class CalledGraph(NamedTuple):
    """A graph for a command. ``label`` names the graph in messages, and ``pointer`` is the file's place."""

    body: GraphModule
    entry: GraphEntryPoint
    label: str
    pointer: str
    name: str


def graph_dispatch(
    graph: CalledGraph,
    tensors: Mapping[Place, TensorPlan],
    constants: Mapping[int, GraphConstantPlan],
    context: CommandContext,
    index: int,
    barrier: bool,
    report: Report,
) -> GraphDispatch | None:
    """Return the operation to run a graph with ``tensors``; None after reporting or noting an error."""
    problems, tables, entry = context.problems, context.tables, graph.entry
    before = len(problems.errors)
    _check_tensors(entry, tensors, report)
    _check_constants(graph.body.module, constants, report)
    if len(problems.errors) > before:
        return None
    try:
        fixed = graph.body.fixed(entry, {place: tensor.dims for place, tensor in tensors.items()})
    except ScenarioRunnerError as error:
        problems.add_error(error, f"{context.scenario.command_pointer(index)}/bindings")
        return None
    for output in entry.outputs:
        place = output.set, output.binding
        inferred, bound = fixed.outputs.get(place), tensors[place]
        if inferred is not None and merged(inferred, bound.dims) is None:
            what = f"the graph's {_port('output', output)} is {list(inferred)} for these inputs"
            has = f"tensor {bound.uid!r} has the shape {list(bound.dims)}"
            report("shapes", "SR-TENSOR-003", f"{what}; {has}")
    if fixed.code is None:
        message = f"the shape of {fixed.unknown} does not follow from the inputs'; convert the model with fixed shapes"
        report("shapes", "SR-GRAPH-007", message)
    if len(problems.errors) > before or fixed.code is None:
        return None
    layouts = tuple(
        tuple(LayoutBinding(binding, "tensor") for owner, binding in sorted(tensors) if owner == number)
        for number in range(max((owner for owner, _ in tensors), default=-1) + 1)
    )
    inputs, outputs = _places(entry.inputs), _places(entry.outputs)
    pipeline = GraphPipelinePlan(
        code=fixed.code,
        entry=entry.name,
        set_layouts=layouts,
        resources=tuple(
            GraphResourcePlan(*place, tensors[place].description, place in inputs, place in outputs)
            for place in inputs | outputs
        ),
        constants=tuple(constants.values()),
        label=graph.label,
        pointer=graph.pointer,
        largest=fixed.largest,
        unbuildable=graph.body.unbuildable,
        name=graph.name,
    )
    tables.graph_modules[graph.label] = graph.body.module, graph.pointer
    descriptors = tuple(Descriptor(*place, "tensor", tensor.uid) for place, tensor in tensors.items())
    indices = tables.graph_pipelines.add(pipeline), tables.lists.add(DescriptorList(layouts, descriptors))
    return GraphDispatch(*indices, barrier, index)


def spirv_dispatch(
    graph: SpirvGraph, command: DispatchSpirvGraph, index: int, context: CommandContext
) -> GraphDispatch | None:
    """Return the operation for a dispatch_spirv_graph command; None after noting an error."""
    scenario, problems, tables = context[:3]
    pointer, label = scenario.command_pointer(index), f"graph {graph.uid!r}"
    before = len(problems.errors)
    tensors: dict[Place, TensorPlan] = {}
    declared = _places((*graph.entry.inputs, *graph.entry.outputs))
    for number, binding in enumerate(command.bindings):
        plan = tables.resources.get(binding.resource_ref)
        place = f"{pointer}/bindings/{number}"
        if plan is None:
            continue  # planning the resource has reported an error
        if plan.kind != "tensor":
            message = f"{plan.uid!r} is not a tensor; graphs take nothing else"
            problems.error("SR-BIND-003", f"{place}/resource_ref", message)
        elif (binding.set, binding.id) not in declared:
            message = f"{label} has nothing at set {binding.set}, binding {binding.id}; it has: {_listed(declared)}"
            problems.error("SR-GRAPH-005", place, message)
        else:
            tensors[binding.set, binding.id] = plan
    constants = _graph_constants(command, context)
    if len(problems.errors) > before or len(constants) < len(command.graph_constants):
        return None

    def report(what: str, code: str, message: str) -> None:
        place, help = "bindings", None
        if what == "graph_constants":
            place, help = what, "the position in graph_constants is the id of the constant"
        problems.error(code, f"{pointer}/{place}", f"{label}: {message}", help)

    tables.names[index] = (graph.uid,)
    called = CalledGraph(graph.body, graph.entry, label, graph.pointer, graph.uid)
    return graph_dispatch(called, tensors, constants, context, index, command.implicit_barrier, report)


def _graph_constants(command: DispatchSpirvGraph, context: CommandContext) -> dict[int, GraphConstantPlan]:
    """Return a command's constants by number, without constants with reported errors."""
    constants: dict[int, GraphConstantPlan] = {}
    for number, uid in enumerate(command.graph_constants):
        source, constant = context.push_constants.sources.get(uid), context.scenario.resource(uid)
        if source is not None and isinstance(constant, GraphConstant):
            description = TensorDescription(format_named(constant.format).value, tuple(constant.dims))
            constants[number] = GraphConstantPlan(number, description, _data(source))
    return constants


def _data(source: Source) -> ConstantData:
    """Return a constant's bytes; a plain file stays on disk, so large constants take no memory."""
    if isinstance(source, NpySource) and source.header.is_plain and source.size_bytes:
        with source.opened() as file:
            return FilePart(source.path, file.source.identity, file.header.data_offset, source.size_bytes)
    return memoryview(content_of(source))


def _places(ports: Iterable[GraphResource]) -> dict[Place, None]:
    return dict.fromkeys((port.set, port.binding) for port in ports)


def _listed(places: Iterable[Place]) -> str:
    return ", ".join(f"set {owner}, binding {number}" for owner, number in places) or "none"


def _port(direction: str, port: GraphResource) -> str:
    return f"{direction} {port.name!r} at set {port.set}, binding {port.binding}"


def _check_tensors(entry: GraphEntryPoint, tensors: Mapping[Place, TensorPlan], report: Report) -> None:
    """Report missing tensors, tensors without a place in the graph, and tensors with another type."""
    ports = [*(("input", port) for port in entry.inputs), *(("output", port) for port in entry.outputs)]
    for direction, port in ports:
        tensor, what = tensors.get((port.set, port.binding)), f"the graph's {_port(direction, port)}"
        if tensor is None:
            report("bindings", "SR-BIND-001", f"nothing is bound to {what}, which is {port.tensor}")
        elif mismatch := _mismatch(port.tensor, tensor.description):
            report("bindings", mismatch[0], f"{what} is {port.tensor}; tensor {tensor.uid!r} {mismatch[1]}")
    places = _places(port for _, port in ports)
    for owner, number in tensors.keys() - places.keys():  # the file's tables and modules disagree
        has_none = f"where the graph {entry.name!r:.100} has neither an input nor an output"
        message = f"its tables have a resource at set {owner}, binding {number}, {has_none}; it has: {_listed(places)}"
        report("bindings", "SR-GRAPH-005", message)


def _check_constants(module: Module, constants: Mapping[int, GraphConstantPlan], report: Report) -> None:
    """Report missing and unknown constants, and constants with another type."""
    declared = {constant.id: constant.tensor for constant in module.graph_constants}
    for number, tensor in declared.items():
        constant, what = constants.get(number), f"the graph constant {number}"
        if constant is None:
            report("graph_constants", "SR-GRAPH-002", f"{what} ({tensor}) is missing")
        elif mismatch := _mismatch(tensor, constant.description):
            report("graph_constants", "SR-GRAPH-003", f"{what} is {tensor}; its graph_constant {mismatch[1]}")
    for number in constants.keys() - declared.keys():
        message = f"the graph has no constant {number}; its constants are: {', '.join(map(str, declared)) or 'none'}"
        report("graph_constants", "SR-GRAPH-004", message)


def _mismatch(declared: Tensor, description: TensorDescription) -> tuple[str, str] | None:
    """Return a code and a message's end if a tensor differs from the declared type; None if they agree."""
    format = format_of_value(description.format)
    if not holds(format, declared.element) or not _is_for_graphs(format, declared.element):
        return "SR-TENSOR-002", f"has the format {format.name}"
    if declared.shape not in (None, description.dims) and all(size > 0 for size in declared.shape or ()):
        return "SR-TENSOR-003", f"has the shape {list(description.dims)}"
    if declared.rank is not None and declared.rank != len(description.dims):
        return "SR-TENSOR-001", f"has {len(description.dims)} dimensions (shape {list(description.dims)})"
    return None


# Element types for computing in graphs. Normalized integers are for shaders only.
_KINDS = {"int": ("sint", "uint"), "uint": ("sint", "uint"), "bool": ("bool",)}


def _is_for_graphs(format: Format, element: Scalar) -> bool:
    """Return whether graphs accept a format for this element type; drivers look operators up by the format.

    Source: Vulkan specification, VkTensorDescriptionARM, the formats for OpTypeTensorARM's element types.
    """
    return format.components == 1 and format.numeric in _KINDS.get(element.kind, (format.numeric,))
