"""Robust access asked for pipeline by pipeline (VK_EXT_pipeline_robustness, Vulkan 1.4).

A device that was opened with the feature gives every pipeline the strictest behaviour that it was opened with.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from scenario_runner.vulkan.features import Feature
from scenario_runner.vulkan.structs import chain, new

# VkPipelineRobustnessBufferBehavior and VkPipelineRobustnessImageBehavior
_DEVICE_DEFAULT = 0
_ROBUST = 2
_ROBUST_2 = 3


def behaviours(features: Collection[Feature]) -> tuple[int, int] | None:
    """Behaviour of buffers and of images under the enabled ``features``; None without pipeline robustness."""
    members = {feature.member for feature in features}
    if "pipelineRobustness" not in members:
        return None
    buffers = _ROBUST_2 if "robustBufferAccess2" in members else _ROBUST
    images = _ROBUST_2 if "robustImageAccess2" in members else _DEVICE_DEFAULT
    if images == _DEVICE_DEFAULT and "robustImageAccess" in members:
        images = _ROBUST
    return buffers, images


def with_robustness(info: Any, features: Collection[Feature]) -> Any:
    """A VkComputePipelineCreateInfo, with a VkPipelineRobustnessCreateInfo behind it where that is enabled."""
    found = behaviours(features)
    if found is None:
        return info
    buffers, images = found
    robustness = new(
        "VkPipelineRobustnessCreateInfo",
        storageBuffers=buffers,
        uniformBuffers=buffers,
        vertexInputs=_DEVICE_DEFAULT,
        images=images,
    )
    return chain(info, robustness)
