"""``--list-devices``: the Vulkan devices, with what ``--device`` takes."""

from __future__ import annotations


def list_devices() -> int:
    """Print index, name, type, UUID and driver of every device and return 0. Raises NoDeviceError."""
    from scenario_runner.vulkan.instance import Instance, version_text

    instance = Instance()
    try:
        for device in instance.physical_devices:
            reason = device.unusable_because()
            note = f" - not usable: {reason}" if reason else ""
            print(
                f"{device.index}: {device.name} ({device.type}, Vulkan {version_text(device.api_version)},"
                f" {device.driver}) uuid {device.uuid}{note}"
            )
        if not instance.physical_devices:
            print("no Vulkan devices; 'scenario-runner doctor' shows what is missing")
    finally:
        instance.close()
    return 0
