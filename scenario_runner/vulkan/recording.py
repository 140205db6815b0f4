"""Records compute dispatches, and writes a run's descriptor sets.

Recording is the hot path of scenarios with many commands. `recorders` records all other work.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from scenario_runner.plan.plan import Plan
from scenario_runner.plan.records import DescriptorList, Dispatch
from scenario_runner.vulkan import NULL, Handle, ffi
from scenario_runner.vulkan._generated import constants as vk
from scenario_runner.vulkan.device import Device, memory_barrier
from scenario_runner.vulkan.pipeline import Pipeline, PipelineCache
from scenario_runner.vulkan.resources import DESCRIPTOR_TYPES, Resource
from scenario_runner.vulkan.vulkan_api import check, new

if TYPE_CHECKING:
    from scenario_runner.vulkan.graph_pipelines import DataGraph


class RunObjects(NamedTuple):
    """The objects of a run. Operations name resources by uid, the others by their index in the plan.

    ``pipelines`` belong to compute shaders, ``graphics`` to draws, ``graphs`` to graphs and optical flows.
    ``descriptor_sets`` has (VkDescriptorSet*, count) for each list.
    """

    device: Device
    plan: Plan
    resources: Mapping[str, Any]
    pipelines: Sequence[Pipeline]
    graphs: Sequence[DataGraph]
    descriptor_sets: Sequence[tuple[Handle, int]]
    graphics: Sequence[Pipeline]


class Recorder:
    """Records operations of a kind into a frame's command buffer.

    ``alone`` means that the frame only has compute dispatches and barriers. Otherwise, a barrier after an operation
    must also cover the stages of other work.
    """

    def __init__(self, objects: RunObjects, commands: Handle, alone: bool) -> None:
        self.objects = objects
        self.commands = commands

    def record(self, operations: Iterable[Any]) -> None:
        """Record operations that follow each other, with the implicit barriers after them."""
        for operation in operations:
            self._record(operation)

    def _record(self, operation: Any) -> None:
        """Record an operation."""
        raise NotImplementedError


class BindingRecorder(Recorder):
    """Records work of pipelines with descriptor sets. Bound objects are not bound again."""

    point: ClassVar[int]
    stages: ClassVar[int] = 0
    """The shader stages that see push constants."""

    def __init__(self, objects: RunObjects, commands: Handle, alone: bool) -> None:
        super().__init__(objects, commands, alone)
        fn = objects.device.fn
        self._bind_pipeline, self._bind_sets = fn.vkCmdBindPipeline, fn.vkCmdBindDescriptorSets
        self.forget_bindings()

    def forget_bindings(self) -> None:
        """Forget which objects are bound: another recorder may have bound others."""
        self._pipeline: Pipeline | DataGraph | None = None
        self._layout: Handle = None
        self._descriptors, self._push_constants = -1, b""

    def _bind(self, pipeline: Pipeline | DataGraph, descriptors: int, push_constants: bytes = b"") -> None:
        """Bind a pipeline, the descriptor list with this number, and push constants if there are any."""
        commands, point = self.commands, self.point
        if pipeline is not self._pipeline:
            self._pipeline = pipeline
            self._bind_pipeline(commands, point, pipeline.handle)
            if pipeline.layout != self._layout:
                self._layout = pipeline.layout
                self._descriptors, self._push_constants = -1, b""
        if descriptors != self._descriptors:
            self._descriptors = descriptors
            sets, count = self.objects.descriptor_sets[descriptors]
            if count:
                self._bind_sets(commands, point, self._layout, 0, count, sets, 0, NULL)
        if push_constants and push_constants != self._push_constants:
            self._push_constants = push_constants
            data = ffi.from_buffer(push_constants)
            push = self.objects.device.fn.vkCmdPushConstants
            push(commands, self._layout, self.stages, 0, len(push_constants), data)


class DispatchRecorder(BindingRecorder):
    """Records dispatches of compute shaders.

    Implicit barriers are global. They order compute work with all later work in the same frame.
    """

    point = vk.PIPELINE_BIND_POINT_COMPUTE
    stages = vk.SHADER_STAGE_COMPUTE_BIT

    def __init__(self, objects: RunObjects, commands: Handle, alone: bool) -> None:
        super().__init__(objects, commands, alone)
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
        else:  # graphs and draws have other stages
            later = vk.ACCESS_MEMORY_READ_BIT | vk.ACCESS_MEMORY_WRITE_BIT
            self._everything = memory_barrier(vk.ACCESS_MEMORY_WRITE_BIT, later)
            self._after_stages = vk.PIPELINE_STAGE_ALL_COMMANDS_BIT

    def record(self, operations: Iterable[Dispatch]) -> None:
        commands, pipelines, fn, null = self.commands, self.objects.pipelines, self.objects.device.fn, ffi.NULL
        dispatch, pipeline_barrier = fn.vkCmdDispatch, fn.vkCmdPipelineBarrier
        compute, after_stages, everything = vk.PIPELINE_STAGE_COMPUTE_SHADER_BIT, self._after_stages, self._everything
        bound = None
        for operation in operations:
            needed = operation.pipeline, operation.descriptors, operation.push_constants
            if needed != bound:
                bound = needed
                self._bind(pipelines[operation.pipeline], operation.descriptors, operation.push_constants)
            x, y, z = operation.workgroup_count
            dispatch(commands, x, y, z)
            if operation.barrier_after:
                pipeline_barrier(commands, compute, after_stages, 0, 1, everything, 0, null, 0, null)


def allocate_sets(
    pipelines: PipelineCache, stack: ExitStack, lists: Sequence[DescriptorList], resources: Mapping[str, Resource]
) -> list[tuple[Handle, int]]:
    """Allocate every list's sets from a single pool and write them: (VkDescriptorSet*, count) each, ready to bind."""
    device = pipelines.device
    layouts: list[Handle] = []
    ranges: list[tuple[int, int]] = []
    sizes: Counter[int] = Counter()
    for descriptors in lists:
        first = len(layouts)
        layouts += pipelines.set_layouts(descriptors.set_layouts)
        ranges.append((first, len(layouts) - first))
        for binding in chain.from_iterable(descriptors.set_layouts):
            sizes[DESCRIPTOR_TYPES[binding.kind]] += binding.descriptor_count
    if not layouts:
        return [(ffi.NULL, 0) for _ in lists]
    purpose = f"{len(layouts)} descriptor sets"
    # a pool needs a size even if every set is empty
    pool_sizes = [*sizes.items()] or [(vk.DESCRIPTOR_TYPE_STORAGE_BUFFER, 1)]
    sizes_array = ffi.new("VkDescriptorPoolSize[]", pool_sizes)
    info = new("VkDescriptorPoolCreateInfo", maxSets=len(layouts), pPoolSizes=sizes_array)
    pool = device.create(stack, "descriptor pool", "DescriptorPool", info, purpose)
    handles = ffi.new("VkDescriptorSet[]", len(layouts))
    allocate = new("VkDescriptorSetAllocateInfo", descriptorPool=pool, pSetLayouts=layouts)
    check(device.fn.vkAllocateDescriptorSets(device.handle, allocate, handles), "vkAllocateDescriptorSets", purpose)
    stack.callback(ffi.release, handles)  # this also keeps the array alive as long as the sets
    writes = ffi.new("VkWriteDescriptorSet[]", sum(len(descriptors.descriptors) for descriptors in lists))
    keep: list[Handle] = []
    for (first, _), descriptors in zip(ranges, lists, strict=True):
        for descriptor in descriptors.descriptors:
            write = writes[len(keep)]
            write.sType = vk.STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET
            write.dstSet = handles[first + descriptor.set]
            write.dstBinding = descriptor.binding
            write.dstArrayElement = descriptor.element
            write.descriptorCount = 1
            write.descriptorType = DESCRIPTOR_TYPES[descriptor.kind]
            keep.append(resources[descriptor.uid].write_descriptor(write, descriptor))
    if keep:
        device.fn.vkUpdateDescriptorSets(device.handle, len(keep), writes, 0, ffi.NULL)
    return [(handles + first, count) for first, count in ranges]
