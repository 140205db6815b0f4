"""Executes a plan on a device, frame by frame, with objects that all runs on the device share."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, nullcontext
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple

from scenario_runner import errors
from scenario_runner.errors import log
from scenario_runner.plan.plan import FramePlan, Plan, ResourcePlan
from scenario_runner.processes import progress
from scenario_runner.vulkan import Handle
from scenario_runner.vulkan._generated import constants as vk
from scenario_runner.vulkan.device import CommandPool, Device, LruCache, Submission
from scenario_runner.vulkan.frame_recording import (
    Labels,
    frame_boundary,
    log_dispatches,
    parts_of,
    record_frame,
    work_of,
)
from scenario_runner.vulkan.layers import FRAME_BOUNDARY
from scenario_runner.vulkan.memory import MemoryBlocks
from scenario_runner.vulkan.pipeline import PipelineCache
from scenario_runner.vulkan.recording import RunObjects, allocate_sets
from scenario_runner.vulkan.resources import Buffer, Resource, allocate_and_bind
from scenario_runner.vulkan.transfer import Copies, Pieces, Transfer

if TYPE_CHECKING:
    from scenario_runner.vulkan.capture_tools import FrameCapture
    from scenario_runner.vulkan.graph_pipelines import DataGraph
    from scenario_runner.vulkan.measurements import Instrumentation, Timestamps


class DeviceObjects:
    """The caches of an open device. `close` destroys their objects; call it before closing the device."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self._stack = ExitStack()
        self.pipelines = PipelineCache(device)
        self._stack.callback(self.pipelines.close)
        self._stack.callback(device.samplers.close)
        self.memory = MemoryBlocks(device)
        self._stack.callback(self.memory.close)
        self.runs: LruCache[Execution] = LruCache(_MOST_RUNS, _MOST_RUN_BYTES)
        self._stack.callback(self.runs.close)

    @cached_property
    def submission(self) -> Submission:
        """The submission for a run's frames."""
        return Submission(self.device, self._stack)

    @cached_property
    def transfer(self) -> Transfer:
        """The transfer of bytes into and out of resources, with staging memory."""
        return Transfer(self.device, self._stack)

    def trim(self) -> None:
        """Destroy the least recently used objects. Call it between runs, when no object is in use."""
        tables: tuple[LruCache[Any], ...] = (self.pipelines.shaders, self.pipelines.graphs, self.device.samplers)
        full = [table for table in tables if table.is_full]
        if full:
            self.runs.close()  # their commands may use the objects to destroy
        for table in (self.runs, *full):
            table.trim()

    def close(self) -> None:
        """Destroy all objects, unless the device is abandoned. A second call does nothing."""
        if self.device.abandoned:
            self._stack.pop_all()
        self._stack.close()


# Limits of the kept runs: their number, and the bytes of their resources and recorded commands.
_MOST_RUNS = 8
_MOST_RUN_BYTES = 64 << 20
_COMMAND_BYTES = 1 << 10  # a recorded command, about

# Called at the end of each frame with a boundary or captures: iteration (from 0), frame, captured pieces.
OnFrame = Callable[[int, FramePlan, Pieces], None]
# Called once, at the end, with the outputs.
OnOutputs = Callable[[Pieces], None]


class RunOptions(NamedTuple):
    """Options for running a plan, and functions that receive its results.

    The plan runs for ``repeat`` iterations. Before each iteration, every buffer gets the initial bytes again unless
    ``keep_state``. A dry run does everything except submitting the frames. ``timeout_s`` limits the wait for each
    submission (None: no limit). With ``capture``, RenderDoc captures parts of the first iteration. ``keep`` names the
    owner of several runs: resources and recorded commands stay for the owner's next run with equal shaders and sizes.

    ``on_measured`` asks for shader measurements, and receives them at the end. The device must be opened with the
    requirements from `measurements.instrumentation_required`. ``on_timed`` asks for timestamps around every operation,
    and receives them with the size of each graph's session in bytes. ``on_graphs`` receives the pipelines of the plan's
    graphs, except in a dry run.
    """

    repeat: int = 1
    keep_state: bool = False
    dry_run: bool = False
    timeout_s: float | None = None
    keep: Hashable = None
    capture: FrameCapture | None = None
    on_frame: OnFrame | None = None
    on_outputs: OnOutputs | None = None
    on_measured: Callable[[Instrumentation], None] | None = None
    on_timed: Callable[[Timestamps, list[int]], None] | None = None
    on_graphs: Callable[[Sequence[DataGraph]], None] | None = None


_NO_OPTIONS = RunOptions()


def create_resources(
    device: Device, memory: MemoryBlocks, stack: ExitStack, plans: Iterable[ResourcePlan]
) -> dict[str, Any]:
    """Create every resource of a plan with memory: a `Resource` for each uid.

    Raises OutOfMemoryError, UnsupportedError and others, with the place.
    """
    by_kind: dict[str, list[Any]] = {}
    resources: dict[str, Any] = {}
    for plan in plans:
        by_kind.setdefault(plan.kind, []).append(plan)
        resources[plan.uid] = None  # in the order of the plan
    created: list[Any] = device.instance.create_each(by_kind.get("buffer", ()), partial(Buffer, device, stack))
    if "image" in by_kind:
        from scenario_runner.vulkan.images import check_groups, create_images

        created += create_images(device, stack, by_kind["image"])
    resources.update((resource.plan.uid, resource) for resource in created)
    if "tensor" in by_kind:  # after the images: a tensor may share their memory
        from scenario_runner.vulkan.tensors import create_tensors

        tensors = create_tensors(device, stack, by_kind["tensor"], resources)
        resources.update((tensor.plan.uid, tensor) for tensor in tensors)
    if "image" in by_kind:
        check_groups(device, resources)
    allocate_and_bind(device, memory, stack, resources.values())
    return resources


class Execution:
    """The Vulkan objects for a run, and for further runs with other content. ``stack`` releases them."""

    def __init__(self, objects: DeviceObjects, plan: Plan, options: RunOptions, stack: ExitStack) -> None:
        self._device = device = objects.device
        self._plan, self._options = plan, options
        self.owner = options.keep
        self.size_bytes = sum(resource.size_bytes for resource in plan.resources.values())
        """Estimated memory for the resources and recorded commands."""
        progress.set_work("creating its resources")
        create_each = device.instance.create_each
        with progress.phase("create", "resources"):
            self._resources = resources = create_resources(device, objects.memory, stack, plan.resources.values())
        if plan.declared:
            from scenario_runner.vulkan.image_support import with_declared_formats

            plan = with_declared_formats(device, plan, resources)
        cache = objects.pipelines
        pipelines = create_each(plan.pipelines, cache.compute)
        graphs: list[DataGraph] = []
        if plan.graph_pipelines:
            from scenario_runner.vulkan.optical_flow import pipeline_of

            graphs = create_each(plan.graph_pipelines, partial(pipeline_of, cache, resources))
        graphics = create_each(plan.graphics_pipelines, cache.graphics)
        if device.driver_cache is not None:
            device.driver_cache.on_created(device.driver_cache)
        progress.set_work("creating its descriptor sets")
        with progress.phase("create", "descriptor sets"):
            sets = allocate_sets(cache, stack, plan.descriptor_lists, resources)
        self.graphs = graphs
        self._flows: list[DataGraph] = [graph for graph in graphs if graph.kind == "optical_flow"]
        bare = {uid: resource._replace(source=None) for uid, resource in plan.resources.items()}
        described = plan._replace(resources=bare)  # the content is dropped after the run
        self._objects = RunObjects(device, described, resources, pipelines, graphs, sets, graphics)
        self._labels: Labels | None = None
        if device.instance.labels:
            self._labels = Labels(self._objects)
            self._labels.name_objects()
        self._sessions = stack.enter_context(ExitStack())
        self._transfer = objects.transfer
        self._pool = CommandPool(device, stack)
        self._copies = objects.transfer.copies if options.keep is None else Copies(self._pool)
        self._submission = objects.submission
        self._has_boundaries = FRAME_BOUNDARY in device.enabled.extensions
        self._recorded: dict[int, tuple[Handle, FramePlan]] = {}
        self._spare: Handle = None
        self._moved: set[str] = set()
        self._joins = False
        self._filling: list[Handle] = []  # command buffers to submit with the next frame
        self._read: tuple[list[Resource], Pieces] | None = None  # the readback submitted with the latest frame
        self.instrumentation: Instrumentation | None = None
        self.timestamps: Timestamps | None = None
        if options.on_measured is not None or options.on_timed is not None:
            from scenario_runner.vulkan import measurements

            if options.on_measured is not None:
                self.instrumentation = measurements.Instrumentation(device, plan, stack)
            if options.on_timed is not None:
                self.timestamps = measurements.Timestamps(device, stack)

    def reuse_for(self, plan: Plan, options: RunOptions) -> None:
        """Take over the content, push constants and options of a further run."""
        self._plan, self._options = plan, options
        for uid, resource in self._resources.items():
            resource.plan = plan.resources[uid]

    def release_content(self) -> None:
        """Drop the content and the receivers of the latest run."""
        self.reuse_for(self._objects.plan, _NO_OPTIONS)

    def run(self) -> None:
        """Fill, run and read back. Raises DeviceError, FileError and similar errors, with the place of the frame."""
        options, timer = self._options, progress.current_clock()
        self._joins = self._may_join()
        try:
            if options.capture is not None:
                options.capture.begin_run()
            self._fill("filling its resources")
            for iteration in range(options.repeat):
                if timer is not None:
                    timer.iteration = iteration
                if self._flows and not (iteration and options.keep_state):
                    self._sessions.close()  # a flow must not remember images of an earlier iteration
                    for flow in self._flows:
                        flow.start(self._sessions)
                if iteration and not options.keep_state:
                    self._fill("filling its resources again")
                for index, frame in enumerate(self._plan.frames):
                    self._run_frame(iteration, index, frame)
                    if not options.dry_run:
                        self._end_frame(iteration, index, frame)
            if timer is not None:
                timer.iteration = None
            if options.on_outputs is not None and not options.dry_run:
                with progress.phase("readback", "outputs"), self._reading(self._outputs) as pieces:
                    options.on_outputs(pieces)
            if options.capture is not None:
                options.capture.end_run()
        except BaseException:
            self._submission.finish_or_abandon()
            raise

    def _fill(self, what: str) -> None:
        progress.set_work(what)
        with progress.phase("upload", "resources"):
            joined = self._copies if self._joins else None
            self._filling = self._transfer.fill(self._resources.values(), self._options.timeout_s, joined)

    def _may_join(self) -> bool:
        """Return whether a frame may share a submission with the upload before it and the readback after it.

        A tool or a measurement that observes submissions, and content that is filled again, need separate submissions.
        """
        options, instance, frames = self._options, self._device.instance, self._plan.frames
        tools = (options.capture, self._labels, instance.printer, self.instrumentation, self.timestamps)
        is_observed = progress.current_clock() is not None or any(tool is not None for tool in tools)
        is_bounded = self._has_boundaries and any(frame.boundary for frame in frames)
        is_simple = options.repeat == 1 and not options.dry_run and bool(frames) and not self._flows
        return is_simple and not is_observed and not is_bounded

    @property
    def _outputs(self) -> list[Resource]:
        return [self._resources[output.uid] for output in self._plan.outputs]

    def _reading(self, resources: list[Resource]) -> AbstractContextManager[Pieces]:
        """Read resources back, unless a frame's submission did. Close the pieces at once if the receiver fails."""
        if self._read is not None and self._read[0] == resources:
            pieces, self._read = self._read[1], None  # outputs may be the same resources as a frame's captures
            return closing(pieces)
        return closing(self._transfer.read(resources, self._options.timeout_s))

    def _record_readback(self, frame: FramePlan) -> list[Handle]:
        """Record reading back a frame's captures or the outputs. Return the command buffer, if it may join."""
        options, resources = self._options, []
        if options.on_frame is not None:
            resources = [self._resources[uid] for uid in frame.captures]
        if not resources and options.on_outputs is not None and frame is self._plan.frames[-1]:
            resources = self._outputs
        self._apply_layouts(frame)
        recorded = self._transfer.record_read(resources, self._copies)
        if recorded is None:
            return []
        self._read = resources, recorded[1]
        return [recorded[0]]

    def _run_frame(self, iteration: int, index: int, frame: FramePlan) -> None:
        """Record a frame, in parts if necessary, and submit it unless this is a dry run."""
        work = work_of(self._plan, frame)
        progress.set_work(*work)
        options = self._options
        capture = None if iteration else options.capture
        parts = parts_of(frame) if self._flows else [frame]
        printer = self._device.instance.printer
        if printer is not None:  # the layer does not tell which command a message belongs to
            parts = [frame._replace(operations=(operation,)) for operation in frame.operations] or [frame]
        if capture is not None:
            parts = [captured for part in parts for captured in capture.parts(part)]
        # with optical flows, recording changes earlier recordings
        keep = (options.repeat > 1 or options.keep is not None) and len(parts) == 1 and not self._flows
        for part in parts:
            is_last = part is parts[-1]
            if capture is not None:
                capture.begin(part, first=part is parts[0])
            commands = self._commands(index, part, keep=keep, is_last=is_last)
            if options.dry_run:
                continue
            if log.is_enabled(__name__, "INFO"):
                log_dispatches(part)
            ends = is_last and self._has_boundaries and (part.boundary or self._labels is not None)
            if printer is not None:
                printer.begin_operation(next(iter(part.operations), None), iteration)
            try:
                with progress.phase("submit", "frame", str(index)):
                    batch = [*self._filling, commands, *(self._record_readback(frame) if self._joins else ())]
                    self._filling = []
                    present = self._objects._replace(plan=self._plan)
                    boundary = frame_boundary(present, iteration, frame) if ends else None
                    self._submission.submit(*batch, extra=boundary)
                with progress.phase("wait", "frame", str(index)):
                    self._submission.wait(frame.title + "".join(work[0].partition(" (")[1:]), options.timeout_s)
                    if printer is not None:  # newer layers print on another thread; only this call waits for it
                        self._device.fn.vkQueueWaitIdle(self._device.queue)
                        printer.end_operation()
                if self.timestamps is not None:
                    with progress.phase("readback", "timestamps"):
                        self.timestamps.collect(commands, iteration, index)
                if capture is not None:
                    capture.end(part, last=is_last)
            except errors.ScenarioRunnerError as error:
                raise error.at(pointer=frame.pointer if frame.boundary else work[1]) from None

    def _end_frame(self, iteration: int, index: int, frame: FramePlan) -> None:
        """Read back the results of a finished frame."""
        progress.set_work("reading results back")
        self._apply_layouts(frame)
        if self.instrumentation is not None:
            self.instrumentation.collect(iteration, index, frame)
        if self._options.on_frame is not None and (frame.boundary or frame.captures):
            captured = [self._resources[uid] for uid in frame.captures]
            with progress.phase("readback", "frame", str(index)), self._reading(captured) as pieces:
                self._options.on_frame(iteration, frame, pieces)

    def _apply_layouts(self, frame: FramePlan) -> None:
        """Tell each image its layouts after the barriers of a frame."""
        layouts = dict(frame.layouts)
        for uid in self._moved.union(layouts):
            self._resources[uid].set_layouts(layouts.get(uid))
        self._moved = set(layouts)

    def _commands(self, index: int, frame: FramePlan, *, keep: bool, is_last: bool) -> Handle:
        """Return the command buffer for a frame or part. A buffer for repeated use is recorded once."""
        commands, recorded = self._recorded.get(index, (None, None))
        if recorded == frame:  # it has other push constants in another run
            return commands
        if commands is None:
            commands, self._spare = self._spare or self._pool.allocate(), None
        if keep:
            if recorded is None:
                self.size_bytes += _COMMAND_BYTES * len(frame.operations)
            self._recorded[index] = commands, frame
        else:
            self._spare = commands
        labels = self._labels
        with progress.phase("record", "frame", str(index)), self._pool.recording(commands):
            if labels is not None:
                labels.begin_frame(commands, frame)
            with nullcontext() if self.instrumentation is None else self.instrumentation.recording(commands, index):
                record_frame(self._objects, commands, frame, self.timestamps, labels)
            # The host or a copy reads the results next, whatever barriers the scenario has.
            self._device.barrier(commands, after=_READBACK)
            if labels is not None:
                labels.end_frame(commands, ends=is_last and not self._has_boundaries)
        return commands


_READBACK = (
    vk.PIPELINE_STAGE_TRANSFER_BIT | vk.PIPELINE_STAGE_HOST_BIT,
    vk.ACCESS_TRANSFER_READ_BIT | vk.ACCESS_HOST_READ_BIT,
)


def _content(plan: Plan) -> Hashable:
    """Reduce a plan to the facts that `Execution` makes objects from. Images without content are filled differently."""
    resources = plan.resources.values()
    shapes = [(resource._replace(source=None), resource.source is None) for resource in resources]
    pipelines = plan.pipelines, plan.graph_pipelines, plan.graphics_pipelines, *plan.declared.items()
    return *shapes, plan.descriptor_lists, *pipelines


def _can_keep(device: Device, plan: Plan, options: RunOptions) -> bool:
    """Return whether the objects of a run can stay: without measurements, reports, captures, labels and flows."""
    asked = options.capture, options.on_measured, options.on_timed, options.on_graphs, device.driver_cache
    flows = any(graph.kind == "optical_flow" for graph in plan.graph_pipelines)
    return not (options.dry_run or device.instance.labels or flows or any(part is not None for part in asked))


def execute(objects: DeviceObjects, plan: Plan, options: RunOptions) -> None:
    """Execute ``plan`` on the device of ``objects``. All objects are released, also after an error.

    After success, the objects of a run with `RunOptions.keep` stay with ``objects``.

    Raises DeviceError or a subclass, OutOfMemoryError, UnsupportedError, and FileError from sources and callbacks.
    """
    device = objects.device
    if options.keep is not None and not _can_keep(device, plan, options):
        options = options._replace(keep=None)
    with ExitStack() as stack:
        try:
            if options.keep is None:
                execution = Execution(objects, plan, options, stack)
            else:
                execution = _kept_execution(objects, plan, options, stack)
            execution.run()
            if execution.instrumentation is not None and options.on_measured is not None:
                options.on_measured(execution.instrumentation)
            if execution.timestamps is not None and options.on_timed is not None:
                options.on_timed(execution.timestamps, [graph.session_bytes for graph in execution.graphs])
            if options.on_graphs is not None and not options.dry_run:
                options.on_graphs(execution.graphs)
            if options.keep is not None:
                execution.release_content()
                stack.pop_all()
        finally:
            if device.abandoned:
                stack.pop_all()  # unfinished work still uses the objects
            elif device.lost:
                # The driver has to finish other submissions first. On a lost device this call ends too.
                device.fn.vkDeviceWaitIdle(device.handle)
    objects.trim()


def _kept_execution(objects: DeviceObjects, plan: Plan, options: RunOptions, stack: ExitStack) -> Execution:
    """Return an earlier run's execution, or a new execution, ready to run. ``stack`` drops it."""
    key = options.keep, _content(plan)
    execution = objects.runs.get(key, partial(Execution, objects, plan, options))
    stack.callback(objects.runs.drop, lambda kept: kept is execution)
    execution.reuse_for(plan, options)
    return execution
