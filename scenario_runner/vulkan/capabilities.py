"""Features and extensions for opening a device, from the requirements of a scenario in SPIR-V's names.

For some SPIR-V capabilities and extensions, the registry names only a device extension, while the specification also
requires a feature. Such features are enabled if the device has them.

Sources: Vulkan specification, "Features" (the VUIDs named below) and VUID-vkCreateDevice-ppEnabledExtensionNames-01387.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final, NamedTuple

from scenario_runner import errors
from scenario_runner.errors.diagnostic import Diagnostic
from scenario_runner.plan.records import ML_STRUCTURES, NeededFeature, Requirements
from scenario_runner.vulkan._generated.extensions import DEPENDENCIES
from scenario_runner.vulkan._generated.features import CORE_FEATURES, FEATURES
from scenario_runner.vulkan._generated.spirv_requirements import CAPABILITIES, EXTENSIONS
from scenario_runner.vulkan.layers import FRAME_BOUNDARY
from scenario_runner.vulkan.physical_device import CORE, Feature, PhysicalDevice, missing_matrices
from scenario_runner.vulkan.vulkan_api import API_1_2, API_1_3, version_text

_MULTIVIEW: Final = ("VkPhysicalDeviceVulkan11Features", "multiview")
_SHADING_RATE: Final = ("VkPhysicalDeviceFragmentShadingRateFeaturesKHR", "primitiveFragmentShadingRate")
_ATOMIC_INT64: Final = ("VkPhysicalDeviceShaderImageAtomicInt64FeaturesEXT", "shaderImageInt64Atomics")
_ATOMIC_FLOAT: Final = "VkPhysicalDeviceShaderAtomicFloatFeaturesEXT"
_ATOMIC_FLOAT2: Final = "VkPhysicalDeviceShaderAtomicFloat2FeaturesEXT"
# A member means the same in every structure, so the member's name stands for the feature.
IMPLIED: Final[dict[str, tuple[str, str]]] = {
    # VUID-VkPhysicalDeviceVariablePointersFeatures-variablePointers-01431
    "variablePointers": ("VkPhysicalDeviceVulkan11Features", "variablePointersStorageBuffer"),
    # VUID-VkPhysicalDeviceMultiviewFeatures-multiviewGeometryShader-00580 and -multiviewTessellationShader-00581
    "multiviewGeometryShader": _MULTIVIEW,
    "multiviewTessellationShader": _MULTIVIEW,
    # VUID-VkPhysicalDeviceMeshShaderFeaturesEXT-multiviewMeshShader-07032 and
    # -primitiveFragmentShadingRateMeshShader-07033
    "multiviewMeshShader": _MULTIVIEW,
    "primitiveFragmentShadingRateMeshShader": _SHADING_RATE,
    # VUID-VkPhysicalDeviceRobustness2FeaturesKHR-robustBufferAccess2-04000
    "robustBufferAccess2": (CORE, "robustBufferAccess"),
    # VUID-VkDeviceCreateInfo-None-04896, -04897, -04898 and -sparseImageFloat32AtomicMinMax-04975
    "sparseImageInt64Atomics": _ATOMIC_INT64,
    "sparseImageFloat32Atomics": (_ATOMIC_FLOAT, "shaderImageFloat32Atomics"),
    "sparseImageFloat32AtomicAdd": (_ATOMIC_FLOAT, "shaderImageFloat32AtomicAdd"),
    "sparseImageFloat32AtomicMinMax": (_ATOMIC_FLOAT2, "shaderImageFloat32AtomicMinMax"),
}
"""A feature's member → (structure, member) of the feature that must be enabled with it."""


def dependent_extensions(
    physical: PhysicalDevice, extensions: Iterable[str], disabled: Collection[str]
) -> tuple[set[str], list[Diagnostic]]:
    """Add the extensions that ``extensions`` depend on. Return all of them, and the problems found.

    Among alternatives, the device's first in registry order is added. A driver that has an extension without the
    dependencies is trusted. An extension disabled by the user is a problem.
    """
    result = set(extensions)
    problems: list[Diagnostic] = []
    if not result:  # as most scenarios
        return result, problems
    pending = sorted(result)
    while pending:
        extension = pending.pop()
        for alternatives in DEPENDENCIES.get(extension, ()):
            if any(
                alternative in result if isinstance(alternative, str) else physical.api_version >= alternative
                for alternative in alternatives
            ):
                continue
            present = [alternative for alternative in alternatives if alternative in physical.extensions]
            usable = [name for name in present if name not in disabled]
            if usable:
                result.add(usable[0])
                pending.append(usable[0])
            elif present:
                message = f"the extension {extension} depends on {' or '.join(present)}, which is disabled"
                help = "do not disable it, or disable both"
                problems.append(Diagnostic("SR-FEATURE-002", "error", None, message, help))
    return result, problems


_COMPANIONS: Final[dict[str, tuple[str, ...]]] = {
    "ShaderClockKHR": ("ShaderClockFeaturesKHR", "shaderSubgroupClock", "shaderDeviceClock"),
    "VulkanMemoryModel": ("Vulkan12Features", "vulkanMemoryModelAvailabilityVisibilityChains"),
    "SPV_KHR_maximal_reconvergence": ("ShaderMaximalReconvergenceFeaturesKHR", "shaderMaximalReconvergence"),
    "SPV_KHR_subgroup_uniform_control_flow": (
        "ShaderSubgroupUniformControlFlowFeaturesKHR",
        "shaderSubgroupUniformControlFlow",
    ),
    "SPV_KHR_float_controls2": ("ShaderFloatControls2Features", "shaderFloatControls2"),
    "SPV_KHR_relaxed_extended_instruction": (
        "ShaderRelaxedExtendedInstructionFeaturesKHR",
        "shaderRelaxedExtendedInstruction",
    ),
    "SPV_KHR_fma": ("ShaderFmaFeaturesKHR", "shaderFmaFloat16", "shaderFmaFloat32", "shaderFmaFloat64"),
}
"""SPIR-V capability or extension → a feature structure's name without VkPhysicalDevice, and the members."""

_EXTENDED_TYPES = ("VkPhysicalDeviceVulkan12Features", "shaderSubgroupExtendedTypes")
_STORES = (
    ("VkPhysicalDeviceFeatures", "vertexPipelineStoresAndAtomics"),
    ("VkPhysicalDeviceFeatures", "fragmentStoresAndAtomics"),
)
_OFTEN_NEEDED = (
    ("VkPhysicalDeviceIndexTypeUint8Features", "indexTypeUint8"),
    ("VkPhysicalDeviceVulkan13Features", "shaderZeroInitializeWorkgroupMemory"),
    ("VkPhysicalDeviceVulkan13Features", "computeFullSubgroups"),
)
_SMALL_AND_LARGE = frozenset({"Int8", "Int16", "Int64", "Float16"})


def _companions(requirements: Requirements) -> list[tuple[str, str]]:
    """List features (structure, member) that belong to the capabilities and extensions of the modules."""
    features: list[tuple[str, str]] = []
    for name in (*requirements.capabilities, *requirements.spirv_extensions):
        if name in _COMPANIONS:
            structure, *members = _COMPANIONS[name]
            features += [(f"VkPhysicalDevice{structure}", member) for member in members]
    is_mixed = not _SMALL_AND_LARGE.isdisjoint(requirements.capabilities)
    if is_mixed and any(name.startswith("GroupNonUniform") for name in requirements.capabilities):
        features.append(_EXTENDED_TYPES)  # no capability tells the widths of subgroup operations apart
    if requirements.graphics is not None:
        features += _STORES  # shaders that only read often do not declare it
    return features


# The shaders of the ML emulation layers need these features.
_NEEDED_BY_LAYERS = (
    (CORE, "shaderInt64"),
    (CORE, "shaderInt16"),
    ("VkPhysicalDeviceVulkan12Features", "shaderInt8"),
    ("VkPhysicalDeviceVulkan12Features", "bufferDeviceAddress"),
    ("VkPhysicalDeviceVulkan13Features", "synchronization2"),
)
# The layers use these features if a device has them: for types of tensors and their memory.
_USED_BY_LAYERS = (
    (CORE, "shaderFloat64"),
    ("VkPhysicalDeviceVulkan11Features", "storageBuffer16BitAccess"),
    ("VkPhysicalDeviceVulkan11Features", "uniformAndStorageBuffer16BitAccess"),
    ("VkPhysicalDeviceVulkan12Features", "shaderFloat16"),
    ("VkPhysicalDeviceVulkan12Features", "storageBuffer8BitAccess"),
    ("VkPhysicalDeviceVulkan12Features", "uniformAndStorageBuffer8BitAccess"),
    ("VkPhysicalDeviceVulkan12Features", "vulkanMemoryModel"),
    ("VkPhysicalDeviceVulkan12Features", "vulkanMemoryModelDeviceScope"),
    ("VkPhysicalDeviceVulkan13Features", "maintenance4"),
)


def emulation_obstacle(physical: PhysicalDevice) -> str | None:
    """Explain why the ML emulation layers cannot run on a device; None if they can. Ask the device without the
    layers."""
    if physical.api_version < API_1_3:
        return f"it supports Vulkan {version_text(physical.api_version, 2)}, but the layers need 1.3"
    lacking = [member for structure, member in _NEEDED_BY_LAYERS if physical.features.find(structure, member) is None]
    return f"it lacks {' and '.join(lacking)}, which the layers need" if lacking else None


_OF_SHADERS = (
    "VkPhysicalDeviceVulkan1",
    "VkPhysicalDeviceShader",
    "VkPhysicalDeviceComputeShader",
    "VkPhysicalDeviceFragmentShader",
    "VkPhysicalDeviceWorkgroupMemory",
    "VkPhysicalDeviceVariablePointers",
    "VkPhysicalDevice16BitStorage",
)
"""How the names of feature structures begin that allow more in shaders. No two of their features exclude each other."""
_COSTLY = frozenset({"robustBufferAccess"})
# Vulkan forbids enabling it beside the successor.
_SUPERSEDED = frozenset({"VkPhysicalDeviceBufferDeviceAddressFeaturesEXT"})
# Old names of capabilities that a newer extension includes.
_RENAMED = {"GroupNonUniformPartitionedNV": "GroupNonUniformPartitionedEXT"}
_LACKING = "SR-FEATURE-001"
_ROBUSTNESS2 = "VkPhysicalDeviceRobustness2FeaturesKHR"
_ROBUSTNESS = (
    (CORE, "robustBufferAccess"),
    (_ROBUSTNESS2, "robustBufferAccess2"),
    (_ROBUSTNESS2, "robustImageAccess2"),
    ("VkPhysicalDeviceImageRobustnessFeatures", "robustImageAccess"),
    ("VkPhysicalDevicePipelineRobustnessFeatures", "pipelineRobustness"),
)
_MATRICES_2 = "VkPhysicalDeviceCooperativeMatrix2FeaturesNV"
_FRAME_BOUNDARY = ("VkPhysicalDeviceFrameBoundaryFeaturesEXT", "frameBoundary")


# Names that change the results of draws which do not ask for them: both decide how depths are clamped.
_ALTERING = frozenset({"VK_EXT_depth_range_unrestricted", "depthClampZeroOne"})


class Enabled(NamedTuple):
    """Features and extensions for opening a device, and whether the queue must support graphics."""

    features: frozenset[Feature] = frozenset()
    extensions: frozenset[str] = frozenset()
    graphics: bool = False

    @classmethod
    def of(cls, features: Iterable[Feature], extensions: Iterable[str] = ()) -> Enabled:
        """Return features with the extensions that bring them, and further extensions."""
        features = frozenset(features)
        brought = {feature.extension for feature in features if feature.extension}
        return cls(features, frozenset(brought | {*extensions}))

    def covers(self, other: Enabled) -> bool:
        """Return whether a device opened with these gives the same results as a device opened with ``other``."""
        enough = other.features <= self.features and other.extensions <= self.extensions
        return enough and (self.graphics or not other.graphics) and self.altering == other.altering

    @property
    def altering(self) -> frozenset[str]:
        """The names that change results of plans which do not ask for them."""
        return _ALTERING & (self.extensions | {feature.member for feature in self.features})

    @property
    def neutral(self) -> Enabled:
        """The features and extensions that change no results of other plans."""
        features = frozenset(feature for feature in self.features if feature.member not in _ALTERING)
        return Enabled(features, self.extensions - _ALTERING, self.graphics)

    def union(self, other: Enabled) -> Enabled:
        graphics = self.graphics or other.graphics
        return Enabled(self.features | other.features, self.extensions | other.extensions, graphics)


def enabled_for(
    physical: PhysicalDevice,
    requirements: Requirements,
    *,
    robustness: bool = False,
    frame_boundaries: bool = False,
    disabled_extensions: Collection[str] = (),
    emulated: bool = False,
    graphics: bool = False,
    also: Collection[str] = (),
) -> Enabled:
    """Find the features and extensions that ``physical`` must be opened with.

    ``emulated`` means that the ML emulation layers show the device, ``graphics`` that captures need a graphics queue.
    ``also`` names features and extensions to enable if the device has them.

    Raises UnsupportedError with a sentence for each missing capability: the shader, the capability, and the feature,
    extension or property that would bring it.
    """
    disabled = disabled_extensions
    needs = _Needs(physical, requirements, disabled)
    for name, shader in requirements.capabilities.items():
        needs.add_spirv("capability", name, shader)
    for name, shader in requirements.spirv_extensions.items():
        needs.add_spirv("extension", name, shader)
    for name, shader in requirements.graph_capabilities.items():
        # the emulation layers process graphs themselves, whatever the device lacks
        needs.add_spirv("capability", name, shader, required=not emulated)
    for needed in requirements.features:
        needs.add_feature(needed)
    if requirements.matrices:
        needs.add_matrices()
    # Vulkan specification, appendix "Vulkan Environment for SPIR-V"
    newest = (1, 6) if physical.api_version >= API_1_3 else (1, 5) if physical.api_version >= API_1_2 else (1, 3)
    if requirements.spirv_version > newest:
        major, minor = requirements.spirv_version
        message = f"a shader is SPIR-V {major}.{minor}; {physical.name!r} takes SPIR-V {newest[0]}.{newest[1]} at most"
        help = "compile it for an older target (for GLSL files the runner does that itself)"
        needs.lack(_LACKING, requirements.places.get(requirements.newest_shader), message, help)
    draws = requirements.graphics is not None
    if (draws or graphics) and physical.queue_family(graphics=True) is None:
        what = "a drawing needs" if draws else "captures need"
        message = f"{what} a queue family with graphics and compute, which {physical.name!r} lacks"
        help = "--list-devices lists the devices, --device selects one"
        needs.lack("SR-FEATURE-004", requirements.graphics, message, help)
    if needs.problems:
        raise errors.error_of(needs.problems)
    if emulated:
        needs.add_available((*_NEEDED_BY_LAYERS, *_USED_BY_LAYERS))
    needs.add_available(_companions(requirements))
    if robustness:
        needs.add_available(_ROBUSTNESS)
    needs.features.update(feature for name in also if (feature := _find_feature(physical, name, disabled)))
    needs.extensions |= physical.extensions.keys() & {*also} - {*disabled}
    if frame_boundaries and FRAME_BOUNDARY not in disabled and not needs.add_available([_FRAME_BOUNDARY]):
        needs.extensions.add(FRAME_BOUNDARY)  # a layer brings it, and layers need not report features
    extensions, problems = needs.complete()
    if problems:
        raise errors.error_of(problems)
    if "VK_KHR_portability_subset" in physical.extensions:
        extensions.add("VK_KHR_portability_subset")  # every device that has it must be opened with it
    return Enabled(frozenset(needs.features), frozenset(extensions), draws or graphics)


def likely_features(physical: PhysicalDevice, disabled: Collection[str]) -> Enabled:
    """Find all features that a scenario's shaders and draws can ask for, as far as the device has them.

    A device that is opened again gets them, since opening takes long and other kinds of scenarios may follow. Features
    that cost speed, change other results or exclude each other are left out.
    """
    asked = [(CORE, member) for member in physical.features.supported(CORE) - _COSTLY]
    for alternatives in CAPABILITIES.values():
        asked += [
            (str(name), str(rest[0]))
            for kind, name, *rest in alternatives
            if kind == "feature" and str(name).startswith(_OF_SHADERS)
        ]
    for structure, *members in _COMPANIONS.values():
        asked += [(f"VkPhysicalDevice{structure}", member) for member in members]
    asked += [_EXTENDED_TYPES, *_STORES, *_OFTEN_NEEDED]
    needs = _Needs(physical, Requirements({}, {}), disabled)
    needs.add_available(asked)
    extensions, problems = needs.complete()
    if problems:  # the user disabled an extension that others depend on
        return Enabled.of(feature for feature in needs.features if feature.extension is None)
    return Enabled(frozenset(needs.features), frozenset(extensions), physical.queue_family(graphics=True) is not None)


class _Needs:
    """Features and extensions found so far for a scenario, and ``problems`` about missing ones."""

    def __init__(self, physical: PhysicalDevice, requirements: Requirements, disabled: Collection[str]) -> None:
        self._physical = physical
        self._requirements = requirements
        self._disabled = disabled
        self.features: set[Feature] = set()
        self.extensions: set[str] = set()
        self.problems: list[Diagnostic] = []

    def add_available(self, features: Iterable[tuple[str, str]]) -> bool:
        """Add those features (structure, member) that the device has. Return whether it has any."""
        available = set(self._physical.features.available(features, self._disabled))
        self.features |= available
        return bool(available)

    def complete(self) -> tuple[set[str], list[Diagnostic]]:
        """Add the features that others imply. Return all extensions, and problems about disabled ones.

        A device supports all features that another feature implies. If the driver does not report them, nothing is
        added.
        """
        self.add_available([IMPLIED[feature.member] for feature in self.features if feature.member in IMPLIED])
        extensions = self.extensions | {feature.extension for feature in self.features if feature.extension}
        return dependent_extensions(self._physical, extensions, self._disabled)

    def add_spirv(self, what: str, name: str, shader: str, *, required: bool = True) -> None:
        """Add the requirements of a SPIR-V "capability" or "extension" that a shader declares."""
        table: Mapping[str, Any] = CAPABILITIES if what == "capability" else EXTENSIONS
        alternatives = table.get(_RENAMED.get(name, name))
        if alternatives is None:
            if what == "capability" and required:
                message = f"shader {shader!r} needs the capability {name}, which no Vulkan version knows"
                self.lack(_LACKING, self._requirements.places.get(shader), message)
            return
        is_met = False
        lacking = []
        for alternative in alternatives:
            if is_met and (alternative[0] != "feature" or alternative[1] in _SUPERSEDED):
                continue  # of several features (atomics on buffers, on shared memory, …) all available ones are enabled
            satisfied = _satisfy(self._physical, alternative, self._disabled)
            if isinstance(satisfied, str):
                lacking.append(satisfied)
                continue
            is_met = True
            self.features |= satisfied.features
            self.extensions |= satisfied.extensions
        if not is_met and required:
            message = f"shader {shader!r} needs the {what} {name}; {self._physical.name!r} lacks"
            is_idle = "partitioned" in name.lower() and shader in self._requirements.idle_partitions
            help = "no instruction uses it; spirv-opt --trim-capabilities removes it" if is_idle else None
            self.lack(_LACKING, self._requirements.places.get(shader), f"{message} {' and '.join(lacking)}", help)

    def add_feature(self, needed: NeededFeature) -> None:
        """Add a feature that no SPIR-V declaration asks for, or check a property."""
        if needed.bits and self._physical.has_property(needed.structure, needed.member, needed.bits):
            return
        find = self._physical.features.find
        feature = None if needed.bits else find(needed.structure, needed.member, self._disabled)
        if feature is not None:
            self.features.add(feature)
            return
        help = None
        if needed.structure in ML_STRUCTURES:
            help = "the ML emulation layers bring it to devices with compute shaders: --ml-emulation auto"
            if ML_STRUCTURES[needed.structure] in self._disabled:
                help = f"run without --disable-extension {ML_STRUCTURES[needed.structure]}"
        message = f"{needed.what} needs {needed.member} ({needed.structure}), which {self._physical.name!r} lacks"
        self.lack("SR-FEATURE-002", needed.pointer, message, help)

    def add_matrices(self) -> None:
        """Compare all shaders' cooperative matrices with the device's combinations."""
        combinations, supported = self._physical.matrices, []
        if combinations is None:
            return
        for combination in combinations:
            needed = [(_MATRICES_2, member) for member in combination.features]
            features = [*self._physical.features.available(needed, self._disabled)]
            if len(features) == len(needed):
                supported.append(combination)
                self.features.update(features)
        for shader, uses in self._requirements.matrices.items():
            missing = missing_matrices(uses, supported)
            if missing:
                message = f"shader {shader!r} needs cooperative matrices that {self._physical.name!r} lacks: {missing}"
                self.lack(_LACKING, self._requirements.places.get(shader), message)

    def lack(self, code: str, pointer: str | None, message: str, help: str | None = None) -> None:
        self.problems.append(Diagnostic(code, "error", pointer, message, help))


def _satisfy(physical: PhysicalDevice, alternative: tuple[Any, ...], disabled: Collection[str]) -> Enabled | str:
    """Find the feature or extension for an alternative of the registry; name it if the device lacks it."""
    kind, name, *rest = alternative
    if kind == "version":
        return Enabled() if physical.api_version >= name else f"Vulkan {version_text(name, 2)}"
    if kind == "extension":
        usable = name in physical.extensions and name not in disabled
        return Enabled(extensions=frozenset({name})) if usable else f"the extension {name}"
    if kind == "feature":
        feature = physical.features.find(name, rest[0], disabled)
        if feature is not None:
            return Enabled(frozenset({feature}))
    elif physical.has_property(name, *rest[:2]):
        return Enabled()
    return f"{rest[0]} ({name})"


def lacks_capability(physical: PhysicalDevice, name: str) -> str:
    """Describe the parts that a device lacks for a SPIR-V capability; empty if it has the capability."""
    alternatives = CAPABILITIES.get(_RENAMED.get(name, name))
    if alternatives is None:
        return "no Vulkan version knows it"
    lacking = [_satisfy(physical, alternative, ()) for alternative in alternatives]
    return " and ".join(map(str, lacking)) if all(isinstance(reason, str) for reason in lacking) else ""


def known_features() -> frozenset[str]:
    """Return the names of all Vulkan features, in all structures."""
    return frozenset(CORE_FEATURES).union(*(members for _, _, _, members in FEATURES.values()))


def lacks_feature(physical: PhysicalDevice, member: str) -> bool:
    """Return whether no device structure has a feature with this name."""
    return _find_feature(physical, member, ()) is None


def _find_feature(physical: PhysicalDevice, member: str, disabled: Collection[str]) -> Feature | None:
    """Return a device's feature by its name. A structure of a Vulkan version comes before an extension's."""
    structures = [CORE] if member in CORE_FEATURES else []
    structures += [name for name, (_, _, _, members) in FEATURES.items() if member in members]
    structures.sort(key=lambda name: not name.startswith("VkPhysicalDeviceVulkan"))
    found = (physical.features.find(structure, member, disabled) for structure in structures)
    return next(filter(None, found), None)
