"""Texels of PNG images, decoded and encoded by imageio and NumPy. Importing this module takes long.

The decoder (Pillow) never gets a file that claims more texels than it can hold, has damaged chunks or lacks rows.
Pillow keeps only 8 bits of 16-bit colours. So this module decodes such images in two passes, and encodes them itself.
"""

import io
import struct
import warnings
import zlib
from collections.abc import Iterable, Sequence

import imageio.v3
import numpy
from PIL import Image

from scenario_runner.errors import FileError
from scenario_runner.files.elements import Array
from scenario_runner.files.input import PNG_SIGNATURE
from scenario_runner.files.png import (
    GRAY,
    GRAY_ALPHA,
    PALETTE,
    RGB,
    RGB_ALPHA,
    SAMPLES,
    PngHeader,
    damaged,
    unsupported,
)
from scenario_runner.files.vk_formats import Format

_COMPRESSION_LEVEL = 3
_MODES = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}

# The decoder fails on large texts and broken Exif data, although texels do not need them, and it accepts half an image
# if the compressed rows end early.
_CHUNKS_IN_ALL_LIMIT = 1 << 18
_KEPT = (b"IHDR", b"PLTE", b"tRNS", b"IDAT", b"IEND")
# First column and row, and steps between columns and rows, of the seven passes of an interlaced image.
_PASSES = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))


def essential_chunks(path: str, data: bytes) -> bytes:
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
            raise damaged(path, f"ends after {len(data)} bytes, expected an IEND chunk at the end (truncated?)")
        if kind in _KEPT and not (kind != b"IDAT" and kind != b"IEND" and b"IDAT" in kinds):
            if zlib.crc32(view[offset + 4 : end - 4]) != int.from_bytes(view[end - 4 : end], "big"):
                raise damaged(path, f"has a chunk {kind!r} with a wrong check sum (damaged?)")
            kept.append(view[offset:end] if kind != b"tRNS" else _widened_key(data, view[offset:end]))
            kinds.add(kind)
        elif kind not in _KEPT and not kind[0] & 0x20:
            raise unsupported(path, f"has a chunk {kind!r}, which is essential for its texels and unknown")
        if kind == b"IDAT":
            compressed.append(view[offset + 8 : end - 4])
        if kind == b"IEND":
            break
        offset = end
    else:
        raise unsupported(path, f"has more than {_CHUNKS_IN_ALL_LIMIT} chunks")
    if data[25] == PALETTE and b"PLTE" not in kinds:
        raise damaged(path, "has texels that index colours, but no chunk b'PLTE' with the colours")
    _check_rows(path, data, b"".join(compressed))
    return b"".join(kept)


def _widened_key(data: bytes, chunk: memoryview) -> memoryview | bytes:
    """Widen gray of two or four bits in a tRNS chunk to eight bits, since Pillow compares it with widened texels."""
    bits, color = data[24], data[25]
    if color != GRAY or bits not in (2, 4) or len(chunk) != 14:
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
            expected += rows * (1 + -(-columns * bits * SAMPLES[color] // 8))
    try:
        size = len(zlib.decompressobj().decompress(compressed, expected))
    except zlib.error as error:
        raise _undecodable(path, error) from error
    if size < expected:
        message = f"has {size} bytes of rows, expected {expected} of an image of its size (truncated?)"
        raise damaged(path, message)


def _undecodable(path: str, error: Exception) -> FileError:
    reason = str(error) or type(error).__name__
    return damaged(path, f"cannot be decoded as a PNG file: {reason[:1].lower()}{reason[1:]}")


def decoded(path: str, header: PngHeader, data: bytes) -> Array:
    """Decode an image to an array (height, width, channels) of ``uint8`` or ``uint16``."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about oddities in chunks that do not concern texels
            if header.bit_depth == 16 and (header.channels > 1 or header.has_color_key):
                array = _decoded_16_bit_colors(header, data)
            else:
                # without a mode Pillow does not copy the image
                is_mode_stored = data[24] in (8, 16) and data[25] != PALETTE and not header.has_color_key
                mode = None if is_mode_stored else _MODES[header.channels]
                array = imageio.v3.imread(io.BytesIO(data), plugin="pillow", mode=mode, index=0, writeable_output=False)
    except Exception as error:  # Pillow raises any error of a parser: SyntaxError, OSError, struct.error, ...
        raise _undecodable(path, error) from error
    array = array.reshape(*array.shape[:2], -1)
    expected = (header.height, header.width, header.channels)
    if array.shape != expected or array.dtype.itemsize * 8 != header.bit_depth:
        raise damaged(path, f"was decoded to {array.shape} of {array.dtype}, expected {expected}")
    return array.astype(numpy.dtype(f"u{header.bit_depth // 8}"), copy=False)


def _decoded_16_bit_colors(header: PngHeader, data: bytes) -> Array:
    """Decode both bytes of each channel. Pillow unpacks the high bytes, or for little-endian colours the low bytes."""
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


def encoded(planes: Sequence[memoryview], format: Format, shape: tuple[int, ...]) -> Iterable[bytes]:
    """Encode texels in ``format``. Yield the file's parts."""
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


def as_texels(array: Array, format: Format) -> memoryview:
    """Convert a decoded image to texels in ``format``, laid out as in a Vulkan copy."""
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

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    height, width, channels = array.shape
    color = {2: GRAY_ALPHA, 3: RGB, 4: RGB_ALPHA}[channels]
    yield PNG_SIGNATURE + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 16, color, 0, 0, 0))
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
