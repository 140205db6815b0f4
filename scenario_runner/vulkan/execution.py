"""Carrying out one plan on one device, frame by frame."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, Any, NamedTuple

from scenario_runner import errors, progress
from scenario_runner.plan.model import BufferPlan, FramePlan, Plan, ResourcePlan
from scenario_runner.vulkan.api import ffi
from scenario_runner.vulkan.buffers import Buffer
from scenario_runner.vulkan.commands import CommandPool
from scenario_runner.vulkan.descriptors import allocate_sets
from scenario_runner.vulkan.pipelines import Pipeline
from scenario_runner.vulkan.placement import place
from scenario_runner.vulkan.recording import (
    ACCESS_HOST_READ,
    ACCESS_MEMORY_WRITE,
    ACCESS_TRANSFER_READ,
    STAGE_ALL_COMMANDS,
    STAGE_HOST,
    STAGE_TRANSFER,
    memory_barrier,
    record_frame,
)
from scenario_runner.vulkan.structs import chain, new
from scenario_runner.vulkan.submission import Submission

if TYPE_CHECKING:
    from scenario_runner.vulkan.device import Device
    from scenario_runner.vulkan.instrumentation import Instrumentation

# Pieces of resources, in order: (uid, bytes). A piece is valid until the next one is asked for.
Pieces = Generator[tuple[str, memoryview], None, None]
# Called at the end of each frame that a boundary ends: iteration (from 0), frame, what it captured.
OnFrame = Callable[[int, FramePlan, Pieces], None]
# Called once, at the end, with the outputs.
OnOutputs = Callable[[Pieces], None]

_FRAME_END = 0x1


class RunOptions(NamedTuple):
    """How a plan is run.

    ``repeat`` iterations; before each, every buffer gets its initial bytes again unless ``keep_state``. A dry run does
    everything but submit the frames. ``timeout_s`` bounds the wait for each submission (None: no bound).
    ``instrument`` measures shaders, on a device that was opened with what `instrumentation.required` says.
    """

    repeat: int = 1
    keep_state: bool = False
    dry_run: bool = False
    timeout_s: float | None = None
    instrument: bool = False


class Execution:
    """The Vulkan objects of one run; every one is released with ``stack``."""

    def __init__(self, device: Device, plan: Plan, stack: ExitStack) -> None:
        self.device = device
        self.plan = plan
        progress.doing("creating its resources")
        self.resources = create_resources(device, stack, plan.resources.values())
        self.pipelines: list[Pipeline] = [device.pipelines.get(pipeline) for pipeline in plan.pipelines]
        self.graphs = [device.graphs.get(graph, self.resources) for graph in plan.graph_pipelines]
        progress.doing("creating its descriptor sets")
        self.descriptor_sets = allocate_sets(
            device, stack, plan.descriptor_lists, device.pipelines.set_layouts, self.resources
        )
        self._pool = CommandPool(device, stack)
        self._submission = Submission(device)
        stack.callback(self._submission.close)
        self._stack = stack
        self.instrumentation: Instrumentation | None = None
        self._recorded: dict[int, Any] = {}
        self._spare: Any = None
        self._moved: set[str] = set()

    def run(self, options: RunOptions, on_frame: OnFrame | None, on_outputs: OnOutputs | None) -> None:
        """Fill, run and read back; raises DeviceError, FileError and their kin, with the place of the frame."""
        try:
            self._run(options, on_frame, on_outputs)
        except BaseException:
            self._submission.settle()
            raise

    def _run(self, options: RunOptions, on_frame: OnFrame | None, on_outputs: OnOutputs | None) -> None:
        if options.instrument:
            from scenario_runner.vulkan.instrumentation import Instrumentation

            self.instrumentation = Instrumentation(self.device, self.plan, self._stack)
        transfer = self.device.transfer
        everything = list(self.resources.values())
        progress.doing("filling its resources")
        transfer.fill(everything, options.timeout_s)
        for iteration in range(options.repeat):
            if iteration and not options.keep_state:
                progress.doing("filling its resources again")
                transfer.fill(everything, options.timeout_s)
            for index, frame in enumerate(self.plan.frames):
                progress.doing(*_work(frame))
                commands = self._commands(index, frame, keep=options.repeat > 1)
                if options.dry_run:
                    continue
                try:
                    self._submission.submit(commands, self._boundary(iteration, index, frame))
                    self._submission.wait(_name(frame, index), options.timeout_s)
                except errors.ScenarioRunnerError as error:
                    raise error.at(pointer=frame.pointer) from None
                progress.doing("reading results back")
                self._follow_layouts(frame)
                if self.instrumentation is not None:
                    self.instrumentation.collect(iteration, index, frame)
                if on_frame is not None and frame.boundary:
                    with closing(self._read(frame.captures, options.timeout_s)) as pieces:
                        on_frame(iteration, frame, pieces)
        if on_outputs is not None and not options.dry_run:
            # closed at once when the receiver fails: what is still being copied must end before its memory goes
            with closing(self._read([output.uid for output in self.plan.outputs], options.timeout_s)) as pieces:
                on_outputs(pieces)

    def _follow_layouts(self, frame: FramePlan) -> None:
        """Tell the images that barriers moved which layout the frame left them in."""
        for uid in self._moved - {uid for uid, _ in frame.layouts}:
            self.resources[uid].set_layouts(None)
        for uid, layouts in frame.layouts:
            self.resources[uid].set_layouts(layouts)
        self._moved = {uid for uid, _ in frame.layouts}

    def _commands(self, index: int, frame: FramePlan, *, keep: bool) -> Any:
        """The command buffer of a frame; recorded once where it is used again."""
        commands = self._recorded.get(index)
        if commands is not None:
            return commands
        commands = self._spare or self._pool.allocate()
        if keep:
            self._recorded[index] = commands
        else:
            self._spare = commands
        with self._pool.recording(commands):
            if self.instrumentation is None:
                record_frame(self, commands, frame)
            else:
                with self.instrumentation.recording(commands, index):
                    record_frame(self, commands, frame)
            # what the frame wrote is read next by the host or by a copy, whatever barriers the scenario asked for
            barrier = memory_barrier(ACCESS_MEMORY_WRITE, ACCESS_TRANSFER_READ | ACCESS_HOST_READ)
            self.device.fn.vkCmdPipelineBarrier(
                commands, STAGE_ALL_COMMANDS, STAGE_TRANSFER | STAGE_HOST, 0, 1, barrier, 0, ffi.NULL, 0, ffi.NULL
            )
        return commands

    def _boundary(self, iteration: int, index: int, frame: FramePlan) -> Any:
        """VkFrameBoundaryEXT for capture tools, where the device knows it and the scenario marks a boundary."""
        if not frame.boundary or "VK_EXT_frame_boundary" not in self.device.enabled.extensions:
            return None
        boundary = new(
            "VkFrameBoundaryEXT",
            flags=_FRAME_END,
            frameID=iteration * len(self.plan.frames) + index,
            pBuffers=self._handles(frame, "BufferPlan"),
            pImages=self._handles(frame, "ImagePlan"),
        )
        tensors = self._handles(frame, "TensorPlan")
        return chain(boundary, new("VkFrameBoundaryTensorsARM", pTensors=tensors)) if tensors else boundary

    def _handles(self, frame: FramePlan, kind: str) -> list[Any]:
        """Of what a frame captures of one kind."""
        plans = self.plan.resources
        return [self.resources[uid].handle for uid in frame.captures if type(plans[uid]).__name__ == kind]

    def _read(self, uids: list[str] | tuple[str, ...], timeout_s: float | None) -> Pieces:
        for resource, view in self.device.transfer.read([self.resources[uid] for uid in uids], timeout_s):
            yield resource.plan.uid, view


def create_resources(device: Device, stack: ExitStack, plans: Iterable[ResourcePlan]) -> dict[str, Any]:
    """Create every resource of a scenario and give it memory: a `Resource` for each uid.

    Raises OutOfMemoryError, UnsupportedError and others, with the place.
    """
    resources: dict[str, Any] = {}
    others = []
    for plan in plans:
        if isinstance(plan, BufferPlan):
            resources[plan.uid] = Buffer(device, stack, plan)
        else:
            others.append(plan)
    if not others:
        place(device, stack, resources.values())
        return resources
    from scenario_runner.plan.image_plan import ImagePlan

    images = [plan for plan in others if isinstance(plan, ImagePlan)]
    if images:
        from scenario_runner.vulkan.images import create_images

        resources.update(create_images(device, stack, images))
    tensors = [plan for plan in others if not isinstance(plan, ImagePlan)]
    if tensors:
        from scenario_runner.vulkan.tensors import create_tensors

        resources.update(create_tensors(device, stack, tensors, resources))
    place(device, stack, resources.values())
    return resources


def _work(frame: FramePlan) -> tuple[str, str]:
    """What is run with a frame, and the JSON pointer to it."""
    if not frame.operations:
        return "ending a frame", frame.pointer
    first, last = frame.operations[0].command, frame.operations[-1].command
    if first == last:
        return "running this command", f"/commands/{first}"
    return f"running the commands {first} to {last}", "/commands"


def _name(frame: FramePlan, index: int) -> str:
    return f"frame {frame.frame_id}" if frame.boundary else f"the work of frame {index}"


def execute(
    device: Device,
    plan: Plan,
    options: RunOptions,
    on_frame: OnFrame | None = None,
    on_outputs: OnOutputs | None = None,
    on_measured: Callable[[Instrumentation], None] | None = None,
) -> None:
    """Carry out ``plan`` on ``device``; whatever it made is released, also when something fails.

    ``on_measured`` is called at the end with what `RunOptions.instrument` asks for.

    Raises DeviceError (or a kind of it), OutOfMemoryError, UnsupportedError, FileError from sources and callbacks.
    """
    with ExitStack() as stack:
        try:
            execution = Execution(device, plan, stack)
            execution.run(options, on_frame, on_outputs)
            if execution.instrumentation is not None and on_measured is not None:
                on_measured(execution.instrumentation)
        finally:
            if device.abandoned:
                stack.pop_all()  # still in use by work that did not finish
            elif device.lost:
                # Other submissions may be on their way: the driver has to let go of what is about to be destroyed.
                # On a lost device this returns in finite time, whatever it returns.
                device.fn.vkDeviceWaitIdle(device.handle)
    device.pipelines.trim()
    if "graphs" in vars(device):
        device.graphs.trim()
    if "samplers" in vars(device):
        device.samplers.trim()
