"""The device features that tensors and graphs need (VK_ARM_tensors, VK_ARM_data_graph)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scenario_runner.plan.model.records import NeededFeature

if TYPE_CHECKING:
    from collections.abc import Iterable

    from scenario_runner.plan.model.commands import GraphPipelinePlan, OpticalFlowPlan
    from scenario_runner.plan.model.plan import ResourcePlan

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
