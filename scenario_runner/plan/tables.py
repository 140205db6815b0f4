"""The tables that a plan grows by while its commands are resolved; equal entries get one place."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scenario_runner.plan.model.drawings import GraphicsPipelinePlan
    from scenario_runner.plan.model.graphs import GraphPipelinePlan
    from scenario_runner.plan.model.plan import ResourcePlan
    from scenario_runner.plan.model.records import DescriptorList, PipelinePlan
    from scenario_runner.spirv import Module


class Tables:
    """``resources`` by uid, pipelines of all kinds, and descriptor lists. Indices never change.

    ``made`` are the uids of resources that are not the scenario's, but lie inside graphs. ``graph_modules`` are the
    SPIR-V modules of graphs by their labels, with the pointers of what names them, for what they require of a device.
    """

    def __init__(self) -> None:
        self.resources: dict[str, ResourcePlan] = {}
        self.made: set[str] = set()
        self.pipelines: list[PipelinePlan] = []
        self.graph_pipelines: list[GraphPipelinePlan] = []
        self.graphics_pipelines: list[GraphicsPipelinePlan] = []
        self.lists: dict[DescriptorList, int] = {}
        self.graph_modules: dict[str, tuple[Module, str]] = {}
        self._known: dict[Hashable, int] = {}

    def pipeline(self, plan: PipelinePlan) -> int:
        """The index of a compute pipeline of this content."""
        index = self._known.setdefault(plan.content, len(self.pipelines))
        if index == len(self.pipelines):
            self.pipelines.append(plan)
        return index

    def graph_pipeline(self, plan: GraphPipelinePlan) -> int:
        """The index of a graph pipeline of this content."""
        index = self._known.setdefault(("graph", plan.content), len(self.graph_pipelines))
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
