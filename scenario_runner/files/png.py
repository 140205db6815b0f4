"""Headers of PNG images with 8 or 16 bits per channel.

Source: PNG specification, second edition.
"""

import os
import struct
from functools import partial
from typing import NamedTuple

from scenario_runner.errors import file_error
from scenario_runner.files.input import PNG_SIGNATURE, SourceFile, read_start

damaged = partial(file_error, code="SR-FILE-011")
unsupported = partial(file_error, code="SR-FILE-012")

_TEXEL_LIMIT = 8192 * 8192  # as in the reference runner; Pillow warns about more texels
_DEFLATE_RATIO_LIMIT = 1032  # no deflate stream expands more
_CHUNK_LIMIT = 1000  # of chunks before the first texels
GRAY, RGB, PALETTE, GRAY_ALPHA, RGB_ALPHA = 0, 2, 3, 4, 6
_BIT_DEPTHS = {GRAY: (1, 2, 4, 8, 16), PALETTE: (1, 2, 4, 8)} | dict.fromkeys((RGB, GRAY_ALPHA, RGB_ALPHA), (8, 16))
SAMPLES = {GRAY: 1, RGB: 3, PALETTE: 1, GRAY_ALPHA: 2, RGB_ALPHA: 4}


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
    start = read_start(source, 33, PNG_SIGNATURE, "a PNG file", damaged)
    if len(start) < 33:
        raise damaged(source.path, f"ends after {len(start)} bytes, within its PNG header (truncated?)")
    length, kind, width, height, bits, color, compression, filtering, interlace = struct.unpack(
        ">I4sIIBBBBB", start[8:29]
    )
    if (length, kind) != (13, b"IHDR"):
        raise damaged(source.path, f"begins with a chunk {kind!r} of {length} bytes, expected b'IHDR' of 13 bytes")
    if bits not in _BIT_DEPTHS.get(color, ()) or compression or filtering or interlace > 1:
        methods = f"compression {compression}, filter {filtering} and interlace {interlace}"
        message = f"has a PNG header with bit depth {bits}, colour type {color}, {methods}: no valid combination"
        raise damaged(source.path, message)
    if not 0 < width * height <= _TEXEL_LIMIT:
        raise unsupported(source.path, f"says it has {width}x{height} texels, expected 1 to {_TEXEL_LIMIT} in all")
    decoded_size = height * -(-width * bits * SAMPLES[color] // 8)
    if decoded_size > source.size_bytes * _DEFLATE_RATIO_LIMIT:
        raise damaged(
            source.path,
            f"says it has {width}x{height} texels ({decoded_size} bytes), more than a file of"
            f" {source.size_bytes} bytes can hold (truncated?)",
        )
    has_transparency = _has_transparency(source)
    channels = {GRAY: 1, RGB: 3, PALETTE: 3, GRAY_ALPHA: 2, RGB_ALPHA: 4}[color]
    has_color_key = has_transparency and channels in (1, 3)
    return PngHeader(width, height, channels + has_color_key, max(bits, 8), has_color_key and color != PALETTE)


def _has_transparency(source: SourceFile) -> bool:
    """Return whether a tRNS chunk comes before the texels."""
    offset, is_transparent = 33, False
    for _ in range(_CHUNK_LIMIT):
        head = source.read(8, offset)
        if len(head) < 8:
            raise damaged(source.path, f"ends after {source.size_bytes} bytes, before its texels (truncated?)")
        length, kind = struct.unpack(">I4s", head)
        if kind == b"IDAT":
            return is_transparent
        is_transparent = is_transparent or kind == b"tRNS"
        offset += 12 + length
    raise unsupported(source.path, f"has more than {_CHUNK_LIMIT} chunks before its texels")


def read_header(path: str | os.PathLike[str]) -> PngHeader:
    """Read and check the header of a PNG file. Raises `FileError`."""
    with SourceFile(path) as source:
        return parse_header(source)
