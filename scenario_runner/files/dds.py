"""The codec of Microsoft's .dds files: images with all of their mip levels.

Texels are streamed into memory that somebody else owns, and written from such memory. Where a file stores texels as a
Vulkan copy has them, which is nearly everywhere (block-compressed formats included), the read system call alone moves
them. The others are converted on the way: B8G8R8 takes four bytes a texel in a file, and depth with stencil lies
interleaved there but in two planes in a copy.
"""

from __future__ import annotations

import array
import os

from scenario_runner.files.codec import Codec, ImageHeader, ImageReader, ImageWriter, check_extent, mismatch
from scenario_runner.files.dds_header import (
    MAGIC,
    DdsHeader,
    TexelMap,
    format_header,
    level_layout,
    parse_header,
    texel_maps,
)
from scenario_runner.files.output import CreateOutput
from scenario_runner.files.source import SourceFile
from scenario_runner.formats import Format, find_format

_CHUNK_TEXELS = 1 << 18  # scratch memory of a conversion: 2 MiB at most


def read_header(path: str | os.PathLike[str]) -> DdsHeader:
    """The checked header of a .dds file; the texels are not read. Raises `FileError`."""
    with SourceFile(path) as source:
        return parse_header(source)


class DdsReader(ImageReader):
    """An open .dds file whose ``header`` has been checked against its size."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._source = SourceFile(path)
        try:
            self.header = parse_header(self._source)
        except BaseException:
            self._source.close()
            raise
        self.mip_count = len(self.header.mip_levels)

    def level_size_bytes(self, level: int = 0, aspect: str | None = None) -> int:
        texel = self._map_of(aspect)
        return self.header.mip_levels[level].stored_size_bytes // texel.stored_bytes * texel.memory_bytes

    def _read(self, view: memoryview, level: int, offset: int, aspect: str | None) -> None:
        texel, start = self._map_of(aspect), self.header.mip_levels[level].offset
        if texel.is_plain:
            self._source.read_into(view, start + offset)
            return
        done = 0
        while done < len(view):
            first, skipped = divmod(offset + done, texel.memory_bytes)  # whole texels around the range asked for
            count = min(_CHUNK_TEXELS, -(-(len(view) - done + skipped) // texel.memory_bytes))
            stored = self._source.read(count * texel.stored_bytes, start + first * texel.stored_bytes)
            part = _unpacked(stored, texel)[skipped : skipped + len(view) - done]
            view[done : done + len(part)] = part
            done += len(part)

    def close(self) -> None:
        self._source.close()

    def _map_of(self, aspect: str | None) -> TexelMap:
        return self.header.maps[0 if aspect is None else self.header.format.aspects.index(aspect)]


def _unpacked(stored: bytes, texel: TexelMap) -> memoryview:
    """The texels of one aspect, as a Vulkan copy has them, out of stored ones."""
    if texel.used_bytes == texel.memory_bytes == 4 and texel.first == 0:
        return memoryview(array.array("I", stored)[:: texel.stored_bytes // 4]).cast("B")  # faster than byte by byte
    result = bytearray(len(stored) // texel.stored_bytes * texel.memory_bytes)
    for index in range(texel.used_bytes):
        result[index :: texel.memory_bytes] = stored[texel.first + index :: texel.stored_bytes]
    return memoryview(result)


class _DdsWriter(ImageWriter):
    def __init__(
        self, path: str, format: Format, width: int, height: int, planes: tuple[int, ...], create: CreateOutput
    ) -> None:
        mip_count = len(planes) // len(format.aspects)
        header = format_header(format, width, height, mip_count)
        self._maps = texel_maps(format)
        levels = level_layout(format, self._maps[0].stored_bytes, width, height, mip_count, offset=0)
        size_bytes = sum(level.stored_size_bytes for level in levels)
        super().__init__(create(path, len(header) + size_bytes), planes, len(format.aspects), header, size_bytes)

    def _write_part(self, plane: int, part: memoryview) -> None:
        if self._maps[0].is_plain:
            self._append(part)
            return
        self._held[plane % self._aspects] += part
        if plane % self._aspects == self._aspects - 1 and self._done + len(part) == self._planes[plane]:
            self._write_level()
            for held in self._held:
                held.clear()

    def _write_level(self) -> None:
        count = len(self._held[0]) // self._maps[0].memory_bytes
        # The fourth byte of a colour is 255, so that a reader who takes it for alpha sees the image.
        filling = b"\xff" if self._aspects == 1 else b"\0"
        for start in range(0, count, _CHUNK_TEXELS):
            stop = min(start + _CHUNK_TEXELS, count)
            stored = bytearray(filling) * ((stop - start) * self._maps[0].stored_bytes)
            for texel, held in zip(self._maps, self._held, strict=True):
                part = held[start * texel.memory_bytes : stop * texel.memory_bytes]
                for index in range(texel.used_bytes):
                    stored[texel.first + index :: texel.stored_bytes] = part[index :: texel.memory_bytes]
            self._append(stored)


class DdsCodec(Codec):
    """Microsoft's textures: texels of a DXGI_FORMAT."""

    extension = ".dds"
    signature = MAGIC
    holds_levels = True

    def why_not(self, format: Format) -> str | None:
        return "it has no DXGI_FORMAT, which a .dds file needs" if format.dxgi is None else None

    def read_header(self, path: str) -> ImageHeader:
        header = read_header(path)
        return ImageHeader(header.format, header.width, header.height, len(header.mip_levels))

    def open_image(self, path: str, format: Format, width: int, height: int, mip_count: int) -> ImageReader:
        reader = DdsReader(path)
        try:
            _check(path, reader.header, format, width, height, mip_count)
        except BaseException:
            reader.close()
            raise
        return reader

    def create_image(
        self, path: str, format: Format, width: int, height: int, planes: tuple[int, ...], create: CreateOutput
    ) -> ImageWriter:
        return _DdsWriter(path, format, width, height, planes, create)


def _check(path: str, header: DdsHeader, format: Format, width: int, height: int, mip_count: int) -> None:
    if not _fits(header, format):
        raise mismatch(path, f"has texels of {header.format.name!r}, but the scenario declares {format.name!r}")
    check_extent(path, header.width, header.height, width, height)
    if len(header.mip_levels) > mip_count:
        raise mismatch(path, f"has {len(header.mip_levels)} mip levels, but the scenario declares {mip_count}")


def _fits(header: DdsHeader, format: Format) -> bool:
    file_format = header.format
    if file_format is format or (file_format.dxgi is not None and file_format.dxgi == format.dxgi):
        return True
    if not header.is_srgb_known and find_format(file_format.name.replace("_UNORM", "_SRGB")) is format:
        return True
    return (file_format.name, format.name) in (
        ("VK_FORMAT_D32_SFLOAT_S8_UINT", "VK_FORMAT_R32_SFLOAT"),
        ("VK_FORMAT_D32_SFLOAT_S8_UINT", "VK_FORMAT_D32_SFLOAT"),
    )
