"""From a scenario to a plan: sizes, sources, shaders, descriptors and frames, checked against each other. No GPU."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from scenario_runner.errors import SandboxError, ScenarioRunnerError, UsageError
from scenario_runner.files.sandbox import check_path
from scenario_runner.files.source import Identity
from scenario_runner.kinds import COMMANDS, load
from scenario_runner.plan.context import CommandResolver, PlanContext, Tables
from scenario_runner.plan.model.commands import GraphPipelinePlan, OpticalFlowPlan
from scenario_runner.plan.model.plan import FramePlan, Output, Plan, ResourcePlan
from scenario_runner.plan.model.records import CompilerOptions, NeededFeature, Requirements
from scenario_runner.plan.plan_cache import Facts
from scenario_runner.plan.problems import Problems
from scenario_runner.plan.resources import resolve_resources
from scenario_runner.plan.shaders import LoadedShader, compile_request, load_shaders, used_shaders
from scenario_runner.plan.sources import NpySource
from scenario_runner.scenario import Scenario, Shader

if TYPE_CHECKING:
    from scenario_runner.plan.fragment import Drawing
    from scenario_runner.plan.layouts import LayoutTracker


def facts_of(
    context: PlanContext, plan: Plan, shaders: Iterable[Shader], files: Iterable[tuple[str, Identity | None]]
) -> Facts | None:
    """The facts of a plan that was just made, from what was read while it was made: nothing is read again.

    ``shaders`` are all that the plan uses; ``files`` those that resolvers of commands read. None when the plan cannot
    be kept.
    """
    scenario, loaded = context.scenario, context.shaders
    models = []
    for path, identity in files:
        if identity is None or not identity.settled:
            return None
        models.append((path, tuple(identity)))
    # shaders of equal code may share a pipeline, so that not each has one of its own
    by_code = {code: index for index, code in enumerate(plan.shader_codes)}
    sources = []
    binaries = []
    for shader in shaders:
        code = loaded[shader.uid].code
        index = by_code.get(code, code)  # a pipeline may have another code than its shader, see `image_formats`
        if shader.type != "SPIR-V":
            sources.append((index, tuple(compile_request(scenario, shader))))
        elif shader.src is not None:  # what a model brings itself is as old as its file
            binaries.append((index, os.path.join(scenario.base_dir, shader.src)))
    contents = []
    for uid, source in context.raw_data.items():
        if not isinstance(source, NpySource):
            return None
        contents.append((source.path, tuple(source.header), context.push_constants.read.get(uid)))
    return Facts(tuple(sources), tuple(binaries), tuple(contents), tuple(models))


_TENSORS = "VkPhysicalDeviceTensorFeaturesARM"
_GRAPHS = "VkPhysicalDeviceDataGraphFeaturesARM"
_OPTICAL_FLOW = "VkPhysicalDeviceDataGraphOpticalFlowFeaturesARM"
_VULKAN_1_3 = "VkPhysicalDeviceVulkan13Features"


def ml_features(
    resources: Iterable[ResourcePlan], graphs: Iterable[GraphPipelinePlan | OpticalFlowPlan]
) -> tuple[NeededFeature, ...]:
    """One entry for each feature, with the first resource or graph that needs it."""
    found: dict[tuple[str, str], NeededFeature] = {}

    def need(structure: str, member: str, what: str, pointer: str) -> None:
        found.setdefault((structure, member), NeededFeature(structure, member, what, pointer))

    for plan in resources:
        if plan.kind == "tensor":
            what = f"tensor {plan.uid!r}"
            need(_TENSORS, "tensors", what, plan.pointer)
            need(_VULKAN_1_3, "synchronization2", what, plan.pointer)
            if plan.linear and (plan.strides is not None or plan.image is not None):
                need(_TENSORS, "tensorNonPacked", f"{what}, whose elements are not packed,", plan.pointer)
    for graph in graphs:
        need(_GRAPHS, "dataGraph", graph.label, graph.pointer)
        if graph.kind == "graph":
            need(_GRAPHS, "dataGraphShaderModule", graph.label, graph.pointer)
        else:
            need(_OPTICAL_FLOW, "dataGraphOpticalFlow", graph.label, graph.pointer)
    return tuple(found.values())


# uids that a message lists
_MOST_SHOWN = 20


def resolve(
    scenario: Scenario,
    *,
    inputs: Mapping[str, Any] | None = None,
    outputs: Collection[str] | None = None,
    output_dir: str | None = None,
    compiler: CompilerOptions | None = None,
) -> Plan:
    """Work out what a run of ``scenario`` does.

    ``inputs`` replaces the initial content of buffers and raw_data by uid; ``outputs`` names what is read back (by
    default whatever has a ``dst``). Relative ``dst`` paths count from ``output_dir`` (default: the scenario's folder).

    Raises ScenarioError, FileError or ShaderError, each with everything that is wrong; UnsupportedError when the
    scenario is right but holds what this version does not run; UsageError for inputs and outputs that do not exist.
    """
    return _Resolver(scenario, dict(inputs or {}), outputs, output_dir, compiler or CompilerOptions()).plan()


def resolve_to_keep(
    scenario: Scenario, *, output_dir: str | None = None, compiler: CompilerOptions | None = None
) -> tuple[Plan, Facts | None]:
    """As `resolve`, with the facts that the plan cache keeps beside the plan; None where the plan cannot be kept."""
    resolver = _Resolver(scenario, {}, None, output_dir, compiler or CompilerOptions())
    plan = resolver.plan()
    return plan, resolver.facts(plan)


class Examination(NamedTuple):
    """A scenario that was looked at as a whole, whatever is wrong with it.

    ``plan`` has what could be planned, None where nothing could; ``problems`` everything that is wrong; ``shaders``
    those of the plan that could be loaded, by uid; ``drawings`` the commands that draw.
    """

    plan: Plan | None
    problems: Problems
    shaders: Mapping[str, LoadedShader]
    drawings: tuple[Drawing, ...] = ()


def examine(scenario: Scenario, compiler: CompilerOptions | None = None, output_dir: str | None = None) -> Examination:
    """Look at everything that `resolve` looks at, without stopping at what is wrong, and at the files of ``dst``."""
    compiler = compiler or CompilerOptions()
    resolver = _Resolver(scenario, {}, None, output_dir, compiler, thorough=True)
    plan = None
    try:
        plan = resolver.plan()
        _examine_destinations(plan, resolver.problems)
    except ScenarioRunnerError as error:
        noted = set(resolver.problems.errors)
        error.problems = tuple(problem for problem in error.problems if problem not in noted)
        resolver.problems.add_error(error, "")
    return Examination(plan, resolver.problems, resolver.context.shaders, resolver.drawings)


def _examine_destinations(plan: Plan, problems: Problems) -> None:
    from scenario_runner.plan.destinations import mixed_outputs, wrong_destinations

    problems.report(wrong_destinations(plan))
    mixed = mixed_outputs(plan)
    if mixed is not None:
        problems.report([mixed])


class _Resolver:
    def __init__(
        self,
        scenario: Scenario,
        inputs: dict[str, Any],
        outputs: Collection[str] | None,
        output_dir: str | None,
        compiler: CompilerOptions,
        *,
        thorough: bool = False,
    ) -> None:
        self._scenario = scenario
        self._inputs = inputs
        self._outputs = outputs
        self._output_dir = scenario.base_dir if output_dir is None else output_dir
        self._compiler = compiler
        self._thorough = thorough
        self._by_uid: dict[str, Any] = {resource.uid: resource for resource in scenario.resources}
        self.context = PlanContext(scenario, inputs, self._shown())
        self.problems = self.context.problems
        self._resolvers: dict[str, CommandResolver] = {}

    def plan(self) -> Plan:
        context, tables, problems = self.context, self.context.tables, self.problems
        self._check_names()
        self._resolvers = self._make_resolvers()
        resolvers = list(dict.fromkeys(self._resolvers.values()))
        for resolver in resolvers:
            context.shapes |= resolver.shapes()
        for resolver in resolvers:
            context.deferred |= resolver.deferred()
        resolve_resources(context)
        self._stop_if_wrong()
        shaders = self._used_shaders = used_shaders(self._scenario)
        places: dict[str, str] = {}
        for resolver in resolvers:
            places |= resolver.add_shaders(shaders)
        context.shaders |= load_shaders(
            self._scenario, shaders, self._compiler, problems, places, thorough=self._thorough
        )
        frames = self._frames()
        for resolver in resolvers:
            resolver.finish()
        if context.layouts is not None and any(plan.kind == "tensor" for plan in tables.resources.values()):
            from scenario_runner.plan.layouts import with_aliasing

            frames = with_aliasing(frames, tables.resources, tables.lists, self._scenario, problems)
        resources: Mapping[str, ResourcePlan] = tables.resources
        features: tuple[NeededFeature, ...] = ()
        if any(plan.kind == "image" for plan in tables.resources.values()):  # those inside of graphs as well
            from scenario_runner.plan.images import with_usage

            resources, features = with_usage(resources, tables.lists, frames, problems, tables.without_format)
        for resolver in resolvers:
            features += resolver.features()
        self._stop_if_wrong()
        return Plan(
            name=self._scenario.path or "<scenario>",
            resources=resources,
            pipelines=tuple(tables.pipelines),
            descriptor_lists=tuple(tables.lists),
            frames=frames,
            outputs=self._planned_outputs(),
            requirements=_requirements(context.shaders.values(), (*features, *self._ml_features()), tables),
            warnings=(*self._scenario.warnings, *problems.warnings),
            graph_pipelines=tuple(tables.graph_pipelines),
            declared=tables.declared,
            reads=self._reads(),
            names=tables.names,
            graphics_pipelines=tuple(tables.graphics_pipelines),
        )

    @property
    def drawings(self) -> tuple[Drawing, ...]:
        """The commands that draw, as far as they were planned."""
        drawings: Any = self._resolvers.get("dispatch_fragment")
        return () if drawings is None else tuple(drawings.planned)

    def facts(self, plan: Plan) -> Facts | None:
        """What ``plan`` was made of."""

        files = [file for resolver in dict.fromkeys(self._resolvers.values()) for file in resolver.files()]
        return facts_of(self.context, plan, self._used_shaders, files)

    def _make_resolvers(self) -> dict[str, CommandResolver]:
        """What resolves each kind of command that is there."""
        made: dict[str, CommandResolver] = {}
        kinds = dict.fromkeys(command.kind for command in self._scenario.commands)
        names = {kind: COMMANDS[kind].resolver for kind in kinds}
        for name in names.values():
            if name not in made:
                made[name] = load(name)(self.context)
        return {kind: made[name] for kind, name in names.items()}

    def _ml_features(self) -> tuple[NeededFeature, ...]:
        """What tensors and graphs need of a device."""
        tables = self.context.tables
        if not tables.graph_pipelines and all(plan.kind != "tensor" for plan in tables.resources.values()):
            return ()

        return ml_features(tables.resources.values(), tables.graph_pipelines)

    def _shown(self) -> set[str]:
        """The resources that are read back for more than the file of their ``dst``."""
        shown = (command.shown() for command in self._scenario.commands)
        return {uid for uids in shown for uid in uids}.union(self._outputs or ())

    def _stop_if_wrong(self) -> None:
        if not self._thorough:
            self.problems.raise_if_any()

    def _check_names(self) -> None:
        for what, names, field in (("inputs", self._inputs, "data"), ("outputs", self._outputs or (), "dst")):
            for name in names:
                resource = self._by_uid.get(name)
                if resource is None:
                    some = [repr(uid) for uid in self._by_uid][:_MOST_SHOWN]
                    there_are = ", ".join(some) + (", …" if len(self._by_uid) > len(some) else "")
                    raise UsageError(f"{what}: no resource has the uid {name!r}; there are {there_are}")
                if field not in type(resource).model_fields:
                    raise UsageError(f"{what}: {name!r} is a {resource.kind}, which has none")

    def _frames(self) -> tuple[FramePlan, ...]:
        context, tables = self.context, self.context.tables
        images = context.layouts = self._layout_tracker()
        resolve = {kind: resolver.resolve for kind, resolver in self._resolvers.items()}
        for index, command in enumerate(context.scenario.commands):
            tables.operations.extend(resolve[command.kind](command, index))
        restoring = images.restoring(len(context.scenario.commands)) if images is not None else None
        if restoring is not None:
            tables.operations.append(restoring)  # a repeated run begins with every image in its place
        if tables.operations:
            tables.end_frame((), len(tables.frames), False, "/commands")
        return tuple(tables.frames)

    def _layout_tracker(self) -> LayoutTracker | None:
        """What follows the layouts of images; None where there are none."""
        if not any(resource.kind == "image" for resource in self._scenario.resources):
            return None
        from scenario_runner.plan.layouts import LayoutTracker

        return LayoutTracker(self.context.tables.resources, self.problems)

    def _planned_outputs(self) -> tuple[Output, ...]:
        planned = []
        for uid in self.context.tables.resources:
            if uid not in self._by_uid:
                continue  # what lies between the segments of a graph
            destination = self._by_uid[uid].dst
            path = None if destination is None else os.path.join(self._output_dir, destination)
            if path is not None:
                try:
                    check_path(path)
                except SandboxError as error:
                    self.problems.add_error(error, f"{self._scenario.resource_pointer(uid)}/dst")
            if path is not None or (self._outputs is not None and uid in self._outputs):
                planned.append(Output(uid, path))
        return tuple(planned)

    def _reads(self) -> tuple[str, ...]:
        """The scenario's own file, all that its resources name, and what the shaders include."""
        scenario = self._scenario
        files = [] if scenario.path is None else [scenario.path]
        named = (getattr(resource, "src", None) for resource in scenario.resources)
        files += [os.path.join(scenario.base_dir, name) for name in named if name is not None]
        files += [file for shader in self.context.shaders.values() for file in shader.includes]
        return tuple(dict.fromkeys(files))


def _requirements(
    shaders: Collection[LoadedShader], features: tuple[NeededFeature, ...], tables: Tables
) -> Requirements:
    capabilities: dict[str, str] = {}
    extensions: dict[str, str] = {}
    version, newest = (1, 0), ""
    places: dict[str, str] = {}
    for shader in shaders:
        places[shader.uid] = shader.pointer
        for capability in shader.module.capabilities:
            capabilities.setdefault(capability, shader.uid)
        for extension in shader.module.extensions:
            extensions.setdefault(extension, shader.uid)
        if shader.module.version > version:
            version, newest = shader.module.version, shader.uid
    features += tuple(feature for shader in shaders for feature in shader.features)
    for capability, uid in tables.capabilities.items():
        capabilities.setdefault(capability, uid)
    graphs: dict[str, str] = {}
    for label, (module, pointer) in tables.graph_modules.items():
        places[label] = pointer
        for capability in module.capabilities:
            graphs.setdefault(capability, label)
    graphics = tables.graphics_pipelines[0].pointer if tables.graphics_pipelines else None
    return Requirements(capabilities, extensions, version, features, graphs, newest, places, graphics)
