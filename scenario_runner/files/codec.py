"""The base classes of file formats: readers, writers and codecs. `codec_table` lists the codecs."""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from typing import Any, ClassVar, Generic, NamedTuple, Self, TypeVar

from scenario_runner.errors import FileError, file_error
from scenario_runner.files.input import SourceFile
from scenario_runner.files.output import CreateOutput, OutputFile
from scenario_runner.files.vk_formats import Format


class ImageHeader(NamedTuple):
    """The header of an image file; ``format`` is None if the header only has the item type."""

    format: Format | None
    width: int
    height: int
    mip_count: int = 1


Header = TypeVar("Header")


class ContentReader(ABC, Generic[Header]):
    """An open file of an image, an array or a buffer with a checked ``header``; a context manager.

    Reading gives the bytes of a level in the layout of a Vulkan buffer-to-image copy, tightly packed. Without a named
    aspect it reads the first aspect of the format.
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
        """Return a level's size in bytes."""

    def read_into(
        self,
        destination: memoryview,
        level: int = 0,
        offset: int = 0,
        size: int | None = None,
        aspect: str | None = None,
    ) -> int:
        """Copy ``size`` bytes of a level, from the byte ``offset`` on, to the start of ``destination``.

        Return ``size``, by default all bytes from ``offset`` on. Stencils that the file cannot hold are zero. Threads
        may read side by side. Raises `FileError` for a damaged file, and ``ValueError`` for a range outside the level
        or a small destination.
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
    """Make the error for a file with other contents than the scenario declares."""
    return file_error(path, f"has {contents}, but the scenario declares {declared}", code="SR-FILE-002")


def check_extent(path: str, found_width: int, found_height: int, width: int, height: int) -> None:
    """Raise `FileError` if the extents of file and declaration differ."""
    if (found_width, found_height) != (width, height):
        raise mismatch(path, f"{found_width}x{found_height} texels", f"{width}x{height} (width x height)")


class ContentWriter:
    """A file that is being written; a context manager that completes the file if the block succeeds.

    The caller writes ``size_bytes`` of content. The file gets ``header`` and the content without the last
    ``unused_bytes``. Raises `FileError`, and ``ValueError`` for too many or too few bytes.
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
        """Append the next bytes of the content."""
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
        """Write the end of the file when the content is complete."""

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
    """A writer that collects all image planes; then ``encode`` turns them into the file's parts."""

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


class Codec(ABC):
    """A file format: the contents that it can hold, and how to read and write them.

    All methods raise `FileError` with messages that begin with ``path``.
    """

    extension: ClassVar[str]
    # The first bytes of every file. By these bytes a run recognizes earlier runs' outputs.
    signature: ClassVar[bytes]
    # The resource kinds that a file can hold.
    resources: ClassVar[frozenset[str]] = frozenset({"image"})
    # True if a file holds all mip levels of an image, false if it holds only the first.
    holds_levels: ClassVar[bool] = False

    def holds(self, format: Format, mip_count: int = 1) -> bool:
        """Return whether a file can hold all levels of an image in this format."""
        return (mip_count == 1 or self.holds_levels) and self.why_not(format) is None

    @abstractmethod
    def why_not(self, format: Format) -> str | None:
        """Explain why a file cannot hold texels of ``format``; None if it can."""

    @abstractmethod
    def read_header(self, path: str) -> ImageHeader:
        """Read the header of an image file for a viewer."""

    def open_image(self, path: str, format: Format, width: int, height: int, mip_count: int) -> ContentReader[Any]:
        """Open an image file and check the header against the declaration."""
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
        self, path: str, format: Format, width: int, height: int, planes: Sequence[int], create: CreateOutput
    ) -> ContentWriter:
        """Create a file for an image; see `codec_table.create_image`."""

    def is_divisible(self, path: str) -> bool:
        """Return whether a part of the texels can be read without decoding the whole file."""
        return True

    def shown_format(self, format: Format) -> tuple[str, tuple[str, ...] | None]:
        """Name the texels of ``format`` for a viewer, and their channels if they have special names."""
        return format.name, None


class ArrayCodec(Codec):
    """A format for arrays. Items have a type and a shape but no meaning, so that a viewer may reinterpret them."""

    @abstractmethod
    def create_array(
        self, path: str | os.PathLike[str], descr: str, shape: Sequence[int], create: CreateOutput = OutputFile
    ) -> ContentWriter:
        """Create a file for an array with items of the NumPy type ``descr``."""
