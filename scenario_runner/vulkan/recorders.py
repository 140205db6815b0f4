"""Recorders of barriers, of draws with dynamic rendering, and of dispatches of graphs and optical flows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from scenario_runner.plan.plan import Barrier
from scenario_runner.plan.special_records import Draw, OpticalFlowDispatch, Target
from scenario_runner.vulkan import ffi
from scenario_runner.vulkan._generated import constants as vk
from scenario_runner.vulkan.companion_image import CompanionImage
from scenario_runner.vulkan.device import memory_barrier
from scenario_runner.vulkan.image_support import image_barriers
from scenario_runner.vulkan.optical_flow import dispatch_info
from scenario_runner.vulkan.pipeline import SHADER_STAGES
from scenario_runner.vulkan.recording import Prepared, Recorder
from scenario_runner.vulkan.structs import chain, new

# A queue without graph work has no such stage: what the scenario asks is then covered by all commands.
_STAGES = {
    "compute": vk.PIPELINE_STAGE_COMPUTE_SHADER_BIT,
    "all": vk.PIPELINE_STAGE_ALL_COMMANDS_BIT,
    "graph": vk.PIPELINE_STAGE_ALL_COMMANDS_BIT,
    "graphics": vk.PIPELINE_STAGE_VERTEX_SHADER_BIT
    | vk.PIPELINE_STAGE_FRAGMENT_SHADER_BIT
    | vk.PIPELINE_STAGE_COLOR_ATTACHMENT_OUTPUT_BIT,
}
# The same on a queue without graphics, which has no such stages either.
_STAGES_WITHOUT_GRAPHICS = {**_STAGES, "graphics": vk.PIPELINE_STAGE_ALL_COMMANDS_BIT}
_ACCESS = {
    "graph_read": vk.ACCESS_MEMORY_READ_BIT,
    "graph_write": vk.ACCESS_MEMORY_WRITE_BIT,
    "memory_read": vk.ACCESS_MEMORY_READ_BIT,
    "memory_write": vk.ACCESS_MEMORY_WRITE_BIT,
    # what a shader reads of a uniform buffer is an access of its own in Vulkan; a scenario knows one word for both
    "compute_shader_read": vk.ACCESS_SHADER_READ_BIT | vk.ACCESS_UNIFORM_READ_BIT,
    "compute_shader_write": vk.ACCESS_SHADER_WRITE_BIT,
}


class BarrierRecorder(Recorder):
    """Records barriers; what is bound stays bound."""

    binds = False

    def _record(self, operation: Barrier) -> None:
        """One vkCmdPipelineBarrier for all barriers with equal stages (version 1 takes one pair of masks a call)."""
        by_stages: dict[tuple[int, int], tuple[list[Any], list[Any], list[Any]]] = {}
        tensors = []
        stages = _STAGES if self.prepared.device.has_graphics else _STAGES_WITHOUT_GRAPHICS
        for barrier in operation.barriers:
            src, dst = _mask(barrier.src_stages, stages), _mask(barrier.dst_stages, stages)
            # version 1 has no empty stage mask; top and bottom of pipe, without any access, stand for "no stage"
            src_access = _ACCESS[barrier.src_access] if src else 0
            dst_access = _ACCESS[barrier.dst_access] if dst else 0
            if barrier.kind == "tensor":
                tensors.append((self.prepared.resources[barrier.uid], src, src_access, dst, dst_access))
                continue
            key = (src or vk.PIPELINE_STAGE_TOP_OF_PIPE_BIT, dst or vk.PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT)
            memory, buffers, images = by_stages.setdefault(key, ([], [], []))
            if barrier.kind == "memory":
                memory.append(memory_barrier(src_access, dst_access))
            elif barrier.kind == "image":
                change = self.prepared.resources[barrier.uid].barrier_transition(barrier)
                images.append(image_barriers([change], src_access, dst_access))
            else:
                buffers.append(
                    {
                        "sType": vk.STRUCTURE_TYPE_BUFFER_MEMORY_BARRIER,
                        "srcAccessMask": src_access,
                        "dstAccessMask": dst_access,
                        "srcQueueFamilyIndex": vk.QUEUE_FAMILY_IGNORED,
                        "dstQueueFamilyIndex": vk.QUEUE_FAMILY_IGNORED,
                        "buffer": self.prepared.resources[barrier.uid].handle,
                        "offset": barrier.offset_bytes,
                        "size": barrier.size_bytes,
                    }
                )
        for (src, dst), (memory, buffers, images) in by_stages.items():
            self.prepared.device.fn.vkCmdPipelineBarrier(
                self.commands,
                src,
                dst,
                0,
                len(memory),
                ffi.new("VkMemoryBarrier[]", [block[0] for block in memory]),
                len(buffers),
                ffi.new("VkBufferMemoryBarrier[]", buffers),
                len(images),
                ffi.new("VkImageMemoryBarrier[]", [image[0] for image in images]),
            )
        if tensors:
            self._record_tensor_barriers(tensors)

    def _record_tensor_barriers(self, barriers: Sequence[tuple[Any, int, int, int, int]]) -> None:
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
        self.prepared.device.fn.vkCmdPipelineBarrier2(self.commands, dependency)


def _mask(stages: tuple[str, ...], bits: Mapping[str, int]) -> int:
    mask = 0
    for stage in stages:
        mask |= bits[stage]
    return mask


class DrawRecorder(Recorder):
    """Records draws; what is bound already is not bound again.

    Draws into the same attachments with nothing between them are one rendering. Attachments are loaded, so that what a
    draw does not cover stays.
    """

    def __init__(self, prepared: Prepared, commands: Any, alone: bool) -> None:
        super().__init__(prepared, commands, alone)
        device = prepared.device
        fn = device.fn
        suffix = "KHR" if "VK_KHR_dynamic_rendering" in device.enabled.extensions else ""
        self._begin = getattr(fn, f"vkCmdBeginRendering{suffix}")
        self._end = getattr(fn, f"vkCmdEndRendering{suffix}")
        self._bind_pipeline, self._bind_sets = fn.vkCmdBindPipeline, fn.vkCmdBindDescriptorSets
        self._push, self._draw = fn.vkCmdPushConstants, fn.vkCmdDraw
        self._set_viewport, self._set_scissor = fn.vkCmdSetViewport, fn.vkCmdSetScissor
        self._renderings: dict[tuple[tuple[Target, ...], tuple[int, int]], tuple[Any, list[CompanionImage]]] = {}
        self._open: tuple[tuple[Target, ...], tuple[int, int]] | None = None
        self._open_companions: list[CompanionImage] = []
        self.disturbed()

    def disturbed(self) -> None:
        self._pipeline = self._descriptors = -1
        self._layout: Any = None
        self._extent = (0, 0)
        self._pushed: bytes | None = None

    def record(self, operations: Iterable[Draw]) -> None:
        super().record(operations)
        self._finish()

    def _record(self, draw: Draw) -> None:
        """One draw, and the barrier after it."""
        commands = self.commands
        key = (draw.targets, draw.extent)
        if key != self._open:
            self._finish()
            self._start(key)
        if draw.extent != self._extent:
            self._extent = draw.extent
            width, height = draw.extent
            self._set_viewport(commands, 0, 1, [(0, 0, width, height, 0, 1)])
            self._set_scissor(commands, 0, 1, [((0, 0), (width, height))])
        if draw.pipeline != self._pipeline:
            self._pipeline = draw.pipeline
            pipeline = self.prepared.graphics[draw.pipeline]
            self._bind_pipeline(commands, vk.PIPELINE_BIND_POINT_GRAPHICS, pipeline.handle)
            if pipeline.layout != self._layout:
                self._layout = pipeline.layout
                self._descriptors = -1
                self._pushed = None
        if draw.descriptors != self._descriptors:
            self._descriptors = draw.descriptors
            sets, count = self.prepared.descriptor_sets[draw.descriptors]
            if count:
                self._bind_sets(commands, vk.PIPELINE_BIND_POINT_GRAPHICS, self._layout, 0, count, sets, 0, ffi.NULL)
        if draw.push_constants and draw.push_constants != self._pushed:
            self._pushed = draw.push_constants
            data = ffi.from_buffer(self._pushed)
            self._push(commands, self._layout, SHADER_STAGES, 0, len(self._pushed), data)
        self._draw(commands, 3, 1, 0, 0)
        if draw.barrier_after:
            self._finish()
            self._barrier()

    def _finish(self) -> None:
        """End the rendering that is going on, if there is one."""
        if self._open is None:
            return
        self._open = None
        self._end(self.commands)
        if self._open_companions:
            for companion in self._open_companions:
                companion.record_out(self.commands)
            self._open_companions = []
            self._barrier()

    def _start(self, key: tuple[tuple[Target, ...], tuple[int, int]]) -> None:
        self._open = key
        targets, extent = key
        rendering = self._renderings.get(key)
        if rendering is None:
            rendering = self._renderings[key] = self._rendering(targets, extent)
        info, companions = rendering
        if companions:
            self._barrier()  # the scenario's barriers are about the attachments, not about copies of them
            self._open_companions = companions
            for companion in companions:
                companion.record_in(self.commands)
        self._begin(self.commands, info)

    def _rendering(self, targets: Sequence[Target], extent: tuple[int, int]) -> tuple[Any, list[CompanionImage]]:
        """VkRenderingInfo, and the companion images that are drawn into in place of others."""
        attachments: list[dict[str, Any]] = []
        companions: list[CompanionImage] = []
        for uid, level in targets:
            image = self.prepared.resources[uid]
            view, layout = image.render_target(level)
            if image.companions:
                companions.append(image.companions[level])
            attachments.append(
                {
                    "sType": vk.STRUCTURE_TYPE_RENDERING_ATTACHMENT_INFO,
                    "imageView": view,
                    "imageLayout": layout,
                    "loadOp": vk.ATTACHMENT_LOAD_OP_LOAD,
                    "storeOp": vk.ATTACHMENT_STORE_OP_STORE,
                }
            )
        area = {"extent": {"width": extent[0], "height": extent[1]}}
        return new("VkRenderingInfo", renderArea=area, layerCount=1, pColorAttachments=attachments), companions

    def _barrier(self) -> None:
        self.prepared.device.barrier(self.commands)


class GraphRecorder(Recorder):
    """Records the graph dispatches of one frame.

    A session has memory of its own, so that two dispatches with it must not overlap: where the scenario asks for no
    barrier between them, one is recorded.
    """

    def __init__(self, prepared: Prepared, commands: Any, alone: bool) -> None:
        super().__init__(prepared, commands, alone)
        fn = prepared.device.fn
        self._bind_pipeline = fn.vkCmdBindPipeline
        self._bind_sets = fn.vkCmdBindDescriptorSets
        self._dispatch = fn.vkCmdDispatchDataGraphARM
        self._running: set[int] = set()
        self._bound: tuple[int, int] | None = None

    def _record(self, operation: Any) -> None:
        """One dispatch, and the barrier after it."""
        commands, graph = self.commands, self.prepared.graphs[operation.pipeline]
        if operation.pipeline in self._running:
            self.barrier()
        state = (operation.pipeline, operation.descriptors)
        if state != self._bound:
            self._bound = state
            self._bind_pipeline(commands, vk.PIPELINE_BIND_POINT_DATA_GRAPH_ARM, graph.handle)
            inputs = self.prepared.flow_inputs.get(operation.descriptors)
            sets, count = self.prepared.descriptor_sets[operation.descriptors] if inputs is None else inputs.sets
            self._bind_sets(commands, vk.PIPELINE_BIND_POINT_DATA_GRAPH_ARM, graph.layout, 0, count, sets, 0, ffi.NULL)
        self._dispatch(commands, graph.session, self._info(operation))
        if operation.barrier_after:
            self.barrier()
        else:
            self._running.add(operation.pipeline)

    def _info(self, operation: Any) -> Any:
        """The VkDataGraphPipelineDispatchInfoARM of a dispatch."""
        return ffi.NULL

    def barrier(self) -> None:
        """Everything before, before everything after: graphs, shaders and copies."""
        self._running.clear()
        self.prepared.device.barrier(self.commands)

    def disturbed(self) -> None:
        self._bound = None


class OpticalFlowRecorder(GraphRecorder):
    """Records the optical flows of one frame: dispatches of graphs with flags and a hint of their own."""

    def _record(self, operation: OpticalFlowDispatch) -> None:
        inputs = self.prepared.flow_inputs.get(operation.descriptors)
        if inputs is not None:
            self.barrier()  # the scenario's barriers are about the optical flow, not about copies of what it reads
            for copy in inputs.copies:
                copy.record_in(self.commands)
        super()._record(operation)

    def _info(self, operation: OpticalFlowDispatch) -> Any:
        return dispatch_info(operation)
