"""Command buffers, recorded once and submitted as often as needed; waiting has a time limit and can be interrupted."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from scenario_runner import errors
from scenario_runner.vulkan.api._generated import constants as vk
from scenario_runner.vulkan.api.ffi import ffi
from scenario_runner.vulkan.api.loader import check
from scenario_runner.vulkan.api.structs import new
from scenario_runner.vulkan.devices.device import Device


class CommandPool:
    """A VkCommandPool whose buffers can be recorded anew one by one."""

    def __init__(self, device: Device, stack: ExitStack) -> None:
        self._device = device
        info = new(
            "VkCommandPoolCreateInfo",
            flags=vk.COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
            queueFamilyIndex=device.queue_family,
        )
        self._handle = device.create(stack, "command pool", "CommandPool", info)
        self._begin = new("VkCommandBufferBeginInfo")

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


# A signal handler runs between two waits; a fence that signals ends the wait at once, so the slice costs nothing.
_SLICE_S = 0.1
# How long submitted work may go on after Ctrl-C before its objects are given up instead of destroyed.
_GRACE_S = 2.0


class Submission:
    """One fence and the work it stands for; used again and again, one submission at a time."""

    def __init__(self, device: Device) -> None:
        self._device = device
        handle = ffi.new("VkFence*")
        check(device.fn.vkCreateFence(device.handle, new("VkFenceCreateInfo"), ffi.NULL, handle), "vkCreateFence")
        self._fence = handle
        self._buffers = ffi.new("VkCommandBuffer[1]")
        self._info = new("VkSubmitInfo")
        self._info.commandBufferCount = 1
        self._info.pCommandBuffers = self._buffers
        self._signalled = False
        self._pending = False

    def close(self) -> None:
        """Destroy the fence; the work must have finished."""
        self._device.fn.vkDestroyFence(self._device.handle, self._fence[0], ffi.NULL)

    def submit(self, command_buffer: Any, extra: Any = None) -> None:
        """Submit one command buffer; ``extra`` is a structure for VkSubmitInfo::pNext."""
        fn = self._device.fn
        if self._signalled:
            check(fn.vkResetFences(self._device.handle, 1, self._fence), "vkResetFences")
            self._signalled = False
        self._buffers[0] = command_buffer
        self._info.pNext = ffi.NULL if extra is None else ffi.cast("void*", extra)
        self._pending = True  # before the call: an interrupt just after it must find the work pending
        code = fn.vkQueueSubmit(self._device.queue, 1, self._info, self._fence[0])
        if code < 0:
            self._pending = False
            self._device.lost = self._device.lost or code == vk.ERROR_DEVICE_LOST
        check(code, "vkQueueSubmit")

    def wait(self, what: str, timeout_s: float | None = None) -> None:
        """Wait until the submitted work has finished.

        Raises FenceTimeoutError after ``timeout_s`` seconds and DeviceLostError; after a timeout, or an interrupt that
        the work does not survive, the device is marked as abandoned and must not be used again.
        """
        if not self._pending:
            return
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        try:
            while not self._finished(_SLICE_S if deadline is None else min(_SLICE_S, deadline - time.monotonic())):
                if deadline is not None and time.monotonic() >= deadline:
                    self._device.abandoned = True
                    raise errors.FenceTimeoutError(
                        f"{what} did not finish within {timeout_s:g} s",
                        help="give more time with --timeout, or look for an endless loop in the shaders",
                    )
        except BaseException:
            self.settle()
            raise

    def settle(self) -> None:
        """After a failure or an interrupt: give the work a little time, and give the device up if it needs more."""
        if not self._pending or not self._device.usable:
            return
        self._device.abandoned = True  # until the work has finished, and for good when a second Ctrl-C ends this wait
        deadline = time.monotonic() + _GRACE_S
        try:
            while not self._finished(_SLICE_S):
                if time.monotonic() >= deadline:
                    return
        except errors.DeviceLostError:
            pass  # nothing of it runs any more
        except errors.ScenarioRunnerError:
            return  # whether it still runs cannot be told
        self._device.abandoned = False

    def _finished(self, wait_s: float) -> bool:
        """Return whether the work has finished, after waiting at most ``wait_s`` for it."""
        nanoseconds = max(0, int(wait_s * 1e9))
        code = self._device.fn.vkWaitForFences(self._device.handle, 1, self._fence, 1, nanoseconds)
        if code == vk.ERROR_DEVICE_LOST:
            self._device.lost = True
            self._pending = False
        if check(code, "vkWaitForFences", "waiting for the submitted commands") == vk.TIMEOUT:
            return False
        self._pending = False
        self._signalled = True
        return True
