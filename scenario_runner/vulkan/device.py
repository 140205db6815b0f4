"""An open device, the count of its objects, and the submissions to the queue.

Life cycle:

1. `Device` opens a physical device with the features and extensions of the first scenario.
2. Objects are created on it, and counted.
3. Commands are recorded into buffers of a `CommandPool`, and submitted with a `Submission`. Each wait has a time limit
   and can be interrupted.
4. `close` destroys the device. If work did not finish, the device is ``abandoned``, and
   `close` does not wait for it.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Generic, TypeVar

from scenario_runner import errors
from scenario_runner.errors import log
from scenario_runner.vulkan import Handle, ffi, vulkan_api
from scenario_runner.vulkan._generated import constants as vk
from scenario_runner.vulkan.capabilities import Enabled
from scenario_runner.vulkan.instance import Instance
from scenario_runner.vulkan.physical_device import PhysicalDevice, chain_of
from scenario_runner.vulkan.vulkan_api import (
    Functions,
    check,
    new,
    type_source,
)

_Object = TypeVar("_Object")


class LruCache(Generic[_Object]):
    """Objects created once per content. The cache keeps the ``most`` last used objects, of at most ``most_bytes``
    together.

    `get` creates an object with an ExitStack that destroys it. Only `drop`, `trim` and `close` destroy objects. Call
    them between runs, when no object is in use.
    """

    def __init__(self, most: int, most_bytes: int | None = None) -> None:
        self._most, self._most_bytes = most, most_bytes
        # In the order of use. An OrderedDict would hash all keys when it is iterated, and the keys of graphs are large.
        self._entries: dict[Hashable, tuple[_Object, ExitStack]] = {}

    def get(self, content: Hashable, make: Callable[[ExitStack], _Object]) -> _Object:
        """Return the stored object for ``content``, or create it with ``make``."""
        entry = self._entries.pop(content, None)
        if entry is None:
            with ExitStack() as failed:
                stack = failed.enter_context(ExitStack())  # the object may create more with this stack later
                entry = make(stack), stack
                failed.pop_all()
        self._entries[content] = entry
        return entry[0]

    def drop(self, unwanted: Callable[[_Object], bool]) -> None:
        """Destroy all unwanted objects."""
        for content in [content for content, (value, _) in self._entries.items() if unwanted(value)]:
            self._entries.pop(content)[1].close()

    @property
    def is_full(self) -> bool:
        """True if `trim` would destroy objects. Objects in a cache with ``most_bytes`` have a ``size_bytes``."""
        if len(self._entries) > self._most or self._most_bytes is None:
            return len(self._entries) > self._most
        return sum(value.size_bytes for value, _ in self._entries.values()) > self._most_bytes  # type: ignore[attr-defined]

    def trim(self) -> None:
        """Destroy the least recently used objects beyond the limits."""
        while self.is_full:
            self._entries.pop(next(iter(self._entries)))[1].close()

    def close(self) -> None:
        """Destroy all objects, the newest first. A second call does nothing."""
        while self._entries:
            self._entries.popitem()[1][1].close()


# Drivers allow at least 4000 samplers (maxSamplerAllocationCount), far fewer with custom border colors.
_MOST_SAMPLERS = 256


EVERYTHING = vk.PIPELINE_STAGE_ALL_COMMANDS_BIT, vk.ACCESS_MEMORY_READ_BIT | vk.ACCESS_MEMORY_WRITE_BIT
"""All stages of a queue with all accesses, for `Device.barrier`."""


def memory_barrier(src_access: int, dst_access: int) -> Handle:
    """Return a VkMemoryBarrier."""
    barrier = ffi.new("VkMemoryBarrier*")
    barrier.sType = vk.STRUCTURE_TYPE_MEMORY_BARRIER
    barrier.srcAccessMask = src_access
    barrier.dstAccessMask = dst_access
    return barrier


class Device:
    """An open VkDevice. ``live`` counts the existing objects of each kind; after `close` every count is zero.

    With ``staging``, the host never reads or writes a resource in place.
    """

    def __init__(
        self, instance: Instance, physical: PhysicalDevice, enabled: Enabled, *, staging: bool = False
    ) -> None:
        self.instance = instance
        self.physical = physical
        self.enabled = enabled
        self.staging = staging
        self.abandoned = False
        self.lost = False
        self.live: Counter[str] = Counter()
        self.memory_bytes = 0
        self.graph_reports: Any = None  # a `graph_pipelines.GraphReports`, if reports are wanted
        self.driver_cache: Any = None  # a run's `pipeline.DriverCache`, if wanted
        self.samplers: LruCache[Handle] = LruCache(_MOST_SAMPLERS)
        self._stack = ExitStack()
        family = physical.queue_family(graphics=enabled.graphics)
        assert family is not None, "choose() lets no such device through"
        self.queue_family = family
        flags, _, self.timestamp_valid_bits = physical.queue_families[family]  # 0 for a queue without timestamps
        self.has_graphics = bool(flags & vk.QUEUE_GRAPHICS_BIT)
        seen = vk.MEMORY_PROPERTY_HOST_VISIBLE_BIT | vk.MEMORY_PROPERTY_HOST_COHERENT_BIT
        own = seen | vk.MEMORY_PROPERTY_DEVICE_LOCAL_BIT
        # The host may use resources in place if host and device share memory (integrated and software devices).
        self.unified_memory = (
            not staging
            and physical.type in ("cpu", "integrated")
            and any(kind & own == own for kind, _ in physical.memory_types)
        )
        self.mapped_types = [self.unified_memory and kind & seen == seen for kind, _ in physical.memory_types]
        """For each memory type, whether the host reads and writes resources directly."""
        chain, _keep = chain_of(enabled.features)
        info = new(
            "VkDeviceCreateInfo",
            pQueueCreateInfos=[new("VkDeviceQueueCreateInfo", queueFamilyIndex=family, pQueuePriorities=[1.0])],
            ppEnabledExtensionNames=sorted(enabled.extensions),
        )
        info.pNext = ffi.cast("void*", chain)
        handle = ffi.new("VkDevice*")
        check(
            instance.fn.vkCreateDevice(physical.handle, info, ffi.NULL, handle), "vkCreateDevice", repr(physical.name)
        )
        self.handle: Handle = handle[0]
        self.fn = Functions(vulkan_api.device_function, self.handle)
        self._stack.callback(self.fn.vkDestroyDevice, self.handle, ffi.NULL)
        queue = ffi.new("VkQueue*")
        self.fn.vkGetDeviceQueue(self.handle, family, 0, queue)
        self.queue: Handle = queue[0]
        if log.is_enabled(__name__, "DEBUG"):
            extensions, features = sorted(enabled.extensions), sorted(map(str, enabled.features))
            log.debug(__name__, "opened %r with extensions %s and features %s", physical.name, extensions, features)

    @property
    def usable(self) -> bool:
        """Return whether the device accepts more work: it is not lost, and all earlier work finished."""
        return not (self.abandoned or self.lost)

    def create(self, stack: ExitStack, kind: str, name: str, info: Handle, purpose: str = "") -> Handle:
        """Return the handle of ``vkCreate<name>``, destroyed with ``stack`` and counted as a ``kind`` until then.

        Raises DeviceError or a subclass; the message names ``purpose``.
        """
        handle = type_source(f"Vk{name}").new(f"Vk{name}*")
        check(getattr(self.fn, f"vkCreate{name}")(self.handle, info, ffi.NULL, handle), f"vkCreate{name}", purpose)
        self.own(stack, kind, getattr(self.fn, f"vkDestroy{name}"), handle[0])
        return handle[0]

    def barrier(
        self, commands: Handle, before: tuple[int, int] = EVERYTHING, after: tuple[int, int] = EVERYTHING
    ) -> None:
        """Record a memory barrier between stages with accesses, by default between all work before and after it."""
        barrier = memory_barrier(before[1], after[1])
        self.fn.vkCmdPipelineBarrier(commands, before[0], after[0], 0, 1, barrier, 0, ffi.NULL, 0, ffi.NULL)

    def own(self, stack: ExitStack, kind: str, destroy: Handle, handle: Handle, memory_bytes: int = 0) -> None:
        """Count a new object of this kind. ``stack`` destroys the object and reduces the count."""
        self.live[kind] += 1
        self.memory_bytes += memory_bytes
        stack.callback(self._release, kind, destroy, handle, memory_bytes)

    def _release(self, kind: str, destroy: Handle, handle: Handle, memory_bytes: int) -> None:
        destroy(self.handle, handle, ffi.NULL)
        self.live[kind] -= 1
        self.memory_bytes -= memory_bytes

    def close(self) -> None:
        """Destroy the device. A second call does nothing.

        An abandoned device is left to the operating system: destroying objects in use is undefined, and their work may
        never finish.
        """
        if self.abandoned:
            self._stack.pop_all()
            return
        self._stack.close()


class CommandPool:
    """A VkCommandPool with buffers that can be recorded again separately."""

    def __init__(self, device: Device, stack: ExitStack) -> None:
        self._device = device
        info = new(
            "VkCommandPoolCreateInfo",
            flags=vk.COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
            queueFamilyIndex=device.queue_family,
        )
        self._handle = device.create(stack, "command pool", "CommandPool", info)
        self._begin = new("VkCommandBufferBeginInfo")

    def allocate(self) -> Handle:
        """Allocate a primary command buffer that lives as long as the pool."""
        buffer = ffi.new("VkCommandBuffer*")
        info = new("VkCommandBufferAllocateInfo", commandPool=self._handle, level=0, commandBufferCount=1)
        check(self._device.fn.vkAllocateCommandBuffers(self._device.handle, info, buffer), "vkAllocateCommandBuffers")
        return buffer[0]

    @contextmanager
    def recording(self, command_buffer: Handle) -> Iterator[None]:
        """Begin recording, which drops the earlier commands; end recording if the block ends well."""
        fn = self._device.fn
        check(fn.vkBeginCommandBuffer(command_buffer, self._begin), "vkBeginCommandBuffer")
        try:
            yield
            check(fn.vkEndCommandBuffer(command_buffer), "vkEndCommandBuffer")
        except BaseException:
            # the buffer may be kept, and is recorded from the beginning next time
            fn.vkResetCommandBuffer(command_buffer, 0)
            raise


# Signal handlers run between two waits. A signalled fence ends a wait at once, so the slice costs nothing.
_SLICE_S = 0.1
# Command buffers in one submission: preparation, upload, frame and readback.
_MOST_JOINED = 4
# Seconds that submitted work may take after Ctrl-C. If it takes longer, its objects are abandoned, not destroyed.
_GRACE_S = 2.0


class Submission:
    """A reusable fence, destroyed with ``stack``, and the submitted work that signals it, one submission at a time."""

    def __init__(self, device: Device, stack: ExitStack) -> None:
        self._device = device
        self._fence = ffi.new("VkFence*", device.create(stack, "fence", "Fence", new("VkFenceCreateInfo")))
        self._buffers = ffi.new("VkCommandBuffer[]", _MOST_JOINED)
        self._info = new("VkSubmitInfo")
        self._info.pCommandBuffers = self._buffers
        self._signalled = False
        self._pending = False

    def submit(self, *command_buffers: Handle, extra: Handle = None) -> None:
        """Submit up to four command buffers at once. ``extra`` is a structure for VkSubmitInfo::pNext."""
        fn = self._device.fn
        if self._signalled:
            check(fn.vkResetFences(self._device.handle, 1, self._fence), "vkResetFences")
            self._signalled = False
        count = self._info.commandBufferCount = len(command_buffers)
        self._buffers[0:count] = command_buffers
        self._info.pNext = ffi.NULL if extra is None else ffi.cast("void*", extra)
        self._pending = True  # set before the call: an interrupt right after it must find the work pending
        code = fn.vkQueueSubmit(self._device.queue, 1, self._info, self._fence[0])
        if code < 0:
            self._pending = False
            self._device.lost = self._device.lost or code == vk.ERROR_DEVICE_LOST
        check(code, "vkQueueSubmit")

    def wait(self, what: str, timeout_s: float | None = None) -> None:
        """Wait until the submitted work has finished.

        Raises FenceTimeoutError after ``timeout_s`` seconds, and DeviceLostError. The device is abandoned and must not
        be used again after a timeout, or if the work continues after an interrupt.
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
            self.finish_or_abandon()
            raise

    def finish_or_abandon(self) -> None:
        """Give the work a little time after a failure or an interrupt, and abandon the device if the work needs
        more."""
        if not self._pending or not self._device.usable:
            return
        self._device.abandoned = True  # until the work has finished; for good if a second Ctrl-C ends this wait
        deadline = time.monotonic() + _GRACE_S
        try:
            while not self._finished(_SLICE_S):
                if time.monotonic() >= deadline:
                    return
        except errors.DeviceLostError:
            pass  # the work ended with the device
        except errors.ScenarioRunnerError:
            return  # nobody can tell whether the work still runs
        self._device.abandoned = False

    def _finished(self, wait_s: float) -> bool:
        """Return whether the work has finished, after waiting at most ``wait_s`` seconds."""
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
