"""Image and tensor formats, and how images are sampled.

vk_formats.csv has the VkFormat name and value, the texel layout, NumPy type and DXGI code of each format.

Sources: Vulkan 1.3 specification, chapter "Formats" (values, texel block sizes); DXGI_FORMAT of the Direct3D 11
documentation; VK_ARM_tensors for formats of tensors. The DXGI codes 133 and 134 are undocumented, but existing .dds
files of three signed bytes have them. Files with the codes 88 and 93 have four bytes a texel, their formats three.
Numbers that NumPy lacks are raw bytes; float8 E5M2 is stored as in the reference runner. The table lacks YCbCr, ETC2,
ASTC and PVRTC formats, since no supported file holds them.

DXGI names packed channels from the lowest bit up, Vulkan from the highest down: DXGI's B5G6R5 is Vulkan's R5G6B5. The
last column has other programs' names of a format, for the help of an error.

The names for sampling are those in scenarios and plans. The numbers are VkFilter, VkSamplerMipmapMode,
VkSamplerAddressMode and VkBorderColor, also in VGF files.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, Final, Literal, NamedTuple

from scenario_runner.errors import ScenarioError, UnsupportedError
from scenario_runner.errors.text import close_names


class Format(NamedTuple):
    """A VkFormat. Each format has a single object, also after copying and pickling.

    ``block_size_bytes`` is the size of a texel, or in a compressed format of a block of ``block_extent`` (width,
    height) texels. ``channels`` and ``channel_bits`` list the components in memory order, or in a packed format from
    the highest bit down. ``numeric`` is the meaning of the bits: ``unorm snorm uscaled sscaled uint sint ufloat sfloat
    srgb bool bfloat16 float8e4m3 float8e5m2``; with depth and stencil it is about the depth.

    In a .npy file a texel has ``numpy_items`` items of the type ``numpy_dtype``: an item for each component, or an
    unsigned integer for a packed format. They are 0 and ``None`` if no .npy file can hold the format. ``dxgi`` is the
    DXGI_FORMAT in .dds files, if any.
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
        """True for a format of VK_ARM_tensors. Without the extension a device must not be asked about it."""
        return self.name.endswith("_ARM")

    @property
    def is_compressed(self) -> bool:
        """True if texels come in blocks (BC1 to BC7)."""
        return self.block_extent != (1, 1)

    @property
    def is_integer(self) -> bool:
        """True if shaders see the texels as integers."""
        return self.numeric in ("uint", "sint")

    @property
    def is_normalized(self) -> bool:
        """True if shaders see the stored integers as numbers from 0 to 1, or from -1 to 1."""
        return self.numeric in ("unorm", "snorm", "srgb")

    def row_size_bytes(self, width: int) -> int:
        """Return the size in bytes of a tightly packed row of texels or blocks."""
        return -(-width // self.block_extent[0]) * self.block_size_bytes

    def level_size_bytes(self, width: int, height: int) -> int:
        """Return the bytes of a tightly packed image."""
        return self.row_size_bytes(width) * -(-height // self.block_extent[1])


def full_mip_count(width: int, height: int) -> int:
    """Count the mip levels down to a single texel."""
    return max(width, height).bit_length()


def find_format(name: str) -> Format | None:
    """Return the format called ``name`` (``'VK_FORMAT_R8_UNORM'``), or ``None``."""
    return _by_name().get(name)


def format_named(name: str) -> Format:
    """Return the format called ``name``. Raises `ScenarioError` with close matches."""
    known = _by_name().get(name)
    if known is None:
        raise ScenarioError(f"unknown format {name!r:.100}", help=format_help(name), code="SR-JSON-005")
    return known


def name_of_channels(count: int, bits: int, numeric: str) -> str:
    """Return the name for ``count`` channels from R on with equal bits, such as VK_FORMAT_R32G32_SFLOAT."""
    return f"{_PREFIX}{''.join(f'{letter}{bits}' for letter in 'RGBA'[:count])}_{numeric}"


def format_of_value(value: int) -> Format:
    """Return the format with the VkFormat value ``value``. Raises `UnsupportedError`."""
    known = _by_value().get(value)
    if known is None:
        raise UnsupportedError(f"unknown VkFormat value {value}", code="SR-RUN-003")
    return known


def format_of_dxgi(code: int) -> Format | None:
    """Return the format of .dds files with this DXGI_FORMAT, or ``None``."""
    formats = [entry for entry in _by_value().values() if entry.dxgi == code]
    # If two formats have the same code, files use the unpacked format, or the format with alpha.
    return max(formats, key=lambda entry: (not entry.is_packed, entry.components), default=None)


def close_format_names(name: str) -> list[str]:
    """Suggest at most three formats for another program's name, or for a misspelled name."""
    text = re.sub(f"^{_OTHER_PREFIXES}*", "", name.strip().lower()[:100]).removesuffix("'>")
    start = _PREFIX + _vulkan_start(text)
    names = [_PREFIX + row[0] for row in _rows() if text and text in row[-1].split()]
    names += [entry for entry in _by_name() if f"{entry}_".startswith(f"{start}_")]
    return list(dict.fromkeys(names))[:3] or close_names(start, _by_name(), cutoff=0.85)


_OTHER_PREFIXES = (
    r"(vk_format_|dxgi_format_|gl_|mtlpixelformat|wgputextureformat_?|pixelformat_?|<class '"
    r"|(numpy|np|jnp|jax\.numpy|torch|tf|tensorflow|ml_dtypes)\.|format[._])"
)
_COMPACT_NAME = r"([rgba]+)(8|16|32|64)_?(|f|i|ui|float|sint|uint|unorm|snorm|srgb|unorm-srgb)"
_COMPACT_KINDS = {"f": "sfloat", "float": "sfloat", "i": "sint", "ui": "uint", "unorm-srgb": "srgb"}


def _vulkan_start(text: str) -> str:
    """Translate a name of OpenGL, WebGPU or DXGI to the start of Vulkan's name: rgba8unorm to ``'R8G8B8A8_UNORM'``."""
    compact = re.fullmatch(_COMPACT_NAME, text)
    if compact:
        channels, bits, kind = compact.groups()
        text = "".join(f"{channel}{bits}" for channel in channels) + (kind and f"_{_COMPACT_KINDS.get(kind, kind)}")
    text = re.sub(r"(?<![a-z])float(?=_|$)", "sfloat", text).replace("_unorm_srgb", "_srgb")
    return re.sub(r"_int$", "_sint", text).upper()


def format_help(name: str) -> str:
    """Write help for an unknown name of a format."""
    close = close_format_names(name)
    if not close:
        return "expected a name like 'VK_FORMAT_R8_UNORM'"
    return f"did you mean {' or '.join(map(repr, close))}? Formats have the names that Vulkan gives them"


def all_formats() -> tuple[Format, ...]:
    """Return every format of the table, by rising value."""
    return tuple(_by_value().values())


_PREFIX = "VK_FORMAT_"


def _rows() -> list[list[str]]:
    with open(os.path.join(os.path.dirname(__file__), "vk_formats.csv"), encoding="utf-8") as file:
        return [line.rstrip("\n").split(",") for line in file][1:]


def _read_table() -> Iterator[Format]:
    for name, value, size, channels, channel_bits, numeric, numpy_dtype, numpy_items, dxgi, _ in _rows():
        texel_size_bytes, items = int(size), int(numpy_items)
        aspects = [aspect for letter, aspect in (("D", "depth"), ("S", "stencil")) if letter in channels]
        yield Format(
            name=_PREFIX + name,
            value=int(value),
            components=len(channels.replace("X", "").replace("E", "")),  # no padding, no exponent
            block_size_bytes=texel_size_bytes,
            block_extent=(4, 4) if name.endswith("_BLOCK") else (1, 1),
            channels=channels,
            channel_bits=tuple(map(int, channel_bits.split())),
            numeric=numeric,
            is_packed=len(channels) > 1 and items == 1 and texel_size_bytes == int(numpy_dtype[2:]),
            numpy_dtype=numpy_dtype or None,
            numpy_items=items,
            aspects=tuple(aspects or ["color"]),
            dxgi=int(dxgi) if dxgi else None,
        )


@cache
def _by_value() -> dict[int, Format]:
    return {entry.value: entry for entry in _read_table()}


@cache
def _by_name() -> dict[str, Format]:
    return {entry.name: entry for entry in _by_value().values()}


Filter = Literal["NEAREST", "LINEAR"]
AddressMode = Literal["CLAMP_EDGE", "CLAMP_BORDER", "REPEAT", "MIRRORED_REPEAT"]
BorderColor = Literal[
    "FLOAT_TRANSPARENT_BLACK",
    "FLOAT_OPAQUE_BLACK",
    "FLOAT_OPAQUE_WHITE",
    "INT_TRANSPARENT_BLACK",
    "INT_OPAQUE_BLACK",
    "INT_OPAQUE_WHITE",
    "INT_CUSTOM_EXT",
    "FLOAT_CUSTOM_EXT",
]

# The numbers of VkFilter and VkSamplerMipmapMode are the same.
FILTERS: Final[dict[Filter, int]] = {"NEAREST": 0, "LINEAR": 1}

ADDRESS_MODES: Final[dict[AddressMode, int]] = {"REPEAT": 0, "MIRRORED_REPEAT": 1, "CLAMP_EDGE": 2, "CLAMP_BORDER": 3}

BORDER_COLORS: Final[dict[str, int]] = {
    "FLOAT_TRANSPARENT_BLACK": 0,
    "INT_TRANSPARENT_BLACK": 1,
    "FLOAT_OPAQUE_BLACK": 2,
    "INT_OPAQUE_BLACK": 3,
    "FLOAT_OPAQUE_WHITE": 4,
    "INT_OPAQUE_WHITE": 5,
    "FLOAT_CUSTOM_EXT": 1000287003,
    "INT_CUSTOM_EXT": 1000287004,
}

FILTER_NAMES: Final = {number: name for name, number in FILTERS.items()}
ADDRESS_MODE_NAMES: Final = {number: name for name, number in ADDRESS_MODES.items()}
# A VGF file has no value for a custom color.
STANDARD_COLOR_NAMES: Final = {number: name for name, number in BORDER_COLORS.items() if "CUSTOM" not in name}

# Types of ml_dtypes by numeric format. Numeric formats are named like SPIR-V's encodings, without underscores.
ML_DTYPES: Final = {"bfloat16": "bfloat16", "float8e4m3": "float8_e4m3fn", "float8e5m2": "float8_e5m2"}


def ml_dtype(numeric: str) -> Any:
    """Return the ml_dtypes type for a numeric format in `ML_DTYPES`."""
    import ml_dtypes

    return getattr(ml_dtypes, ML_DTYPES[numeric])
