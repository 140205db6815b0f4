"""The codec for PNG images. Only reading and writing texels imports imageio and NumPy, which takes long."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from scenario_runner.files import codec
from scenario_runner.files.input import PNG_SIGNATURE
from scenario_runner.files.output import CreateOutput
from scenario_runner.files.png import PngHeader, parse_header, read_header
from scenario_runner.files.vk_formats import Format, format_named, name_of_channels

_CHANNELS = ("R", "RG", "RGB", "RGBA", "BGR", "BGRA")  # of formats that a file can hold
_CHANNEL_NAMES = {1: "gray", 2: "gray and alpha", 3: "RGB", 4: "RGBA"}


class PngCodec(codec.Codec):
    """The codec of portable network graphics: gray or RGB, with or without alpha."""

    extension = ".png"
    signature = PNG_SIGNATURE

    def why_not(self, format: Format) -> str | None:
        is_unsigned = format.numeric in ("unorm", "srgb", "uint") and not format.is_packed
        if is_unsigned and format.channels in _CHANNELS and set(format.channel_bits) in ({8}, {16}):
            return None
        return "a PNG file has unsigned channels of 8 or 16 bits"

    def read_header(self, path: str) -> codec.ImageHeader:
        header = read_header(path)
        format = format_named(name_of_channels(header.channels, header.bit_depth, "UNORM"))
        return codec.ImageHeader(format, header.width, header.height)

    def _open(self, path: str, format: Format) -> _PngReader:
        return _PngReader(path, format)

    def _check(self, path: str, header: PngHeader, format: Format, width: int, height: int, mip_count: int) -> None:
        codec.check_extent(path, header.width, header.height, width, height)
        # Three channels have no room for alpha, two have no colours (`_CHANNEL_NAMES`).
        if header.channels > format.components or (header.channels, format.components) in ((3, 2), (2, 3)):
            channels = f"{header.channels} channels ({_CHANNEL_NAMES[header.channels]})"
            raise codec.mismatch(path, channels, f"{format.name!r} with {format.components}")
        bits = format.channel_bits[0]
        if header.bit_depth > bits or (format.numeric == "uint" and header.bit_depth != bits):
            raise codec.mismatch(path, f"channels of {header.bit_depth} bits", f"{format.name!r} with {bits}")

    def create_image(
        self, path: str, format: Format, width: int, height: int, planes: Sequence[int], create: CreateOutput
    ) -> codec.ContentWriter:
        from scenario_runner.files.png_texels import encoded

        encode = partial(encoded, format=format, shape=(height, width, format.components))
        return codec.HeldImageWriter(create(path, 0), planes, encode)

    def is_divisible(self, path: str) -> bool:
        return False

    def shown_format(self, format: Format) -> tuple[str, tuple[str, ...] | None]:
        name = {1: "gray", 2: "gray with alpha", 3: "RGB", 4: "RGBA"}[format.components]
        channels = ("gray", "A")[: format.components] if format.components <= 2 else None
        return f"{name}, {format.channel_bits[0]} bits a channel", channels


class _PngReader(codec.ContentReader[PngHeader]):
    """An open PNG file. The first read decodes all texels, which are kept until the file is closed."""

    def __init__(self, path: str, format: Format) -> None:
        super().__init__(path, parse_header)
        self._format = format
        self._texels: memoryview | None = None

    def level_size_bytes(self, level: int = 0, aspect: str | None = None) -> int:
        return self._format.level_size_bytes(self.header.width, self.header.height)

    def _read(self, view: memoryview, level: int, offset: int, aspect: str | None) -> None:
        from scenario_runner.files import png_texels

        if self._texels is None:
            data = png_texels.essential_chunks(self.source.path, self.source.read(self.source.size_bytes))
            image = png_texels.decoded(self.source.path, self.header, data)
            self._texels = png_texels.as_texels(image, self._format)
        view[:] = self._texels[offset : offset + len(view)]
