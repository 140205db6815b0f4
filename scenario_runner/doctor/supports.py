"""What scenarios' shaders use, in groups for people: each entry is one feature of Vulkan, true or false."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_CORE = "VkPhysicalDeviceFeatures"
_11 = "VkPhysicalDeviceVulkan11Features"
_12 = "VkPhysicalDeviceVulkan12Features"
_13 = "VkPhysicalDeviceVulkan13Features"
_FLOAT = "VkPhysicalDeviceShaderAtomicFloatFeaturesEXT"
_FLOAT2 = "VkPhysicalDeviceShaderAtomicFloat2FeaturesEXT"
_ROBUSTNESS2 = "VkPhysicalDeviceRobustness2FeaturesKHR"
_CLOCK = "VkPhysicalDeviceShaderClockFeaturesKHR"

# group: (name, structures of which any may hold the member, member)
GROUPS: dict[str, tuple[tuple[str, tuple[str, ...], str], ...]] = {
    "types": (
        ("int8", (_12,), "shaderInt8"),
        ("int16", (_CORE,), "shaderInt16"),
        ("int64", (_CORE,), "shaderInt64"),
        ("float16", (_12,), "shaderFloat16"),
        ("float64", (_CORE,), "shaderFloat64"),
        ("bfloat16", ("VkPhysicalDeviceShaderBfloat16FeaturesKHR",), "shaderBFloat16Type"),
        ("float8", ("VkPhysicalDeviceShaderFloat8FeaturesEXT",), "shaderFloat8"),
    ),
    "storage": (
        ("8_bit_in_storage_buffers", (_12,), "storageBuffer8BitAccess"),
        ("16_bit_in_storage_buffers", (_11,), "storageBuffer16BitAccess"),
        ("8_bit_in_push_constants", (_12,), "storagePushConstant8"),
        ("16_bit_in_push_constants", (_11,), "storagePushConstant16"),
        ("scalar_block_layout", (_12,), "scalarBlockLayout"),
    ),
    "atomics": (
        ("int64_buffers", (_12,), "shaderBufferInt64Atomics"),
        ("int64_shared", (_12,), "shaderSharedInt64Atomics"),
        ("float32_add_buffers", (_FLOAT,), "shaderBufferFloat32AtomicAdd"),
        ("float32_add_shared", (_FLOAT,), "shaderSharedFloat32AtomicAdd"),
        ("float64_add_buffers", (_FLOAT,), "shaderBufferFloat64AtomicAdd"),
        ("float16_add_buffers", (_FLOAT2,), "shaderBufferFloat16AtomicAdd"),
        ("float32_min_max_buffers", (_FLOAT2,), "shaderBufferFloat32AtomicMinMax"),
    ),
    "addressing": (
        ("buffer_device_address", (_12,), "bufferDeviceAddress"),
        ("variable_pointers", (_11,), "variablePointers"),
        ("vulkan_memory_model", (_12,), "vulkanMemoryModel"),
        ("runtime_descriptor_array", (_12,), "runtimeDescriptorArray"),
    ),
    "arithmetic": (
        (
            "integer_dot_product",
            (_13, "VkPhysicalDeviceShaderIntegerDotProductFeatures"),
            "shaderIntegerDotProduct",
        ),
        ("cooperative_matrix", ("VkPhysicalDeviceCooperativeMatrixFeaturesKHR",), "cooperativeMatrix"),
        ("subgroup_size_control", (_13, "VkPhysicalDeviceSubgroupSizeControlFeatures"), "subgroupSizeControl"),
    ),
    "robustness": (
        ("robust_buffer_access", (_CORE,), "robustBufferAccess"),
        ("robust_buffer_access_2", (_ROBUSTNESS2,), "robustBufferAccess2"),
        ("robust_image_access", (_13, "VkPhysicalDeviceImageRobustnessFeatures"), "robustImageAccess"),
        ("robust_image_access_2", (_ROBUSTNESS2,), "robustImageAccess2"),
        (
            "pipeline_robustness",
            ("VkPhysicalDeviceVulkan14Features", "VkPhysicalDevicePipelineRobustnessFeatures"),
            "pipelineRobustness",
        ),
    ),
    "images": (
        ("write_without_format", (_CORE,), "shaderStorageImageWriteWithoutFormat"),
        ("read_without_format", (_CORE,), "shaderStorageImageReadWithoutFormat"),
        ("sampler_anisotropy", (_CORE,), "samplerAnisotropy"),
        ("block_compression_bc", (_CORE,), "textureCompressionBC"),
        ("custom_border_color", ("VkPhysicalDeviceCustomBorderColorFeaturesEXT",), "customBorderColors"),
    ),
    "measuring": (
        ("subgroup_clock", (_CLOCK,), "shaderSubgroupClock"),
        ("device_clock", (_CLOCK,), "shaderDeviceClock"),
        ("pipeline_statistics", (_CORE,), "pipelineStatisticsQuery"),
    ),
    "machine_learning": (
        ("tensors", ("VkPhysicalDeviceTensorFeaturesARM",), "tensors"),
        ("tensors_in_shaders", ("VkPhysicalDeviceTensorFeaturesARM",), "shaderTensorAccess"),
        ("data_graph", ("VkPhysicalDeviceDataGraphFeaturesARM",), "dataGraph"),
        ("optical_flow", ("VkPhysicalDeviceDataGraphOpticalFlowFeaturesARM",), "dataGraphOpticalFlow"),
        ("shader_instrumentation", ("VkPhysicalDeviceShaderInstrumentationFeaturesARM",), "shaderInstrumentation"),
    ),
}


def supports(device: Mapping[str, Any], ml: Mapping[str, Any]) -> dict[str, dict[str, bool]]:
    """Groups of yes and no, from the ``features``, ``subgroup_operations`` and ``queue_families`` of a device; tensors
    and graphs as its ML path ``ml`` has them, which may be through the emulation layers."""
    features = {**device["features"], **ml["features"]}
    found = {
        group: {
            name: any(bool(features.get(structure, {}).get(member)) for structure in structures)
            for name, structures, member in entries
        }
        for group, entries in GROUPS.items()
    }
    operations = device["subgroup_operations"]
    names = ("basic", "vote", "arithmetic", "ballot", "shuffle", "shuffle_relative", "clustered", "quad")
    found["subgroups"] = {name: name in operations for name in names}
    computing = [family for family in device["queue_families"] if "compute" in family["flags"]]
    found["measuring"]["timestamps"] = any(family["timestamp_valid_bits"] for family in computing)
    return found
