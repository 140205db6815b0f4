"""Resources that need memory, and placing those of a run in blocks and memory groups."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from scenario_runner import errors
from scenario_runner.diagnostics import Diagnostic
from scenario_runner.plan.limits import misaligned
from scenario_runner.vulkan.api._generated import constants as vk
from scenario_runner.vulkan.resources.memory import Allocation, MemoryBlocks, align, choose_type

if TYPE_CHECKING:
    from scenario_runner.plan.model.plan import ResourcePlan
    from scenario_runner.plan.model.records import Descriptor
    from scenario_runner.vulkan.devices.device import Device


class Needs(NamedTuple):
    """What a Vulkan object asks of its memory (VkMemoryRequirements).

    Memory that is not ``linear`` (that of OPTIMAL images) must keep a distance from memory that is.
    """

    size_bytes: int
    alignment: int
    type_bits: int
    linear: bool = True

    def also(self, other: Needs) -> Needs:
        """What this object and another one over the same bytes ask for together."""
        return Needs(
            max(self.size_bytes, other.size_bytes),
            max(self.alignment, other.alignment),  # powers of two
            self.type_bits & other.type_bits,
            self.linear,
        )


class Resource(Protocol):
    """A resource of a scenario on the device.

    Its bytes are those of its file: ``plan.source.size_bytes`` on the way in and ``plan.size_bytes`` on the way out,
    tightly packed, whatever the layout on the device. Life cycle: created (the object exists, and says what it
    `needs`), `bind`-ed to memory, prepared where it ``needs_preparation``, filled, used, read back. All resources are
    prepared before the first is filled, because those that share memory may see each other's bytes.
    """

    @property
    def needs_preparation(self) -> bool:
        """Whether it may be filled and used only after `record_prepare` was carried out."""

    @property
    def plan(self) -> ResourcePlan: ...

    @property
    def needs(self) -> Needs: ...

    def bind(self, allocation: Allocation, offset_bytes: int) -> None:
        """Give the object its memory."""

    @property
    def mapped(self) -> bool:
        """Whether `view` shows the resource's own bytes, so that nothing has to be copied through staging memory."""

    def view(self, offset_bytes: int, size_bytes: int) -> memoryview:
        """Bytes of the resource as the host sees them; only where ``mapped``."""

    def portion(self, offset_bytes: int, room_bytes: int) -> int:
        """How many bytes from ``offset_bytes`` on to move at once, given room for ``room_bytes``; 0: too little."""

    def record_prepare(self, commands: Any) -> None:
        """Record what must happen before the initial bytes are written, by the host or by the device."""

    def record_clear(self, commands: Any) -> None:
        """Record setting all bytes to zero."""

    def record_upload(self, commands: Any, staging: Any, staging_offset: int, offset_bytes: int, size: int) -> None:
        """Record copying a portion from a staging buffer, with the layout changes that it needs."""

    def record_download(self, commands: Any, staging: Any, staging_offset: int, offset_bytes: int, size: int) -> None:
        """Record copying a portion into a staging buffer."""

    def write_descriptor(self, write: Any, descriptor: Descriptor) -> Any:
        """Point a VkWriteDescriptorSet at the resource; returns what must stay alive until the sets are updated."""


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
            _place_block(memory, stack, block, type_index)
    for group, members in groups.items():
        _place_group(device, memory, stack, group, members)


def _blocks(resources: Iterable[Resource]) -> list[list[tuple[Resource, int]]]:
    """Pack resources into blocks: lists of (resource, offset).

    A resource of half a block or more gets one of its own, so that a large scenario is not limited by the largest
    single allocation.
    """
    blocks: list[list[tuple[Resource, int]]] = []
    current: list[tuple[Resource, int]] = []
    end = 0
    for resource in resources:
        size, alignment, *_ = resource.needs
        if size >= _BLOCK_SIZE_BYTES // 2:
            blocks.append([(resource, 0)])
            continue
        offset = align(end, alignment)
        if current and offset + size > _BLOCK_SIZE_BYTES:
            blocks.append(current)
            current, offset = [], 0
        current.append((resource, offset))
        end = offset + size
    return [*blocks, current] if current else blocks


def _place_block(memory: MemoryBlocks, stack: ExitStack, block: list[tuple[Resource, int]], type_index: int) -> None:
    last, offset = block[-1]
    largest = max((resource for resource, _ in block), key=lambda resource: resource.plan.size_bytes)
    names = ", ".join(repr(resource.plan.uid) for resource, _ in block[:3]) + (", …" if len(block) > 3 else "")
    allocation = _allocated(memory, stack, offset + last.needs.size_bytes, type_index, names, largest.plan.pointer)
    for resource, offset in block:
        resource.bind(allocation, offset)


def _place_group(device: Device, memory: MemoryBlocks, stack: ExitStack, group: str, members: list[Resource]) -> None:
    type_bits = ~0
    size = 0
    for member in members:
        plan, needs = member.plan, member.needs
        type_bits &= needs.type_bits
        if plan.offset_bytes % needs.alignment:
            raise errors.error_of([misaligned(plan, needs.alignment, device.physical.name)])
        size = max(size, plan.offset_bytes + needs.size_bytes)
    type_index = _memory_type(device, type_bits, members[0])
    pointer = f"{members[0].plan.pointer}/memory_group"
    allocation = _allocated(memory, stack, size, type_index, f"memory group {group!r}", pointer)
    for member in members:
        member.bind(allocation, member.plan.offset_bytes)


def _allocated(
    memory: MemoryBlocks, stack: ExitStack, size_bytes: int, type_index: int, purpose: str, pointer: str
) -> Allocation:
    try:
        return memory.take(stack, size_bytes, type_index, purpose)
    except errors.ScenarioRunnerError as error:
        raise error.at(pointer=pointer) from None


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
        raise errors.UnsupportedError(
            Diagnostic(
                "SR-MEMORY-008",
                "error",
                resource.plan.pointer,
                f"{device.physical.name!r} has no memory type for {resource.plan.uid!r} and its memory group",
            )
        )
    return index
