"""A file format of the tests: four letters, then the texels of one level."""

from __future__ import annotations

from scenario_runner.files.codec import Codec, HeldImageWriter, ImageHeader, ImageReader, ImageWriter, check_extent
from scenario_runner.files.output import CreateOutput
from scenario_runner.formats import Format, format_named

SIGNATURE = b"FLAT"


class FlatCodec(Codec):
    """Rows of up to 255 texels of one format."""

    extension = ".flat"
    signature = SIGNATURE

    def why_not(self, format: Format) -> str | None:
        return None if format.name == "VK_FORMAT_R8G8_UINT" else "flat files have pairs of bytes"

    def read_header(self, path: str) -> ImageHeader:
        with open(path, "rb") as file:
            width, height = file.read(6)[4:]
        return ImageHeader(format_named("VK_FORMAT_R8G8_UINT"), width, height)

    def open_image(self, path: str, format: Format, width: int, height: int, mip_count: int) -> ImageReader:
        found = self.read_header(path)
        check_extent(path, found.width, found.height, width, height)
        return _FlatImage(path)

    def create_image(
        self, path: str, format: Format, width: int, height: int, planes: tuple[int, ...], create: CreateOutput
    ) -> ImageWriter:
        return _FlatWriter(create(path, 0), planes, 1, SIGNATURE + bytes([width, height]))

    def is_divisible(self, path: str) -> bool:
        return False


class _FlatImage(ImageReader):
    def __init__(self, path: str) -> None:
        with open(path, "rb") as file:
            self._texels = file.read()[6:]

    def level_size_bytes(self, level: int = 0, aspect: str | None = None) -> int:
        return len(self._texels)

    def _read(self, view: memoryview, level: int, offset: int, aspect: str | None) -> None:
        view[:] = self._texels[offset : offset + len(view)]


class _FlatWriter(HeldImageWriter):
    def _finish(self) -> None:
        self._output.write(self._held[0])
