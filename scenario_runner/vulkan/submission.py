"""Submitting a command buffer and waiting for it: with a time limit, and so that Ctrl-C gets through."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from scenario_runner import errors
from scenario_runner.vulkan.api import ffi
from scenario_runner.vulkan.result import TIMEOUT, check
from scenario_runner.vulkan.structs import new

if TYPE_CHECKING:
    from scenario_runner.vulkan.device import Device

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
        self._pending = False

    def close(self) -> None:
        """Destroy the fence; the work must have finished."""
        self._device.fn.vkDestroyFence(self._device.handle, self._fence[0], ffi.NULL)

    def submit(self, command_buffer: Any, extra: Any = None) -> None:
        """Submit one command buffer; ``extra`` is a structure for VkSubmitInfo::pNext."""
        self._buffers[0] = command_buffer
        self._info.pNext = ffi.NULL if extra is None else ffi.cast("void*", extra)
        check(self._device.fn.vkQueueSubmit(self._device.queue, 1, self._info, self._fence[0]), "vkQueueSubmit")
        self._pending = True

    def wait(self, what: str, timeout_s: float | None = None) -> None:
        """Wait until the submitted work has finished.

        Raises FenceTimeoutError after ``timeout_s`` seconds and DeviceLostError; after a timeout, or an interrupt that
        the work does not survive, the device is marked as abandoned and must not be used again.
        """
        if not self._pending:
            return
        fn, device = self._device.fn, self._device.handle
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        try:
            while not self._signalled(_SLICE_S if deadline is None else min(_SLICE_S, deadline - time.monotonic())):
                if deadline is not None and time.monotonic() >= deadline:
                    self._device.abandoned = True
                    raise errors.FenceTimeoutError(
                        f"{what} did not finish within {timeout_s:g} s",
                        help="give more time with --timeout, or look for an endless loop in the shaders",
                    )
        except KeyboardInterrupt:
            self._device.abandoned = not self._signalled(_GRACE_S)
            raise
        except errors.DeviceLostError:
            self._pending = False
            self._device.lost = True
            raise
        self._pending = False
        check(fn.vkResetFences(device, 1, self._fence), "vkResetFences")

    def _signalled(self, wait_s: float) -> bool:
        nanoseconds = max(0, int(wait_s * 1e9))
        code = self._device.fn.vkWaitForFences(self._device.handle, 1, self._fence, 1, nanoseconds)
        return check(code, "vkWaitForFences", "waiting for the submitted commands") != TIMEOUT
