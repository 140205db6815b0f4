"""Data graph pipelines that estimate motion, and their sessions (VK_ARM_data_graph_optical_flow)."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final

from scenario_runner import errors
from scenario_runner.plan.model.commands import OpticalFlowDispatch, OpticalFlowPlan
from scenario_runner.vulkan.api._generated import constants as vk
from scenario_runner.vulkan.api.structs import chain, new
from scenario_runner.vulkan.devices.optical_flow import GRIDS
from scenario_runner.vulkan.pipelines.sessions import create_graph_pipeline, create_session

if TYPE_CHECKING:
    from scenario_runner.plan.model.commands import Connection
    from scenario_runner.plan.model.plan import FramePlan, Operation
    from scenario_runner.vulkan.devices.device import Device
    from scenario_runner.vulkan.pipelines.compute import PipelineCache

_CONNECTIONS: Final[dict[Connection, int]] = {
    "input": vk.DATA_GRAPH_PIPELINE_NODE_CONNECTION_TYPE_OPTICAL_FLOW_INPUT_ARM,
    "reference": vk.DATA_GRAPH_PIPELINE_NODE_CONNECTION_TYPE_OPTICAL_FLOW_REFERENCE_ARM,
    "hint": vk.DATA_GRAPH_PIPELINE_NODE_CONNECTION_TYPE_OPTICAL_FLOW_HINT_ARM,
    "flow_vector": vk.DATA_GRAPH_PIPELINE_NODE_CONNECTION_TYPE_OPTICAL_FLOW_FLOW_VECTOR_ARM,
    "cost": vk.DATA_GRAPH_PIPELINE_NODE_CONNECTION_TYPE_OPTICAL_FLOW_COST_ARM,
}
_LEVELS: Final = {
    "unknown": vk.DATA_GRAPH_OPTICAL_FLOW_PERFORMANCE_LEVEL_UNKNOWN_ARM,
    "slow": vk.DATA_GRAPH_OPTICAL_FLOW_PERFORMANCE_LEVEL_SLOW_ARM,
    "medium": vk.DATA_GRAPH_OPTICAL_FLOW_PERFORMANCE_LEVEL_MEDIUM_ARM,
    "fast": vk.DATA_GRAPH_OPTICAL_FLOW_PERFORMANCE_LEVEL_FAST_ARM,
}
_FLAGS: Final = {
    "disable_temporal_hints": vk.DATA_GRAPH_OPTICAL_FLOW_EXECUTE_DISABLE_TEMPORAL_HINTS_BIT_ARM,
    "input_unchanged": vk.DATA_GRAPH_OPTICAL_FLOW_EXECUTE_INPUT_UNCHANGED_BIT_ARM,
    "reference_unchanged": vk.DATA_GRAPH_OPTICAL_FLOW_EXECUTE_REFERENCE_UNCHANGED_BIT_ARM,
    "input_is_previous_reference": vk.DATA_GRAPH_OPTICAL_FLOW_EXECUTE_INPUT_IS_PREVIOUS_REFERENCE_BIT_ARM,
    "reference_is_previous_input": vk.DATA_GRAPH_OPTICAL_FLOW_EXECUTE_REFERENCE_IS_PREVIOUS_INPUT_BIT_ARM,
}


class OpticalFlowPipeline:
    """A pipeline; the session that the dispatches of one run share is made by `start`."""

    kind = "optical_flow"
    constant_bytes = 0
    session_bytes = 0

    def __init__(self, device: Device, pipelines: PipelineCache, plan: OpticalFlowPlan) -> None:
        """Raises UnsupportedError, OutOfMemoryError or DeviceError, with the place."""
        self._device = device
        self._stack = ExitStack()
        self._label, self._pointer = plan.label, plan.pointer
        self.session: Any = None
        try:
            self.layout: Any = pipelines.layout(plan.set_layouts, 0, plan.label)
            self.handle: Any = _create(device, self._stack, plan, self.layout)
        except errors.ScenarioRunnerError as error:
            self._stack.close()
            raise error.at(pointer=plan.pointer) from None

    def start(self, stack: ExitStack) -> None:
        """Begin a sequence of images: a new session, which has seen none yet, lives as long as ``stack``.

        What a session has seen gives hints for the next images (see disable_temporal_hints), so that a session that is
        kept from one run to the next would change the results of the second.
        """
        flags = vk.DATA_GRAPH_PIPELINE_SESSION_CREATE_OPTICAL_FLOW_CACHE_BIT_ARM
        try:
            before = self._device.memory_bytes
            self.session = create_session(self._device, stack, self.handle, self._label, flags)
            self.session_bytes = self._device.memory_bytes - before
        except errors.ScenarioRunnerError as error:
            raise error.at(pointer=self._pointer) from None

    def close(self) -> None:
        """Destroy the pipeline; calling it again does nothing."""
        self._stack.close()


def parts_of(frame: FramePlan) -> list[FramePlan]:
    """A frame in parts that are submitted one after the other: in each, a session sees one set of images.

    The ML emulation layers write the images of a dispatch into descriptor sets of the session when it is recorded, so
    that of two dispatches in one command buffer the first one would use the images of the second.
    """
    parts: list[list[Operation]] = [[]]
    seen: dict[int, int] = {}
    for operation in frame.operations:
        if operation.kind == "optical_flow_dispatch":
            wanted = operation.descriptors
            if seen.setdefault(operation.pipeline, wanted) != wanted:
                parts.append([])
                seen = {operation.pipeline: wanted}
        parts[-1].append(operation)
    return [frame._replace(operations=tuple(part)) for part in parts]


def dispatch_info(operation: OpticalFlowDispatch) -> Any:
    """The VkDataGraphPipelineDispatchInfoARM of a dispatch."""
    flow = new(
        "VkDataGraphPipelineOpticalFlowDispatchInfoARM",
        flags=sum(_FLAGS[flag] for flag in operation.flags),
        meanFlowL1NormHint=operation.mean_flow_l1_norm_hint,
    )
    return chain(new("VkDataGraphPipelineDispatchInfoARM"), flow)


def _create(device: Device, stack: ExitStack, plan: OpticalFlowPlan, layout: Any) -> Any:
    infos = [
        chain(
            new("VkDataGraphPipelineResourceInfoARM", descriptorSet=each.set, binding=each.binding),
            new("VkDataGraphPipelineResourceInfoImageLayoutARM", layout=vk.IMAGE_LAYOUT_GENERAL),
        )
        for each in plan.connections
    ]
    connections = [
        new(
            "VkDataGraphPipelineSingleNodeConnectionARM",
            set=each.set,
            binding=each.binding,
            connection=_CONNECTIONS[each.connection],
        )
        for each in plan.connections
    ]
    node = new(
        "VkDataGraphPipelineSingleNodeCreateInfoARM",
        nodeType=vk.DATA_GRAPH_PIPELINE_NODE_TYPE_OPTICAL_FLOW_ARM,
        pConnections=connections,
    )
    hint, cost = plan.format_of("hint"), plan.format_of("cost")
    flags = vk.DATA_GRAPH_OPTICAL_FLOW_CREATE_ENABLE_HINT_BIT_ARM if hint is not None else 0
    flags |= vk.DATA_GRAPH_OPTICAL_FLOW_CREATE_ENABLE_COST_BIT_ARM if cost is not None else 0
    flow = new(
        "VkDataGraphPipelineOpticalFlowCreateInfoARM",
        width=plan.width,
        height=plan.height,
        imageFormat=plan.format_of("input"),
        flowVectorFormat=plan.format_of("flow_vector"),
        costFormat=cost or 0,
        outputGridSize=GRIDS[plan.grid],
        hintGridSize=GRIDS[plan.grid] if hint is not None else 0,
        performanceLevel=_LEVELS[plan.performance_level],
        flags=flags,
    )
    info = chain(new("VkDataGraphPipelineCreateInfoARM", layout=layout, pResourceInfos=infos), node, flow)
    return create_graph_pipeline(device, stack, info, plan.label, plan.pointer)
