"""The commands dispatch_compute, dispatch_barrier, mark_boundary, fill and copy, as plan operations.

Source for fill and copy: Vulkan specification, "Clear Commands" and "Copy Commands".
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from math import prod
from operator import itemgetter
from typing import Any, Final

from scenario_runner.errors.text import counted
from scenario_runner.files.vk_formats import Format
from scenario_runner.plan.command_parts import (
    BindingPlanner,
    CommandContext,
    CommandResolver,
    Declared,
    content_of_binding,
    declared_by,
)
from scenario_runner.plan.image_records import ImagePlan, Transfer, TransferPart
from scenario_runner.plan.plan import AnyBarrier, Barrier, Operation, ResourcePlan, frame_folder
from scenario_runner.plan.records import (
    BarrierScope,
    BufferBarrier,
    DescriptorList,
    Dispatch,
    MemoryBarrier,
    Span,
    TensorBarrier,
    overlap,
)
from scenario_runner.scenario import Copy, CopyPlace, DispatchBarrier, DispatchCompute, Fill, MarkBoundary
from scenario_runner.scenario.inline_contents import STRUCT_CODES

_WHOLE_SIZE = 2**64 - 1  # VK_WHOLE_SIZE: everything from the offset on
_FAR_MORE = 4  # times as many workgroups as elements; rounding up gives a few too many
_WORD_BYTES: Final = 4
_LARGEST_FLOAT: Final = 3.4028234663852886e38
_LARGEST_HALF: Final = 65504.0
_LARGEST_UNSIGNED_FLOAT: Final = 64512.0  # with ten bits
_COLOR: Final = ("color",)


class DispatchResolver(CommandResolver):
    """Resolves dispatch_compute. Equal dispatches share their pipelines, descriptors and push constants."""

    def __init__(self, context: CommandContext) -> None:
        super().__init__(context)
        self._declared: dict[str, Declared] = {}
        self._known: dict[Hashable, Dispatch | None] = {}

    def resolve(self, command: DispatchCompute, index: int) -> tuple[Dispatch, ...]:
        tables, images = self.context.tables, self.context.layouts
        if images is not None:
            images.check_bindings(command, index)
        key = (command.shader_ref, command.push_data_ref, tuple(map(content_of_binding, command.bindings)))
        if key not in self._known:
            self._known[key] = self._dispatch(command, index)
        known = self._known[key]
        if known is None:
            return ()
        if tables.pipelines[known.pipeline].label != command.shader_ref:  # a shader with equal content came first
            tables.names[index] = (command.shader_ref,)
        x, y, z = (*command.rangeND, 1, 1)[:3]
        if not (x and y and z) or images is not None:
            self._check_count(command, index, (x, y, z))
        return (known._replace(workgroup_count=(x, y, z), barrier_after=command.implicit_barrier, command=index),)

    def _check_count(self, command: DispatchCompute, index: int, workgroups: tuple[int, int, int]) -> None:
        """Warn of a dispatch without workgroups, or with far more workgroups than the images have texels."""
        context, shader = self.context, self.context.shaders[command.shader_ref]
        place = f"{context.scenario.command_pointer(index)}/rangeND"
        if not all(workgroups):
            message = (
                f"shader {shader.uid!r} runs in {' x '.join(map(str, workgroups))} workgroups, so no invocation runs"
            )
            help = "write at least 1 in each entry, or remove the command"
            context.problems.warn("SR-DISPATCH-001", place, message, help)
        parts = [part for binding in command.bindings for _, _, part in binding.parts()]
        bound = [(context.tables.resources.get(part.resource_ref), part.lod) for part in parts]
        amounts = [(plan.extent(lod), plan) for plan, lod in bound if plan is not None]
        images = [(amount, plan.uid) for amount, plan in amounts if plan.kind == "image"]
        count = prod(workgroups)
        if images and count > _FAR_MORE * max(amount for amount, _ in amounts):
            amount, uid = max(images, key=itemgetter(0))
            texels = f"{amount} texel{'' if amount == 1 else 's'}"
            message = f"{count} workgroups of shader {shader.uid!r} run for image {uid!r}, which has {texels}"
            size = " x ".join(map(str, shader.local_size))
            help = f"rangeND counts workgroups, not invocations: a workgroup of this shader has {size} of them"
            context.problems.warn("SR-DISPATCH-002", place, message, help)

    def _dispatch(self, command: DispatchCompute, index: int) -> Dispatch | None:
        """Resolve the first dispatch with these bindings. Return None after an error."""
        scenario, problems, tables, shaders = self.context[:4]
        shader = shaders.get(command.shader_ref)
        if shader is None:
            return None
        pointer = scenario.command_pointer(index)
        declared = self._declared.get(shader.uid)
        if declared is None:
            declared = self._declared[shader.uid] = declared_by([shader], shader.pointer, problems)
        bindings = command.bindings
        planner = BindingPlanner(declared, tables.resources, pointer, problems, self.context.readonly)
        bound = planner.plan(bindings)
        place = f"{pointer}/push_data_ref"
        push_constants = self.context.push_constants.bytes_for([shader], command.push_data_ref, pointer, place)
        if declared.layouts is None:
            return None
        if self.context.image_uses is not None:
            shader = self.context.image_uses.fit_shader(shader, bindings, pointer, problems)
        layouts = declared.layouts_for(bound, tables, pointer)
        pipeline = shader.pipeline(layouts, shader.push_constants_size)
        indices = tables.pipelines.add(pipeline), tables.lists.add(DescriptorList(layouts, bound))
        return Dispatch(*indices, (1, 1, 1), push_constants or b"", command.implicit_barrier, index)


class BarrierResolver(CommandResolver):
    """Resolves dispatch_barrier."""

    def resolve(self, command: DispatchBarrier, index: int) -> tuple[Barrier, ...]:
        scenario, resources, layouts = self.context.scenario, self.context.tables.resources, self.context.layouts
        barriers: list[AnyBarrier] = []
        for uid in command.memory_barrier_refs:
            barriers.append(MemoryBarrier(_scope(scenario.resource(uid))))
        for uid in command.buffer_barrier_refs:
            barrier: Any = scenario.resource(uid)
            buffer = resources.get(barrier.buffer_resource)
            if buffer is not None:
                size = buffer.size_bytes - barrier.offset if barrier.size == _WHOLE_SIZE else barrier.size
                barriers.append(BufferBarrier(_scope(barrier), buffer.uid, barrier.offset, size))
        if layouts is not None:
            for uid in command.image_barrier_refs:
                barriers += layouts.barriers(scenario.resource(uid), scenario.resource_pointer(uid))
        for uid in command.tensor_barrier_refs:
            barrier = scenario.resource(uid)
            if barrier.tensor_resource in resources:
                barriers.append(TensorBarrier(_scope(barrier), barrier.tensor_resource))
        return (Barrier(tuple(barriers), index),) if barriers else ()


def _scope(barrier: Any) -> BarrierScope:
    return BarrierScope(barrier.src_stage, barrier.dst_stage, barrier.src_access, barrier.dst_access)


class BoundaryResolver(CommandResolver):
    """Resolves mark_boundary."""

    def __init__(self, context: CommandContext) -> None:
        super().__init__(context)
        self._known: dict[int, tuple[int, int]] = {}  # frame id → the frame's first command, and the command count

    def resolve(self, command: MarkBoundary, index: int) -> Iterable[Operation]:
        context, tables = self.context, self.context.tables
        number = len(tables.frames) if command.frame_id is None else command.frame_id
        self._warn_of_duplicate(number, index)
        captures = tuple(dict.fromkeys(uid for uid in command.resources if uid in tables.resources))
        tables.end_frame(captures, number, True, context.scenario.command_pointer(index), context.layouts)
        return ()

    def _warn_of_duplicate(self, number: int, index: int) -> None:
        context = self.context
        first, count = self._known.get(number, (index, 0))
        self._known[number] = first, count + 1
        if count:
            other = f"{context.scenario.command_pointer(first)} has the frame id {number}, too"
            message = f"{other}; this frame is captured into the folder {frame_folder(number, count + 1)!r}"
            help = "give each frame an id of its own: capture tools expect it"
            context.problems.warn("SR-FRAME-001", context.scenario.command_pointer(index), message, help)


class TransferResolver(CommandResolver):
    """Resolves the commands fill and copy."""

    def __init__(self, context: CommandContext) -> None:
        super().__init__(context)
        self._uses = Counter(uid for command in context.scenario.commands for _, uid, _ in command.references())

    def resolve(self, command: Fill | Copy, index: int) -> tuple[Transfer, ...]:
        problems = self.context.problems
        before, pointer = len(problems.errors), self.context.scenario.command_pointer(index)
        if isinstance(command, Fill):
            name, transfer = command.resource_ref, self._fill(command, index, pointer)
        else:
            name = f"{command.from_.resource_ref} to {command.to.resource_ref}"
            transfer = self._copy(command, index, pointer)
        self.context.tables.names[index] = (command.debug_name or name,)
        return () if transfer is None or len(problems.errors) > before else (transfer,)

    def _fill(self, fill: Fill, index: int, pointer: str) -> Transfer | None:
        """Return the operation; None after an error."""
        error, resource = self.context.problems.error, self.context.tables.resources.get(fill.resource_ref)
        target = self._part(fill, fill.size, resource, pointer, _WORD_BYTES)
        if resource is None or target is None:
            return None
        what = f"a fill of {resource.kind} {resource.uid!r}"
        if resource.kind == "buffer" and target.size_bytes % _WORD_BYTES:
            message = f"{what} has the size {target.size_bytes}, which is not a multiple of {_WORD_BYTES}"
            help = f"give a size of {target.size_bytes // _WORD_BYTES * _WORD_BYTES}"
            error("SR-COPY-001", f"{pointer}/size", message, help)
        try:
            if isinstance(resource, ImagePlan):
                data = _clear_value(resource.format, fill.value)
            else:
                data = _word(fill.dtype, fill.value)
        except ValueError as failure:
            error("SR-COPY-003", f"{pointer}/value", f"{what} {failure}")
            return None
        return Transfer("fill", target, None, data, fill.implicit_barrier, index)

    def _copy(self, copy: Copy, index: int, pointer: str) -> Transfer | None:
        """Return the operation; None after an error."""
        error, resources = self.context.problems.error, self.context.tables.resources
        read, written = resources.get(copy.from_.resource_ref), resources.get(copy.to.resource_ref)
        source = self._part(copy.from_, copy.size, read, f"{pointer}/from", _alignment(written))
        if read is None or written is None or source is None:
            return None
        target = self._part(copy.to, source.size_bytes, written, f"{pointer}/to", _alignment(read))
        if target is None:
            return None
        for image, key in ((read, "from"), (written, "to")):
            if isinstance(image, ImagePlan) and (image.format.is_compressed or len(image.format.aspects) > 1):
                message = f"image {image.uid!r} of {image.format.name} cannot be copied"
                help = "choose a format that is not compressed and has no stencil beside depth"
                error("SR-COPY-003", f"{pointer}/{key}", message, help)
        if isinstance(read, ImagePlan) and isinstance(written, ImagePlan):
            has, needs = (_description(*pair) for pair in ((read, source), (written, target)))
            if has != needs:
                message = f"{read.level_name(copy.from_.lod)} has {has}; {written.level_name(copy.to.lod)} has {needs}"
                error("SR-COPY-003", pointer, message, "copy between levels of one format and size")
        elif source.size_bytes != target.size_bytes:
            has = f"{source.size_bytes} bytes of buffer {read.uid!r} are copied to image {written.uid!r}"
            message = f"{has}, whose mip level {copy.to.lod} has {target.size_bytes}"
            error("SR-COPY-003", pointer, message, f"give a size of {target.size_bytes}")
        (memory, span), (other_memory, other_span) = _place(read, source), _place(written, target)
        if memory == other_memory and overlap(span, other_span):
            message = f"the copy reads bytes of {read.uid!r} that it also writes through {written.uid!r}"
            error("SR-COPY-002", pointer, f"{message}: the result is undefined", "copy through another buffer")
        self._warn_if_unread(written, pointer)
        return Transfer("copy", target, source, b"", copy.implicit_barrier, index)

    def _warn_if_unread(self, written: ResourcePlan, pointer: str) -> None:
        """Warn of a copy to a resource that no other command, output or memory group uses."""
        context, uid = self.context, written.uid
        is_output = uid in context.outputs or getattr(context.scenario.resource(uid), "dst", None)
        if self._uses[uid] == 1 and written.group is None and not is_output:
            message = f"the copy to {written.kind} {uid!r} has no effect: nothing reads it"
            context.problems.warn("SR-COPY-004", f"{pointer}/to", message, "give it a dst, or remove the command")

    def _part(
        self, place: Fill | CopyPlace, size: int | None, resource: ResourcePlan | None, pointer: str, alignment: int
    ) -> TransferPart | None:
        """Return the part of a resource that begins at a place with this pointer; None after an error."""
        context, error = self.context, self.context.problems.error
        if resource is None:
            return None  # planning the resource has reported the error
        if isinstance(resource, ImagePlan):
            if context.layouts is not None:
                context.layouts.check_shader_access(resource.uid, place.lod, pointer)
            parts = [part for part in resource.parts if part.level == place.lod]
            size_bytes = parts[-1].end_bytes - parts[0].offset_bytes
            return TransferPart(resource.uid, parts[0].offset_bytes, size_bytes, place.lod)
        left = resource.size_bytes - place.offset
        if left < (size or 1):
            asked = "" if size is None else f"{size} bytes from "
            message = f"buffer {resource.uid!r} has {resource.size_bytes} bytes, got {asked}offset {place.offset}"
            error("SR-COPY-001", pointer, message)
            return None
        if place.offset % alignment:
            message = f"the offset {place.offset} in buffer {resource.uid!r} is not a multiple of {alignment}"
            error("SR-COPY-001", f"{pointer}/offset", message)
        return TransferPart(resource.uid, place.offset, size or left)


def _alignment(other: ResourcePlan | None) -> int:
    """Return the alignment of a buffer's offset in a copy from or to another resource."""
    if not isinstance(other, ImagePlan):
        return 1
    return other.format.block_size_bytes if other.format.aspects == _COLOR else _WORD_BYTES


def _description(image: ImagePlan, part: TransferPart) -> str:
    level = image.part_of(part.level or 0)
    return f"{level.width} x {level.height} texels of {image.format.name}"


def _place(resource: ResourcePlan, part: TransferPart) -> tuple[tuple[bool, str], Span]:
    """Return the memory of a part, and the part's bytes there."""
    memory = (False, resource.uid) if resource.group is None else (True, resource.group)
    first = resource.offset_bytes + part.offset_bytes
    return memory, (first, first + part.size_bytes)


def _word(dtype: str, value: Sequence[float]) -> bytes:
    """Return the bytes of a 32-bit number. Raise ValueError with the end of a sentence."""
    if len(value) > 1:
        raise ValueError(f"takes one number, got {len(value)}")
    (number,) = value
    try:
        return struct.pack(f"<{STRUCT_CODES[dtype]}", number)
    except (struct.error, OverflowError):
        raise ValueError(f"cannot hold {number} as {dtype}") from None


def _clear_value(format: Format, value: Sequence[float]) -> bytes:
    """Return a VkClearColorValue or VkClearDepthStencilValue. Raise ValueError with the end of a sentence."""
    if format.is_compressed:
        raise ValueError(f"is not possible: {format.name} is compressed")
    channels = "RGBA" if format.aspects == _COLOR else "DS"
    names = channels if format.aspects == _COLOR else [name for name in channels if name in format.channels]
    if len(value) > len(names):
        raise ValueError(f"takes {counted(len(names), 'number')} at most, got {len(value)}")
    given: dict[str, float] = {**dict.fromkeys(channels, 0), "A": 1}
    for name, number in zip(names, value, strict=False):
        if name in format.channels:
            low, high, is_whole = _range(format, name)
            if not low <= number <= high or (is_whole and number != int(number)):
                kind = "integers" if is_whole else "numbers"
                raise ValueError(f"gives {name} the value {number}; {format.name} holds {kind} from {low} to {high}")
            given[name] = int(number) if is_whole else number
    if channels == "DS":
        return struct.pack("<fI", given["D"], given["S"])
    code = {"uint": "I", "sint": "i"}.get(format.numeric, "f")
    return struct.pack(f"<4{code}", *(given[name] for name in channels))


def _range(format: Format, channel: str) -> tuple[float, float, bool]:
    """Return the least and greatest value of a channel, and whether the values are integers."""
    bits = min(format.channel_bits[format.channels.index(channel)], 32)
    numeric = {"D": "unorm", "S": "uint"}.get(channel, format.numeric)
    if numeric in ("unorm", "srgb", "snorm"):
        return -1 if numeric == "snorm" else 0, 1, False
    if numeric in ("uint", "sint", "uscaled", "sscaled"):
        signed = int(numeric.startswith("s"))
        count = 2 ** (bits - signed)
        return -count * signed, count - 1, numeric in ("uint", "sint")
    if numeric == "ufloat":
        return 0, _LARGEST_UNSIGNED_FLOAT, False
    largest = _LARGEST_HALF if bits == 16 else _LARGEST_FLOAT
    return -largest, largest, False
