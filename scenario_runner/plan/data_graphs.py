"""Data graphs other than VGF models: graphs in SPIR-V modules (dispatch_spirv_graph), and optical flows.

The constants of a graph come from graph_constant resources. The planner checks tensors and constants against a graph's
declarations: the emulation layers abort the process on most mistakes. An optical flow sees a single mip level in each
image.

Source: SPV_ARM_graph, VK_ARM_data_graph_optical_flow, and the Vulkan specification's valid usage of
VkDataGraphPipelineCreateInfoARM and VkDataGraphPipelineOpticalFlowCreateInfoARM.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple, get_args

from scenario_runner.checks.bindings import holds
from scenario_runner.errors import ScenarioRunnerError
from scenario_runner.files.vk_formats import Format, format_named, format_of_value
from scenario_runner.ml.graph_module import GraphModule
from scenario_runner.ml.tosa_operators import merged
from scenario_runner.plan.command_parts import CommandContext, CommandResolver
from scenario_runner.plan.graph_files import SpirvGraph
from scenario_runner.plan.graph_records import (
    Connection,
    FlowConnection,
    GraphConstantPlan,
    GraphDispatch,
    GraphPipelinePlan,
    GraphResourcePlan,
    OpticalFlowDispatch,
    OpticalFlowPlan,
    TensorDescription,
    TensorPlan,
)
from scenario_runner.plan.image_records import ImagePlan, ImageUsage
from scenario_runner.plan.records import Descriptor, DescriptorKind, DescriptorList, LayoutBinding, Source
from scenario_runner.plan.sources import ConstantData, FilePart, NpySource, content_of
from scenario_runner.scenario import Binding, DispatchOpticalFlow, DispatchSpirvGraph, GraphConstant
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
_NUMERIC_KINDS = {"int": ("sint", "uint"), "uint": ("sint", "uint"), "bool": ("bool",)}


def _is_for_graphs(format: Format, element: Scalar) -> bool:
    """Return whether graphs accept a format for this element type; drivers look operators up by the format.

    Source: Vulkan specification, VkTensorDescriptionARM, the formats for OpTypeTensorARM's element types.
    """
    return format.components == 1 and format.numeric in _NUMERIC_KINDS.get(element.kind, (format.numeric,))


# A flow vector belongs to an input texel and points into the reference.
_FLOW_CONNECTIONS: Final[dict[str, Connection]] = dict(
    zip(
        ("search_image", "template_image", "hint_motion_vectors", "output_image", "output_cost"),
        get_args(Connection),
        strict=True,
    )
)
"""Binding name → connection."""
_FLOW_OUTPUTS: Final = ("output_image", "output_cost")
"""The bindings written by an optical flow; it reads all others."""
_FLAGS_OF_FOLLOWING: Final = frozenset(
    {"input_unchanged", "reference_unchanged", "input_is_previous_reference", "reference_is_previous_input"}
)
"""Flags about the previous dispatch's images."""
_FLOW_DESCRIPTORS: Final[dict[str, DescriptorKind]] = {
    "VK_DESCRIPTOR_TYPE_AUTO": "sampled_image",
    "VK_DESCRIPTOR_TYPE_STORAGE_IMAGE": "storage_image",
    "VK_DESCRIPTOR_TYPE_SAMPLED_IMAGE": "sampled_image",
    "VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER": "combined_image_sampler",
}
"""The ``descriptor_type`` in a scenario → the descriptor through which an optical flow reads."""
# The emulation layers sample every input, whatever the descriptor's type.
_FLOW_USAGE: Final[dict[Connection, tuple[ImageUsage, ...]]] = {
    "input": ("flow_input", "sampled"),
    "reference": ("flow_input", "sampled"),
    "hint": ("flow_hint", "sampled"),
    "flow_vector": ("flow_output",),
    "cost": ("flow_cost",),
}


class _FlowImage(NamedTuple):
    """A mip level for an optical flow to read or write; ``place`` is the binding's pointer."""

    plan: ImagePlan
    level: int
    kind: DescriptorKind
    place: str

    @property
    def label(self) -> str:
        """The name in messages."""
        return self.plan.level_name(self.level)


class OpticalFlowResolver(CommandResolver):
    """Resolves dispatch_optical_flow. Dispatches with equal content share a pipeline and a session."""

    def __init__(self, context: CommandContext) -> None:
        super().__init__(context)
        self._problems = context.problems
        self._started: set[int] = set()

    def resolve(self, command: DispatchOpticalFlow, index: int) -> tuple[OpticalFlowDispatch, ...]:
        tables, before = self.context.tables, len(self._problems.errors)
        pointer, bindings = self.context.scenario.command_pointer(index), command.bindings.given()
        images: dict[str, _FlowImage] = {}
        for name, binding in bindings.items():
            place = f"{pointer}/bindings/{name}"
            if self.context.layouts is not None:
                self.context.layouts.check_shader_access(binding.resource_ref, binding.lod or 0, place)
            image = self._image(name, binding, place)
            if image is not None:
                images[name] = image
        grid = int(command.grid_size.partition("x")[0])
        self._check_sizes(images, command.width, command.height, grid)
        for first_name, second_name in (("search_image", "template_image"), ("output_image", "hint_motion_vectors")):
            self._check_formats(images, first_name, second_name)
        self._check_access(images)
        if len(self._problems.errors) > before or len(images) < len(bindings):
            return ()
        # Only the connections matter: sets and ids in the scenario may be any numbers.
        numbered = [(number, images[name], name) for number, name in enumerate(filter(images.get, _FLOW_CONNECTIONS))]
        descriptors = tuple(
            Descriptor(
                0, number, image.kind, image.plan.uid, image.level, "flow_input" in _FLOW_USAGE[_FLOW_CONNECTIONS[name]]
            )
            for number, image, name in numbered
        )
        connections = tuple(
            FlowConnection(0, number, _FLOW_CONNECTIONS[name], image.plan.format.value, image.plan.uid, image.place)
            for number, image, name in numbered
        )
        set_layouts = (tuple(LayoutBinding(descriptor.binding, descriptor.kind) for descriptor in descriptors),)
        size = command.width, command.height
        name = "the optical flow"
        plan = OpticalFlowPlan(*size, grid, command.performance_level, set_layouts, connections, name, pointer)
        pipeline = tables.graph_pipelines.add(plan)
        for name, image in images.items():
            latest: Any = tables.resources[image.plan.uid]
            tables.resources[image.plan.uid] = latest._replace(
                usage=latest.usage.union(_FLOW_USAGE[_FLOW_CONNECTIONS[name]])
            )
        flags: tuple[str, ...] = tuple(command.execution_flags)
        if pipeline not in self._started:
            self._started.add(pipeline)
            flags = self._first_flags(flags, pointer)
        tables.names[index] = (command.kind,)
        lists, hint = tables.lists.add(DescriptorList(set_layouts, descriptors)), command.mean_flow_l1_norm_hint
        return (OpticalFlowDispatch(pipeline, lists, command.implicit_barrier, index, flags, hint),)

    def _image(self, name: str, binding: Binding, place: str) -> _FlowImage | None:
        """Return a binding's mip level; None for an unsuitable image."""
        plan = self.context.tables.resources.get(binding.resource_ref)
        if not isinstance(plan, ImagePlan):
            return None
        kind = _FLOW_DESCRIPTORS.get(binding.descriptor_type)
        if name in _FLOW_OUTPUTS:
            is_auto = binding.descriptor_type == "VK_DESCRIPTOR_TYPE_AUTO"
            kind = "storage_image" if is_auto or kind == "storage_image" else None
        if kind is None:
            expected = (
                "VK_DESCRIPTOR_TYPE_STORAGE_IMAGE" if name in _FLOW_OUTPUTS else "the descriptor type of an image"
            )
            message = f"{name} of an optical flow cannot be bound as {binding.descriptor_type}"
            self._problems.error("SR-FLOW-005", f"{place}/descriptor_type", message, f"leave it out, or use {expected}")
            return None
        level = binding.lod or 0
        if level >= plan.mips:
            return None  # reading the scenario has reported the level
        return _FlowImage(plan, level, kind, f"{place}/resource_ref")

    def _check_sizes(self, images: dict[str, _FlowImage], width: int, height: int, grid: int) -> None:
        """Compare image sizes with the optical flow's size and grid."""
        vectors = -(-width // grid), -(-height // grid)
        for name, image in images.items():
            part = image.plan.part_of(image.level)
            texels = f"{image.label} has {part.width} x {part.height} texels"
            if name in ("search_image", "template_image"):
                if (part.width, part.height) != (width, height):
                    message = f"{texels}; the optical flow has {width} x {height} texels"
                    help = "give the command the width and height of search_image and template_image"
                    self._problems.error("SR-FLOW-001", image.place, message, help)
            elif (part.width, part.height) != vectors:
                flow = f"an optical flow of {width} x {height} texels with the grid size {grid}x{grid}"
                message = f"{texels}; {flow} has {vectors[0]} x {vectors[1]} vectors"
                self._problems.error("SR-FLOW-002", image.place, message, "the image has one texel for each vector")

    def _check_formats(self, images: dict[str, _FlowImage], first_name: str, second_name: str) -> None:
        """Note an error if two images must share a format but differ."""
        first, second = images.get(first_name), images.get(second_name)
        if first is None or second is None or first.plan.format is second.plan.format:
            return
        message = f"{second.label} is {second.plan.format.name}, and {first.label} is {first.plan.format.name}"
        help = f"give {first_name} and {second_name} the same format"
        self._problems.error("SR-FLOW-003", second.place, message, help)

    def _check_access(self, images: dict[str, _FlowImage]) -> None:
        """Note images also written through another binding, and warn of a wrong ``shader_access``."""
        seen: dict[tuple[str, int], str] = {}
        for name, image in sorted(images.items(), key=lambda item: item[0] in _FLOW_OUTPUTS):
            uid = image.plan.uid
            other = seen.setdefault((uid, image.level), name)
            if other != name and name in _FLOW_OUTPUTS:
                message = f"{image.label} is bound as {other}, and the optical flow also writes it as {name}"
                self._problems.error("SR-FLOW-004", image.place, message, f"bind another image as {name}")
            access = getattr(self.context.scenario.resource(uid), "shader_access", "")
            code, does, wrong, right = "SR-ACCESS-002", "reads", "writeonly", "readonly"
            if name in _FLOW_OUTPUTS:
                code, does, wrong, right = "SR-ACCESS-001", "writes", "readonly", "writeonly"
            if access == wrong:
                message = f"the optical flow {does} image {uid!r}, but its shader_access is {wrong!r}"
                self._problems.warn(code, image.place, message, f"give {uid!r} the shader_access {right!r}")

    def _first_flags(self, flags: tuple[str, ...], pointer: str) -> tuple[str, ...]:
        """Drop and warn of flags about a previous optical flow. A session's first optical flow has none."""
        for index, flag in enumerate(flags):
            if flag in _FLAGS_OF_FOLLOWING:
                message = f"the flag {flag!r} is ignored: the session has no previous optical flow"
                help = "optical flows of equal size, grid size, performance level and formats share a session"
                place = f"{pointer}/execution_flags/{index}"
                self._problems.warn("SR-FLOW-006", place, message, help)
        return tuple(flag for flag in flags if flag not in _FLAGS_OF_FOLLOWING)
