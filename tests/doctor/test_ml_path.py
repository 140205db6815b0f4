"""Which way tensors and graphs run on a device, and why."""

from __future__ import annotations

from typing import Any

import pytest

from scenario_runner.doctor.findings import ml_path

ML = {
    "extensions": {"VK_ARM_tensors": 2, "VK_ARM_data_graph": 1},
    "features": {
        "VkPhysicalDeviceTensorFeaturesARM": {"tensors": True},
        "VkPhysicalDeviceDataGraphFeaturesARM": {"dataGraph": True},
    },
    "properties": {},
}
NO_ML: dict[str, Any] = {"extensions": {}, "features": {}, "properties": {}}
LACKS = "the driver lacks VK_ARM_tensors and VK_ARM_data_graph"
LAYERS = {"found": True, "works": True, "problem": None}


def device(**changes: Any) -> dict[str, Any]:
    return {"usable": True, "unusable_because": None, **changes}


@pytest.mark.parametrize(
    "this, obstacle, native, emulated, layers, variable, path, reason",
    [
        (device(), None, ML, None, LAYERS, "", "native", "the driver has VK_ARM_tensors and VK_ARM_data_graph"),
        (
            device(),
            None,
            ML,
            ML,
            LAYERS,
            "VK_LAYER_ML_Graph_Emulation:VK_LAYER_ML_Tensor_Emulation",
            "emulation",
            "VK_INSTANCE_LAYERS enables the ML emulation layers",
        ),
        (device(), None, NO_ML, ML, LAYERS, "", "emulation", f"{LACKS}; the ML emulation layers bring them"),
        (device(usable=False, unusable_because="it is too old"), None, ML, ML, LAYERS, "", "none", "it is too old"),
        (
            device(),
            "it lacks shaderInt64, which the layers need",
            NO_ML,
            None,
            LAYERS,
            "",
            "none",
            f"{LACKS}, and the ML emulation layers cannot run on it: it lacks shaderInt64, which the layers need",
        ),
        (
            device(),
            None,
            NO_ML,
            None,
            {"found": False, "works": False, "problem": None},
            "",
            "none",
            f"{LACKS}, and the ML emulation layers are not installed",
        ),
        (
            device(),
            None,
            NO_ML,
            None,
            {"found": True, "works": False, "problem": "it crashed"},
            "",
            "none",
            f"{LACKS}, and the ML emulation layers fail: it crashed",
        ),
        (
            device(),
            None,
            {**ML, "extensions": {"VK_ARM_tensors": 2}},
            NO_ML,
            LAYERS,
            "",
            "none",
            "the driver lacks VK_ARM_data_graph, and the ML emulation layers do not bring VK_ARM_tensors and"
            " VK_ARM_data_graph here",
        ),
        (
            device(),
            None,
            {**ML, "features": {**ML["features"], "VkPhysicalDeviceTensorFeaturesARM": {"tensors": False}}},
            ML,
            LAYERS,
            "",
            "emulation",
            "the driver lacks VK_ARM_tensors; the ML emulation layers bring them",
        ),
    ],
)
def test_path_and_reason(
    this: dict[str, Any],
    obstacle: str | None,
    native: dict[str, Any],
    emulated: dict[str, Any] | None,
    layers: dict[str, Any],
    variable: str,
    path: str,
    reason: str,
) -> None:
    """Each way a device can stand to the ML extensions has its path and its sentence."""
    found = ml_path(this, obstacle, native, emulated, layers, variable)
    assert (found["path"], found["reason"]) == (path, reason)


def test_what_is_missing_comes_with_its_command() -> None:
    """Layers that are not installed are fixed by one pip command."""
    found = ml_path(device(), None, NO_ML, None, {"found": False, "works": False, "problem": None}, "")
    assert found["fix"].endswith(" -m pip install ai_ml_emulation_layer_for_vulkan")


def test_emulated_facts_are_the_path_s() -> None:
    """What tensors find is what the layers report where they are the path."""
    assert ml_path(device(), None, NO_ML, ML, LAYERS, "")["extensions"] == ML["extensions"]
    assert ml_path(device(usable=False), None, ML, ML, LAYERS, "")["extensions"] == {}
