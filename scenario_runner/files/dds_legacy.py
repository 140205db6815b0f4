"""Texel formats of .dds headers without DX10 part: FourCC codes, Direct3D 9 numbers, and channel masks."""

from __future__ import annotations

from scenario_runner.files.source import file_error
from scenario_runner.formats import Format, format_named

PIXEL_FOURCC = 0x4
_ALPHA, _ONLY_ALPHA, _RGB, _LUMINANCE, _SIGNED = 0x1, 0x2, 0x40, 0x20000, 0x80000
_KINDS = (_RGB, _LUMINANCE, _SIGNED, _ONLY_ALPHA)

_FOURCCS = {
    b"DXT1": "BC1_RGBA_UNORM_BLOCK",
    b"DXT2": "BC2_UNORM_BLOCK",
    b"DXT3": "BC2_UNORM_BLOCK",
    b"DXT4": "BC3_UNORM_BLOCK",
    b"DXT5": "BC3_UNORM_BLOCK",
    b"ATI1": "BC4_UNORM_BLOCK",
    b"BC4U": "BC4_UNORM_BLOCK",
    b"BC4S": "BC4_SNORM_BLOCK",
    b"ATI2": "BC5_UNORM_BLOCK",
    b"BC5U": "BC5_UNORM_BLOCK",
    b"BC5S": "BC5_SNORM_BLOCK",
    # Values of the older D3DFORMAT enumeration stand here as numbers.
    (36).to_bytes(4, "little"): "R16G16B16A16_UNORM",
    (110).to_bytes(4, "little"): "R16G16B16A16_SNORM",
    (111).to_bytes(4, "little"): "R16_SFLOAT",
    (112).to_bytes(4, "little"): "R16G16_SFLOAT",
    (113).to_bytes(4, "little"): "R16G16B16A16_SFLOAT",
    (114).to_bytes(4, "little"): "R32_SFLOAT",
    (115).to_bytes(4, "little"): "R32G32_SFLOAT",
    (116).to_bytes(4, "little"): "R32G32B32A32_SFLOAT",
}

# Kind, bits a texel, masks of red, green, blue and alpha. The two layouts with ten bits are left out: writers disagree
# on which of their masks is red, and a guess would swap colours.
_MASKS = {
    (_RGB, 32, 0xFF, 0xFF00, 0xFF0000, 0xFF000000): "R8G8B8A8_UNORM",
    (_RGB, 32, 0xFF0000, 0xFF00, 0xFF, 0xFF000000): "B8G8R8A8_UNORM",
    (_RGB, 32, 0xFF, 0xFF00, 0xFF0000, 0): "R8G8B8_UNORM",
    (_RGB, 32, 0xFF0000, 0xFF00, 0xFF, 0): "B8G8R8_UNORM",
    (_RGB, 32, 0xFFFF, 0xFFFF0000, 0, 0): "R16G16_UNORM",
    (_RGB, 32, 0xFFFFFFFF, 0, 0, 0): "R32_SFLOAT",  # the only 32-bit format of one channel in its time
    (_RGB, 24, 0xFF, 0xFF00, 0xFF0000, 0): "R8G8B8_UNORM",
    (_RGB, 24, 0xFF0000, 0xFF00, 0xFF, 0): "B8G8R8_UNORM",
    (_RGB, 16, 0xF800, 0x7E0, 0x1F, 0): "R5G6B5_UNORM_PACK16",
    (_RGB, 16, 0x7C00, 0x3E0, 0x1F, 0x8000): "A1R5G5B5_UNORM_PACK16",
    (_RGB, 16, 0xF00, 0xF0, 0xF, 0xF000): "A4R4G4B4_UNORM_PACK16",
    (_RGB, 16, 0xFF, 0xFF00, 0, 0): "R8G8_UNORM",
    (_LUMINANCE, 8, 0xFF, 0, 0, 0): "R8_UNORM",
    (_LUMINANCE, 16, 0xFFFF, 0, 0, 0): "R16_UNORM",
    (_LUMINANCE, 16, 0xFF, 0, 0, 0xFF00): "R8G8_UNORM",
    (_ONLY_ALPHA, 8, 0, 0, 0, 0xFF): "A8_UNORM",
    (_SIGNED, 16, 0xFF, 0xFF00, 0, 0): "R8G8_SNORM",
    (_SIGNED, 32, 0xFF, 0xFF00, 0xFF0000, 0xFF000000): "R8G8B8A8_SNORM",
    (_SIGNED, 32, 0xFFFF, 0xFFFF0000, 0, 0): "R16G16_SNORM",
}


def legacy_format(path: str, flags: int, fourcc: bytes, bit_count: int, masks: tuple[int, ...]) -> tuple[Format, int]:
    """Format, and stored size in bytes of a texel (of a block where compressed), of a DDS_PIXELFORMAT.

    ``masks`` are those of red, green, blue and alpha. Raises `FileError` about ``path``.
    """
    if flags & PIXEL_FOURCC:
        name = _FOURCCS.get(fourcc)
        if name is None:
            raise file_error(
                path, f"has texels of the FourCC {fourcc!r}, which no supported VkFormat equals", code="SR-FILE-010"
            )
        found = format_named("VK_FORMAT_" + name)
        return found, found.block_size_bytes
    kind = next((kind for kind in _KINDS if flags & kind), 0)
    red, green, blue, alpha = masks
    if kind == _LUMINANCE:
        green = blue = 0  # some writers repeat the mask of red
        if bit_count == 8 or (bit_count == 16 and flags & _ALPHA):
            red, alpha = 0xFF, 0xFF00  # Pillow has masks at the other end, where no bits are; they can mean only this
    elif kind == _ONLY_ALPHA:
        red = green = blue = 0
    if kind in (_RGB, _LUMINANCE) and not flags & _ALPHA:
        alpha = 0
    name = _MASKS.get((kind, bit_count, red, green, blue, alpha))
    if name is None:
        shown = ", ".join(f"0x{mask:x}" for mask in masks)
        raise file_error(
            path,
            f"has texels of {bit_count} bits with the masks {shown} and the flags 0x{flags:x}, which no supported"
            " VkFormat equals",
            help="store the file with a DX10 header, which names the format",
            code="SR-FILE-010",
        )
    return format_named("VK_FORMAT_" + name), bit_count // 8
