"""The names of filters, address modes and border colors, against the constants of the vulkan package."""

from typing import get_args

import pytest
import vulkan

from scenario_runner.files import vk_formats


@pytest.mark.parametrize(
    "names, numbers, prefixes",
    [
        (vk_formats.Filter, vk_formats.FILTERS, ("VK_FILTER_", "VK_SAMPLER_MIPMAP_MODE_")),
        (vk_formats.AddressMode, vk_formats.ADDRESS_MODES, ("VK_SAMPLER_ADDRESS_MODE_",)),
        (vk_formats.BorderColor, vk_formats.BORDER_COLORS, ("VK_BORDER_COLOR_",)),
    ],
    ids=["filters", "address modes", "border colors"],
)
def test_numbers_are_those_of_vulkan(names: object, numbers: dict[str, int], prefixes: tuple[str, ...]) -> None:
    """Each name that a scenario may use has the number of Vulkan's enumeration value."""
    assert set(get_args(names)) == set(numbers)
    for prefix in prefixes:
        # a scenario says CLAMP_EDGE and CLAMP_BORDER
        expected = {name: getattr(vulkan, f"{prefix}{name.replace('CLAMP_', 'CLAMP_TO_')}") for name in numbers}
        assert numbers == expected


def test_numbers_of_files_have_names() -> None:
    """A number of a VGF file has the name that has this number; custom colors stand in no file."""
    assert vk_formats.FILTER_NAMES == {0: "NEAREST", 1: "LINEAR"}
    assert vk_formats.ADDRESS_MODE_NAMES[2] == "CLAMP_EDGE"
    assert sorted(vk_formats.STANDARD_COLOR_NAMES) == list(range(6))
