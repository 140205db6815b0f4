"""A physical device and its features, as the driver describes them. Nothing here is created or destroyed.

Every feature structure is {VkStructureType, pNext, VkBool32 members…}. A generic form therefore serves all structures,
even if the binding package lacks them.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Container, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Final, NamedTuple

from scenario_runner.errors import UsageError
from scenario_runner.errors.text import close_names, did_you_mean
from scenario_runner.plan.records import MatrixUse
from scenario_runner.vulkan import Handle, ffi
from scenario_runner.vulkan._generated import constants as vk
from scenario_runner.vulkan._generated.extensions import DEVICE_EXTENSIONS
from scenario_runner.vulkan._generated.features import ALIASES, CORE_FEATURES, FEATURES, ROLLED_UP
from scenario_runner.vulkan.layers import present_layers, text_of
from scenario_runner.vulkan.vulkan_api import API_1_2, Functions, chain, enumerated, new, version_text

CORE = "VkPhysicalDeviceFeatures"
_HEADER_WORDS = 4  # sType, padding, pNext


class Feature(NamedTuple):
    """One member of a feature structure, and the device extension (if any) that brings the structure to this device."""

    structure: str
    member: str
    extension: str | None = None

    def __str__(self) -> str:
        return f"{self.member} ({self.structure})"


# Each feature structure: VkStructureType, Vulkan version and extensions that bring it, and members.
_STRUCTURES: Final[dict[str, tuple[int, int, tuple[str, ...], tuple[str, ...]]]] = {
    CORE: (vk.STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, 1, (), CORE_FEATURES),
    **FEATURES,
}


def _words(structure: str) -> Handle:
    """Return the zeroed structure of this name as 32-bit words."""
    kind, _, _, members = _STRUCTURES[structure]
    words = ffi.new("uint32_t[]", _HEADER_WORDS + len(members) + 1)
    words[0] = kind
    return words


def _set_next(words: Handle, following: Handle) -> None:
    ffi.cast("void**", words + 2)[0] = following


class FeatureTable:
    """The features of a physical device. Each structure is queried once, on first use."""

    def __init__(
        self, fn: Functions | None, physical_device: Handle, api_version: int, extensions: Container[str]
    ) -> None:
        """Take a VkPhysicalDevice with Vulkan version and extensions.

        Without ``fn``, no driver can be queried, and a subclass answers instead.
        """
        self._fn = fn
        self._physical_device = physical_device
        self._api_version = api_version
        self._extensions = extensions
        self._known: dict[str, frozenset[str]] = {}

    def find(self, structure: str, member: str, disabled: Collection[str] = ()) -> Feature | None:
        """Return the device's feature: in ``structure``, or in the structure of an extension with the same member.

        Returns None if the device does not support the feature, or if the extension is ``disabled``.
        """
        structure = ALIASES.get(structure, structure)
        rolled_up = [old for old, new in ROLLED_UP.items() if new == structure and member in FEATURES[old][3]]
        for name in (structure, *rolled_up):
            if member in self.supported(name):
                extension = self._extension_of(name)
                return None if extension in disabled else Feature(name, member, extension)
        return None

    def available(self, features: Iterable[tuple[str, str]], disabled: Collection[str] = ()) -> Iterator[Feature]:
        """Iterate over the features (structure, member) that `find` finds."""
        for structure, member in features:
            feature = self.find(structure, member, disabled)
            if feature is not None:
                yield feature

    def supported(self, structure: str) -> frozenset[str]:
        """Return the members of ``structure`` that the driver supports; none if the device lacks the structure."""
        if structure not in self._known:
            self._known[structure] = self._query(structure)
        return self._known[structure]

    def _is_core(self, structure: str) -> bool:
        version = _STRUCTURES[structure][1]
        return bool(version) and self._api_version >= version

    def _extension_of(self, structure: str) -> str | None:
        """Return the extension that brings a structure; None for a structure of the device's Vulkan version."""
        extensions = () if self._is_core(structure) else _STRUCTURES[structure][2]
        return next((extension for extension in extensions if extension in self._extensions), None)

    def _query(self, structure: str) -> frozenset[str]:
        if not self._is_core(structure) and self._extension_of(structure) is None:
            return frozenset()
        core = words = _words(CORE)
        if structure != CORE:
            words = _words(structure)
            _set_next(core, ffi.cast("void*", words))
        assert self._fn is not None
        self._fn.vkGetPhysicalDeviceFeatures2(self._physical_device, ffi.cast("VkPhysicalDeviceFeatures2*", core))
        return frozenset(itertools.compress(_STRUCTURES[structure][3], words[_HEADER_WORDS : len(words) - 1]))


def chain_of(features: Iterable[Feature]) -> tuple[Handle, list[Handle]]:
    """Return the head of a VkPhysicalDeviceFeatures2 chain that enables ``features``, and all objects to keep alive.

    Vulkan forbids a structure beside the VkPhysicalDeviceVulkan1xFeatures that includes it. If both appear, the older
    structure's members are enabled in the newer structure.
    """
    members: dict[str, set[str]] = {CORE: set()}
    for feature in features:
        members.setdefault(feature.structure, set()).add(feature.member)
    for old in [name for name in members if ROLLED_UP.get(name) in members]:
        members[ROLLED_UP[old]] |= members.pop(old)
    chain: list[Handle] = []
    for structure, enabled in members.items():  # CORE comes first
        words = _words(structure)
        for index, member in enumerate(_STRUCTURES[structure][3]):
            if member in enabled:
                words[_HEADER_WORDS + index] = 1
        if chain:
            _set_next(chain[-1], ffi.cast("void*", words))
        chain.append(words)
    return chain[0], chain


_SPELLINGS: Final = {"VK_KHR_maintenance_5": "VK_KHR_maintenance5"}
"""Spellings of the reference runner."""
_MANDATORY: Final = "VK_KHR_portability_subset"


def checked_names(names: str | Iterable[str]) -> frozenset[str]:
    """Return one or several extension names as Vulkan spells them.

    Raises UsageError for an unknown device extension, and for the extension that a device must always be opened with
    (VUID-VkDeviceCreateInfo-pProperties-04451).
    """
    checked = set()
    for spelling in [names] if isinstance(names, str) else names:
        name = _SPELLINGS.get(spelling, spelling)
        if name not in DEVICE_EXTENSIONS:
            meant = did_you_mean(close_names(spelling, DEVICE_EXTENSIONS, most=1, cutoff=0.7))
            raise UsageError(f"--disable-extension: {spelling!r} is not a device extension of Vulkan{meant}")
        if name == _MANDATORY:
            raise UsageError(f"--disable-extension: {name} must be enabled on a device that has it")
        checked.add(name)
    return frozenset(checked)


_MOST_SHOWN: Final = 24
# VkComponentTypeKHR
COMPONENTS: Final = {
    **dict(enumerate(("float16", "float32", "float64", "int8", "int16", "int32", "int64"))),
    **dict(enumerate(("uint8", "uint16", "uint32", "uint64"), start=7)),
    1000141000: "bfloat16",
    1000491002: "float8_e4m3",
    1000491003: "float8_e5m2",
}


class MatrixSizes(NamedTuple):
    """A supported combination: M, N and K, and the types of A, B, C and the result.

    ``invocations`` is the required size of a workgroup; 0 allows any. ``is_flexible`` means that multiples of the sizes
    are supported as well.
    """

    sizes: tuple[int, int, int]
    components: tuple[str, str, str, str]
    scope: int
    saturating: bool
    invocations: int = 0
    is_flexible: bool = False

    def __str__(self) -> str:
        multiples = " and multiples" if self.is_flexible else ""
        workgroups = f" in workgroups of {self.invocations}" if self.invocations else ""
        return f"{'x'.join(map(str, self.sizes))}{multiples} ({', '.join(self.components)}){workgroups}"

    @property
    def features(self) -> list[str]:
        """Members of VkPhysicalDeviceCooperativeMatrix2FeaturesNV that shaders need to use the combination."""
        features = ["cooperativeMatrixFlexibleDimensions"] if self.is_flexible else []
        return features + (["cooperativeMatrixWorkgroupScope"] if self.scope == vk.SCOPE_WORKGROUP_KHR else [])

    def matches(self, use: MatrixUse) -> bool:
        """Return whether a type or a product is covered by this combination."""
        if use.scope != self.scope or use.saturating not in (None, self.saturating):
            return False
        if self.invocations not in (0, use.invocations):
            return False
        for wanted, size in zip(use.sizes, self.sizes, strict=True):
            if wanted is not None and (wanted % size if self.is_flexible else wanted != size):
                return False
        return any(
            all(not names or name in names for names, name in zip(alternative, self.components, strict=True))
            for alternative in use.components
        )


def missing_matrices(uses: Iterable[MatrixUse], supported: Sequence[MatrixSizes]) -> str:
    """Name the types and products that no combination covers, and list the combinations; empty if all are covered."""
    missing = [use.words for use in uses if not any(each.matches(use) for each in supported)]
    if not missing:
        return ""
    shown = list(dict.fromkeys(map(str, supported)))
    shown[_MOST_SHOWN:] = ["…"] if len(shown) > _MOST_SHOWN else []
    table = f"of M x N x K (A, B, C, result) it supports {'; '.join(shown) or 'none'}"
    return f"{', '.join(missing)}; {table}"


_TYPES = {
    vk.PHYSICAL_DEVICE_TYPE_OTHER: "other",
    vk.PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU: "integrated",
    vk.PHYSICAL_DEVICE_TYPE_DISCRETE_GPU: "discrete",
    vk.PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU: "virtual",
    vk.PHYSICAL_DEVICE_TYPE_CPU: "cpu",
}


class PhysicalDevice:
    """Wraps a VkPhysicalDevice. Each property is queried on first use."""

    def __init__(self, fn: Functions, handle: Handle, index: int) -> None:
        self.fn = fn
        self.handle = handle
        self.index = index

    @cached_property
    def properties(self) -> Handle:
        """VkPhysicalDeviceProperties."""
        properties = ffi.new("VkPhysicalDeviceProperties*")
        self.fn.vkGetPhysicalDeviceProperties(self.handle, properties)
        return properties

    @cached_property
    def name(self) -> str:
        return text_of(self.properties.deviceName)

    @cached_property
    def type(self) -> str:
        """'discrete', 'integrated', 'virtual', 'cpu' or 'other'."""
        return _TYPES.get(self.properties.deviceType, "other")

    @cached_property
    def api_version(self) -> int:
        return int(self.properties.apiVersion)

    @property
    def limits(self) -> Handle:
        """VkPhysicalDeviceLimits."""
        return self.properties.limits

    def properties_of(self, structure: str) -> Handle:
        """Query a structure that extends VkPhysicalDeviceProperties2. Raises TypeError if the bindings lack the
        structure."""
        values = new(structure)
        self.fn.vkGetPhysicalDeviceProperties2(self.handle, chain(new("VkPhysicalDeviceProperties2"), values))
        return values

    def format_properties_of(self, structure: str, format: int) -> Handle:
        """Query a structure that extends VkFormatProperties2, for a VkFormat."""
        values = new(structure)
        properties = chain(new("VkFormatProperties2"), values)
        self.fn.vkGetPhysicalDeviceFormatProperties2(self.handle, format, properties)
        return values

    def format_properties(self, format: int) -> Handle:
        """Return the VkFormatProperties of a VkFormat: features of LINEAR and OPTIMAL images, and of buffers."""
        properties = ffi.new("VkFormatProperties*")
        self.fn.vkGetPhysicalDeviceFormatProperties(self.handle, format, properties)
        return properties

    @cached_property
    def vulkan11_properties(self) -> Handle:
        return self.properties_of("VkPhysicalDeviceVulkan11Properties")

    @cached_property
    def vulkan12_properties(self) -> Handle:
        return self.properties_of("VkPhysicalDeviceVulkan12Properties")

    @cached_property
    def uuid(self) -> str:
        """deviceUUID in the usual form: 8-4-4-4-12 hexadecimal digits."""
        digits = bytes(ffi.buffer(self.vulkan11_properties.deviceUUID)).hex()
        return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))

    @cached_property
    def driver(self) -> str:
        """Name and version as the driver reports them."""
        properties = self.vulkan12_properties
        return " ".join(filter(None, (text_of(properties.driverName), text_of(properties.driverInfo))))

    @cached_property
    def memory_heaps(self) -> list[int]:
        """Size in bytes of each memory heap."""
        return [heap.size for heap in self._memory.memoryHeaps[0 : self._memory.memoryHeapCount]]

    @cached_property
    def memory_types(self) -> list[tuple[int, int]]:
        """(property flags, heap index) of each memory type."""
        return [
            (kind.propertyFlags, kind.heapIndex) for kind in self._memory.memoryTypes[0 : self._memory.memoryTypeCount]
        ]

    @cached_property
    def _memory(self) -> Handle:
        memory = ffi.new("VkPhysicalDeviceMemoryProperties*")
        self.fn.vkGetPhysicalDeviceMemoryProperties(self.handle, memory)
        return memory

    @cached_property
    def queue_families(self) -> list[tuple[int, int, int]]:
        """(queue flags, queue count, timestamp valid bits) of each queue family."""
        name = "vkGetPhysicalDeviceQueueFamilyProperties"
        families = enumerated("VkQueueFamilyProperties", name, getattr(self.fn, name), self.handle)
        return [(family.queueFlags, family.queueCount, family.timestampValidBits) for family in families]

    @cached_property
    def extensions(self) -> dict[str, int]:
        """Device extensions with revisions, from the driver and from tools' layers."""
        extensions = self._extensions_of(None)
        for layer in present_layers():
            extensions = {**self._extensions_of(layer), **extensions}
        return extensions

    def _extensions_of(self, layer: str | None) -> dict[str, int]:
        of = ffi.NULL if layer is None else ffi.new("char[]", layer.encode())
        name = "vkEnumerateDeviceExtensionProperties"
        properties = enumerated("VkExtensionProperties", name, getattr(self.fn, name), self.handle, of)
        return {ffi.string(extension.extensionName).decode(): extension.specVersion for extension in properties}

    @cached_property
    def features(self) -> FeatureTable:
        """Features that the driver reports, in every structure of the Vulkan version and extensions."""
        return FeatureTable(self.fn, self.handle, self.api_version, self.extensions)

    @cached_property
    def matrices(self) -> list[MatrixSizes] | None:
        """Supported cooperative matrices; None without VK_KHR_cooperative_matrix."""
        if "VK_KHR_cooperative_matrix" not in self.extensions:
            return None

        kinds = {"PropertiesKHR": "Size"}
        if "VK_NV_cooperative_matrix2" in self.extensions:
            kinds["FlexibleDimensionsPropertiesNV"] = "Granularity"
        matrices = []
        for kind, suffix in kinds.items():
            name = f"vkGetPhysicalDeviceCooperativeMatrix{kind}"
            for row in enumerated(f"VkCooperativeMatrix{kind}", name, getattr(self.fn, name), self.handle):
                m, n, k = (int(getattr(row, f"{letter}{suffix}")) for letter in "MNK")
                types = (row.AType, row.BType, row.CType, row.ResultType)
                a, b, c, result = (COMPONENTS.get(type, f"component type {type}") for type in types)
                is_flexible = kind != "PropertiesKHR"
                invocations = row.workgroupInvocations if is_flexible else 0
                saturating = bool(row.saturatingAccumulation)
                matrices.append(
                    MatrixSizes((m, n, k), (a, b, c, result), row.scope, saturating, invocations, is_flexible)
                )
        return matrices

    def has_property(self, structure: str, member: str, bits: int) -> bool:
        """Return whether ``member`` of a structure that extends VkPhysicalDeviceProperties2 has all ``bits``."""
        try:
            values = self.properties_of(structure)
        except TypeError:
            return False  # newer than the binding: the caller reports that the device lacks it
        return int(getattr(values, member)) & bits == bits

    def queue_family(self, *, graphics: bool = False) -> int | None:
        """Return the first queue family with compute (and with graphics, if wanted), or None."""
        required = vk.QUEUE_COMPUTE_BIT | (vk.QUEUE_GRAPHICS_BIT if graphics else 0)
        families = enumerate(self.queue_families)
        return next((index for index, (flags, count, _) in families if flags & required == required and count), None)

    def unusable_because(self) -> str | None:
        """Explain why this device cannot run any scenario; None if it can."""
        if self.api_version < API_1_2:
            return f"it supports Vulkan {version_text(self.api_version, 2)}; 1.2 or newer is needed"
        if self.queue_family() is None:
            return "it has no queue family with compute"
        return None
