"""Planning: resolve a scenario into sizes, sources, shaders, descriptors and frames, checked against each other."""

import os
from collections.abc import Collection, Iterable, Mapping
from itertools import chain
from operator import attrgetter
from typing import Any, NamedTuple

from scenario_runner.errors import SandboxError, ScenarioRunnerError, UsageError
from scenario_runner.files.input import ArrayLike
from scenario_runner.files.sandbox import check_path
from scenario_runner.plan.basic_commands import (
    BarrierResolver,
    BoundaryResolver,
    DispatchResolver,
    TransferResolver,
)
from scenario_runner.plan.command_parts import (
    CommandContext,
    CommandResolver,
    PushConstants,
    Tables,
    note_texel_buffers,
)
from scenario_runner.plan.graph_records import GraphPipelinePlan, OpticalFlowPlan
from scenario_runner.plan.image_layouts import LayoutTracker
from scenario_runner.plan.plan import Facts, Output, Plan, ResourcePlan
from scenario_runner.plan.records import CompilerOptions, NeededFeature, Requirements, Source
from scenario_runner.plan.resources import BufferResolver, ResourceContext, ResourceResolver, check_groups, source_of
from scenario_runner.plan.shader_modules import compile_request, load_shaders, used_shaders
from scenario_runner.plan.sources import ArraySource, NpySource, content_of
from scenario_runner.plan.tensors import TensorResolver, values_of_constant
from scenario_runner.scenario import GraphConstant, RawData, Resource, Scenario, Shader
from scenario_runner.scenario.inline_contents import file_of
from scenario_runner.scenario.scenario import Problems
from scenario_runner.shaders.spirv.index import idle_partitions

StrPath = str | os.PathLike[str]
_MOST_SHOWN = 20  # uids in a message


class Resolution(NamedTuple):
    """A plan, the commands' context, and the shaders for these commands."""

    plan: Plan
    context: CommandContext
    shaders: list[Shader]


def resolve(
    scenario: Scenario,
    inputs: Mapping[str, ArrayLike] | None = None,
    outputs: Collection[str] | None = None,
    output_dir: StrPath | None = None,
    compiler: CompilerOptions | None = None,
) -> Plan:
    """Plan a run without a device.

    ``inputs`` replaces resources' initial content by uid. ``outputs`` names resources to read back beside those
    with a ``dst``. Relative ``dst`` paths start from ``output_dir`` (default: the scenario's folder).

    Raises ScenarioError, FileError or ShaderError with every problem in the scenario, UnsupportedError for a feature
    this version does not run, and UsageError for unknown inputs and outputs.
    """
    names = [outputs] if isinstance(outputs, str) else outputs or ()
    return resolve_with_context(scenario, inputs or {}, names, output_dir, compiler).plan


def resolve_with_context(
    scenario: Scenario,
    inputs: Mapping[str, ArrayLike],
    outputs: Collection[str],
    output_dir: StrPath | None,
    compiler: CompilerOptions | None,
    thorough: Problems | None = None,
) -> Resolution:
    """Plan a run like `resolve`. With ``thorough``, collect errors there and go on, instead of raising them."""
    problems = thorough or Problems(scenario)
    declared: dict[str, Resource] = {}
    readonly: set[str] = set()
    for resource in scenario.resources:
        declared[resource.uid] = resource
        if getattr(resource, "shader_access", "") == "readonly":
            readonly.add(resource.uid)
    kinds = set(map(attrgetter("kind"), (*scenario.resources, *scenario.commands)))
    if inputs or outputs:
        _check_names(declared, inputs, outputs)
    graphs: Any = None
    shapes: Mapping[str, tuple[int, ...]] = {}
    deferred: frozenset[str] = frozenset()
    if not kinds.isdisjoint(("dispatch_graph", "dispatch_spirv_graph")):
        from scenario_runner.plan.graph_files import GraphFiles

        graphs = GraphFiles(scenario, inputs, problems)
        shapes, deferred = graphs.shapes, graphs.deferred
    resources, sources = resolve_resources(ResourceContext(scenario, problems, inputs, outputs, shapes, deferred))
    if thorough is None:
        problems.raise_if_any()
    shaders = used_shaders(scenario)
    places = {} if graphs is None else graphs.add_shaders(shaders)
    loaded = load_shaders(
        scenario, shaders, compiler or CompilerOptions(), problems, places, thorough=thorough is not None
    )
    layouts = image_uses = None
    tables = Tables(resources)
    if "image" in kinds:
        layouts = LayoutTracker(resources, tables.lists, scenario, problems)
    if "image" in kinds or graphs is not None:
        from scenario_runner.plan.images import ImageUses

        image_uses = ImageUses(resources)
    context = CommandContext(
        scenario,
        problems,
        tables,
        loaded,
        PushConstants(scenario, problems, sources, {}),
        frozenset(readonly),
        frozenset(outputs),
        layouts,
        image_uses,
        graphs,
    )
    plan = _assemble(context)
    if thorough is None:
        problems.raise_if_any()
    without_barrier = [command for command in scenario.commands if not getattr(command, "implicit_barrier", True)]
    if without_barrier and not problems.errors:
        from scenario_runner.plan.accesses import certain_hazards

        problems.report(certain_hazards(scenario, plan, loaded))
    folder = scenario.base_dir if output_dir is None else output_dir
    written = _outputs(context, declared, outputs, folder)
    plan = plan._replace(outputs=written, warnings=(*scenario.warnings, *problems.warnings))
    return Resolution(plan, context, shaders)


def resolve_to_keep(
    scenario: Scenario,
    *,
    output_dir: str | None = None,
    compiler: CompilerOptions = CompilerOptions(),  # noqa: B008 - a tuple
) -> tuple[Plan, Facts | None]:
    """Plan a scenario, and collect the facts to store with the plan; None if the plan cannot be stored."""
    plan, context, shaders = resolve_with_context(scenario, {}, (), output_dir, compiler)
    return plan, _facts(context, shaders)


def _facts(context: CommandContext, shaders: Iterable[Shader]) -> Facts | None:
    """Collect facts about a new plan; None if the plan cannot be stored."""
    scenario, loaded = context.scenario, context.shaders
    models = []
    for graph in () if context.graphs is None else context.graphs.graphs.values():
        if graph.identity is None or not graph.identity.settled:
            return None
        models.append((graph.path, graph.identity))
    sources, binaries = [], []
    for shader in shaders:
        code = loaded[shader.uid].code
        if shader.type != "SPIR-V":
            sources.append((compile_request(scenario, shader), code))
        elif isinstance(shader.src, str):  # shaders inside a model change with the model's file
            binaries.append((os.path.join(scenario.base_dir, shader.src), code))
    contents = []
    for uid, source in context.push_constants.sources.items():
        if isinstance(source, ArraySource):
            return None
        if isinstance(source, NpySource):  # the text contains an object in src
            contents.append((source, context.push_constants.read.get(uid)))
    return Facts(tuple(sources), tuple(binaries), tuple(contents), tuple(models))


def _assemble(context: CommandContext) -> Plan:
    """Resolve the commands and assemble a plan without outputs and warnings."""
    scenario, problems, tables = context[:3]
    _resolve_commands(context)
    features = tuple(tables.features)
    note_texel_buffers(tables)
    resources: Mapping[str, ResourcePlan] = tables.resources
    frames = tuple(tables.frames)
    kinds = set(map(attrgetter("kind"), resources.values()))  # resources inside graphs included
    image_uses = context.image_uses
    if image_uses is not None:
        resources, needed = image_uses.apply_usage(tables.lists, frames, problems)
        features = (*needed, *features)
    if tables.graph_pipelines or "tensor" in kinds:
        features += _ml_features(tables.resources.values(), tables.graph_pipelines)
    files = [] if scenario.path is None else [scenario.path]
    for resource in scenario.resources:
        name = file_of(resource)
        if name is not None:
            files.append(os.path.join(scenario.base_dir, name))
    for shader in context.shaders.values():
        files += shader.includes
    return Plan(
        name=scenario.path or "<scenario>",
        resources=resources,
        pipelines=tuple(tables.pipelines),
        descriptor_lists=tuple(tables.lists),
        frames=frames,
        outputs=(),
        requirements=_requirements(context, features),
        graph_pipelines=tuple(tables.graph_pipelines),
        declared={} if image_uses is None else image_uses.declared,
        reads=tuple(dict.fromkeys(files)),
        names=tables.names,
        graphics_pipelines=tuple(tables.graphics_pipelines),
    )


def _check_names(declared: Mapping[str, Resource], inputs: Iterable[str], outputs: Iterable[str]) -> None:
    """Raise UsageError for impossible inputs and outputs."""
    for what, names, field in (("inputs", inputs, "data"), ("outputs", outputs, "dst")):
        for name in names:
            resource = declared.get(name)
            if resource is None:
                some = [repr(uid) for uid in declared][:_MOST_SHOWN]
                there_are = ", ".join(some) + (", …" if len(declared) > len(some) else "")
                raise UsageError(f"{what}: no resource has the uid {name!r}; there are {there_are}")
            if field not in type(resource).model_fields:
                raise UsageError(f"{what}: {name!r} is a {resource.kind}, which has none")


def _resolve_commands(context: CommandContext) -> None:
    """Fill the tables with the commands' operations."""
    commands, tables, images = context.scenario.commands, context.tables, context.layouts
    resolvers: dict[type[CommandResolver], CommandResolver] = {}  # command kinds may share a resolver
    for index, command in enumerate(commands):
        resolver = _command_resolver(command.kind)
        if resolver not in resolvers:
            resolvers[resolver] = resolver(context)
        operations = resolvers[resolver].resolve(command, index)
        if images is not None:
            operations = chain.from_iterable(map(images.around, operations))
        tables.operations.extend(operations)
    if images is not None:
        tables.operations += images.restoring(len(commands))  # a repeated run needs every image in the first layout
    if tables.operations:
        tables.end_frame((), len(tables.frames), False, "/commands", images)
    if context.graphs is not None:
        context.graphs.report_unknown_shapes()


def _outputs(
    context: CommandContext, declared: Mapping[str, Any], outputs: Collection[str], output_dir: StrPath
) -> tuple[Output, ...]:
    """List the resources with a ``dst`` and the resources in ``outputs``."""
    planned = []
    for uid in context.tables.resources:
        if uid not in declared:
            continue  # a tensor between two graph segments
        destination = declared[uid].dst
        path = None if destination is None else os.path.join(output_dir, destination)
        if path is not None:
            try:
                check_path(path)
            except SandboxError as error:
                context.problems.add_error(error, f"{context.scenario.resource_pointer(uid)}/dst")
        if path is not None or uid in outputs:
            planned.append(Output(uid, path))
    return tuple(planned)


def _requirements(context: CommandContext, features: tuple[NeededFeature, ...]) -> Requirements:
    """Collect requirements on a device, each with the first shader or graph to need it."""
    tables = context.tables
    capabilities: dict[str, str] = {}
    extensions: dict[str, str] = {}
    version, newest = (1, 0), ""
    places: dict[str, str] = {}
    for shader in context.shaders.values():
        places[shader.uid] = shader.pointer
        for capability in shader.module.capabilities:
            capabilities.setdefault(capability, shader.uid)
        for extension in shader.module.extensions:
            extensions.setdefault(extension, shader.uid)
        if shader.module.version > version:
            version, newest = shader.module.version, shader.uid
        features += shader.features
    for capability, uid in () if context.image_uses is None else context.image_uses.capabilities.items():
        capabilities.setdefault(capability, uid)
    graphs: dict[str, str] = {}
    for label, (module, pointer) in tables.graph_modules.items():
        places[label] = pointer
        for capability in module.capabilities:
            graphs.setdefault(capability, label)
    graphics = tables.graphics_pipelines[0].pointer if tables.graphics_pipelines else None
    matrices = {shader.uid: shader.matrices for shader in context.shaders.values() if shader.matrices}
    idle = frozenset(shader.uid for shader in context.shaders.values() if idle_partitions(shader.module.source))
    return Requirements(capabilities, extensions, version, features, graphs, newest, places, graphics, matrices, idle)


_TENSORS = "VkPhysicalDeviceTensorFeaturesARM"
_GRAPHS = "VkPhysicalDeviceDataGraphFeaturesARM"
_OPTICAL_FLOW = "VkPhysicalDeviceDataGraphOpticalFlowFeaturesARM"
_VULKAN_1_3 = "VkPhysicalDeviceVulkan13Features"


def _ml_features(
    resources: Iterable[ResourcePlan], graphs: Iterable[GraphPipelinePlan | OpticalFlowPlan]
) -> tuple[NeededFeature, ...]:
    """List features for tensors and graphs, each with the first resource or graph to need it."""
    features: dict[tuple[str, str], NeededFeature] = {}

    def need(structure: str, member: str, what: str, pointer: str) -> None:
        features.setdefault((structure, member), NeededFeature(structure, member, what, pointer))

    for plan in resources:
        if plan.kind == "tensor":
            what = f"tensor {plan.uid!r}"
            need(_TENSORS, "tensors", what, plan.pointer)
            need(_VULKAN_1_3, "synchronization2", what, plan.pointer)
            if plan.linear and (plan.strides is not None or plan.image is not None):
                need(_TENSORS, "tensorNonPacked", f"{what} with unpacked elements", plan.pointer)
    for graph in graphs:
        need(_GRAPHS, "dataGraph", graph.label, graph.pointer)
        if graph.kind == "graph":
            need(_GRAPHS, "dataGraphShaderModule", graph.label, graph.pointer)
        else:
            need(_OPTICAL_FLOW, "dataGraphOpticalFlow", graph.label, graph.pointer)
    return tuple(features.values())


def _resource_resolver(kind: str) -> type[ResourceResolver] | None:
    """Return the class for planning a resource kind; None for kinds without memory on the device."""
    if kind == "buffer":
        return BufferResolver
    if kind == "image":
        from scenario_runner.plan.images import ImageResolver

        return ImageResolver
    if kind == "tensor":
        return TensorResolver
    return None


def _command_resolver(kind: str) -> type[CommandResolver]:
    """Return the class for planning a command kind."""
    if kind == "dispatch_fragment":
        from scenario_runner.plan.draws import DrawResolver

        return DrawResolver
    if kind in ("dispatch_graph", "dispatch_spirv_graph"):
        from scenario_runner.plan.graph_commands import GraphResolver

        return GraphResolver
    if kind == "dispatch_optical_flow":
        from scenario_runner.plan.data_graphs import OpticalFlowResolver

        return OpticalFlowResolver
    if kind in ("fill", "copy"):
        return TransferResolver
    others: dict[str, type[CommandResolver]] = {
        "dispatch_compute": DispatchResolver,
        "dispatch_barrier": BarrierResolver,
        "mark_boundary": BoundaryResolver,
    }
    return others[kind]


def resolve_resources(context: ResourceContext) -> tuple[dict[str, ResourcePlan], dict[str, Source]]:
    """Plan a scenario's resources, and note errors; a resource with errors is left out.

    Returns resources with memory on the device, and sources for raw_data and graph constants, by uid.
    """
    scenario, problems = context.scenario, context.problems
    planned: dict[str, ResourcePlan] = {}
    sources: dict[str, Source] = {}
    groups: dict[str, list[ResourcePlan]] = {}
    resolvers: dict[str, ResourceResolver] = {}
    for index, resource in enumerate(scenario.resources):
        kind, pointer = resource.kind, scenario.resource_pointer(index)
        if kind not in resolvers and (resolver := _resource_resolver(kind)):
            resolvers[kind] = resolver(context)
        try:
            if isinstance(resource, RawData):
                source = source_of(scenario, resource, context.inputs)
                assert source is not None, "the model requires a source of raw_data"
                sources[resource.uid] = source
            elif isinstance(resource, GraphConstant):
                constant = values_of_constant(context, resource, pointer)
                if constant is not None:
                    sources[resource.uid] = constant
            elif kind in resolvers:
                plan = resolvers[kind].resolve(resource, pointer)
                group = resource.memory_group  # type: ignore[attr-defined]
                if plan is not None and group is not None:
                    plan = plan._replace(group=group.id, offset_bytes=group.offset)
                    groups.setdefault(group.id, []).append(plan)
                if plan is not None:
                    planned[resource.uid] = plan
        except ScenarioRunnerError as error:
            problems.add_error(error, f"{pointer}/src")
    if groups:
        check_groups(groups, planned, problems)
    return planned, sources


def with_inputs(plan: Plan, scenario: Scenario, inputs: Mapping[str, ArrayLike]) -> Plan | None:
    """Replace content in a plan: buffers, tensors, images and raw_data, by uid.

    Returns None if the content does not fit, or if other parts of the plan may depend on it, such as shapes in graphs.
    The caller then plans the scenario again, which gives the plan or the error.
    """
    resources = dict(plan.resources)
    push_constants: dict[str, bytes] = {}
    for uid, data in inputs.items():
        planned = resources.get(uid)
        try:
            if planned is None:
                push_constants[uid] = content_of(ArraySource(data, uid))
                continue
            if planned.group is not None:
                return None  # the whole group decides which member fills the shared memory
            resolver = _resource_resolver(planned.kind)
            assert resolver is not None, "the resource was planned"
            replaced: ResourcePlan | None = resolver.replaced(planned, scenario, data)
        except UsageError:
            return None
        if replaced is None:
            return None
        resources[uid] = replaced
    plan = plan._replace(resources=resources)
    return _with_push_constants(plan, scenario, push_constants) if push_constants else plan


def _with_push_constants(plan: Plan, scenario: Scenario, push_constants: Mapping[str, bytes]) -> Plan | None:
    """Replace push constants in dispatches and draws. Return None if a graph uses them, or if a size differs."""
    used = set()
    frames = []
    for frame in plan.frames:
        operations = []
        for operation in frame.operations:
            if operation.kind == "dispatch" or operation.kind == "draw":
                command = scenario.commands[operation.command]
                uid: str | None = getattr(command, "push_data_ref", None)
                if uid is not None and uid in push_constants:
                    if command.kind == "dispatch_graph" or len(push_constants[uid]) != len(operation.push_constants):
                        return None
                    used.add(uid)
                    operation = operation._replace(push_constants=push_constants[uid])
            operations.append(operation)
        frames.append(frame._replace(operations=tuple(operations)))
    return plan._replace(frames=tuple(frames)) if used == push_constants.keys() else None
