"""Records a frame's commands, with labels and timestamps. Each kind of operation has a recorder.

Labels and names use VK_EXT_debug_utils, if a layer or an option asks for them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from itertools import groupby
from typing import TYPE_CHECKING, Any

from scenario_runner.errors import log
from scenario_runner.plan.plan import FramePlan, Operation, Plan
from scenario_runner.vulkan import Handle, ffi
from scenario_runner.vulkan._generated import constants as vk
from scenario_runner.vulkan.layers import with_ml_emulation
from scenario_runner.vulkan.recording import BindingRecorder, DispatchRecorder, Recorder, RunObjects
from scenario_runner.vulkan.vulkan_api import chain, new

if TYPE_CHECKING:
    from scenario_runner.vulkan.measurements import Timestamps

END_OF_FRAME = "vr-marker,frame_end,type,application"
# In frames with more operations, this many consecutive operations share a label: recording stays fast.
_MANY, _GROUP = 1000, 32
_MOST_BYTES = 200  # of a name: uids can have any length
_TYPES = {
    "buffer": vk.OBJECT_TYPE_BUFFER,
    "image": vk.OBJECT_TYPE_IMAGE,
    "tensor": vk.OBJECT_TYPE_TENSOR_ARM,
}


class Labels:
    """Names and labels for a run. A label covers ``group`` operations."""

    def __init__(self, objects: RunObjects) -> None:
        self._objects = objects
        self._instance = objects.device.instance
        fn = objects.device.fn
        self._begin, self._end = fn.vkCmdBeginDebugUtilsLabelEXT, fn.vkCmdEndDebugUtilsLabelEXT
        self._insert, self._name = fn.vkCmdInsertDebugUtilsLabelEXT, fn.vkSetDebugUtilsObjectNameEXT
        self._label = new("VkDebugUtilsLabelEXT")
        self.group, self._form = 1, b"command %d: %b"

    def name_objects(self) -> None:
        """Give a run's objects their names in the scenario.

        Under the ML emulation layers, only buffers and images get names. Other handles belong to the layers, which
        would pass them to a driver that mistakes them for driver handles.
        """
        objects, plan = self._objects, self._objects.plan
        layered = with_ml_emulation(self._instance.layers)
        for uid, resource in objects.resources.items():
            kind = resource.plan.kind
            if not (layered and kind == "tensor"):
                self._set_name(_TYPES[kind], resource.handle, uid)
            for view in resource.views if kind == "image" and not layered else ():
                self._set_name(vk.OBJECT_TYPE_IMAGE_VIEW, view, uid)
        if layered:
            return
        pipelines: list[tuple[Any, Any]] = [
            *zip(plan.pipelines, objects.pipelines, strict=True),
            *zip(plan.graphics_pipelines, objects.graphics, strict=True),
            *zip(plan.graph_pipelines, objects.graphs, strict=True),
        ]
        for described, pipeline in pipelines:
            self._set_name(vk.OBJECT_TYPE_PIPELINE, pipeline.handle, _label_of(described))

    def _set_name(self, kind: int, handle: Handle, name: str) -> None:
        number = int(ffi.cast("uint64_t", handle))
        info = new("VkDebugUtilsObjectNameInfoEXT", objectType=kind, objectHandle=number, pObjectName=_short(name))
        self._name(self._objects.device.handle, info)  # a rejected name is not worth a failure

    def begin_frame(self, commands: Handle, frame: FramePlan) -> None:
        """Name the command buffer of a frame, and begin a label around all commands."""
        self._set_name(vk.OBJECT_TYPE_COMMAND_BUFFER, ffi.cast("uintptr_t", commands), frame.title)
        text = ffi.new("char[]", frame.title.encode())
        self._label.pLabelName = text
        self._begin(commands, self._label)
        # with the validation layer, which is slower than any label, each command has a label
        many = len(frame.operations) > _MANY and not self._instance.validation
        self.group, self._form = (_GROUP, b"from command %d: %b") if many else (1, b"command %d: %b")

    def end_frame(self, commands: Handle, *, ends: bool) -> None:
        """End the frame's label. With ``ends``, tell tools that the frame ends with this command buffer."""
        self._end(commands)
        if ends:
            text = ffi.new("char[]", END_OF_FRAME.encode())
            self._label.pLabelName = text
            self._insert(commands, self._label)

    @contextmanager
    def around(self, commands: Handle, operation: Operation) -> Iterator[None]:
        """Wrap an operation in a debug label.

        Validation messages inside the block refer to the operation's command. After an error, the label stays open.
        """
        if self._instance.validation:
            self._instance.subject = f"/commands/{operation.command}"
        text = ffi.new("char[]", self._form % (operation.command, _short(self._text_of(operation))))
        self._label.pLabelName = text
        self._begin(commands, self._label)
        yield
        self._end(commands)
        self._instance.subject = None

    def _text_of(self, operation: Operation) -> str:
        """Return the uid of an operation's shader, graph and segment, or the operation's kind and name."""
        plan, index = self._objects.plan, getattr(operation, "pipeline", -1)
        tables: dict[str, Any] = {"dispatch": plan.pipelines, "draw": plan.graphics_pipelines}
        table = tables.get(operation.kind, plan.graph_pipelines)
        if index < 0:
            return " ".join((operation.kind, *plan.names.get(operation.command, ())))
        return _label_of(table[index])


def _label_of(pipeline: Any) -> str:
    """Return a pipeline's label; a draw has the fragment shader's label."""
    return str(pipeline.fragment.label if hasattr(pipeline, "fragment") else pipeline.label)


def _short(name: str) -> bytes:
    """Encode and clip a name for Vulkan."""
    return name.replace("\0", " ").encode("utf-8", "replace")[:_MOST_BYTES]


def _recorder(kind: str) -> type[Recorder]:
    """Return the recorder class for a kind of operations."""
    if kind == "dispatch":
        return DispatchRecorder
    from scenario_runner.vulkan import recorders

    table: dict[str, type[Recorder]] = {
        "barrier": recorders.BarrierRecorder,
        "fill": recorders.TransferRecorder,
        "copy": recorders.TransferRecorder,
        "draw": recorders.DrawRecorder,
        "graph_dispatch": recorders.GraphRecorder,
        "optical_flow_dispatch": recorders.OpticalFlowRecorder,
    }
    return table[kind]


def record_frame(
    objects: RunObjects,
    command_buffer: Handle,
    frame: FramePlan,
    timestamps: Timestamps | None = None,
    labels: Labels | None = None,
) -> None:
    """Record every operation of ``frame`` in order, consecutive operations of a kind together."""
    runs = [list(run) for _, run in groupby(frame.operations, type)]
    recorders: dict[str, Any] = dict.fromkeys([run[0].kind for run in runs])
    alone = {"dispatch", "barrier"}.issuperset(recorders)
    for kind in recorders:
        recorders[kind] = _recorder(kind)(objects, command_buffer, alone)
    latest: BindingRecorder | None = None
    if timestamps is not None:
        timestamps.begin(command_buffer, runs)
    for run in runs:
        recorder = recorders[run[0].kind]
        if isinstance(recorder, BindingRecorder) and recorder is not latest:
            if latest is not None:
                recorder.forget_bindings()
            latest = recorder
        timed = timestamps if timestamps is not None and timestamps.measures(run) else None
        size = len(run) if labels is None else labels.group
        for start in range(0, len(run), size):
            part = run[start : start + size]
            with nullcontext() if labels is None else labels.around(command_buffer, part[0]):
                if timed is None:
                    recorder.record(part)
                else:
                    timed.record(command_buffer, part, recorder.record)
        if timed is not None:
            timed.write(command_buffer)


# Operations that messages about a crash name, and look at.
_MOST_NAMED, _MOST_LOOKED_AT = 3, 100
_WORDS = {"draw": "shader", "fill": "fill", "copy": "copy"}
# As scripts for the reference runner read them.
_TITLES = {
    "dispatch": "Dispatch compute",
    "graph_dispatch": "Dispatch graph",
    "optical_flow_dispatch": "Dispatch optical flow",
    "draw": "Dispatch graphics",
}


def log_dispatches(frame: FramePlan) -> None:
    """Log the dispatches of a frame, as scripts for the reference runner expect them."""
    for operation in frame.operations:
        if operation.kind in _TITLES:
            log.info(__name__, "%s (/commands/%d)", _TITLES[operation.kind], operation.command)


def work_of(plan: Plan, frame: FramePlan) -> tuple[str, ...]:
    """Describe a frame's work for `progress`: the first shaders and graphs, the JSON pointer and the kind."""
    if not frame.operations:
        return "ending a frame", frame.pointer
    first, last = frame.operations[0].command, frame.operations[-1].command
    names: dict[str, None] = {}
    for operation in frame.operations[:_MOST_LOOKED_AT]:
        if operation.kind == "dispatch" and operation.command not in plan.names:
            names[f"shader {plan.pipelines[operation.pipeline].label!r}"] = None
        elif operation.kind != "barrier":
            word = _WORDS.get(operation.kind, "graph")
            names.update((f"{word} {name!r}", None) for name in plan.names.get(operation.command, ()))
    shown = [*names][:_MOST_NAMED]
    if len(names) > len(shown) or len(frame.operations) > _MOST_LOOKED_AT:
        shown.append("…")
    what = f" ({', '.join(shown)})" if shown else ""
    if first == last:
        return f"running this command{what}", f"/commands/{first}", "running commands"
    return f"running the commands {first} to {last}{what}", "/commands", "running commands"


def parts_of(frame: FramePlan) -> list[FramePlan]:
    """Split a frame into parts for separate submissions: in each part, a flow's session sees a single set of images.

    At recording, the ML emulation layers write a dispatch's images into the session's descriptor sets. If a command
    buffer held two dispatches with different images, both would use the second's images.
    """
    parts: list[list[Operation]] = [[]]
    seen: dict[int, int] = {}
    for operation in frame.operations:
        if operation.kind == "optical_flow_dispatch":
            descriptors = operation.descriptors
            if seen.setdefault(operation.pipeline, descriptors) != descriptors:
                parts.append([])
                seen = {operation.pipeline: descriptors}
        parts[-1].append(operation)
    return [frame._replace(operations=tuple(part)) for part in parts]


def frame_boundary(objects: RunObjects, iteration: int, frame: FramePlan) -> Handle:
    """Return the VkFrameBoundaryEXT for capture tools, on a device or layer that supports it.

    Commands after the last boundary are a frame as well if a tool may be listening. Each iteration adds an offset
    to the scenario's frame ids, so that ids stay unique.
    """
    frames = objects.plan.frames
    beyond = 1 + max(other.frame_id for other in frames)
    taken = not frame.boundary and any(other.boundary and other.frame_id == frame.frame_id for other in frames)
    handles: dict[str, list[Handle]] = {"buffer": [], "image": [], "tensor": []}
    for uid in frame.captures:
        resource = objects.resources[uid]
        handles[resource.plan.kind].append(resource.handle)
    boundary = new(
        "VkFrameBoundaryEXT",
        flags=vk.FRAME_BOUNDARY_FRAME_END_BIT_EXT,
        frameID=(iteration * (beyond + 1) + (beyond if taken else frame.frame_id)) % (1 << 64),
        pBuffers=handles["buffer"],
        pImages=handles["image"],
    )
    tensors = handles["tensor"]
    return chain(boundary, new("VkFrameBoundaryTensorsARM", pTensors=tensors)) if tensors else boundary
