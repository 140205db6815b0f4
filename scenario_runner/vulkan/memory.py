"""Device memory: choosing a type, allocating, and keeping small blocks between runs.

A GPU driver takes a system-wide lock for every allocation. The lock costs a small scenario more than its work, and
scenarios on several GPUs wait for each other. Small blocks therefore stay allocated and mapped. On a software device,
the host's free memory limits allocations.
"""

from __future__ import annotations

import os
from contextlib import ExitStack
from functools import cache
from typing import Final, NamedTuple

from scenario_runner import errors
from scenario_runner.errors.text import size_in_units
from scenario_runner.processes.system_limits import control_groups
from scenario_runner.vulkan import Handle, ffi
from scenario_runner.vulkan._generated import constants as vk
from scenario_runner.vulkan.device import Device
from scenario_runner.vulkan.vulkan_api import check, error_class, new, result_name

_MEMINFO = "/proc/meminfo"
_MADV_POPULATE_WRITE = 23  # Linux 5.14
_PAGE_SIZE_BYTES = 4096
_SMALLEST_BYTES = 1 << 20
_NO_LIMIT_BYTES = 1 << 60  # the first version of control groups has this number for no limit


def available_bytes() -> int | None:
    """Return the memory that programs can still get, within limits of containers and cluster jobs; None if unknown.

    A software device hands out more than exists, and the process dies while using it.
    """
    amounts = [amount for amount in (_of_machine(), *map(left_in, _groups())) if amount is not None]
    return min(amounts, default=None)


def _of_machine() -> int | None:
    try:
        with open(_MEMINFO, encoding="ascii") as file:
            for line in file:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    return None


@cache
def _groups() -> tuple[str, ...]:
    return tuple(folder for folder in control_groups("memory") if left_in(folder) is not None)


def left_in(group: str) -> int | None:
    """Return the bytes that the control group with this folder has left; None without a limit."""
    is_first = os.path.exists(f"{group}/memory.limit_in_bytes")
    names = ("limit_in_bytes", "usage_in_bytes") if is_first else ("max", "current")
    try:
        limit, used = (int(_text(f"{group}/memory.{name}")) for name in names)
        amounts = dict(line.split() for line in _text(f"{group}/memory.stat").splitlines())
    except (OSError, ValueError):  # "max": no limit
        return None
    if limit >= _NO_LIMIT_BYTES:
        return None
    prefix = "total_" if is_first else ""
    files = sum(int(amounts.get(f"{prefix}{state}_file", 0)) for state in ("active", "inactive"))
    return max(0, limit - used + files)  # the system drops cached files if programs need memory


def _text(path: str) -> str:
    with open(path, encoding="ascii") as file:
        return file.read()


def populate(view: memoryview) -> None:
    """Let the system provide the pages of ``view`` now: a single call is cheaper than a fault for each page.

    The pages' content stays. Nothing happens for little memory, and on systems without this call.
    """
    if view.nbytes < _SMALLEST_BYTES:
        return
    import ctypes

    start = ctypes.addressof(ctypes.c_char.from_buffer(view))
    first = -(-start // _PAGE_SIZE_BYTES) * _PAGE_SIZE_BYTES
    end = (start + view.nbytes) // _PAGE_SIZE_BYTES * _PAGE_SIZE_BYTES
    madvise = getattr(ctypes.CDLL(None), "madvise", None)
    if madvise is not None:
        madvise(ctypes.c_void_p(first), ctypes.c_size_t(end - first), _MADV_POPULATE_WRITE)


# Smaller scenarios do not ask how much memory the machine has.
_UNCHECKED_BYTES = 256 << 20

# NULL and MAP_FAILED: Mesa's lavapipe returns VK_SUCCESS even if mmap() fails.
_UNUSABLE_ADDRESSES = (0, (1 << 64) - 1)


class Allocation(NamedTuple):
    """A VkDeviceMemory of ``size_bytes``. ``mapped`` is the whole range if the host sees the memory, else None."""

    handle: Handle
    size_bytes: int
    type_index: int
    mapped: Handle

    def view(self, offset_bytes: int, size_bytes: int) -> memoryview:
        """Return the mapped bytes [offset, offset + size) of a mapped allocation."""
        return memoryview(ffi.buffer(self.mapped + offset_bytes, size_bytes))


class Needs(NamedTuple):
    """Memory requirements of a Vulkan object (VkMemoryRequirements).

    Memory of OPTIMAL images is not ``linear``. It must keep a distance from linear memory.
    """

    size_bytes: int
    alignment: int
    type_bits: int
    linear: bool = True

    def also(self, other: Needs) -> Needs:
        """Combine these requirements with the requirements of another object over the same bytes."""
        return Needs(
            max(self.size_bytes, other.size_bytes),
            max(self.alignment, other.alignment),  # powers of two
            self.type_bits & other.type_bits,
            self.linear,
        )


def readable_size(size_bytes: int) -> str:
    """Return a size with the bytes: '12 bytes', '256.0 MiB (268435456 bytes)'."""
    size = size_in_units(size_bytes)
    return size if size_bytes < 1 << 10 else f"{size} ({size_bytes} bytes)"


def choose_type(device: Device, type_bits: int, required: int, preferred: int = 0) -> int | None:
    """Choose the memory type in ``type_bits`` with all ``required`` and the most ``preferred`` property flags."""
    scores = {
        index: (flags & preferred).bit_count()
        for index, (flags, _heap) in enumerate(device.physical.memory_types)
        if type_bits >> index & 1 and flags & required == required
    }
    return max(scores, key=scores.__getitem__, default=None)


def allocate_local(device: Device, stack: ExitStack, needs: Needs, purpose: str) -> Allocation:
    """Allocate memory for an object, on the device if the device has separate memory. Raises OutOfMemoryError."""
    type_index = choose_type(device, needs.type_bits, 0, vk.MEMORY_PROPERTY_DEVICE_LOCAL_BIT)
    assert type_index is not None, "every object has a memory type"
    return allocate(device, stack, needs.size_bytes, type_index, purpose, mapped=False)


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
    """Allocate memory, map it if asked (the type must be host-visible and coherent), and let ``stack`` free it.

    Until then, it counts as a ``kind`` among the device's live objects. Raises OutOfMemoryError, which says how much
    was requested, for what, and how much exists.
    """
    name, request = repr(device.physical.name), f"{purpose} asked for {readable_size(size_bytes)}"
    _, heap_index = device.physical.memory_types[type_index]
    heap_size = device.physical.memory_heaps[heap_index]
    limit = int(device.physical.vulkan11_properties.maxMemoryAllocationSize)
    if size_bytes > heap_size or size_bytes > limit:
        what = "memory heap" if heap_size <= limit else "maxMemoryAllocationSize"
        most = f"the {what} of {name} is {readable_size(min(heap_size, limit))}"
        raise errors.OutOfMemoryError(f"{purpose} needs {readable_size(size_bytes)} of memory at once; {most}")
    if device.physical.type == "cpu":
        _check_host_memory(device, size_bytes, purpose)
    memory = ffi.new("VkDeviceMemory*")
    info = new("VkMemoryAllocateInfo", allocationSize=size_bytes, memoryTypeIndex=type_index)
    code = device.fn.vkAllocateMemory(device.handle, info, ffi.NULL, memory)
    if code < 0:
        message = f"vkAllocateMemory failed with {result_name(code)}: {request}"
        raise error_class(code)(f"{message} from a heap of {readable_size(heap_size)} on {name}")
    handle = memory[0]
    device.own(stack, kind, device.fn.vkFreeMemory, handle, size_bytes)
    mapping = None
    if mapped:
        pointer = ffi.new("void**")
        check(device.fn.vkMapMemory(device.handle, handle, 0, size_bytes, 0, pointer), "vkMapMemory", request)
        if (address := int(ffi.cast("uintptr_t", pointer[0]))) in _UNUSABLE_ADDRESSES:
            raise errors.OutOfMemoryError(
                f"vkMapMemory returned VK_SUCCESS and the unusable address {address:#x}: {request}",
                help="end other programs to free memory, or raise the limit of the address space (ulimit -v)",
            )
        mapping = ffi.cast("char*", pointer[0])
    return Allocation(handle, size_bytes, type_index, mapping)


def _check_host_memory(device: Device, size_bytes: int, purpose: str) -> None:
    """Refuse more memory than this machine has. Earlier allocations are mostly still unused, so they count too."""
    total_bytes = device.memory_bytes + size_bytes
    if total_bytes < _UNCHECKED_BYTES:
        return
    available = available_bytes()
    if available is not None and total_bytes > available:
        raise errors.OutOfMemoryError(
            f"{purpose} asks for {readable_size(size_bytes)}, which makes {readable_size(total_bytes)} in all;"
            f" this machine has {readable_size(available)} of memory left"
        )


def align(value: int, alignment: int) -> int:
    """Return the smallest multiple of ``alignment`` that is at least ``value``."""
    return -(-value // alignment) * alignment


# Larger blocks are freed after their run.
_LARGEST_BYTES: Final = 4 << 20
# Limits of the blocks kept for the next run: drivers allow few allocations (often 4096).
_KEPT_BYTES: Final = 16 << 20
_KEPT: Final = 64
# A request must need at least this part of a block; small blocks serve any request that fits.
_FITTING: Final = 4
_SMALL_BYTES: Final = 64 << 10


class MemoryBlocks:
    """The memory blocks of a device. Old content stays in a block, because resources are filled before use.

    Life cycle: created with the device; `take` for each run; `close` between runs.
    """

    def __init__(self, device: Device) -> None:
        self._device = device
        self._free: list[tuple[Allocation, ExitStack]] = []  # in the order of their return

    def take(self, stack: ExitStack, size_bytes: int, type_index: int, purpose: str) -> Allocation:
        """Return at least ``size_bytes`` until ``stack`` closes, mapped if the host uses this memory type in place.

        Raises the errors of `allocate`.
        """
        device, mapped = self._device, self._device.mapped_types[type_index]
        if size_bytes > _LARGEST_BYTES:
            return allocate(device, stack, size_bytes, type_index, purpose, mapped=mapped)
        most_bytes = max(_FITTING * size_bytes, _SMALL_BYTES)
        fitting = [
            (kept.size_bytes, index)
            for index, (kept, _) in enumerate(self._free)
            if kept.type_index == type_index and size_bytes <= kept.size_bytes <= most_bytes
        ]
        if fitting:
            allocation, owner = self._free.pop(min(fitting)[1])
        else:
            with ExitStack() as new_owner:
                kind = "memory block"
                allocation = allocate(device, new_owner, size_bytes, type_index, purpose, mapped=mapped, kind=kind)
                owner = new_owner.pop_all()
        stack.callback(self._give_back, allocation, owner)
        return allocation

    def _give_back(self, allocation: Allocation, owner: ExitStack) -> None:
        self._free.append((allocation, owner))
        while len(self._free) > _KEPT or sum(kept.size_bytes for kept, _ in self._free) > _KEPT_BYTES:
            self._free.pop(0)[1].close()

    def close(self) -> None:
        """Free all unused blocks. A second call does nothing."""
        while self._free:
            self._free.pop()[1].close()
