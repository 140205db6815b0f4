"""Files of images and arrays: the table of their formats, and the classes that a format implements.

Adding a format is a class in a file of its own and a line in `_CLASSES`.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from importlib import import_module
from itertools import accumulate
from typing import Any, ClassVar, Generic, NamedTuple, Self, TypeVar

from scenario_runner.errors import FileError, file_error
from scenario_runner.files.input import SourceFile
from scenario_runner.files.output import CreateOutput, OutputFile
from scenario_runner.files.vk_formats import Format


class ImageHeader(NamedTuple):
    """The content of an image file by its header; ``format`` is None where it says only the type of its items."""

    format: Format | None
    width: int
    height: int
    mip_count: int = 1


Header = TypeVar("Header")


class ContentReader(ABC, Generic[Header]):
    """An open file of an image, an array or a buffer, whose ``header`` has been checked; a context manager.

    ``mip_count`` levels can be read, each as a Vulkan buffer-to-image copy takes it: tightly packed, the aspect that is
    the format's first unless another is named.
    """

    mip_count = 1

    def __init__(self, path: str | os.PathLike[str], parse_header: Callable[[SourceFile], Header]) -> None:
        self.source = SourceFile(path)
        try:
            self.header = parse_header(self.source)
        except BaseException:
            self.close()
            raise

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
        view = destination.cast("B") if destination.nbytes else memoryview(bytearray())
        total = self.level_size_bytes(level, aspect)
        if size is None:
            size = total - offset
        if offset < 0 or size < 0 or offset + size > total or size > len(view):
            raise ValueError(f"bytes {offset} to {offset + size} of {total} were asked for, into {len(view)} bytes")
        self._read(view[:size], level, offset, aspect)
        return size

    @abstractmethod
    def _read(self, view: memoryview, level: int, offset: int, aspect: str | None) -> None:
        """Fill ``view`` with the bytes of a level from ``offset`` on."""

    def close(self) -> None:
        """Close the file; may be called twice."""
        self.source.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def mismatch(path: str, contents: str, declared: str) -> FileError:
    """The error for a file that has other contents than the scenario declares."""
    return file_error(path, f"has {contents}, but the scenario declares {declared}", code="SR-FILE-002")


def check_extent(path: str, found_width: int, found_height: int, width: int, height: int) -> None:
    """Raise `FileError` where a file has another extent than the scenario declares."""
    if (found_width, found_height) != (width, height):
        raise mismatch(path, f"{found_width}x{found_height} texels", f"{width}x{height} (width x height)")


class ContentWriter:
    """A file being written; a context manager that stores the file when its block ends well.

    The file has ``header`` and the first of the ``size_bytes`` of content that come, without the last ``unused_bytes``.
    Raises `FileError`, and ``ValueError`` for another number of bytes.
    """

    def __init__(self, output: OutputFile, header: bytes, size_bytes: int, unused_bytes: int = 0) -> None:
        self._output = output
        self._missing = size_bytes
        self._unused = unused_bytes
        try:
            output.write(header)
        except BaseException:
            output.discard()
            raise

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Append the next bytes of the content; cut anywhere."""
        view = memoryview(data)
        if not view.nbytes:
            return  # an array with an empty axis cannot be cast
        if view.nbytes > self._missing:
            more = view.nbytes - self._missing
            raise ValueError(f"{more} bytes more than announced were written to {self._output.path!r}")
        self._append(view.cast("B")[: max(0, self._missing - self._unused)])
        self._missing -= view.nbytes

    def _append(self, data: memoryview) -> None:
        self._output.write(data)

    def _finish(self) -> None:
        """Write what is still to be written when all of the content has come."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self._output.discard()
            return
        with self._output:
            if self._missing:
                raise ValueError(f"{self._missing} bytes less than announced were written to {self._output.path!r}")
            self._finish()


class HeldImageWriter(ContentWriter):
    """Keeps the planes of an image until all are there: ``encode`` makes the parts of the file of them."""

    def __init__(
        self,
        output: OutputFile,
        planes: Sequence[int],
        encode: Callable[[list[memoryview]], Iterable[bytes | bytearray | memoryview]],
    ) -> None:
        super().__init__(output, b"", sum(planes))
        self._planes = planes
        self._encode = encode
        self._content = bytearray()

    def _append(self, data: memoryview) -> None:
        self._content += data

    def _finish(self) -> None:
        content, ends = memoryview(self._content), accumulate(self._planes)
        for part in self._encode([content[end - size : end] for size, end in zip(self._planes, ends, strict=True)]):
            self._output.write(part)


# Extension, module and class of each file format. Where several can hold a content, the first one is chosen for it.
_CLASSES = {
    ".npy": ("npy", "NpyCodec"),
    ".dds": ("dds", "DdsCodec"),
    ".png": ("png", "PngCodec"),
}


class Codec(ABC):
    """A file format: what it can hold, and reading and writing it. There is one object of each class.

    All methods raise `FileError`; ``path`` is what its messages begin with.
    """

    extension: ClassVar[str]
    # First bytes of every file; outputs of earlier runs are recognized by it.
    signature: ClassVar[bytes]
    # The kinds of resources whose content it holds.
    resources: ClassVar[frozenset[str]] = frozenset({"image"})
    # True where a file holds all mip levels of an image, false where it holds the first one.
    holds_levels: ClassVar[bool] = False
    # True where its items have a type and a shape but no meaning, so that a viewer can be told another type and shape.
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

    def open_image(self, path: str, format: Format, width: int, height: int, mip_count: int) -> ContentReader[Any]:
        """Open a file as an image that was declared so, after checking its header against the declaration."""
        reader = self._open(path, format)
        try:
            self._check(path, reader.header, format, width, height, mip_count)
        except BaseException:
            reader.close()
            raise
        return reader

    @abstractmethod
    def _open(self, path: str, format: Format) -> ContentReader[Any]:
        """Open a file as an image of ``format``."""

    @abstractmethod
    def _check(self, path: str, header: Any, format: Format, width: int, height: int, mip_count: int) -> None:
        """Check the header of a file against the declaration."""

    @abstractmethod
    def create_image(
        self, path: str, format: Format, width: int, height: int, planes: tuple[int, ...], create: CreateOutput
    ) -> ContentWriter:
        """A file of an image whose bytes come as ``planes``; see `create_image`."""

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
) -> ContentReader[Any]:
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
) -> ContentWriter:
    """A file that an image is written to as its bytes come.

    ``planes`` are the sizes in bytes of what comes, in order: for each level one for each of the aspects of the format.
    """
    check_destination(path, format)
    return codec_of(path).create_image(os.fspath(path), format, width, height, planes, create)
