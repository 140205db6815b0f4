"""Mip levels made on the device: each one shrunk from the one above it, as the initial content goes in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scenario_runner.vulkan.api._generated import constants as vk
from scenario_runner.vulkan.api.ffi import ffi
from scenario_runner.vulkan.resources.image_layouts import ASPECTS, Transition, image_barriers

if TYPE_CHECKING:
    from scenario_runner.plan.model.images import ImagePlan
    from scenario_runner.vulkan.api.functions import Functions


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
