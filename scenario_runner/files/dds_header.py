"""The header of a .dds file: read (DX10 and legacy forms), checked against the file's size, and written (DX10 form).

Sources: "DDS_HEADER", "DDS_HEADER_DXT10" and "DDS_PIXELFORMAT" of the Direct3D documentation. Flags that say which
fields are valid are not relied on, because writers set them carelessly; what the file's size proves is.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from scenario_runner.errors import FileError
from scenario_runner.files.dds_legacy import PIXEL_FOURCC, legacy_format
from scenario_runner.files.source import SourceFile, file_error
from scenario_runner.formats import Format, format_of_dxgi, full_mip_count

MAGIC = b"DDS "
_LEGACY_SIZE_BYTES = 128
_DX10_SIZE_BYTES = 148
_HEADER_SIZE, _PIXEL_FORMAT_SIZE = 124, 32

_FLAGS_ALWAYS = 0x1007  # caps, height, width, pixel format
_FLAG_PITCH, _FLAG_MIP_COUNT, _FLAG_LINEAR_SIZE, _FLAG_DEPTH = 0x8, 0x20000, 0x80000, 0x800000
_CAPS_TEXTURE, _CAPS_MIPMAP_COMPLEX = 0x1000, 0x400008
_CAPS2_CUBE, _CAPS2_VOLUME = 0x200, 0x200000
_DIMENSION_2D, _MISC_CUBE = 3, 4
_DXGI_D32_S8, _DXGI_B8G8R8X8 = 20, (88, 93)
_DXGI_TYPELESS_BLOCKS = (70, 73, 76, 79, 82, 97)  # BC1 to BC5 and BC7, which Pillow writes; the next code is UNORM


class TexelMap(NamedTuple):
    """Which bytes of a stored texel make up a texel in memory.

    ``used_bytes`` bytes from byte ``first`` of the ``stored_bytes`` that the file has for each texel are the low bytes
    of the ``memory_bytes`` that the texel has in a Vulkan copy; the other ones are zero.
    """

    stored_bytes: int
    first: int
    used_bytes: int
    memory_bytes: int

    @property
    def is_plain(self) -> bool:
        """Whether the file's bytes are the memory's."""
        return self.stored_bytes == self.used_bytes == self.memory_bytes


class MipLevel(NamedTuple):
    """One level: extent in texels, and where its ``stored_size_bytes`` bytes begin in the file."""

    width: int
    height: int
    offset: int
    stored_size_bytes: int


class DdsHeader(NamedTuple):
    """What the header of a .dds file says, checked against the size of the file.

    ``maps`` has one entry for each aspect of the format, in the format's order. ``is_srgb_known`` is false where the
    header (a legacy one, or one with a typeless code) leaves open whether the texels are sRGB; ``format`` then is not.
    """

    format: Format
    width: int
    height: int
    mip_levels: tuple[MipLevel, ...]
    maps: tuple[TexelMap, ...]
    is_srgb_known: bool


def texel_maps(format: Format, stored_bytes: int | None = None) -> tuple[TexelMap, ...]:
    """How each aspect of ``format`` is stored in a .dds file.

    ``stored_bytes`` is the size of a texel in the file; by default the one of the format's DXGI code (of a block where
    the format is compressed).
    """
    if format.aspects == ("depth", "stencil"):
        if format.dxgi == _DXGI_D32_S8:  # a float, the stencil, three bytes of nothing
            return TexelMap(8, 0, 4, 4), TexelMap(8, 4, 1, 1)
        return TexelMap(4, 0, 3, 4), TexelMap(4, 3, 1, 1)
    size = format.block_size_bytes
    if stored_bytes is None:
        stored_bytes = 4 if format.dxgi in _DXGI_B8G8R8X8 else size
    return (TexelMap(stored_bytes, 0, size, size),)


def level_layout(
    format: Format, stored_bytes: int, width: int, height: int, mip_count: int, offset: int
) -> tuple[MipLevel, ...]:
    """Extents and places of ``mip_count`` levels that follow each other from ``offset`` on."""
    levels = []
    for _ in range(mip_count):
        size = format.level_size_bytes(width, height) // format.block_size_bytes * stored_bytes
        levels.append(MipLevel(width, height, offset, size))
        offset += size
        width, height = max(1, width // 2), max(1, height // 2)
    return tuple(levels)


def format_header(format: Format, width: int, height: int, mip_count: int) -> bytes:
    """Magic, header and DX10 part (148 bytes) of one two-dimensional image, as the reference writes them.

    Raises ``ValueError`` when no .dds file can hold that.
    """
    if format.dxgi is None:
        raise ValueError(f"the format {format.name!r} has no DXGI_FORMAT, so that no .dds file can hold it")
    if not (1 <= width < 1 << 31 and 1 <= height < 1 << 31 and 1 <= mip_count <= full_mip_count(width, height)):
        raise ValueError(f"{width}x{height} texels with {mip_count} mip levels are not an image")
    flags, caps = _FLAGS_ALWAYS, _CAPS_TEXTURE
    if format.is_compressed:
        flags |= _FLAG_LINEAR_SIZE
        pitch = format.level_size_bytes(width, height)
    else:
        flags |= _FLAG_PITCH
        pitch = width * texel_maps(format)[0].stored_bytes
    if mip_count > 1:
        flags |= _FLAG_MIP_COUNT
        caps |= _CAPS_MIPMAP_COMPLEX
    header = struct.pack("<7I44x", _HEADER_SIZE, flags, height, width, min(pitch, 0xFFFFFFFF), 1, mip_count)
    pixel_format = struct.pack("<II4s20x", _PIXEL_FORMAT_SIZE, PIXEL_FOURCC, b"DX10")
    return MAGIC + header + pixel_format + struct.pack("<I16x5I", caps, format.dxgi, _DIMENSION_2D, 0, 1, 0)


def parse_header(source: SourceFile) -> DdsHeader:
    """Read and check the header of an open .dds file. Raises `FileError`, also when the texels do not fit exactly."""
    start = source.read(_DX10_SIZE_BYTES)
    if not start:
        raise file_error(source.path, "is empty, expected a .dds file", code="SR-FILE-009")
    if start[:4] != MAGIC:
        raise file_error(
            source.path, f"is not a .dds file: it begins with {start[:4]!r}, expected {MAGIC!r}", code="SR-FILE-009"
        )
    if len(start) < _LEGACY_SIZE_BYTES:
        raise _truncated_header(source, _LEGACY_SIZE_BYTES)
    size, flags, height, width, pitch, depth, mip_count = struct.unpack_from("<7I", start, 4)
    pixel_size, pixel_flags, fourcc, bit_count, *masks = struct.unpack_from("<II4s5I", start, 76)
    (caps2,) = struct.unpack_from("<I", start, 112)
    if size != _HEADER_SIZE:
        raise file_error(source.path, f"has a .dds header of size {size}, expected {_HEADER_SIZE}", code="SR-FILE-009")
    if pixel_size != _PIXEL_FORMAT_SIZE:
        raise file_error(
            source.path,
            f"has a pixel format of size {pixel_size} in its .dds header, expected {_PIXEL_FORMAT_SIZE}",
            code="SR-FILE-009",
        )
    if caps2 & _CAPS2_CUBE:
        raise file_error(source.path, "holds a cube map, expected one two-dimensional image", code="SR-FILE-010")
    if caps2 & _CAPS2_VOLUME or (flags & _FLAG_DEPTH and depth > 1):
        raise file_error(
            source.path, f"holds a volume of depth {depth}, expected one two-dimensional image", code="SR-FILE-010"
        )
    if not (pixel_flags & PIXEL_FOURCC and fourcc == b"DX10"):
        is_srgb_known = False
        texel_format, stored_bytes = legacy_format(source.path, pixel_flags, fourcc, bit_count, tuple(masks))
        maps = texel_maps(texel_format, stored_bytes)
        offset = _LEGACY_SIZE_BYTES
    else:
        texel_format, is_srgb_known = _dx10_format(source, start)
        maps = texel_maps(texel_format)
        offset = _DX10_SIZE_BYTES
    if not width or not height:
        raise file_error(source.path, f"says it has {width}x{height} texels, expected at least one", code="SR-FILE-009")
    mip_count = mip_count or 1
    full = full_mip_count(width, height)
    if mip_count > full:
        raise file_error(
            source.path,
            f"says it has {mip_count} mip levels, but {width}x{height} texels have at most {full}",
            code="SR-FILE-009",
        )
    levels = level_layout(texel_format, maps[0].stored_bytes, width, height, mip_count, offset)
    _check_size(source, texel_format, levels, offset, pitch if flags & (_FLAG_PITCH | _FLAG_LINEAR_SIZE) else 0)
    return DdsHeader(texel_format, width, height, levels, maps, is_srgb_known)


def _check_size(source: SourceFile, format: Format, levels: tuple[MipLevel, ...], offset: int, pitch: int) -> None:
    found, expected = source.size_bytes - offset, sum(level.stored_size_bytes for level in levels)
    first = levels[0]
    if found != expected:
        what = "is truncated" if found < expected else "has bytes after its texels"
        of_levels = f"{len(levels)} mip levels of " if len(levels) > 1 else ""
        raise file_error(
            source.path,
            f"{what}: {found} bytes follow the header, expected {expected} bytes for"
            f" {of_levels}{first.width}x{first.height} texels of {format.name!r}",
            code="SR-FILE-009",
        )
    # Writers put a row, a row rounded up, a level or the whole chain here. The size has just proved that the rows are
    # packed tightly, so the field is not needed; but one that is longer than all texels is a lie.
    if pitch > max(expected, first.width * 4, 64):
        signed = pitch - (1 << 32) if pitch >= 1 << 31 else pitch
        raise file_error(
            source.path,
            f"says that a row or level has {signed} bytes, expected at most the {expected} bytes of its texels",
            code="SR-FILE-009",
        )


def _dx10_format(source: SourceFile, start: bytes) -> tuple[Format, bool]:
    if len(start) < _DX10_SIZE_BYTES:
        raise _truncated_header(source, _DX10_SIZE_BYTES)
    dxgi, dimension, misc, array_size = struct.unpack_from("<4I", start, _LEGACY_SIZE_BYTES)
    if dimension != _DIMENSION_2D:
        kind = {2: "one-dimensional", 4: "three-dimensional"}.get(dimension, "unknown")
        raise file_error(
            source.path,
            f"holds a resource of dimension {dimension} ({kind}), expected {_DIMENSION_2D} (two-dimensional)",
            code="SR-FILE-010",
        )
    if misc & _MISC_CUBE:
        raise file_error(source.path, "holds a cube map, expected one two-dimensional image", code="SR-FILE-010")
    if array_size > 1:  # Pillow writes 0, and the reference does not look
        raise file_error(source.path, f"holds an array of {array_size} images, expected one", code="SR-FILE-010")
    found = format_of_dxgi(dxgi + 1 if dxgi in _DXGI_TYPELESS_BLOCKS else dxgi)
    if found is None:
        raise file_error(
            source.path, f"has texels of the DXGI_FORMAT {dxgi}, which no supported VkFormat equals", code="SR-FILE-010"
        )
    return found, dxgi not in _DXGI_TYPELESS_BLOCKS


def _truncated_header(source: SourceFile, expected: int) -> FileError:
    return file_error(
        source.path,
        f"ends after {source.size_bytes} bytes, expected at least the {expected} bytes of its header (truncated?)",
        code="SR-FILE-009",
    )
