"""The names that sampler settings have in attributes: those of Vulkan's enums, and their numbers.

Source: Vulkan specification, VkFilter, VkSamplerAddressMode and VkBorderColor.
"""

from __future__ import annotations

from typing import Final

from scenario_runner.sampling import ADDRESS_MODES, BORDER_COLORS, FILTERS

_FILTERS: Final[dict[str, int]] = {
    **{f"VK_FILTER_{name}": number for name, number in FILTERS.items()},
    "VK_FILTER_CUBIC_IMG": 1000015000,
    "VK_FILTER_CUBIC_EXT": 1000015000,
}
_ADDRESS_MODES: Final[dict[str, int]] = {
    **{
        f"VK_SAMPLER_ADDRESS_MODE_{name.replace('CLAMP_', 'CLAMP_TO_')}": number
        for name, number in ADDRESS_MODES.items()
    },
    "VK_SAMPLER_ADDRESS_MODE_MIRROR_CLAMP_TO_EDGE": 4,
}
_BORDER_COLORS: Final[dict[str, int]] = {f"VK_BORDER_COLOR_{name}": number for name, number in BORDER_COLORS.items()}

SAMPLER_NAMES: Final = {
    "min_filter": _FILTERS,
    "mag_filter": _FILTERS,
    "address_mode_u": _ADDRESS_MODES,
    "address_mode_v": _ADDRESS_MODES,
    "border_color": _BORDER_COLORS,
}
"""Each key of a sampler: the names that it may have, and their numbers."""
