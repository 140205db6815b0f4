"""From a scenario to a plan: sizes, sources, shaders, descriptors and frames, checked against each other. No GPU."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from scenario_runner.errors import SandboxError, ScenarioRunnerError, UsageError
from scenario_runner.files.sandbox import check_path
from scenario_runner.plan.barriers import resolve_barrier
from scenario_runner.plan.bindings import SetLayouts, descriptors, set_layouts
from scenario_runner.plan.model.plan import FramePlan, Operation, Output, Plan, ResourcePlan
from scenario_runner.plan.model.records import (
    CompilerOptions,
    DescriptorList,
    Dispatch,
    NeededFeature,
    PipelinePlan,
    Requirements,
)
from scenario_runner.plan.problems import Problems
from scenario_runner.plan.push_constants import PushConstants
from scenario_runner.plan.resources import resolve_resources
from scenario_runner.plan.shaders import LoadedShader, included_files, load_shaders, used_shaders
from scenario_runner.plan.tables import Tables
from scenario_runner.scenario import DispatchBarrier, DispatchCompute, MarkBoundary, Shader

if TYPE_CHECKING:
    from scenario_runner.plan.cache.plan_cache import Facts
    from scenario_runner.plan.fragment import Drawing
    from scenario_runner.plan.graphs.commands import Graphs
    from scenario_runner.plan.layouts import LayoutTracker
    from scenario_runner.scenario import Scenario

_EXECUTED_RESOURCES = frozenset(
    {
        "buffer",
        "image",
        "tensor",
        "raw_data",
        "shader",
        "graph",
        "graph_constant",
        "memory_barrier",
        "buffer_barrier",
        "image_barrier",
        "tensor_barrier",
    }
)
_EXECUTED_COMMANDS = frozenset(
    {"dispatch_compute", "dispatch_graph", "dispatch_spirv_graph", "dispatch_barrier", "mark_boundary"}
)
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
    those of the plan that could be loaded, by uid; ``drawings`` the commands that draw, which no run reaches yet.
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
    drawings: tuple[Drawing, ...] = ()
    if any(command.kind == "dispatch_fragment" for command in scenario.commands):
        from scenario_runner.plan.fragment import plan_drawings

        resources = {} if plan is None else plan.resources
        drawings = plan_drawings(scenario, resources, resolver.shaders, compiler, resolver.problems)
    return Examination(plan, resolver.problems, resolver.shaders, drawings)


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
        self.problems = Problems(scenario)
        self._by_uid: dict[str, Any] = {resource.uid: resource for resource in scenario.resources}
        self._readonly = frozenset(
            uid for uid, resource in self._by_uid.items() if getattr(resource, "shader_access", "") == "readonly"
        )
        self._resources: dict[str, ResourcePlan] = {}
        self.shaders: dict[str, LoadedShader] = {}
        self._layouts: dict[str, SetLayouts | None] = {}
        self._pipelines: dict[str, int] = {}
        self._tables = Tables()
        self._prepared: dict[Any, tuple[int, int, bytes] | None] = {}
        self._image_layouts: LayoutTracker | None = None
        self._graphs: Graphs | None = None

    def plan(self) -> Plan:
        problems = self.problems
        self._check_names()
        self._note_unsupported()
        graphs = self._graphs = self._used_graphs()
        shapes = {} if graphs is None else graphs.shapes(self._inputs)
        deferred = frozenset() if graphs is None else graphs.deferred(shapes)
        self._resources, self._raw_data = resolve_resources(
            self._scenario, self._inputs, problems, shapes, self._shown(), deferred
        )
        if any(resource.kind == "tensor" for resource in self._scenario.resources):
            from scenario_runner.plan.tensor_groups import join_groups

            join_groups(self._resources, problems)
        self._stop_if_wrong()
        self._tables.resources = self._resources
        self._push_constants = PushConstants(self._scenario, self._raw_data, problems)
        shaders = self._used_shaders = used_shaders(self._scenario)
        places: dict[str, str] = {}
        if graphs is not None:
            places = graphs.add_shaders(shaders)
        self.shaders = load_shaders(self._scenario, shaders, self._compiler, problems, places, thorough=self._thorough)
        frames = self._frames()
        if graphs is not None and deferred:
            graphs.report_unknown_shapes(deferred)
        features: tuple[NeededFeature, ...] = ()
        if self._image_layouts is not None:
            from scenario_runner.plan.images import with_usage

            self._resources, features = with_usage(self._resources, self._tables.lists, frames, problems)
        self._stop_if_wrong()
        return Plan(
            name=self._scenario.path or "<scenario>",
            resources=self._resources,
            pipelines=tuple(self._tables.pipelines),
            descriptor_lists=tuple(self._tables.lists),
            frames=frames,
            outputs=self._planned_outputs(),
            requirements=_requirements(self.shaders.values(), (*features, *self._ml_features()), self._tables),
            warnings=(*self._scenario.warnings, *problems.warnings),
            graph_pipelines=tuple(self._tables.graph_pipelines),
            reads=self._reads(shaders),
        )

    def facts(self, plan: Plan) -> Facts | None:
        """What ``plan`` was made of."""
        from scenario_runner.plan.cache.facts import facts_of

        return facts_of(
            self._scenario,
            plan,
            self._used_shaders,
            self.shaders,
            self._raw_data,
            self._push_constants.read,
            self._graphs,
        )

    def _used_graphs(self) -> Graphs | None:
        """The graphs that commands run, read; None where there are none."""
        if not any(command.kind in ("dispatch_graph", "dispatch_spirv_graph") for command in self._scenario.commands):
            return None
        from scenario_runner.plan.graphs.commands import Graphs

        return Graphs(self._scenario, self._tables, self.problems)

    def _ml_features(self) -> tuple[NeededFeature, ...]:
        """What tensors and graphs need of a device."""
        if not any(resource.kind == "tensor" for resource in self._scenario.resources) and self._graphs is None:
            return ()
        from scenario_runner.plan.graphs.features import ml_features

        return ml_features(self._resources.values(), self._tables.graph_pipelines)

    def _shown(self) -> set[str]:
        """The resources that are read back for more than the file of their ``dst``."""
        boundaries = (command for command in self._scenario.commands if isinstance(command, MarkBoundary))
        return {uid for boundary in boundaries for uid in boundary.resources}.union(self._outputs or ())

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

    def _note_unsupported(self) -> None:
        scenario = self._scenario
        for index, resource in enumerate(scenario.resources):
            if resource.kind not in _EXECUTED_RESOURCES:
                self._refuse(scenario.resource_pointer(index), f"{resource.kind} resources")
        for index, command in enumerate(scenario.commands):
            if command.kind not in _EXECUTED_COMMANDS:
                self._refuse(scenario.command_pointer(index), f"{command.kind} commands")

    def _refuse(self, pointer: str, what: str) -> None:
        self.problems.error("SR-RUN-001", pointer, f"{what} are not run by this version of scenario-runner")

    def _frames(self) -> tuple[FramePlan, ...]:
        scenario = self._scenario
        frames: list[FramePlan] = []
        operations: list[Operation] = []
        images = self._image_layouts = self._layout_tracker()
        for index, command in enumerate(scenario.commands):
            if isinstance(command, DispatchCompute):
                dispatch = self._dispatch(command, index)
                if dispatch is not None:
                    operations.append(dispatch)
            elif isinstance(command, DispatchBarrier):
                barrier = resolve_barrier(scenario, command, index, self._resources, images)
                if barrier.barriers:
                    operations.append(barrier)
            elif isinstance(command, MarkBoundary):
                number = len(frames) if command.frame_id is None else command.frame_id
                captures = tuple(dict.fromkeys(uid for uid in command.resources if uid in self._resources))
                layouts = images.differing() if images is not None else ()
                pointer = scenario.command_pointer(index)
                frames.append(FramePlan(tuple(operations), captures, number, True, pointer, layouts))
                operations = []
            elif self._graphs is not None and command.kind in ("dispatch_graph", "dispatch_spirv_graph"):
                operations += self._graphs.operations(command, index, self.shaders, self._push_constants, images)
        restoring = images.restoring(len(scenario.commands)) if images is not None else None
        if restoring is not None:
            operations.append(restoring)  # a repeated run begins with every image in its place
        if operations:
            frames.append(FramePlan(tuple(operations), (), len(frames), False, "/commands"))
        return tuple(frames)

    def _layout_tracker(self) -> LayoutTracker | None:
        """What follows the layouts of images; None where there are none."""
        if not any(resource.kind == "image" for resource in self._scenario.resources):
            return None
        from scenario_runner.plan.layouts import LayoutTracker

        return LayoutTracker(self._resources, self.problems)

    def _dispatch(self, command: DispatchCompute, index: int) -> Dispatch | None:
        key = (
            command.shader_ref,
            command.push_data_ref,
            tuple((each.set, each.id, each.resource_ref, each.lod, each.descriptor_type) for each in command.bindings),
        )
        if self._image_layouts is not None:
            self._image_layouts.check_shader_access(
                [(each.resource_ref, each.lod) for each in command.bindings], self._scenario.command_pointer(index)
            )
        if key in self._prepared:
            prepared = self._prepared[key]
        else:
            prepared = self._prepared[key] = self._prepare(command, index)
        if prepared is None:
            return None
        pipeline, descriptor_list, push_constants = prepared
        counts = command.rangeND
        groups = (counts[0], counts[1] if len(counts) > 1 else 1, counts[2] if len(counts) > 2 else 1)
        if 0 in groups or self._image_layouts is not None:
            self._check_count(command, index, groups)
        return Dispatch(pipeline, descriptor_list, groups, push_constants, command.implicit_barrier, index)

    def _check_count(self, command: DispatchCompute, index: int, groups: tuple[int, int, int]) -> None:
        from scenario_runner.checks.workgroup_count import check_no_workgroups, check_too_many
        from scenario_runner.plan.bindings import extents_of

        pointer, shader = self._scenario.command_pointer(index), self.shaders[command.shader_ref]
        self.problems.report(check_no_workgroups(groups, shader.uid, pointer))
        extents = extents_of(command.bindings, self._resources)
        size = shader.interface.local_size() or (1, 1, 1)
        self.problems.report(check_too_many(groups, size, shader.uid, extents, pointer))

    def _prepare(self, command: DispatchCompute, index: int) -> tuple[int, int, bytes] | None:
        """Pipeline, descriptors and push constants of a dispatch unlike any before; None when something is wrong."""
        shader = self.shaders.get(command.shader_ref)
        if shader is None:
            return None
        pointer = self._scenario.command_pointer(index)
        if shader.uid not in self._layouts:
            self._layouts[shader.uid] = set_layouts(shader, self.problems)
        layouts = self._layouts[shader.uid]
        found = descriptors(shader, command.bindings, self._resources, pointer, self.problems, self._readonly)
        push_constants = self._push_constants.of(command, shader, pointer)
        if layouts is None:
            return None
        pipeline = self._pipelines.get(shader.uid)
        if pipeline is None:
            plan = _pipeline(self._by_uid[shader.uid], shader, layouts)
            pipeline = self._pipelines[shader.uid] = self._tables.pipeline(plan)
        descriptor_list = self._tables.descriptor_list(DescriptorList(layouts, found))
        return pipeline, descriptor_list, push_constants

    def _planned_outputs(self) -> tuple[Output, ...]:
        planned = []
        for uid in self._resources:
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

    def _reads(self, shaders: Collection[Shader]) -> tuple[str, ...]:
        """The scenario's own file, all that its resources name, and what the shaders include."""
        scenario = self._scenario
        files = [] if scenario.path is None else [scenario.path]
        named = (getattr(resource, "src", None) for resource in scenario.resources)
        files += [os.path.join(scenario.base_dir, name) for name in named if name is not None]
        return tuple(dict.fromkeys([*files, *included_files(scenario, shaders)]))


def _pipeline(shader: Shader, loaded: LoadedShader, layouts: SetLayouts) -> PipelinePlan:
    interface = loaded.interface
    return PipelinePlan(
        code=loaded.code,
        entry=loaded.entry.name,
        specialization=loaded.specialization,
        set_layouts=layouts,
        push_constants_size=shader.push_constants_size,
        label=loaded.uid,
        pointer=loaded.pointer,
        local_size=interface.local_size() or (1, 1, 1),
        workgroup_memory_bytes=interface.workgroup_memory_bytes,
    )


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
    graphs: dict[str, str] = {}
    for label, (module, pointer) in tables.graph_modules.items():
        places[label] = pointer
        for capability in module.capabilities:
            graphs.setdefault(capability, label)
    return Requirements(capabilities, extensions, version, features, graphs, newest, places)
