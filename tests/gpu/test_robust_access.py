"""--enable-robustness-features: what reads beyond the end give."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from scenario_runner import Runner
from scenario_runner.vulkan.physical_device import Feature
from scenario_runner.vulkan.pipeline import behaviours

ROBUSTNESS2 = "VkPhysicalDeviceRobustness2FeaturesKHR"


def test_reads_beyond_the_end_give_what_the_specification_says(
    validation: bool, shader_cache: Path, checkout: Path
) -> None:
    """Reads beyond buffers and images give 0 or something of the same buffer; with robustness2 exactly 0."""
    scenario = checkout / "scenarios" / "robustness" / "out_of_bounds_reads" / "scenario.json"
    with Runner(validation=validation, robustness=True) as runner:
        result = runner.run(scenario, outputs=["allowed", "zeros"], write_files=False)
        features = runner.physical_device.features
        exact = all(features.find(ROBUSTNESS2, f"robust{what}Access2") is not None for what in ("Buffer", "Image"))
        assert runner.validation_messages == []
    assert result["allowed"].view(np.uint32).tolist() == [7] * 64
    if exact:
        assert not result["zeros"].view(np.uint32).any()


def test_the_device_is_opened_with_all_the_robustness_it_has(validation: bool) -> None:
    """Each of the features is enabled if, and only if, it is asked for and the driver reports it."""
    wanted = (
        ("VkPhysicalDeviceFeatures", "robustBufferAccess"),
        (ROBUSTNESS2, "robustBufferAccess2"),
        (ROBUSTNESS2, "robustImageAccess2"),
        ("VkPhysicalDeviceImageRobustnessFeatures", "robustImageAccess"),
        ("VkPhysicalDevicePipelineRobustnessFeatures", "pipelineRobustness"),
    )
    from scenario_runner.plan.records import Requirements
    from scenario_runner.vulkan.requirements import enabled_for

    with Runner(validation=validation) as runner:
        physical = runner.physical_device
        has = {member for structure, member in wanted if physical.features.find(structure, member) is not None}
        enabled = enabled_for(physical, Requirements({}, {}), robustness=True)
        assert {feature.member for feature in enabled.features} == has
        assert not enabled_for(physical, Requirements({}, {})).features


def test_pipelines_ask_for_the_strictest_behaviour() -> None:
    """A pipeline's behaviour follows from what the device was opened with; without the feature there is none."""

    def of(*members: str) -> tuple[int, int] | None:
        return behaviours([Feature("", member) for member in members])

    assert of("robustBufferAccess", "robustBufferAccess2") is None
    assert of("pipelineRobustness", "robustBufferAccess") == (2, 0)
    assert of("pipelineRobustness", "robustBufferAccess", "robustImageAccess") == (2, 2)
    assert of("pipelineRobustness", "robustBufferAccess2", "robustImageAccess", "robustImageAccess2") == (3, 3)
