"""Support of formats and tilings by a device; layouts, views, barriers, mip levels and companions of images.

Source: Vulkan specification, "Format Properties" and "Additional Image Capabilities".
"""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any, Literal, NamedTuple

from scenario_runner import errors
from scenario_runner.errors.diagnostic import Diagnostic, error
from scenario_runner.files.vk_formats import format_of_value
from scenario_runner.plan.image_records import ImagePlan
from scenario_runner.plan.plan import Plan
from scenario_runner.plan.records import ImageLayout, ImagePart
from scenario_runner.vulkan import Handle, ffi
from scenario_runner.vulkan._generated import constants as vk
from scenario_runner.vulkan.device import EVERYTHING, Device
from scenario_runner.vulkan.memory import Needs, allocate_local
from scenario_runner.vulkan.physical_device import CORE
from scenario_runner.vulkan.vulkan_api import API_1_3, Member, check, new

Tiling = Literal["OPTIMAL", "LINEAR"]

TILINGS: dict[Tiling, int] = {"OPTIMAL": vk.IMAGE_TILING_OPTIMAL, "LINEAR": vk.IMAGE_TILING_LINEAR}
USAGE_TRANSFER = vk.IMAGE_USAGE_TRANSFER_SRC_BIT | vk.IMAGE_USAGE_TRANSFER_DST_BIT
USAGES = {
    "sampled": vk.IMAGE_USAGE_SAMPLED_BIT,
    "storage": vk.IMAGE_USAGE_STORAGE_BIT,
    "color_attachment": vk.IMAGE_USAGE_COLOR_ATTACHMENT_BIT,
    "depth_attachment": vk.IMAGE_USAGE_DEPTH_STENCIL_ATTACHMENT_BIT,
    "tensor_aliasing": vk.IMAGE_USAGE_TENSOR_ALIASING_BIT_ARM,
}

_NAMES = {
    vk.FORMAT_FEATURE_SAMPLED_IMAGE_BIT: "SAMPLED_IMAGE",
    vk.FORMAT_FEATURE_STORAGE_IMAGE_BIT: "STORAGE_IMAGE",
    vk.FORMAT_FEATURE_STORAGE_IMAGE_ATOMIC_BIT: "STORAGE_IMAGE_ATOMIC",
    vk.FORMAT_FEATURE_COLOR_ATTACHMENT_BIT: "COLOR_ATTACHMENT",
    vk.FORMAT_FEATURE_DEPTH_STENCIL_ATTACHMENT_BIT: "DEPTH_STENCIL_ATTACHMENT",
    vk.FORMAT_FEATURE_BLIT_SRC_BIT: "BLIT_SRC",
    vk.FORMAT_FEATURE_BLIT_DST_BIT: "BLIT_DST",
    vk.FORMAT_FEATURE_SAMPLED_IMAGE_FILTER_LINEAR_BIT: "SAMPLED_IMAGE_FILTER_LINEAR",
    vk.FORMAT_FEATURE_TRANSFER_SRC_BIT: "TRANSFER_SRC",
    vk.FORMAT_FEATURE_TRANSFER_DST_BIT: "TRANSFER_DST",
}
_COPIED = vk.FORMAT_FEATURE_TRANSFER_SRC_BIT | vk.FORMAT_FEATURE_TRANSFER_DST_BIT
_DRAWN_AND_COPIED = vk.FORMAT_FEATURE_COLOR_ATTACHMENT_BIT | _COPIED
_NEEDED_FOR = {
    "sampled": vk.FORMAT_FEATURE_SAMPLED_IMAGE_BIT,
    "storage": vk.FORMAT_FEATURE_STORAGE_IMAGE_BIT,
    "color_attachment": vk.FORMAT_FEATURE_COLOR_ATTACHMENT_BIT,
    "depth_attachment": vk.FORMAT_FEATURE_DEPTH_STENCIL_ATTACHMENT_BIT,
}
_WITHOUT_FORMAT = {
    "read": (vk.FORMAT_FEATURE_2_STORAGE_READ_WITHOUT_FORMAT_BIT, "shaderStorageImageReadWithoutFormat"),
    "write": (vk.FORMAT_FEATURE_2_STORAGE_WRITE_WITHOUT_FORMAT_BIT, "shaderStorageImageWriteWithoutFormat"),
}
# Formats beyond Vulkan 1.2, by the first value of their extension.
_LATER_FORMATS = {
    1000340000: "VK_EXT_4444_formats",
    1000470000: "VK_KHR_maintenance5",
    1000460000: "VK_ARM_tensors",
}


def choose_tilings(device: Device, images: list[ImagePlan]) -> dict[str, Tiling]:
    """Return the tiling of each image, by uid: the scenario's tiling, otherwise the fastest legal tiling.

    Raises UnsupportedError with a sentence for each impossible image: the format, the tiling, and the missing feature.
    """
    chosen: dict[str, Tiling] = {}
    problems: list[Diagnostic] = []
    for plan in images:
        lacking = []
        for tiling in sorted(_candidates(device, plan), key=partial(lacks_formatless_access, device, plan)):
            missing = _missing(device, plan, tiling)
            if missing is None:
                chosen[plan.uid] = tiling
                break
            lacking.append(f"with {tiling} tiling {missing}")
        else:
            what = f"image {plan.uid!r} of {plan.format.name} is not possible on {device.physical.name!r}"
            problems.append(error("SR-FEATURE-003", plan.pointer, f"{what}: {'; '.join(lacking)}"))
    if problems:
        raise errors.error_of(problems)
    return chosen


def format_features(device: Device, format: int, tiling: Tiling = "OPTIMAL") -> int:
    """Return the VkFormatFeatureFlags of a format and tiling."""
    physical = device.physical
    if format_of_value(format).is_of_tensors and "VK_ARM_tensors" not in physical.extensions:
        return 0
    properties = physical.format_properties(format)
    return int(properties.optimalTilingFeatures if tiling == "OPTIMAL" else properties.linearTilingFeatures)


def lacks_formatless_access(device: Device, plan: ImagePlan, tiling: Tiling) -> bool:
    """Return whether shaders access the image without a format, and the device cannot.

    From Vulkan 1.3 on, support differs by format. Before, a device feature covers all formats.
    """
    physical = device.physical
    bits = 0
    accesses = plan.special_accesses - {"atomic"}
    if accesses and physical.api_version >= API_1_3:
        by_tiling = physical.format_properties_of("VkFormatProperties3", plan.format.value)
        bits = int(by_tiling.optimalTilingFeatures if tiling == "OPTIMAL" else by_tiling.linearTilingFeatures)
    return any(
        not bits & _WITHOUT_FORMAT[access][0] and physical.features.find(CORE, _WITHOUT_FORMAT[access][1]) is None
        for access in accesses
    )


def with_declared_formats(device: Device, plan: Plan, resources: Mapping[str, Any]) -> Plan:
    """Return the plan, with the formats that shaders declare if the device cannot access an image without a format."""
    images = (resource for resource in resources.values() if resource.plan.kind == "image")
    is_lacking = any(lacks_formatless_access(device, image.plan, image.tiling) for image in images)
    return plan.as_declared() if is_lacking else plan


def usage_flags(device: Device, plan: ImagePlan, tiling: Tiling) -> int:
    """Return VkImageUsageFlags. Every image is copied into and out of."""
    flags = USAGE_TRANSFER | sum(USAGES.get(usage, 0) for usage in plan.usage)
    if needs_companion(device, plan, tiling):
        flags &= ~vk.IMAGE_USAGE_COLOR_ATTACHMENT_BIT
    return flags


def needs_companion(device: Device, plan: ImagePlan, tiling: Tiling) -> bool:
    """Return whether draws use a companion instead of this image."""
    if "color_attachment" not in plan.usage or tiling == "OPTIMAL":
        return False
    if plan.aliased:
        return True
    features = format_features(device, plan.format.value, tiling)
    return plan.tiling == "LINEAR" and not features & vk.FORMAT_FEATURE_COLOR_ATTACHMENT_BIT


def _candidates(device: Device, plan: ImagePlan) -> tuple[Tiling, ...]:
    if plan.tiling is not None:
        return (plan.tiling,)
    if not plan.usage.isdisjoint(("tensor_aliasing", "depth_attachment")):
        return ("OPTIMAL",)  # the layout tensor_aliasing is for OPTIMAL images, and so are depth tests on most devices
    if plan.aliased:
        return ("LINEAR",)  # the other members of the group see rows of texels
    if device.physical.type == "cpu" and device.unified_memory and plan.mips == 1:
        return ("LINEAR", "OPTIMAL")  # sampling is as fast, and the host can read and write it in place
    return ("OPTIMAL", "LINEAR")


def _missing(device: Device, plan: ImagePlan, tiling: Tiling) -> str | None:
    """Name the feature that the device lacks for this image; None if it lacks nothing."""
    extension = _LATER_FORMATS.get(plan.format.value // 1000 * 1000)
    is_core = extension == "VK_EXT_4444_formats" and device.physical.api_version >= API_1_3
    if extension is not None and extension not in device.enabled.extensions and not is_core:
        return f"it lacks the extension {extension}"
    features = format_features(device, plan.format.value, tiling)
    required = [
        vk.FORMAT_FEATURE_TRANSFER_SRC_BIT,
        vk.FORMAT_FEATURE_TRANSFER_DST_BIT,
        *(_NEEDED_FOR[usage] for usage in plan.usage if usage in _NEEDED_FOR),
    ]
    if "atomic" in plan.special_accesses:
        required.append(vk.FORMAT_FEATURE_STORAGE_IMAGE_ATOMIC_BIT)
    if plan.filters and plan.sampler.is_linear:
        required.append(vk.FORMAT_FEATURE_SAMPLED_IMAGE_FILTER_LINEAR_BIT)
    if plan.format.aspects != ("color",) and not device.has_graphics:
        return "depths cannot be copied: the queue family with compute lacks graphics"
    if generates_levels(plan):
        if plan.format.is_compressed:
            return "its file must contain all mip levels: the device cannot generate block-compressed levels"
        if not device.has_graphics:
            return "mip levels cannot be generated: the queue family with compute lacks graphics"
        required += [vk.FORMAT_FEATURE_BLIT_SRC_BIT, vk.FORMAT_FEATURE_BLIT_DST_BIT]
    if needs_companion(device, plan, tiling) and not _DRAWN_AND_COPIED & ~format_features(device, plan.format.value):
        required.remove(vk.FORMAT_FEATURE_COLOR_ATTACHMENT_BIT)  # draws use the companion
    lacking = [_NAMES[bit] for bit in required if not features & bit]
    if lacking:
        return f"it lacks {', '.join(f'VK_FORMAT_FEATURE_{name}_BIT' for name in lacking)}"
    return _beyond_limits(device, plan, tiling)


def generates_levels(plan: ImagePlan) -> bool:
    """Return whether the device generates mip levels, because the image's file lacks them."""
    return plan.source is not None and plan.source_levels < plan.mips


def _beyond_limits(device: Device, plan: ImagePlan, tiling: Tiling) -> str | None:
    properties: Handle = ffi.new("VkImageFormatProperties*")
    physical = device.physical
    usage = usage_flags(device, plan, tiling)
    if device.instance.layers:  # the ML emulation layers pass the query to a driver that does not know the bit
        usage &= ~vk.IMAGE_USAGE_TENSOR_ALIASING_BIT_ARM
    flags = vk.IMAGE_CREATE_ALIAS_BIT if plan.aliased else 0
    code = physical.fn.vkGetPhysicalDeviceImageFormatProperties(
        physical.handle, plan.format.value, 1, TILINGS[tiling], usage, flags, properties
    )
    if code == vk.ERROR_FORMAT_NOT_SUPPORTED:
        uses = ", ".join(sorted(plan.usage)) or "copies"
        return f"the format is not supported for {uses}"
    check(code, "vkGetPhysicalDeviceImageFormatProperties", f"image {plan.uid!r}")
    most = properties.maxExtent
    if plan.width > most.width or plan.height > most.height:
        return f"{plan.width}x{plan.height} texels exceed the limit of {most.width}x{most.height}"
    if plan.mips > properties.maxMipLevels:
        return f"mip level provided is not supported: there can be {properties.maxMipLevels}, not {plan.mips}"
    return None


ASPECTS = {
    "color": vk.IMAGE_ASPECT_COLOR_BIT,
    "depth": vk.IMAGE_ASPECT_DEPTH_BIT,
    "stencil": vk.IMAGE_ASPECT_STENCIL_BIT,
}
LAYOUTS: dict[ImageLayout, int] = {
    "general": vk.IMAGE_LAYOUT_GENERAL,
    "tensor_aliasing": vk.IMAGE_LAYOUT_TENSOR_ALIASING_ARM,
}


class Transition(NamedTuple):
    """A change of layout for ``level_count`` mip levels."""

    image: Handle
    aspect_mask: int
    base_level: int
    level_count: int
    old: int
    new: int


def image_barriers(transitions: Sequence[Transition], src_access: int, dst_access: int) -> Handle:
    """Return VkImageMemoryBarrier[] with a single access mask on each side."""
    barriers = ffi.new("VkImageMemoryBarrier[]", len(transitions))
    for barrier, change in zip(barriers, transitions, strict=True):
        barrier.sType = vk.STRUCTURE_TYPE_IMAGE_MEMORY_BARRIER
        barrier.srcAccessMask, barrier.dstAccessMask = src_access, dst_access
        barrier.oldLayout, barrier.newLayout = change.old, change.new
        barrier.srcQueueFamilyIndex = barrier.dstQueueFamilyIndex = vk.QUEUE_FAMILY_IGNORED
        barrier.image = change.image
        barrier.subresourceRange.aspectMask = change.aspect_mask
        barrier.subresourceRange.baseMipLevel = change.base_level
        barrier.subresourceRange.levelCount = change.level_count
        barrier.subresourceRange.layerCount = 1
    return barriers


def record_transitions(
    device: Device, commands: Handle, changes: Sequence[Transition], before: tuple[int, int], after: tuple[int, int]
) -> None:
    """Record changes of layout between stages with accesses, given as for `Device.barrier`."""
    barriers = image_barriers(changes, before[1], after[1])
    device.fn.vkCmdPipelineBarrier(commands, before[0], after[0], 0, 0, ffi.NULL, 0, ffi.NULL, len(changes), barriers)


def create_view(
    device: Device, stack: ExitStack, image: Handle, format: int, aspect_mask: int, base_level: int, level_count: int
) -> Handle:
    """Create a two-dimensional VkImageView, destroyed with ``stack``."""
    info = new(
        "VkImageViewCreateInfo",
        image=image,
        viewType=vk.IMAGE_VIEW_TYPE_2D,
        format=format,
        subresourceRange={
            "aspectMask": aspect_mask,
            "baseMipLevel": base_level,
            "levelCount": level_count,
            "layerCount": 1,
        },
    )
    return device.create(stack, "image view", "ImageView", info)


def create_image(
    device: Device, stack: ExitStack, plan: ImagePlan, purpose: str, **members: Member
) -> tuple[Handle, Needs]:
    """Create a two-dimensional VkImage in a plan's format, destroyed with ``stack``.

    ``members`` are further members of VkImageCreateInfo. Raises OutOfMemoryError and DeviceError.
    """
    info = new(
        "VkImageCreateInfo",
        imageType=vk.IMAGE_TYPE_2D,
        format=plan.format.value,
        arrayLayers=1,
        samples=vk.SAMPLE_COUNT_1_BIT,
        **members,
    )
    handle = device.create(stack, "image", "Image", info, purpose)
    needs = ffi.new("VkMemoryRequirements*")
    device.fn.vkGetImageMemoryRequirements(device.handle, handle, needs)
    return handle, Needs(
        needs.size, needs.alignment, needs.memoryTypeBits, linear=members["tiling"] == vk.IMAGE_TILING_LINEAR
    )


def record_mip_levels(
    device: Device, commands: Handle, image: Handle, plan: ImagePlan, layout: int, *, interpolate: bool
) -> list[int]:
    """Record generating the levels from ``plan.source_levels`` on. Return the layout of each level afterwards.

    All levels are in ``layout`` (TRANSFER_DST or GENERAL), and earlier commands copied their bytes. Texels are averaged
    with ``interpolate``, otherwise picked.
    """
    mask = sum(ASPECTS[aspect] for aspect in plan.format.aspects)
    read = layout if layout == vk.IMAGE_LAYOUT_GENERAL else vk.IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL
    copied = vk.PIPELINE_STAGE_TRANSFER_BIT, vk.ACCESS_TRANSFER_WRITE_BIT
    copying = vk.PIPELINE_STAGE_TRANSFER_BIT, vk.ACCESS_TRANSFER_READ_BIT
    layouts = [layout] * plan.mips
    blit = ffi.new("VkImageBlit*")
    blit.srcSubresource.aspectMask = blit.dstSubresource.aspectMask = mask
    blit.srcSubresource.layerCount = blit.dstSubresource.layerCount = 1
    blit.srcOffsets[1].z = blit.dstOffsets[1].z = 1
    for level in range(plan.source_levels, plan.mips):
        above = level - 1
        layouts[above] = read
        change = Transition(image, mask, above, 1, layout, read)
        record_transitions(device, commands, [change], copied, copying)
        blit.srcSubresource.mipLevel, blit.dstSubresource.mipLevel = above, level
        blit.srcOffsets[1].x, blit.srcOffsets[1].y = max(1, plan.width >> above), max(1, plan.height >> above)
        blit.dstOffsets[1].x, blit.dstOffsets[1].y = max(1, plan.width >> level), max(1, plan.height >> level)
        device.fn.vkCmdBlitImage(commands, image, read, image, layout, 1, blit, int(interpolate))
    return layouts


def level_copy(part: ImagePart, source_level: int, target_level: int) -> Handle:
    """Return the VkImageCopy of all texels between mip levels as large as ``part``."""
    region = ffi.new("VkImageCopy*")
    for subresource, level in ((region.srcSubresource, source_level), (region.dstSubresource, target_level)):
        subresource.aspectMask, subresource.mipLevel, subresource.layerCount = ASPECTS[part.aspect], level, 1
    region.extent = (part.width, part.height, 1)
    return region


class CompanionImage:
    """An OPTIMAL image with separate memory that replaces a mip ``level`` of ``original`` for some work.

    It has a ``view``, and the ``layout`` for the ``usage``. The original (`images.Image`) is in the layout GENERAL. The
    original's ``buffer``, if any, covers the same bytes.

    A LINEAR image that shares memory is never drawn into: a driver may leave a draw in a compressed form that the other
    members cannot read (see `images.Image`), and some devices only draw into OPTIMAL images. The texels are copied into
    the companion before a draw, and back after it. Inputs of optical flows have companions if a driver reads levels
    wrongly (`images.Image.copy_for_flow`).
    """

    def __init__(self, device: Device, stack: ExitStack, original: Handle, level: int, usage: int, layout: int) -> None:
        """Create the image. Raises OutOfMemoryError and DeviceError with the place."""
        self._device = device
        self._original = original
        self._level = level
        self.layout = layout
        plan, part = original.plan, original.plan.part_of(level)
        purpose = f"a copy of image {plan.uid!r}, {part.width}x{part.height} texels of {plan.format.name}"
        try:
            self.handle, needs = create_image(
                device,
                stack,
                plan,
                purpose,
                extent={"width": part.width, "height": part.height, "depth": 1},
                mipLevels=1,
                tiling=vk.IMAGE_TILING_OPTIMAL,
                usage=usage | USAGE_TRANSFER,
            )
            allocation = allocate_local(device, stack, needs, purpose)
            code = device.fn.vkBindImageMemory(device.handle, self.handle, allocation.handle, 0)
            check(code, "vkBindImageMemory", purpose)
            self.view = (
                ffi.NULL
                if usage == USAGE_TRANSFER
                else create_view(device, stack, self.handle, plan.format.value, vk.IMAGE_ASPECT_COLOR_BIT, 0, 1)
            )
        except errors.ScenarioRunnerError as error:
            raise error.at(pointer=plan.pointer) from None

    def record_in(self, commands: Handle) -> None:
        """Copy the original's level into this image, ready for use. Earlier work must have finished."""
        fn, original = self._device.fn, self._original
        filled = vk.IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL
        rest = vk.IMAGE_LAYOUT_GENERAL
        read = rest if original.tiling == "LINEAR" else vk.IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL
        self._change(commands, vk.IMAGE_LAYOUT_UNDEFINED, filled, (rest, read))
        if original.buffer is not None:
            regions = self._regions()
            fn.vkCmdCopyBufferToImage(commands, original.buffer, self.handle, filled, len(regions), regions)
        else:
            region = level_copy(original.plan.part_of(self._level), self._level, 0)
            fn.vkCmdCopyImage(commands, original.handle, read, self.handle, filled, 1, region)
        self._change(commands, filled, self.layout, (read, rest))

    def record_out(self, commands: Handle) -> None:
        """Copy the level back. Later work must wait for the copy."""
        fn, original = self._device.fn, self._original
        read = vk.IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL
        self._change(commands, self.layout, read)
        if original.buffer is not None:
            regions = self._regions()
            fn.vkCmdCopyImageToBuffer(commands, self.handle, read, original.buffer, len(regions), regions)
        else:
            region = level_copy(original.plan.part_of(self._level), 0, self._level)
            fn.vkCmdCopyImage(commands, self.handle, read, original.handle, vk.IMAGE_LAYOUT_GENERAL, 1, region)

    def _regions(self) -> Handle:
        """Return VkBufferImageCopy[] of all texels, row by row if the row distance is not a whole number of texels."""
        original = self._original
        part = original.plan.part_of(self._level)
        pitch, texel = original.row_pitch_bytes, original.plan.format.block_size_bytes
        together = pitch % texel == 0
        regions = ffi.new("VkBufferImageCopy[]", 1 if together else part.height)
        for number, region in enumerate(regions):
            region.bufferOffset = original.start_bytes + number * pitch
            region.bufferRowLength = pitch // texel if together else 0
            region.imageSubresource.aspectMask = vk.IMAGE_ASPECT_COLOR_BIT
            region.imageSubresource.layerCount = 1
            region.imageOffset.y = number
            region.imageExtent = (part.width, part.height if together else 1, 1)
        return regions

    def _change(self, commands: Handle, old: int, new_layout: int, of_original: tuple[int, int] = (0, 0)) -> None:
        """Change the layout, and the layout of the original's level if it differs."""
        changes = [Transition(self.handle, vk.IMAGE_ASPECT_COLOR_BIT, 0, 1, old, new_layout)]
        if of_original[0] != of_original[1]:
            changes.append(Transition(self._original.handle, vk.IMAGE_ASPECT_COLOR_BIT, self._level, 1, *of_original))
        record_transitions(self._device, commands, changes, EVERYTHING, EVERYTHING)
