"""Command buffers: the operations of a frame are recorded into one, which is submitted as often as needed.

Recording is the hot path of scenarios with many commands. Labels and names, where a layer or an option asks for them,
use VK_EXT_debug_utils. Waiting has a time limit and can be interrupted.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from scenario_runner import errors
from scenario_runner.plan.plan import Plan
from scenario_runner.plan.records import Dispatch
from scenario_runner.vulkan import Handle, ffi
from scenario_runner.vulkan._generated import constants as vk
from scenario_runner.vulkan.device import Device, memory_barrier
from scenario_runner.vulkan.pipeline import Pipeline
from scenario_runner.vulkan.structs import new
from scenario_runner.vulkan.vulkan_loader import check

if TYPE_CHECKING:
    from scenario_runner.vulkan.graph_pipelines import DataGraph


class Prepared(NamedTuple):
    """Operations name pipelines, graphs and descriptor lists by their index in the plan, resources by uid.

    ``pipelines`` are those of compute shaders, ``graphics`` those of draws, ``graphs`` `GraphPipeline` objects;
    ``descriptor_sets`` are (VkDescriptorSet*, count) of each list.
    """

    device: Device
    plan: Plan
    resources: Mapping[str, Any]
    pipelines: Sequence[Pipeline]
    graphs: Sequence[DataGraph]
    descriptor_sets: Sequence[tuple[Handle, int]]
    graphics: Sequence[Pipeline]


class Recorder:
    """Records the operations of one kind into the command buffer of one frame; the registry of kinds names it.

    ``alone`` says that the frame has nothing but dispatches of compute shaders and barriers: else a barrier after an
    operation has to cover the stages of other work as well. ``binds`` says whether it binds pipelines and descriptors.
    """

    binds: ClassVar[bool] = True

    def __init__(self, prepared: Prepared, commands: Handle, alone: bool) -> None:
        self.prepared = prepared
        self.commands = commands

    def record(self, operations: Iterable[Any]) -> None:
        """Record operations that follow each other, with the implicit barriers after them."""
        for operation in operations:
            self._record(operation)

    def _record(self, operation: Any) -> None:
        """Record one operation, and the barrier after it."""
        raise NotImplementedError

    def disturbed(self) -> None:
        """Called when another recorder may have bound something else."""


class DispatchRecorder(Recorder):
    """Records dispatches of compute shaders.

    Pipelines, descriptor sets and push constants that are already bound are not bound again; implicit barriers are
    global and order compute work with whatever follows in the same frame.
    """

    def __init__(self, prepared: Prepared, commands: Handle, alone: bool) -> None:
        super().__init__(prepared, commands, alone)
        if alone:
            later = (
                vk.ACCESS_SHADER_READ_BIT
                | vk.ACCESS_UNIFORM_READ_BIT
                | vk.ACCESS_SHADER_WRITE_BIT
                | vk.ACCESS_TRANSFER_READ_BIT
                | vk.ACCESS_TRANSFER_WRITE_BIT
            )
            self._everything = memory_barrier(vk.ACCESS_SHADER_WRITE_BIT, later)
            self._after_stages = vk.PIPELINE_STAGE_COMPUTE_SHADER_BIT | vk.PIPELINE_STAGE_TRANSFER_BIT
        else:  # graphs and draws have stages of their own
            later = vk.ACCESS_MEMORY_READ_BIT | vk.ACCESS_MEMORY_WRITE_BIT
            self._everything = memory_barrier(vk.ACCESS_MEMORY_WRITE_BIT, later)
            self._after_stages = vk.PIPELINE_STAGE_ALL_COMMANDS_BIT
        self.disturbed()

    def disturbed(self) -> None:
        self._bound: tuple[int, int, Handle, bytes | None] = (-1, -1, None, None)

    def record(self, operations: Iterable[Dispatch]) -> None:
        prepared, command_buffer, fn = self.prepared, self.commands, self.prepared.device.fn
        dispatch, bind_pipeline, bind_sets = fn.vkCmdDispatch, fn.vkCmdBindPipeline, fn.vkCmdBindDescriptorSets
        pipeline_barrier, push_constants = fn.vkCmdPipelineBarrier, fn.vkCmdPushConstants
        everything, after_stages, null = self._everything, self._after_stages, ffi.NULL
        bound_pipeline, bound_descriptors, bound_layout, bound_push = self._bound
        for operation in operations:
            if operation.pipeline != bound_pipeline:
                bound_pipeline = operation.pipeline
                pipeline = prepared.pipelines[bound_pipeline]
                bind_pipeline(command_buffer, vk.PIPELINE_BIND_POINT_COMPUTE, pipeline.handle)
                if pipeline.layout != bound_layout:
                    bound_layout = pipeline.layout
                    bound_descriptors = -1
                    bound_push = None
            if operation.descriptors != bound_descriptors:
                bound_descriptors = operation.descriptors
                sets, count = prepared.descriptor_sets[bound_descriptors]
                if count:
                    bind_sets(command_buffer, vk.PIPELINE_BIND_POINT_COMPUTE, bound_layout, 0, count, sets, 0, null)
            if operation.push_constants and operation.push_constants != bound_push:
                bound_push = operation.push_constants
                push_constants(
                    command_buffer,
                    bound_layout,
                    vk.SHADER_STAGE_COMPUTE_BIT,
                    0,
                    len(bound_push),
                    ffi.from_buffer(bound_push),
                )
            x, y, z = operation.workgroup_count
            dispatch(command_buffer, x, y, z)
            if operation.barrier_after:
                pipeline_barrier(
                    command_buffer,
                    vk.PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                    after_stages,
                    0,
                    1,
                    everything,
                    0,
                    null,
                    0,
                    null,
                )
        self._bound = (bound_pipeline, bound_descriptors, bound_layout, bound_push)


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

    def allocate(self) -> Handle:
        """A primary command buffer that lives as long as the pool."""
        buffer = ffi.new("VkCommandBuffer*")
        info = new("VkCommandBufferAllocateInfo", commandPool=self._handle, level=0, commandBufferCount=1)
        check(self._device.fn.vkAllocateCommandBuffers(self._device.handle, info, buffer), "vkAllocateCommandBuffers")
        return buffer[0]

    @contextmanager
    def recording(self, command_buffer: Handle) -> Iterator[None]:
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
# Time that submitted work may go on after Ctrl-C before its objects are given up instead of destroyed.
_GRACE_S = 2.0


class Submission:
    """One fence, destroyed with ``stack``, and the work it stands for; used again and again, one submission at a
    time."""

    def __init__(self, device: Device, stack: ExitStack) -> None:
        self._device = device
        self._fence = ffi.new("VkFence*", device.create(stack, "fence", "Fence", new("VkFenceCreateInfo")))
        self._buffers = ffi.new("VkCommandBuffer[1]")
        self._info = new("VkSubmitInfo")
        self._info.commandBufferCount = 1
        self._info.pCommandBuffers = self._buffers
        self._signalled = False
        self._pending = False

    def submit(self, command_buffer: Handle, extra: Handle = None) -> None:
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
