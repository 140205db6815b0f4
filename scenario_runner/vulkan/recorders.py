"""Recorders for barriers, fills, copies, draws with dynamic rendering, graph dispatches and optical flows.

`recording` records compute dispatches, the hot path.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from scenario_runner.plan.graph_records import OpticalFlowDispatch
from scenario_runner.plan.image_records import (
    BufferStart,
    Draw,
    Target,
    Transfer,
    Vertices,
)
from scenario_runner.plan.plan import Barrier
from scenario_runner.vulkan import Handle, ffi
from scenario_runner.vulkan._generated import constants as vk
from scenario_runner.vulkan.device import memory_barrier
from scenario_runner.vulkan.image_support import CompanionImage, image_barriers, level_copy
from scenario_runner.vulkan.optical_flow import dispatch_info
from scenario_runner.vulkan.pipeline import SHADER_STAGES
from scenario_runner.vulkan.recording import BindingRecorder, Recorder, RunObjects
from scenario_runner.vulkan.resources import Piece, copy_region
from scenario_runner.vulkan.vulkan_api import Member, chain, new

# A queue without graph work lacks these stages. ALL_COMMANDS replaces them.
_STAGES = {
    "compute": vk.PIPELINE_STAGE_COMPUTE_SHADER_BIT,
    "all": vk.PIPELINE_STAGE_ALL_COMMANDS_BIT,
    "graph": vk.PIPELINE_STAGE_ALL_COMMANDS_BIT,
    "graphics": vk.PIPELINE_STAGE_VERTEX_INPUT_BIT
    | vk.PIPELINE_STAGE_VERTEX_SHADER_BIT
    | vk.PIPELINE_STAGE_FRAGMENT_SHADER_BIT
    | vk.PIPELINE_STAGE_EARLY_FRAGMENT_TESTS_BIT
    | vk.PIPELINE_STAGE_LATE_FRAGMENT_TESTS_BIT
    | vk.PIPELINE_STAGE_COLOR_ATTACHMENT_OUTPUT_BIT,
}
# A queue without graphics lacks these stages as well.
_STAGES_WITHOUT_GRAPHICS = {**_STAGES, "graphics": vk.PIPELINE_STAGE_ALL_COMMANDS_BIT}
_ACCESS = {
    "graph_read": vk.ACCESS_MEMORY_READ_BIT,
    "graph_write": vk.ACCESS_MEMORY_WRITE_BIT,
    "memory_read": vk.ACCESS_MEMORY_READ_BIT,
    "memory_write": vk.ACCESS_MEMORY_WRITE_BIT,
    # Vulkan has a separate access for reading uniform buffers; a scenario uses the same word for both.
    "compute_shader_read": vk.ACCESS_SHADER_READ_BIT | vk.ACCESS_UNIFORM_READ_BIT,
    "compute_shader_write": vk.ACCESS_SHADER_WRITE_BIT,
}


class BarrierRecorder(Recorder):
    """Records barriers. Bound objects stay bound."""

    def record(self, operations: Iterable[Barrier]) -> None:
        """Record a command for each barrier: version 1 takes a single pair of stages for all barriers in a command."""
        fn, resources = self.objects.device.fn, self.objects.resources
        stages = _STAGES if self.objects.device.has_graphics else _STAGES_WITHOUT_GRAPHICS
        for barrier in (barrier for operation in operations for barrier in operation.barriers):
            scope = barrier.scope
            src, dst = _mask(scope.src_stages, stages), _mask(scope.dst_stages, stages)
            access = _ACCESS[scope.src_access] if src else 0, _ACCESS[scope.dst_access] if dst else 0
            none: tuple[Handle, ...] = (0, ffi.NULL)
            memory = buffer = image = none
            if barrier.kind == "tensor":
                handle = resources[barrier.uid].handle
                fn.vkCmdPipelineBarrier2(self.commands, _tensor_dependency(handle, (src, dst), access))
                continue
            if barrier.kind == "memory":
                memory = 1, memory_barrier(*access)
            elif barrier.kind == "image":
                image = 1, image_barriers([resources[barrier.uid].barrier_transition(barrier)], *access)
            else:
                members = {
                    "sType": vk.STRUCTURE_TYPE_BUFFER_MEMORY_BARRIER,
                    "srcAccessMask": access[0],
                    "dstAccessMask": access[1],
                    "srcQueueFamilyIndex": vk.QUEUE_FAMILY_IGNORED,
                    "dstQueueFamilyIndex": vk.QUEUE_FAMILY_IGNORED,
                    "buffer": resources[barrier.uid].handle,
                    "offset": barrier.offset_bytes,
                    "size": barrier.size_bytes,
                }
                buffer = 1, ffi.new("VkBufferMemoryBarrier*", members)
            # version 1 has no empty stage mask: top and bottom of pipe, without any access, mean no stage
            src, dst = src or vk.PIPELINE_STAGE_TOP_OF_PIPE_BIT, dst or vk.PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT
            fn.vkCmdPipelineBarrier(self.commands, src, dst, 0, *memory, *buffer, *image)


def _tensor_dependency(tensor: Handle, stages: tuple[int, int], access: tuple[int, int]) -> Handle:
    """Return a VkDependencyInfo (version 2) with a barrier of a tensor."""
    barrier = new(
        "VkTensorMemoryBarrierARM",
        srcStageMask=stages[0],
        srcAccessMask=access[0],
        dstStageMask=stages[1],
        dstAccessMask=access[1],
        srcQueueFamilyIndex=vk.QUEUE_FAMILY_IGNORED,
        dstQueueFamilyIndex=vk.QUEUE_FAMILY_IGNORED,
        tensor=tensor,
    )
    return chain(new("VkDependencyInfo"), new("VkTensorDependencyInfoARM", pTensorMemoryBarriers=[barrier]))


def _mask(stages: tuple[str, ...], bits: Mapping[str, int]) -> int:
    mask = 0
    for stage in stages:
        mask |= bits[stage]
    return mask


class TransferRecorder(Recorder):
    """Records fills and copies. Images are in the layout GENERAL. Bound objects stay bound."""

    def _record(self, transfer: Transfer) -> None:
        target, level = self.objects.resources[transfer.target.uid], transfer.target.level
        companion = None if level is None else target.companion_to_fill(level)
        if companion is None:
            self._write(transfer, target, target.handle)
        else:
            self.objects.device.barrier(self.commands)
            companion.record_in(self.commands)
            self._write(transfer, target, companion.handle)
            companion.record_out(self.commands)
        if transfer.barrier_after:
            self.objects.device.barrier(self.commands)

    def _write(self, transfer: Transfer, target: Any, written: Handle) -> None:
        """Record a command that writes the target's object, or a companion with a single level."""
        commands, fn, general = self.commands, self.objects.device.fn, vk.IMAGE_LAYOUT_GENERAL
        part, source = transfer.target, transfer.source
        if source is None and part.level is None:
            word = int.from_bytes(transfer.data, "little")
            fn.vkCmdFillBuffer(commands, written, part.offset_bytes, part.size_bytes, word)
            return
        if source is None:
            target.record_fill(commands, written, general, transfer.data, part.level, 1)
            return
        read = self.objects.resources[source.uid]
        if source.level is None and part.level is None:
            region = copy_region(source.offset_bytes, part.offset_bytes, part.size_bytes)
            fn.vkCmdCopyBuffer(commands, read.handle, written, 1, region)
        elif source.level is None:
            region = target.region(Piece(target, part.offset_bytes, part.size_bytes, source.offset_bytes))
            fn.vkCmdCopyBufferToImage(commands, read.handle, written, general, 1, region)
        elif part.level is None:
            region = read.region(Piece(read, source.offset_bytes, source.size_bytes, part.offset_bytes))
            fn.vkCmdCopyImageToBuffer(commands, read.handle, general, written, 1, region)
        else:
            region = level_copy(target.plan.part_of(part.level), source.level, part.level)
            fn.vkCmdCopyImage(commands, read.handle, general, written, general, 1, region)


_Area: TypeAlias = tuple[tuple[Target, ...], tuple[int, int]]

_INDEX_TYPES = {1: vk.INDEX_TYPE_UINT8, 2: vk.INDEX_TYPE_UINT16, 4: vk.INDEX_TYPE_UINT32}


class DrawRecorder(BindingRecorder):
    """Records draws.

    Consecutive draws into the same attachments share a rendering. Attachments are loaded, so texels outside a draw
    stay.
    """

    point = vk.PIPELINE_BIND_POINT_GRAPHICS
    stages = SHADER_STAGES

    def __init__(self, objects: RunObjects, commands: Handle, alone: bool) -> None:
        super().__init__(objects, commands, alone)
        self._suffix = "KHR" if "VK_KHR_dynamic_rendering" in objects.device.enabled.extensions else ""
        # VkRenderingInfo and the attachments' companion images
        self._renderings: dict[_Area, tuple[Handle, list[CompanionImage]]] = {}
        self._open: _Area | None = None

    def forget_bindings(self) -> None:
        super().forget_bindings()
        self._viewport: tuple[object, ...] = ()
        self._buffers: tuple[BufferStart, ...] = ()
        self._indices: tuple[object, ...] = ()

    def record(self, operations: Iterable[Draw]) -> None:
        super().record(operations)
        self._finish()

    def _record(self, draw: Draw) -> None:
        """Record a draw, and the barrier after it."""
        commands, fn = self.commands, self.objects.device.fn
        area = (draw.targets, draw.extent)
        if area != self._open:
            self._finish()
            self._start(area)
        if (draw.extent, draw.viewport) != self._viewport:
            self._viewport = draw.extent, draw.viewport
            fn.vkCmdSetViewport(commands, 0, 1, [draw.viewport])
            fn.vkCmdSetScissor(commands, 0, 1, [((0, 0), draw.extent)])
        self._bind(self.objects.graphics[draw.pipeline], draw.descriptors, draw.push_constants)
        self._draw(draw.vertices)
        if draw.barrier_after:
            self._finish()
            self.objects.device.barrier(commands)

    def _draw(self, vertices: Vertices) -> None:
        """Bind the buffers of the vertices, and record the draw."""
        commands, fn, resources = self.commands, self.objects.device.fn, self.objects.resources
        buffers, indices, count = vertices.buffers, vertices.index_buffer, vertices.vertex_count
        if buffers and buffers != self._buffers:
            self._buffers = buffers
            handles = [resources[uid].handle for uid, _ in buffers]
            fn.vkCmdBindVertexBuffers(commands, 0, len(buffers), handles, [offset for _, offset in buffers])
        if indices is None:
            fn.vkCmdDraw(commands, count, vertices.instance_count, vertices.first, vertices.first_instance)
            return
        if (indices, vertices.index_size_bytes) != self._indices:
            self._indices = indices, vertices.index_size_bytes
            handle, index_type = resources[indices.uid].handle, _INDEX_TYPES[vertices.index_size_bytes]
            fn.vkCmdBindIndexBuffer(commands, handle, indices.offset_bytes, index_type)
        first, added = vertices.first, vertices.vertex_offset
        fn.vkCmdDrawIndexed(commands, count, vertices.instance_count, first, added, vertices.first_instance)

    def _finish(self) -> None:
        """End the current rendering, if any."""
        if self._open is None:
            return
        _, companions = self._renderings[self._open]
        self._open = None
        getattr(self.objects.device.fn, f"vkCmdEndRendering{self._suffix}")(self.commands)
        for companion in companions:
            companion.record_out(self.commands)
        if companions:
            self.objects.device.barrier(self.commands)

    def _start(self, area: _Area) -> None:
        if area not in self._renderings:
            self._renderings[area] = self._rendering(*area)
        self._open = area
        info, companions = self._renderings[area]
        if companions:
            # the scenario's barriers order the attachments, not their copies
            self.objects.device.barrier(self.commands)
        for companion in companions:
            companion.record_in(self.commands)
        getattr(self.objects.device.fn, f"vkCmdBeginRendering{self._suffix}")(self.commands, info)

    def _rendering(self, targets: Sequence[Target], extent: tuple[int, int]) -> tuple[Handle, list[CompanionImage]]:
        companions = []
        attachments: list[dict[str, Member]] = []
        pipelines = self.objects.plan.graphics_pipelines
        writes_depths = any(pipeline.depth is not None and pipeline.depth.write for pipeline in pipelines)
        for uid, level, is_depth in targets:
            image = self.objects.resources[uid]
            companion = image.companion_to_draw(level)
            companions += [] if companion is None else [companion]
            attachments.append(
                {
                    "imageView": image.image_view(level) if companion is None else companion.view,
                    "imageLayout": image.rest_layout if companion is None else companion.layout,
                    "loadOp": vk.ATTACHMENT_LOAD_OP_LOAD,
                    # storing is a write, also of depths that no draw has changed
                    "storeOp": vk.ATTACHMENT_STORE_OP_NONE
                    if is_depth and not writes_depths
                    else vk.ATTACHMENT_STORE_OP_STORE,
                }
            )
        area = {"extent": {"width": extent[0], "height": extent[1]}}
        depth = attachments.pop() if targets and targets[-1].is_depth else None
        attached = {"pColorAttachments": attachments, "pDepthAttachment": depth}
        return new("VkRenderingInfo", renderArea=area, layerCount=1, **attached), companions


class GraphRecorder(BindingRecorder):
    """Records a frame's graph dispatches.

    Two dispatches with the same session share session memory and must not overlap. If the scenario has no barrier
    between them, the recorder adds a barrier.
    """

    point = vk.PIPELINE_BIND_POINT_DATA_GRAPH_ARM

    def __init__(self, objects: RunObjects, commands: Handle, alone: bool) -> None:
        super().__init__(objects, commands, alone)
        self._running: set[int] = set()

    def _record(self, operation: Any) -> None:
        """Record a dispatch, and the barrier after it."""
        if operation.pipeline in self._running:
            self.barrier()
        graph = self.objects.graphs[operation.pipeline]
        self._bind(graph, operation.descriptors)
        self.objects.device.fn.vkCmdDispatchDataGraphARM(self.commands, graph.session, self._info(operation))
        if operation.barrier_after:
            self.barrier()
        else:
            self._running.add(operation.pipeline)

    def _info(self, operation: Any) -> Handle:
        """Return the VkDataGraphPipelineDispatchInfoARM of a dispatch."""
        return ffi.NULL

    def barrier(self) -> None:
        """Record a barrier between all earlier and later work: graphs, shaders and copies."""
        self._running.clear()
        self.objects.device.barrier(self.commands)


class OpticalFlowRecorder(GraphRecorder):
    """Records a frame's optical flows: graph dispatches with flags and a hint."""

    def _record(self, operation: OpticalFlowDispatch) -> None:
        objects = self.objects
        descriptors = objects.plan.descriptor_lists[operation.descriptors].descriptors
        read = {(descriptor.uid, descriptor.level) for descriptor in descriptors if descriptor.flow_input}
        copies = [copy for uid, level in read if (copy := objects.resources[uid].copy_for_flow(level)) is not None]
        if copies:
            self.barrier()  # the scenario's barriers order the optical flow, not the input copies
            for copy in copies:
                copy.record_in(self.commands)
        super()._record(operation)

    def _info(self, operation: OpticalFlowDispatch) -> Handle:
        return dispatch_info(operation)
