"""The tables that a plan grows by while its commands are resolved; equal entries get one place."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

from scenario_runner.checks.push_constants import layout_size
from scenario_runner.plan.model.plan import FramePlan, Operation, ResourcePlan
from scenario_runner.plan.model.records import DescriptorList, ImageLayout, LayoutBinding, PipelinePlan

if TYPE_CHECKING:
    from scenario_runner.plan.model.commands import GraphicsPipelinePlan, GraphPipelinePlan, OpticalFlowPlan
    from scenario_runner.plan.model.resources import TexelAccess
    from scenario_runner.plan.shaders import LoadedShader
    from scenario_runner.spirv import Module


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
