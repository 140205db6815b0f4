"""Robust access asked for pipeline by pipeline (VK_EXT_pipeline_robustness, Vulkan 1.4).

A device that was opened with the feature gives every pipeline the strictest behaviour that it was opened with.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from scenario_runner.vulkan.api._generated import constants as vk
from scenario_runner.vulkan.api.structs import chain, new
from scenario_runner.vulkan.devices.features import Feature


def behaviours(features: Collection[Feature]) -> tuple[int, int] | None:
    """Behaviour of buffers and of images under the enabled ``features``; None without pipeline robustness."""
    members = {feature.member for feature in features}
    if "pipelineRobustness" not in members:
        return None
    buffers = vk.PIPELINE_ROBUSTNESS_BUFFER_BEHAVIOR_ROBUST_BUFFER_ACCESS
    if "robustBufferAccess2" in members:
        buffers = vk.PIPELINE_ROBUSTNESS_BUFFER_BEHAVIOR_ROBUST_BUFFER_ACCESS_2
    images = vk.PIPELINE_ROBUSTNESS_IMAGE_BEHAVIOR_DEVICE_DEFAULT
    if "robustImageAccess2" in members:
        images = vk.PIPELINE_ROBUSTNESS_IMAGE_BEHAVIOR_ROBUST_IMAGE_ACCESS_2
    elif "robustImageAccess" in members:
        images = vk.PIPELINE_ROBUSTNESS_IMAGE_BEHAVIOR_ROBUST_IMAGE_ACCESS
    return buffers, images


def with_robustness(info: Any, features: Collection[Feature]) -> Any:
    """A Vk…PipelineCreateInfo, with a VkPipelineRobustnessCreateInfo behind it where that is enabled."""
    found = behaviours(features)
    if found is None:
        return info
    buffers, images = found
    robustness = new(
        "VkPipelineRobustnessCreateInfo",
        storageBuffers=buffers,
        uniformBuffers=buffers,
        vertexInputs=vk.PIPELINE_ROBUSTNESS_BUFFER_BEHAVIOR_DEVICE_DEFAULT,
        images=images,
    )
    return chain(info, robustness)
