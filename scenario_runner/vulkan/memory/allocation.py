"""Device memory: which type, and allocations that say what they were for when they fail."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from scenario_runner import errors
from scenario_runner.visible import size_in_units
from scenario_runner.vulkan.api.ffi import ffi
from scenario_runner.vulkan.api.result import check, error_class, result_name
from scenario_runner.vulkan.api.structs import new
from scenario_runner.vulkan.memory import host_memory

if TYPE_CHECKING:
    from scenario_runner.vulkan.devices.device import Device


# Scenarios that need less than this need not ask what the machine has.
_UNCHECKED_BYTES = 256 << 20

# NULL, and MAP_FAILED: Mesa's lavapipe returns VK_SUCCESS also where its mmap() fails.
_UNUSABLE_ADDRESSES = (0, (1 << 64) - 1)


class Allocation:
    """One VkDeviceMemory of ``size_bytes``; ``mapped`` is its whole range where the host sees it."""

    __slots__ = ("handle", "mapped", "size_bytes", "type_index")

    def __init__(self, handle: Any, size_bytes: int, type_index: int, mapped: Any = None) -> None:
        self.handle = handle
        self.size_bytes = size_bytes
        self.type_index = type_index
        self.mapped = mapped

    def view(self, offset_bytes: int, size_bytes: int) -> memoryview:
        """The mapped bytes [offset, offset + size); only for a mapped allocation."""
        return memoryview(ffi.buffer(self.mapped + offset_bytes, size_bytes))


def readable_size(size_bytes: int) -> str:
    """A size, with the bytes: '12 bytes', '256.0 MiB (268435456 bytes)'."""
    size = size_in_units(size_bytes)
    return size if size_bytes < 1 << 10 else f"{size} ({size_bytes} bytes)"


def choose_type(device: Device, type_bits: int, required: int, preferred: int = 0) -> int | None:
    """The index of the memory type in ``type_bits`` with all ``required`` and the most ``preferred`` property flags."""
    best: int | None = None
    best_score = -1
    for index, (flags, _heap) in enumerate(device.physical.memory_types):
        if type_bits >> index & 1 and flags & required == required:
            score = (flags & preferred).bit_count()
            if score > best_score:
                best, best_score = index, score
    return best


def allocate(
    device: Device,
    stack: ExitStack,
    size_bytes: int,
    type_index: int,
    purpose: str,
    *,
    mapped: bool,
    kind: str = "memory",
) -> Allocation:
    """Allocate, map where asked (the type must be host-visible and coherent), and register the release in ``stack``.

    Until then it counts as a ``kind`` among the device's live objects.
    Raises OutOfMemoryError, which says how much was asked, for what, and how much there is.
    """
    _, heap_index = device.physical.memory_types[type_index]
    heap_size = device.physical.memory_heaps[heap_index]
    limit = device.physical.max_memory_allocation_size_bytes
    if size_bytes > heap_size or size_bytes > limit:
        most = min(heap_size, limit)
        what = "memory heap" if heap_size <= limit else "maxMemoryAllocationSize"
        raise errors.OutOfMemoryError(
            f"{purpose} needs {readable_size(size_bytes)} of memory at once;"
            f" the {what} of {device.physical.name!r} is {readable_size(most)}"
        )
    if device.physical.type == "cpu":
        _check_host_memory(device, size_bytes, purpose)
    memory = ffi.new("VkDeviceMemory*")
    info = new("VkMemoryAllocateInfo", allocationSize=size_bytes, memoryTypeIndex=type_index)
    code = device.fn.vkAllocateMemory(device.handle, info, ffi.NULL, memory)
    if code < 0:
        raise error_class(code)(
            f"vkAllocateMemory failed with {result_name(code)}: {purpose} asked for {readable_size(size_bytes)}"
            f" from a heap of {readable_size(heap_size)} on {device.physical.name!r}"
        )
    handle = memory[0]
    device.own(stack, kind, device.fn.vkFreeMemory, handle)
    device.memory_bytes += size_bytes
    stack.callback(_uncount, device, size_bytes)
    allocation = Allocation(handle, size_bytes, type_index)
    if mapped:
        pointer = ffi.new("void**")
        asked = f"{purpose} asked for {readable_size(size_bytes)}"
        check(device.fn.vkMapMemory(device.handle, handle, 0, size_bytes, 0, pointer), "vkMapMemory", asked)
        if (address := int(ffi.cast("uintptr_t", pointer[0]))) in _UNUSABLE_ADDRESSES:
            raise errors.OutOfMemoryError(
                f"vkMapMemory returned VK_SUCCESS and the unusable address {address:#x}: {asked}",
                help="the driver could not map the memory; a limit of the address space (ulimit -v)"
                " or too little free memory is the usual cause",
            )
        allocation.mapped = ffi.cast("char*", pointer[0])
    return allocation


def _uncount(device: Device, size_bytes: int) -> None:
    device.memory_bytes -= size_bytes


def _check_host_memory(device: Device, size_bytes: int, purpose: str) -> None:
    """Refuse what this machine does not have; what was allocated before is mostly not in use yet, so it counts too."""
    wanted = device.memory_bytes + size_bytes
    if wanted < _UNCHECKED_BYTES:
        return
    available = host_memory.available_bytes()
    if available is not None and wanted > available:
        raise errors.OutOfMemoryError(
            f"{purpose} asks for {readable_size(size_bytes)}, which makes {readable_size(wanted)} in all;"
            f" this machine has {readable_size(available)} of memory left"
        )


def align(value: int, alignment: int) -> int:
    """The smallest multiple of ``alignment`` that is not below ``value``."""
    return -(-value // alignment) * alignment
