"""Features that a SPIR-V capability or extension uses without the registry saying so.

The registry's tables name for some capabilities and extensions only the device extension that brings them, while the
Vulkan specification makes their use depend on a feature of it as well. What is named here is enabled where the device
has it; whether the capability can be used at all is decided by the tables.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scenario_runner.plan.model.records import Requirements
    from scenario_runner.vulkan.devices.features import Feature
    from scenario_runner.vulkan.devices.physical_device import PhysicalDevice

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
