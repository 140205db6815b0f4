"""Image layouts (VkImageLayout) and the barriers that change them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar

from scenario_runner.plan.model import ImageLayout
from scenario_runner.vulkan.api import ffi

UNDEFINED = 0
GENERAL = 1
SHADER_READ_ONLY = 5
TRANSFER_SRC = 6
TRANSFER_DST = 7
TENSOR_ALIASING = 1000460000

ASPECTS = {"color": 0x1, "depth": 0x2, "stencil": 0x4}
NAMED: dict[ImageLayout, int] = {"general": GENERAL, "tensor_aliasing": TENSOR_ALIASING}

_T = TypeVar("_T")

_QUEUE_FAMILY_IGNORED = 0xFFFFFFFF


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
        barrier.sType = 45
        barrier.srcAccessMask, barrier.dstAccessMask = src_access, dst_access
        barrier.oldLayout, barrier.newLayout = change.old, change.new
        barrier.srcQueueFamilyIndex = barrier.dstQueueFamilyIndex = _QUEUE_FAMILY_IGNORED
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
