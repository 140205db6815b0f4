"""How a device runs tensors and ML graphs: by itself, through the emulation layers, or not at all, and why."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from scenario_runner.doctor.emulation import LAYERS
from scenario_runner.doctor.pip_install import pip_install
from scenario_runner.vulkan.devices.layers import PACKAGE

_NEEDED = {
    "VK_ARM_tensors": ("VkPhysicalDeviceTensorFeaturesARM", "tensors"),
    "VK_ARM_data_graph": ("VkPhysicalDeviceDataGraphFeaturesARM", "dataGraph"),
}
_NOTHING: dict[str, Any] = {
    "extensions": {},
    "features": {},
    "properties": {},
    "spirv": {"capabilities": [], "extensions": []},
    "queue_families": [],
}


def ml_path(
    device: Mapping[str, Any],
    obstacle: str | None,
    native: Mapping[str, Any],
    emulated: Mapping[str, Any] | None,
    layers: Mapping[str, Any],
    instance_layers: str,
) -> dict[str, Any]:
    """``path`` ("native", "emulation", "none") and ``reason``, with what tensors and graphs find there.

    ``obstacle`` is why the layers cannot run on the device (`vulkan.ml_emulation.reason_against`). ``native`` and
    ``emulated`` are what `device.ml_facts` says without and with the layers. ``instance_layers`` is VK_INSTANCE_LAYERS,
    with which users put the layers under every program.
    """
    lacking = _lacking(native)
    if not device["usable"]:
        return _path("none", str(device["unusable_because"]), _NOTHING)
    if not lacking:
        if any(name in instance_layers for name in LAYERS):
            return _path("emulation", "VK_INSTANCE_LAYERS enables the ML emulation layers", native)
        return _path("native", "the driver has VK_ARM_tensors and VK_ARM_data_graph", native)
    lacks = f"the driver lacks {' and '.join(lacking)}"
    if obstacle:
        return _path("none", f"{lacks}, and the ML emulation layers cannot run on it: {obstacle}", native)
    if not layers["found"]:
        fix = shlex.join(pip_install(PACKAGE))
        return _path("none", f"{lacks}, and the ML emulation layers are not installed", native, fix)
    if emulated is None or not layers["works"]:
        why = layers["problem"] or "they do not show this device"
        return _path("none", f"{lacks}, and the ML emulation layers fail: {why}", native)
    still = _lacking(emulated)
    if still:
        return _path("none", f"{lacks}, and the ML emulation layers do not bring {' and '.join(still)} here", native)
    return _path("emulation", f"{lacks}; the ML emulation layers bring them", emulated)


def _path(path: str, reason: str, facts: Mapping[str, Any], fix: str | None = None) -> dict[str, Any]:
    return {"path": path, "reason": reason, "fix": fix, **facts}


def _lacking(facts: Mapping[str, Any]) -> list[str]:
    """The extensions without which no graph runs, where they or their main feature are missing."""
    return [
        extension
        for extension, (structure, member) in _NEEDED.items()
        if extension not in facts["extensions"] or not facts["features"].get(structure, {}).get(member)
    ]
