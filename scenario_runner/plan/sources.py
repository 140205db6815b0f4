"""Byte sources: files, arrays given in code, generated numbers, and graph constants."""

from __future__ import annotations

import mmap
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

from scenario_runner.errors import FileError, UsageError
from scenario_runner.files.codec_table import codec_of, open_image
from scenario_runner.files.input import (
    START_BYTES,
    ArrayLike,
    Identity,
    SourceFile,
    array_of,
    file_identity,
    lease,
    plain_bytes,
)
from scenario_runner.files.npy import NpyReader, parse_header
from scenario_runner.files.vk_formats import Format
from scenario_runner.plan.records import ImagePart, Source, image_parts

_BLOCK_BYTES = 64 << 10
_ITEMS_AT_ONCE = 1 << 16

# Constants above this size are mapped if the file cannot change meanwhile. A copy would take memory while the driver
# compiles, when the process needs most.
_LARGE_BYTES = 4 << 20


class _FileSource(ABC):
    """A file's content, which is open only while a run reads it. So a run can have thousands of sources.

    Parts of a ``divisible`` file are read separately. Any other file is decoded whole, and stays in memory until
    the last part is read. A pickled source, as in a cached plan, is rebuilt from ``arguments``. Loading fails
    if the ``facts`` from the header have changed.
    """

    arguments: tuple[Any, ...]
    facts: object

    def __init__(self, path: str, size_bytes: int, divisible: bool) -> None:
        self.path = path
        self.size_bytes = size_bytes
        self.divisible = divisible
        self._whole: memoryview | None = None

    def __reduce__(self) -> tuple[object, ...]:
        return _unchanged, (type(self), self.arguments, self.facts)

    def read_into(self, destination: memoryview, offset: int = 0) -> None:
        if self.divisible or len(destination) == self.size_bytes:
            self._read(destination, offset)
            return
        if self._whole is None:
            content = memoryview(bytearray(self.size_bytes))
            self._read(content, 0)
            self._whole = content
        end = offset + len(destination)
        destination[:] = self._whole[offset:end]
        if end == self.size_bytes:
            self._whole = None

    @abstractmethod
    def _read(self, destination: memoryview, offset: int) -> None:
        """Fill ``destination`` with the bytes from ``offset`` on."""


class NpySource(_FileSource):
    """A .npy file's payload."""

    def __init__(self, path: str) -> None:
        """Read the header. Raise FileError with a message that begins with the path."""
        self.arguments = (path,)
        with SourceFile(path) as file:
            self.header = self.facts = parse_header(file)
            self._identity = file.identity
            self._content = file.read(file.size_bytes) if file.size_bytes <= START_BYTES else b""
        self._is_plain = self.header.is_plain
        super().__init__(path, self.header.data_size_bytes, self.header.is_c_order)

    def opened(self) -> NpyReader:
        """Open the file for the caller to close. Raise FileError, also if the header has changed."""
        reader = NpyReader(self.path)
        if reader.header != self.header:
            reader.close()
            raise FileError(f"{self.path}: the file changed while the scenario was running")
        return reader

    def _read(self, destination: memoryview, offset: int) -> None:
        if self._is_plain and self._identity.settled:
            start = self.header.data_offset + offset
            if self._content and file_identity(self.path) == self._identity:
                destination[:] = self._content[start : start + len(destination)]
                return
            with SourceFile(self.path) as file:
                if file.identity == self._identity:  # the file still has the header
                    file.read_into(destination, start)
                    return
        with self.opened() as reader:
            reader.read_into(destination, offset=offset, size=len(destination))


def content_of(source: Source) -> bytes:
    """Read all bytes from a source. Raise FileError."""
    data = bytearray(source.size_bytes)
    source.read_into(memoryview(data))
    return bytes(data)


def _unchanged(kind: Callable[..., _FileSource], arguments: tuple[Any, ...], facts: object) -> _FileSource:
    """Rebuild a source while loading a cached plan. Raise FileError if the file's header has changed."""
    source = kind(*arguments)
    if source.facts != facts:
        raise FileError(f"{source.path}: the file changed")
    return source


class ArraySource:
    """An array's bytes (of anything `array_of` takes), little-endian and in C order.

    ``descr`` and ``shape`` describe a NumPy array (``'<f4'``; ml_dtypes are raw bytes, as in files). Both are None for
    other buffers: the resource decides the meaning.
    """

    def __init__(self, data: ArrayLike, name: str) -> None:
        """Raise UsageError if ``data`` is not an array with plain values."""
        data = array_of(data, name)
        self._view = plain_bytes(data, name)
        self.size_bytes = len(self._view)
        dtype = getattr(data, "dtype", None)
        self.descr: str | None = None if dtype is None else str(dtype.str)
        self.type_name = "" if dtype is None else str(dtype)
        self.shape: tuple[int, ...] | None = None if dtype is None else tuple(data.shape)

    def read_into(self, destination: memoryview, offset: int = 0) -> None:
        destination[:] = self._view[offset : offset + len(destination)]


class GeneratedSource(NamedTuple):
    """Computed items with the type ``element`` (`files.elements`): ``content_bytes``, then zeros up to ``size_bytes``.

    The items repeat ``pattern``, or follow from their index by ``rule``: ("series", start, step) or ("random", seed,
    low, high). ``descr`` and ``shape`` describe an array with the items. Only a pattern takes memory.
    """

    element: str
    descr: str
    shape: tuple[int, ...]
    size_bytes: int
    content_bytes: int
    pattern: bytes = b""
    rule: tuple[Any, ...] = ()
    levels: int = 1
    divisible: bool = True

    def read_into(self, destination: memoryview, offset: int = 0) -> None:
        """Fill ``destination`` with the bytes from ``offset`` on."""
        count = max(0, min(len(destination), self.content_bytes - offset))
        (self._compute if self.rule else self._repeat)(destination[:count], offset)
        destination[count:] = bytes(len(destination) - count)

    def kept(self) -> GeneratedSource:
        """Return this source with all bytes in memory."""
        data = bytearray(self.size_bytes)
        self.read_into(memoryview(data))
        return self._replace(pattern=bytes(data), content_bytes=self.size_bytes, rule=())

    def _repeat(self, destination: memoryview, offset: int) -> None:
        """Fill ``destination`` with the repeated pattern, from ``offset`` on."""
        size = len(self.pattern)
        block = memoryview(self.pattern * min(-(-_BLOCK_BYTES // size), -(-(len(destination) + size) // size)))
        done = 0
        while done < len(destination):
            start = (offset + done) % size
            part = block[start : start + len(destination) - done]
            destination[done : done + len(part)] = part
            done += len(part)

    def _compute(self, destination: memoryview, offset: int) -> None:
        """Fill ``destination`` with items by the rule, from ``offset`` on."""
        from scenario_runner.files.elements import ELEMENTS, generated

        element = ELEMENTS[self.element]
        item_size = element.size_bytes
        done = 0
        while done < len(destination):
            first, skipped = divmod(offset + done, item_size)
            most = min(_ITEMS_AT_ONCE, -(-(len(destination) - done + skipped) // item_size))
            part = generated(element, self.rule, first, most)[skipped:][: len(destination) - done]
            destination[done : done + len(part)] = part
            done += len(part)


class ImageFileSource(_FileSource):
    """An image's first levels."""

    def __init__(self, path: str, format: Format, width: int, height: int, mips: int) -> None:
        """Compare the header with the declaration. Raise FileError with a message that begins with the path."""
        self.arguments = path, format, width, height, mips
        with open_image(*self.arguments) as reader:
            self.levels = self.facts = reader.mip_count
        self._parts = image_parts(format, width, height, self.levels)
        super().__init__(path, self._parts[-1].end_bytes, codec_of(path).is_divisible(path))

    def _read(self, destination: memoryview, offset: int) -> None:
        end = offset + len(destination)
        with open_image(*self.arguments) as reader:
            if reader.mip_count != self.levels:
                raise FileError(f"{self.path}: the file changed while the scenario was running")
            for part in self._parts:
                start, stop = max(offset, part.offset_bytes), min(end, part.end_bytes)
                if start >= stop:
                    continue
                view = destination[start - offset : stop - offset]
                # None is the file's first aspect: the depths may serve an image with another format
                aspect = part.aspect if part.aspect == "stencil" else None
                reader.read_into(view, part.level, start - part.offset_bytes, stop - start, aspect)


class ImageArraySource(ArraySource):
    """An image's level 0 from an array with the shape (height, width, items), or from bytes in the same order."""

    levels = 1

    def __init__(self, data: ArrayLike, uid: str, format: Format, parts: tuple[ImagePart, ...]) -> None:
        """Raise UsageError if the array's extent or type differ from the image."""
        first = parts[0]
        data = array_of(data, uid)
        _check_array(data, uid, format, first.width, first.height)
        super().__init__(data, uid)
        self.size_bytes = parts[len(format.aspects) - 1].end_bytes
        if format.is_packed and len(format.aspects) > 1 and len(self._view) == first.size_bytes:
            self._view = memoryview(bytes(self._view) + bytes(self._view[3::4]))  # depth and stencil of each item
        # an array holds the first aspect; zeros stand for a second aspect without room in the items
        if len(self._view) not in (first.size_bytes, self.size_bytes):
            texels = f"{first.width}x{first.height} texels of {format.name} are {first.size_bytes}"
            raise UsageError(f"input {uid!r} holds {len(self._view)} bytes; {texels}")
        if len(self._view) < self.size_bytes:
            self._view = memoryview(bytes(self._view).ljust(self.size_bytes, b"\0"))


def _check_array(data: ArrayLike, uid: str, format: Format, width: int, height: int) -> None:
    """Check a NumPy array's shape and type; plain bytes have neither."""
    numpy = sys.modules.get("numpy")  # loaded, where there is an array
    if numpy is None or not isinstance(data, numpy.ndarray):
        return
    if format.numpy_dtype is None:
        if data.dtype.itemsize == 1:
            return
        raise UsageError(f"input {uid!r} is an array of {data.dtype}, but {format.name} has blocks: expected bytes")
    shape = (height, width, format.numpy_items)
    allowed = [shape, (1, *shape)] + ([shape[:2]] if format.numpy_items == 1 else [])
    expected = numpy.dtype(format.numpy_dtype)
    if data.shape not in allowed:
        texels = f"{width}x{height} texels of {format.name} are {shape} (height, width, items)"
        raise UsageError(f"input {uid!r} has the shape {data.shape}; {texels}")
    kinds = "fV" if expected.kind == "f" else "uibV"  # signed and unsigned integers, and raw bytes, as from files
    if data.dtype.itemsize != expected.itemsize or data.dtype.kind not in kinds:
        raise UsageError(f"input {uid!r} is an array of {data.dtype}; texels of {format.name} are {expected}")


class FilePart(NamedTuple):
    """Part of the file at ``path``; the file had this identity during planning.

    Parts compare by the file's identity: comparing the content in large models takes too long.
    """

    path: str
    identity: Identity
    start_bytes: int
    size_bytes: int

    def __reduce__(self) -> tuple[object, ...]:
        if not self.identity.settled:
            raise TypeError("the file may change and keep its identity")
        return _unchanged_part, tuple(self)

    def __hash__(self) -> int:
        return hash(self[1:])

    def __eq__(self, other: object) -> bool:
        is_known = isinstance(other, FilePart) and self.identity.settled
        return self is other or (is_known and self[1:] == other[1:])  # type: ignore[index]


ConstantData = FilePart | memoryview
"""A constant's bytes. Equal constants have equal bytes, so runs share pipelines."""


def _unchanged_part(*fields: Any) -> FilePart:
    """Rebuild a constant while loading a cached plan. Raise FileError if the file has changed."""
    part = FilePart(*fields)
    if file_identity(part.path) != part.identity:
        raise FileError(f"{part.path}: the file changed")
    return part


@contextmanager
def in_memory(constants: Iterable[ConstantData]) -> Iterator[list[memoryview]]:
    """Load constant bytes for the block's duration. Raise FileError, also for a changed file."""
    constants = list(constants)
    large = sum(part.size_bytes for part in constants if isinstance(part, FilePart)) >= _LARGE_BYTES
    with ExitStack() as stack:
        files: dict[str, tuple[SourceFile, memoryview | None]] = {}
        views = []
        for part in constants:
            if isinstance(part, memoryview):
                views.append(part)
                continue
            if part.path not in files:
                files[part.path] = _opened(part, stack, large)
            file, mapped = files[part.path]
            if mapped is not None:
                views.append(mapped[part.start_bytes : part.start_bytes + part.size_bytes])
            else:
                data = memoryview(bytearray(part.size_bytes))
                file.read_into(data, part.start_bytes)
                views.append(data)
        yield views


def _opened(part: FilePart, stack: ExitStack, large: bool) -> tuple[SourceFile, memoryview | None]:
    """Open the file, and map it if it is ``large`` and nobody can change it before the stack closes."""
    file = stack.enter_context(SourceFile(part.path))
    leased = False
    if large:
        leased = stack.enter_context(lease(file))
    if not file.current_identity().is_same_file(part.identity):
        raise FileError(f"{part.path}: the file changed while the scenario was running")
    if not leased:
        return file, None
    return file, memoryview(mmap.mmap(file.descriptor, 0, access=mmap.ACCESS_READ))
