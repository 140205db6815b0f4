"""The constant section.

Since format 0.4 it is raw: the tag ``CONST00\\0``, a u64 count, one record per constant {u32 resource, i32 sparsity
dimension (-1 dense), u64 size, u64 offset from the end of the records}, then the payload. Before, it was a
FlatBuffers table, which only the library reads; those files are small, and their constants are copied. The payload of a
raw section on disk is not read here.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from scenario_runner.diagnostics import Diagnostic
from scenario_runner.errors import FileError
from scenario_runner.vgf.content import Content
from scenario_runner.vgf.header import Section
from scenario_runner.vgf.library import decoder
from scenario_runner.vgf.model import Constant

_TAG = b"CONST00\0"
_START_BYTES = 16
_RECORD = struct.Struct("<IiQQ")
_DENSE = -1
_ALIGNMENT = 8
_CUT = "the file is damaged or was cut short"


def read_constants(content: Content, section: Section, path: str) -> tuple[Constant, ...]:
    """Decode the constant section. Raises FileError when it is damaged."""
    if not section.size_bytes:
        return ()
    start = content.part(section.offset_bytes, min(_START_BYTES, section.size_bytes))
    if bytes(start[: len(_TAG)]) != _TAG:
        return _read_flatbuffer(content.part(section.offset_bytes, section.size_bytes), path)
    return _read_raw(content, section, start, path)


def raw_section(constants: Sequence[Constant]) -> list[bytes | memoryview]:
    """The parts of a section with these constants, whose data are in memory."""
    parts: list[bytes | memoryview] = []
    records, offset = [], 0
    for constant in constants:
        assert constant.data is not None, "the constants of files on disk are read before"
        sparsity = _DENSE if constant.sparsity_dimension is None else constant.sparsity_dimension
        records.append(_RECORD.pack(constant.resource_index, sparsity, constant.data.nbytes, offset))
        padding = bytes(-constant.data.nbytes % _ALIGNMENT)
        parts += [constant.data, padding]
        offset += constant.data.nbytes + len(padding)
    return [_TAG, len(constants).to_bytes(8, "little"), *records, *parts]


def _read_raw(content: Content, section: Section, start: memoryview, path: str) -> tuple[Constant, ...]:
    room = (section.size_bytes - _START_BYTES) // _RECORD.size
    count = struct.unpack_from("<Q", start, len(_TAG))[0] if room >= 0 else 1
    if count > room:
        message = f"{count} constants do not fit into the constant section of {section.size_bytes} bytes"
        raise FileError(Diagnostic("SR-FILE-013", "error", "/constants", message, _CUT, path=path))
    records = content.part(section.offset_bytes + _START_BYTES, count * _RECORD.size)
    payload_offset = section.offset_bytes + _START_BYTES + count * _RECORD.size
    payload_size = section.size_bytes - _START_BYTES - count * _RECORD.size
    constants, total_bytes = [], 0
    for i, (resource_index, sparsity, size, offset) in enumerate(_RECORD.iter_unpack(records)):
        if offset + size > payload_size:
            message = f"the data are said to be bytes {offset} to {offset + size} of {payload_size}"
            raise FileError(Diagnostic("SR-FILE-013", "error", f"/constants/{i}", message, _CUT, path=path))
        total_bytes += size
        place = payload_offset + offset
        data = content.part(place, size) if content.is_memory else None
        constants.append(_constant(i, resource_index, sparsity, size, path, content.start_bytes + place, data))
    # Overlapping constants would let a small file ask for any amount of memory.
    if total_bytes > payload_size:
        message = f"the constants overlap: they claim {total_bytes} bytes of {payload_size}"
        raise FileError(Diagnostic("SR-FILE-013", "error", "/constants", message, "the file is damaged", path=path))
    return tuple(constants)


def _read_flatbuffer(section: memoryview, path: str) -> tuple[Constant, ...]:
    table = decoder("CreateConstantDecoder", section, path, "constant")
    constants, room_bytes = [], section.nbytes
    for i in range(table.size()):
        view = table.getConstant(i)
        # Every constant costs its table even when it is empty, so the loop is bounded by the section's size too.
        room_bytes -= _RECORD.size // 2 + (0 if view is None else view.nbytes)
        if room_bytes < 0:
            message = f"the constants claim more than the {section.nbytes} bytes of their section"
            raise FileError(Diagnostic("SR-FILE-013", "error", "/constants", message, "the file is damaged", path=path))
        data = memoryview(b"" if view is None else bytes(view))
        sparsity = table.getConstantSparsityDimension(i)
        constants.append(_constant(i, table.getConstantMrtIndex(i), sparsity, data.nbytes, path, None, data))
    return tuple(constants)


def _constant(
    i: int, resource_index: int, sparsity: int, size: int, path: str, offset: int | None, data: memoryview | None
) -> Constant:
    if sparsity < _DENSE:
        message = f"the sparsity dimension is {sparsity}, expected -1 (dense) or an axis"
        raise FileError(Diagnostic("SR-FILE-013", "error", f"/constants/{i}/sparsity_dimension", message, path=path))
    return Constant(resource_index, None if sparsity == _DENSE else sparsity, size, offset, data)
