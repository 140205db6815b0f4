"""Microsoft's .dds files: images with all mip levels.

Reading fills the caller's memory, writing reads from the caller's memory. Most formats, also block-compressed ones,
have the same layout in a file and in a Vulkan copy, so that one system call moves the texels. Two layouts are
converted: B8G8R8 has four bytes a texel in a file, and depth with stencil is interleaved in a file but has two planes
in a copy.

A header is read in the DX10 form, or for common formats in the older form, and written in the DX10 form. Writers set
the flags of valid fields carelessly, so the file size counts instead of the flags.

Sources: "DDS_HEADER", "DDS_HEADER_DXT10" and "DDS_PIXELFORMAT" of the Direct3D documentation.
"""

import os
import struct
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

from scenario_runner.errors import FileError, file_error
from scenario_runner.files import codec
from scenario_runner.files.input import DDS_SIGNATURE, SourceFile, read_start
from scenario_runner.files.output import CreateOutput
from scenario_runner.files.vk_formats import Format, find_format, format_named, format_of_dxgi, full_mip_count

_damaged = partial(file_error, code="SR-FILE-009")
_unsupported = partial(file_error, code="SR-FILE-010")

PIXEL_FOURCC = 0x4
_ALPHA, _RGB, _LUMINANCE = 0x1, 0x40, 0x20000

_FOURCCS = {
    b"DXT1": "BC1_RGBA_UNORM_BLOCK",
    b"DXT3": "BC2_UNORM_BLOCK",
    b"DXT5": "BC3_UNORM_BLOCK",
    b"ATI1": "BC4_UNORM_BLOCK",
    b"BC4U": "BC4_UNORM_BLOCK",
    b"ATI2": "BC5_UNORM_BLOCK",
    b"BC5U": "BC5_UNORM_BLOCK",
}

# Formats by flags, bits per texel, and colour masks. Writers disagree about luminance masks, so none is compared.
_LAYOUTS = {
    (_RGB | _ALPHA, 32, (0xFF, 0xFF00, 0xFF0000, 0xFF000000)): "R8G8B8A8_UNORM",
    (_RGB | _ALPHA, 32, (0xFF0000, 0xFF00, 0xFF, 0xFF000000)): "B8G8R8A8_UNORM",
    (_RGB, 24, (0xFF0000, 0xFF00, 0xFF)): "B8G8R8_UNORM",
    (_LUMINANCE, 8, ()): "R8_UNORM",
    (_LUMINANCE | _ALPHA, 16, ()): "R8G8_UNORM",
}


def legacy_format(path: str, flags: int, fourcc: bytes, bit_count: int, masks: tuple[int, ...]) -> Format:
    """Return the format of a DDS_PIXELFORMAT without a DX10 part. Raises `FileError` about ``path``.

    ``masks`` are for red, green, blue and alpha.
    """
    if flags & PIXEL_FOURCC:
        name, found = _FOURCCS.get(fourcc), f"the FourCC {fourcc!r}"
    else:
        used = masks[: 4 if flags & _ALPHA else 3] if flags & _RGB else ()
        name = _LAYOUTS.get((flags & (_RGB | _LUMINANCE | _ALPHA), bit_count, used))
        found = f"{bit_count} bits with the masks {', '.join(map(hex, masks))} and the flags 0x{flags:x}"
    if name is None:
        raise _unsupported(
            path,
            f"has a header without the DX10 part, and its texels are not supported there: {found}",
            help="store the file with a DX10 header, which names the format",
        )
    return format_named("VK_FORMAT_" + name)


_LEGACY_SIZE_BYTES = 128
_DX10_SIZE_BYTES = 148
_HEADER_SIZE, _PIXEL_FORMAT_SIZE = 124, 32

_FLAGS_ALWAYS = 0x1007  # caps, height, width, pixel format
_FLAG_PITCH, _FLAG_MIP_COUNT, _FLAG_LINEAR_SIZE, _FLAG_DEPTH = 0x8, 0x20000, 0x80000, 0x800000
_CAPS_TEXTURE, _CAPS_MIPMAP_COMPLEX = 0x1000, 0x400008
_CAPS2_CUBE, _CAPS2_VOLUME = 0x200, 0x200000
_DIMENSION_2D, _MISC_CUBE = 3, 4
_DXGI_D32_S8, _DXGI_B8G8R8X8 = 20, (88, 93)
_DXGI_TYPELESS_BLOCKS = (70, 73, 76, 79, 82, 97)  # BC1 to BC5 and BC7 from Pillow; UNORM has the next code


class TexelMap(NamedTuple):
    """The layouts of a texel in a file and in memory.

    A texel has ``stored_bytes`` in the file and ``memory_bytes`` in a Vulkan copy. The ``used_bytes`` of the file from
    the byte ``first`` on are the low bytes in memory; the other bytes there are zero.
    """

    stored_bytes: int
    first: int
    used_bytes: int
    memory_bytes: int

    @property
    def is_plain(self) -> bool:
        """True if both layouts are the same."""
        return self.stored_bytes == self.used_bytes == self.memory_bytes


class MipLevel(NamedTuple):
    """A mip level: the extent in texels, and the place and size in the file."""

    width: int
    height: int
    offset: int
    stored_size_bytes: int


class DdsHeader(NamedTuple):
    """The header of a .dds file, checked against the file size.

    ``maps`` has an entry for each aspect of the format, in the format's order. A legacy header or a typeless
    code does not tell whether the texels are sRGB: then ``is_srgb_known`` is false and ``format`` is not sRGB.
    """

    format: Format
    width: int
    height: int
    mip_levels: tuple[MipLevel, ...]
    maps: tuple[TexelMap, ...]
    is_srgb_known: bool


def texel_maps(format: Format, stored_bytes: int | None = None) -> tuple[TexelMap, ...]:
    """Map the aspects of ``format`` to the bytes of a .dds file.

    ``stored_bytes`` is the size of a texel or block in the file; the default follows from the format's DXGI code.
    """
    if format.aspects == ("depth", "stencil"):
        if format.dxgi == _DXGI_D32_S8:  # a float, the stencil, three unused bytes
            return TexelMap(8, 0, 4, 4), TexelMap(8, 4, 1, 1)
        return TexelMap(4, 0, 3, 4), TexelMap(4, 3, 1, 1)
    size = format.block_size_bytes
    if stored_bytes is None:
        stored_bytes = 4 if format.dxgi in _DXGI_B8G8R8X8 else size
    return (TexelMap(stored_bytes, 0, size, size),)


def level_layout(
    format: Format, stored_bytes: int, width: int, height: int, mip_count: int, offset: int
) -> tuple[MipLevel, ...]:
    """Return the extents and places of ``mip_count`` levels that follow each other from ``offset`` on."""
    levels = []
    for _ in range(mip_count):
        size = format.level_size_bytes(width, height) // format.block_size_bytes * stored_bytes
        levels.append(MipLevel(width, height, offset, size))
        offset += size
        width, height = max(1, width // 2), max(1, height // 2)
    return tuple(levels)


def format_header(format: Format, width: int, height: int, mip_count: int) -> bytes:
    """Encode magic, header and DX10 part (148 bytes) of a two-dimensional image as the reference runner does.

    Raises ``ValueError`` if no .dds file can hold the image.
    """
    if format.dxgi is None:
        raise ValueError(f"the format {format.name!r} has no DXGI_FORMAT, which a .dds file needs")
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
    return DDS_SIGNATURE + header + pixel_format + struct.pack("<I16x5I", caps, format.dxgi, _DIMENSION_2D, 0, 1, 0)


def parse_header(source: SourceFile) -> DdsHeader:
    """Read and check the header of an open .dds file. Raises `FileError`, also for too few or too many texels."""
    start = read_start(source, _DX10_SIZE_BYTES, DDS_SIGNATURE, "a .dds file", _damaged)
    if len(start) < _LEGACY_SIZE_BYTES:
        raise _truncated_header(source, _LEGACY_SIZE_BYTES)
    size, flags, height, width, pitch, depth, mip_count = struct.unpack_from("<7I", start, 4)
    pixel_size, pixel_flags, fourcc, bit_count, *masks, caps2 = struct.unpack_from("<II4s5I4xI", start, 76)
    if size != _HEADER_SIZE:
        raise _damaged(source.path, f"has a .dds header of size {size}, expected {_HEADER_SIZE}")
    if pixel_size != _PIXEL_FORMAT_SIZE:
        raise _damaged(
            source.path, f"has a pixel format of size {pixel_size} in its .dds header, expected {_PIXEL_FORMAT_SIZE}"
        )
    if caps2 & _CAPS2_CUBE:
        raise _unsupported(source.path, "holds a cube map, expected one two-dimensional image")
    if caps2 & _CAPS2_VOLUME or (flags & _FLAG_DEPTH and depth > 1):
        raise _unsupported(source.path, f"holds a volume of depth {depth}, expected one two-dimensional image")
    stored_bytes, is_srgb_known, offset = None, False, _LEGACY_SIZE_BYTES
    if pixel_flags & PIXEL_FOURCC and fourcc == b"DX10":
        texel_format, is_srgb_known = _dx10_format(source, start)
        offset = _DX10_SIZE_BYTES
    else:
        texel_format = legacy_format(source.path, pixel_flags, fourcc, bit_count, tuple(masks))
        stored_bytes = texel_format.block_size_bytes
    maps = texel_maps(texel_format, stored_bytes)
    if not width or not height:
        raise _damaged(source.path, f"says it has {width}x{height} texels, expected at least one")
    mip_count = mip_count or 1
    full = full_mip_count(width, height)
    if mip_count > full:
        raise _damaged(
            source.path, f"says it has {mip_count} mip levels, but {width}x{height} texels have at most {full}"
        )
    levels = level_layout(texel_format, maps[0].stored_bytes, width, height, mip_count, offset)
    _check_size(source, texel_format, levels, offset, pitch if flags & (_FLAG_PITCH | _FLAG_LINEAR_SIZE) else 0)
    return DdsHeader(texel_format, width, height, levels, maps, is_srgb_known)


def _check_size(source: SourceFile, format: Format, levels: tuple[MipLevel, ...], offset: int, pitch: int) -> None:
    size, expected = source.size_bytes - offset, sum(level.stored_size_bytes for level in levels)
    first = levels[0]
    if size != expected:
        what = "is truncated" if size < expected else "has bytes after its texels"
        of_levels = f"{len(levels)} mip levels of " if len(levels) > 1 else ""
        raise _damaged(
            source.path,
            f"{what}: {size} bytes follow the header, expected {expected} bytes for"
            f" {of_levels}{first.width}x{first.height} texels of {format.name!r}",
        )
    # The field holds a row, a rounded row, a level or all levels, depending on the writer. The size of the file has
    # proved that rows are tightly packed, so the field is not needed. But it must not exceed all texels.
    if pitch > max(expected, first.width * 4, 64):
        signed = pitch - (1 << 32) if pitch >= 1 << 31 else pitch
        raise _damaged(
            source.path,
            f"says that a row or level has {signed} bytes, expected at most the {expected} bytes of its texels",
        )


def _dx10_format(source: SourceFile, start: bytes) -> tuple[Format, bool]:
    if len(start) < _DX10_SIZE_BYTES:
        raise _truncated_header(source, _DX10_SIZE_BYTES)
    dxgi, dimension, misc, array_size = struct.unpack_from("<4I", start, _LEGACY_SIZE_BYTES)
    if dimension != _DIMENSION_2D:
        kind = {2: "one-dimensional", 4: "three-dimensional"}.get(dimension, "unknown")
        raise _unsupported(
            source.path,
            f"holds a resource of dimension {dimension} ({kind}), expected {_DIMENSION_2D} (two-dimensional)",
        )
    if misc & _MISC_CUBE:
        raise _unsupported(source.path, "holds a cube map, expected one two-dimensional image")
    if array_size > 1:  # Pillow writes 0, and the reference runner ignores the field
        raise _unsupported(source.path, f"holds an array of {array_size} images, expected one")
    known = format_of_dxgi(dxgi + 1 if dxgi in _DXGI_TYPELESS_BLOCKS else dxgi)
    if known is None:
        raise _unsupported(source.path, f"has the DXGI_FORMAT {dxgi}, which matches no supported VkFormat")
    return known, dxgi not in _DXGI_TYPELESS_BLOCKS


def _truncated_header(source: SourceFile, expected: int) -> FileError:
    return _damaged(
        source.path,
        f"ends after {source.size_bytes} bytes, expected at least the {expected} bytes of its header (truncated?)",
    )


_CHUNK_TEXELS = 1 << 18  # limits the memory of a conversion to 2 MiB


def read_header(path: str | os.PathLike[str]) -> DdsHeader:
    """Read and check the header of a .dds file. Raises `FileError`."""
    with SourceFile(path) as source:
        return parse_header(source)


class DdsReader(codec.ContentReader[DdsHeader]):
    """An open .dds file with a checked header."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(path, parse_header)
        self.mip_count = len(self.header.mip_levels)

    def level_size_bytes(self, level: int = 0, aspect: str | None = None) -> int:
        texel = self._map_of(aspect)
        return self.header.mip_levels[level].stored_size_bytes // texel.stored_bytes * texel.memory_bytes

    def _read(self, view: memoryview, level: int, offset: int, aspect: str | None) -> None:
        texel, start = self._map_of(aspect), self.header.mip_levels[level].offset
        if texel.is_plain:
            self.source.read_into(view, start + offset)
            return
        step = _CHUNK_TEXELS * texel.memory_bytes
        for done in range(0, len(view), step):
            part = view[done : done + step]
            first, skipped = divmod(offset + done, texel.memory_bytes)  # whole texels around the part
            count = -(-(skipped + len(part)) // texel.memory_bytes)
            stored = self.source.read(count * texel.stored_bytes, start + first * texel.stored_bytes)
            texels = bytearray(count * texel.memory_bytes)
            for index in range(texel.used_bytes):
                texels[index :: texel.memory_bytes] = stored[texel.first + index :: texel.stored_bytes]
            part[:] = texels[skipped : skipped + len(part)]

    def _map_of(self, aspect: str | None) -> TexelMap:
        return self.header.maps[0 if aspect is None else self.header.format.aspects.index(aspect)]


def _encoded(planes: Sequence[memoryview], header: bytes, maps: tuple[TexelMap, ...]) -> Iterator[bytes | bytearray]:
    """Yield the parts of a file with another layout than a Vulkan copy."""
    yield header
    # The fourth byte of a colour is 255: a reader that takes it for alpha then shows the image.
    filling = b"\xff" if len(maps) == 1 else b"\0"
    for first in range(0, len(planes), len(maps)):
        total = len(planes[first]) // maps[0].memory_bytes
        for start in range(0, total, _CHUNK_TEXELS):
            end = min(start + _CHUNK_TEXELS, total)
            stored = bytearray(filling) * ((end - start) * maps[0].stored_bytes)
            for texel, plane in zip(maps, planes[first:], strict=False):
                part = plane[start * texel.memory_bytes : end * texel.memory_bytes]
                for index in range(texel.used_bytes):
                    stored[texel.first + index :: texel.stored_bytes] = part[index :: texel.memory_bytes]
            yield stored


class DdsCodec(codec.Codec):
    """The codec for Microsoft's textures with texels in a DXGI_FORMAT."""

    extension = ".dds"
    signature = DDS_SIGNATURE
    holds_levels = True

    def why_not(self, format: Format) -> str | None:
        return "it has no DXGI_FORMAT, which a .dds file needs" if format.dxgi is None else None

    def read_header(self, path: str) -> codec.ImageHeader:
        header = read_header(path)
        return codec.ImageHeader(header.format, header.width, header.height, len(header.mip_levels))

    def _open(self, path: str, format: Format) -> DdsReader:
        return DdsReader(path)

    def _check(self, path: str, header: Any, format: Format, width: int, height: int, mip_count: int) -> None:
        if not _fits(header, format):
            raise codec.mismatch(path, f"texels of {header.format.name!r}", repr(format.name))
        codec.check_extent(path, header.width, header.height, width, height)
        if len(header.mip_levels) > mip_count:
            raise codec.mismatch(path, f"{len(header.mip_levels)} mip levels", str(mip_count))

    def create_image(
        self, path: str, format: Format, width: int, height: int, planes: Sequence[int], create: CreateOutput
    ) -> codec.ContentWriter:
        mip_count, maps = len(planes) // len(format.aspects), texel_maps(format)
        header = format_header(format, width, height, mip_count)
        levels = level_layout(format, maps[0].stored_bytes, width, height, mip_count, offset=0)
        size_bytes = sum(level.stored_size_bytes for level in levels)
        output = create(path, len(header) + size_bytes)
        if maps[0].is_plain:
            return codec.ContentWriter(output, header, size_bytes)
        return codec.HeldImageWriter(output, planes, partial(_encoded, header=header, maps=maps))


def _fits(header: DdsHeader, format: Format) -> bool:
    file_format = header.format
    if file_format is format or (file_format.dxgi is not None and file_format.dxgi == format.dxgi):
        return True
    if not header.is_srgb_known and find_format(file_format.name.replace("_UNORM", "_SRGB")) is format:
        return True
    depths = ("VK_FORMAT_R32_SFLOAT", "VK_FORMAT_D32_SFLOAT")
    return file_format.name == "VK_FORMAT_D32_SFLOAT_S8_UINT" and format.name in depths
