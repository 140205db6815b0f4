"""NumPy's .npy files: buffers, tensors, and single-level images.

An image has the shape [1, height, width, items] or [height, width, items], with items as in
`scenario_runner.files.vk_formats.Format`. A single item holds both depth and stencil if they fit.

C-order little-endian bytes go from the file straight into the caller's memory, such as mapped device memory. Big-endian
items are swapped. Only Fortran order imports NumPy, since that takes longer than everything else in a small run before
the driver starts. Items are never interpreted: bfloat16 (``V2``), float8 (``V1``) and text stay bytes.

Source: NumPy Enhancement Proposal 1 and ``numpy.lib.format`` (versions 1.0, 2.0 and 3.0).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache, partial
from math import prod
from typing import NamedTuple

from scenario_runner.errors import file_error
from scenario_runner.files import codec
from scenario_runner.files.input import NPY_SIGNATURE, SourceFile, read_start
from scenario_runner.files.output import CreateOutput, OutputFile
from scenario_runner.files.vk_formats import Format

_damaged = partial(file_error, code="SR-FILE-007")
unsupported = partial(file_error, code="SR-FILE-008")

_ALIGNMENT = 64  # of the payload within the file, as NumPy writes
_HEADER_LIMIT_BYTES = 64 << 10  # headers of plain arrays have about 100 bytes
_RANK_LIMIT = 64  # NumPy's own
_SHOWN_CHARACTERS = 60
_HEADERS_KEPT = 64  # the files of a suite have few different headers
_ITEM_SIZES_BYTES = {
    "b": (1,),
    "i": (1, 2, 4, 8),
    "u": (1, 2, 4, 8),
    "f": (1, 2, 4, 8, 12, 16),  # ml_dtypes saves float8_e5m2 with the size 1, which NumPy cannot read
    "c": (8, 16, 24, 32),
    "m": (8,),
    "M": (8,),
}
_TIME_UNITS = ("Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "fs", "as", "generic")
_KIND_NAMES = "bool, integer, float, complex, raw bytes (V), text or time"


class NpyHeader(NamedTuple):
    """The header of a .npy file, checked against the file size.

    ``descr`` is the type in the file's spelling (``'<f4'``), ``byte_order`` is ``'<'``, ``'>'`` or ``'|'`` (single or
    raw bytes), and ``kind`` is NumPy's letter (``b i u f c V S U m M``). ``shape`` counts items, outermost first in
    both orders. The payload is ``data_size_bytes`` long and begins at ``data_offset``.
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
        """The size of units with reversed bytes; 1 for little-endian data."""
        if self.byte_order != ">":
            return 1
        return {"c": self.item_size_bytes // 2, "U": 4}.get(self.kind, self.item_size_bytes)

    @property
    def is_c_order(self) -> bool:
        """True if the payload lies in C order, also for Fortran order with at most one long axis."""
        return not self.fortran_order or sum(length != 1 for length in self.shape) <= 1

    @property
    def is_plain(self) -> bool:
        """True if the payload is in C order and little-endian, so that no byte must be changed."""
        return self.swap_size_bytes == 1 and self.is_c_order


def parse_descr(descr: str) -> tuple[str, str, int]:
    """Return byte order, kind and item size in bytes of a type like ``'<f4'``. Raises ``ValueError`` with a reason."""
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
        order = "<"  # types without a mark are native; this program only runs on little-endian machines
    return order, kind, item_size_bytes


def format_header(descr: str, shape: tuple[int, ...]) -> bytes:
    """Encode magic, version 1.0 and header of a C-order array. Padding aligns the payload to 64 bytes.

    Raises ``ValueError`` for a type that `parse_descr` refuses, a negative length, or more axes than NumPy has.
    """
    parse_descr(descr)
    if len(shape) > _RANK_LIMIT or any(length < 0 for length in shape):
        raise ValueError(f"the shape {shape!r} has a negative length or more than {_RANK_LIMIT} axes")
    text = f"{{'descr': {descr!r}, 'fortran_order': False, 'shape': {tuple(map(int, shape))!r}, }}".encode("ascii")
    fixed = len(NPY_SIGNATURE) + 4
    padding = -(fixed + len(text) + 1) % _ALIGNMENT
    size = len(text) + padding + 1
    return NPY_SIGNATURE + b"\x01\x00" + size.to_bytes(2, "little") + text + b" " * padding + b"\n"


def parse_header(source: SourceFile) -> NpyHeader:
    """Read and check the header of an open .npy file. Raises `FileError`, also for a payload of another size."""
    start = read_start(source, 12, NPY_SIGNATURE, "a .npy file", _damaged)
    version = tuple(start[6:8])
    if version not in ((1, 0), (2, 0), (3, 0)):
        shown = ".".join(map(str, version))
        raise unsupported(source.path, f"has the .npy version {shown!r}, expected 1.0, 2.0 or 3.0")
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
        raise unsupported(source.path, f"has a .npy header of {length} bytes, expected at most {_HEADER_LIMIT_BYTES}")
    raw = source.read(length, text_offset)
    try:
        text = raw.decode("utf-8" if version == (3, 0) else "latin-1")
        descr, fortran_order, shape = _parse_dictionary(text)
    except ValueError as error:
        if _RECORDS.match(raw):
            raise unsupported(source.path, "holds records, expected items of one type") from error
        reason = "it is not UTF-8" if isinstance(error, UnicodeDecodeError) else str(error)
        raise _damaged(source.path, f"has a .npy header that cannot be read: {reason}") from error
    try:
        byte_order, kind, item_size_bytes = parse_descr(descr)
    except ValueError as error:
        raise unsupported(source.path, f"holds items of the type {_shown(descr)}: {error}") from error
    data_offset = text_offset + length
    data_size_bytes = prod(shape) * item_size_bytes
    size_bytes = source.size_bytes - data_offset
    if data_size_bytes != size_bytes:
        what = "is truncated" if size_bytes < data_size_bytes else "has bytes after its data"
        size = f"{data_size_bytes} bytes" if data_size_bytes < 1 << 63 else "more bytes than any file has"
        lengths = str(shape) if len(shape) <= 8 else f"({', '.join(map(str, shape[:8]))}, ...)"
        expected = f"expected {size} for shape {lengths} of {descr!r}"
        raise _damaged(source.path, f"{what}: {size_bytes} bytes follow the header, {expected}")
    return NpyHeader(descr, byte_order, kind, item_size_bytes, fortran_order, shape, data_offset, data_size_bytes)


def _shown(text: str) -> str:
    return repr(text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "...")


# The header is a Python dictionary literal of three known keys. Nothing is evaluated.
_ENTRY = re.compile(
    r"""[ \n\t]*(["'])(?:descr\1[ \n\t]*:[ \n\t]*(["'])(?P<descr>[^"'\\]*)\2"""
    r"""|fortran_order\1[ \n\t]*:[ \n\t]*(?P<fortran_order>True|False)"""
    r"""|shape\1[ \n\t]*:[ \n\t]*\((?P<shape>[^()]*)\))[ \n\t]*(?:,[ \n\t]*|(?=\}))"""
)
_RECORDS = re.compile(rb"""\{[ \n\t]*(["'])descr\1[ \n\t]*:[ \n\t]*\[[ \n\t]*\(""")  # NumPy sorts the keys
_SHAPE = re.compile(r"(?:[ \n\t]*(?:0+|[1-9][0-9]*)L?[ \n\t]*,)*[ \n\t]*")  # Python 2 wrote long integers with an L
_LENGTH = re.compile("[0-9]+")
_EXPECTED = "expected {'descr': a type in quotes, 'fortran_order': True or False, 'shape': a tuple like (3,)}"


@lru_cache(_HEADERS_KEPT)
def _parse_dictionary(text: str) -> tuple[str, bool, tuple[int, ...]]:
    text = text.rstrip(" \n\t\r")
    values: dict[str, str] = {}
    at = 1 if text.startswith("{") else 0
    while at and (entry := _ENTRY.match(text, at)) and entry.lastgroup not in values:
        values[entry.lastgroup or ""] = entry[entry.lastgroup or ""]
        at = entry.end()
    if text[at:] != "}" or len(values) < 3:
        raise ValueError(f"{_EXPECTED}, found {_shown(text[at:])} at character {at + 1}")
    shape = values["shape"]
    lengths = _LENGTH.findall(shape)
    if not _SHAPE.fullmatch(shape if len(lengths) < 2 or shape.rstrip().endswith(",") else shape + ","):
        raise ValueError(f"{_EXPECTED}, found the shape {_shown(shape)}")
    if len(lengths) > _RANK_LIMIT:
        raise ValueError(f"the shape has more than {_RANK_LIMIT} axes")
    return values["descr"], values["fortran_order"] == "True", tuple(map(int, lengths))


def read_header(path: str | os.PathLike[str]) -> NpyHeader:
    """Read and check the header of a .npy file. Raises `FileError`."""
    with SourceFile(path) as source:
        return parse_header(source)


def write_npy(
    path: str | os.PathLike[str],
    descr: str,
    shape: Sequence[int],
    chunks: Iterable[bytes | bytearray | memoryview],
    *,
    create: CreateOutput = OutputFile,
) -> None:
    """Write a .npy file with the payload ``chunks`` in sequence; see `NpyCodec.create_array`."""
    with NpyCodec().create_array(path, descr, shape, create) as writer:
        for chunk in chunks:
            writer.write(chunk)


class NpyReader(codec.ContentReader[NpyHeader]):
    """An open .npy file. Reading gives C-order little-endian bytes from any file."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(path, parse_header)
        self._converted: memoryview | None = None

    def level_size_bytes(self, level: int = 0, aspect: str | None = None) -> int:
        return self.header.data_size_bytes

    def _read(self, view: memoryview, level: int, offset: int, aspect: str | None) -> None:
        header = self.header
        if header.is_plain:
            self.source.read_into(view, header.data_offset + offset)
        elif header.is_c_order:
            unit = header.swap_size_bytes
            end = offset + len(view)
            first = offset - offset % unit  # whole units around the range asked for
            data = self.source.read(end + -end % unit - first, header.data_offset + first)
            view[:] = _swapped(data, unit)[offset - first : end - first]
        else:
            view[:] = self._in_c_order()[offset : offset + len(view)]

    def _in_c_order(self) -> memoryview:
        """Convert a Fortran-order payload to C order as a whole, since any part needs bytes from everywhere."""
        if self._converted is None:
            import numpy

            header = self.header
            data = _swapped(self.source.read(header.data_size_bytes, header.data_offset), header.swap_size_bytes)
            items = numpy.frombuffer(data, f"V{header.item_size_bytes}").reshape(header.shape, order="F")
            self._converted = memoryview(items.tobytes())
        return self._converted


def _swapped(data: bytes, unit: int) -> bytes | bytearray:
    """Reverse the bytes within each group of ``unit`` bytes."""
    if unit == 1:
        return data
    result = bytearray(len(data))
    for index in range(unit):
        result[index::unit] = data[unit - 1 - index :: unit]
    return result


_DEPTH_BITS = 0xFF_FFFF


def pack_depths(depths: memoryview, stencils: memoryview | None = None) -> bytes:
    """Combine 24 bits of depth with a stencil (or zeros) in the highest byte.

    ``depths`` are 32-bit words with an undefined highest byte.
    """
    import numpy

    words = numpy.frombuffer(depths, "<u4") & _DEPTH_BITS
    if stencils is not None:
        words |= numpy.frombuffer(stencils, "u1").astype("<u4") << 24
    return words.tobytes()


class NpyCodec(codec.ArrayCodec):
    """The codec of NumPy's arrays."""

    extension = ".npy"
    signature = NPY_SIGNATURE
    resources = frozenset({"buffer", "tensor", "image"})

    def why_not(self, format: Format) -> str | None:
        return "NumPy has no block-compressed types" if format.numpy_dtype is None else None

    def read_header(self, path: str) -> codec.ImageHeader:
        shape = read_header(path).shape
        sides = shape[1:] if len(shape) == 4 and shape[0] == 1 else shape
        if len(sides) not in (2, 3):
            raise file_error(path, f"has the shape {shape}, expected (1, height, width, items) of an image")
        return codec.ImageHeader(None, sides[1], sides[0])

    def _open(self, path: str, format: Format) -> NpyReader:
        return _NpyImage(path, format)

    def _check(self, path: str, header: NpyHeader, format: Format, width: int, height: int, mip_count: int) -> None:
        assert format.numpy_dtype is not None, "the codec was asked whether it holds the format"
        expected = (height, width, format.numpy_items)
        if header.shape not in (expected, (1, *expected)) and (format.numpy_items > 1 or header.shape != expected[:2]):
            shown = f"{width}x{height} texels of {format.name!r}: expected {(1, *expected)} (1, height, width, items)"
            raise codec.mismatch(path, f"the shape {header.shape}", shown)
        # Integers of either sign fit integers, as in the reference runner; raw bytes (V) fit every type.
        kinds = "fV" if format.numpy_dtype[1] == "f" else "uibV"
        if header.item_size_bytes != int(format.numpy_dtype[2:]) or header.kind not in kinds:
            shown = f"{format.name!r}: expected {format.numpy_dtype!r}"
            raise codec.mismatch(path, f"items of the type {header.descr!r}", shown)

    def create_image(
        self, path: str, format: Format, width: int, height: int, planes: Sequence[int], create: CreateOutput
    ) -> codec.ContentWriter:
        assert format.numpy_dtype is not None, "the codec was asked whether it holds the format"
        header = format_header(format.numpy_dtype, (1, height, width, format.numpy_items))
        output = create(path, len(header) + planes[0])
        if "D" in format.channels and format.channel_bits[format.channels.index("D")] == 24:
            stencils = slice(1, len(format.aspects))
            return codec.HeldImageWriter(output, planes, lambda held: (header, pack_depths(held[0], *held[stencils])))
        return codec.ContentWriter(output, header, sum(planes), unused_bytes=sum(planes[1:]))

    def is_divisible(self, path: str) -> bool:
        return read_header(path).is_c_order

    def create_array(
        self, path: str | os.PathLike[str], descr: str, shape: Sequence[int], create: CreateOutput = OutputFile
    ) -> codec.ContentWriter:
        """Create a C-order .npy file (version 1.0) with items of a little-endian type like ``'<f4'`` or ``'<V2'``.

        Raises ``ValueError`` for a type or shape that no file can have.
        """
        order, _, item_size_bytes = parse_descr(descr)
        if order == ">":
            raise ValueError(f"the type {descr!r} is big-endian, only little-endian payloads are written")
        header, size_bytes = format_header(descr, tuple(shape)), prod(shape) * item_size_bytes
        return codec.ContentWriter(create(path, len(header) + size_bytes), header, size_bytes)


class _NpyImage(NpyReader):
    """An image file. Stencils beside depths are the items' highest bytes, or zero without room for them."""

    def __init__(self, path: str, format: Format) -> None:
        super().__init__(path)
        self._format = format

    def level_size_bytes(self, level: int = 0, aspect: str | None = None) -> int:
        return self.header.data_size_bytes // (self.header.item_size_bytes if self._is_second(aspect) else 1)

    def _read(self, view: memoryview, level: int, offset: int, aspect: str | None) -> None:
        if not self._is_second(aspect):
            super()._read(view, level, offset, aspect)
        elif self._format.is_packed:  # beside 24 bits of depth
            items = bytearray(4 * len(view))
            super()._read(memoryview(items), level, 4 * offset, None)
            view[:] = items[3::4]
        else:
            view[:] = bytes(len(view))

    def _is_second(self, aspect: str | None) -> bool:
        return aspect is not None and aspect != self._format.aspects[0]
