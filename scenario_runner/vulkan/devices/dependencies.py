"""What features and extensions of a device must be enabled together, beyond what a scenario asks for.

Sources: Vulkan specification, "Features" (the VUIDs named below) and VUID-vkCreateDevice-ppEnabledExtensionNames-01387,
whose table of extensions is the registry's.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Final

from scenario_runner.diagnostics import Diagnostic
from scenario_runner.vulkan.devices.features import CORE, Feature

if TYPE_CHECKING:
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
