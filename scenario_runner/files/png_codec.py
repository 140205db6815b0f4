"""The .png codec: the first level of images of 8 or 16 bits a channel."""

from __future__ import annotations

from scenario_runner.files import png
from scenario_runner.files.codec import Codec
from scenario_runner.files.image_reader import ImageHeader, ImageReader, check_extent
from scenario_runner.files.image_writer import HeldImageWriter, ImageWriter
from scenario_runner.files.output import CreateOutput
from scenario_runner.files.source import file_error
from scenario_runner.formats import Format, format_named


class PngCodec(Codec):
    """Portable network graphics: gray or RGB, with or without alpha."""

    extension = ".png"
    signature = png.SIGNATURE

    def why_not(self, format: Format) -> str | None:
        return png.why_not(format)

    def read_header(self, path: str) -> ImageHeader:
        header = png.read_header(path)
        channels = "".join(f"{letter}{header.bit_depth}" for letter in "RGBA"[: header.channels])
        return ImageHeader(format_named(f"VK_FORMAT_{channels}_UNORM"), header.width, header.height)

    def open_image(self, path: str, format: Format, width: int, height: int, mip_count: int) -> ImageReader:
        header = png.read_header(path)
        check_extent(path, header.width, header.height, width, height)
        png.check_texels(path, header, format)
        return _PngImage(path, format, width, height)

    def create_image(
        self, path: str, format: Format, width: int, height: int, planes: tuple[int, ...], create: CreateOutput
    ) -> ImageWriter:
        return _PngImageWriter(path, format, width, height, planes, create)

    def is_divisible(self, path: str) -> bool:
        return False

    def shown_format(self, format: Format) -> tuple[str, tuple[str, ...] | None]:
        name = {1: "gray", 2: "gray with alpha", 3: "RGB", 4: "RGBA"}[format.components]
        channels = ("gray", "A")[: format.components] if format.components <= 2 else None
        return f"{name}, {format.channel_bits[0]} bits a channel", channels


class _PngImage(ImageReader):
    """The file is decoded when its texels are first asked for, and stays decoded until it is closed."""

    def __init__(self, path: str, format: Format, width: int, height: int) -> None:
        self._path, self._format = path, format
        self._size_bytes = format.level_size_bytes(width, height)
        self._texels: memoryview | None = None

    def level_size_bytes(self, level: int = 0, aspect: str | None = None) -> int:
        return self._size_bytes

    def read_into(
        self,
        destination: memoryview,
        level: int = 0,
        offset: int = 0,
        size: int | None = None,
        aspect: str | None = None,
    ) -> int:
        if size is None:
            size = self._size_bytes - offset
        view = destination.cast("B") if destination.nbytes else memoryview(bytearray())
        if offset < 0 or size < 0 or offset + size > self._size_bytes or size > len(view):
            raise ValueError(
                f"bytes {offset} to {offset + size} of a level of {self._size_bytes} bytes were asked for,"
                f" into {len(view)} bytes"
            )
        if self._texels is None:
            texels = png.read_texels(self._path, self._format)
            if len(texels) != self._size_bytes:
                raise file_error(self._path, "was changed while it was read")
            self._texels = texels
        view[:size] = self._texels[offset : offset + size]
        return size

    def close(self) -> None:
        self._texels = None


class _PngImageWriter(HeldImageWriter):
    """The file is compressed when all texels are there."""

    def __init__(
        self, path: str, format: Format, width: int, height: int, planes: tuple[int, ...], create: CreateOutput
    ) -> None:
        super().__init__(planes, len(format.aspects))
        self._path, self._format, self._extent, self._create = path, format, (width, height), create

    def _store(self, held: list[bytearray]) -> None:
        png.write_png(self._path, self._format, *self._extent, held[0], create=self._create)
