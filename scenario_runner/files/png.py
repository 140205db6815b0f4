"""The codec of PNG images of 8 and 16 bits a channel.

Reading goes through imageio, with two exceptions that it cannot do: the header is read here first, so that no decoder
ever sees a file that claims more texels than it can hold, and colours of 16 bits are taken out of its decoder (Pillow)
in two passes, because it keeps only eight of them. For the same reason they are encoded here.

Source: PNG specification, second edition. Imports of imageio and NumPy are paid by runs that name a PNG file only.
"""

from __future__ import annotations

import io
import os
import struct
import warnings
import zlib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from scenario_runner.files.codec import (
    Codec,
    HeldImageWriter,
    ImageHeader,
    ImageReader,
    ImageWriter,
    cannot_hold,
    check_extent,
)
from scenario_runner.files.output import CreateOutput, OutputFile
from scenario_runner.files.png_chunks import damaged, essential_chunks, unsupported
from scenario_runner.files.source import SourceFile, file_error
from scenario_runner.formats import Format, format_named

if TYPE_CHECKING:
    import numpy

    Array = numpy.ndarray[Any, numpy.dtype[Any]]

__all__ = ["PngHeader", "read_header", "read_texels", "why_not", "write_png"]

SIGNATURE = b"\x89PNG\r\n\x1a\n"
_TEXEL_LIMIT = 8192 * 8192  # the reference's, and below the one at which Pillow starts to warn
_DEFLATE_RATIO_LIMIT = 1032  # no deflate stream expands more
_CHUNK_LIMIT = 1000  # chunks before the first texels
_COMPRESSION_LEVEL = 3
_GRAY, _RGB, _PALETTE, _GRAY_ALPHA, _RGB_ALPHA = 0, 2, 3, 4, 6
_BIT_DEPTHS = {
    _GRAY: (1, 2, 4, 8, 16),
    _RGB: (8, 16),
    _PALETTE: (1, 2, 4, 8),
    _GRAY_ALPHA: (8, 16),
    _RGB_ALPHA: (8, 16),
}
_SAMPLES = {_GRAY: 1, _RGB: 3, _PALETTE: 1, _GRAY_ALPHA: 2, _RGB_ALPHA: 4}
_MODES = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}
_CHANNEL_NAMES = {1: "gray", 2: "gray and alpha", 3: "RGB", 4: "RGBA"}


class PngHeader(NamedTuple):
    """What a PNG file says it holds.

    ``channels`` are those of the decoded image: 1 gray, 2 gray and alpha, 3 RGB, 4 RGBA; ``bit_depth`` is 8 or 16 (1, 2
    and 4 bits are widened to 8). ``has_color_key`` tells that one colour stands for transparent.
    """

    width: int
    height: int
    channels: int
    bit_depth: int
    has_color_key: bool


def read_header(path: str | os.PathLike[str]) -> PngHeader:
    """The checked header of a PNG file; nothing is decoded. Raises `FileError`."""
    with SourceFile(path) as source:
        return _parse_header(source)


def why_not(format: Format) -> str | None:
    """Why texels of ``format`` have no PNG form; None where they have one."""
    is_unsigned = format.numeric in ("unorm", "srgb", "uint") and format.channels in (
        "R",
        "RG",
        "RGB",
        "RGBA",
        "BGR",
        "BGRA",
    )
    if is_unsigned and not format.is_packed and not format.is_compressed and format.channel_bits[0] in (8, 16):
        return None
    return "a PNG file has unsigned channels of 8 or 16 bits"


def _check_format(path: str | os.PathLike[str], format: Format) -> None:
    reason = why_not(format)
    if reason is not None:
        raise cannot_hold(path, format, reason)


def read_texels(path: str | os.PathLike[str], format: Format) -> memoryview:
    """The whole image as tightly packed texels of ``format``, rows from the top.

    Gray is repeated for three colours, missing alpha is opaque; ``unorm`` channels are widened to the format's bits,
    ``uint`` ones must have the file's. Raises `FileError`, also when a channel or bits of the file would be lost.
    """
    with SourceFile(path) as source:
        header = _parse_header(source)
        check_texels(source.path, header, format)
        data = essential_chunks(source.path, source.read(source.size_bytes))
        return _as_texels(_decoded(source.path, header, data), format)


def check_texels(path: str, header: PngHeader, format: Format) -> None:
    """Raise `FileError` when texels of ``format`` would lose channels or bits of a file with this header."""
    _check_format(path, format)
    # What a count of channels means is in `_CHANNEL_NAMES`; three have no room for an alpha, two have no colours.
    if header.channels > format.components or (header.channels, format.components) in ((3, 2), (2, 3)):
        raise file_error(
            path,
            f"has {header.channels} channels ({_CHANNEL_NAMES[header.channels]}),"
            f" but {format.name!r} has {format.components}",
            code="SR-FILE-002",
        )
    bits = format.channel_bits[0]
    if header.bit_depth > bits or (format.numeric == "uint" and header.bit_depth != bits):
        raise file_error(
            path,
            f"has channels of {header.bit_depth} bits, but those of {format.name!r} have {bits}",
            code="SR-FILE-002",
        )


def write_png(
    path: str | os.PathLike[str],
    format: Format,
    width: int,
    height: int,
    texels: bytes | bytearray | memoryview,
    *,
    create: CreateOutput = OutputFile,
) -> None:
    """Write tightly packed texels of ``format`` as gray, gray with alpha, RGB or RGBA of 8 or 16 bits.

    The file appears complete or not at all; missing folders are created. Raises `FileError`, and ``ValueError`` when
    the size does not fit.
    """
    import numpy

    _check_format(path, format)
    array: Array = numpy.frombuffer(texels, format.numpy_dtype).reshape(height, width, format.components)
    if format.channels[0] == "B":
        array = array[..., [2, 1, 0, 3][: format.components]]
    with create(path, 0) as output:
        for part in _encoded(array):
            output.write(part)


def _parse_header(source: SourceFile) -> PngHeader:
    start = source.read(33)
    if not start:
        raise damaged(source.path, "is empty, expected a PNG file")
    if start[:8] != SIGNATURE:
        raise damaged(source.path, f"is not a PNG file: it begins with {start[:8]!r}, expected {SIGNATURE!r}")
    if len(start) < 33:
        raise damaged(source.path, f"ends after {len(start)} bytes, within its PNG header (truncated?)")
    length, kind, width, height, bits, color, compression, filtering, interlace = struct.unpack(
        ">I4sIIBBBBB", start[8:29]
    )
    if (length, kind) != (13, b"IHDR"):
        raise damaged(source.path, f"begins with a chunk {kind!r} of {length} bytes, expected b'IHDR' of 13 bytes")
    if bits not in _BIT_DEPTHS.get(color, ()) or compression or filtering or interlace > 1:
        raise damaged(
            source.path,
            f"has a PNG header with bit depth {bits}, colour type {color}, compression {compression}, filter"
            f" {filtering} and interlace {interlace}, which is not a valid combination",
        )
    if not 0 < width * height <= _TEXEL_LIMIT:
        raise unsupported(source.path, f"says it has {width}x{height} texels, expected 1 to {_TEXEL_LIMIT} in all")
    decoded_size = height * -(-width * bits * _SAMPLES[color] // 8)
    if decoded_size > source.size_bytes * _DEFLATE_RATIO_LIMIT:
        raise damaged(
            source.path,
            f"says it has {width}x{height} texels ({decoded_size} bytes), more than a file of"
            f" {source.size_bytes} bytes can hold (truncated?)",
        )
    has_transparency = _has_transparency(source)
    channels = {_GRAY: 1, _RGB: 3, _PALETTE: 3, _GRAY_ALPHA: 2, _RGB_ALPHA: 4}[color]
    has_color_key = has_transparency and channels in (1, 3)
    return PngHeader(width, height, channels + has_color_key, max(bits, 8), has_color_key and color != _PALETTE)


def _has_transparency(source: SourceFile) -> bool:
    """Whether a tRNS chunk comes before the texels."""
    offset, found = 33, False
    for _ in range(_CHUNK_LIMIT):
        head = source.read(8, offset)
        if len(head) < 8:
            raise damaged(source.path, f"ends after {source.size_bytes} bytes, before its texels (truncated?)")
        length, kind = struct.unpack(">I4s", head)
        if kind == b"IDAT":
            return found
        found = found or kind == b"tRNS"
        offset += 12 + length
    raise unsupported(source.path, f"has more than {_CHUNK_LIMIT} chunks before its texels")


def _decoded(path: str, header: PngHeader, data: bytes) -> Array:
    """The decoded image, (height, width, channels), of ``uint8`` or ``uint16``."""
    import imageio.v3
    import numpy

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about oddities in chunks that do not concern the texels
            if header.bit_depth == 16 and (header.channels > 1 or header.has_color_key):
                array = _decoded_16_bit_colors(header, data)
            else:
                # Pillow copies an image when it is asked for the mode that it has
                is_mode_stored = data[24] in (8, 16) and data[25] != _PALETTE and not header.has_color_key
                mode = None if is_mode_stored else _MODES[header.channels]
                array = imageio.v3.imread(io.BytesIO(data), plugin="pillow", mode=mode, index=0, writeable_output=False)
    except Exception as error:  # Pillow raises whatever its parsers run into: SyntaxError, OSError, struct.error, ...
        reason = str(error) or type(error).__name__
        raise damaged(path, f"cannot be decoded as a PNG file: {reason[:1].lower()}{reason[1:]}") from error
    array = array.reshape(*array.shape[:2], -1)
    expected = (header.height, header.width, header.channels)
    if array.shape != expected or array.dtype.itemsize * 8 != header.bit_depth:
        raise damaged(path, f"was decoded to {array.shape} of {array.dtype}, expected {expected}")
    return array.astype(numpy.dtype(f"u{header.bit_depth // 8}"), copy=False)


def _decoded_16_bit_colors(header: PngHeader, data: bytes) -> Array:
    """Both bytes of each channel: Pillow unpacks the high one, or the low one when told that it comes last."""
    import numpy
    from PIL import Image

    stored = header.channels - header.has_color_key
    parts = []
    for raw_mode in {1: ("I;16B",), 2: ("RGBA",), 3: ("RGB;16B", "RGB;16L"), 4: ("RGBA;16B", "RGBA;16L")}[stored]:
        with Image.open(io.BytesIO(data), formats=("PNG",)) as image:
            image.tile = [tile._replace(args=raw_mode) for tile in image.tile]
            key = image.info.get("transparency")
            parts.append(numpy.asarray(image))
    if stored == 1:
        array = parts[0].astype("u2")[..., None]
    elif stored == 2:  # four bytes a texel, which Pillow may as well take for RGBA
        array = parts[0].reshape(header.height, header.width, 4).view(">u2").astype("u2")
    else:
        array = parts[0].astype("u2") << 8 | parts[1]
    if header.has_color_key:
        is_opaque = (array != numpy.asarray(key, "u2")).any(axis=-1)
        array = numpy.concatenate([array, numpy.where(is_opaque, 0xFFFF, 0).astype("u2")[..., None]], axis=-1)
    return array


def _as_texels(array: Array, format: Format) -> memoryview:
    import numpy

    bits, found = format.channel_bits[0], array.dtype.itemsize * 8
    if bits == found and array.shape[2] == format.components and format.channels[0] != "B":
        return numpy.ascontiguousarray(array, f"<u{bits // 8}").data.cast("B")  # as they are, often without a copy
    if bits > found:
        array = array.astype("u2") * numpy.uint16(257)
    height, width, channels = array.shape
    texels = numpy.full((height, width, format.components), (1 << bits) - 1, f"<u{bits // 8}")
    colors = format.components - (format.components in (2, 4))
    if channels <= 2:
        texels[..., :colors] = array[..., :1]
    else:
        texels[..., :colors] = array[..., :colors]
    if channels in (2, 4):
        texels[..., -1] = array[..., -1]
    if format.channels[0] == "B":
        texels = numpy.ascontiguousarray(texels[..., [2, 1, 0, 3][: format.components]])
    return texels.data.cast("B")


def _encoded(array: Array) -> Iterable[bytes]:
    import imageio.v3

    channels = array.shape[-1]
    if array.dtype.itemsize == 1 or channels == 1:
        squeezed = array[..., 0] if channels == 1 else array
        native = squeezed.astype(squeezed.dtype.newbyteorder("="), copy=False)
        # higher levels take up to five times as long for photographs, and save a twentieth of their size
        yield imageio.v3.imwrite(
            "<bytes>", native, plugin="pillow", extension=".png", is_batch=False, compress_level=_COMPRESSION_LEVEL
        )
    else:
        yield from _encoded_16_bit_colors(array)


def _encoded_16_bit_colors(array: Array) -> Iterable[bytes]:
    """A PNG stream whose rows all have the filter "Up": fast, and good for images that are smooth."""
    import numpy

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    height, width, channels = array.shape
    color = {2: _GRAY_ALPHA, 3: _RGB, 4: _RGB_ALPHA}[channels]
    yield SIGNATURE + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 16, color, 0, 0, 0))
    compressor = zlib.compressobj(_COMPRESSION_LEVEL)
    step = max(1, (1 << 20) // (width * channels * 2))
    above = numpy.zeros((1, width * channels * 2), "u1")
    for start in range(0, height, step):
        rows = array[start : start + step].astype(">u2").view("u1").reshape(-1, width * channels * 2)
        filtered = numpy.full((len(rows), 1 + rows.shape[1]), 2, "u1")
        filtered[:, 1:] = rows - numpy.concatenate([above, rows[:-1]])
        above = rows[-1:]
        packed = compressor.compress(filtered.tobytes())
        if packed:
            yield chunk(b"IDAT", packed)
    yield chunk(b"IDAT", compressor.flush()) + chunk(b"IEND", b"")


class PngCodec(Codec):
    """Portable network graphics: gray or RGB, with or without alpha."""

    extension = ".png"
    signature = SIGNATURE

    def why_not(self, format: Format) -> str | None:
        return why_not(format)

    def read_header(self, path: str) -> ImageHeader:
        header = read_header(path)
        channels = "".join(f"{letter}{header.bit_depth}" for letter in "RGBA"[: header.channels])
        return ImageHeader(format_named(f"VK_FORMAT_{channels}_UNORM"), header.width, header.height)

    def open_image(self, path: str, format: Format, width: int, height: int, mip_count: int) -> ImageReader:
        header = read_header(path)
        check_extent(path, header.width, header.height, width, height)
        check_texels(path, header, format)
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
            texels = read_texels(self._path, self._format)
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
        write_png(self._path, self._format, *self._extent, held[0], create=self._create)
