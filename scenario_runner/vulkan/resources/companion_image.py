"""Images that are drawn into in place of others.

A LINEAR image that shares memory with buffers or tensors is not drawn into itself: a driver may leave what it draws in
a compressed form that the others do not know of (see `images.Image`), and some devices draw into OPTIMAL images only.
Such an image has a companion with OPTIMAL tiling and memory of its own. Before a drawing the texels are copied into it,
and after it back.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Protocol

from scenario_runner import errors
from scenario_runner.vulkan.api._generated import constants as vk
from scenario_runner.vulkan.api.ffi import ffi
from scenario_runner.vulkan.api.result import check
from scenario_runner.vulkan.api.structs import new
from scenario_runner.vulkan.memory.allocation import allocate, choose_type
from scenario_runner.vulkan.resources.image_layouts import Transition, image_barriers
from scenario_runner.vulkan.resources.image_views import create_view

if TYPE_CHECKING:
    from scenario_runner.plan.model.images import ImagePlan
    from scenario_runner.vulkan.devices.device import Device

    class Original(Protocol):
        """The image that a companion stands in for, in the layout GENERAL; where ``buffer`` is not None, it lies over
        the same bytes."""

        @property
        def plan(self) -> ImagePlan: ...
        @property
        def handle(self) -> Any: ...
        @property
        def buffer(self) -> Any: ...
        @property
        def start_bytes(self) -> int: ...
        @property
        def row_pitch_bytes(self) -> int: ...


_USAGE = vk.IMAGE_USAGE_COLOR_ATTACHMENT_BIT | vk.IMAGE_USAGE_TRANSFER_SRC_BIT | vk.IMAGE_USAGE_TRANSFER_DST_BIT
_ANYTHING = vk.ACCESS_MEMORY_READ_BIT | vk.ACCESS_MEMORY_WRITE_BIT


class CompanionImage:
    """An OPTIMAL image with the extent, format and mip levels of ``original``, to be drawn into."""

    layout = vk.IMAGE_LAYOUT_COLOR_ATTACHMENT_OPTIMAL

    def __init__(self, device: Device, stack: ExitStack, original: Original) -> None:
        """Raises OutOfMemoryError and DeviceError with the place."""
        self._device = device
        self._stack = stack
        self._original = original
        self._views: dict[int, Any] = {}
        plan = original.plan
        purpose = f"the attachment for image {plan.uid!r}, {plan.width}x{plan.height} texels of {plan.format.name}"
        info = new(
            "VkImageCreateInfo",
            imageType=vk.IMAGE_TYPE_2D,
            format=plan.format.value,
            extent={"width": plan.width, "height": plan.height, "depth": 1},
            mipLevels=plan.mips,
            arrayLayers=1,
            samples=vk.SAMPLE_COUNT_1_BIT,
            tiling=vk.IMAGE_TILING_OPTIMAL,
            usage=_USAGE,
        )
        try:
            handle = ffi.new("VkImage*")
            check(device.fn.vkCreateImage(device.handle, info, ffi.NULL, handle), "vkCreateImage", purpose)
            self._handle = handle[0]
            device.own(stack, "image", device.fn.vkDestroyImage, self._handle)
            needs = ffi.new("VkMemoryRequirements*")
            device.fn.vkGetImageMemoryRequirements(device.handle, self._handle, needs)
            kind = choose_type(device, needs.memoryTypeBits, 0, vk.MEMORY_PROPERTY_DEVICE_LOCAL_BIT)
            assert kind is not None, "every image has a memory type"
            allocation = allocate(device, stack, needs.size, kind, purpose, mapped=False)
            code = device.fn.vkBindImageMemory(device.handle, self._handle, allocation.handle, 0)
            check(code, "vkBindImageMemory", purpose)
        except errors.ScenarioRunnerError as error:
            raise error.at(pointer=plan.pointer) from None

    def view(self, level: int) -> Any:
        """The VkImageView of one mip level."""
        if level not in self._views:
            format, aspect = self._original.plan.format.value, vk.IMAGE_ASPECT_COLOR_BIT
            self._views[level] = create_view(self._device, self._stack, self._handle, format, aspect, level, 1)
        return self._views[level]

    def record_in(self, commands: Any, level: int) -> None:
        """Copy a level of the original into this one, ready to be drawn into; everything before must have finished."""
        fn, original = self._device.fn, self._original
        filled = vk.IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL
        self._change(commands, level, vk.IMAGE_LAYOUT_UNDEFINED, filled)
        if original.buffer is not None:
            regions = self._regions(level)
            fn.vkCmdCopyBufferToImage(commands, original.buffer, self._handle, filled, len(regions), regions)
        else:
            region = self._whole(level)
            fn.vkCmdCopyImage(commands, original.handle, vk.IMAGE_LAYOUT_GENERAL, self._handle, filled, 1, region)
        self._change(commands, level, filled, self.layout)

    def record_out(self, commands: Any, level: int) -> None:
        """Copy a level back; what comes next must wait for it."""
        fn, original = self._device.fn, self._original
        read = vk.IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL
        self._change(commands, level, self.layout, read)
        if original.buffer is not None:
            regions = self._regions(level)
            fn.vkCmdCopyImageToBuffer(commands, self._handle, read, original.buffer, len(regions), regions)
        else:
            region = self._whole(level)
            fn.vkCmdCopyImage(commands, self._handle, read, original.handle, vk.IMAGE_LAYOUT_GENERAL, 1, region)

    def _regions(self, level: int) -> Any:
        """VkBufferImageCopy[] of a level: one for all rows, or one a row where their distance is not whole texels."""
        original = self._original
        part = original.plan.part_of(level)
        pitch, texel = original.row_pitch_bytes, original.plan.format.block_size_bytes
        together = pitch % texel == 0
        regions = ffi.new("VkBufferImageCopy[]", 1 if together else part.height)
        for number, region in enumerate(regions):
            region.bufferOffset = original.start_bytes + number * pitch
            region.bufferRowLength = pitch // texel if together else 0
            region.imageSubresource.aspectMask = vk.IMAGE_ASPECT_COLOR_BIT
            region.imageSubresource.mipLevel = level
            region.imageSubresource.layerCount = 1
            region.imageOffset.y = number
            region.imageExtent = (part.width, part.height if together else 1, 1)
        return regions

    def _whole(self, level: int) -> Any:
        """VkImageCopy of a level."""
        part = self._original.plan.part_of(level)
        region = ffi.new("VkImageCopy*")
        for subresource in (region.srcSubresource, region.dstSubresource):
            subresource.aspectMask = vk.IMAGE_ASPECT_COLOR_BIT
            subresource.mipLevel = level
            subresource.layerCount = 1
        region.extent = (part.width, part.height, 1)
        return region

    def _change(self, commands: Any, level: int, old: int, new_layout: int) -> None:
        change = Transition(self._handle, vk.IMAGE_ASPECT_COLOR_BIT, level, 1, old, new_layout)
        everything = vk.PIPELINE_STAGE_ALL_COMMANDS_BIT
        self._device.fn.vkCmdPipelineBarrier(
            commands, everything, everything, 0, 0, ffi.NULL, 0, ffi.NULL, 1,
            image_barriers([change], _ANYTHING, _ANYTHING),
        )  # fmt: skip
