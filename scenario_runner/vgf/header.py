"""The 128-byte header of a VGF file: magic, format version, and where the four sections lie."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from scenario_runner.diagnostics import Diagnostic
from scenario_runner.errors import FileError

SIZE_BYTES = 128
_MAGIC = b"VGF1"
_LEGACY_MAGIC = struct.pack("<I", 0xF0E1D2C3)
_TOSA = b"TOSA"  # behind the offset that each FlatBuffer begins with
_OLDEST, _NEWEST = (0, 3), (0, 5)
_CONSTANTS_SIZE_AT = 72
_SECTION_NAMES = ("module", "model sequence", "model resource", "constant")
# FlatBuffers offsets are 32 bits wide and signed in places, so no buffer is larger than this.
_FLATBUFFER_LIMIT_BYTES = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the file that is known to lie within it."""

    name: str
    offset_bytes: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Header:
    """The format version and the sections in the order of the file."""

    version: tuple[int, int, int]
    modules: Section
    sequence: Section
    resources: Section
    constants: Section


def read_header(start: bytes | memoryview, file_size_bytes: int, path: str) -> Header:
    """Read and check the header, with which ``start`` begins.

    Raises FileError when this is not a VGF file, one of an unknown version, or a cut one.
    """

    def fail(message: str, help: str | None = None, code: str = "SR-FILE-013") -> FileError:
        return FileError(Diagnostic(code, "error", "/header", message, help, path=path))

    if len(start) < SIZE_BYTES:
        raise fail(f"the file has {file_size_bytes} bytes, but a VGF file begins with a header of {SIZE_BYTES} bytes")
    magic = bytes(start[:4])
    if start[4:8] == _TOSA:
        raise fail(
            "this is a TOSA model, which has to be converted to VGF first",
            help=f"scenario-runner convert {path} -o MODEL.vgf",
            code="SR-FILE-014",
        )
    if magic not in (_MAGIC, _LEGACY_MAGIC):
        raise fail(f"this is not a VGF file: it begins with {magic!r} where {_MAGIC!r} is expected")
    major, minor, patch = start[8:11]
    if not _OLDEST <= (major, minor) <= _NEWEST:
        raise fail(
            f"the file has the VGF format {major}.{minor}.{patch}, but formats 0.3 to 0.5 can be read",
            help="convert the model again with a model converter that writes one of these formats",
            code="SR-FILE-014",
        )
    numbers = struct.unpack_from("<8Q", start, 16)
    sections = []
    for name, offset, size in zip(_SECTION_NAMES, numbers[::2], numbers[1::2], strict=True):
        if offset < SIZE_BYTES or offset + size > file_size_bytes:
            raise fail(
                f"the {name} section is said to be bytes {offset} to {offset + size}, "
                f"but the file has {file_size_bytes} bytes, the header's {SIZE_BYTES} included",
                help="the file is damaged or was cut short",
            )
        if name != "constant" and size > _FLATBUFFER_LIMIT_BYTES:
            raise fail(f"the {name} section has {size} bytes, but at most {_FLATBUFFER_LIMIT_BYTES} are possible")
        sections.append(Section(name, offset, size))
    return Header((major, minor, patch), *sections)


def put_constants_size(file: bytearray, size_bytes: int) -> int:
    """Write the size of the constant section, which is the last one, into the header; the offset of that section."""
    struct.pack_into("<Q", file, _CONSTANTS_SIZE_AT, size_bytes)
    return int(struct.unpack_from("<Q", file, _CONSTANTS_SIZE_AT - 8)[0])
