"""Files of images and arrays: the table of their formats, and the classes that a format implements.

Adding a format is a class in a file of its own and a line in `_CLASSES`.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from typing import ClassVar, NamedTuple, Self

from scenario_runner.errors import FileError
from scenario_runner.files.output import CreateOutput, OutputFile
from scenario_runner.files.source import file_error
from scenario_runner.formats import Format


class ImageHeader(NamedTuple):
    """The content of an image file by its header; ``format`` is None where it says only the type of its items."""

    format: Format | None
    width: int
    height: int
    mip_count: int = 1


class ImageReader(ABC):
    """An open image file that fits what was declared; a context manager.

    ``mip_count`` levels can be read, each as a Vulkan buffer-to-image copy takes it: tightly packed, the aspect that is
    the format's first unless another is named.
    """

    mip_count = 1

    @abstractmethod
    def level_size_bytes(self, level: int = 0, aspect: str | None = None) -> int:
        """Bytes of one level."""

    def read_into(
        self,
        destination: memoryview,
        level: int = 0,
        offset: int = 0,
        size: int | None = None,
        aspect: str | None = None,
    ) -> int:
        """Put ``size`` bytes of a level, from its byte ``offset`` on, at the start of ``destination``.

        ``size`` defaults to all from ``offset`` on, and is what is returned. Stencils that the file has no room for are
        zeros. Threads may read side by side. Raises `FileError` where the file is broken, ``ValueError`` for a range
        outside the level or a destination that is too small.
        """
        view = part_to_fill(destination, offset, size, self.level_size_bytes(level, aspect))
        self._read(view, level, offset, aspect)
        return len(view)

    @abstractmethod
    def _read(self, view: memoryview, level: int, offset: int, aspect: str | None) -> None:
        """Fill ``view`` with the bytes of a level from ``offset`` on."""

    def close(self) -> None:  # noqa: B027 - what holds nothing open has nothing to close
        """Close the file; may be called twice."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def part_to_fill(destination: memoryview, offset: int, size: int | None, total: int) -> memoryview:
    """The first bytes of ``destination`` (contiguous, writable) for ``size`` of ``total`` bytes from ``offset`` on.

    ``size`` defaults to all of them. Raises ``ValueError`` for another range or a destination that is too small.
    """
    view = destination.cast("B") if destination.nbytes else memoryview(bytearray())
    if size is None:
        size = total - offset
    if offset < 0 or size < 0 or offset + size > total or size > len(view):
        raise ValueError(f"bytes {offset} to {offset + size} of {total} were asked for, into {len(view)} bytes")
    return view[:size]


def check_extent(path: str, found_width: int, found_height: int, width: int, height: int) -> None:
    """Raise `FileError` where a file has another extent than the scenario declares."""
    if (found_width, found_height) == (width, height):
        return
    raise mismatch(
        path,
        f"has {found_width}x{found_height} texels, but the scenario declares {width}x{height} (width x height)",
    )


def mismatch(path: str, message: str) -> FileError:
    """The error for a file that holds something else than the scenario declares."""
    return file_error(path, message, code="SR-FILE-002")


class ContentWriter(ABC):
    """A file being written; a context manager that stores the file when its block ends well.

    Raises `FileError`, and ``ValueError`` for another number of bytes than the ``size_bytes`` that were announced.
    """

    def __init__(self, output: OutputFile, header: bytes = b"", size_bytes: int = 0) -> None:
        self._output = output
        self._missing = size_bytes
        try:
            output.write(header)
        except BaseException:
            output.discard()
            raise

    @abstractmethod
    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Append the next bytes of the content; cut anywhere."""

    def _append(self, data: bytes | bytearray | memoryview) -> None:
        """Append bytes to the file."""
        size = memoryview(data).nbytes
        if size > self._missing:
            raise ValueError(f"{size - self._missing} bytes more than announced were written to {self._output.path!r}")
        self._output.write(data)
        self._missing -= size

    def _finish(self) -> None:
        """Write what is still to be written when all of the content has come."""
        if self._missing:
            raise ValueError(f"{self._missing} bytes less than announced were written to {self._output.path!r}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self._output.discard()
            return
        with self._output:
            self._finish()


class ImageWriter(ContentWriter):
    """An image file being written.

    ``planes`` are the sizes in bytes of what is written, in order: for each level one for each of the ``aspects`` of
    the format. A writer that puts aspects together, or writes all at the end, keeps their bytes in ``_held``.
    """

    def __init__(
        self, output: OutputFile, planes: tuple[int, ...], aspects: int, header: bytes = b"", size_bytes: int = 0
    ) -> None:
        super().__init__(output, header, size_bytes)
        self._planes = planes
        self._aspects = aspects
        self._held = [bytearray() for _ in range(aspects)]
        self._plane = 0  # which one is being written, and how much of it was
        self._done = 0

    def write(self, data: bytes | bytearray | memoryview) -> None:
        view = memoryview(data)
        while len(view):
            part = view[: self._planes[self._plane] - self._done]
            self._write_part(self._plane, part)
            self._done += len(part)
            view = view[len(part) :]
            if self._done == self._planes[self._plane]:
                self._plane += 1
                self._done = 0

    @abstractmethod
    def _write_part(self, plane: int, part: memoryview) -> None:
        """Take the next bytes of a plane."""


class HeldImageWriter(ImageWriter):
    """Keeps the planes of the first level for `_finish`, which writes the file as a whole."""

    def _write_part(self, plane: int, part: memoryview) -> None:
        if plane < self._aspects:
            self._held[plane] += part

    @abstractmethod
    def _finish(self) -> None:
        """Write the file; ``_held`` has the bytes of each aspect."""


# Extension, module and class of each file format. Where several can hold a content, the first one is chosen for it.
_CLASSES = {
    ".npy": ("npy_image", "NpyCodec"),
    ".dds": ("dds", "DdsCodec"),
    ".png": ("png", "PngCodec"),
}


class Codec(ABC):
    """A file format: what it can hold, and reading and writing it. There is one object of each class.

    All methods raise `FileError`; ``path`` is what its messages begin with.
    """

    extension: ClassVar[str]
    # How every file begins; outputs of earlier runs are recognized by it.
    signature: ClassVar[bytes]
    # The kinds of resources whose content it holds.
    resources: ClassVar[frozenset[str]] = frozenset({"image"})
    # Whether a file holds all mip levels of an image, or the first one.
    holds_levels: ClassVar[bool] = False
    # Whether its items have a type and a shape but no meaning, so that a viewer can be told another type and shape.
    is_array: ClassVar[bool] = False

    def holds(self, format: Format, mip_count: int = 1) -> bool:
        """Return whether texels of ``format``, of all levels, can be written."""
        return (mip_count == 1 or self.holds_levels) and self.why_not(format) is None

    @abstractmethod
    def why_not(self, format: Format) -> str | None:
        """The reason why texels of ``format`` cannot be written; None where they can."""

    @abstractmethod
    def read_header(self, path: str) -> ImageHeader:
        """Read the header of an image file, for showing it."""

    @abstractmethod
    def open_image(self, path: str, format: Format, width: int, height: int, mip_count: int) -> ImageReader:
        """Open a file as an image that was declared so, after checking its header against the declaration."""

    @abstractmethod
    def create_image(
        self, path: str, format: Format, width: int, height: int, planes: tuple[int, ...], create: CreateOutput
    ) -> ImageWriter:
        """A file of an image whose bytes come as ``planes``; see `scenario_runner.files.codec.ImageWriter`."""

    def is_divisible(self, path: str) -> bool:
        """Return whether a part of the texels can be read without decoding all of the file."""
        return True

    def shown_format(self, format: Format) -> tuple[str, tuple[str, ...] | None]:
        """Name the texels of ``format`` for a viewer, and their channels where these have names of their own."""
        return format.name, None

    def create_array(
        self, path: str, descr: str, shape: Sequence[int], create: CreateOutput = OutputFile
    ) -> ContentWriter:
        """A file of a buffer or tensor with items of the NumPy type ``descr``; for codecs with such ``resources``."""
        raise NotImplementedError


@cache
def _codec(extension: str) -> Codec:
    module, name = _CLASSES[extension]
    codec: Codec = getattr(import_module(f"scenario_runner.files.{module}"), name)()
    return codec


def all_codecs() -> list[Codec]:
    """One codec for each file format, in the order in which they are chosen."""
    return [_codec(extension) for extension in _CLASSES]


def is_known(path: str | os.PathLike[str]) -> bool:
    """Return whether the name of a file is one of a format in the table."""
    return os.path.splitext(path)[1].lower() in _CLASSES


def codec_of(path: str | os.PathLike[str], resource: str = "image") -> Codec:
    """The codec of a file that holds a resource of this kind, by its name. Raises `FileError`.

    Files of buffers and tensors may have no extension; they have the first format that holds these.
    """
    extension = os.path.splitext(path)[1]
    if not extension and resource != "image":
        return codec_for(resource)
    if extension.lower() in _CLASSES:
        codec = _codec(extension.lower())
        if resource in codec.resources:
            return codec
    expected = ", ".join(repr(codec.extension) for codec in all_codecs() if resource in codec.resources)
    expected = f"one of an image: {expected}" if resource == "image" else f"{expected} for a {resource}"
    raise file_error(os.fspath(path), f"has the extension {extension!r}, expected {expected}", code="SR-FILE-004")


def codec_for(resource: str, format: Format | None = None, mip_count: int = 1) -> Codec:
    """The first codec that holds all of such a resource, else the first for its kind.

    ``format`` and ``mip_count`` are those of an image.
    """
    fitting = (_codec(extension) for extension in _CLASSES)
    if format is None:
        return next(codec for codec in fitting if resource in codec.resources)
    return next((codec for codec in fitting if codec.holds(format, mip_count)), codec_for(resource))


def open_image(
    path: str | os.PathLike[str], format: Format, width: int, height: int, mip_count: int = 1
) -> ImageReader:
    """Open an image file as an image that was declared so, after checking its header against that.

    A file may have fewer levels than declared, not more. A file of D32_SFLOAT_S8_UINT serves R32_SFLOAT and D32_SFLOAT,
    with its depths. Raises `FileError` that shows both sides.
    """
    return codec_of(path).open_image(os.fspath(path), format, width, height, mip_count)


def stored_levels(path: str | os.PathLike[str], mip_count: int) -> int:
    """The number of levels that a file of this name takes of an image of ``mip_count`` levels. Raises `FileError`."""
    return mip_count if codec_of(path).holds_levels else 1


def check_destination(path: str | os.PathLike[str], format: Format) -> None:
    """Raise `FileError` when texels of ``format`` cannot be written to a file of this name; touches no file."""
    reason = codec_of(path).why_not(format)
    if reason is not None:
        others = [codec.extension for codec in all_codecs() if codec.why_not(format) is None]
        message = f"cannot hold texels of the format {format.name!r}: {reason}"
        help = f"choose the name of a {' or '.join(others)} file" if others else None
        raise file_error(os.fspath(path), message, help=help, code="SR-FILE-004")


def create_image(
    path: str | os.PathLike[str],
    format: Format,
    width: int,
    height: int,
    planes: tuple[int, ...],
    *,
    create: CreateOutput = OutputFile,
) -> ImageWriter:
    """A file that an image of these ``planes`` is written to as its bytes come; see `ImageWriter`."""
    check_destination(path, format)
    return codec_of(path).create_image(os.fspath(path), format, width, height, planes, create)
