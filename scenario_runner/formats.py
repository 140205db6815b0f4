"""One table of image and tensor formats: VkFormat name and value, texel layout, NumPy type and DXGI code.

Sources: Vulkan 1.3 specification, chapter "Formats" (values, texel block sizes); DXGI_FORMAT of the Direct3D 11
documentation (codes 133 and 134 are not part of it, but what existing .dds files of three signed bytes carry);
VK_ARM_tensors for the three formats that only tensors have. YCbCr, ETC2, ASTC and PVRTC formats are left out: no
supported file holds them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from scenario_runner.errors import ScenarioError, UnsupportedError
from scenario_runner.text import close_names

if TYPE_CHECKING:
    from scenario_runner.format_spellings import Spelling


class Format(NamedTuple):
    """One VkFormat. There is one object for each; copies and pickles give that one again.

    ``block_size_bytes`` counts the bytes of one texel, or of one block of ``block_extent`` (width, height) texels where
    the format is compressed. ``channels`` and ``channel_bits`` name the components in memory order, or from the highest
    bit down where the format is packed into one integer. ``numeric`` says how their bits are meant: ``unorm snorm
    uscaled sscaled uint sint ufloat sfloat srgb bool bfloat16 float8e4m3 float8e5m2`` (of the depth where there is
    stencil too). A .npy file has ``numpy_items`` items of the type ``numpy_dtype`` a texel: one for each component, or
    one unsigned integer where the format is packed; ``None`` and 0 where no .npy file can hold it. ``dxgi`` is the
    DXGI_FORMAT of a .dds file that holds it, if there is one.
    """

    name: str
    value: int
    components: int
    block_size_bytes: int
    block_extent: tuple[int, int]
    channels: str
    channel_bits: tuple[int, ...]
    numeric: str
    is_packed: bool
    numpy_dtype: str | None
    numpy_items: int
    aspects: tuple[str, ...]
    dxgi: int | None

    def __reduce__(self) -> tuple[Callable[[int], Format], tuple[int]]:
        return format_of_value, (self.value,)

    @property
    def is_of_tensors(self) -> bool:
        """Whether it is defined by VK_ARM_tensors: a device without that must not be asked about it."""
        return self.name.endswith("_ARM")

    @property
    def is_compressed(self) -> bool:
        """Whether texels come in blocks (BC1 to BC7)."""
        return self.block_extent != (1, 1)

    def row_size_bytes(self, width: int) -> int:
        """Bytes of one tightly packed row of texels, or of blocks."""
        return -(-width // self.block_extent[0]) * self.block_size_bytes

    def level_size_bytes(self, width: int, height: int) -> int:
        """Bytes of a tightly packed image of ``width`` times ``height`` texels."""
        return self.row_size_bytes(width) * -(-height // self.block_extent[1])


def full_mip_count(width: int, height: int) -> int:
    """Levels of the full chain, down to one texel."""
    return max(width, height).bit_length()


def find_format(name: str) -> Format | None:
    """The format called ``name`` (``'VK_FORMAT_R8_UNORM'``), or ``None``."""
    return _by_name().get(name)


def format_named(name: str) -> Format:
    """The format called ``name``. Raises `ScenarioError` with close matches."""
    found = _by_name().get(name)
    if found is None:
        raise ScenarioError(
            f"no format that this program knows is called {name!r:.100}", help=format_help(name), code="SR-JSON-005"
        )
    return found


def format_of_value(value: int) -> Format:
    """The format with the VkFormat value ``value``. Raises `UnsupportedError`."""
    found = _by_value().get(value)
    if found is None:
        raise UnsupportedError(f"unknown VkFormat value {value}", code="SR-RUN-003")
    return found


def format_of_dxgi(code: int) -> Format | None:
    """The format that a .dds file with this DXGI_FORMAT holds, or ``None``."""
    return _by_dxgi().get(code)


def close_format_names(name: str) -> list[str]:
    """At most three names that ``name`` may stand for: what other programs call formats, else a misspelling."""
    from scenario_runner.format_spellings import spellings

    wanted = name.upper()[:100]
    found = [entry for entry in _by_name() if wanted.startswith(_PREFIX) and entry.startswith(f"{wanted}_")]
    found += [entry.name for spelling in spellings(name) for entry in _spelt(spelling)]
    if found:
        return list(dict.fromkeys(found))[:3]
    if not wanted.startswith(_PREFIX):
        wanted = _PREFIX + wanted
    return close_names(wanted, _by_name(), cutoff=0.85)


def format_help(name: str) -> str:
    """What to write in place of ``name``, which is not the name of a format."""
    close = close_format_names(name)
    if not close:
        return "expected a name like 'VK_FORMAT_R8_UNORM'"
    return f"did you mean {' or '.join(map(repr, close))}? Formats have the names that Vulkan gives them"


def _spelt(spelling: Spelling) -> list[Format]:
    """The formats that a spelling of another program means; those of its likeliest meaning first.

    Other programs name packed channels from the lowest bit up.
    """
    orders = [
        (spelling.channels, spelling.bits, False),
        (spelling.channels[::-1], spelling.bits[::-1], True),
        (spelling.channels, spelling.bits, True),
    ]
    found = []
    for numeric in spelling.numeric:
        named = [entry for entry in _by_value().values() if entry.numeric == numeric]
        if spelling.block:
            found += [entry for entry in named if entry.name.startswith(f"{_PREFIX}{spelling.block}_")]
            continue
        fitting = [[e for e in named if (e.channels, e.channel_bits, e.is_packed) == order] for order in orders]
        found += fitting[0] or [*fitting[1], *fitting[2]]
    return found


def all_formats() -> tuple[Format, ...]:
    """Every format of the table, by rising value."""
    return tuple(_by_value().values())


_PREFIX = "VK_FORMAT_"
_SIX = "UNORM SNORM USCALED SSCALED UINT SINT"
_THREE = "UINT SINT SFLOAT"

# Name with a hole, value of the first, and what fills the hole of it and of those that follow it value by value.
_UNCOMPRESSED = (
    ("R4G4_{}_PACK8", 1, "UNORM"),
    ("R4G4B4A4_{}_PACK16", 2, "UNORM"),
    ("B4G4R4A4_{}_PACK16", 3, "UNORM"),
    ("R5G6B5_{}_PACK16", 4, "UNORM"),
    ("B5G6R5_{}_PACK16", 5, "UNORM"),
    ("R5G5B5A1_{}_PACK16", 6, "UNORM"),
    ("B5G5R5A1_{}_PACK16", 7, "UNORM"),
    ("A1R5G5B5_{}_PACK16", 8, "UNORM"),
    ("R8_{}", 9, _SIX + " SRGB"),
    ("R8G8_{}", 16, _SIX + " SRGB"),
    ("R8G8B8_{}", 23, _SIX + " SRGB"),
    ("B8G8R8_{}", 30, _SIX + " SRGB"),
    ("R8G8B8A8_{}", 37, _SIX + " SRGB"),
    ("B8G8R8A8_{}", 44, _SIX + " SRGB"),
    ("A8B8G8R8_{}_PACK32", 51, _SIX + " SRGB"),
    ("A2R10G10B10_{}_PACK32", 58, _SIX),
    ("A2B10G10R10_{}_PACK32", 64, _SIX),
    ("R16_{}", 70, _SIX + " SFLOAT"),
    ("R16G16_{}", 77, _SIX + " SFLOAT"),
    ("R16G16B16_{}", 84, _SIX + " SFLOAT"),
    ("R16G16B16A16_{}", 91, _SIX + " SFLOAT"),
    ("R32_{}", 98, _THREE),
    ("R32G32_{}", 101, _THREE),
    ("R32G32B32_{}", 104, _THREE),
    ("R32G32B32A32_{}", 107, _THREE),
    ("R64_{}", 110, _THREE),
    ("R64G64_{}", 113, _THREE),
    ("R64G64B64_{}", 116, _THREE),
    ("R64G64B64A64_{}", 119, _THREE),
    ("B10G11R11_{}_PACK32", 122, "UFLOAT"),
    ("E5B9G9R9_{}_PACK32", 123, "UFLOAT"),
    ("D16_{}", 124, "UNORM"),
    ("X8_D24_{}_PACK32", 125, "UNORM"),
    ("D32_{}", 126, "SFLOAT"),
    ("S8_{}", 127, "UINT"),
    ("A4R4G4B4_{}_PACK16", 1000340000, "UNORM"),
    ("A4B4G4R4_{}_PACK16", 1000340001, "UNORM"),
    ("A1B5G5R5_{}_PACK16", 1000470000, "UNORM"),
    ("A8_{}", 1000470001, "UNORM"),
)

# Name, value, texel size in bytes, bits of depth and stencil, NumPy type of the depth (of both, where packed).
_DEPTH_STENCIL = (
    ("D16_UNORM_S8_UINT", 128, 3, (16, 8), "<u2"),
    ("D24_UNORM_S8_UINT", 129, 4, (24, 8), "<u4"),
    ("D32_SFLOAT_S8_UINT", 130, 5, (32, 8), "<f4"),
)

# Name, value, block size in bytes, components, meaning. All blocks are 4 by 4 texels.
_COMPRESSED = (
    ("BC1_RGB_UNORM_BLOCK", 131, 8, "RGB", "unorm"),
    ("BC1_RGB_SRGB_BLOCK", 132, 8, "RGB", "srgb"),
    ("BC1_RGBA_UNORM_BLOCK", 133, 8, "RGBA", "unorm"),
    ("BC1_RGBA_SRGB_BLOCK", 134, 8, "RGBA", "srgb"),
    ("BC2_UNORM_BLOCK", 135, 16, "RGBA", "unorm"),
    ("BC2_SRGB_BLOCK", 136, 16, "RGBA", "srgb"),
    ("BC3_UNORM_BLOCK", 137, 16, "RGBA", "unorm"),
    ("BC3_SRGB_BLOCK", 138, 16, "RGBA", "srgb"),
    ("BC4_UNORM_BLOCK", 139, 8, "R", "unorm"),
    ("BC4_SNORM_BLOCK", 140, 8, "R", "snorm"),
    ("BC5_UNORM_BLOCK", 141, 16, "RG", "unorm"),
    ("BC5_SNORM_BLOCK", 142, 16, "RG", "snorm"),
    ("BC6H_UFLOAT_BLOCK", 143, 16, "RGB", "ufloat"),
    ("BC6H_SFLOAT_BLOCK", 144, 16, "RGB", "sfloat"),
    ("BC7_UNORM_BLOCK", 145, 16, "RGBA", "unorm"),
    ("BC7_SRGB_BLOCK", 146, 16, "RGBA", "srgb"),
)

# Name, value, bits, meaning, NumPy type (raw bytes where NumPy has no such number; float8 E5M2 as the reference does).
_TENSOR_ONLY = (
    ("R8_BOOL_ARM", 1000460000, 8, "bool", "|b1"),
    ("R16_SFLOAT_FPENCODING_BFLOAT16_ARM", 1000460001, 16, "bfloat16", "<V2"),
    ("R8_SFLOAT_FPENCODING_FLOAT8E4M3_ARM", 1000460002, 8, "float8e4m3", "<V1"),
    ("R8_SFLOAT_FPENCODING_FLOAT8E5M2_ARM", 1000460003, 8, "float8e5m2", "|u1"),
)

# DXGI names packed channels from the lowest bit up, Vulkan from the highest down: B5G6R5 there is R5G6B5 here.
_DXGI = {
    "R32G32B32A32_SFLOAT": 2,
    "R32G32B32A32_UINT": 3,
    "R32G32B32A32_SINT": 4,
    "R32G32B32_SFLOAT": 6,
    "R32G32B32_UINT": 7,
    "R32G32B32_SINT": 8,
    "R16G16B16A16_SFLOAT": 10,
    "R16G16B16A16_UNORM": 11,
    "R16G16B16A16_UINT": 12,
    "R16G16B16A16_SNORM": 13,
    "R16G16B16A16_SINT": 14,
    "R32G32_SFLOAT": 16,
    "R32G32_UINT": 17,
    "R32G32_SINT": 18,
    "D32_SFLOAT_S8_UINT": 20,
    "A2B10G10R10_UNORM_PACK32": 24,
    "A2B10G10R10_UINT_PACK32": 25,
    "B10G11R11_UFLOAT_PACK32": 26,
    "R8G8B8A8_UNORM": 28,
    "R8G8B8A8_SRGB": 29,
    "R8G8B8A8_UINT": 30,
    "R8G8B8A8_SNORM": 31,
    "R8G8B8A8_SINT": 32,
    "A8B8G8R8_UNORM_PACK32": 28,  # the same bytes as R8G8B8A8, as everywhere below where a code comes twice
    "A8B8G8R8_SRGB_PACK32": 29,
    "A8B8G8R8_UINT_PACK32": 30,
    "A8B8G8R8_SNORM_PACK32": 31,
    "A8B8G8R8_SINT_PACK32": 32,
    "R16G16_SFLOAT": 34,
    "R16G16_UNORM": 35,
    "R16G16_UINT": 36,
    "R16G16_SNORM": 37,
    "R16G16_SINT": 38,
    "D32_SFLOAT": 40,
    "R32_SFLOAT": 41,
    "R32_UINT": 42,
    "R32_SINT": 43,
    "D24_UNORM_S8_UINT": 45,
    "X8_D24_UNORM_PACK32": 46,
    "R8G8_UNORM": 49,
    "R8G8_UINT": 50,
    "R8G8_SNORM": 51,
    "R8G8_SINT": 52,
    "R16_SFLOAT": 54,
    "D16_UNORM": 55,
    "R16_UNORM": 56,
    "R16_UINT": 57,
    "R16_SNORM": 58,
    "R16_SINT": 59,
    "R8_UNORM": 61,
    "R8_UINT": 62,
    "R8_SNORM": 63,
    "R8_SINT": 64,
    "A8_UNORM": 65,
    "E5B9G9R9_UFLOAT_PACK32": 67,
    "BC1_RGBA_UNORM_BLOCK": 71,
    "BC1_RGBA_SRGB_BLOCK": 72,
    "BC1_RGB_UNORM_BLOCK": 71,
    "BC1_RGB_SRGB_BLOCK": 72,
    "BC2_UNORM_BLOCK": 74,
    "BC2_SRGB_BLOCK": 75,
    "BC3_UNORM_BLOCK": 77,
    "BC3_SRGB_BLOCK": 78,
    "BC4_UNORM_BLOCK": 80,
    "BC4_SNORM_BLOCK": 81,
    "BC5_UNORM_BLOCK": 83,
    "BC5_SNORM_BLOCK": 84,
    "R5G6B5_UNORM_PACK16": 85,
    "A1R5G5B5_UNORM_PACK16": 86,
    "B8G8R8A8_UNORM": 87,
    "B8G8R8_UNORM": 88,  # four bytes a texel in the file, three in the format
    "B8G8R8A8_SRGB": 91,
    "B8G8R8_SRGB": 93,  # four bytes a texel in the file, three in the format
    "BC6H_UFLOAT_BLOCK": 95,
    "BC6H_SFLOAT_BLOCK": 96,
    "BC7_UNORM_BLOCK": 98,
    "BC7_SRGB_BLOCK": 99,
    "A4R4G4B4_UNORM_PACK16": 115,
    "R8G8B8_SNORM": 133,
    "R8G8B8_SINT": 134,
    "R4G4B4A4_UNORM_PACK16": 191,
}

_NUMPY_LETTERS = {
    "unorm": "u",
    "snorm": "i",
    "uscaled": "u",
    "sscaled": "i",
    "uint": "u",
    "sint": "i",
    "sfloat": "f",
    "srgb": "u",
}


def _channels_of(pattern: str) -> tuple[str, tuple[int, ...]]:
    """Letters and bits of ``'A2B10G10R10_{}_PACK32'``: ``('ABGR', (2, 10, 10, 10))``."""
    letters = ""
    bits: list[int] = []
    for character in pattern[: pattern.index("_{")].replace("_", ""):
        if character.isdigit():
            bits[-1] = bits[-1] * 10 + int(character)
        else:
            letters += character
            bits.append(0)
    return letters, tuple(bits)


def _uncompressed() -> list[Format]:
    formats = []
    for pattern, first, fillings in _UNCOMPRESSED:
        channels, bits = _channels_of(pattern)
        is_packed = "_PACK" in pattern
        size = sum(bits) // 8
        components = len(channels) - ("X" in channels) - ("E" in channels)  # no padding, no exponent
        aspect = "depth" if "D" in channels else "stencil" if "S" in channels else "color"
        for value, filling in enumerate(fillings.split(), first):
            name, numeric = pattern.format(filling), filling.lower()
            if is_packed:
                dtype, items = ("|u1" if size == 1 else f"<u{size}"), 1
            else:
                item = bits[0] // 8
                dtype, items = f"{'|' if item == 1 else '<'}{_NUMPY_LETTERS[numeric]}{item}", components
            formats.append(
                Format(
                    _PREFIX + name, value, components, size, (1, 1), channels, bits, numeric, is_packed, dtype, items,
                    (aspect,), _DXGI.get(name),
                )
            )  # fmt: skip
    return formats


def _table() -> list[Format]:
    formats = _uncompressed()
    for name, value, size, bits, dtype in _DEPTH_STENCIL:
        numeric = "sfloat" if "SFLOAT" in name else "unorm"
        formats.append(
            Format(
                _PREFIX + name, value, 2, size, (1, 1), "DS", bits, numeric, dtype == "<u4", dtype, 1,
                ("depth", "stencil"), _DXGI.get(name),
            )
        )  # fmt: skip
    for name, value, size, channels, numeric in _COMPRESSED:
        formats.append(
            Format(
                _PREFIX + name, value, len(channels), size, (4, 4), channels, (), numeric, False, None, 0,
                ("color",), _DXGI.get(name),
            )
        )  # fmt: skip
    for name, value, bit_count, numeric, dtype in _TENSOR_ONLY:
        formats.append(
            Format(
                _PREFIX + name, value, 1, bit_count // 8, (1, 1), "R", (bit_count,), numeric, False, dtype, 1,
                ("color",), None,
            )
        )  # fmt: skip
    return sorted(formats, key=lambda entry: entry.value)


@cache
def _by_value() -> dict[int, Format]:
    """The table, made when it is first needed: few runs need it."""
    return {entry.value: entry for entry in _table()}


@cache
def _by_name() -> dict[str, Format]:
    return {entry.name: entry for entry in all_formats()}


@cache
def _by_dxgi() -> dict[int, Format]:
    """The format of each code; where two have one code, files mean the unpacked one, or the one with alpha."""
    ordered = sorted(all_formats(), key=lambda entry: (not entry.is_packed, entry.components, -entry.value))
    return {entry.dxgi: entry for entry in ordered if entry.dxgi is not None}
