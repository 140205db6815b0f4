"""Descriptor set layouts (made once per content) and the descriptor sets of one run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from scenario_runner.plan.records import DescriptorList, LayoutBinding
from scenario_runner.vulkan.api._generated import constants as vk
from scenario_runner.vulkan.api.ffi import ffi
from scenario_runner.vulkan.api.loader import check
from scenario_runner.vulkan.api.structs import new
from scenario_runner.vulkan.devices.device import Device
from scenario_runner.vulkan.resources.creation import Resource

DESCRIPTOR_TYPES = {
    "sampler": vk.DESCRIPTOR_TYPE_SAMPLER,
    "combined_image_sampler": vk.DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER,
    "sampled_image": vk.DESCRIPTOR_TYPE_SAMPLED_IMAGE,
    "storage_image": vk.DESCRIPTOR_TYPE_STORAGE_IMAGE,
    "uniform_buffer": vk.DESCRIPTOR_TYPE_UNIFORM_BUFFER,
    "storage_buffer": vk.DESCRIPTOR_TYPE_STORAGE_BUFFER,
    "tensor": vk.DESCRIPTOR_TYPE_TENSOR_ARM,
}
_STAGES = {
    "compute": vk.SHADER_STAGE_COMPUTE_BIT,
    "vertex": vk.SHADER_STAGE_VERTEX_BIT,
    "fragment": vk.SHADER_STAGE_FRAGMENT_BIT,
}


def create_set_layout(device: Device, bindings: tuple[LayoutBinding, ...]) -> Any:
    """A VkDescriptorSetLayout; an empty one stands for a set number that is not used."""
    handle = ffi.new("VkDescriptorSetLayout*")
    info = new(
        "VkDescriptorSetLayoutCreateInfo",
        pBindings=[
            {
                "binding": binding.binding,
                "descriptorType": DESCRIPTOR_TYPES[binding.kind],
                "descriptorCount": 1,
                # graphs are not a shader stage: what they find in a set is there for all
                "stageFlags": vk.SHADER_STAGE_ALL
                if binding.kind == "tensor"
                else sum(_STAGES[stage] for stage in binding.stages),
            }
            for binding in bindings
        ],
    )
    check(device.fn.vkCreateDescriptorSetLayout(device.handle, info, ffi.NULL, handle), "vkCreateDescriptorSetLayout")
    return handle[0]


def allocate_sets(
    device: Device,
    stack: ExitStack,
    wanted: Sequence[DescriptorList],
    layouts_of: Callable[[DescriptorList], Sequence[Any]],
    resources: Mapping[str, Resource],
) -> list[tuple[Any, int]]:
    """Allocate and write the sets of every list, from one pool: (VkDescriptorSet*, count) each, ready to be bound."""
    layouts: list[Any] = []
    firsts: list[int] = []
    sizes: dict[int, int] = {}
    for each in wanted:
        firsts.append(len(layouts))
        layouts.extend(layouts_of(each))
        for descriptor in each.descriptors:
            kind = DESCRIPTOR_TYPES[descriptor.kind]
            sizes[kind] = sizes.get(kind, 0) + 1
    if not layouts:
        return [(ffi.NULL, 0) for _ in wanted]
    purpose = f"{len(layouts)} descriptor sets"
    info = new(
        "VkDescriptorPoolCreateInfo",
        maxSets=len(layouts),
        # a pool needs one size even when every set is empty
        pPoolSizes=[
            {"type": kind, "descriptorCount": count}
            for kind, count in (sizes or {vk.DESCRIPTOR_TYPE_STORAGE_BUFFER: 1}).items()
        ],
    )
    pool = device.create(stack, "descriptor pool", "DescriptorPool", info, purpose)
    handles = ffi.new("VkDescriptorSet[]", len(layouts))
    allocate = new("VkDescriptorSetAllocateInfo", descriptorPool=pool, pSetLayouts=layouts)
    check(device.fn.vkAllocateDescriptorSets(device.handle, allocate, handles), "vkAllocateDescriptorSets", purpose)
    stack.callback(lambda: ffi.release(handles))  # also keeps the array alive as long as the sets
    _write(device, wanted, firsts, handles, resources)
    ends = [*firsts[1:], len(layouts)]
    return [(handles + first, end - first) for first, end in zip(firsts, ends, strict=True)]


def _write(
    device: Device,
    wanted: Sequence[DescriptorList],
    firsts: Sequence[int],
    handles: Any,
    resources: Mapping[str, Resource],
) -> None:
    total = sum(len(each.descriptors) for each in wanted)
    writes = ffi.new("VkWriteDescriptorSet[]", total)
    keep = []
    index = 0
    for first, each in zip(firsts, wanted, strict=True):
        for descriptor in each.descriptors:
            write = writes[index]
            write.sType = vk.STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET
            write.dstSet = handles[first + descriptor.set]
            write.dstBinding = descriptor.binding
            write.descriptorCount = 1
            write.descriptorType = DESCRIPTOR_TYPES[descriptor.kind]
            keep.append(resources[descriptor.uid].write_descriptor(write, descriptor))
            index += 1
    if total:
        device.fn.vkUpdateDescriptorSets(device.handle, total, writes, 0, ffi.NULL)
