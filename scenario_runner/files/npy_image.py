"""The codec of NumPy's .npy files: buffers and tensors (see `files.npy`), and images of one level.

An image has the shape [1, height, width, items] or [height, width, items], where items are those of
`scenario_runner.formats.Format`; depth and stencil are in one item where it has room for both.
"""

from __future__ import annotations

from collections.abc import Sequence

from scenario_runner.files.codec import (
    Codec,
    HeldImageWriter,
    ImageHeader,
    ImageReader,
    ImageWriter,
    check_destination,
    mismatch,
)
from scenario_runner.files.npy import MAGIC, NpyHeader, NpyReader, NpyWriter, format_header, read_header
from scenario_runner.files.output import CreateOutput, OutputFile
from scenario_runner.files.source import file_error
from scenario_runner.formats import Format

_DEPTH_BITS = 0xFF_FFFF


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
