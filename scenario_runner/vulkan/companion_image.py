"""Images that are used in place of a mip level of others, with OPTIMAL tiling and memory of their own.

A LINEAR image that shares memory with buffers or tensors is not drawn into itself: a driver may leave what it draws in
a compressed form that the others do not know of (see `images.Image`), and some devices draw into OPTIMAL images only.
Before a draw the texels are copied into the companion, and after it back. What optical flows read has companions
where a driver reads levels wrongly (`optical_flow`).
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from scenario_runner import errors
from scenario_runner.vulkan import ffi
from scenario_runner.vulkan._generated import constants as vk
from scenario_runner.vulkan.device import EVERYTHING, Device
from scenario_runner.vulkan.image_support import Transition, create_image, create_view, record_transitions
from scenario_runner.vulkan.loader import check
from scenario_runner.vulkan.memory import allocate_local

_COPIED = vk.IMAGE_USAGE_TRANSFER_SRC_BIT | vk.IMAGE_USAGE_TRANSFER_DST_BIT


class CompanionImage:
    """An image with the extent and format of one mip ``level`` of ``original``, its ``view`` and the ``layout`` in
    which it is used as ``usage`` says. The original (`images.Image`) is in the layout GENERAL; where its ``buffer`` is
    not None, it lies over the same bytes."""

    def __init__(self, device: Device, stack: ExitStack, original: Any, level: int, usage: int, layout: int) -> None:
        """Raises OutOfMemoryError and DeviceError with the place."""
        self._device = device
        self._original = original
        self._level = level
        self.layout = layout
        plan, part = original.plan, original.plan.part_of(level)
        purpose = f"a copy of image {plan.uid!r}, {part.width}x{part.height} texels of {plan.format.name}"
        self._handle, needs = create_image(
            device,
            stack,
            plan,
            purpose,
            extent={"width": part.width, "height": part.height, "depth": 1},
            mipLevels=1,
            tiling=vk.IMAGE_TILING_OPTIMAL,
            usage=usage | _COPIED,
        )
        try:
            allocation = allocate_local(device, stack, needs, purpose)
            code = device.fn.vkBindImageMemory(device.handle, self._handle, allocation.handle, 0)
            check(code, "vkBindImageMemory", purpose)
            self.view = create_view(device, stack, self._handle, plan.format.value, vk.IMAGE_ASPECT_COLOR_BIT, 0, 1)
        except errors.ScenarioRunnerError as error:
            raise error.at(pointer=plan.pointer) from None

    def record_in(self, commands: Any) -> None:
        """Copy the level of the original into this one, ready to be used; everything before must have finished."""
        fn, original = self._device.fn, self._original
        filled = vk.IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL
        rest = vk.IMAGE_LAYOUT_GENERAL
        read = rest if original.tiling == "LINEAR" else vk.IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL
        self._change(commands, vk.IMAGE_LAYOUT_UNDEFINED, filled, (rest, read))
        if original.buffer is not None:
            regions = self._regions()
            fn.vkCmdCopyBufferToImage(commands, original.buffer, self._handle, filled, len(regions), regions)
        else:
            region = self._whole(into_original=False)
            fn.vkCmdCopyImage(commands, original.handle, read, self._handle, filled, 1, region)
        self._change(commands, filled, self.layout, (read, rest))

    def record_out(self, commands: Any) -> None:
        """Copy the level back; what comes next must wait for it."""
        fn, original = self._device.fn, self._original
        read = vk.IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL
        self._change(commands, self.layout, read)
        if original.buffer is not None:
            regions = self._regions()
            fn.vkCmdCopyImageToBuffer(commands, self._handle, read, original.buffer, len(regions), regions)
        else:
            region = self._whole(into_original=True)
            fn.vkCmdCopyImage(commands, self._handle, read, original.handle, vk.IMAGE_LAYOUT_GENERAL, 1, region)

    def _regions(self) -> Any:
        """VkBufferImageCopy[] of all texels: for all rows, or one a row where their distance is not whole texels."""
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

    def _whole(self, *, into_original: bool) -> Any:
        """VkImageCopy of all texels."""
        part = self._original.plan.part_of(self._level)
        region = ffi.new("VkImageCopy*")
        for subresource in (region.srcSubresource, region.dstSubresource):
            subresource.aspectMask = vk.IMAGE_ASPECT_COLOR_BIT
            subresource.layerCount = 1
        (region.dstSubresource if into_original else region.srcSubresource).mipLevel = self._level
        region.extent = (part.width, part.height, 1)
        return region

    def _change(self, commands: Any, old: int, new_layout: int, of_original: tuple[int, int] = (0, 0)) -> None:
        """Change the layout, and where it differs that of the original's level as well."""
        changes = [Transition(self._handle, vk.IMAGE_ASPECT_COLOR_BIT, 0, 1, old, new_layout)]
        if of_original[0] != of_original[1]:
            changes.append(Transition(self._original.handle, vk.IMAGE_ASPECT_COLOR_BIT, self._level, 1, *of_original))
        record_transitions(self._device, commands, changes, EVERYTHING, EVERYTHING)
