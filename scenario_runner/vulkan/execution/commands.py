"""Command buffers: one pool per run, buffers recorded once and submitted as often as needed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from scenario_runner.vulkan.api._generated import constants as vk
from scenario_runner.vulkan.api.ffi import ffi
from scenario_runner.vulkan.api.result import check
from scenario_runner.vulkan.api.structs import new

if TYPE_CHECKING:
    from scenario_runner.vulkan.devices.device import Device


class CommandPool:
    """A VkCommandPool whose buffers can be recorded anew one by one."""

    def __init__(self, device: Device, stack: ExitStack) -> None:
        self._device = device
        handle = ffi.new("VkCommandPool*")
        info = new(
            "VkCommandPoolCreateInfo",
            flags=vk.COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
            queueFamilyIndex=device.queue_family,
        )
        check(device.fn.vkCreateCommandPool(device.handle, info, ffi.NULL, handle), "vkCreateCommandPool")
        self._handle = handle[0]
        self._begin = new("VkCommandBufferBeginInfo")
        device.own(stack, "command pool", device.fn.vkDestroyCommandPool, self._handle)

    def allocate(self) -> Any:
        """A primary command buffer that lives as long as the pool."""
        buffer = ffi.new("VkCommandBuffer*")
        info = new("VkCommandBufferAllocateInfo", commandPool=self._handle, level=0, commandBufferCount=1)
        check(self._device.fn.vkAllocateCommandBuffers(self._device.handle, info, buffer), "vkAllocateCommandBuffers")
        return buffer[0]

    @contextmanager
    def recording(self, command_buffer: Any) -> Iterator[None]:
        """Begin recording (dropping what was recorded before) and end it where the block ends well."""
        fn = self._device.fn
        check(fn.vkBeginCommandBuffer(command_buffer, self._begin), "vkBeginCommandBuffer")
        try:
            yield
            check(fn.vkEndCommandBuffer(command_buffer), "vkEndCommandBuffer")
        except BaseException:
            fn.vkResetCommandBuffer(command_buffer, 0)  # it may be kept, and begins anew the next time
            raise
