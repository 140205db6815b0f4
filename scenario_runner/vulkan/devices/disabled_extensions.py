"""The names given to --disable-extension: those of device extensions that Vulkan has."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from scenario_runner.close_names import close_names, did_you_mean
from scenario_runner.errors import UsageError
from scenario_runner.vulkan.api._generated.extension_names import DEVICE_EXTENSIONS

_SPELLINGS: Final = {"VK_KHR_maintenance_5": "VK_KHR_maintenance5"}
"""As the reference runner spells them."""
_MANDATORY: Final = "VK_KHR_portability_subset"


def checked_names(names: Iterable[str]) -> frozenset[str]:
    """The names as Vulkan spells them.

    Raises UsageError for a name that is not one of a device extension, and for the extension that cannot be left out
    where a device has it (VUID-VkDeviceCreateInfo-pProperties-04451).
    """
    found = set()
    for given in names:
        name = _SPELLINGS.get(given, given)
        if name not in DEVICE_EXTENSIONS:
            meant = did_you_mean(close_names(given, DEVICE_EXTENSIONS, most=1, cutoff=0.7))
            raise UsageError(f"--disable-extension: {given!r} is not a device extension of Vulkan{meant}")
        if name == _MANDATORY:
            raise UsageError(f"--disable-extension: {name} must be enabled on a device that has it")
        found.add(name)
    return frozenset(found)
