"""Resources of a plan on the device: buffers, set layouts, and memory in shared blocks and memory groups."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from math import prod
from typing import NamedTuple

from scenario_runner import errors
from scenario_runner.errors.diagnostic import error
from scenario_runner.files.vk_formats import Format, format_of_value
from scenario_runner.plan.limits import misaligned
from scenario_runner.plan.plan import ResourcePlan
from scenario_runner.plan.records import BufferPlan, Descriptor, LayoutBinding
from scenario_runner.vulkan import Handle, ffi
from scenario_runner.vulkan._generated import constants as vk
from scenario_runner.vulkan.device import Device
from scenario_runner.vulkan.memory import Allocation, MemoryBlocks, Needs, align, choose_type, readable_size
from scenario_runner.vulkan.vulkan_api import Member, chain, check, new

DESCRIPTOR_TYPES = {
    "sampler": vk.DESCRIPTOR_TYPE_SAMPLER,
    "combined_image_sampler": vk.DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER,
    "sampled_image": vk.DESCRIPTOR_TYPE_SAMPLED_IMAGE,
    "storage_image": vk.DESCRIPTOR_TYPE_STORAGE_IMAGE,
    "uniform_buffer": vk.DESCRIPTOR_TYPE_UNIFORM_BUFFER,
    "storage_buffer": vk.DESCRIPTOR_TYPE_STORAGE_BUFFER,
    "uniform_texel_buffer": vk.DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER,
    "storage_texel_buffer": vk.DESCRIPTOR_TYPE_STORAGE_TEXEL_BUFFER,
    "tensor": vk.DESCRIPTOR_TYPE_TENSOR_ARM,
}
_SHADER_STAGES = {
    "compute": vk.SHADER_STAGE_COMPUTE_BIT,
    "vertex": vk.SHADER_STAGE_VERTEX_BIT,
    "fragment": vk.SHADER_STAGE_FRAGMENT_BIT,
}


def create_set_layout(device: Device, stack: ExitStack, bindings: Sequence[LayoutBinding]) -> Handle:
    """Create a VkDescriptorSetLayout, destroyed with ``stack``; without bindings for an unused set number."""
    members: list[Member] = [
        {
            "binding": binding.binding,
            "descriptorType": DESCRIPTOR_TYPES[binding.kind],
            "descriptorCount": binding.descriptor_count,
            # graphs are no shader stage: all stages see their bindings
            "stageFlags": vk.SHADER_STAGE_ALL
            if binding.kind == "tensor"
            else sum(_SHADER_STAGES[stage] for stage in binding.stages),
        }
        for binding in bindings
    ]
    info = new("VkDescriptorSetLayoutCreateInfo", pBindings=members)
    if any(binding.partial for binding in bindings):
        flags = [vk.DESCRIPTOR_BINDING_PARTIALLY_BOUND_BIT if binding.partial else 0 for binding in bindings]
        chain(info, new("VkDescriptorSetLayoutBindingFlagsCreateInfo", pBindingFlags=flags))
    return device.create(stack, "set layout", "DescriptorSetLayout", info)


class Piece(NamedTuple):
    """``size_bytes`` bytes of a resource from ``offset_bytes`` on, and their offset in the staging buffer."""

    resource: Resource
    offset_bytes: int
    size_bytes: int
    staging_offset: int


class Resource(ABC):
    """A resource of a scenario on the device.

    The resource's bytes are the file's bytes, tightly packed, whatever the layout on the device:
    ``plan.source.size_bytes`` on the way in, ``plan.size_bytes`` on the way out. Life cycle: created (the object
    exists, and has ``needs``), `bind`-ed to memory, prepared if it `needs_preparation`, filled, used, read back. All
    resources are prepared before the first is filled, because resources that share memory may see each other's bytes.
    """

    plan: ResourcePlan
    handle: Handle
    needs: Needs
    needs_preparation = False
    """True if the commands of `record_prepare` must run before the resource is filled and used."""
    mapped = False
    """True if `view` shows the resource's own bytes, so that no staging memory is needed."""

    def __init__(self, device: Device, plan: ResourcePlan) -> None:
        self._device = device
        self.plan = plan
        self._allocation: Allocation | None = None
        self._offset_bytes = 0

    def bind(self, allocation: Allocation, offset_bytes: int) -> None:
        """Bind the object to memory. The object's bytes begin at the offset."""
        self._allocation, self._offset_bytes = allocation, offset_bytes
        self.mapped = allocation.mapped is not None

    def view(self, offset_bytes: int, size_bytes: int) -> memoryview:
        """Return bytes of a ``mapped`` resource as the host sees them."""
        assert self._allocation is not None, "bound before it is used"
        return memoryview(ffi.buffer(self._allocation.mapped + self._offset_bytes + offset_bytes, size_bytes))

    def portion(self, offset_bytes: int, room_bytes: int) -> int:
        """Return how many bytes from ``offset_bytes`` on fit into ``room_bytes`` together; 0 if there is too little
        room."""
        return min(self.plan.size_bytes - offset_bytes, room_bytes)

    def record_prepare(self, commands: Handle) -> None:  # noqa: B027 - most kinds need nothing
        """Record the commands that come before the initial bytes are written, by host or device."""

    @abstractmethod
    def record_clear(self, commands: Handle) -> None:
        """Record setting all bytes to zero."""

    @abstractmethod
    def record_upload(self, commands: Handle, staging: Handle, piece: Piece) -> None:
        """Record copying a piece from a staging buffer, with layout changes."""

    @abstractmethod
    def record_download(self, commands: Handle, staging: Handle, piece: Piece) -> None:
        """Record copying a piece into a staging buffer."""

    @abstractmethod
    def write_descriptor(self, write: Handle, descriptor: Descriptor) -> Handle:
        """Point a VkWriteDescriptorSet at the resource. Return the object that must live until the sets are updated."""


_USAGE = (
    vk.BUFFER_USAGE_TRANSFER_SRC_BIT
    | vk.BUFFER_USAGE_TRANSFER_DST_BIT
    | vk.BUFFER_USAGE_STORAGE_BUFFER_BIT
    | vk.BUFFER_USAGE_UNIFORM_BUFFER_BIT
)

_FURTHER_USAGE = {
    "vertex": vk.BUFFER_USAGE_VERTEX_BUFFER_BIT,
    "index": vk.BUFFER_USAGE_INDEX_BUFFER_BIT,
    "storage_texel_buffer": vk.BUFFER_USAGE_STORAGE_TEXEL_BUFFER_BIT,
    "uniform_texel_buffer": vk.BUFFER_USAGE_UNIFORM_TEXEL_BUFFER_BIT,
}
_TEXEL_FEATURES = {
    "storage_texel_buffer": vk.FORMAT_FEATURE_STORAGE_TEXEL_BUFFER_BIT,
    "uniform_texel_buffer": vk.FORMAT_FEATURE_UNIFORM_TEXEL_BUFFER_BIT,
}

# vkCmdFillBuffer fills words, so the size of a buffer is rounded up; descriptors keep the exact size.
WORD_SIZE_BYTES = 4


class Buffer(Resource):
    """A VkBuffer, up to 3 bytes larger than the scenario says."""

    plan: BufferPlan

    def __init__(self, device: Device, stack: ExitStack, plan: BufferPlan) -> None:
        """Raises OutOfMemoryError."""
        super().__init__(device, plan)
        self._stack = stack
        self._texel_views: dict[tuple[Format, int, int], Handle] = {}
        size = align(plan.size_bytes, WORD_SIZE_BYTES)
        usage = _USAGE | sum(_FURTHER_USAGE[name] for name in plan.usage)
        purpose = f"buffer {plan.uid!r}, {readable_size(plan.size_bytes)}"
        self.handle, self.needs = create_buffer(device, stack, size, usage, purpose)

    def bind(self, allocation: Allocation, offset_bytes: int) -> None:
        super().bind(allocation, offset_bytes)
        bind_buffer(self._device, self.handle, allocation, offset_bytes, f"buffer {self.plan.uid!r}")

    def record_clear(self, commands: Handle) -> None:
        size = align(self.plan.size_bytes, WORD_SIZE_BYTES)
        self._device.fn.vkCmdFillBuffer(commands, self.handle, 0, size, 0)

    def record_upload(self, commands: Handle, staging: Handle, piece: Piece) -> None:
        region = copy_region(piece.staging_offset, piece.offset_bytes, piece.size_bytes)
        self._device.fn.vkCmdCopyBuffer(commands, staging, self.handle, 1, region)

    def record_download(self, commands: Handle, staging: Handle, piece: Piece) -> None:
        region = copy_region(piece.offset_bytes, piece.staging_offset, piece.size_bytes)
        self._device.fn.vkCmdCopyBuffer(commands, self.handle, staging, 1, region)

    def write_descriptor(self, write: Handle, descriptor: Descriptor) -> Handle:
        if descriptor.format is not None:
            write.pTexelBufferView = view = ffi.new("VkBufferView*", self._texel_view(descriptor, descriptor.format))
            return view
        info = ffi.new("VkDescriptorBufferInfo*")
        info.buffer = self.handle
        info.offset = descriptor.offset_bytes
        info.range = descriptor.bound_bytes(self.plan)
        write.pBufferInfo = info
        return info

    def _texel_view(self, descriptor: Descriptor, format: Format) -> Handle:
        """Return the VkBufferView for a descriptor. Raises UnsupportedError for a format that the device lacks."""
        physical, size_bytes = self._device.physical, descriptor.bound_bytes(self.plan)
        # each view must suit all uses of the buffer
        needed = {kind.upper(): bit for kind, bit in _TEXEL_FEATURES.items() if kind in self.plan.usage}
        if descriptor.atomic_texels:
            needed["STORAGE_TEXEL_BUFFER_ATOMIC"] = vk.FORMAT_FEATURE_STORAGE_TEXEL_BUFFER_ATOMIC_BIT
        features = physical.format_properties(format.value).bufferFeatures
        lacking = [f"VK_FORMAT_FEATURE_{name}_BIT" for name, bit in needed.items() if not features & bit]
        if lacking:
            what = f"buffer {self.plan.uid!r} cannot have texels of {format.name} on {physical.name!r}"
            message = f"{what}: the format lacks {', '.join(lacking)}"
            raise errors.UnsupportedError(error("SR-FEATURE-003", self.plan.pointer, message))
        key = format, descriptor.offset_bytes, size_bytes
        if key not in self._texel_views:
            place = {"buffer": self.handle, "offset": descriptor.offset_bytes, "range": size_bytes}
            info = new("VkBufferViewCreateInfo", format=format.value, **place)
            self._texel_views[key] = self._device.create(self._stack, "buffer view", "BufferView", info)
        return self._texel_views[key]


def check_vertex_formats(device: Device, formats: Iterable[int]) -> None:
    """Raise UnsupportedError for a VkFormat that no vertex buffer can have on the device."""
    for format in formats:
        if not device.physical.format_properties(format).bufferFeatures & vk.FORMAT_FEATURE_VERTEX_BUFFER_BIT:
            what = f"vertex attributes of {format_of_value(format).name} are not possible on {device.physical.name!r}"
            message = f"{what}: it lacks VK_FORMAT_FEATURE_VERTEX_BUFFER_BIT"
            raise errors.UnsupportedError(message, code="SR-FEATURE-003")


def create_buffer(
    device: Device, stack: ExitStack, size_bytes: int, usage: int, purpose: str, kind: str = "buffer"
) -> tuple[Handle, Needs]:
    """Create a VkBuffer, destroyed with ``stack`` and counted as a ``kind`` until then. Raises OutOfMemoryError."""
    info = new("VkBufferCreateInfo", size=size_bytes, usage=usage, sharingMode=0)
    buffer = device.create(stack, kind, "Buffer", info, purpose)
    needs = ffi.new("VkMemoryRequirements*")
    device.fn.vkGetBufferMemoryRequirements(device.handle, buffer, needs)
    return buffer, Needs(needs.size, needs.alignment, needs.memoryTypeBits)


def bind_buffer(device: Device, handle: Handle, allocation: Allocation, offset_bytes: int, purpose: str) -> None:
    """Bind a VkBuffer to memory."""
    code = device.fn.vkBindBufferMemory(device.handle, handle, allocation.handle, offset_bytes)
    check(code, "vkBindBufferMemory", purpose)


def copy_region(source_offset: int, destination_offset: int, size: int) -> Handle:
    """Return a VkBufferCopy."""
    region = ffi.new("VkBufferCopy*")
    region.srcOffset, region.dstOffset, region.size = source_offset, destination_offset, size
    return region


class Rows:
    """Runs of adjacent elements: a single run if elements are packed, else a run for each index of the outer
    dimensions.

    ``end_bytes`` is the end of the last element in memory.
    """

    def __init__(
        self, dims: tuple[int, ...], strides: tuple[int, ...] | None, size_bytes: int, start_bytes: int = 0
    ) -> None:
        """Take the shape, the strides (None if packed), the packed elements' size, and the first element's offset."""
        self._size_bytes = size_bytes
        self._start_bytes = start_bytes
        self._counts: tuple[int, ...] = ()
        self._strides: tuple[int, ...] = ()
        self._run_bytes = size_bytes
        if strides is not None:
            run = element = size_bytes // prod(dims)
            outer = len(dims)
            while outer and (strides[outer - 1] == run or dims[outer - 1] == 1):
                outer -= 1
                run *= dims[outer]
            self._run_bytes = max(run, element)
            self._counts, self._strides = dims[:outer], strides[:outer]
        last = sum((count - 1) * stride for count, stride in zip(self._counts, self._strides, strict=True))
        self.end_bytes = start_bytes + last + self._run_bytes

    def portion(self, offset_bytes: int, room_bytes: int) -> int:
        """Return how many packed bytes from ``offset_bytes`` on to move together: whole runs if there are several."""
        room = min(self._size_bytes - offset_bytes, room_bytes)
        return room - room % self._run_bytes if self._counts else room

    def regions(self, piece: Piece, *, into_staging: bool) -> Handle:
        """Return the VkBufferCopy[] between packed bytes in a staging buffer and their places."""
        if not self._counts:
            places = [self._start_bytes + piece.offset_bytes]
            length = piece.size_bytes
        else:
            first = piece.offset_bytes // self._run_bytes
            places = [self._place(number) for number in range(first, first + piece.size_bytes // self._run_bytes)]
            length = self._run_bytes
        regions = ffi.new("VkBufferCopy[]", len(places))
        for number, place in enumerate(places):
            region, staged = regions[number], piece.staging_offset + number * length
            region.srcOffset, region.dstOffset = (place, staged) if into_staging else (staged, place)
            region.size = length
        return regions

    def _place(self, number: int) -> int:
        """Return the start of a run."""
        place = self._start_bytes
        for count, stride in zip(reversed(self._counts), reversed(self._strides), strict=True):
            number, index = divmod(number, count)
            place += index * stride
        return place


# Small resources share blocks of at most this size: drivers allow few allocations (often 4096).
_BLOCK_SIZE_BYTES = 64 << 20


def allocate_and_bind(device: Device, memory: MemoryBlocks, stack: ExitStack, resources: Iterable[Resource]) -> None:
    """Allocate ``memory`` for ``resources``, and bind each resource to a part.

    A memory group is a single allocation with each member at an offset. Raises OutOfMemoryError, UnsupportedError or
    ScenarioError, with the place.
    """
    alone: dict[tuple[int, bool], list[Resource]] = defaultdict(list)
    groups: dict[str, list[Resource]] = defaultdict(list)
    for resource in resources:
        if resource.plan.group is None:
            alone[_memory_type(device, resource.needs.type_bits, resource), resource.needs.linear].append(resource)
        else:
            groups[resource.plan.group].append(resource)
    # linear and other memory apart, so that bufferImageGranularity does not matter
    for (type_index, _), members in alone.items():
        for block in _blocks(members):
            last, offset = block[-1]
            uids = [repr(resource.plan.uid) for resource, _ in block[:3]] + ["…"] * (len(block) > 3)
            _bind(memory, stack, block, offset + last.needs.size_bytes, type_index, ", ".join(uids))
    for group, members in groups.items():
        _place_group(device, memory, stack, group, members)


def _blocks(resources: Iterable[Resource]) -> list[list[tuple[Resource, int]]]:
    """Pack resources into blocks, lists of (resource, offset). A larger resource gets a separate block."""
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
    """Allocate memory and bind the resources of ``block`` to it.

    Errors point at ``pointer``. If it is empty, they point at the largest resource.
    """
    try:
        allocation = memory.take(stack, size_bytes, type_index, purpose)
    except errors.ScenarioRunnerError as failure:
        largest, _ = max(block, key=lambda member: member[0].plan.size_bytes)
        raise failure.at(pointer=pointer or largest.plan.pointer) from None
    for resource, offset in block:
        resource.bind(allocation, offset)


def _memory_type(device: Device, type_bits: int, resource: Resource) -> int:
    """Choose device-local memory, visible to the host too if device and host share memory."""
    preferred = vk.MEMORY_PROPERTY_DEVICE_LOCAL_BIT
    if device.unified_memory:
        preferred |= (
            vk.MEMORY_PROPERTY_HOST_VISIBLE_BIT
            | vk.MEMORY_PROPERTY_HOST_COHERENT_BIT
            | vk.MEMORY_PROPERTY_HOST_CACHED_BIT
        )
    index = choose_type(device, type_bits, 0, preferred)
    if index is None:
        members = f"all resources in the memory group of {resource.plan.uid!r}"
        message = f"no memory type of {device.physical.name!r} suits {members}"
        help = "remove a resource from the memory group, or use another device"
        raise errors.UnsupportedError(error("SR-MEMORY-008", resource.plan.pointer, message, help))
    return index
