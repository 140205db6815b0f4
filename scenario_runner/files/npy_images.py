"""The codec of .npy files: buffers and tensors, and images of one level.

An image has the shape [1, height, width, items] or [height, width, items], where items are those of
`scenario_runner.formats.Format`; depth and stencil are in one item where it has room for both.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType

from scenario_runner.files.codec import Codec, HeldImageWriter, ImageHeader, ImageReader, ImageWriter
from scenario_runner.files.npy import NpyHeader, NpyReader, NpyWriter, read_header
from scenario_runner.files.npy_header import MAGIC
from scenario_runner.files.output import CreateOutput, OutputFile
from scenario_runner.files.source import file_error
from scenario_runner.formats import Format

_DEPTH_BITS = 0xFF_FFFF


def open_image(path: str, format: Format, width: int, height: int) -> ImageReader:
    """Open a file as an image that was declared so. Raises `FileError` that shows both sides."""
    reader = NpyReader(path)
    try:
        _check(path, reader.header, format, width, height)
    except BaseException:
        reader.close()
        raise
    return _NpyImage(reader, format)


def create_image(
    path: str, format: Format, width: int, height: int, planes: tuple[int, ...], create: CreateOutput
) -> ImageWriter:
    """A file of the first level."""
    if _is_composed(format):
        return _ComposedImageWriter(path, format, width, height, planes, create)
    return _NpyImageWriter(path, format, width, height, planes, create)


def composed(depths: bytes | bytearray | memoryview, stencils: bytes | bytearray | memoryview | None) -> bytes:
    """Items of 24 bits of depth below a stencil (or zeros), from 32-bit words whose highest byte means nothing."""
    import numpy

    words = numpy.frombuffer(depths, "<u4") & _DEPTH_BITS
    if stencils is not None:
        words |= numpy.frombuffer(stencils, "u1").astype("<u4") << 24
    return words.tobytes()


def _is_composed(format: Format) -> bool:
    """Whether an item has 24 bits of depth, and maybe a stencil above them."""
    return "D" in format.channels and format.channel_bits[format.channels.index("D")] == 24


class _NpyImage(ImageReader):
    def __init__(self, reader: NpyReader, format: Format) -> None:
        self._reader = reader
        self._format = format

    def level_size_bytes(self, level: int = 0, aspect: str | None = None) -> int:
        size_bytes = self._reader.header.data_size_bytes
        return size_bytes // self._reader.header.item_size_bytes if self._is_beside(aspect) else size_bytes

    def read_into(
        self,
        destination: memoryview,
        level: int = 0,
        offset: int = 0,
        size: int | None = None,
        aspect: str | None = None,
    ) -> int:
        if not self._is_beside(aspect):
            return self._reader.read_into(destination, offset, size)
        if size is None:
            size = self.level_size_bytes(aspect=aspect) - offset
        destination[:size] = self._stencils(offset, size)
        return size

    def _is_beside(self, aspect: str | None) -> bool:
        """Whether these are the stencils of a format that has depths first."""
        return aspect is not None and aspect != self._format.aspects[0]

    def _stencils(self, first: int, count: int) -> bytes | bytearray:
        """The highest byte of items that hold 24 bits of depth, otherwise zeros."""
        if not self._format.is_packed:
            return bytes(count)
        items = bytearray(4 * count)
        self._reader.read_into(memoryview(items), 4 * first, 4 * count)
        return items[3::4]

    def close(self) -> None:
        self._reader.close()


def _check(path: str, header: NpyHeader, format: Format, width: int, height: int) -> None:
    if format.numpy_dtype is None:
        raise file_error(
            path,
            f"cannot hold texels of the format {format.name!r}: NumPy has no block-compressed types",
            code="SR-FILE-004",
        )
    expected = (height, width, format.numpy_items)
    if header.shape not in (expected, (1, *expected)) and (format.numpy_items > 1 or header.shape != expected[:2]):
        raise file_error(
            path,
            f"has the shape {header.shape}, but the scenario declares {width}x{height} texels of {format.name!r}:"
            f" expected {(1, *expected)} (1, height, width, items)",
            code="SR-FILE-002",
        )
    item_size_bytes = int(format.numpy_dtype[2:])
    is_float = format.numpy_dtype[1] == "f"
    # Integers of either sign serve integers, as they do in the reference; raw bytes (V) serve everything.
    if header.item_size_bytes != item_size_bytes or header.kind not in (
        ("f", "V") if is_float else ("u", "i", "b", "V")
    ):
        raise file_error(
            path,
            f"has items of the type {header.descr!r}, but the scenario declares {format.name!r}:"
            f" expected {format.numpy_dtype!r}",
            code="SR-FILE-002",
        )


def _create(path: str, format: Format, width: int, height: int, create: CreateOutput) -> NpyWriter:
    assert format.numpy_dtype is not None, "the codec was asked whether it holds the format"
    return NpyWriter(path, format.numpy_dtype, (1, height, width, format.numpy_items), create=create)


class _NpyImageWriter(ImageWriter):
    def __init__(
        self, path: str, format: Format, width: int, height: int, planes: tuple[int, ...], create: CreateOutput
    ) -> None:
        super().__init__(planes, len(format.aspects))
        self._writer = _create(path, format, width, height, create)

    def _write_part(self, plane: int, part: memoryview) -> None:
        if plane == 0:
            self._writer.write(part)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._writer.__exit__(kind, error, traceback)


class _ComposedImageWriter(HeldImageWriter):
    """An item has the depth and the stencil of a texel, so that all of the level is needed."""

    def __init__(
        self, path: str, format: Format, width: int, height: int, planes: tuple[int, ...], create: CreateOutput
    ) -> None:
        super().__init__(planes, len(format.aspects))
        self._place = path, format, width, height, create

    def _store(self, held: list[bytearray]) -> None:
        with _create(*self._place) as writer:
            writer.write(composed(held[0], held[1] if self._aspects > 1 else None))


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

        return open_image(path, format, width, height)

    def create_image(
        self, path: str, format: Format, width: int, height: int, planes: tuple[int, ...], create: CreateOutput
    ) -> ImageWriter:

        return create_image(path, format, width, height, planes, create)

    def is_divisible(self, path: str) -> bool:
        return read_header(path).is_c_order

    def create_array(self, path: str, descr: str, shape: Sequence[int], create: CreateOutput = OutputFile) -> NpyWriter:
        return NpyWriter(path, descr, shape, create=create)
