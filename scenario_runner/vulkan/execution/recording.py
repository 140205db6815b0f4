"""Recording the operations of one frame into one command buffer: the hot path of scenarios with many commands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scenario_runner.plan.model.plan import Barrier, FramePlan
from scenario_runner.plan.model.records import BufferBarrier, Dispatch, ImageBarrier, MemoryBarrier
from scenario_runner.vulkan.api._generated import constants as vk
from scenario_runner.vulkan.api.ffi import ffi

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scenario_runner.vulkan.execution.prepared import Prepared


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


def memory_barrier(src_access: int, dst_access: int) -> Any:
    """A VkMemoryBarrier."""
    barrier = ffi.new("VkMemoryBarrier*")
    barrier.sType = vk.STRUCTURE_TYPE_MEMORY_BARRIER
    barrier.srcAccessMask = src_access
    barrier.dstAccessMask = dst_access
    return barrier


def record_frame(prepared: Prepared, command_buffer: Any, frame: FramePlan) -> None:
    """Record every operation of ``frame``, in order.

    Pipelines, descriptor sets and push constants that are already bound are not bound again; implicit barriers are
    global and order compute work with whatever follows in the same frame.
    """
    fn = prepared.device.fn
    dispatch, bind_pipeline, bind_sets = fn.vkCmdDispatch, fn.vkCmdBindPipeline, fn.vkCmdBindDescriptorSets
    pipeline_barrier, push_constants = fn.vkCmdPipelineBarrier, fn.vkCmdPushConstants
    null = ffi.NULL
    everything = memory_barrier(
        vk.ACCESS_SHADER_WRITE_BIT,
        _ACCESS["compute_shader_read"]
        | vk.ACCESS_SHADER_WRITE_BIT
        | vk.ACCESS_TRANSFER_READ_BIT
        | vk.ACCESS_TRANSFER_WRITE_BIT,
    )
    after_stages = vk.PIPELINE_STAGE_COMPUTE_SHADER_BIT | vk.PIPELINE_STAGE_TRANSFER_BIT
    bound_pipeline = bound_descriptors = -1
    bound_layout: Any = None
    bound_push: bytes | None = None
    graphs = None
    if prepared.graphs:
        from scenario_runner.vulkan.execution.graph_recording import recorder_for

        graphs = recorder_for(prepared, command_buffer, frame)
    drawings = None
    if prepared.graphics:
        from scenario_runner.vulkan.execution.drawing_recording import drawing_recorder_for

        drawings = drawing_recorder_for(prepared, command_buffer, frame)
    if graphs is not None or drawings is not None:  # which have stages of their own
        everything = memory_barrier(vk.ACCESS_MEMORY_WRITE_BIT, vk.ACCESS_MEMORY_READ_BIT | vk.ACCESS_MEMORY_WRITE_BIT)
        after_stages = vk.PIPELINE_STAGE_ALL_COMMANDS_BIT
    for operation in frame.operations:
        if drawings is not None and operation.kind != "draw":
            drawings.end()
        if isinstance(operation, Dispatch):
            if operation.pipeline != bound_pipeline:
                bound_pipeline = operation.pipeline
                pipeline = prepared.pipelines[bound_pipeline]
                bind_pipeline(command_buffer, vk.PIPELINE_BIND_POINT_COMPUTE, pipeline.handle)
                if pipeline.layout != bound_layout:
                    bound_layout = pipeline.layout
                    bound_descriptors = -1
                    bound_push = None
            if operation.descriptors != bound_descriptors:
                bound_descriptors = operation.descriptors
                sets, count = prepared.descriptor_sets[bound_descriptors]
                if count:
                    bind_sets(command_buffer, vk.PIPELINE_BIND_POINT_COMPUTE, bound_layout, 0, count, sets, 0, null)
            if operation.push_constants and operation.push_constants != bound_push:
                bound_push = operation.push_constants
                if drawings is not None:
                    drawings.disturbed()
                push_constants(
                    command_buffer,
                    bound_layout,
                    vk.SHADER_STAGE_COMPUTE_BIT,
                    0,
                    len(bound_push),
                    ffi.from_buffer(bound_push),
                )
            x, y, z = operation.groups
            dispatch(command_buffer, x, y, z)
            if operation.barrier_after:
                pipeline_barrier(
                    command_buffer,
                    vk.PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                    after_stages,
                    0,
                    1,
                    everything,
                    0,
                    null,
                    0,
                    null,
                )
            if graphs is not None:
                graphs.disturbed()
        elif isinstance(operation, Barrier):
            _record_barrier(prepared, command_buffer, operation)
        elif operation.kind == "draw":
            assert drawings is not None, "the frame has a draw"
            drawings.record(operation)
            bound_push = None
        else:
            assert graphs is not None, "the frame has a graph"
            graphs.record(operation)
            if drawings is not None:
                drawings.forget()
            # a graph may change everything that is bound for shaders
            bound_pipeline = bound_descriptors = -1
            bound_layout = bound_push = None
    if drawings is not None:
        drawings.end()


def _record_barrier(prepared: Prepared, command_buffer: Any, operation: Barrier) -> None:
    """One vkCmdPipelineBarrier for all barriers with equal stages (version 1 takes one pair of stage masks a call)."""
    by_stages: dict[tuple[int, int], tuple[list[Any], list[Any], list[Any]]] = {}
    tensors = []
    stages = _STAGES if prepared.device.has_graphics else _STAGES_WITHOUT_GRAPHICS
    for barrier in operation.barriers:
        src, dst = _mask(barrier.src_stages, stages), _mask(barrier.dst_stages, stages)
        # version 1 has no empty stage mask; top and bottom of pipe, without any access, stand for "no stage"
        src_access = _ACCESS[barrier.src_access] if src else 0
        dst_access = _ACCESS[barrier.dst_access] if dst else 0
        if not isinstance(barrier, MemoryBarrier | BufferBarrier | ImageBarrier):
            tensors.append((prepared.resources[barrier.uid], src, src_access, dst, dst_access))
            continue
        key = (src or vk.PIPELINE_STAGE_TOP_OF_PIPE_BIT, dst or vk.PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT)
        memory, buffers, images = by_stages.setdefault(key, ([], [], []))
        if isinstance(barrier, MemoryBarrier):
            memory.append(
                {
                    "sType": vk.STRUCTURE_TYPE_MEMORY_BARRIER,
                    "srcAccessMask": src_access,
                    "dstAccessMask": dst_access,
                }
            )
        elif isinstance(barrier, ImageBarrier):
            images.append((prepared.resources[barrier.uid].barrier_transition(barrier), src_access, dst_access))
        else:
            buffers.append(
                {
                    "sType": vk.STRUCTURE_TYPE_BUFFER_MEMORY_BARRIER,
                    "srcAccessMask": src_access,
                    "dstAccessMask": dst_access,
                    "srcQueueFamilyIndex": vk.QUEUE_FAMILY_IGNORED,
                    "dstQueueFamilyIndex": vk.QUEUE_FAMILY_IGNORED,
                    "buffer": prepared.resources[barrier.uid].handle,
                    "offset": barrier.offset_bytes,
                    "size": barrier.size_bytes,
                }
            )
    for (src, dst), (memory, buffers, images) in by_stages.items():
        prepared.device.fn.vkCmdPipelineBarrier(
            command_buffer,
            src,
            dst,
            0,
            len(memory),
            ffi.new("VkMemoryBarrier[]", memory),
            len(buffers),
            ffi.new("VkBufferMemoryBarrier[]", buffers),
            len(images),
            _image_barriers(images),
        )
    if tensors:
        from scenario_runner.vulkan.execution.graph_recording import record_tensor_barriers

        record_tensor_barriers(prepared, command_buffer, tensors)


def _image_barriers(images: list[tuple[Any, int, int]]) -> Any:
    """VkImageMemoryBarrier[] of (transition, source access, destination access)."""
    if not images:
        return ffi.NULL
    from scenario_runner.vulkan.resources.image_layouts import image_barriers

    barriers = image_barriers([transition for transition, _, _ in images], 0, 0)
    for barrier, (_, src_access, dst_access) in zip(barriers, images, strict=True):
        barrier.srcAccessMask, barrier.dstAccessMask = src_access, dst_access
    return barriers


def _mask(stages: tuple[str, ...], bits: Mapping[str, int]) -> int:
    mask = 0
    for stage in stages:
        mask |= bits[stage]
    return mask
