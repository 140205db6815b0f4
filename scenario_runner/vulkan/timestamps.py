"""Timestamps of the GPU around every operation of a run, and the calibration of the device's clock with the host's.

Life cycle: a `Timestamps` belongs to one run. A timestamp is written (`write`) before each operation, and after the
last one of those that follow each other. `collect` reads them when the frame has finished. Frames are
submitted one after the other and use the same queries; each command buffer resets those that it writes.

A timestamp is written when everything before it has finished (bottom of pipe), and after the implicit barrier.

Sources: Vulkan specification, "Queries", section "Timestamp Queries"; VK_KHR_calibrated_timestamps and
VK_EXT_calibrated_timestamps, which have the same structures.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import ExitStack
from typing import Any, Final, NamedTuple

from scenario_runner import progress
from scenario_runner.errors import DeviceError
from scenario_runner.kinds import MEASURED
from scenario_runner.plan.plan import Operation
from scenario_runner.vulkan import ffi
from scenario_runner.vulkan._generated import constants as vk
from scenario_runner.vulkan.device import Device
from scenario_runner.vulkan.loader import check
from scenario_runner.vulkan.physical_device import PhysicalDevice
from scenario_runner.vulkan.requirements import Enabled
from scenario_runner.vulkan.structs import enumerated, new

EXTENSIONS: Final = ("VK_KHR_calibrated_timestamps", "VK_EXT_calibrated_timestamps")
# The clock of time.perf_counter_ns, where the system has clocks of POSIX.
_POSIX: Final = "clock_gettime(CLOCK_MONOTONIC)"


class Calibration(NamedTuple):
    """The device's counter at ``host_ns`` of `time.perf_counter_ns`, up to ``deviation_ns`` off."""

    ticks: int
    host_ns: int
    deviation_ns: int


def wanted(physical: PhysicalDevice, disabled_extensions: Collection[str] = ()) -> Enabled:
    """The extension that a device is opened with, so that its counter can be calibrated; nothing where it cannot."""
    names = [name for name in EXTENSIONS if name in physical.extensions and name not in disabled_extensions]
    return Enabled(extensions=frozenset(names[:1]))


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
        name = f"vkGetPhysicalDeviceCalibrateableTimeDomains{suffix}"
        return set(enumerated("VkTimeDomainKHR", name, getattr(physical.fn, name), physical.handle))


QUERIES_IN_POOL: Final = 4096
"""Devices bound the size of a query pool only by memory; long frames take several pools of this many queries."""
_NAME: Final = "vkGetQueryPoolResults"


class FrameTimes(NamedTuple):
    """The times of one submission of a frame.

    ``runs`` are operations that followed each other without anything between them; of each run of n operations
    ``ticks`` has n + 1 values of the device's counter. ``finished_ns`` is when the host knew that the frame had
    finished, on its clock (`time.perf_counter_ns`); ``calibration`` ties the counter to that clock.
    """

    iteration: int
    frame: int
    runs: tuple[Sequence[Operation], ...]
    ticks: array[int]
    finished_ns: int
    calibration: Calibration | None


class Timestamps:
    """The timestamps of one run; ``frames`` is what was measured so far.

    On a queue that has no timestamps nothing is recorded or measured.
    """

    def __init__(self, device: Device, stack: ExitStack) -> None:
        self._device = device
        self._stack = stack
        self._has_any = bool(device.timestamp_valid_bits)
        self.device_clock = DeviceClock(device)
        self.frames: list[FrameTimes] = []
        self._pools: list[Any] = []
        self._runs: dict[Any, tuple[Sequence[Operation], ...]] = {}
        self._next = 0

    def begin(self, commands: Any, runs: Iterable[Sequence[Operation]]) -> None:
        """Begin a command buffer in which these runs of operations will be recorded."""
        timed = self._runs[commands] = tuple(run for run in runs if run[0].kind in MEASURED)
        self._next = 0
        left = sum(len(run) + 1 for run in timed) if self._has_any else 0
        with progress.phase("record", "reset query pool"):
            for number in range(-(-left // QUERIES_IN_POOL)):
                if number == len(self._pools):
                    self._pools.append(self._create_pool())
                count = min(left - number * QUERIES_IN_POOL, QUERIES_IN_POOL)
                self._device.fn.vkCmdResetQueryPool(commands, self._pools[number], 0, count)

    def measures(self, run: Sequence[Operation]) -> bool:
        """Return whether a timestamp is written before each of these operations and after the last one."""
        return self._has_any and run[0].kind in MEASURED

    def record(self, commands: Any, operations: Sequence[Operation], record: Callable[[list[Operation]], None]) -> None:
        """Let ``record`` record operations one by one, each after a timestamp."""
        for operation in operations:
            self.write(commands)
            record([operation])

    def write(self, commands: Any) -> None:
        """Record the next timestamp."""
        number, query = divmod(self._next, QUERIES_IN_POOL)
        self._next += 1
        stage = vk.PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT
        self._device.fn.vkCmdWriteTimestamp(commands, stage, self._pools[number], query)

    def collect(self, commands: Any, iteration: int, frame: int) -> None:
        """Take the timestamps of a command buffer that has just finished. Raises DeviceError."""
        finished_ns = time.perf_counter_ns()
        runs = self._runs[commands]
        count = sum(len(run) + 1 for run in runs) if self._has_any else 0
        if not count:
            return
        ticks = array("Q", bytes(8 * count))
        get, device = self._device.fn.vkGetQueryPoolResults, self._device.handle
        for number, start in enumerate(range(0, count, QUERIES_IN_POOL)):
            size = min(count - start, QUERIES_IN_POOL)
            into = ffi.from_buffer(memoryview(ticks)[start : start + size])
            code = get(device, self._pools[number], 0, size, 8 * size, into, 8, vk.QUERY_RESULT_64_BIT)
            if check(code, _NAME, "reading timestamps") == vk.NOT_READY:
                raise DeviceError(f"{_NAME} has no timestamps of a frame that has finished")
        self.frames.append(FrameTimes(iteration, frame, runs, ticks, finished_ns, self.device_clock.now()))

    def _create_pool(self) -> Any:
        info = new("VkQueryPoolCreateInfo", queryType=vk.QUERY_TYPE_TIMESTAMP, queryCount=QUERIES_IN_POOL)
        return self._device.create(self._stack, "query pool", "QueryPool", info)
