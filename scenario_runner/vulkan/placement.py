"""Resources of a plan in device memory: created kind by kind, then placed in shared blocks or memory groups."""

from collections import defaultdict
from collections.abc import Iterable
from contextlib import ExitStack
from typing import Any

from scenario_runner import errors
from scenario_runner.errors.diagnostic import error
from scenario_runner.plan.limits import misaligned
from scenario_runner.plan.plan import ResourcePlan
from scenario_runner.vulkan._generated import constants as vk
from scenario_runner.vulkan.device import Device
from scenario_runner.vulkan.memory import MemoryBlocks, align, choose_type
from scenario_runner.vulkan.resources import Resource, create_buffers

# Small resources share blocks of at most this size: drivers allow few allocations (often 4096).
_BLOCK_SIZE_BYTES = 64 << 20


def place(device: Device, memory: MemoryBlocks, stack: ExitStack, resources: Iterable[Resource]) -> None:
    """Get ``memory`` for ``resources`` and bind each to its part.

    A memory group is one allocation with each member at the offset that it asks for. Raises OutOfMemoryError,
    UnsupportedError or ScenarioError, with the place.
    """
    alone: dict[tuple[int, bool], list[Resource]] = defaultdict(list)
    groups: dict[str, list[Resource]] = defaultdict(list)
    for resource in resources:
        if resource.plan.group is None:
            alone[_memory_type(device, resource.needs.type_bits, resource), resource.needs.linear].append(resource)
        else:
            groups[resource.plan.group].append(resource)
    for (type_index, _), members in alone.items():  # apart, so that bufferImageGranularity does not matter
        for block in _blocks(members):
            last, offset = block[-1]
            uids = [repr(resource.plan.uid) for resource, _ in block[:3]] + ["…"] * (len(block) > 3)
            _bind(memory, stack, block, offset + last.needs.size_bytes, type_index, ", ".join(uids))
    for group, members in groups.items():
        _place_group(device, memory, stack, group, members)


def _blocks(resources: Iterable[Resource]) -> list[list[tuple[Resource, int]]]:
    """Pack resources into blocks, lists of (resource, offset): a larger one gets a block of its own."""
    blocks: list[list[tuple[Resource, int]]] = []
    end = _BLOCK_SIZE_BYTES
    for resource in resources:
        offset = align(end, resource.needs.alignment)
        if offset + resource.needs.size_bytes > _BLOCK_SIZE_BYTES:
            blocks.append([])
            offset = 0
        blocks[-1].append((resource, offset))
        end = offset + resource.needs.size_bytes
    return blocks


def _place_group(device: Device, memory: MemoryBlocks, stack: ExitStack, group: str, members: list[Resource]) -> None:
    type_bits = ~0
    for member in members:
        type_bits &= member.needs.type_bits
        if member.plan.offset_bytes % member.needs.alignment:
            raise errors.error_of([misaligned(member.plan, member.needs.alignment, device.physical.name)])
    size_bytes = max(member.plan.offset_bytes + member.needs.size_bytes for member in members)
    type_index = _memory_type(device, type_bits, members[0])
    block = [(member, member.plan.offset_bytes) for member in members]
    pointer = f"{members[0].plan.pointer}/memory_group"
    _bind(memory, stack, block, size_bytes, type_index, f"memory group {group!r}", pointer)


def _bind(
    memory: MemoryBlocks,
    stack: ExitStack,
    block: list[tuple[Resource, int]],
    size_bytes: int,
    type_index: int,
    purpose: str,
    pointer: str = "",
) -> None:
    """Bind resources to one allocation. Errors have ``pointer``, else that of the largest resource."""
    try:
        allocation = memory.take(stack, size_bytes, type_index, purpose)
    except errors.ScenarioRunnerError as failure:
        largest, _ = max(block, key=lambda member: member[0].plan.size_bytes)
        raise failure.at(pointer=pointer or largest.plan.pointer) from None
    for resource, offset in block:
        resource.bind(allocation, offset)


def _memory_type(device: Device, type_bits: int, resource: Resource) -> int:
    """Device-local memory, seen by the host as well where the device's memory is the host's."""
    preferred = vk.MEMORY_PROPERTY_DEVICE_LOCAL_BIT
    if device.unified_memory:
        preferred |= (
            vk.MEMORY_PROPERTY_HOST_VISIBLE_BIT
            | vk.MEMORY_PROPERTY_HOST_COHERENT_BIT
            | vk.MEMORY_PROPERTY_HOST_CACHED_BIT
        )
    index = choose_type(device, type_bits, 0, preferred)
    if index is None:
        message = f"{device.physical.name!r} has no memory type for {resource.plan.uid!r} and its memory group"
        raise errors.UnsupportedError(error("SR-MEMORY-008", resource.plan.pointer, message))
    return index


def create_resources(
    device: Device, memory: MemoryBlocks, stack: ExitStack, plans: Iterable[ResourcePlan]
) -> dict[str, Any]:
    """Create every resource of a plan and give it memory: a `Resource` for each uid.

    Raises OutOfMemoryError, UnsupportedError and others, with the place.
    """
    by_kind: dict[str, list[Any]] = {}
    resources: dict[str, Any] = {}
    for plan in plans:
        by_kind.setdefault(plan.kind, []).append(plan)
        resources[plan.uid] = None  # in the order of the plan
    created: dict[str, Any] = {}
    if "image" in by_kind:
        from scenario_runner.vulkan.images import check_groups, create_images

        created |= create_images(device, stack, by_kind["image"], created)
    if "tensor" in by_kind:  # after the images, whose memory it may share
        from scenario_runner.vulkan.tensors import create_tensors

        created |= create_tensors(device, stack, by_kind["tensor"], created)
    created |= create_buffers(device, stack, by_kind.get("buffer", ()), created)
    resources.update(created)
    if "image" in by_kind:
        check_groups(device, resources)
    place(device, memory, stack, resources.values())
    return resources
