"""Images of a scenario on the device, and their neighbours in memory groups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from functools import partial
from itertools import permutations
from typing import Any

from scenario_runner import errors
from scenario_runner.errors.diagnostic import Diagnostic, error
from scenario_runner.files.vk_formats import ADDRESS_MODES, BORDER_COLORS, FILTERS
from scenario_runner.plan.image_records import ImagePlan, SamplerPlan
from scenario_runner.plan.plan import memory_groups
from scenario_runner.plan.records import Descriptor, ImageBarrier, ImageLayout, ImagePart, overlap
from scenario_runner.vulkan import Handle, ffi
from scenario_runner.vulkan._generated import constants as vk
from scenario_runner.vulkan.device import EVERYTHING, Device
from scenario_runner.vulkan.image_support import (
    ASPECTS,
    LAYOUTS,
    TILINGS,
    USAGE_TRANSFER,
    CompanionImage,
    Tiling,
    Transition,
    choose_tilings,
    create_image,
    create_view,
    format_features,
    generates_levels,
    needs_companion,
    record_mip_levels,
    record_transitions,
    usage_flags,
)
from scenario_runner.vulkan.layers import GRAPH_LAYER
from scenario_runner.vulkan.memory import Allocation, align
from scenario_runner.vulkan.resources import WORD_SIZE_BYTES, Piece, Resource, Rows, bind_buffer, create_buffer
from scenario_runner.vulkan.vulkan_api import check, new


def create_images(device: Device, stack: ExitStack, plans: list[ImagePlan]) -> list[Image]:
    """Create every image of a scenario. Raises UnsupportedError with all impossible images."""
    tilings = choose_tilings(device, plans)
    return device.instance.create_each(plans, lambda plan: Image(device, stack, plan, tilings[plan.uid]))


_FLOW_USAGES = {
    "flow_input": vk.DATA_GRAPH_OPTICAL_FLOW_IMAGE_USAGE_INPUT_BIT_ARM,
    "flow_output": vk.DATA_GRAPH_OPTICAL_FLOW_IMAGE_USAGE_OUTPUT_BIT_ARM,
    "flow_hint": vk.DATA_GRAPH_OPTICAL_FLOW_IMAGE_USAGE_HINT_BIT_ARM,
    "flow_cost": vk.DATA_GRAPH_OPTICAL_FLOW_IMAGE_USAGE_COST_BIT_ARM,
}


def _flow_info(device: Device, plan: ImagePlan) -> Handle:
    """Return a VkDataGraphOpticalFlowImageFormatInfoARM for an image of an optical flow, else NULL.

    The ML emulation layers do not need the structure, and would pass it to a driver that does not know it.
    """
    flags = sum(_FLOW_USAGES.get(usage, 0) for usage in plan.usage)
    if not flags or GRAPH_LAYER in device.instance.layers:
        return ffi.NULL
    return new("VkDataGraphOpticalFlowImageFormatInfoARM", usage=flags)


class Image(Resource):
    """A VkImage with views.

    Life cycle of the layout, for each filling: UNDEFINED; the layout for copies and clears while the image is filled;
    then ``rest_layout`` for commands and readbacks, unless the scenario's barriers change it (`set_layouts`).

    A LINEAR image that shares memory is filled through a buffer over the same bytes. After vkCmdClearColorImage and
    vkCmdCopyBufferToImage, the memory may hold a compressed form that the other members cannot read. On an NVIDIA H100
    with driver 580, the other members read garbage, and storage images misread data that the other members wrote.
    """

    plan: ImagePlan

    def __init__(self, device: Device, stack: ExitStack, plan: ImagePlan, tiling: Tiling) -> None:
        """Raises OutOfMemoryError and DeviceError."""
        super().__init__(device, plan)
        self._stack = stack
        self.tiling = tiling
        self.aspect_mask = sum(ASPECTS[aspect] for aspect in plan.format.aspects)
        # the host writes LINEAR images in place, which only GENERAL allows
        self.rest_layout = (
            vk.IMAGE_LAYOUT_SHADER_READ_ONLY_OPTIMAL
            if plan.constant and tiling == "OPTIMAL"
            else vk.IMAGE_LAYOUT_GENERAL
        )
        self._fill_layout = vk.IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL if tiling == "OPTIMAL" else vk.IMAGE_LAYOUT_GENERAL
        self._filled = plan.source is not None or plan.zero_fill
        # The commands that fill an OPTIMAL image change the layout. Images that share memory are alike and share a
        # layout.
        self.needs_preparation = tiling == "LINEAR" or not self._filled
        self._layouts: int | list[int] = self.rest_layout
        self._views: dict[tuple[int, int], Handle] = {}
        purpose = f"image {plan.uid!r}, {plan.width}x{plan.height} texels of {plan.format.name}"
        self.handle, self.needs = create_image(
            device,
            stack,
            plan,
            purpose,
            flags=vk.IMAGE_CREATE_ALIAS_BIT if plan.aliased else 0,
            extent={"width": plan.width, "height": plan.height, "depth": 1},
            mipLevels=plan.mips,
            tiling=TILINGS[tiling],
            usage=usage_flags(device, plan, tiling),
            pNext=_flow_info(device, plan),
        )
        self.start_bytes, self.row_pitch_bytes = self._rows() if tiling == "LINEAR" else (0, 0)
        self.buffer: Handle = None
        self._packed_rows: Rows | None = None
        if plan.aliased and tiling == "LINEAR" and len(plan.parts) == 1:
            size = align(self.needs.size_bytes, WORD_SIZE_BYTES)
            usage = vk.BUFFER_USAGE_TRANSFER_SRC_BIT | vk.BUFFER_USAGE_TRANSFER_DST_BIT
            self.buffer, needs = create_buffer(device, stack, size, usage, purpose)
            self.needs = self.needs.also(needs)
            dims = plan.parts[0].row_count, plan.parts[0].row_size_bytes
            self._packed_rows = Rows(dims, (self.row_pitch_bytes, 1), plan.size_bytes, self.start_bytes)
        self._companions: dict[tuple[int, int], CompanionImage] = {}  # by level and usage

    def _rows(self) -> tuple[int, int]:
        """Return a LINEAR image's start of level 0 in memory, and the row distance, in bytes."""
        part = ffi.new("VkImageSubresource*")
        part.aspectMask = ASPECTS[self.plan.format.aspects[0]]
        layout = ffi.new("VkSubresourceLayout*")
        self._device.fn.vkGetImageSubresourceLayout(self._device.handle, self.handle, part, layout)
        return layout.offset, layout.rowPitch

    @property
    def has_padded_rows(self) -> bool:
        """Return whether the rows of a LINEAR image have more bytes than their texels."""
        first = self.plan.parts[0]
        return first.row_count > 1 and self.row_pitch_bytes != first.row_size_bytes

    @property
    def is_padded(self) -> bool:
        """Return whether a LINEAR image's memory has padding before the first row or between rows."""
        return self.has_padded_rows or bool(self.start_bytes)

    @property
    def end_bytes(self) -> int:
        """The end of a LINEAR image's rows in the memory group, including padding."""
        return self.plan.offset_bytes + self.start_bytes + self.row_pitch_bytes * self.plan.parts[0].row_count

    def bind(self, allocation: Allocation, offset_bytes: int) -> None:
        super().bind(allocation, offset_bytes + self.start_bytes)
        is_packed = self.tiling == "LINEAR" and len(self.plan.parts) == 1 and not self.has_padded_rows
        self.mapped = self.mapped and is_packed
        code = self._device.fn.vkBindImageMemory(self._device.handle, self.handle, allocation.handle, offset_bytes)
        check(code, "vkBindImageMemory", f"image {self.plan.uid!r}")
        if self.buffer is not None:
            bind_buffer(self._device, self.buffer, allocation, offset_bytes, f"image {self.plan.uid!r}")

    def portion(self, offset_bytes: int, room_bytes: int) -> int:
        part = self._part_at(offset_bytes)
        rows = min(room_bytes // part.row_size_bytes, (part.end_bytes - offset_bytes) // part.row_size_bytes)
        return rows * part.row_size_bytes

    def set_layouts(self, layouts: tuple[ImageLayout, ...] | None) -> None:
        """Note each level's layout after a frame's barriers; None for ``rest_layout``."""
        self._layouts = self.rest_layout if layouts is None else [self.layout_of(name) for name in layouts]

    def layout_of(self, name: ImageLayout) -> int:
        """Return the VkImageLayout for a scenario's word."""
        return self.rest_layout if name == "general" else LAYOUTS[name]

    def barrier_transition(self, barrier: ImageBarrier) -> Transition:
        """Return the layout change for a barrier in the scenario."""
        old = vk.IMAGE_LAYOUT_UNDEFINED if barrier.old_layout is None else self.layout_of(barrier.old_layout)
        new = self.layout_of(barrier.new_layout)
        return Transition(self.handle, self.aspect_mask, barrier.base_level, barrier.level_count, old, new)

    def record_prepare(self, commands: Handle) -> None:
        layout = self._fill_layout if self._filled else self.rest_layout
        self._change(vk.IMAGE_LAYOUT_UNDEFINED, layout, commands, before_copy=self._filled)

    def record_clear(self, commands: Handle) -> None:
        if not self.needs_preparation:
            self.record_prepare(commands)
        if self.buffer is not None:
            self._device.fn.vkCmdFillBuffer(commands, self.buffer, 0, vk.WHOLE_SIZE, 0)
        else:
            self.record_fill(commands, self.handle, self._fill_layout, b"", 0, self.plan.mips)
        self._change(self._fill_layout, self.rest_layout, commands, before_copy=False)

    def record_fill(
        self, commands: Handle, image: Handle, layout: int, data: bytes, first_level: int, level_count: int
    ) -> None:
        """Record filling mip levels of this image, or of a companion, with a clear value; ``data`` b"" means zeros."""
        fn, is_color = self._device.fn, self.plan.format.aspects == ("color",)
        area = ffi.new("VkImageSubresourceRange*")
        area.aspectMask, area.baseMipLevel = self.aspect_mask, first_level
        area.levelCount, area.layerCount = level_count, 1
        value = ffi.new("VkClearColorValue*" if is_color else "VkClearDepthStencilValue*")
        ffi.memmove(value, data, len(data))
        clear = fn.vkCmdClearColorImage if is_color else fn.vkCmdClearDepthStencilImage
        clear(commands, image, layout, value, 1, area)

    def record_upload(self, commands: Handle, staging: Handle, piece: Piece) -> None:
        plan, fn = self.plan, self._device.fn
        if piece.offset_bytes == 0 and not self.needs_preparation:
            self.record_prepare(commands)
        if self._packed_rows is not None:
            regions = self._packed_rows.regions(piece, into_staging=False)
            fn.vkCmdCopyBuffer(commands, staging, self.buffer, len(regions), regions)
        else:
            region = self.region(piece)
            fn.vkCmdCopyBufferToImage(commands, staging, self.handle, self._fill_layout, 1, region)
        assert plan.source is not None
        if piece.offset_bytes + piece.size_bytes < plan.source.size_bytes:
            return
        layouts: int | list[int] = self._fill_layout
        if generates_levels(plan):
            features = format_features(self._device, plan.format.value, self.tiling)
            # integers and depths must not be averaged
            averages = plan.format.numeric not in ("uint", "sint") and plan.format.aspects == ("color",)
            interpolate = averages and bool(features & vk.FORMAT_FEATURE_SAMPLED_IMAGE_FILTER_LINEAR_BIT)
            layouts = record_mip_levels(
                self._device, commands, self.handle, plan, self._fill_layout, interpolate=interpolate
            )
        self._change(layouts, self.rest_layout, commands, before_copy=False)

    def record_download(self, commands: Handle, staging: Handle, piece: Piece) -> None:
        source = vk.IMAGE_LAYOUT_GENERAL if self.tiling == "LINEAR" else vk.IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL
        if piece.offset_bytes == 0:
            self._change(self._layouts, source, commands, before_copy=True)
        region = self.region(piece)
        self._device.fn.vkCmdCopyImageToBuffer(commands, self.handle, source, staging, 1, region)
        if piece.offset_bytes + piece.size_bytes == self.plan.size_bytes:
            self._change(source, self._layouts, commands, before_copy=False)

    def write_descriptor(self, write: Handle, descriptor: Descriptor) -> Handle:
        device, plan = self._device, self.plan.sampler
        info = ffi.new("VkDescriptorImageInfo*")
        if descriptor.kind in ("sampler", "combined_image_sampler"):
            info.sampler = device.samplers.get(plan, partial(create_sampler, device, plan))
        if descriptor.kind != "sampler":
            info.imageView = self.image_view(descriptor.level)
            info.imageLayout = self.rest_layout
        if descriptor.flow_input and (copy := self.copy_for_flow(descriptor.level)) is not None:
            info.imageView, info.imageLayout = copy.view, copy.layout
        write.pImageInfo = info
        return info

    def copy_for_flow(self, level: int | None) -> CompanionImage | None:
        """Return the image that an optical flow reads instead of a mip level; None if it reads the level itself.

        The ML emulation layers sample pictures with unnormalized coordinates. Vulkan allows them for any view of a
        single level. But llvmpipe of Mesa 25 and 26 reads no texels if the view does not show the image's first level.
        This was seen with 25.0.7 and 26.1; 22.3.6 is right.
        """
        device = self._device
        if not level or device.physical.vulkan12_properties.driverID != vk.DRIVER_ID_MESA_LLVMPIPE:
            return None
        return self._companion(level, usage_flags(device, self.plan, "OPTIMAL"))

    def companion_to_fill(self, level: int) -> CompanionImage | None:
        """Return the image that fills and copies write instead of a mip level; None if they write the level itself."""
        return None if self._packed_rows is None else self._companion(level, USAGE_TRANSFER)

    def companion_to_draw(self, level: int) -> CompanionImage | None:
        """Return the image that draws write instead of a mip level; None if they write the level itself."""
        if not needs_companion(self._device, self.plan, self.tiling):
            return None
        layout = vk.IMAGE_LAYOUT_COLOR_ATTACHMENT_OPTIMAL
        return self._companion(level, vk.IMAGE_USAGE_COLOR_ATTACHMENT_BIT, layout)

    def _companion(self, level: int, usage: int, layout: int = vk.IMAGE_LAYOUT_GENERAL) -> CompanionImage:
        """Return the companion of a mip level for this usage, created now if it is new."""
        if (level, usage) not in self._companions:
            self._companions[level, usage] = CompanionImage(self._device, self._stack, self, level, usage, layout)
        return self._companions[level, usage]

    def image_view(self, level: int | None) -> Handle:
        """Return the VkImageView for a mip level or all levels; for a depth and stencil image, the depths."""
        first, count = (0, self.plan.mips) if level is None else (level, 1)
        view = self._views.get((first, count))
        if view is None:
            aspect = ASPECTS[self.plan.format.aspects[0]]
            view = create_view(self._device, self._stack, self.handle, self.plan.format.value, aspect, first, count)
            self._views[first, count] = view
        return view

    @property
    def views(self) -> Iterable[Handle]:
        """The VkImageViews created so far. Creating descriptors creates theirs."""
        return self._views.values()

    def _part_at(self, offset_bytes: int) -> ImagePart:
        return next(part for part in self.plan.parts if offset_bytes < part.end_bytes)

    def region(self, piece: Piece) -> Handle:
        """Return the VkBufferImageCopy for whole rows of a part."""
        part = self._part_at(piece.offset_bytes)
        block_height = self.plan.format.block_extent[1]
        first = (piece.offset_bytes - part.offset_bytes) // part.row_size_bytes * block_height
        rows = piece.size_bytes // part.row_size_bytes * block_height
        region = ffi.new("VkBufferImageCopy*")
        region.bufferOffset = piece.staging_offset
        region.imageSubresource.aspectMask = ASPECTS[part.aspect]
        region.imageSubresource.mipLevel = part.level
        region.imageSubresource.layerCount = 1
        region.imageOffset.y = first
        region.imageExtent.width, region.imageExtent.depth = part.width, 1
        region.imageExtent.height = min(rows, part.height - first)
        return region

    def _change(self, old: int | list[int], new: int | list[int], commands: Handle, *, before_copy: bool) -> None:
        """Record the layout change, for all levels or each, between a copy and the work before or after it."""
        before, after = ([layout] * self.plan.mips if isinstance(layout, int) else layout for layout in (old, new))
        changed = [
            Transition(self.handle, self.aspect_mask, level, 1, *layouts)
            for level, layouts in enumerate(zip(before, after, strict=True))
            if layouts[0] != layouts[1]
        ]
        if not changed:
            return
        copy = vk.PIPELINE_STAGE_TRANSFER_BIT, vk.ACCESS_TRANSFER_READ_BIT | vk.ACCESS_TRANSFER_WRITE_BIT
        sides = (EVERYTHING, copy) if before_copy else (copy, EVERYTHING)
        record_transitions(self._device, commands, changed, *sides)


def create_sampler(device: Device, plan: SamplerPlan, stack: ExitStack) -> Handle:
    """Create a VkSampler, destroyed with ``stack``."""
    address_mode = ADDRESS_MODES[plan.address_mode]
    info = new(
        "VkSamplerCreateInfo",
        magFilter=FILTERS[plan.mag_filter],
        minFilter=FILTERS[plan.min_filter],
        mipmapMode=FILTERS[plan.mip_filter],
        addressModeU=address_mode,
        addressModeV=address_mode,
        addressModeW=address_mode,
        maxLod=vk.LOD_CLAMP_NONE,  # the view limits the levels
        borderColor=BORDER_COLORS[plan.border_color],
    )
    if plan.custom_color:
        custom = new("VkSamplerCustomBorderColorCreateInfoEXT", format=plan.custom_format)
        ffi.memmove(ffi.addressof(custom.customBorderColor), plan.custom_color, len(plan.custom_color))
        info.pNext = ffi.cast("void*", custom)  # ``custom`` lives until the sampler is created
    return device.create(stack, "sampler", "Sampler", info)


def check_groups(device: Device, resources: Mapping[str, Any]) -> None:
    """Check members of memory groups that overlap images.

    A device may pad the rows of a LINEAR image. A buffer or another image in the same memory would see the padding as
    data. Raises UnsupportedError if two members disagree about rows, with the place, and ScenarioError if padding makes
    the initial contents of two members overlap.
    """
    problems: dict[frozenset[str], Diagnostic] = {}
    for group, plans in memory_groups(resource.plan for resource in resources.values()).items():
        where = f"memory group {group!r} on {device.physical.name!r}"
        for image, other in permutations([resources[plan.uid] for plan in plans], 2):
            if image.plan.kind != "image" or image.tiling != "LINEAR":
                continue
            if _contents_collide(image, other):
                message = (
                    f"{where}: the initial contents of {other.plan.uid!r} and image {image.plan.uid!r} overlap, because"
                    f" the image's rows are {image.row_pitch_bytes} bytes apart and end at byte {image.end_bytes}"
                )
                help = "give only one of them initial content, or place one at a later offset"
                raise errors.ScenarioError(error("SR-MEMORY-001", f"{other.plan.pointer}/memory_group", message, help))
            message = _disagreement(image, other)
            if message:
                help = "choose a width whose rows need no padding, or let a shader copy the texels"
                problem = error("SR-MEMORY-007", f"{image.plan.pointer}/memory_group", f"{where}: {message}", help)
                problems.setdefault(frozenset((image.plan.uid, other.plan.uid)), problem)
    if problems:
        raise errors.error_of(problems.values())


def _contents_collide(image: Image, other: Resource) -> bool:
    """Return whether an image's padding moves the image content into a later member's content.

    The planner has already checked overlaps without padding.
    """
    plan, start = image.plan, other.plan.offset_bytes
    if plan.source is None or other.plan.source is None:
        return False
    return bool(plan.offset_bytes + plan.size_bytes <= start < image.end_bytes)


def _disagreement(image: Image, other: Any) -> str:
    """Describe how another member of the memory group would read a LINEAR image's padding as data; "" if it would not.

    A buffer as large as the padded image is expected to know the padding. A tensor of the image's shape has the image's
    strides. Any other tensor sees packed bytes, like images of other widths.
    """
    plan, part, kind = image.plan, image.plan.parts[0], other.plan.kind
    start, end = other.plan.offset_bytes, other.plan.offset_bytes + other.plan.size_bytes
    span = start, start + other.needs.size_bytes
    if not overlap((plan.offset_bytes, plan.offset_bytes + image.needs.size_bytes), span):
        return ""
    rows = f"rows of image {plan.uid!r} are {image.row_pitch_bytes} bytes apart"
    if kind == "image":
        has_single_row = 1 in (part.row_count, other.plan.parts[0].row_count)
        same_pitch = image.row_pitch_bytes == other.row_pitch_bytes
        same_rows = has_single_row or (same_pitch and (plan.offset_bytes - start) % image.row_pitch_bytes == 0)
        if same_rows or not (image.is_padded or other.is_padded):
            return ""
        return f"{rows}, those of image {other.plan.uid!r} {other.row_pitch_bytes}"
    if not image.is_padded or (kind == "tensor" and other.plan.image == plan.uid):
        return ""
    before_padding = not image.start_bytes and end <= plan.offset_bytes + part.row_size_bytes
    if before_padding or (kind == "buffer" and end >= image.end_bytes):
        return ""
    return (
        f"{rows}, although their texels take {part.row_size_bytes}; {kind} {other.plan.uid!r} of"
        f" {other.plan.size_bytes} bytes would see the padding as data"
    )
