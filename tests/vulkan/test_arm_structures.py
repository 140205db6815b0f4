"""The structures of the Arm extensions are laid out and named as their documents say."""

from __future__ import annotations

import ctypes

import pytest

from scenario_runner.vulkan._generated import arm, structures

# The structures of the Arm extensions as their documents list them, in ctypes' letters: i, I for 32 bits signed and
# unsigned, q, Q for 64, P for pointers, handles and size_t, or another structure. "+" stands for sType and pNext.
STRUCTURES = {
    "VkTensorDescriptionARM": "+iiIPPQ",
    "VkTensorCreateInfoARM": "+QPiIP",
    "VkTensorViewCreateInfoARM": "+QPi",
    "VkTensorMemoryRequirementsInfoARM": "+P",
    "VkDeviceTensorMemoryRequirementsARM": "+P",
    "VkBindTensorMemoryInfoARM": "+PPQ",
    "VkWriteDescriptorSetTensorARM": "+IP",
    "VkTensorFormatPropertiesARM": "+QQ",
    "VkPhysicalDeviceTensorPropertiesARM": "+IQQqQIIIIIIII",
    "VkPhysicalDeviceTensorFeaturesARM": "+IIIIII",
    "VkTensorMemoryBarrierARM": "+QQQQIIP",
    "VkTensorDependencyInfoARM": "+IP",
    "VkCopyTensorInfoARM": "+PPIP",
    "VkTensorCopyARM": "+IPPP",
    "VkMemoryDedicatedAllocateInfoTensorARM": "+P",
    "VkPhysicalDeviceExternalTensorInfoARM": "+QPI",
    "VkExternalMemoryTensorCreateInfoARM": "+I",
    "VkFrameBoundaryTensorsARM": "+IP",
    "VkPhysicalDeviceDataGraphFeaturesARM": "+IIIII",
    "VkDataGraphPipelineResourceInfoARM": "+III",
    "VkDataGraphPipelineConstantARM": "+IP",
    "VkDataGraphPipelineConstantTensorSemiStructuredSparsityInfoARM": "+III",
    "VkDataGraphPipelineShaderModuleCreateInfoARM": "+PPPIP",
    "VkDataGraphPipelineCreateInfoARM": "+QPIP",
    "VkDataGraphPipelineIdentifierCreateInfoARM": "+IP",
    "VkDataGraphPipelineCompilerControlCreateInfoARM": "+P",
    "VkDataGraphPipelineSessionCreateInfoARM": "+QP",
    "VkDataGraphPipelineSessionBindPointRequirementsInfoARM": "+P",
    "VkDataGraphPipelineSessionBindPointRequirementARM": "+iiI",
    "VkDataGraphPipelineSessionMemoryRequirementsInfoARM": "+PiI",
    "VkBindDataGraphPipelineSessionMemoryInfoARM": "+PiIPQ",
    "VkDataGraphPipelineInfoARM": "+P",
    "VkDataGraphPipelinePropertyQueryResultARM": "+iIPP",
    "VkDataGraphPipelineDispatchInfoARM": "+Q",
    "VkPhysicalDeviceDataGraphProcessingEngineARM": "iI",
    "VkDataGraphProcessingEngineCreateInfoARM": "+IP",
    "VkPhysicalDeviceQueueFamilyDataGraphProcessingEngineInfoARM": "+Ii",
    "VkQueueFamilyDataGraphProcessingEnginePropertiesARM": "+II",
    "VkQueueFamilyDataGraphTOSAPropertiesARM": "+IPIPi",
    "VkPhysicalDeviceDataGraphOpticalFlowFeaturesARM": "+I",
    "VkQueueFamilyDataGraphOpticalFlowPropertiesARM": "+IIIIIIII",
    "VkDataGraphPipelineOpticalFlowCreateInfoARM": "+IIiiiIIiI",
    "VkDataGraphOpticalFlowImageFormatInfoARM": "+I",
    "VkDataGraphOpticalFlowImageFormatPropertiesARM": "+i",
    "VkDataGraphPipelineOpticalFlowDispatchInfoARM": "+II",
    "VkDataGraphPipelineResourceInfoImageLayoutARM": "+i",
    "VkDataGraphPipelineSingleNodeCreateInfoARM": "+iIP",
    "VkDataGraphPipelineSingleNodeConnectionARM": "+IIi",
    "VkDataGraphPipelineNeuralStatisticsCreateInfoARM": "+I",
    "VkDataGraphPipelineSessionNeuralStatisticsCreateInfoARM": "+i",
    "VkPhysicalDeviceDataGraphNeuralAcceleratorStatisticsFeaturesARM": "+I",
}
C_TYPES = {"i": ctypes.c_int32, "I": ctypes.c_uint32, "q": ctypes.c_int64, "Q": ctypes.c_uint64, "P": ctypes.c_void_p}

# sType values count up from a base per extension, in this order.
STRUCTURE_TYPES = {
    1000460000: """
        VkTensorCreateInfoARM VkTensorViewCreateInfoARM VkBindTensorMemoryInfoARM VkWriteDescriptorSetTensorARM
        VkPhysicalDeviceTensorPropertiesARM VkTensorFormatPropertiesARM VkTensorDescriptionARM
        VkTensorMemoryRequirementsInfoARM VkTensorMemoryBarrierARM VkPhysicalDeviceTensorFeaturesARM
        VkDeviceTensorMemoryRequirementsARM VkCopyTensorInfoARM VkTensorCopyARM VkTensorDependencyInfoARM
        VkMemoryDedicatedAllocateInfoTensorARM VkPhysicalDeviceExternalTensorInfoARM VkExternalTensorPropertiesARM
        VkExternalMemoryTensorCreateInfoARM VkPhysicalDeviceDescriptorBufferTensorFeaturesARM
        VkPhysicalDeviceDescriptorBufferTensorPropertiesARM VkDescriptorGetTensorInfoARM
        VkTensorCaptureDescriptorDataInfoARM VkTensorViewCaptureDescriptorDataInfoARM VkFrameBoundaryTensorsARM""",
    1000507000: """
        VkDataGraphPipelineCreateInfoARM VkDataGraphPipelineSessionCreateInfoARM
        VkDataGraphPipelineResourceInfoARM VkDataGraphPipelineConstantARM
        VkDataGraphPipelineSessionMemoryRequirementsInfoARM VkBindDataGraphPipelineSessionMemoryInfoARM
        VkPhysicalDeviceDataGraphFeaturesARM VkDataGraphPipelineShaderModuleCreateInfoARM
        VkDataGraphPipelinePropertyQueryResultARM VkDataGraphPipelineInfoARM
        VkDataGraphPipelineCompilerControlCreateInfoARM VkDataGraphPipelineSessionBindPointRequirementsInfoARM
        VkDataGraphPipelineSessionBindPointRequirementARM VkDataGraphPipelineIdentifierCreateInfoARM
        VkDataGraphPipelineDispatchInfoARM VkDataGraphPipelineConstantTensorSemiStructuredSparsityInfoARM
        VkDataGraphProcessingEngineCreateInfoARM VkQueueFamilyDataGraphProcessingEnginePropertiesARM
        VkQueueFamilyDataGraphPropertiesARM VkPhysicalDeviceQueueFamilyDataGraphProcessingEngineInfoARM""",
    1000508000: "VkQueueFamilyDataGraphTOSAPropertiesARM",
    1000631000: """
        VkPhysicalDeviceDataGraphOpticalFlowFeaturesARM VkQueueFamilyDataGraphOpticalFlowPropertiesARM
        VkDataGraphPipelineOpticalFlowCreateInfoARM VkDataGraphOpticalFlowImageFormatInfoARM
        VkDataGraphOpticalFlowImageFormatPropertiesARM VkDataGraphPipelineOpticalFlowDispatchInfoARM
        VkDataGraphPipelineResourceInfoImageLayoutARM VkDataGraphPipelineSingleNodeCreateInfoARM
        VkDataGraphPipelineSingleNodeConnectionARM""",
    1000676000: """
        VkDataGraphPipelineNeuralStatisticsCreateInfoARM VkDataGraphPipelineSessionNeuralStatisticsCreateInfoARM
        VkPhysicalDeviceDataGraphNeuralAcceleratorStatisticsFeaturesARM""",
}


@pytest.mark.parametrize("name", STRUCTURES)
def test_arm_structure_is_laid_out_as_documented(name: str) -> None:
    """Sizes and offsets are those of the documented members under C's natural alignment."""
    letters = STRUCTURES[name].replace("+", "iP")
    members = [(f"m{index}", C_TYPES[letter]) for index, letter in enumerate(letters)]
    expected = type("Expected", (ctypes.Structure,), {"_fields_": members})
    offsets = [getattr(expected, member).offset for member, _ in members]
    generated = arm.ffi.typeof(name)
    assert arm.ffi.sizeof(generated) == ctypes.sizeof(expected)
    assert [field.offset for _, field in generated.fields] == offsets


def test_structures_with_names_and_nested_ones_have_the_measured_sizes() -> None:
    """Inner arrays and structures of the `vulkan` package count with their full size."""
    assert arm.ffi.sizeof("VkPhysicalDeviceDataGraphOperationSupportARM") == 4 + 128 + 4
    assert arm.ffi.sizeof("VkQueueFamilyDataGraphPropertiesARM") == 160
    assert arm.ffi.sizeof("VkDataGraphTOSANameQualityARM") == 132
    assert arm.ffi.sizeof("VkExternalTensorPropertiesARM") == 16 + 12 + 4
    assert arm.ffi.offsetof("VkExternalTensorPropertiesARM", "externalMemoryProperties") == 16


@pytest.mark.parametrize("base", STRUCTURE_TYPES)
def test_structure_types_count_up_from_the_base_of_their_extension(base: int) -> None:
    """sType values are the documented ones."""
    names = STRUCTURE_TYPES[base].split()
    assert [structures.STRUCTURES[name][0] for name in names] == list(range(base, base + len(names)))
