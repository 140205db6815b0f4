"""State that the resolvers of one plan share, and the base classes of the resolvers in the registry of kinds."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from scenario_runner.checks.dispatches import layout_size
from scenario_runner.files.source import Identity
from scenario_runner.plan.bindings import PushConstants
from scenario_runner.plan.model.commands import GraphicsPipelinePlan, GraphPipelinePlan, OpticalFlowPlan
from scenario_runner.plan.model.plan import FramePlan, Operation, ResourcePlan
from scenario_runner.plan.model.records import (
    DescriptorList,
    ImageLayout,
    LayoutBinding,
    NeededFeature,
    PipelinePlan,
    Source,
)
from scenario_runner.plan.model.resources import TexelAccess
from scenario_runner.plan.problems import Problems
from scenario_runner.plan.shaders import LoadedShader
from scenario_runner.scenario import Scenario, Shader
from scenario_runner.spirv import Module

if TYPE_CHECKING:
    from scenario_runner.plan.layouts import LayoutTracker


class Tables:
    """``resources`` by uid, pipelines of all kinds, descriptor lists, and frames. Indices never change.

    ``operations`` are those of the frame that has not ended yet.
    ``made`` are the uids of resources that are not the scenario's, but lie inside graphs. ``graph_modules`` are the
    SPIR-V modules of graphs by their labels, with the pointers of what names them, for what they require of a device.
    ``fitted`` are shaders with the formats of the images that are bound, by uid and formats, each with the variables
    whose format is unknown. ``capabilities`` are those that this takes, with the uid of a shader. ``without_format``
    are the images that are read or written without a format. ``names`` and ``declared`` are those of the plan.
    """

    def __init__(self) -> None:
        self.resources: dict[str, ResourcePlan] = {}
        self.made: set[str] = set()
        self.pipelines: list[PipelinePlan] = []
        self.graph_pipelines: list[GraphPipelinePlan | OpticalFlowPlan] = []
        self.graphics_pipelines: list[GraphicsPipelinePlan] = []
        self.lists: dict[DescriptorList, int] = {}
        self.frames: list[FramePlan] = []
        self.operations: list[Operation] = []
        self.graph_modules: dict[str, tuple[Module, str]] = {}
        self.names: dict[int, tuple[str, ...]] = {}
        self.fitted: dict[tuple[str, tuple[tuple[int, str], ...]], tuple[LoadedShader, frozenset[int]]] = {}
        self.capabilities: dict[str, str] = {}
        self.without_format: dict[str, set[TexelAccess]] = {}
        self.declared: dict[bytes, bytes] = {}
        self._known: dict[Hashable, int] = {}
        self._of_shader: dict[tuple[str, int, bytes], int] = {}

    def pipeline(
        self, shader: LoadedShader, set_layouts: tuple[tuple[LayoutBinding, ...], ...], push_constants_size: int
    ) -> int:
        """The index of the compute pipeline of a shader, whose layouts always are ``set_layouts``.

        ``push_constants_size`` is what the scenario says; the block of the shader always fits.
        """
        push_constants_size = layout_size(push_constants_size, shader.interface)
        key = (shader.uid, push_constants_size, shader.code)
        known = self._of_shader.get(key)
        if known is not None:
            return known
        plan = PipelinePlan(
            code=shader.code,
            entry=shader.entry.name,
            specialization=shader.specialization,
            set_layouts=set_layouts,
            push_constants_size=push_constants_size,
            label=shader.uid,
            pointer=shader.pointer,
            local_size=shader.interface.local_size() or (1, 1, 1),
            workgroup_memory_bytes=shader.interface.workgroup_memory_bytes,
        )
        index = self._of_shader[key] = self._known.setdefault(plan.content, len(self.pipelines))
        if index == len(self.pipelines):
            self.pipelines.append(plan)
        return index

    def graph_pipeline(self, plan: GraphPipelinePlan | OpticalFlowPlan) -> int:
        """The index of a graph pipeline of this content."""
        index = self._known.setdefault((plan.kind, plan.content), len(self.graph_pipelines))
        if index == len(self.graph_pipelines):
            self.graph_pipelines.append(plan)
        return index

    def graphics_pipeline(self, plan: GraphicsPipelinePlan) -> int:
        """The index of a graphics pipeline of this content."""
        index = self._known.setdefault(("graphics", plan.content), len(self.graphics_pipelines))
        if index == len(self.graphics_pipelines):
            self.graphics_pipelines.append(plan)
        return index

    def descriptor_list(self, wanted: DescriptorList) -> int:
        """The index of a list of descriptors."""
        return self.lists.setdefault(wanted, len(self.lists))

    def end_frame(
        self,
        captures: tuple[str, ...],
        frame_id: int,
        boundary: bool,
        pointer: str,
        layouts: tuple[tuple[str, tuple[ImageLayout, ...]], ...] = (),
    ) -> None:
        """Make a frame of ``operations``; see `FramePlan`."""
        self.frames.append(FramePlan(tuple(self.operations), captures, frame_id, boundary, pointer, layouts))
        self.operations.clear()


class PlanContext:
    """What all resolvers of one plan share; it grows while the plan is made.

    ``inputs`` goes before the data and the ``src`` of a resource. All of a resource in ``shown`` is read back, also
    what the file of its ``dst`` does not hold. ``shapes`` are those that graphs give to tensors, and ``deferred`` the
    tensors that lack one which a graph should give. When the first command is resolved, ``tables.resources``,
    ``raw_data`` (sources by uid), ``shaders`` (those that could be loaded, by uid) and ``layouts`` (None without
    images) are complete.
    """

    def __init__(self, scenario: Scenario, inputs: Mapping[str, Any], shown: Collection[str]) -> None:
        self.scenario = scenario
        self.inputs = inputs
        self.shown = shown
        self.problems = Problems(scenario)
        self.tables = Tables()
        self.shapes: dict[str, tuple[int, ...]] = {}
        self.deferred: frozenset[str] = frozenset()
        self.raw_data: dict[str, Source] = {}
        self.push_constants = PushConstants(scenario, self.raw_data, self.problems)
        self.shaders: dict[str, LoadedShader] = {}
        self.layouts: LayoutTracker | None = None


class ResourceResolver:
    """Plans the resources of one kind; one is made for each plan that has such resources."""

    def __init__(self, context: PlanContext) -> None:
        self.context = context

    def resolve(self, resource: Any, pointer: str) -> ResourcePlan | None:
        """The plan of a resource; None where something is wrong, which is noted or raised, or where it needs none."""
        raise NotImplementedError

    @staticmethod
    def replaced(planned: Any, scenario: Scenario, data: Any) -> ResourcePlan | None:
        """A planned resource without a memory group, with other content; None where that takes a new plan."""
        raise NotImplementedError


class CommandResolver:
    """Plans the commands of one kind, or of several; one is made for each plan that has such commands.

    Its methods are called in the order in which they stand here. What is wrong is noted in the problems of the context.
    """

    def __init__(self, context: PlanContext) -> None:
        """May read the files that the commands name."""
        self.context = context

    def files(self) -> Iterable[tuple[str, Identity | None]]:
        """Files that were read, with what each was then (None: not in a file), for the plan cache."""
        return ()

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of tensors that leave some dimension to the commands."""
        return {}

    def deferred(self) -> frozenset[str]:
        """The tensors without a shape that some command writes."""
        return frozenset()

    def add_shaders(self, shaders: list[Shader]) -> dict[str, str]:
        """Add shaders beyond those that the models name; returns the pointers of those that are not resources."""
        return {}

    def resolve(self, command: Any, index: int) -> Iterable[Operation]:
        """What the command number ``index`` does, in order."""
        raise NotImplementedError

    def finish(self) -> None:
        """Called after the last command."""

    def features(self) -> tuple[NeededFeature, ...]:
        """What the commands need of a device, beyond what their shaders say."""
        return ()
