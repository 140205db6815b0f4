"""The commands fill and copy, as plan operations.

Source: Vulkan specification, "Clear Commands" and "Copy Commands".
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Sequence
from typing import Final

from scenario_runner.errors.text import counted
from scenario_runner.files.byte_data import Span, overlap
from scenario_runner.files.vk_formats import Format
from scenario_runner.plan.command_parts import CommandContext, CommandResolver
from scenario_runner.plan.image_records import ImagePlan, Transfer, TransferPart
from scenario_runner.plan.plan import ResourcePlan
from scenario_runner.scenario import Copy, CopyPlace, Fill
from scenario_runner.scenario.inline_contents import STRUCT_CODES

_WORD_BYTES: Final = 4
_LARGEST_FLOAT: Final = 3.4028234663852886e38
_LARGEST_HALF: Final = 65504.0
_LARGEST_UNSIGNED_FLOAT: Final = 64512.0  # with ten bits
_COLOR: Final = ("color",)


class TransferResolver(CommandResolver):
    """Resolves fill and copy."""

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
        self._warn_if_lost(written, pointer)
        return Transfer("copy", target, source, b"", copy.implicit_barrier, index)

    def _warn_if_lost(self, written: ResourcePlan, pointer: str) -> None:
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
