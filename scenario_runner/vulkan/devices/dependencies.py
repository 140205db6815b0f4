"""Features and extensions that must be enabled together with those that a scenario asks for.

The registry names for some SPIR-V capabilities and extensions only a device extension, while the specification makes
their use depend on a feature as well. Such features are enabled where the device has them.

Sources: Vulkan specification, "Features" (the VUIDs named below) and VUID-vkCreateDevice-ppEnabledExtensionNames-01387.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Final

from scenario_runner.diagnostics import Diagnostic
from scenario_runner.vulkan.devices.features import CORE, Feature

if TYPE_CHECKING:
    from scenario_runner.plan.model.records import Requirements
    from scenario_runner.vulkan.devices.physical_device import PhysicalDevice

_MULTIVIEW: Final = ("VkPhysicalDeviceVulkan11Features", "multiview")
_SHADING_RATE: Final = ("VkPhysicalDeviceFragmentShadingRateFeaturesKHR", "primitiveFragmentShadingRate")
_ATOMIC_INT64: Final = ("VkPhysicalDeviceShaderImageAtomicInt64FeaturesEXT", "shaderImageInt64Atomics")
_ATOMIC_FLOAT: Final = "VkPhysicalDeviceShaderAtomicFloatFeaturesEXT"
_ATOMIC_FLOAT2: Final = "VkPhysicalDeviceShaderAtomicFloat2FeaturesEXT"
# A member has one meaning in whichever structure it is enabled, so it stands for the feature here.
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
"""The member of a feature → (structure, member) of the feature that must be enabled with it."""


def implied_features(physical: PhysicalDevice, features: Iterable[Feature]) -> set[Feature]:
    """``features`` and those that must be enabled with them.

    A device that supports a feature supports what it implies; where a driver does not, nothing is added.
    """
    found = set(features)
    for feature in features:
        implied = IMPLIED.get(feature.member)
        other = None if implied is None else physical.features.find(*implied)
        if other is not None:
            found.add(other)
    return found


def dependent_extensions(
    physical: PhysicalDevice, extensions: Iterable[str], disabled: Collection[str]
) -> tuple[set[str], list[Diagnostic]]:
    """``extensions`` and those that must be enabled with them, and what makes that impossible.

    Of alternatives the first one that the device has is taken, in the registry's order. A driver that has an extension
    without what it depends on is taken at its word; an extension that the user disabled is a problem.
    """
    from scenario_runner.vulkan.api._generated.extensions import DEPENDENCIES

    found = set(extensions)
    problems: list[Diagnostic] = []
    pending = sorted(found)
    while pending:
        extension = pending.pop()
        for alternatives in DEPENDENCIES.get(extension, ()):
            if any(each in found if isinstance(each, str) else physical.api_version >= each for each in alternatives):
                continue
            there = [each for each in alternatives if each in physical.extensions]
            usable = [each for each in there if each not in disabled]
            if usable:
                found.add(usable[0])
                pending.append(usable[0])
            elif there:
                message = f"the extension {extension} depends on {' or '.join(there)}, which is disabled"
                problems.append(
                    Diagnostic("SR-FEATURE-002", "error", None, message, "do not disable it, or disable both")
                )
    return found, problems


_CLOCK = "VkPhysicalDeviceShaderClockFeaturesKHR"
COMPANIONS: dict[str, tuple[tuple[str, str], ...]] = {
    "ShaderClockKHR": ((_CLOCK, "shaderSubgroupClock"), (_CLOCK, "shaderDeviceClock")),
    "VulkanMemoryModel": (("VkPhysicalDeviceVulkan12Features", "vulkanMemoryModelAvailabilityVisibilityChains"),),
    "SPV_KHR_maximal_reconvergence": (
        ("VkPhysicalDeviceShaderMaximalReconvergenceFeaturesKHR", "shaderMaximalReconvergence"),
    ),
    "SPV_KHR_subgroup_uniform_control_flow": (
        ("VkPhysicalDeviceShaderSubgroupUniformControlFlowFeaturesKHR", "shaderSubgroupUniformControlFlow"),
    ),
    "SPV_KHR_float_controls2": (("VkPhysicalDeviceShaderFloatControls2Features", "shaderFloatControls2"),),
    "SPV_KHR_relaxed_extended_instruction": (
        ("VkPhysicalDeviceShaderRelaxedExtendedInstructionFeaturesKHR", "shaderRelaxedExtendedInstruction"),
    ),
    "SPV_KHR_fma": (
        ("VkPhysicalDeviceShaderFmaFeaturesKHR", "shaderFmaFloat16"),
        ("VkPhysicalDeviceShaderFmaFeaturesKHR", "shaderFmaFloat32"),
        ("VkPhysicalDeviceShaderFmaFeaturesKHR", "shaderFmaFloat64"),
    ),
}
"""A capability or extension of SPIR-V → (structure, member) of features."""

_EXTENDED_TYPES = ("VkPhysicalDeviceVulkan12Features", "shaderSubgroupExtendedTypes")
_STORES = (
    ("VkPhysicalDeviceFeatures", "vertexPipelineStoresAndAtomics"),
    ("VkPhysicalDeviceFeatures", "fragmentStoresAndAtomics"),
)
_SMALL_AND_LARGE = frozenset({"Int8", "Int16", "Int64", "Float16"})


def companions(physical: PhysicalDevice, requirements: Requirements, disabled: Collection[str]) -> Iterator[Feature]:
    """The features that go with what the modules declare, as far as the device has them."""
    wanted: list[tuple[str, str]] = []
    for name in (*requirements.capabilities, *requirements.spirv_extensions):
        wanted += COMPANIONS.get(name, ())
    subgroups = any(name.startswith("GroupNonUniform") for name in requirements.capabilities)
    if subgroups and not _SMALL_AND_LARGE.isdisjoint(requirements.capabilities):
        wanted.append(_EXTENDED_TYPES)  # subgroup operations on other than 32 bits have no capability of their own
    if requirements.graphics is not None:
        wanted += _STORES  # shaders that only read often do not say so
    for structure, member in wanted:
        feature = physical.features.find(structure, member)
        if feature is not None and (feature.extension is None or feature.extension not in disabled):
            yield feature
