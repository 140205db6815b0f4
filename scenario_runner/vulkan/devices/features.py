"""Device features: those that a driver reports and those that are enabled, for any structure of the registry.

Every feature structure is {VkStructureType, pNext, VkBool32 members…}, so one generic form serves all of them, also
those that the binding package does not know.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Any, Final, NamedTuple

from scenario_runner.errors import UsageError
from scenario_runner.text import close_names, did_you_mean
from scenario_runner.vulkan.api._generated import constants as vk
from scenario_runner.vulkan.api._generated.extension_names import DEVICE_EXTENSIONS
from scenario_runner.vulkan.api._generated.features import ALIASES, CORE_FEATURES, FEATURES, ROLLED_UP
from scenario_runner.vulkan.api.ffi import ffi
from scenario_runner.vulkan.api.loader import Functions

CORE = "VkPhysicalDeviceFeatures"
_HEADER_WORDS = 4  # sType, padding, pNext
_CORE_WORDS = 55


class Feature(NamedTuple):
    """One member of one structure, and the device extension (if any) that brings the structure to this device."""

    structure: str
    member: str
    extension: str | None = None

    def __str__(self) -> str:
        return f"{self.member} ({self.structure})"


def _words(structure: str) -> Any:
    """A zeroed structure of this name as 32-bit words."""
    if structure == CORE:
        words = ffi.new("uint32_t[]", _HEADER_WORDS + _CORE_WORDS + 1)
        words[0] = vk.STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2
    else:
        kind, _, _, members = FEATURES[structure]
        words = ffi.new("uint32_t[]", _HEADER_WORDS + len(members) + 1)
        words[0] = kind
    return words


def _members(structure: str) -> tuple[str, ...]:
    members: tuple[str, ...] = CORE_FEATURES if structure == CORE else FEATURES[structure][3]
    return members


def _set_next(words: Any, following: Any) -> None:
    ffi.cast("void**", words + 2)[0] = following


class FeatureTable:
    """The features of one physical device; each structure is asked of the driver once, when first needed."""

    def __init__(
        self, fn: Functions | None, physical_device: Any, api_version: int, extensions: Container[str]
    ) -> None:
        """``physical_device`` is the VkPhysicalDevice, ``extensions`` are those that the device has.

        Without ``fn`` there is no driver to ask: a subclass answers then.
        """
        self._fn = fn
        self._physical_device = physical_device
        self._api_version = api_version
        self._extensions = extensions
        self._known: dict[str, frozenset[str]] = {}

    def find(self, structure: str, member: str) -> Feature | None:
        """The feature as this device offers it: in ``structure``, or where an extension brings the same member.

        None when the device does not report it as supported.
        """
        for name in self._candidates(ALIASES.get(structure, structure), member):
            if member in self.supported(name):
                return Feature(name, member, self._extension_of(name))
        return None

    def supported(self, structure: str) -> frozenset[str]:
        """The members of ``structure`` that the driver reports as true; none where the device lacks the structure."""
        known = self._known.get(structure)
        if known is None:
            known = self._known[structure] = self._query(structure)
        return known

    def _candidates(self, structure: str, member: str) -> list[str]:
        rolled_up = [old for old, new in ROLLED_UP.items() if new == structure and member in FEATURES[old][3]]
        return [structure, *rolled_up]

    def _available(self, structure: str) -> bool:
        if structure == CORE:
            return True
        _, version, extensions, _ = FEATURES[structure]
        if version and self._api_version >= version:
            return True
        return any(extension in self._extensions for extension in extensions)

    def _extension_of(self, structure: str) -> str | None:
        if structure == CORE:
            return None
        _, version, extensions, _ = FEATURES[structure]
        if version and self._api_version >= version:
            return None
        return next((extension for extension in extensions if extension in self._extensions), None)

    def _query(self, structure: str) -> frozenset[str]:
        if not self._available(structure):
            return frozenset()
        core = _words(CORE)
        words = core
        if structure != CORE:
            words = _words(structure)
            _set_next(core, ffi.cast("void*", words))
        assert self._fn is not None
        self._fn.vkGetPhysicalDeviceFeatures2(self._physical_device, ffi.cast("VkPhysicalDeviceFeatures2*", core))
        values = words[_HEADER_WORDS : _HEADER_WORDS + len(_members(structure))]
        return frozenset(member for member, value in zip(_members(structure), values, strict=True) if value)


def chain_of(features: Iterable[Feature]) -> tuple[Any, list[Any]]:
    """A VkPhysicalDeviceFeatures2 chain that enables ``features``; returns (head, everything to keep alive).

    Vulkan forbids a structure beside the VkPhysicalDeviceVulkan1xFeatures that it was rolled up into, so a member of
    the older one is enabled in the newer one when both appear.
    """
    wanted: dict[str, set[str]] = {CORE: set()}
    for feature in features:
        wanted.setdefault(feature.structure, set()).add(feature.member)
    for old in [name for name in wanted if ROLLED_UP.get(name) in wanted]:
        wanted[ROLLED_UP[old]] |= wanted.pop(old)
    core = _words(CORE)
    keep = [core]
    last = core
    for structure, enabled in wanted.items():
        words = core if structure == CORE else _words(structure)
        for index, member in enumerate(_members(structure)):
            if member in enabled:
                words[_HEADER_WORDS + index] = 1
        if structure != CORE:
            _set_next(last, ffi.cast("void*", words))
            keep.append(words)
            last = words
    return core, keep


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
