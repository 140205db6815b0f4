"""The .dds codec: images with all of their mip levels."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING

from scenario_runner.files import dds
from scenario_runner.files.codec import Codec
from scenario_runner.files.dds_header import MAGIC
from scenario_runner.files.image_reader import ImageHeader, ImageReader, check_extent, mismatch
from scenario_runner.files.image_writer import ImageWriter
from scenario_runner.files.output import CreateOutput
from scenario_runner.formats import Format, find_format

if TYPE_CHECKING:
    from scenario_runner.files.dds_header import DdsHeader


class DdsCodec(Codec):
    """Microsoft's textures: texels of a DXGI_FORMAT."""

    extension = ".dds"
    signature = MAGIC
    holds_levels = True

    def why_not(self, format: Format) -> str | None:
        return dds.why_not(format)

    def read_header(self, path: str) -> ImageHeader:
        header = dds.read_header(path)
        return ImageHeader(header.format, header.width, header.height, len(header.mip_levels))

    def open_image(self, path: str, format: Format, width: int, height: int, mip_count: int) -> ImageReader:
        reader = dds.open_dds(path)
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


def _check(reader: dds.DdsReader, format: Format, width: int, height: int, mip_count: int) -> None:
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
        self._writer = dds.DdsWriter(path, format, width, height, len(planes) // self._aspects, create=create)

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
