"""The table of file formats, and what a class of one says and does.

Adding a format is a class in a file of its own and a line in `_CLASSES`.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, ClassVar

from scenario_runner.files.output import CreateOutput, OutputFile
from scenario_runner.files.source import file_error

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType
    from typing import Protocol

    from scenario_runner.errors import FileError
    from scenario_runner.files.image_reader import ImageHeader, ImageReader
    from scenario_runner.files.image_writer import ImageWriter
    from scenario_runner.formats import Format

    class ArrayWriter(Protocol):
        """A file that is written by chunks; a context manager that stores it when its block ends well."""

        def write(self, data: bytes | bytearray | memoryview) -> None:
            """Append the next bytes. Raises `FileError`; ``ValueError`` for more than was announced."""

        def __enter__(self) -> object: ...

        def __exit__(
            self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
        ) -> None: ...


# Extension, module and class of each file format. Where several can hold a content, the first one is chosen for it.
_CLASSES = {
    ".npy": ("npy_codec", "NpyCodec"),
    ".dds": ("dds_codec", "DdsCodec"),
    ".png": ("png_codec", "PngCodec"),
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
        """Whether texels of ``format``, of all levels, can be written."""
        return (mip_count == 1 or self.holds_levels) and self.why_not(format) is None

    @abstractmethod
    def why_not(self, format: Format) -> str | None:
        """Why texels of ``format`` cannot be written; None where they can."""

    @abstractmethod
    def read_header(self, path: str) -> ImageHeader:
        """What an image file holds, for showing it."""

    @abstractmethod
    def open_image(self, path: str, format: Format, width: int, height: int, mip_count: int) -> ImageReader:
        """Open a file as an image that was declared so, after checking its header against the declaration."""

    @abstractmethod
    def create_image(
        self, path: str, format: Format, width: int, height: int, planes: tuple[int, ...], create: CreateOutput
    ) -> ImageWriter:
        """A file of an image whose bytes come as ``planes``; see `scenario_runner.files.image_writer.ImageWriter`."""

    def is_divisible(self, path: str) -> bool:
        """Whether a part of the texels can be read without decoding all of the file."""
        return True

    def shown_format(self, format: Format) -> tuple[str, tuple[str, ...] | None]:
        """What a viewer calls texels of ``format``, and their channels where these have names of their own."""
        return format.name, None

    def create_array(
        self, path: str, descr: str, shape: Sequence[int], create: CreateOutput = OutputFile
    ) -> ArrayWriter:
        """A file of a buffer or tensor with items of the NumPy type ``descr``; for codecs with such ``resources``."""
        raise NotImplementedError


@cache
def _codec(extension: str) -> Codec:
    module, name = _CLASSES[extension]
    found: Codec = getattr(import_module(f"scenario_runner.files.{module}"), name)()
    return found


def all_codecs() -> list[Codec]:
    """One codec for each file format, in the order in which they are chosen."""
    return [_codec(extension) for extension in _CLASSES]


def is_known(path: str | os.PathLike[str]) -> bool:
    """Whether the name of a file is one of a format in the table."""
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


def cannot_hold(path: str | os.PathLike[str], format: Format, reason: str) -> FileError:
    """The error for texels of a format that a file of this name cannot hold."""
    others = [codec.extension for codec in all_codecs() if codec.why_not(format) is None]
    return file_error(
        os.fspath(path),
        f"cannot hold texels of the format {format.name!r}: {reason}",
        help=f"choose the name of a {' or '.join(others)} file" if others else None,
        code="SR-FILE-004",
    )
