"""The Khronos validation layer: what it is asked for, and which of its messages are about the ML emulation layers."""

from __future__ import annotations

import re
from typing import Any

from scenario_runner.vulkan.api._generated import constants as vk
from scenario_runner.vulkan.api.structs import new
from scenario_runner.vulkan.devices.layers import has_instance_extension

VALIDATION_LAYER = "VK_LAYER_KHRONOS_validation"

# What the ML emulation layers do to a validation layer below them. What tensors a format can have is asked through all
# layers; the structure and the formats are VK_ARM_tensors' own. A tensor that shares the memory of an OPTIMAL image
# is a buffer of size 0 to them, which they read and write by its address.
_OF_THE_LAYERS = re.compile(
    r"vkGetPhysicalDeviceFormatProperties2?\b.*(\(100046000\d\)|requires the extensions VK_ARM_tensors)"
    r"|VUID-VkBufferCreateInfo-size-00912\b|VUID-VkBufferMemoryBarrier2-offset-01187\b",
    re.DOTALL,
)
# Since 1.4.304 synchronization validation ignores what shaders access, unless the second one is set.
_FOR_HAZARDS = ("validate_sync", "syncval_shader_accesses_heuristic")
_LAYER_SETTINGS = "VK_EXT_layer_settings"


def is_of_ml_layers(message: str) -> bool:
    """Whether a message of the layer is about what the ML emulation layers above it do, not about this program."""
    return _OF_THE_LAYERS.search(message) is not None


def hazard_settings() -> list[Any]:
    """Structures for VkInstanceCreateInfo that let the layer look for hazards; older versions know only the first."""
    wanted = [vk.VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT]
    structs = [new("VkValidationFeaturesEXT", pEnabledValidationFeatures=wanted)]
    if has_instance_extension(_LAYER_SETTINGS, VALIDATION_LAYER):
        settings = [
            {
                "pLayerName": VALIDATION_LAYER,
                "pSettingName": name,
                "type": vk.LAYER_SETTING_TYPE_BOOL32_EXT,
                "valueCount": 1,
                "pValues": (1).to_bytes(4, "little"),
            }
            for name in _FOR_HAZARDS
        ]
        structs.append(new("VkLayerSettingsCreateInfoEXT", pSettings=settings))
    return structs
