"""Image files by extension: what they hold, whether that is what the scenario says, and their texels in and out.

.dds files hold every mip level; .png and .npy files hold the first one. A .npy image has the shape [1, height, width,
items] or [height, width, items], where items are those of `scenario_runner.formats.Format`.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from types import TracebackType

from scenario_runner.errors import FileError
from scenario_runner.files import dds
from scenario_runner.files.dds_header import DdsHeader
from scenario_runner.files.npy import NpyHeader, NpyReader, write_npy
from scenario_runner.files.npy import read_header as read_npy_header
from scenario_runner.files.output import CreateOutput, OutputFile
from scenario_runner.files.source import file_error
from scenario_runner.formats import Format, find_format

__all__ = [
    "EXTENSIONS",
    "ImageReader",
    "check_destination",
    "check_source",
    "open_image",
    "read_image_header",
    "stored_levels",
    "write_image",
]

EXTENSIONS = (".dds", ".png", ".npy")


def extension_of(path: str | os.PathLike[str]) -> str:
    """The extension in lower case, one of `EXTENSIONS`. Raises `FileError`."""
    extension = os.path.splitext(path)[1].lower()
    if extension not in EXTENSIONS:
        raise file_error(
            os.fspath(path),
            f"has the extension {extension!r}, expected one of an image: {', '.join(map(repr, EXTENSIONS))}",
            code="SR-FILE-004",
        )
    return extension


def check_source(path: str | os.PathLike[str], format: Format, width: int, height: int, mip_count: int = 1) -> int:
    """Check the header of an image file against what a scenario declares, and return how many mip levels it holds.

    Nothing but the header is read. A file may have fewer levels than declared, not more. A file of D32_SFLOAT_S8_UINT
    serves R32_SFLOAT and D32_SFLOAT, with its depths. Raises `FileError` that shows both sides.
    """
    with open_image(path, format, width, height, mip_count) as reader:
        return reader.mip_count


def open_image(
    path: str | os.PathLike[str], format: Format, width: int, height: int, mip_count: int = 1
) -> ImageReader:
    """Open an image file as an image that was declared so; as `check_source`. Close the reader after use."""
    extension = extension_of(path)
    if extension == ".dds":
        reader = dds.open_dds(path)
        try:
            _check_dds(reader, format, width, height, mip_count)
        except BaseException:
            reader.close()
            raise
        return _DdsImage(reader)
    if extension == ".npy":
        npy = NpyReader(path)
        try:
            _check_npy(npy.path, npy.header, format, width, height)
        except BaseException:
            npy.close()
            raise
        return _NpyImage(npy)
    from scenario_runner.files import png

    header = png.read_header(path)
    if (header.width, header.height) != (width, height):
        raise _extent_error(os.fspath(path), header.width, header.height, width, height)
    png.check_texels(os.fspath(path), header, format)
    return _PngImage(os.fspath(path), format, width, height)


def stored_levels(path: str | os.PathLike[str], mip_count: int) -> int:
    """How many levels of an image of ``mip_count`` levels a file of this name takes. Raises `FileError`."""
    return mip_count if extension_of(path) == ".dds" else 1


def check_destination(path: str | os.PathLike[str], format: Format) -> None:
    """Raise `FileError` when texels of ``format`` cannot be written to a file of this name; touches no file."""
    extension = extension_of(path)
    if extension == ".dds":
        dds.check_format(path, format)
    elif extension == ".png":
        from scenario_runner.files import png

        png.check_format(path, format)
    elif format.numpy_dtype is None:
        raise file_error(
            os.fspath(path),
            f"cannot hold texels of the format {format.name!r}: NumPy has no block-compressed types",
            help="choose the name of a .dds file",
            code="SR-FILE-004",
        )


def write_image(
    path: str | os.PathLike[str],
    format: Format,
    width: int,
    height: int,
    levels: Sequence[bytes | bytearray | memoryview],
    stencils: Sequence[bytes | bytearray | memoryview] = (),
    *,
    create: CreateOutput = OutputFile,
) -> None:
    """Write an image: ``levels`` are the tightly packed texels of the levels that `stored_levels` asks for.

    Of formats with depth and stencil they are the depths; ``stencils``, where given, go into .dds files. The file
    appears complete or not at all; missing folders are created. Raises `FileError`, and ``ValueError`` when the sizes
    do not fit.
    """
    check_destination(path, format)
    if len(levels) != stored_levels(path, len(levels)):
        raise ValueError(f"{len(levels)} mip levels do not go into {os.fspath(path)!r}")
    extension = extension_of(path)
    if extension == ".dds":
        dds.write_dds(path, format, width, height, levels, len(levels), stencils, create=create)
    elif extension == ".png":
        from scenario_runner.files import png

        png.write_png(path, format, width, height, levels[0], create=create)
    else:
        assert format.numpy_dtype is not None  # `check_destination` has seen to it
        write_npy(path, format.numpy_dtype, (1, height, width, format.numpy_items), levels, create=create)


class ImageReader(ABC):
    """An open image file that fits what was declared; a context manager.

    ``mip_count`` levels can be read, each as a Vulkan buffer-to-image copy takes it: tightly packed, the aspect that is
    the format's first unless another is named.
    """

    mip_count = 1

    @abstractmethod
    def level_size_bytes(self, level: int = 0, aspect: str | None = None) -> int:
        """Bytes of one level."""

    @abstractmethod
    def read_into(
        self,
        destination: memoryview,
        level: int = 0,
        offset: int = 0,
        size: int | None = None,
        aspect: str | None = None,
    ) -> int:
        """Put ``size`` bytes of a level, from its byte ``offset`` on, at the start of ``destination``.

        ``size`` defaults to all from ``offset`` on, and is what is returned. Raises `FileError` where the file is
        broken, ``ValueError`` for a range outside the level or a destination that is too small.
        """

    def close(self) -> None:  # noqa: B027 - what holds nothing open has nothing to close
        """Close the file; may be called twice."""

    def __enter__(self) -> ImageReader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


class _DdsImage(ImageReader):
    def __init__(self, reader: dds.DdsReader) -> None:
        self._reader = reader
        self.mip_count = len(reader.header.mip_levels)

    def level_size_bytes(self, level: int = 0, aspect: str | None = None) -> int:
        return self._reader.level_size_bytes(level, aspect)

    def read_into(
        self,
        destination: memoryview,
        level: int = 0,
        offset: int = 0,
        size: int | None = None,
        aspect: str | None = None,
    ) -> int:
        return self._reader.read_into(destination, level, offset, size, aspect)

    def close(self) -> None:
        self._reader.close()


class _NpyImage(ImageReader):
    def __init__(self, reader: NpyReader) -> None:
        self._reader = reader

    def level_size_bytes(self, level: int = 0, aspect: str | None = None) -> int:
        return self._reader.header.data_size_bytes

    def read_into(
        self,
        destination: memoryview,
        level: int = 0,
        offset: int = 0,
        size: int | None = None,
        aspect: str | None = None,
    ) -> int:
        return self._reader.read_into(destination, offset, size)

    def close(self) -> None:
        self._reader.close()


class _PngImage(ImageReader):
    """The file is decoded when its texels are first asked for, and stays decoded until it is closed."""

    def __init__(self, path: str, format: Format, width: int, height: int) -> None:
        self._path, self._format = path, format
        self._size_bytes = format.level_size_bytes(width, height)
        self._texels: memoryview | None = None

    def level_size_bytes(self, level: int = 0, aspect: str | None = None) -> int:
        return self._size_bytes

    def read_into(
        self,
        destination: memoryview,
        level: int = 0,
        offset: int = 0,
        size: int | None = None,
        aspect: str | None = None,
    ) -> int:
        if size is None:
            size = self._size_bytes - offset
        view = destination.cast("B") if destination.nbytes else memoryview(bytearray())
        if offset < 0 or size < 0 or offset + size > self._size_bytes or size > len(view):
            raise ValueError(
                f"bytes {offset} to {offset + size} of a level of {self._size_bytes} bytes were asked for,"
                f" into {len(view)} bytes"
            )
        if self._texels is None:
            from scenario_runner.files import png

            texels = png.read_texels(self._path, self._format)
            if len(texels) != self._size_bytes:
                raise file_error(self._path, "was changed while it was read")
            self._texels = texels
        view[:size] = self._texels[offset : offset + size]
        return size

    def close(self) -> None:
        self._texels = None


def _extent_error(path: str, found_width: int, found_height: int, width: int, height: int) -> FileError:
    return file_error(
        path,
        f"has {found_width}x{found_height} texels, but the scenario declares {width}x{height} (width x height)",
        code="SR-FILE-002",
    )


def _check_dds(reader: dds.DdsReader, format: Format, width: int, height: int, mip_count: int) -> None:
    header = reader.header
    if not _fits(header, format):
        raise file_error(
            reader.path,
            f"has texels of {header.format.name!r}, but the scenario declares {format.name!r}",
            code="SR-FILE-002",
        )
    if (header.width, header.height) != (width, height):
        raise _extent_error(reader.path, header.width, header.height, width, height)
    if len(header.mip_levels) > mip_count:
        raise file_error(
            reader.path,
            f"has {len(header.mip_levels)} mip levels, but the scenario declares {mip_count}",
            code="SR-FILE-002",
        )


def _fits(header: DdsHeader, format: Format) -> bool:
    found = header.format
    if found is format or (found.dxgi is not None and found.dxgi == format.dxgi):
        return True
    if not header.is_srgb_known and find_format(found.name.replace("_UNORM", "_SRGB")) is format:
        return True
    return (found.name, format.name) in (
        ("VK_FORMAT_D32_SFLOAT_S8_UINT", "VK_FORMAT_R32_SFLOAT"),
        ("VK_FORMAT_D32_SFLOAT_S8_UINT", "VK_FORMAT_D32_SFLOAT"),
    )


def _check_npy(path: str, header: NpyHeader, format: Format, width: int, height: int) -> None:
    if format.numpy_dtype is None:
        raise file_error(path, f"cannot hold texels of the format {format.name!r}: NumPy has no block-compressed types")
    expected = (height, width, format.numpy_items)
    if header.shape not in (expected, (1, *expected)) and (format.numpy_items > 1 or header.shape != expected[:2]):
        raise file_error(
            path,
            f"has the shape {header.shape}, but the scenario declares {width}x{height} texels of {format.name!r}:"
            f" expected {(1, *expected)} (1, height, width, items)",
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
        )


def read_image_header(path: str | os.PathLike[str]) -> tuple[Format | None, int, int, int]:
    """Format (where the file names one), width, height and mip levels of an image file, for showing it.

    Raises `FileError`, also for .npy files whose shape is none of an image.
    """
    extension = extension_of(path)
    if extension == ".dds":
        header = dds.read_header(path)
        return header.format, header.width, header.height, len(header.mip_levels)
    if extension == ".png":
        from scenario_runner.files import png

        found = png.read_header(path)
        return None, found.width, found.height, 1
    shape = read_npy_header(path).shape
    sides = shape[1:] if len(shape) == 4 and shape[0] == 1 else shape
    if len(sides) not in (2, 3):
        raise file_error(os.fspath(path), f"has the shape {shape}, expected (1, height, width, items) of an image")
    return None, sides[1], sides[0], 1
