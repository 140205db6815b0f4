"""The chunks of a PNG file: checked, and cut down to those that say what the texels are.

A decoder is more than texels need: it stumbles over large texts and broken Exif data, which do not concern them, and
makes do with half an image where the compressed rows end early. Source: PNG specification, second edition.
"""

from __future__ import annotations

import struct
import zlib
from functools import partial

from scenario_runner.files.source import file_error

damaged = partial(file_error, code="SR-FILE-011")
unsupported = partial(file_error, code="SR-FILE-012")

_CHUNK_LIMIT = 1 << 18
_KEPT = (b"IHDR", b"PLTE", b"tRNS", b"IDAT", b"IEND")
_GRAY, _PALETTE = 0, 3
_SAMPLES = {_GRAY: 1, 2: 3, _PALETTE: 1, 4: 2, 6: 4}  # of each colour type
# First column and row, and steps between columns and rows, of the seven passes of an interlaced image.
_PASSES = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))
_FEED_SIZE_BYTES = 1 << 10  # deflate makes at most 1032 times as much of it, which is the memory that checking takes


def essential_chunks(path: str, data: bytes) -> bytes:
    """The PNG file ``data`` without what does not concern its texels: text, time, profiles, Exif data, animation.

    ``data`` begins with a valid signature and IHDR chunk. Raises `FileError` about ``path`` where the chunks do not end
    in an IEND chunk, a sum of one that is kept is wrong, or the compressed rows are fewer than the header says.
    """
    view = memoryview(data)
    kept: list[memoryview | bytes] = [view[:8]]
    kinds: set[bytes] = set()
    rows = _RowCount(path, data)
    offset = 8
    for _ in range(_CHUNK_LIMIT):
        length, kind = struct.unpack(">I4s", data[offset : offset + 8].ljust(8, b"\0"))
        end = offset + 12 + length
        if end > len(data):
            raise damaged(path, f"ends after {len(data)} bytes, expected an IEND chunk at the end (truncated?)")
        if kind in _KEPT and not (kind != b"IDAT" and kind != b"IEND" and b"IDAT" in kinds):
            if zlib.crc32(view[offset + 4 : end - 4]) != int.from_bytes(view[end - 4 : end], "big"):
                raise damaged(path, f"has a chunk {kind!r} whose check sum is wrong (damaged?)")
            kept.append(view[offset:end] if kind != b"tRNS" else _widened_key(data, view[offset:end]))
            kinds.add(kind)
        elif kind not in _KEPT and not kind[0] & 0x20:
            raise unsupported(path, f"has a chunk {kind!r}, which is essential for its texels and unknown")
        if kind == b"IDAT":
            rows.feed(view[offset + 8 : end - 4])
        if kind == b"IEND":
            break
        offset = end
    else:
        raise unsupported(path, f"has more than {_CHUNK_LIMIT} chunks")
    if data[25] == _PALETTE and b"PLTE" not in kinds:
        raise damaged(path, "has texels that are numbers of colours, but no chunk b'PLTE' that says which colours")
    rows.check()
    return b"".join(kept)


def _widened_key(data: bytes, chunk: memoryview) -> memoryview | bytes:
    """A tRNS chunk whose gray of two or four bits is widened to eight, as Pillow widens the texels it looks for."""
    bits, color = data[24], data[25]
    if color != _GRAY or bits not in (2, 4) or len(chunk) != 14:
        return chunk
    most = (1 << bits) - 1
    body = b"tRNS" + ((chunk[9] & most) * 255 // most).to_bytes(2, "big")
    return bytes(chunk[:4]) + body + zlib.crc32(body).to_bytes(4, "big")


class _RowCount:
    """Counts the bytes of the rows as they are decompressed."""

    def __init__(self, path: str, data: bytes) -> None:
        self._path = path
        width, height, bits, color, _, _, interlace = struct.unpack_from(">IIBBBBB", data, 16)
        self._expected = 0
        for x, y, x_step, y_step in _PASSES if interlace else ((0, 0, 1, 1),):
            columns, rows = -(-(width - x) // x_step), -(-(height - y) // y_step)
            if columns > 0 and rows > 0:
                self._expected += rows * (1 + -(-columns * bits * _SAMPLES[color] // 8))
        self._found = 0
        self._stream = zlib.decompressobj()

    def feed(self, part: memoryview) -> None:
        """Raises `FileError` where this is nothing that deflate makes."""
        try:
            for start in range(0, len(part), _FEED_SIZE_BYTES):
                if self._stream.eof or self._found > self._expected:
                    return  # what follows the rows is not read
                self._found += len(self._stream.decompress(part[start : start + _FEED_SIZE_BYTES]))
        except zlib.error as error:
            raise damaged(
                self._path, f"cannot be decoded as a PNG file: {str(error)[:1].lower()}{str(error)[1:]}"
            ) from error

    def check(self) -> None:
        if self._found < self._expected:
            raise damaged(
                self._path,
                f"has {self._found} bytes of rows, expected {self._expected} of an image of its size (truncated?)",
            )
