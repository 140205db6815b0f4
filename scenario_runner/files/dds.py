"""The codec of Microsoft's .dds files: images with all of their mip levels.

Texels are streamed into memory that somebody else owns, and written from such memory. Where a file stores texels as a
Vulkan copy has them, which is nearly everywhere (block-compressed formats included), the read system call alone moves
them. The others are converted on the way: B8G8R8 takes four bytes a texel in a file, and depth with stencil lies
interleaved there but in two planes in a copy.
"""

from __future__ import annotations

import array
import os
from collections.abc import Iterable
from types import TracebackType

from scenario_runner.files.codec import (
    Codec,
    ImageHeader,
    ImageReader,
    ImageWriter,
    cannot_hold,
    check_extent,
    mismatch,
)
from scenario_runner.files.dds_header import (
    MAGIC,
    DdsHeader,
    MipLevel,
    TexelMap,
    format_header,
    level_layout,
    parse_header,
    texel_maps,
)
from scenario_runner.files.output import CreateOutput, OutputFile
from scenario_runner.files.source import SourceFile
from scenario_runner.formats import Format, find_format

__all__ = ["DdsHeader", "DdsReader", "DdsWriter", "MipLevel", "open_dds", "read_header", "why_not", "write_dds"]

_CHUNK_TEXELS = 1 << 18  # scratch memory of a conversion: 2 MiB at most


def read_header(path: str | os.PathLike[str]) -> DdsHeader:
    """The checked header of a .dds file; the texels are not read. Raises `FileError`."""
    with SourceFile(path) as source:
        return parse_header(source)


def open_dds(path: str | os.PathLike[str]) -> DdsReader:
    """Open a .dds file and check its header against its size. Raises `FileError`; close the reader after use."""
    return DdsReader(path)


def why_not(format: Format) -> str | None:
    """Why no .dds file can hold texels of ``format``; None where one can."""
    return "it has no DXGI_FORMAT, which a .dds file needs" if format.dxgi is None else None


def write_dds(
    path: str | os.PathLike[str],
    format: Format,
    width: int,
    height: int,
    levels: Iterable[bytes | bytearray | memoryview],
    mip_count: int = 1,
    stencils: Iterable[bytes | bytearray | memoryview] = (),
    *,
    create: CreateOutput = OutputFile,
) -> None:
    """Write a .dds file with DX10 header: ``levels`` are the tightly packed texels, one level after the other.

    Of formats with depth and stencil ``levels`` are the depths (four bytes each) and ``stencils`` the stencils (zero
    where missing). The file appears complete or not at all; missing folders are created. Raises `FileError`, and
    ``ValueError`` when the sizes do not fit.
    """
    rest = iter(stencils)
    with DdsWriter(path, format, width, height, mip_count, create=create) as writer:
        for level in levels:
            writer.write(level, next(rest, None))


class DdsReader:
    """An open .dds file whose ``header`` has been checked; a context manager."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._source = SourceFile(path)
        try:
            self.header = parse_header(self._source)
        except BaseException:
            self._source.close()
            raise
        self.path = self._source.path

    def level_size_bytes(self, level: int = 0, aspect: str | None = None) -> int:
        """Bytes of one level as a Vulkan copy has them: tightly packed, one aspect (the format's first by default)."""
        texel = self._map_of(aspect)
        return self.header.mip_levels[level].stored_size_bytes // texel.stored_bytes * texel.memory_bytes

    def read_into(
        self,
        destination: memoryview,
        level: int = 0,
        offset: int = 0,
        size: int | None = None,
        aspect: str | None = None,
    ) -> int:
        """Put ``size`` bytes of a level, from its byte ``offset`` on, at the start of ``destination``.

        The level counts as `level_size_bytes` has it; ``size`` defaults to all from ``offset`` on, and is what is
        returned. ``destination`` must be writable and contiguous and is not read. Threads may read side by side.
        Raises `FileError` where the file ends early, ``ValueError`` for a range outside the level or a destination
        that is too small.
        """
        total = self.level_size_bytes(level, aspect)
        view = destination.cast("B") if destination.nbytes else memoryview(bytearray())
        if size is None:
            size = total - offset
        if offset < 0 or size < 0 or offset + size > total or size > len(view):
            raise ValueError(
                f"bytes {offset} to {offset + size} of a level of {total} bytes were asked for, into {len(view)} bytes"
            )
        texel, start = self._map_of(aspect), self.header.mip_levels[level].offset
        if texel.is_plain:
            self._source.read_into(view[:size], start + offset)
            return size
        done = 0
        while done < size:
            first, skipped = divmod(offset + done, texel.memory_bytes)  # whole texels around the range asked for
            count = min(_CHUNK_TEXELS, -(-(size - done + skipped) // texel.memory_bytes))
            stored = self._source.read(count * texel.stored_bytes, start + first * texel.stored_bytes)
            part = _unpacked(stored, texel)[skipped : skipped + size - done]
            view[done : done + len(part)] = part
            done += len(part)
        return size

    def close(self) -> None:
        """Close the file; may be called twice."""
        self._source.close()

    def __enter__(self) -> DdsReader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _map_of(self, aspect: str | None) -> TexelMap:
        return self.header.maps[0 if aspect is None else self.header.format.aspects.index(aspect)]


class DdsWriter:
    """A .dds file being written; a context manager that stores the file when its block ends well.

    ``create`` makes the file.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        format: Format,
        width: int,
        height: int,
        mip_count: int = 1,
        *,
        create: CreateOutput = OutputFile,
    ) -> None:
        reason = why_not(format)
        if reason is not None:
            raise cannot_hold(path, format, reason)
        header = format_header(format, width, height, mip_count)
        self._maps = texel_maps(format)
        levels = level_layout(format, self._maps[0].stored_bytes, width, height, mip_count, offset=0)
        self._missing = sum(level.stored_size_bytes for level in levels)
        self._rest = b""
        self._output = create(path, len(header) + self._missing)
        try:
            self._output.write(header)
        except BaseException:
            self._output.discard()
            raise

    def write(
        self, data: bytes | bytearray | memoryview, stencil: bytes | bytearray | memoryview | None = None
    ) -> None:
        """Append the next texels of the current level, or of the next; cut anywhere.

        Of formats with depth and stencil ``data`` are whole depths, and ``stencil`` as many stencils (``None``: zero).
        Raises `FileError`; ``ValueError`` for more than the image has.
        """
        view = memoryview(data)
        view = view.cast("B") if view.nbytes else memoryview(b"")
        if len(self._maps) > 1:
            self._write_depth(view, stencil)
        elif self._maps[0].is_plain:
            self._append(view)
        else:
            self._write_expanded(view)

    def __enter__(self) -> DdsWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is None and not self._missing:
            self._output.commit()
            return
        self._output.discard()
        if kind is None:
            raise ValueError(f"{self._missing} bytes less than the image has were written to {self._output.path!r}")

    def _append(self, data: bytearray | memoryview) -> None:
        if len(data) > self._missing:
            raise ValueError(
                f"{len(data) - self._missing} bytes more than the image has were written to {self._output.path!r}"
            )
        self._output.write(data)
        self._missing -= len(data)

    def _write_expanded(self, view: memoryview) -> None:
        """Three bytes a texel become four; the last is 255, so that a reader who takes it for alpha sees the image."""
        texel = self._maps[0]
        step = _CHUNK_TEXELS * texel.memory_bytes
        for start in range(0, len(view), step):
            part = self._rest + bytes(view[start : start + step])
            count = len(part) // texel.memory_bytes
            self._rest = part[count * texel.memory_bytes :]
            stored = bytearray(b"\xff") * (count * texel.stored_bytes)
            for index in range(texel.used_bytes):
                stored[index :: texel.stored_bytes] = part[index : count * texel.memory_bytes : texel.memory_bytes]
            self._append(stored)
        if self._rest and not self._missing:
            raise ValueError(f"{len(self._rest)} bytes more than the image has were written to {self._output.path!r}")

    def _write_depth(self, view: memoryview, stencil: bytes | bytearray | memoryview | None) -> None:
        depths, stencils = self._maps
        count = len(view) // depths.memory_bytes
        stencil_view = None if stencil is None else memoryview(stencil).cast("B")
        if len(view) % depths.memory_bytes or (stencil_view is not None and len(stencil_view) != count):
            found = "no" if stencil_view is None else len(stencil_view)
            raise ValueError(f"{len(view)} bytes of depth and {found} bytes of stencil are not whole texels")
        for start in range(0, count, _CHUNK_TEXELS):
            stop = min(start + _CHUNK_TEXELS, count)
            part = bytes(view[start * depths.memory_bytes : stop * depths.memory_bytes])
            stored = bytearray((stop - start) * depths.stored_bytes)
            for index in range(depths.used_bytes):
                stored[depths.first + index :: depths.stored_bytes] = part[index :: depths.memory_bytes]
            if stencil_view is not None:
                stored[stencils.first :: stencils.stored_bytes] = bytes(stencil_view[start:stop])
            self._append(stored)


def _unpacked(stored: bytes, texel: TexelMap) -> memoryview:
    """The texels of one aspect, as a Vulkan copy has them, out of stored ones."""
    if texel.used_bytes == texel.memory_bytes == 4 and texel.first == 0:
        return memoryview(array.array("I", stored)[:: texel.stored_bytes // 4]).cast("B")  # faster than byte by byte
    result = bytearray(len(stored) // texel.stored_bytes * texel.memory_bytes)
    for index in range(texel.used_bytes):
        result[index :: texel.memory_bytes] = stored[texel.first + index :: texel.stored_bytes]
    return memoryview(result)


class DdsCodec(Codec):
    """Microsoft's textures: texels of a DXGI_FORMAT."""

    extension = ".dds"
    signature = MAGIC
    holds_levels = True

    def why_not(self, format: Format) -> str | None:
        return why_not(format)

    def read_header(self, path: str) -> ImageHeader:
        header = read_header(path)
        return ImageHeader(header.format, header.width, header.height, len(header.mip_levels))

    def open_image(self, path: str, format: Format, width: int, height: int, mip_count: int) -> ImageReader:
        reader = open_dds(path)
        try:
            _check(reader, format, width, height, mip_count)
        except BaseException:
            reader.close()
            raise
        return _DdsImage(reader)

    def create_image(
        self, path: str, format: Format, width: int, height: int, planes: tuple[int, ...], create: CreateOutput
    ) -> ImageWriter:
        return _DdsImageWriter(path, format, width, height, planes, create)


class _DdsImage(ImageReader):
    def __init__(self, reader: DdsReader) -> None:
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


def _check(reader: DdsReader, format: Format, width: int, height: int, mip_count: int) -> None:
    header = reader.header
    if not _fits(header, format):
        raise mismatch(reader.path, f"has texels of {header.format.name!r}, but the scenario declares {format.name!r}")
    check_extent(reader.path, header.width, header.height, width, height)
    if len(header.mip_levels) > mip_count:
        raise mismatch(reader.path, f"has {len(header.mip_levels)} mip levels, but the scenario declares {mip_count}")


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


class _DdsImageWriter(ImageWriter):
    def __init__(
        self, path: str, format: Format, width: int, height: int, planes: tuple[int, ...], create: CreateOutput
    ) -> None:
        super().__init__(planes, len(format.aspects))
        self._held: list[bytearray] = []  # depths and stencils of one level, which lie side by side in the file
        self._writer = DdsWriter(path, format, width, height, len(planes) // self._aspects, create=create)

    def _write_part(self, plane: int, part: memoryview) -> None:
        if self._aspects == 1:
            self._writer.write(part)
            return
        if self._done == 0:
            self._held.append(bytearray())
        self._held[-1] += part
        if len(self._held) == self._aspects and len(self._held[-1]) == self._planes[plane]:
            self._writer.write(*self._held)
            self._held = []

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._writer.__exit__(kind, error, traceback)
