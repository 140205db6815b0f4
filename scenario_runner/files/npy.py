"""NumPy's .npy files: their headers, and reading and writing the content of buffers and tensors.

Bytes of C-order little-endian files go from the file into memory that somebody else owns (mapped device memory, say) by
the read system call alone. Big-endian items are swapped on the way; Fortran order is the one case that imports NumPy,
whose import costs more than everything else that a small run does before the driver starts. Items are never
interpreted: bfloat16 (``V2``), float8 (``V1``) and text pass through as their bytes.

Source: NumPy Enhancement Proposal 1 and ``numpy.lib.format`` (versions 1.0, 2.0 and 3.0).
"""

from __future__ import annotations

import array
import os
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache, partial
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

from scenario_runner.errors import FileError
from scenario_runner.files.codec import ContentWriter, part_to_fill
from scenario_runner.files.output import CreateOutput, OutputFile
from scenario_runner.files.source import SourceFile, file_error, read_start

if TYPE_CHECKING:
    import numpy

_damaged = partial(file_error, code="SR-FILE-007")
_unsupported = partial(file_error, code="SR-FILE-008")

MAGIC = b"\x93NUMPY"
_ALIGNMENT = 64  # of the payload within the file, as NumPy writes it
_HEADER_LIMIT_BYTES = 64 << 10  # headers of plain arrays have about 100 bytes
_RANK_LIMIT = 64  # NumPy's own
_SHOWN_CHARACTERS = 60
_HEADERS_KEPT = 64  # the files of a suite have few different ones
_ITEM_SIZES_BYTES = {
    "b": (1,),
    "i": (1, 2, 4, 8),
    "u": (1, 2, 4, 8),
    "f": (1, 2, 4, 8, 12, 16),  # 1 is how ml_dtypes saves float8_e5m2; NumPy alone cannot read it back
    "c": (8, 16, 24, 32),
    "m": (8,),
    "M": (8,),
}
_TIME_UNITS = ("Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "fs", "as", "generic")
_KIND_NAMES = "bool, integer, float, complex, raw bytes (V), text or time"


class NpyHeader(NamedTuple):
    """The header of a .npy file, checked against the size of the file.

    ``descr`` is the type as the file spells it (``'<f4'``), ``byte_order`` one of ``'<'``, ``'>'``, ``'|'`` (single
    bytes or raw), ``kind`` NumPy's letter (``b i u f c V S U m M``). ``shape`` counts items, outermost first in both
    orders; the payload is ``data_size_bytes`` bytes from ``data_offset`` on.
    """

    descr: str
    byte_order: str
    kind: str
    item_size_bytes: int
    fortran_order: bool
    shape: tuple[int, ...]
    data_offset: int
    data_size_bytes: int

    @property
    def swap_size_bytes(self) -> int:
        """Size of the units whose bytes must be reversed to get little-endian data; 1 when nothing is to be done."""
        if self.byte_order != ">":
            return 1
        return {"c": self.item_size_bytes // 2, "U": 4}.get(self.kind, self.item_size_bytes)

    @property
    def is_c_order(self) -> bool:
        """Return whether the payload lies in C order (true for Fortran order with at most one long axis, too)."""
        return not self.fortran_order or sum(length != 1 for length in self.shape) <= 1

    @property
    def is_plain(self) -> bool:
        """Return whether the payload is C-order little-endian as it stands, so that its bytes can be used untouched."""
        return self.swap_size_bytes == 1 and self.is_c_order


def parse_descr(descr: str) -> tuple[str, str, int]:
    """Byte order, kind and item size in bytes of a type like ``'<f4'``. Raises ``ValueError`` with the reason."""
    order, rest = (descr[0], descr[1:]) if descr[:1] in ("<", ">", "|", "=") else ("|", descr)
    kind, digits = rest[:1], rest[1:]
    if kind == "O":
        raise ValueError("Python objects (the file would need pickle, which can run any code)")
    if kind in ("m", "M") and digits.endswith("]"):
        count, _, unit = digits[:-1].partition("[")
        digits = count if unit.lstrip("0123456789") in _TIME_UNITS else ""
    if descr == "?":
        kind, digits = "b", "1"
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 9):
        raise ValueError(f"no type of NumPy's plain kinds ({_KIND_NAMES})")
    item_size_bytes = int(digits) * (4 if kind == "U" else 1)
    sizes = _ITEM_SIZES_BYTES.get(kind)
    if (
        item_size_bytes == 0
        or (sizes is None and kind not in ("V", "S", "U"))
        or (sizes and item_size_bytes not in sizes)
    ):
        raise ValueError(f"no type of NumPy's plain kinds ({_KIND_NAMES})")
    if kind in ("V", "S") or item_size_bytes == 1:
        order = "|"
    elif order != ">":
        order = "<"  # unmarked types are the machine's own, which is little-endian wherever this program runs
    return order, kind, item_size_bytes


def format_header(descr: str, shape: tuple[int, ...]) -> bytes:
    """Magic, version 1.0 and header of a C-order array, padded so that the payload starts at a multiple of 64.

    Raises ``ValueError`` for a type that `parse_descr` refuses, a negative length, or more axes than NumPy has.
    """
    parse_descr(descr)
    if len(shape) > _RANK_LIMIT or any(length < 0 for length in shape):
        raise ValueError(f"the shape {shape!r} has a negative length or more than {_RANK_LIMIT} axes")
    text = f"{{'descr': {descr!r}, 'fortran_order': False, 'shape': {tuple(map(int, shape))!r}, }}".encode("ascii")
    fixed = len(MAGIC) + 4
    padding = -(fixed + len(text) + 1) % _ALIGNMENT
    size = len(text) + padding + 1
    return MAGIC + b"\x01\x00" + size.to_bytes(2, "little") + text + b" " * padding + b"\n"


def parse_header(source: SourceFile) -> NpyHeader:
    """Read and check the header of an open .npy file. Raises `FileError`, also when the payload's size does not fit."""
    start = read_start(source, 12, MAGIC, "a .npy file", _damaged)
    version = tuple(start[6:8])
    if version not in ((1, 0), (2, 0), (3, 0)):
        shown = ".".join(map(str, version))
        raise _unsupported(source.path, f"has the .npy version {shown!r}, expected 1.0, 2.0 or 3.0")
    length_size = 2 if version == (1, 0) else 4
    text_offset = 8 + length_size
    if len(start) < text_offset:
        raise _damaged(source.path, f"ends after {source.size_bytes} bytes, within the .npy header (truncated?)")
    length = int.from_bytes(start[8:text_offset], "little")
    if length > source.size_bytes - text_offset:
        raise _damaged(
            source.path,
            f"ends after {source.size_bytes} bytes, but the .npy header says it takes {length} bytes (truncated?)",
        )
    if length > _HEADER_LIMIT_BYTES:
        raise _unsupported(source.path, f"has a .npy header of {length} bytes, expected at most {_HEADER_LIMIT_BYTES}")
    raw = source.read(length, text_offset)
    try:
        text = raw.decode("utf-8" if version == (3, 0) else "latin-1")
        descr, fortran_order, shape = _parse_dictionary(text)
    except ValueError as error:
        reason = "it is not UTF-8" if isinstance(error, UnicodeDecodeError) else str(error)
        raise _damaged(source.path, f"has a .npy header that cannot be read: {reason}") from error
    try:
        byte_order, kind, item_size_bytes = parse_descr(descr)
    except ValueError as error:
        raise _unsupported(source.path, f"holds items of the type {_shown(descr)}: {error}") from error
    data_offset = text_offset + length
    data_size_bytes = prod(shape) * item_size_bytes
    size_bytes = source.size_bytes - data_offset
    if data_size_bytes != size_bytes:
        what = "is truncated" if size_bytes < data_size_bytes else "has bytes after its data"
        raise _size_error(source.path, what, size_bytes, descr, shape, data_size_bytes)
    return NpyHeader(descr, byte_order, kind, item_size_bytes, fortran_order, shape, data_offset, data_size_bytes)


def _size_error(path: str, what: str, size_bytes: int, descr: str, shape: tuple[int, ...], expected: int) -> FileError:
    shown = str(shape) if len(shape) <= 8 else f"({', '.join(map(str, shape[:8]))}, ...)"
    size = f"{expected} bytes" if expected < 1 << 63 else "more bytes than any file has"
    return _damaged(
        path, f"{what}: {size_bytes} bytes follow the header, expected {size} for shape {shown} of {descr!r}"
    )


def _shown(text: str) -> str:
    return repr(text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "...")


# The header is a Python dictionary literal of three known keys. Nothing is evaluated.
_KEY = re.compile(r"""(["'])([^"'\\]*)\1[ \n\t]*:[ \n\t]*""")
_VALUES = {
    "descr": (re.compile(r"""["']([^"'\\]*)["']"""), "a quoted type"),
    "fortran_order": (re.compile("(True|False)"), "True or False"),
    "shape": (re.compile(r"\(([^()]*)\)"), "a tuple like '(3,)'"),
}
_NEXT = re.compile(r"[ \n\t]*(?:,[ \n\t]*|(?=\}))")
_LENGTH = re.compile(r"(0+|[1-9][0-9]*)L?")  # Python 2 wrote long integers with an L


@lru_cache(_HEADERS_KEPT)
def _parse_dictionary(text: str) -> tuple[str, bool, tuple[int, ...]]:
    text = text.rstrip(" \n\t\r")
    values: dict[str, str] = {}
    at = 1
    if not text.startswith("{"):
        raise _unexpected(text, 0, "'{'")
    while not text.startswith("}", at):
        key = _KEY.match(text, at)
        if key is None:
            raise _unexpected(text, at, "a key in quotes")
        name = key[2]
        if name not in _VALUES:
            raise ValueError(f"unknown key {_shown(name)}, expected 'descr', 'fortran_order' and 'shape'")
        if name in values:
            raise ValueError(f"the key {name!r} appears twice")
        pattern, expected = _VALUES[name]
        value = pattern.match(text, key.end())
        if value is None and name == "descr" and text.startswith(("[", "("), key.end()):
            raise ValueError("the items are structured (several fields each), expected one plain type like '<f4'")
        if value is None:
            raise _unexpected(text, key.end(), expected)
        values[name] = value[1]
        following = _NEXT.match(text, value.end())
        if following is None:
            raise _unexpected(text, value.end(), "',' or '}'")
        at = following.end()
    if at + 1 != len(text):
        raise _unexpected(text, at + 1, "the end")
    for name in _VALUES:
        if name not in values:
            raise ValueError(f"the key {name!r} is missing")
    return values["descr"], values["fortran_order"] == "True", _parse_shape(values["shape"])


def _parse_shape(text: str) -> tuple[int, ...]:
    *parts, last = [part.strip(" \n\t") for part in text.split(",")]
    if last and not parts:
        raise ValueError("the shape is one number in brackets, expected a tuple like '(3,)'")
    if last:
        parts.append(last)
    if len(parts) > _RANK_LIMIT:
        raise ValueError(f"the shape has more than {_RANK_LIMIT} axes")
    lengths = []
    for part in parts:
        match = _LENGTH.fullmatch(part)
        if match is None and part.startswith("-"):
            raise ValueError("the shape has a negative length")
        if match is None:
            raise ValueError(f"the shape has the length {_shown(part)}, expected a number")
        if len(match[1]) > 19:
            raise ValueError(f"the shape has a length of {len(match[1])} digits")
        lengths.append(int(match[1]))
    return tuple(lengths)


def _unexpected(text: str, at: int, expected: str) -> ValueError:
    shown_text = _shown(text[at:]) if at < len(text) else "the end"
    return ValueError(f"expected {expected} at character {at + 1}, found {shown_text}")


def read_header(path: str | os.PathLike[str]) -> NpyHeader:
    """The checked header of a .npy file; the payload is not read. Raises `FileError`."""
    with SourceFile(path) as source:
        return parse_header(source)


def read_array(path: str | os.PathLike[str]) -> numpy.ndarray[Any, Any]:
    """The whole file as a new C-order little-endian array (imports NumPy). Raises `FileError`."""
    import numpy

    with NpyReader(path) as reader:
        header = reader.header
        try:
            dtype = numpy.dtype(header.descr).newbyteorder("<")
        except TypeError as error:  # long doubles of another machine
            raise file_error(
                reader.path, f"holds items of the type {header.descr!r}: {error}", code="SR-FILE-008"
            ) from error
        array = numpy.empty(header.shape, dtype)
        reader.read_into(array.reshape(-1).view("u1").data)
    return array


def write_npy(
    path: str | os.PathLike[str],
    descr: str,
    shape: Sequence[int],
    chunks: Iterable[bytes | bytearray | memoryview],
    *,
    create: CreateOutput = OutputFile,
) -> None:
    """Write a C-order .npy file (version 1.0) whose payload is ``chunks`` one after the other; see `NpyWriter`."""
    with NpyWriter(path, descr, shape, create=create) as writer:
        for chunk in chunks:
            writer.write(chunk)


class NpyReader:
    """An open .npy file whose ``header`` has been checked, and its ``identity``; a context manager."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._source = SourceFile(path)
        try:
            self.header = parse_header(self._source)
        except BaseException:
            self._source.close()
            raise
        self.path = self._source.path
        self.identity = self._source.identity
        self._converted: memoryview | None = None

    def read_into(self, destination: memoryview, offset: int = 0, size: int | None = None) -> int:
        """Put ``size`` bytes of the payload, from byte ``offset`` of it on, at the start of ``destination``.

        The payload counts as C-order and little-endian, whatever the file has; for the rest see
        `ImageReader.read_into`.
        """
        header = self.header
        view = part_to_fill(destination, offset, size, header.data_size_bytes)
        if header.is_plain:
            self._source.read_into(view, header.data_offset + offset)
        elif header.is_c_order:
            self._read_swapped(view, offset)
        else:
            view[:] = self._in_c_order()[offset : offset + len(view)]
        return len(view)

    def close(self) -> None:
        """Close the file; may be called twice."""
        self._source.close()
        self._converted = None

    def __enter__(self) -> NpyReader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _read_swapped(self, view: memoryview, offset: int) -> None:
        unit = self.header.swap_size_bytes
        end = offset + len(view)
        first = offset - offset % unit  # whole units around the range asked for
        data = self._source.read(end + -end % unit - first, self.header.data_offset + first)
        view[:] = _swapped(data, unit)[offset - first : end - first]

    def _in_c_order(self) -> memoryview:
        """All of a Fortran-order payload: any part of it touches all of the file."""
        if self._converted is None:
            import numpy

            header = self.header
            data = _swapped(self._source.read(header.data_size_bytes, header.data_offset), header.swap_size_bytes)
            items = numpy.frombuffer(data, f"V{header.item_size_bytes}").reshape(header.shape, order="F")
            self._converted = memoryview(items.tobytes())
        return self._converted


class NpyWriter(ContentWriter):
    """A C-order .npy file (version 1.0) being written.

    ``descr`` is a little-endian type like ``'<f4'``, ``'|i1'`` or ``'<V2'``; ``create`` makes the file. Raises
    ``ValueError`` for a type or shape that no file can have.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        descr: str,
        shape: Sequence[int],
        *,
        create: CreateOutput = OutputFile,
    ) -> None:
        order, _, size_bytes = parse_descr(descr)
        if order == ">":
            raise ValueError(f"the type {descr!r} is big-endian, only little-endian payloads are written")
        header = format_header(descr, tuple(shape))
        for length in shape:
            size_bytes *= length
        super().__init__(create(path, len(header) + size_bytes), header, size_bytes)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self._append(data)


def _swapped(data: bytes, unit: int) -> bytes | bytearray:
    """``data`` with the bytes of each ``unit`` of them reversed."""
    if unit == 1:
        return data
    code = {2: "H", 4: "I", 8: "Q"}.get(unit)
    if code is not None:
        items = array.array(code, data)
        items.byteswap()
        return items.tobytes()
    result = bytearray(len(data))
    for index in range(unit):
        result[index::unit] = data[unit - 1 - index :: unit]
    return result
