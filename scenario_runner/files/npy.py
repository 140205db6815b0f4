"""NumPy's .npy files: buffers and tensors, and images of one level.

Bytes of C-order little-endian files go from the file into memory that somebody else owns (mapped device memory, say) by
the read system call alone. Big-endian items are swapped on the way; Fortran order is the one case that imports NumPy.
Items are never interpreted: bfloat16 (``V2``), float8 (``V1``) and text pass through as their bytes.

An image has the shape [1, height, width, items] or [height, width, items], where items are those of
`scenario_runner.formats.Format`; depth and stencil are in one item where it has room for both.
"""

from __future__ import annotations

import array
import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from scenario_runner.files.codec import (
    Codec,
    ContentWriter,
    HeldImageWriter,
    ImageHeader,
    ImageReader,
    ImageWriter,
    check_destination,
    mismatch,
    part_to_fill,
)
from scenario_runner.files.npy_header import MAGIC, NpyHeader, format_header, parse_descr, parse_header
from scenario_runner.files.output import CreateOutput, OutputFile
from scenario_runner.files.source import SourceFile, file_error
from scenario_runner.formats import Format

if TYPE_CHECKING:
    import numpy

_DEPTH_BITS = 0xFF_FFFF


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


def composed(depths: bytes | bytearray | memoryview, stencils: bytes | bytearray | memoryview | None) -> bytes:
    """Items of 24 bits of depth below a stencil (or zeros), from 32-bit words whose highest byte means nothing."""
    import numpy

    words = numpy.frombuffer(depths, "<u4") & _DEPTH_BITS
    if stencils is not None:
        words |= numpy.frombuffer(stencils, "u1").astype("<u4") << 24
    return words.tobytes()


class NpyCodec(Codec):
    """NumPy's arrays: items of a type and a shape."""

    extension = ".npy"
    signature = MAGIC
    resources = frozenset({"buffer", "tensor", "image"})
    is_array = True

    def why_not(self, format: Format) -> str | None:
        return "NumPy has no block-compressed types" if format.numpy_dtype is None else None

    def read_header(self, path: str) -> ImageHeader:
        shape = read_header(path).shape
        sides = shape[1:] if len(shape) == 4 and shape[0] == 1 else shape
        if len(sides) not in (2, 3):
            raise file_error(path, f"has the shape {shape}, expected (1, height, width, items) of an image")
        return ImageHeader(None, sides[1], sides[0])

    def open_image(self, path: str, format: Format, width: int, height: int, mip_count: int) -> ImageReader:
        check_destination(path, format)
        reader = NpyReader(path)
        try:
            _check(path, reader.header, format, width, height)
        except BaseException:
            reader.close()
            raise
        return _NpyImage(reader, format)

    def create_image(
        self, path: str, format: Format, width: int, height: int, planes: tuple[int, ...], create: CreateOutput
    ) -> ImageWriter:
        assert format.numpy_dtype is not None, "the codec was asked whether it holds the format"
        header = format_header(format.numpy_dtype, (1, height, width, format.numpy_items))
        output = create(path, len(header) + planes[0])
        is_composed = "D" in format.channels and format.channel_bits[format.channels.index("D")] == 24
        writer = _ComposedImageWriter if is_composed else _NpyImageWriter
        return writer(output, planes, len(format.aspects), header, planes[0])

    def is_divisible(self, path: str) -> bool:
        return read_header(path).is_c_order

    def create_array(self, path: str, descr: str, shape: Sequence[int], create: CreateOutput = OutputFile) -> NpyWriter:
        return NpyWriter(path, descr, shape, create=create)


class _NpyImage(ImageReader):
    def __init__(self, reader: NpyReader, format: Format) -> None:
        self._reader = reader
        self._format = format

    def level_size_bytes(self, level: int = 0, aspect: str | None = None) -> int:
        header = self._reader.header
        return header.data_size_bytes // (header.item_size_bytes if self._is_second(aspect) else 1)

    def _read(self, view: memoryview, level: int, offset: int, aspect: str | None) -> None:
        if not self._is_second(aspect):
            self._reader.read_into(view, offset, len(view))
        elif self._format.is_packed:  # the stencil is the highest byte of an item with 24 bits of depth
            items = bytearray(4 * len(view))
            self._reader.read_into(memoryview(items), 4 * offset, len(items))
            view[:] = items[3::4]
        else:
            view[:] = bytes(len(view))

    def _is_second(self, aspect: str | None) -> bool:
        """Return whether these are the stencils of a format that has depths first."""
        return aspect is not None and aspect != self._format.aspects[0]

    def close(self) -> None:
        self._reader.close()


def _check(path: str, header: NpyHeader, format: Format, width: int, height: int) -> None:
    assert format.numpy_dtype is not None, "the codec was asked whether it holds the format"
    expected = (height, width, format.numpy_items)
    if header.shape not in (expected, (1, *expected)) and (format.numpy_items > 1 or header.shape != expected[:2]):
        raise mismatch(
            path,
            f"has the shape {header.shape}, but the scenario declares {width}x{height} texels of {format.name!r}:"
            f" expected {(1, *expected)} (1, height, width, items)",
        )
    # Integers of either sign serve integers, as they do in the reference; raw bytes (V) serve everything.
    kinds = "fV" if format.numpy_dtype[1] == "f" else "uibV"
    if header.item_size_bytes != int(format.numpy_dtype[2:]) or header.kind not in kinds:
        raise mismatch(
            path,
            f"has items of the type {header.descr!r}, but the scenario declares {format.name!r}:"
            f" expected {format.numpy_dtype!r}",
        )


class _NpyImageWriter(ImageWriter):
    """Writes the first plane."""

    def _write_part(self, plane: int, part: memoryview) -> None:
        if plane == 0:
            self._append(part)


class _ComposedImageWriter(HeldImageWriter):
    """Puts the depth and the stencil of a texel into one item, so that all of the level is needed."""

    def _finish(self) -> None:
        self._output.write(composed(self._held[0], self._held[1] if self._aspects > 1 else None))
