"""PNG images of 8 and 16 bits a channel.

imageio decodes and encodes texels. No file reaches the decoder that claims more texels than it can hold, or that has
damaged chunks or missing rows. The decoder (Pillow) keeps only 8 bits of 16-bit colours: so it reads these in two
passes, and this module encodes them itself. Only functions for texels import imageio and NumPy, which takes long.

Source: PNG specification, second edition.
"""

from __future__ import annotations

import io
import os
import struct
import warnings
import zlib
from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from scenario_runner.errors import FileError, file_error
from scenario_runner.files import codec
from scenario_runner.files.input import SourceFile, read_start
from scenario_runner.files.output import CreateOutput
from scenario_runner.files.vk_formats import Format, format_named

if TYPE_CHECKING:
    from scenario_runner.files.elements import Array

_damaged = partial(file_error, code="SR-FILE-011")
_unsupported = partial(file_error, code="SR-FILE-012")

SIGNATURE = b"\x89PNG\r\n\x1a\n"
_TEXEL_LIMIT = 8192 * 8192  # as in the reference runner; Pillow warns about more texels
_DEFLATE_RATIO_LIMIT = 1032  # no deflate stream expands more
_CHUNK_LIMIT = 1000  # of chunks before the first texels
_GRAY, _RGB, _PALETTE, _GRAY_ALPHA, _RGB_ALPHA = 0, 2, 3, 4, 6
_BIT_DEPTHS = {_GRAY: (1, 2, 4, 8, 16), _PALETTE: (1, 2, 4, 8)} | dict.fromkeys(
    (_RGB, _GRAY_ALPHA, _RGB_ALPHA), (8, 16)
)
_SAMPLES = {_GRAY: 1, _RGB: 3, _PALETTE: 1, _GRAY_ALPHA: 2, _RGB_ALPHA: 4}


class PngHeader(NamedTuple):
    """The header of a PNG file.

    ``channels`` counts channels of the decoded image: 1 gray, 2 gray and alpha, 3 RGB, 4 RGBA. ``bit_depth`` is 8 or 16
    (1, 2 and 4 bits are widened to 8). With ``has_color_key`` a colour stands for transparent.
    """

    width: int
    height: int
    channels: int
    bit_depth: int
    has_color_key: bool


def parse_header(source: SourceFile) -> PngHeader:
    """Read and check the header of an open PNG file. Raises `FileError`."""
    start = read_start(source, 33, SIGNATURE, "a PNG file", _damaged)
    if len(start) < 33:
        raise _damaged(source.path, f"ends after {len(start)} bytes, within its PNG header (truncated?)")
    length, kind, width, height, bits, color, compression, filtering, interlace = struct.unpack(
        ">I4sIIBBBBB", start[8:29]
    )
    if (length, kind) != (13, b"IHDR"):
        raise _damaged(source.path, f"begins with a chunk {kind!r} of {length} bytes, expected b'IHDR' of 13 bytes")
    if bits not in _BIT_DEPTHS.get(color, ()) or compression or filtering or interlace > 1:
        methods = f"compression {compression}, filter {filtering} and interlace {interlace}"
        message = f"has a PNG header with bit depth {bits}, colour type {color}, {methods}: no valid combination"
        raise _damaged(source.path, message)
    if not 0 < width * height <= _TEXEL_LIMIT:
        raise _unsupported(source.path, f"says it has {width}x{height} texels, expected 1 to {_TEXEL_LIMIT} in all")
    decoded_size = height * -(-width * bits * _SAMPLES[color] // 8)
    if decoded_size > source.size_bytes * _DEFLATE_RATIO_LIMIT:
        raise _damaged(
            source.path,
            f"says it has {width}x{height} texels ({decoded_size} bytes), more than a file of"
            f" {source.size_bytes} bytes can hold (truncated?)",
        )
    has_transparency = _has_transparency(source)
    channels = {_GRAY: 1, _RGB: 3, _PALETTE: 3, _GRAY_ALPHA: 2, _RGB_ALPHA: 4}[color]
    has_color_key = has_transparency and channels in (1, 3)
    return PngHeader(width, height, channels + has_color_key, max(bits, 8), has_color_key and color != _PALETTE)


def _has_transparency(source: SourceFile) -> bool:
    """Return whether a tRNS chunk comes before the texels."""
    offset, is_transparent = 33, False
    for _ in range(_CHUNK_LIMIT):
        head = source.read(8, offset)
        if len(head) < 8:
            raise _damaged(source.path, f"ends after {source.size_bytes} bytes, before its texels (truncated?)")
        length, kind = struct.unpack(">I4s", head)
        if kind == b"IDAT":
            return is_transparent
        is_transparent = is_transparent or kind == b"tRNS"
        offset += 12 + length
    raise _unsupported(source.path, f"has more than {_CHUNK_LIMIT} chunks before its texels")


def read_header(path: str | os.PathLike[str]) -> PngHeader:
    """Read and check the header of a PNG file. Raises `FileError`."""
    with SourceFile(path) as source:
        return parse_header(source)


_COMPRESSION_LEVEL = 3
_MODES = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}

# The decoder fails on large texts and broken Exif data, although texels do not need them, and it accepts half an image
# if the compressed rows end early.
_CHUNKS_IN_ALL_LIMIT = 1 << 18
_KEPT = (b"IHDR", b"PLTE", b"tRNS", b"IDAT", b"IEND")
# First column and row, and steps between columns and rows, of the seven passes of an interlaced image.
_PASSES = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))


def _essential_chunks(path: str, data: bytes) -> bytes:
    """Remove chunks that do not concern texels from the PNG file ``data``: text, time, profiles, Exif data, animation.

    ``data`` begins with a valid signature and IHDR chunk. Raises `FileError` about ``path`` if the IEND chunk is
    missing, the check sum of an essential chunk is wrong, or rows are missing.
    """
    view = memoryview(data)
    kept: list[memoryview | bytes] = [view[:8]]
    kinds: set[bytes] = set()
    compressed: list[memoryview] = []
    offset = 8
    for _ in range(_CHUNKS_IN_ALL_LIMIT):
        length, kind = struct.unpack(">I4s", data[offset : offset + 8].ljust(8, b"\0"))
        end = offset + 12 + length
        if end > len(data):
            raise _damaged(path, f"ends after {len(data)} bytes, expected an IEND chunk at the end (truncated?)")
        if kind in _KEPT and not (kind != b"IDAT" and kind != b"IEND" and b"IDAT" in kinds):
            if zlib.crc32(view[offset + 4 : end - 4]) != int.from_bytes(view[end - 4 : end], "big"):
                raise _damaged(path, f"has a chunk {kind!r} whose check sum is wrong (damaged?)")
            kept.append(view[offset:end] if kind != b"tRNS" else _widened_key(data, view[offset:end]))
            kinds.add(kind)
        elif kind not in _KEPT and not kind[0] & 0x20:
            raise _unsupported(path, f"has a chunk {kind!r}, which is essential for its texels and unknown")
        if kind == b"IDAT":
            compressed.append(view[offset + 8 : end - 4])
        if kind == b"IEND":
            break
        offset = end
    else:
        raise _unsupported(path, f"has more than {_CHUNKS_IN_ALL_LIMIT} chunks")
    if data[25] == _PALETTE and b"PLTE" not in kinds:
        raise _damaged(path, "has texels that are numbers of colours, but no chunk b'PLTE' that says which colours")
    _check_rows(path, data, b"".join(compressed))
    return b"".join(kept)


def _widened_key(data: bytes, chunk: memoryview) -> memoryview | bytes:
    """Widen gray of two or four bits in a tRNS chunk to eight bits, since Pillow compares it with widened texels."""
    bits, color = data[24], data[25]
    if color != _GRAY or bits not in (2, 4) or len(chunk) != 14:
        return chunk
    most = (1 << bits) - 1
    body = b"tRNS" + ((chunk[9] & most) * 255 // most).to_bytes(2, "big")
    return bytes(chunk[:4]) + body + zlib.crc32(body).to_bytes(4, "big")


def _check_rows(path: str, data: bytes, compressed: bytes) -> None:
    """Raise `FileError` if the compressed data have fewer rows than the header says.

    Data after the rows are ignored.
    """
    width, height, bits, color, _, _, interlace = struct.unpack_from(">IIBBBBB", data, 16)
    expected = 0
    for x, y, x_step, y_step in _PASSES if interlace else ((0, 0, 1, 1),):
        columns, rows = -(-(width - x) // x_step), -(-(height - y) // y_step)
        if columns > 0 and rows > 0:
            expected += rows * (1 + -(-columns * bits * _SAMPLES[color] // 8))
    try:
        size = len(zlib.decompressobj().decompress(compressed, expected))
    except zlib.error as error:
        raise _undecodable(path, error) from error
    if size < expected:
        message = f"has {size} bytes of rows, expected {expected} of an image of its size (truncated?)"
        raise _damaged(path, message)


def _undecodable(path: str, error: Exception) -> FileError:
    reason = str(error) or type(error).__name__
    return _damaged(path, f"cannot be decoded as a PNG file: {reason[:1].lower()}{reason[1:]}")


def _decoded(path: str, header: PngHeader, data: bytes) -> Array:
    """Decode an image to an array (height, width, channels) of ``uint8`` or ``uint16``."""
    import imageio.v3
    import numpy

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about oddities in chunks that do not concern texels
            if header.bit_depth == 16 and (header.channels > 1 or header.has_color_key):
                array = _decoded_16_bit_colors(header, data)
            else:
                # without a mode Pillow does not copy the image
                is_mode_stored = data[24] in (8, 16) and data[25] != _PALETTE and not header.has_color_key
                mode = None if is_mode_stored else _MODES[header.channels]
                array = imageio.v3.imread(io.BytesIO(data), plugin="pillow", mode=mode, index=0, writeable_output=False)
    except Exception as error:  # Pillow raises any error of a parser: SyntaxError, OSError, struct.error, ...
        raise _undecodable(path, error) from error
    array = array.reshape(*array.shape[:2], -1)
    expected = (header.height, header.width, header.channels)
    if array.shape != expected or array.dtype.itemsize * 8 != header.bit_depth:
        raise _damaged(path, f"was decoded to {array.shape} of {array.dtype}, expected {expected}")
    return array.astype(numpy.dtype(f"u{header.bit_depth // 8}"), copy=False)


def _decoded_16_bit_colors(header: PngHeader, data: bytes) -> Array:
    """Decode both bytes of each channel. Pillow unpacks the high bytes, or for little-endian colours the low bytes."""
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
    elif stored == 2:  # Pillow takes the four bytes of a texel for RGBA
        array = parts[0].reshape(header.height, header.width, 4).view(">u2").astype("u2")
    else:
        array = parts[0].astype("u2") << 8 | parts[1]
    if header.has_color_key:
        is_opaque = (array != numpy.asarray(key, "u2")).any(axis=-1)
        array = numpy.concatenate([array, numpy.where(is_opaque, 0xFFFF, 0).astype("u2")[..., None]], axis=-1)
    return array


def _encoded(planes: Sequence[memoryview], format: Format, shape: tuple[int, ...]) -> Iterable[bytes]:
    """Encode texels of ``format``. Yield the parts of the file."""
    import imageio.v3
    import numpy

    array: Array = numpy.frombuffer(planes[0], format.numpy_dtype).reshape(shape)
    if format.channels[0] == "B":
        array = array[..., [2, 1, 0, 3][: format.components]]
    if array.dtype.itemsize == 2 and format.components > 1:
        yield from _encoded_16_bit_colors(array)
        return
    squeezed = array[..., 0] if format.components == 1 else array
    native = squeezed.astype(squeezed.dtype.newbyteorder("="), copy=False)
    # for photographs, higher levels take up to five times as long and save 5 % of the size
    yield imageio.v3.imwrite(
        "<bytes>", native, plugin="pillow", extension=".png", is_batch=False, compress_level=_COMPRESSION_LEVEL
    )


def _as_texels(array: Array, format: Format) -> memoryview:
    """Convert a decoded image to texels of ``format`` in the layout of a Vulkan copy."""
    import numpy

    bits, bits_in_file = format.channel_bits[0], array.dtype.itemsize * 8
    if bits == bits_in_file and array.shape[2] == format.components and format.channels[0] != "B":
        return numpy.ascontiguousarray(array, f"<u{bits // 8}").data.cast("B")  # often without a copy
    if bits > bits_in_file:
        array = array.astype("u2") * numpy.uint16(257)
    height, width, channels = array.shape
    texels = numpy.full((height, width, format.components), (1 << bits) - 1, f"<u{bits // 8}")
    colors = format.components - (format.components in (2, 4))
    texels[..., :colors] = array[..., : 1 if channels <= 2 else colors]
    if channels in (2, 4):
        texels[..., -1] = array[..., -1]
    if format.channels[0] == "B":
        texels = numpy.ascontiguousarray(texels[..., [2, 1, 0, 3][: format.components]])
    return texels.data.cast("B")


def _encoded_16_bit_colors(array: Array) -> Iterable[bytes]:
    """Encode 16-bit colours as a PNG stream. All rows have the filter "Up", which is fast and suits smooth images."""
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


_CHANNELS = ("R", "RG", "RGB", "RGBA", "BGR", "BGRA")  # of formats that a file can hold
_CHANNEL_NAMES = {1: "gray", 2: "gray and alpha", 3: "RGB", 4: "RGBA"}


class PngCodec(codec.Codec):
    """The codec of portable network graphics: gray or RGB, with or without alpha."""

    extension = ".png"
    signature = SIGNATURE

    def why_not(self, format: Format) -> str | None:
        is_unsigned = format.numeric in ("unorm", "srgb", "uint") and not format.is_packed
        if is_unsigned and format.channels in _CHANNELS and set(format.channel_bits) in ({8}, {16}):
            return None
        return "a PNG file has unsigned channels of 8 or 16 bits"

    def read_header(self, path: str) -> codec.ImageHeader:
        header = read_header(path)
        channels = "".join(f"{letter}{header.bit_depth}" for letter in "RGBA"[: header.channels])
        return codec.ImageHeader(format_named(f"VK_FORMAT_{channels}_UNORM"), header.width, header.height)

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
        encode = partial(_encoded, format=format, shape=(height, width, format.components))
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
        if self._texels is None:
            data = _essential_chunks(self.source.path, self.source.read(self.source.size_bytes))
            self._texels = _as_texels(_decoded(self.source.path, self.header, data), self._format)
        view[:] = self._texels[offset : offset + len(view)]
