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
        return _FlatWriter(path, width, height, planes, create)

    def is_divisible(self, path: str) -> bool:
        return False


class _FlatImage(ImageReader):
    def __init__(self, path: str) -> None:
        with open(path, "rb") as file:
            self._texels = file.read()[6:]

    def level_size_bytes(self, level: int = 0, aspect: str | None = None) -> int:
        return len(self._texels)

    def read_into(
        self,
        destination: memoryview,
        level: int = 0,
        offset: int = 0,
        size: int | None = None,
        aspect: str | None = None,
    ) -> int:
        size = len(self._texels) - offset if size is None else size
        destination.cast("B")[:size] = self._texels[offset : offset + size]
        return size


class _FlatWriter(HeldImageWriter):
    def __init__(self, path: str, width: int, height: int, planes: tuple[int, ...], create: CreateOutput) -> None:
        super().__init__(planes, 1)
        self._path, self._extent, self._create = path, bytes([width, height]), create

    def _store(self, held: list[bytearray]) -> None:
        with self._create(self._path, 0) as output:
            output.write(SIGNATURE + self._extent + held[0])
