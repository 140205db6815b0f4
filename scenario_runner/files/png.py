"""The codec of PNG images of 8 and 16 bits a channel."""

from __future__ import annotations

import os

from scenario_runner.files.codec import (
    Codec,
    HeldImageWriter,
    ImageHeader,
    ImageReader,
    ImageWriter,
    check_destination,
    check_extent,
    mismatch,
)
from scenario_runner.files.output import CreateOutput, OutputFile
from scenario_runner.files.png_header import SIGNATURE, PngHeader, parse_header
from scenario_runner.files.source import SourceFile, file_error
from scenario_runner.formats import Format, format_named

_CHANNELS = ("R", "RG", "RGB", "RGBA", "BGR", "BGRA")  # of the formats whose texels a file can hold
_CHANNEL_NAMES = {1: "gray", 2: "gray and alpha", 3: "RGB", 4: "RGBA"}


def read_header(path: str | os.PathLike[str]) -> PngHeader:
    """The checked header of a PNG file; nothing is decoded. Raises `FileError`."""
    with SourceFile(path) as source:
        return parse_header(source)


def _check_texels(path: str, header: PngHeader, format: Format) -> None:
    """Raise `FileError` when texels of ``format`` would lose channels or bits of a file with this header."""
    # What a count of channels means is in `_CHANNEL_NAMES`; three have no room for an alpha, two have no colours.
    if header.channels > format.components or (header.channels, format.components) in ((3, 2), (2, 3)):
        raise mismatch(
            path,
            f"has {header.channels} channels ({_CHANNEL_NAMES[header.channels]}),"
            f" but {format.name!r} has {format.components}",
        )
    bits = format.channel_bits[0]
    if header.bit_depth > bits or (format.numeric == "uint" and header.bit_depth != bits):
        raise mismatch(path, f"has channels of {header.bit_depth} bits, but those of {format.name!r} have {bits}")


class PngCodec(Codec):
    """Portable network graphics: gray or RGB, with or without alpha."""

    extension = ".png"
    signature = SIGNATURE

    def why_not(self, format: Format) -> str | None:
        is_unsigned = format.numeric in ("unorm", "srgb", "uint") and not format.is_packed
        if is_unsigned and format.channels in _CHANNELS and set(format.channel_bits) in ({8}, {16}):
            return None
        return "a PNG file has unsigned channels of 8 or 16 bits"

    def read_header(self, path: str) -> ImageHeader:
        header = read_header(path)
        channels = "".join(f"{letter}{header.bit_depth}" for letter in "RGBA"[: header.channels])
        return ImageHeader(format_named(f"VK_FORMAT_{channels}_UNORM"), header.width, header.height)

    def open_image(self, path: str, format: Format, width: int, height: int, mip_count: int) -> ImageReader:
        check_destination(path, format)
        header = read_header(path)
        check_extent(path, header.width, header.height, width, height)
        _check_texels(path, header, format)
        return _PngImage(path, format, width, height)

    def create_image(
        self, path: str, format: Format, width: int, height: int, planes: tuple[int, ...], create: CreateOutput
    ) -> ImageWriter:
        return _PngWriter(create(path, 0), format, width, height, planes)

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

    def _read(self, view: memoryview, level: int, offset: int, aspect: str | None) -> None:
        if self._texels is None:
            from scenario_runner.files.png_texels import read_texels  # imports imageio and NumPy

            with SourceFile(self._path) as source:
                texels = read_texels(source, self._format)
            if len(texels) != self._size_bytes:
                raise file_error(self._path, "was changed while it was read")
            self._texels = texels
        view[:] = self._texels[offset : offset + len(view)]

    def close(self) -> None:
        self._texels = None


class _PngWriter(HeldImageWriter):
    """The file is compressed when all texels are there."""

    def __init__(self, output: OutputFile, format: Format, width: int, height: int, planes: tuple[int, ...]) -> None:
        super().__init__(output, planes, len(format.aspects))
        self._format, self._shape = format, (height, width, format.components)

    def _finish(self) -> None:
        from scenario_runner.files.png_texels import encoded  # imports imageio and NumPy

        for part in encoded(self._held[0], self._format, self._shape):
            self._output.write(part)
