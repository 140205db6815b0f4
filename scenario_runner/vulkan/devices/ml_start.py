"""Opening a device through the ML emulation layers ahead of time, while Python imports what reads the scenario."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from scenario_runner import log
from scenario_runner.errors import ScenarioRunnerError
from scenario_runner.plan.model.records import NeededFeature, Requirements
from scenario_runner.vulkan.devices.device import Device
from scenario_runner.vulkan.devices.ml_emulation import DATA_GRAPH, TENSORS, open_layered, reason_against, wanted_layers
from scenario_runner.vulkan.devices.physical_device import choose
from scenario_runner.vulkan.devices.requirements import enabled_for

if TYPE_CHECKING:
    from scenario_runner.vulkan.devices.instance import Checks, Instance
    from scenario_runner.vulkan.devices.physical_device import PhysicalDevice

_FEATURES = (
    ("VkPhysicalDeviceTensorFeaturesARM", "tensors"),
    ("VkPhysicalDeviceTensorFeaturesARM", "tensorNonPacked"),
    ("VkPhysicalDeviceTensorFeaturesARM", "shaderTensorAccess"),
    ("VkPhysicalDeviceDataGraphFeaturesARM", "dataGraph"),
    ("VkPhysicalDeviceDataGraphFeaturesARM", "dataGraphShaderModule"),
    ("VkPhysicalDeviceDataGraphOpticalFlowFeaturesARM", "dataGraphOpticalFlow"),
    ("VkPhysicalDeviceVulkan13Features", "synchronization2"),
)


class Warm(NamedTuple):
    """A device through the layers; `close` it, or take it over."""

    instance: Instance
    physical: PhysicalDevice
    device: Device

    def close(self) -> None:
        """Destroy device and instance."""
        self.device.close()
        self.instance.close()


def open_warm(instance: Instance, *, validation: Checks) -> Warm | None:
    """The device that is used by default, through the layers; None where it needs none or cannot have them."""
    layered = None
    try:
        physical = choose(instance.physical_devices, None)
        layers = wanted_layers(physical, (TENSORS, DATA_GRAPH), "auto")
        if not layers or reason_against(physical) is not None:
            return None
        layered = open_layered(layers, validation=validation, labels=instance.labels)
        same = layered.physical_devices[physical.index]
        features = tuple(
            NeededFeature(structure, member, "a graph", "")
            for structure, member in _FEATURES
            if same.features.find(structure, member) is not None  # what the layers lack, the scenario is told of
        )
        device = Device(layered, same, enabled_for(same, Requirements({}, {}, features=features), emulated=True))
    except (ScenarioRunnerError, IndexError) as error:  # whoever needs the device is told when it asks for it
        log.debug(__name__, "no device was opened ahead of time: %s", error)
        if layered is not None:
            layered.close()
        return None
    return Warm(layered, same, device)
