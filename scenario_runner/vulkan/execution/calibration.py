"""The device's counter of timestamps and the host's clock, read at the same moment.

Source: VK_KHR_calibrated_timestamps and VK_EXT_calibrated_timestamps, which have the same structures.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from scenario_runner.vulkan.api._generated import constants as vk
from scenario_runner.vulkan.api.ffi import ffi
from scenario_runner.vulkan.api.structs import new
from scenario_runner.vulkan.devices.requirements import Enabled

if TYPE_CHECKING:
    from collections.abc import Collection

    from scenario_runner.vulkan.devices.device import Device
    from scenario_runner.vulkan.devices.physical_device import PhysicalDevice

EXTENSIONS: Final = ("VK_KHR_calibrated_timestamps", "VK_EXT_calibrated_timestamps")
# The clock of time.perf_counter_ns, where the system has clocks of POSIX.
_POSIX: Final = "clock_gettime(CLOCK_MONOTONIC)"


class Calibration(NamedTuple):
    """The device's counter at ``host_ns`` of `time.perf_counter_ns`, up to ``deviation_ns`` off."""

    ticks: int
    host_ns: int
    deviation_ns: int


def wanted(physical: PhysicalDevice, disabled_extensions: Collection[str] = ()) -> Enabled:
    """What a device is opened with, so that its counter can be calibrated; nothing where it cannot."""
    names = [name for name in EXTENSIONS if name in physical.extensions and name not in disabled_extensions]
    return Enabled(frozenset(), frozenset(names[:1]))


class DeviceClock:
    """Reads both clocks of a device that was opened with what `wanted` says; on others there is nothing to read."""

    def __init__(self, device: Device) -> None:
        self._device = device
        name = next((name for name in EXTENSIONS if name in device.enabled.extensions), None)
        self.extension: str | None = None
        if name is None or time.get_clock_info("perf_counter").implementation != _POSIX:
            return
        suffix = name.split("_")[1]
        if not {vk.TIME_DOMAIN_DEVICE_KHR, vk.TIME_DOMAIN_CLOCK_MONOTONIC_KHR} <= self._domains(suffix):
            return
        self.extension = name
        self._get = getattr(device.fn, f"vkGetCalibratedTimestamps{suffix}")
        domains = (vk.TIME_DOMAIN_DEVICE_KHR, vk.TIME_DOMAIN_CLOCK_MONOTONIC_KHR)
        self._infos = ffi.new("VkCalibratedTimestampInfoKHR[2]")
        for info, domain in zip(self._infos, domains, strict=True):
            info.sType = new("VkCalibratedTimestampInfoKHR").sType
            info.timeDomain = domain
        self._values = ffi.new("uint64_t[2]")
        self._deviation = ffi.new("uint64_t*")

    def now(self) -> Calibration | None:
        """Both clocks now; None where the device does not say."""
        if self.extension is None:
            return None
        if self._get(self._device.handle, 2, self._infos, self._values, self._deviation) != vk.SUCCESS:
            return None
        return Calibration(self._values[0], self._values[1], self._deviation[0])

    def _domains(self, suffix: str) -> set[int]:
        physical: Any = self._device.physical
        ask = getattr(physical.fn, f"vkGetPhysicalDeviceCalibrateableTimeDomains{suffix}")
        count = ffi.new("uint32_t*")
        if ask(physical.handle, count, ffi.NULL) != vk.SUCCESS or not count[0]:
            return set()
        domains = ffi.new("VkTimeDomainKHR[]", count[0])
        if ask(physical.handle, count, domains) < 0:
            return set()
        return set(domains[0 : count[0]])
