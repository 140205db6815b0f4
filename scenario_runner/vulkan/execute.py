"""Carry out one plan on one device, frame by frame, with the objects that all runs on the device share."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, closing
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from scenario_runner import errors, log, progress
from scenario_runner.plan.plan import FramePlan, Plan
from scenario_runner.vulkan._generated import constants as vk
from scenario_runner.vulkan.device import Device
from scenario_runner.vulkan.layers import FRAME_BOUNDARY
from scenario_runner.vulkan.memory import MemoryBlocks
from scenario_runner.vulkan.pipeline import PipelineCache, allocate_sets
from scenario_runner.vulkan.recording import CommandPool, Labels, Prepared, Submission, record_frame
from scenario_runner.vulkan.resources import create_resources
from scenario_runner.vulkan.structs import chain, new
from scenario_runner.vulkan.transfer import Transfer

if TYPE_CHECKING:
    from scenario_runner.plan.special_records import GraphPipelinePlan, OpticalFlowPlan
    from scenario_runner.vulkan.frame_capture import FrameCapture
    from scenario_runner.vulkan.instrumentation import Instrumentation
    from scenario_runner.vulkan.optical_flow import FlowInputs
    from scenario_runner.vulkan.timestamps import Timestamps


class DeviceObjects:
    """The caches of an open device. `close` destroys them; it must come before the device's own."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self._stack = ExitStack()
        self.pipelines = PipelineCache(device)
        self._stack.callback(self.pipelines.close)
        self._stack.callback(device.samplers.close)
        self.memory = MemoryBlocks(device)
        self._stack.callback(self.memory.close)

    @cached_property
    def submission(self) -> Submission:
        """Open the submission of the frames of one run."""
        submission = Submission(self.device)
        self._stack.callback(submission.close)
        return submission

    @cached_property
    def transfer(self) -> Transfer:
        """The way in and out of resources, with its staging memory."""
        transfer = Transfer(self.device)
        self._stack.callback(transfer.close)
        return transfer

    def trim(self) -> None:
        """Drop what was used longest ago; only between runs, when nothing is in use."""
        self.pipelines.trim()
        self.device.samplers.trim()

    def close(self) -> None:
        """Destroy everything, unless the device is abandoned; calling it again does nothing."""
        if self.device.abandoned:
            self._stack.pop_all()
        self._stack.close()


# Pieces of resources, in order: (uid, bytes). A piece is valid until the next one is asked for.
Pieces = Generator[tuple[str, memoryview], None, None]
# Called at the end of each frame that a boundary ends or that captures: iteration (from 0), frame, what it captured.
OnFrame = Callable[[int, FramePlan, Pieces], None]
# Called once, at the end, with the outputs.
OnOutputs = Callable[[Pieces], None]


class RunOptions(NamedTuple):
    """Options of the run of a plan, and the functions that are called with its results.

    ``repeat`` iterations; before each, every buffer gets its initial bytes again unless ``keep_state``. A dry run does
    everything but submit the frames. ``timeout_s`` bounds the wait for each submission (None: no bound). ``capture``
    lets RenderDoc capture parts of the first iteration.

    ``on_measured`` has shaders measured, on a device that was opened with what `instrumentation.required` says, and is
    called with the measurements at the end. ``on_timed`` has every operation measured on the device, and is called with
    the timestamps and the bytes of each graph's session. ``on_graphs`` is called with the pipelines of the plan's
    graphs, not in a dry run.
    """

    repeat: int = 1
    keep_state: bool = False
    dry_run: bool = False
    timeout_s: float | None = None
    capture: FrameCapture | None = None
    on_frame: OnFrame | None = None
    on_outputs: OnOutputs | None = None
    on_measured: Callable[[Instrumentation], None] | None = None
    on_timed: Callable[[Timestamps, list[int]], None] | None = None
    on_graphs: Callable[[Sequence[Any]], None] | None = None


class Execution:
    """The Vulkan objects of one run; every one is released with ``stack``."""

    def __init__(self, objects: DeviceObjects, plan: Plan, stack: ExitStack) -> None:
        self.device = device = objects.device
        self.plan = plan
        progress.doing("creating its resources")
        watched = device.instance.watched
        with progress.phase("create", "resources"):
            self.resources = create_resources(device, objects.memory, stack, plan.resources.values())
        if plan.declared:
            from scenario_runner.vulkan.image_support import lacks_formatless

            images = (each for each in self.resources.values() if each.plan.kind == "image")
            if any(lacks_formatless(device, each.plan, each.tiling) for each in images):
                plan = plan.as_declared()
        pipelines = [objects.pipelines.compute(pipeline) for pipeline in watched(plan.pipelines)]
        graphs = [self._graph(objects.pipelines, graph) for graph in watched(plan.graph_pipelines)]
        graphics = [objects.pipelines.graphics(each) for each in watched(plan.graphics_pipelines)]
        if device.driver_cache is not None:
            device.driver_cache.pipelines_created()
        progress.doing("creating its descriptor sets")
        with progress.phase("create", "descriptor sets"):
            sets = allocate_sets(device, stack, plan.descriptor_lists, objects.pipelines.set_layouts, self.resources)
        self.graphs = graphs
        self._flows: list[Any] = [graph for graph in graphs if graph.kind == "optical_flow"]
        inputs: Mapping[int, FlowInputs] = {}
        if self._flows:
            from scenario_runner.vulkan.optical_flow import flow_inputs

            inputs = flow_inputs(device, stack, plan, self.resources, objects.pipelines.set_layouts)
        self._prepared = Prepared(device, self.resources, pipelines, graphs, sets, graphics, inputs)
        self._labels: Labels | None = None
        if device.instance.labels:
            self._labels = Labels(self._prepared, plan)
            self._labels.name_objects()
        self._sessions = stack.enter_context(ExitStack())
        self._transfer = objects.transfer
        self._pool = CommandPool(device, stack)
        self._submission = objects.submission
        self._stack = stack
        self.instrumentation: Instrumentation | None = None
        self.timestamps: Timestamps | None = None
        self._recorded: dict[int, Any] = {}
        self._spare: Any = None
        self._moved: set[str] = set()

    def _graph(self, pipelines: PipelineCache, plan: GraphPipelinePlan | OpticalFlowPlan) -> Any:
        """The pipeline of a graph or of an optical flow."""
        if plan.kind == "graph":
            from scenario_runner.vulkan.graph_pipelines import graph_pipeline

            return graph_pipeline(pipelines, plan, self.resources)
        from scenario_runner.vulkan.optical_flow import flow_pipeline

        return flow_pipeline(pipelines, plan)

    @property
    def session_bytes(self) -> list[int]:
        """The memory of the session of each graph pipeline of the plan."""
        return [graph.session_bytes for graph in self.graphs]

    def run(self, options: RunOptions) -> None:
        """Fill, run and read back; raises DeviceError, FileError and their kin, with the place of the frame."""
        try:
            self._run(options)
        except BaseException:
            self._submission.settle()
            raise

    def _run(self, options: RunOptions) -> None:
        if options.on_measured is not None:
            from scenario_runner.vulkan.instrumentation import Instrumentation

            self.instrumentation = Instrumentation(self.device, self.plan, self._stack)
        if options.on_timed is not None:
            from scenario_runner.vulkan.timestamps import Timestamps

            self.timestamps = Timestamps(self.device, self._stack)
        timer = progress.current()
        if options.capture is not None:
            options.capture.begin_run()
        self._fill("filling its resources", options.timeout_s)
        for iteration in range(options.repeat):
            if timer is not None:
                timer.iteration = iteration
            if not (iteration and options.keep_state):
                self._start_flows()
            if iteration and not options.keep_state:
                self._fill("filling its resources again", options.timeout_s)
            for index, frame in enumerate(self.plan.frames):
                progress.doing(*_work(frame))
                self._run_frame(iteration, index, frame, options)
                if not options.dry_run:
                    self._end_frame(iteration, index, frame, options)
        if timer is not None:
            timer.iteration = None
        if options.on_outputs is not None and not options.dry_run:
            # closed at once when the receiver fails: what is still being copied must end before its memory goes
            with (
                progress.phase("readback", "outputs"),
                closing(self._read([output.uid for output in self.plan.outputs], options.timeout_s)) as pieces,
            ):
                options.on_outputs(pieces)
        if options.capture is not None:
            options.capture.end_run()

    def _fill(self, what: str, timeout_s: float | None) -> None:
        progress.doing(what)
        with progress.phase("upload", "resources"):
            self._transfer.fill(list(self.resources.values()), timeout_s)

    def _run_frame(self, iteration: int, index: int, frame: FramePlan, options: RunOptions) -> None:
        """Record a frame, in parts where it must be, and but for a dry run let the device carry it out."""
        capture = None if iteration else options.capture
        parts = self._parts(frame)
        if capture is not None:
            parts = [each for part in parts for each in capture.parts(part)]
        # with optical flows, recording changes what was recorded before
        keep = options.repeat > 1 and len(parts) == 1 and not self._flows
        for part in parts:
            is_last = part is parts[-1]
            if capture is not None:
                capture.begin(part, first=part is parts[0])
            commands = self._commands(index, part, keep=keep, is_last=is_last)
            if options.dry_run:
                continue
            if log.hears(__name__, "INFO"):
                _tell(part)
            try:
                with progress.phase("submit", "frame", str(index)):
                    self._submission.submit(commands, self._boundary(iteration, frame) if is_last else None)
                with progress.phase("wait", "frame", str(index)):
                    self._submission.wait(frame.title, options.timeout_s)
                if self.timestamps is not None:
                    with progress.phase("readback", "timestamps"):
                        self.timestamps.collect(commands, iteration, index)
                if capture is not None:
                    capture.end(part, last=is_last)
            except errors.ScenarioRunnerError as error:
                raise error.at(pointer=frame.pointer) from None

    def _end_frame(self, iteration: int, index: int, frame: FramePlan, options: RunOptions) -> None:
        """Read back what a frame that has finished left behind."""
        progress.doing("reading results back")
        self._follow_layouts(frame)
        if self.instrumentation is not None:
            self.instrumentation.collect(iteration, index, frame)
        if options.on_frame is not None and (frame.boundary or frame.captures):
            with (
                progress.phase("readback", "frame", str(index)),
                closing(self._read(frame.captures, options.timeout_s)) as pieces,
            ):
                options.on_frame(iteration, frame, pieces)

    def _start_flows(self) -> None:
        """Let every optical flow begin anew: what it has seen in an earlier iteration is forgotten."""
        self._sessions.close()
        for flow in self._flows:
            flow.start(self._sessions)

    def _parts(self, frame: FramePlan) -> list[FramePlan]:
        """The parts of a frame that are submitted one after the other."""
        if not self._flows:
            return [frame]
        from scenario_runner.vulkan.optical_flow import parts_of

        return parts_of(frame)

    def _follow_layouts(self, frame: FramePlan) -> None:
        """Tell the images that barriers moved which layout the frame left them in."""
        for uid in self._moved - {uid for uid, _ in frame.layouts}:
            self.resources[uid].set_layouts(None)
        for uid, layouts in frame.layouts:
            self.resources[uid].set_layouts(layouts)
        self._moved = {uid for uid, _ in frame.layouts}

    def _commands(self, index: int, frame: FramePlan, *, keep: bool, is_last: bool) -> Any:
        """The command buffer of a frame, or of a part of it; recorded once where it is used again."""
        commands = self._recorded.get(index)
        if commands is not None:
            return commands
        commands = self._spare or self._pool.allocate()
        if keep:
            self._recorded[index] = commands
        else:
            self._spare = commands
        labels = self._labels
        with progress.phase("record", "frame", str(index)), self._pool.recording(commands):
            if labels is not None:
                labels.begin_frame(commands, frame)
            if self.instrumentation is None:
                record_frame(self._prepared, commands, frame, self.timestamps, labels)
            else:
                with self.instrumentation.recording(commands, index):
                    record_frame(self._prepared, commands, frame, self.timestamps, labels)
            # what the frame wrote is read next by the host or by a copy, whatever barriers the scenario asked for
            self.device.barrier(commands, after=_READBACK)
            if labels is not None:
                labels.end_frame(commands, ends=is_last and not self._has_boundaries)
        return commands

    @property
    def _has_boundaries(self) -> bool:
        return FRAME_BOUNDARY in self.device.enabled.extensions

    def _boundary(self, iteration: int, frame: FramePlan) -> Any:
        """VkFrameBoundaryEXT for capture tools, where the device or a layer knows it.

        Commands after the last boundary are a frame as well where a tool may be listening. Each iteration has frame ids
        of its own: those of the scenario, beyond those of the iteration before.
        """
        if not self._has_boundaries or not (frame.boundary or self._labels is not None):
            return None
        beyond = 1 + max(each.frame_id for each in self.plan.frames)
        taken = not frame.boundary and any(e.boundary and e.frame_id == frame.frame_id for e in self.plan.frames)
        number = beyond if taken else frame.frame_id
        boundary = new(
            "VkFrameBoundaryEXT",
            flags=vk.FRAME_BOUNDARY_FRAME_END_BIT_EXT,
            frameID=(iteration * (beyond + 1) + number) % (1 << 64),
            pBuffers=self._handles(frame, "buffer"),
            pImages=self._handles(frame, "image"),
        )
        tensors = self._handles(frame, "tensor")
        return chain(boundary, new("VkFrameBoundaryTensorsARM", pTensors=tensors)) if tensors else boundary

    def _handles(self, frame: FramePlan, kind: str) -> list[Any]:
        """Of what a frame captures of one kind."""
        plans = self.plan.resources
        return [self.resources[uid].handle for uid in frame.captures if plans[uid].kind == kind]

    def _read(self, uids: list[str] | tuple[str, ...], timeout_s: float | None) -> Pieces:
        for resource, view in self._transfer.read([self.resources[uid] for uid in uids], timeout_s):
            yield resource.plan.uid, view


_READBACK = (
    vk.PIPELINE_STAGE_TRANSFER_BIT | vk.PIPELINE_STAGE_HOST_BIT,
    vk.ACCESS_TRANSFER_READ_BIT | vk.ACCESS_HOST_READ_BIT,
)
# As scripts for the reference runner read them.
_TITLES = {
    "dispatch": "Dispatch compute",
    "graph_dispatch": "Dispatch graph",
    "optical_flow_dispatch": "Dispatch optical flow",
    "draw": "Dispatch graphics",
}


def _tell(frame: FramePlan) -> None:
    for operation in frame.operations:
        if operation.kind in _TITLES:
            log.info(__name__, "%s (/commands/%d)", _TITLES[operation.kind], operation.command)


def _work(frame: FramePlan) -> tuple[str, str]:
    """The work of a frame, and the JSON pointer to it."""
    if not frame.operations:
        return "ending a frame", frame.pointer
    first, last = frame.operations[0].command, frame.operations[-1].command
    if first == last:
        return "running this command", f"/commands/{first}"
    return f"running the commands {first} to {last}", "/commands"


def execute(objects: DeviceObjects, plan: Plan, options: RunOptions) -> None:
    """Carry out ``plan`` on the device of ``objects``; whatever it made is released, also when something fails.

    Raises DeviceError (or a kind of it), OutOfMemoryError, UnsupportedError, FileError from sources and callbacks.
    """
    device = objects.device
    with ExitStack() as stack:
        try:
            execution = Execution(objects, plan, stack)
            execution.run(options)
            if execution.instrumentation is not None and options.on_measured is not None:
                options.on_measured(execution.instrumentation)
            if execution.timestamps is not None and options.on_timed is not None:
                options.on_timed(execution.timestamps, execution.session_bytes)
            if options.on_graphs is not None and not options.dry_run:
                options.on_graphs(execution.graphs)
        finally:
            if device.abandoned:
                stack.pop_all()  # still in use by work that did not finish
            elif device.lost:
                # Other submissions may be on their way: the driver has to let go of what is about to be destroyed.
                # On a lost device this returns in finite time, whatever it returns.
                device.fn.vkDeviceWaitIdle(device.handle)
    objects.trim()
