"""Command buffers: the operations of a frame are recorded into one, which is submitted as often as needed.

Recording is the hot path of scenarios with many commands. Labels and names, where a layer or an option asks for them,
use VK_EXT_debug_utils. Waiting has a time limit and can be interrupted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from scenario_runner.plan.plan import Plan
from scenario_runner.plan.records import DescriptorList, Dispatch
from scenario_runner.vulkan import Handle, ffi
from scenario_runner.vulkan._generated import constants as vk
from scenario_runner.vulkan.device import Device, memory_barrier
from scenario_runner.vulkan.pipeline import DESCRIPTOR_TYPES, Pipeline, PipelineCache
from scenario_runner.vulkan.resources import Resource
from scenario_runner.vulkan.structs import new
from scenario_runner.vulkan.vulkan_loader import check

if TYPE_CHECKING:
    from scenario_runner.vulkan.graph_pipelines import DataGraph


class Prepared(NamedTuple):
    """Operations name pipelines, graphs and descriptor lists by their index in the plan, resources by uid.

    ``pipelines`` are those of compute shaders, ``graphics`` those of draws, ``graphs`` `GraphPipeline` objects;
    ``descriptor_sets`` are (VkDescriptorSet*, count) of each list.
    """

    device: Device
    plan: Plan
    resources: Mapping[str, Any]
    pipelines: Sequence[Pipeline]
    graphs: Sequence[DataGraph]
    descriptor_sets: Sequence[tuple[Handle, int]]
    graphics: Sequence[Pipeline]


class Recorder:
    """Records the operations of one kind into the command buffer of one frame; the registry of kinds names it.

    ``alone`` says that the frame has nothing but dispatches of compute shaders and barriers: else a barrier after an
    operation has to cover the stages of other work as well. ``binds`` says whether it binds pipelines and descriptors.
    """

    binds: ClassVar[bool] = True

    def __init__(self, prepared: Prepared, commands: Handle, alone: bool) -> None:
        self.prepared = prepared
        self.commands = commands

    def record(self, operations: Iterable[Any]) -> None:
        """Record operations that follow each other, with the implicit barriers after them."""
        for operation in operations:
            self._record(operation)

    def _record(self, operation: Any) -> None:
        """Record one operation, and the barrier after it."""
        raise NotImplementedError

    def disturbed(self) -> None:
        """Called when another recorder may have bound something else."""


class DispatchRecorder(Recorder):
    """Records dispatches of compute shaders.

    Pipelines, descriptor sets and push constants that are already bound are not bound again; implicit barriers are
    global and order compute work with whatever follows in the same frame.
    """

    def __init__(self, prepared: Prepared, commands: Handle, alone: bool) -> None:
        super().__init__(prepared, commands, alone)
        if alone:
            later = (
                vk.ACCESS_SHADER_READ_BIT
                | vk.ACCESS_UNIFORM_READ_BIT
                | vk.ACCESS_SHADER_WRITE_BIT
                | vk.ACCESS_TRANSFER_READ_BIT
                | vk.ACCESS_TRANSFER_WRITE_BIT
            )
            self._everything = memory_barrier(vk.ACCESS_SHADER_WRITE_BIT, later)
            self._after_stages = vk.PIPELINE_STAGE_COMPUTE_SHADER_BIT | vk.PIPELINE_STAGE_TRANSFER_BIT
        else:  # graphs and draws have stages of their own
            later = vk.ACCESS_MEMORY_READ_BIT | vk.ACCESS_MEMORY_WRITE_BIT
            self._everything = memory_barrier(vk.ACCESS_MEMORY_WRITE_BIT, later)
            self._after_stages = vk.PIPELINE_STAGE_ALL_COMMANDS_BIT
        self.disturbed()

    def disturbed(self) -> None:
        self._bound: tuple[int, int, Handle, bytes | None] = (-1, -1, None, None)

    def record(self, operations: Iterable[Dispatch]) -> None:
        prepared, command_buffer, fn = self.prepared, self.commands, self.prepared.device.fn
        dispatch, bind_pipeline, bind_sets = fn.vkCmdDispatch, fn.vkCmdBindPipeline, fn.vkCmdBindDescriptorSets
        pipeline_barrier, push_constants = fn.vkCmdPipelineBarrier, fn.vkCmdPushConstants
        everything, after_stages, null = self._everything, self._after_stages, ffi.NULL
        bound_pipeline, bound_descriptors, bound_layout, bound_push = self._bound
        for operation in operations:
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
                push_constants(
                    command_buffer,
                    bound_layout,
                    vk.SHADER_STAGE_COMPUTE_BIT,
                    0,
                    len(bound_push),
                    ffi.from_buffer(bound_push),
                )
            x, y, z = operation.workgroup_count
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
        self._bound = (bound_pipeline, bound_descriptors, bound_layout, bound_push)


def allocate_sets(
    pipelines: PipelineCache, stack: ExitStack, lists: Sequence[DescriptorList], resources: Mapping[str, Resource]
) -> list[tuple[Handle, int]]:
    """Allocate and write the sets of every list, from one pool: (VkDescriptorSet*, count) each, ready to be bound."""
    device = pipelines.device
    layouts: list[Handle] = []
    ranges: list[tuple[int, int]] = []
    sizes: Counter[int] = Counter()
    for descriptors in lists:
        first = len(layouts)
        layouts += pipelines.set_layouts(descriptors.set_layouts)
        ranges.append((first, len(layouts) - first))
        for descriptor in descriptors.descriptors:
            sizes[DESCRIPTOR_TYPES[descriptor.kind]] += 1
    if not layouts:
        return [(ffi.NULL, 0) for _ in lists]
    purpose = f"{len(layouts)} descriptor sets"
    # a pool needs one size even when every set is empty
    pool_sizes = [*sizes.items()] or [(vk.DESCRIPTOR_TYPE_STORAGE_BUFFER, 1)]
    sizes_array = ffi.new("VkDescriptorPoolSize[]", pool_sizes)
    info = new("VkDescriptorPoolCreateInfo", maxSets=len(layouts), pPoolSizes=sizes_array)
    pool = device.create(stack, "descriptor pool", "DescriptorPool", info, purpose)
    handles = ffi.new("VkDescriptorSet[]", len(layouts))
    allocate = new("VkDescriptorSetAllocateInfo", descriptorPool=pool, pSetLayouts=layouts)
    check(device.fn.vkAllocateDescriptorSets(device.handle, allocate, handles), "vkAllocateDescriptorSets", purpose)
    stack.callback(ffi.release, handles)  # also keeps the array alive as long as the sets
    writes = ffi.new("VkWriteDescriptorSet[]", sizes.total())
    keep: list[Handle] = []
    for (first, _), descriptors in zip(ranges, lists, strict=True):
        for descriptor in descriptors.descriptors:
            write = writes[len(keep)]
            write.sType = vk.STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET
            write.dstSet = handles[first + descriptor.set]
            write.dstBinding = descriptor.binding
            write.descriptorCount = 1
            write.descriptorType = DESCRIPTOR_TYPES[descriptor.kind]
            keep.append(resources[descriptor.uid].write_descriptor(write, descriptor))
    if keep:
        device.fn.vkUpdateDescriptorSets(device.handle, len(keep), writes, 0, ffi.NULL)
    return [(handles + first, count) for first, count in ranges]
