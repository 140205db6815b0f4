"""Layouts of images (VkImageLayout) and the barriers that change them, image views, and generated mip levels."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from scenario_runner.plan.model.records import ImageLayout
from scenario_runner.vulkan.api._generated import constants as vk
from scenario_runner.vulkan.api.ffi import ffi
from scenario_runner.vulkan.api.result import check
from scenario_runner.vulkan.api.structs import new

if TYPE_CHECKING:
    from scenario_runner.plan.model.resources import ImagePlan
    from scenario_runner.vulkan.api.loader import Functions
    from scenario_runner.vulkan.devices.device import Device

ASPECTS = {
    "color": vk.IMAGE_ASPECT_COLOR_BIT,
    "depth": vk.IMAGE_ASPECT_DEPTH_BIT,
    "stencil": vk.IMAGE_ASPECT_STENCIL_BIT,
}
NAMED: dict[ImageLayout, int] = {
    "general": vk.IMAGE_LAYOUT_GENERAL,
    "tensor_aliasing": vk.IMAGE_LAYOUT_TENSOR_ALIASING_ARM,
}

_T = TypeVar("_T")


class Transition(NamedTuple):
    """A change of layout of ``level_count`` mip levels."""

    image: Any
    aspect_mask: int
    base_level: int
    level_count: int
    old: int
    new: int


def image_barriers(transitions: Sequence[Transition], src_access: int, dst_access: int) -> Any:
    """VkImageMemoryBarrier[] with one access mask on each side."""
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


def runs(values: Sequence[_T]) -> list[tuple[int, int, _T]]:
    """Neighbouring equal values: (index of the first, how many, value)."""
    found: list[tuple[int, int, _T]] = []
    for index, value in enumerate(values):
        if found and found[-1][2] == value:
            first, count, _ = found[-1]
            found[-1] = (first, count + 1, value)
        else:
            found.append((index, 1, value))
    return found


_TYPE_2D = 1


def create_view(
    device: Device, stack: ExitStack, image: Any, format: int, aspect_mask: int, base_level: int, level_count: int
) -> Any:
    """A two-dimensional VkImageView, destroyed with ``stack``."""
    handle = ffi.new("VkImageView*")
    info = new(
        "VkImageViewCreateInfo",
        image=image,
        viewType=_TYPE_2D,
        format=format,
        subresourceRange={
            "aspectMask": aspect_mask,
            "baseMipLevel": base_level,
            "levelCount": level_count,
            "baseArrayLayer": 0,
            "layerCount": 1,
        },
    )
    check(device.fn.vkCreateImageView(device.handle, info, ffi.NULL, handle), "vkCreateImageView")
    device.own(stack, "image view", device.fn.vkDestroyImageView, handle[0])
    return handle[0]


def record_mip_levels(
    fn: Functions, commands: Any, image: Any, plan: ImagePlan, layout: int, *, interpolate: bool
) -> list[int]:
    """Record making the levels from ``plan.source_levels`` on; returns the layout that each level is left in.

    All levels are in ``layout`` (TRANSFER_DST or GENERAL) and their bytes come from copies recorded before. Texels are
    averaged with ``interpolate``, otherwise one of them is taken.
    """
    mask = 0
    for aspect in plan.format.aspects:
        mask |= ASPECTS[aspect]
    layouts = [layout] * plan.mips
    blit = ffi.new("VkImageBlit*")
    blit.srcSubresource.aspectMask = blit.dstSubresource.aspectMask = mask
    blit.srcSubresource.layerCount = blit.dstSubresource.layerCount = 1
    blit.srcOffsets[1].z = blit.dstOffsets[1].z = 1
    for level in range(plan.source_levels, plan.mips):
        above = level - 1
        source_layout = (
            vk.IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL if layout == vk.IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL else layout
        )
        barrier = image_barriers(
            [Transition(image, mask, above, 1, layouts[above], source_layout)],
            vk.ACCESS_TRANSFER_WRITE_BIT,
            vk.ACCESS_TRANSFER_READ_BIT,
        )
        fn.vkCmdPipelineBarrier(
            commands,
            vk.PIPELINE_STAGE_TRANSFER_BIT,
            vk.PIPELINE_STAGE_TRANSFER_BIT,
            0,
            0,
            ffi.NULL,
            0,
            ffi.NULL,
            1,
            barrier,
        )
        layouts[above] = source_layout
        blit.srcSubresource.mipLevel, blit.dstSubresource.mipLevel = above, level
        blit.srcOffsets[1].x, blit.srcOffsets[1].y = max(1, plan.width >> above), max(1, plan.height >> above)
        blit.dstOffsets[1].x, blit.dstOffsets[1].y = max(1, plan.width >> level), max(1, plan.height >> level)
        fn.vkCmdBlitImage(commands, image, source_layout, image, layout, 1, blit, 1 if interpolate else 0)
    return layouts
