"""Views of images: all mip levels, or a single one."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from scenario_runner.vulkan.api.ffi import ffi
from scenario_runner.vulkan.api.result import check
from scenario_runner.vulkan.api.structs import new

if TYPE_CHECKING:
    from scenario_runner.vulkan.devices.device import Device

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
