"""How other programs spell formats: NumPy, C, GLSL, HLSL, WGSL, OpenGL, DXGI, Vulkan without its prefix.

A spelling is taken apart into channels, their bits and the meaning of the bits; `formats` looks for what fits. Only
wrong names come here.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple


class Spelling(NamedTuple):
    """What a name says: ``channels`` and ``bits`` in the order of the name, ``numeric`` with the likeliest meaning
    first, each as `formats.Format` has it. ``block`` names a compressed format instead ("BC7")."""

    channels: str
    bits: tuple[int, ...]
    numeric: tuple[str, ...]
    block: str = ""


_PREFIXES: Final = re.compile(
    r"(vk_format_|dxgi_format_|gl_|mtlpixelformat|wgputextureformat_?|pixelformat_?"
    r"|(numpy|np|jnp|jax\.numpy|torch|tf|tensorflow|ml_dtypes)\.|format[._])"
)
_INTEGERS: Final = {
    "byte": ("uint", 8), "ubyte": ("uint", 8), "uchar": ("uint", 8), "sbyte": ("sint", 8), "char": ("sint", 8),
    "short": ("sint", 16), "ushort": ("uint", 16), "long": ("sint", 64), "ulong": ("uint", 64),
    "size_t": ("uint", 64), "dword": ("uint", 32), "int": ("sint", 32), "uint": ("uint", 32), "sint": ("sint", 32),
    "signed": ("sint", 32), "unsigned": ("uint", 32), "unsigned int": ("uint", 32), "unsigned char": ("uint", 8),
}  # fmt: skip
_SCALARS: Final = {
    **_INTEGERS,
    "float": ("sfloat", 32), "single": ("sfloat", 32), "half": ("sfloat", 16), "double": ("sfloat", 64),
    "bool": ("bool", 8), "boolean": ("bool", 8), "i1": ("bool", 8), "bool_": ("bool", 8),
    "bfloat": ("bfloat16", 16), "bfloat16": ("bfloat16", 16), "bf16": ("bfloat16", 16),
    "e4m3": ("float8e4m3", 8), "e4m3fn": ("float8e4m3", 8), "e5m2": ("float8e5m2", 8),
}  # fmt: skip
_WIDE: Final = {
    "float": "sfloat", "fp": "sfloat", "f": "sfloat", "sfloat": "sfloat", "half": "sfloat", "min": "sfloat",
    "minfloat": "sfloat", "int": "sint", "i": "sint", "s": "sint", "si": "sint", "sint": "sint", "minint": "sint",
    "uint": "uint", "u": "uint", "ui": "uint", "minuint": "uint", "unorm": "unorm", "snorm": "snorm", "bool": "bool",
    "float_e4m3fn": "float8e4m3", "q": "sint", "qint": "sint", "quint": "uint",
}  # fmt: skip
_SCALAR: Final = re.compile(r"([a-z]+?)(8|16|32|64)(?:_t)?(?:x?([234]))?")
_VECTOR: Final = re.compile(r"([a-z_ ]+?)(?:_t)?x?([234])")
_GLSL_VECTOR: Final = re.compile(r"(|i|u|d|b|f16|f32|f64|i8|i16|i32|i64|u8|u16|u32|u64)vec([234])(?:<(\w+)>|([fiuh]))?")
_GLSL_KINDS: Final = {"": "f32", "i": "i32", "u": "u32", "d": "f64", "b": "u32", "h": "f16", "f": "f32"}
_FLOAT8: Final = re.compile(r"(?:float8|fp8|f8)?_?(e4m3|e5m2)(?:fn)?(?:uz)?")
_NUMPY: Final = re.compile(r"([<>|=]?)([biuf])([1248])")
_BLOCK: Final = re.compile(r"(bc[1-7]h?|dxt[135])(?:[-_]?(?:rgba?|rg?))?[-_]?([\w-]*)")
_DXT: Final = {"dxt1": "bc1", "dxt3": "bc2", "dxt5": "bc3"}
_GROUP: Final = re.compile(r"([rgbaxdse]+)(\d+)(f(?!l)|ui(?!n)|i(?!n))?_?")
_ALIKE: Final = {
    "rgba": "rgba8", "bgra": "bgra8", "rgb": "rgb8", "bgr": "bgr8", "argb": "bgra8", "gray": "r8", "grey": "r8",
    "grayscale": "r8", "l": "r8", "luminance": "r8", "luminance8": "r8", "gray8": "r8", "gray16": "r16",
    "srgb": "rgb8_srgb", "srgba": "rgba8_srgb", "srgb8": "rgb8_srgb", "srgb8_alpha8": "rgba8_srgb",
    "rgb565": "r5g6b5", "bgr565": "b5g6r5", "rgba4444": "r4g4b4a4", "rgba5551": "r5g5b5a1", "depth": "d32_float",
    "depth16unorm": "d16_unorm", "depth32float": "d32_float", "depth_component16": "d16_unorm",
    "depth_component32f": "d32_float", "depth24_stencil8": "d24_unorm_s8_uint",
    "depth24plus-stencil8": "d24_unorm_s8_uint",
    "depth24plus": "d24_unorm_s8_uint", "depth32float-stencil8": "d32_sfloat_s8_uint",
    "depth32f_stencil8": "d32_sfloat_s8_uint", "d24s8": "d24_unorm_s8_uint", "stencil8": "s8_uint",
    "float32_s8x24_uint": "d32_sfloat_s8_uint", "d32_float_s8x24_uint": "d32_sfloat_s8_uint",
}  # fmt: skip
_MEANINGS: Final = {
    "unorm": ("unorm",), "snorm": ("snorm",), "uint": ("uint",), "sint": ("sint",), "int": ("sint",), "ui": ("uint",),
    "i": ("sint",), "u": ("uint",), "s": ("sint",), "f": ("sfloat", "ufloat"), "float": ("sfloat", "ufloat"),
    "sfloat": ("sfloat",), "ufloat": ("ufloat",), "sharedexp": ("ufloat",), "srgb": ("srgb",), "unorm_srgb": ("srgb",),
    "typeless": ("unorm", "sfloat", "uint"), "uf16": ("ufloat",), "sf16": ("sfloat",), "half": ("sfloat",),
    "norm": ("unorm",), "un": ("unorm",), "uscaled": ("uscaled",), "sscaled": ("sscaled",), "unsigned": ("uint",),
    "rgba_unorm": ("unorm",), "rgba_unorm_srgb": ("srgb",),
}  # fmt: skip
_ANY: Final = ("unorm", "sfloat", "ufloat", "uint")


def spellings(name: str) -> list[Spelling]:
    """What ``name`` may mean, the likeliest first; mostly one meaning, nothing for a name that is none of a format."""
    text = name.strip().lower()[:100]
    found = _PREFIXES.match(text)
    while found:
        text = text[found.end() :]
        found = _PREFIXES.match(text)
    text = re.sub(r"_?(pack(8|16|32)|block|arm)$", "", text.removeprefix("<class '").removesuffix("'>"))
    text = _ALIKE.get(text, text)
    return [each for each in (*_numpy(text), _scalar(text), _vector(text), _block(text), _channels(text)) if each]


def _plain(numeric: str, bits: int, count: int = 1) -> Spelling:
    return Spelling("RGBA"[:count], (bits,) * count, (numeric,))


def _numpy(text: str) -> list[Spelling]:
    """A type string of NumPy, such as ``<f4``: the number counts bytes."""
    found = _NUMPY.fullmatch(text)
    if not found or (not found[1] and int(found[3]) == 8 and found[2] in "iu"):
        return []  # i8 and u8 without a byte order are mostly the 8-bit types of other languages
    if found[2] == "b":
        return [_plain("bool", 8)]
    return [_plain({"i": "sint", "u": "uint", "f": "sfloat"}[found[2]], 8 * int(found[3]))]


def _scalar(text: str) -> Spelling | None:
    float8 = _FLOAT8.fullmatch(text)
    if float8:
        return _plain(f"float8{float8[1]}", 8)
    known = _SCALARS.get(text.removesuffix("_t"))
    if known:
        return _plain(*known)
    found = _SCALAR.fullmatch(text)
    numeric = _WIDE.get(found[1]) if found else None
    if found is None or numeric is None:
        return None
    return _plain(numeric, int(found[2]), int(found[3] or 1))


def _vector(text: str) -> Spelling | None:
    found = _GLSL_VECTOR.fullmatch(text)
    if found:
        element = found[3] or found[4] or found[1]
        scalar = _scalar(_GLSL_KINDS.get(element, element))
        return None if scalar is None else _plain(scalar.numeric[0], scalar.bits[0], int(found[2]))
    found = _VECTOR.fullmatch(text)
    known = _SCALARS.get(found[1]) if found else None
    return _plain(*known, int(found[2])) if found and known else None


def _block(text: str) -> Spelling | None:
    found = _BLOCK.fullmatch(text)
    if not found:
        return None
    numeric = _MEANINGS.get(re.sub(r"[-_]+", "_", found[2]).strip("_"), ("unorm", "ufloat", "sfloat"))
    return Spelling(
        "", (), (*numeric, "ufloat") if found[1] == "bc6h" else numeric, _DXT.get(found[1], found[1]).upper()
    )


def _channels(text: str) -> Spelling | None:
    """``r8g8b8a8_unorm``, ``rgba8``, ``rgb10_a2ui``, ``r11f_g11f_b10f``, ``bgra8unorm-srgb``, ``d24_unorm_s8_uint``."""
    if re.fullmatch(r"d(24|32|16)_?\w*_s8_?\w*", text):
        depth = int(text[1:3])
        return Spelling("DS", (depth, 8), ("sfloat",) if depth == 32 else ("unorm",))
    channels, at, numeric = "", 0, ""
    bits: list[int] = []
    while found := _GROUP.match(text, at):
        channels += found[1].upper()
        bits += [int(found[2])] * len(found[1])
        numeric = found[3] or numeric
        at = found.end()
    rest = re.sub(r"[-_]+", "_", text[at:]).strip("_")
    if not channels or len(channels) > 4 or (rest and rest not in _MEANINGS):
        return None
    said = rest or numeric
    return Spelling(channels, tuple(bits), _MEANINGS[said] if said else _ANY)
