"""The way in which tensors and graphs run on a device, and the reason."""

from typing import Any

import pytest

from scenario_runner.doctor.advice import ml_path

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


USABLE = {"usable": True, "unusable_because": None}
ABSENT = {"found": False, "works": False, "problem": None}
NO_GRAPHS = {**ML, "extensions": {"VK_ARM_tensors": 2}}
NO_TENSORS = {**ML, "features": {**ML["features"], "VkPhysicalDeviceTensorFeaturesARM": {"tensors": False}}}
NO_INT64 = "it lacks shaderInt64, which the layers need"


def path_of(native: dict[str, Any], emulated: dict[str, Any] | None, **changed: Any) -> dict[str, Any]:
    given = {"device": USABLE, "obstacle": None, "layers": LAYERS, "instance_layers": "", **changed}
    return ml_path(native=native, emulated=emulated, **given)


@pytest.mark.parametrize(
    "native, emulated, changed, path, reason",
    [
        (ML, None, {}, "native", "the driver has VK_ARM_tensors and VK_ARM_data_graph"),
        (ML, ML, {"instance_layers": "VK_LAYER_ML_Graph_Emulation:VK_LAYER_ML_Tensor_Emulation"}, "emulation",
         "VK_INSTANCE_LAYERS enables the ML emulation layers"),
        (NO_ML, ML, {}, "emulation", f"{LACKS}; the ML emulation layers bring them"),
        (NO_TENSORS, ML, {}, "emulation", "the driver lacks VK_ARM_tensors; the ML emulation layers bring them"),
        (ML, ML, {"device": {"usable": False, "unusable_because": "it is too old"}}, "none", "it is too old"),
        (NO_ML, None, {"obstacle": NO_INT64}, "none",
         f"{LACKS}, and the ML emulation layers cannot run on it: {NO_INT64}"),
        (NO_ML, None, {"layers": ABSENT}, "none", f"{LACKS}, and the ML emulation layers are not installed"),
        (NO_ML, None, {"layers": {"found": True, "works": False, "problem": "it crashed"}}, "none",
         f"{LACKS}, and the ML emulation layers fail: it crashed"),
        (NO_GRAPHS, NO_ML, {}, "none", "the driver lacks VK_ARM_data_graph, and the ML emulation layers do not bring"
         " VK_ARM_tensors and VK_ARM_data_graph here"),
    ],
)  # fmt: skip
def test_path_and_reason(
    native: dict[str, Any], emulated: dict[str, Any] | None, changed: dict[str, Any], path: str, reason: str
) -> None:
    """Each way a device can stand to the ML extensions has its path, its sentence, and what tensors find there."""
    found = path_of(native, emulated, **changed)
    assert (found["path"], found["reason"]) == (path, reason)
    facts = ML if path == "emulation" else native if "device" not in changed else NO_ML
    assert found["extensions"] == facts["extensions"]


def test_what_is_missing_comes_with_its_command() -> None:
    """Layers that are not installed are fixed by one pip command."""
    assert path_of(NO_ML, None, layers=ABSENT)["fix"].endswith(" -m pip install ai_ml_emulation_layer_for_vulkan")
