"""Buffers: created, placed in memory (shared where a memory group says so), and bound."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from scenario_runner import errors
from scenario_runner.plan.model import BufferPlan
from scenario_runner.vulkan.api import ffi
from scenario_runner.vulkan.memory import (
    DEVICE_LOCAL,
    HOST_CACHED,
    HOST_COHERENT,
    HOST_VISIBLE,
    Allocation,
    Placement,
    align,
    allocate,
    choose_type,
    place,
    readable_size,
)
from scenario_runner.vulkan.result import check
from scenario_runner.vulkan.structs import new

if TYPE_CHECKING:
    from scenario_runner.vulkan.device import Device

USAGE_TRANSFER_SRC = 0x1
USAGE_TRANSFER_DST = 0x2
USAGE_UNIFORM_BUFFER = 0x10
USAGE_STORAGE_BUFFER = 0x20
_USAGE = USAGE_TRANSFER_SRC | USAGE_TRANSFER_DST | USAGE_STORAGE_BUFFER | USAGE_UNIFORM_BUFFER

# vkCmdFillBuffer works on words, so a buffer is rounded up to one; descriptors still get the exact size.
WORD_SIZE_BYTES = 4


@dataclass(slots=True)
class Buffer:
    """A bound VkBuffer of ``size_bytes`` (as the scenario says; the Vulkan object may be up to 3 bytes larger)."""

    plan: BufferPlan
    handle: Any
    size_bytes: int
    allocation: Allocation
    offset_bytes: int

    @property
    def host_writable(self) -> bool:
        return self.allocation.mapped is not None

    def view(self, offset_bytes: int, size_bytes: int) -> memoryview:
        """Bytes of the buffer as the host sees them; only for mapped memory."""
        return self.allocation.view(self.offset_bytes + offset_bytes, size_bytes)


def create_raw(
    device: Device, stack: ExitStack, size_bytes: int, usage: int, purpose: str
) -> tuple[Any, int, int, int]:
    """Create a VkBuffer; returns (handle, required size, alignment, memory type bits). Raises OutOfMemoryError."""
    handle = ffi.new("VkBuffer*")
    info = new("VkBufferCreateInfo", size=size_bytes, usage=usage, sharingMode=0)
    check(device.fn.vkCreateBuffer(device.handle, info, ffi.NULL, handle), "vkCreateBuffer", purpose)
    buffer = handle[0]
    device.live["buffer"] += 1

    def release() -> None:
        device.fn.vkDestroyBuffer(device.handle, buffer, ffi.NULL)
        device.live["buffer"] -= 1

    stack.callback(release)
    needs = ffi.new("VkMemoryRequirements*")
    device.fn.vkGetBufferMemoryRequirements(device.handle, buffer, needs)
    return buffer, needs.size, needs.alignment, needs.memoryTypeBits


def create(device: Device, stack: ExitStack, plans: Iterable[BufferPlan]) -> dict[str, Buffer]:
    """Create every buffer of a scenario with its memory; raises OutOfMemoryError or ScenarioError, with the place."""
    plans = list(plans)
    handles: dict[str, Any] = {}
    needs: dict[str, tuple[int, int]] = {}
    type_bits: dict[str, int] = {}
    by_uid = {plan.uid: plan for plan in plans}
    for plan in plans:
        purpose = f"buffer {plan.uid!r}"
        try:
            handle, size, alignment, bits = create_raw(
                device,
                stack,
                align(plan.size_bytes, WORD_SIZE_BYTES),
                _USAGE,
                f"{purpose}, {readable_size(plan.size_bytes)}",
            )
        except errors.ScenarioRunnerError as error:
            raise error.at(path=None, pointer=plan.pointer) from None
        handles[plan.uid] = handle
        needs[plan.uid] = (size, alignment)
        type_bits[plan.uid] = bits

    placements: dict[str, Placement] = {}
    alone: dict[int, dict[str, tuple[int, int]]] = defaultdict(dict)
    groups: dict[str, list[BufferPlan]] = defaultdict(list)
    for plan in plans:
        if plan.group is None:
            alone[_memory_type(device, type_bits[plan.uid], plan)][plan.uid] = needs[plan.uid]
        else:
            groups[plan.group].append(plan)
    for type_index, members in alone.items():
        placements.update(_located(by_uid, place, device, stack, members, type_index, "buffer"))
    for group, grouped in groups.items():
        bits = ~0
        size = 0
        for plan in grouped:
            bits &= type_bits[plan.uid]
            required, alignment = needs[plan.uid]
            if plan.offset_bytes % alignment:
                raise errors.ScenarioError(
                    errors.Problem(
                        f"memory group {group!r} places buffer {plan.uid!r} at offset {plan.offset_bytes},"
                        f" which is no multiple of the alignment {alignment} that {device.physical.name!r} asks for",
                        pointer=f"{plan.pointer}/memory_group/offset",
                    )
                )
            size = max(size, plan.offset_bytes + required)
        type_index = _memory_type(device, bits, grouped[0])
        try:
            allocation = allocate(
                device, stack, size, type_index, f"memory group {group!r}", mapped=device.maps(type_index)
            )
        except errors.ScenarioRunnerError as error:
            raise error.at(pointer=f"{grouped[0].pointer}/memory_group") from None
        for plan in grouped:
            placements[plan.uid] = Placement(allocation, plan.offset_bytes)

    buffers = {}
    for plan in plans:
        placement = placements[plan.uid]
        check(
            device.fn.vkBindBufferMemory(
                device.handle, handles[plan.uid], placement.allocation.handle, placement.offset_bytes
            ),
            "vkBindBufferMemory",
            f"buffer {plan.uid!r}",
        )
        buffers[plan.uid] = Buffer(
            plan, handles[plan.uid], plan.size_bytes, placement.allocation, placement.offset_bytes
        )
    return buffers


def _located(by_uid: dict[str, BufferPlan], function: Any, *arguments: Any) -> dict[str, Placement]:
    """Call ``function`` and give an error of its the place of the largest buffer, the likeliest culprit."""
    try:
        placements: dict[str, Placement] = function(*arguments)
    except errors.OutOfMemoryError as error:
        largest = max(arguments[2], key=lambda uid: by_uid[uid].size_bytes)
        raise error.at(pointer=by_uid[largest].pointer) from None
    return placements


def _memory_type(device: Device, bits: int, plan: BufferPlan) -> int:
    """Device-local memory, seen by the host as well where the device's memory is the host's."""
    preferred = DEVICE_LOCAL
    if device.unified_memory:
        preferred |= HOST_VISIBLE | HOST_COHERENT | HOST_CACHED
    index = choose_type(device, bits, 0, preferred)
    if index is None:
        raise errors.UnsupportedError(
            errors.Problem(
                f"{device.physical.name!r} has no memory type that buffer {plan.uid!r} and its memory group can use",
                pointer=plan.pointer,
            )
        )
    return index
