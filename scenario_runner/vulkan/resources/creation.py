"""Create the resources of a plan, and place them in blocks of memory and in memory groups.

A device may pad the rows of a LINEAR image. A buffer or another image in the same memory would see the padding as
data, so that is an error unless the scenario accounts for it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from itertools import combinations
from typing import Any

from scenario_runner import errors
from scenario_runner.byte_data import overlap
from scenario_runner.diagnostics import Diagnostic, error
from scenario_runner.kinds import RESOURCES, load
from scenario_runner.plan.limits import misaligned
from scenario_runner.plan.plan import ResourcePlan, memory_groups
from scenario_runner.plan.records import Descriptor
from scenario_runner.vulkan.api._generated import constants as vk
from scenario_runner.vulkan.devices.device import Device
from scenario_runner.vulkan.resources.memory import Allocation, MemoryBlocks, Needs, align, choose_type


class Resource:
    """A resource of a scenario on the device.

    Its bytes are those of its file: ``plan.source.size_bytes`` on the way in and ``plan.size_bytes`` on the way out,
    tightly packed, whatever the layout on the device. Life cycle: created (the object exists, and says what it
    ``needs``), `bind`-ed to memory, prepared where it `needs_preparation`, filled, used, read back. All resources are
    prepared before the first is filled, because those that share memory may see each other's bytes.
    """

    plan: ResourcePlan
    handle: Any
    needs: Needs

    def __init__(self, device: Device, plan: ResourcePlan) -> None:
        self._device = device
        self.plan = plan
        self._allocation: Allocation | None = None
        self._offset_bytes = 0

    @property
    def needs_preparation(self) -> bool:
        """Return whether it may be filled and used only after `record_prepare` was carried out."""
        return False

    def bind(self, allocation: Allocation, offset_bytes: int) -> None:
        """Give the object its memory; its bytes begin at the offset."""
        self._allocation, self._offset_bytes = allocation, offset_bytes

    @property
    def mapped(self) -> bool:
        """Return whether `view` shows the resource's own bytes, so that nothing has to be copied through staging
        memory."""
        return self._allocation is not None and self._allocation.mapped is not None

    def view(self, offset_bytes: int, size_bytes: int) -> memoryview:
        """Bytes of the resource as the host sees them; only where ``mapped``."""
        assert self._allocation is not None, "bound before it is used"
        return self._allocation.view(self._offset_bytes + offset_bytes, size_bytes)

    def portion(self, offset_bytes: int, room_bytes: int) -> int:
        """The number of bytes from ``offset_bytes`` on to move at once, given room for ``room_bytes``; 0: too
        little."""
        return min(self.plan.size_bytes - offset_bytes, room_bytes)

    def record_prepare(self, commands: Any) -> None:
        """Record what must happen before the initial bytes are written, by the host or by the device."""

    def record_clear(self, commands: Any) -> None:
        """Record setting all bytes to zero."""
        raise NotImplementedError

    def record_upload(self, commands: Any, staging: Any, staging_offset: int, offset_bytes: int, size: int) -> None:
        """Record copying a portion from a staging buffer, with the layout changes that it needs."""
        raise NotImplementedError

    def record_download(self, commands: Any, staging: Any, staging_offset: int, offset_bytes: int, size: int) -> None:
        """Record copying a portion into a staging buffer."""
        raise NotImplementedError

    def write_descriptor(self, write: Any, descriptor: Descriptor) -> Any:
        """Point a VkWriteDescriptorSet at the resource; returns what must stay alive until the sets are updated."""
        raise NotImplementedError


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
    except errors.ScenarioRunnerError as failure:
        raise failure.at(pointer=pointer) from None


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


def check_aliases(device: Device, resources: Mapping[str, Resource]) -> None:
    """Check the memory groups that have more than buffers."""
    for group, members in memory_groups(resource.plan for resource in resources.values()).items():
        if any(plan.kind != "buffer" for plan in members):
            _check_group(device, group, [resources[plan.uid] for plan in members])


def _check_group(device: Device, group: str, members: Sequence[Any]) -> None:
    """Raise UnsupportedError where two members of a group overlap and disagree about rows, with the place, and
    ScenarioError where padding makes the initial contents of two overlap.

    A buffer as large as the padded image is taken to know about the padding. A tensor of the shape of the image has its
    strides; any other sees packed bytes, as images of other widths do.
    """
    problems: list[Diagnostic] = []
    for pair in combinations(members, 2):
        if _contents_collide(*pair):
            raise errors.ScenarioError(_collision(device, group, *pair))
        for image, other in (pair, pair[::-1]):
            if _is_image(image) and image.tiling == "LINEAR" and _overlap(image, other):
                message = _disagreement(image, other)
                if message is not None:
                    pointer = f"{image.plan.pointer}/memory_group"
                    message = f"memory group {group!r} on {device.physical.name!r}: {message}"
                    help = "choose a width whose rows need no padding, or let a shader copy the texels"
                    problems.append(error("SR-MEMORY-007", pointer, message, help))
                    break
    if problems:
        raise errors.error_of(problems)


def _is_image(resource: Resource) -> bool:
    return resource.plan.kind == "image"


def _disagreement(image: Any, other: Any) -> str | None:
    plan, part = image.plan, image.plan.parts[0]
    rows = f"rows of image {plan.uid!r} are {image.row_pitch_bytes} bytes apart"
    if _is_image(other):
        if _same_rows(image, other) or not (_is_padded(image) or _is_padded(other)):
            return None
        return f"{rows}, those of image {other.plan.uid!r} {other.row_pitch_bytes}"
    if getattr(other.plan, "image", None) == plan.uid or not _is_padded(image):
        return None  # a tensor has the strides of its image
    first_row_bytes = plan.offset_bytes + part.row_size_bytes
    if not image.start_bytes and other.plan.offset_bytes + other.plan.size_bytes <= first_row_bytes:
        return None  # what is before the first padding
    if other.plan.kind == "buffer" and other.plan.offset_bytes + other.plan.size_bytes >= image.end_bytes:
        return None
    return (
        f"{rows}, although their texels take {part.row_size_bytes}; {other.plan.kind} {other.plan.uid!r} of"
        f" {other.plan.size_bytes} bytes would see the padding as data"
    )


def _is_padded(image: Any) -> bool:
    return bool(image.has_padded_rows or image.start_bytes)


def _same_rows(one: Any, other: Any) -> bool:
    """Return whether rows of both begin at the same bytes, or one of them has a single row."""
    if 1 in (one.plan.parts[0].row_count, other.plan.parts[0].row_count):
        return True
    distance = one.plan.offset_bytes - other.plan.offset_bytes
    return bool(one.row_pitch_bytes == other.row_pitch_bytes and distance % one.row_pitch_bytes == 0)


def _contents_collide(one: Any, other: Any) -> bool:
    """Return whether the content of one goes over that of the other because this device pads the rows of the first.

    What overlaps without padding was looked at before there was a device.
    """
    first, second = sorted((one, other), key=lambda each: each.plan.offset_bytes)
    if first.plan.source is None or second.plan.source is None or not _is_image(first):
        return False
    end = first.plan.offset_bytes + first.plan.size_bytes
    return bool(end <= second.plan.offset_bytes < first.end_bytes)


def _collision(device: Device, group: str, one: Resource, other: Resource) -> Diagnostic:
    first: Any
    first, second = sorted((one, other), key=lambda each: each.plan.offset_bytes)
    return error(
        "SR-MEMORY-001",
        f"{second.plan.pointer}/memory_group",
        f"memory group {group!r} on {device.physical.name!r}: the initial content of {second.plan.uid!r} overlaps that"
        f" of image {first.plan.uid!r}, whose rows are {first.row_pitch_bytes} bytes apart so that it ends at byte"
        f" {first.end_bytes}",
        "give one of them initial content, or place it further back",
    )


def _overlap(one: Resource, other: Resource) -> bool:
    first, second = ((each.plan.offset_bytes, each.plan.offset_bytes + each.needs.size_bytes) for each in (one, other))
    return overlap(first, second)


def create_resources(
    device: Device,
    memory: MemoryBlocks,
    stack: ExitStack,
    plans: Iterable[ResourcePlan],
) -> dict[str, Any]:
    """Create every resource of a plan and give it memory: a `Resource` for each uid.

    The registry of kinds names what creates all resources of one kind, by uid, from the device, the stack that destroys
    them, their plans and the resources made before.

    Raises OutOfMemoryError, UnsupportedError and others, with the place.
    """
    plans = list(plans)
    by_kind: dict[str, list[ResourcePlan]] = {}
    for plan in plans:
        by_kind.setdefault(plan.kind, []).append(plan)
    made: dict[str, Any] = {}
    for kind in RESOURCES:  # images before the tensors that see them
        if kind in by_kind:
            made |= load(RESOURCES[kind].device)(device, stack, by_kind[kind], made)
    resources = {plan.uid: made[plan.uid] for plan in plans}
    if by_kind.keys() - {"buffer"}:
        check_aliases(device, resources)
    place(device, memory, stack, resources.values())
    return resources
