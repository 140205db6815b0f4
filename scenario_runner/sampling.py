"""How images are sampled: the names that scenarios and plans use, and their numbers in Vulkan and in VGF files.

Source: Vulkan specification, VkFilter, VkSamplerMipmapMode, VkSamplerAddressMode and VkBorderColor.
"""

from __future__ import annotations

from typing import Final, Literal

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

FILTERS: Final[dict[Filter, int]] = {"NEAREST": 0, "LINEAR": 1}
"""VkFilter, and VkSamplerMipmapMode, which has the same numbers."""

ADDRESS_MODES: Final[dict[AddressMode, int]] = {
    "REPEAT": 0,
    "MIRRORED_REPEAT": 1,
    "CLAMP_EDGE": 2,
    "CLAMP_BORDER": 3,
}

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
STANDARD_COLOR_NAMES: Final = {number: name for name, number in BORDER_COLORS.items() if "CUSTOM" not in name}
"""Names by the numbers of VGF files, which cannot say what a custom color is."""
