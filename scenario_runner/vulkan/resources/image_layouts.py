"""Image layouts (VkImageLayout) and the barriers that change them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar

from scenario_runner.plan.model.records import ImageLayout
from scenario_runner.vulkan.api._generated import constants as vk
from scenario_runner.vulkan.api.ffi import ffi

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
