"""Recording graph dispatches and barriers over tensors. Apart from `recording`: only some scenarios need it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from scenario_runner.vulkan.api._generated import constants as vk
from scenario_runner.vulkan.api.ffi import ffi
from scenario_runner.vulkan.api.structs import chain, new

if TYPE_CHECKING:
    from scenario_runner.plan.model.graphs import GraphDispatch
    from scenario_runner.plan.model.optical_flow import OpticalFlowDispatch
    from scenario_runner.plan.model.plan import FramePlan
    from scenario_runner.vulkan.execution.prepared import Prepared

ACCESS_MEMORY = vk.ACCESS_MEMORY_READ_BIT | vk.ACCESS_MEMORY_WRITE_BIT


class GraphRecorder:
    """Records the graph dispatches of one frame.

    A session has memory of its own, so that two dispatches with it must not overlap: where the scenario asks for no
    barrier between them, one is recorded.
    """

    def __init__(self, prepared: Prepared, commands: Any) -> None:
        fn = prepared.device.fn
        self._prepared = prepared
        self._commands = commands
        self._bind_pipeline = fn.vkCmdBindPipeline
        self._bind_sets = fn.vkCmdBindDescriptorSets
        self._dispatch = fn.vkCmdDispatchDataGraphARM
        self._pipeline_barrier = fn.vkCmdPipelineBarrier
        self._everything = new("VkMemoryBarrier", srcAccessMask=ACCESS_MEMORY, dstAccessMask=ACCESS_MEMORY)
        self._running: set[int] = set()
        self._bound: tuple[int, int] | None = None

    def record(self, operation: GraphDispatch | OpticalFlowDispatch) -> None:
        """One dispatch, and the barrier after it."""
        commands, graph = self._commands, self._prepared.graphs[operation.pipeline]
        if operation.pipeline in self._running:
            self.barrier()
        wanted = (operation.pipeline, operation.descriptors)
        if wanted != self._bound:
            self._bound = wanted
            self._bind_pipeline(commands, vk.PIPELINE_BIND_POINT_DATA_GRAPH_ARM, graph.handle)
            sets, count = self._prepared.descriptor_sets[operation.descriptors]
            self._bind_sets(commands, vk.PIPELINE_BIND_POINT_DATA_GRAPH_ARM, graph.layout, 0, count, sets, 0, ffi.NULL)
        info = ffi.NULL
        if operation.kind == "optical_flow_dispatch":
            from scenario_runner.vulkan.pipelines.optical_flow import dispatch_info

            info = dispatch_info(operation)
        self._dispatch(commands, graph.session, info)
        if operation.barrier_after:
            self.barrier()
        else:
            self._running.add(operation.pipeline)

    def barrier(self) -> None:
        """Everything before, before everything after: graphs, shaders and copies."""
        self._running.clear()
        self._pipeline_barrier(
            self._commands,
            vk.PIPELINE_STAGE_ALL_COMMANDS_BIT,
            vk.PIPELINE_STAGE_ALL_COMMANDS_BIT,
            0,
            1,
            self._everything,
            0,
            ffi.NULL,
            0,
            ffi.NULL,
        )

    def disturbed(self) -> None:
        """Something else was bound in between."""
        self._bound = None


def recorder_for(prepared: Prepared, commands: Any, frame: FramePlan) -> GraphRecorder | None:
    """What records the graphs of a frame; None for a frame without."""
    if any(operation.kind in ("graph_dispatch", "optical_flow_dispatch") for operation in frame.operations):
        return GraphRecorder(prepared, commands)
    return None


def record_tensor_barriers(
    prepared: Prepared, commands: Any, barriers: Sequence[tuple[Any, int, int, int, int]]
) -> None:
    """One vkCmdPipelineBarrier2 for (tensor, source stages, source access, destination stages, access) of each."""
    infos = [
        {
            "sType": vk.STRUCTURE_TYPE_TENSOR_MEMORY_BARRIER_ARM,
            "srcStageMask": src_stages,
            "srcAccessMask": src_access,
            "dstStageMask": dst_stages,
            "dstAccessMask": dst_access,
            "srcQueueFamilyIndex": vk.QUEUE_FAMILY_IGNORED,
            "dstQueueFamilyIndex": vk.QUEUE_FAMILY_IGNORED,
            "tensor": tensor.handle,
        }
        for tensor, src_stages, src_access, dst_stages, dst_access in barriers
    ]
    dependency = chain(new("VkDependencyInfo"), new("VkTensorDependencyInfoARM", pTensorMemoryBarriers=infos))
    prepared.device.fn.vkCmdPipelineBarrier2(commands, dependency)
