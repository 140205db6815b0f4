"""Measurements by the device: timestamps around operations, and shader instrumentation.

Each operation has a timestamp before it. The last of consecutive operations has another after it (`Timestamps.write`).
A timestamp is written after all earlier work (bottom of pipe), including the implicit barrier. `Timestamps.collect`
reads them after the frame has finished. Frames are submitted in turn and share queries; each command buffer resets the
queries that it writes.

Shader instrumentation (VK_ARM_shader_instrumentation) measures shaders dispatch by dispatch. The device must be opened
with the requirements of `instrumentation_required`, and pipelines are created for it. Each frame has a
VkShaderInstrumentationARM, active from the frame's first to last command: result 0 belongs to the frame's first
dispatch of a shader, and so on. `Instrumentation.collect` reads the results of a finished frame and clears them. A
metric block is a VkShaderInstrumentationMetricDataHeaderARM and a uint64_t for each metric.

Sources: Vulkan specification, "Queries", section "Timestamp Queries", and "Shaders", section "Shader Instrumentation";
VK_KHR_calibrated_timestamps and VK_EXT_calibrated_timestamps, which have the same structures.
"""

from __future__ import annotations

import struct
import time
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Final, NamedTuple

from scenario_runner.errors import DeviceError, UnsupportedError
from scenario_runner.plan.plan import MEASURED, FramePlan, Operation, Plan
from scenario_runner.processes import progress
from scenario_runner.vulkan import Handle, ffi
from scenario_runner.vulkan._generated import constants as vk
from scenario_runner.vulkan.capabilities import Enabled
from scenario_runner.vulkan.device import Device
from scenario_runner.vulkan.layers import text_of
from scenario_runner.vulkan.physical_device import PhysicalDevice
from scenario_runner.vulkan.vulkan_api import check, enumerated, new

_CALIBRATED: Final = ("VK_KHR_calibrated_timestamps", "VK_EXT_calibrated_timestamps")
# The clock of time.perf_counter_ns on POSIX systems.
_POSIX: Final = "clock_gettime(CLOCK_MONOTONIC)"


class Calibration(NamedTuple):
    """The device's counter at ``host_ns`` of `time.perf_counter_ns`, up to ``deviation_ns`` off."""

    ticks: int
    host_ns: int
    deviation_ns: int


def calibration_required(physical: PhysicalDevice, disabled_extensions: Collection[str] = ()) -> Enabled:
    """Return the extension that calibrates a device's counter; nothing if the device lacks it."""
    names = [name for name in _CALIBRATED if name in physical.extensions and name not in disabled_extensions]
    return Enabled(extensions=frozenset(names[:1]))


class DeviceClock:
    """Reads device and host clock together, on a device opened with the extension of `calibration_required`."""

    def __init__(self, device: Device) -> None:
        self._device = device
        name = next((name for name in _CALIBRATED if name in device.enabled.extensions), None)
        self.extension: str | None = None
        if name is None or time.get_clock_info("perf_counter").implementation != _POSIX:
            return
        suffix, physical = name.split("_")[1], device.physical
        listing = f"vkGetPhysicalDeviceCalibrateableTimeDomains{suffix}"
        known = enumerated("VkTimeDomainKHR", listing, getattr(physical.fn, listing), physical.handle)
        domains = (vk.TIME_DOMAIN_DEVICE_KHR, vk.TIME_DOMAIN_CLOCK_MONOTONIC_KHR)
        if not {*domains} <= {*known}:
            return
        self.extension = name
        self._get = getattr(device.fn, f"vkGetCalibratedTimestamps{suffix}")
        infos = [new("VkCalibratedTimestampInfoKHR", timeDomain=domain)[0] for domain in domains]
        self._infos = ffi.new("VkCalibratedTimestampInfoKHR[]", infos)
        self._values = ffi.new("uint64_t[2]")
        self._deviation = ffi.new("uint64_t*")

    def now(self) -> Calibration | None:
        """Return both clocks now; None if the device cannot read them."""
        if self.extension is None:
            return None
        if self._get(self._device.handle, 2, self._infos, self._values, self._deviation) != vk.SUCCESS:
            return None
        return Calibration(self._values[0], self._values[1], self._deviation[0])


_NAME: Final = "vkGetQueryPoolResults"


class FrameTimes(NamedTuple):
    """The times measured in a frame's submission.

    Each of ``runs`` has operations without anything between them. For each run of n operations, ``ticks`` has n + 1
    counter values from the device. ``finished_ns`` is the host's clock (`time.perf_counter_ns`) when the host knew that
    the frame had finished. ``calibration`` ties the counter to that clock.
    """

    iteration: int
    frame: int
    runs: tuple[Sequence[Operation], ...]
    ticks: array[int]
    finished_ns: int
    calibration: Calibration | None


class Timestamps:
    """The timestamps of a run; ``frames`` has the measurements so far.

    On a queue without timestamps, nothing is recorded or measured.
    """

    def __init__(self, device: Device, stack: ExitStack) -> None:
        self._device = device
        self._stack = stack
        self._has_any = bool(device.timestamp_valid_bits)
        self.device_clock = DeviceClock(device)
        self.frames: list[FrameTimes] = []
        self._pool: Handle = None
        self._size = 0
        # Each command buffer's timed operations and query pool.
        self._recorded: dict[Handle, tuple[tuple[Sequence[Operation], ...], Handle]] = {}
        self._next = 0

    def begin(self, commands: Handle, runs: Iterable[Sequence[Operation]]) -> None:
        """Begin a command buffer that will record these runs of operations."""
        timed = tuple(run for run in runs if run[0].kind in MEASURED)
        count = sum(len(run) + 1 for run in timed) if self._has_any else 0
        with progress.phase("record", "reset query pool"):
            if count > self._size:
                self._size = max(count, 2 * self._size)
                info = new("VkQueryPoolCreateInfo", queryType=vk.QUERY_TYPE_TIMESTAMP, queryCount=self._size)
                self._pool = self._device.create(self._stack, "query pool", "QueryPool", info)
            if count:
                self._device.fn.vkCmdResetQueryPool(commands, self._pool, 0, count)
        self._recorded[commands] = timed, self._pool
        self._next = 0

    def measures(self, run: Sequence[Operation]) -> bool:
        """Return whether timestamps are written before each of these operations and after the last."""
        return self._has_any and run[0].kind in MEASURED

    def record(
        self, commands: Handle, operations: Sequence[Operation], record: Callable[[list[Operation]], None]
    ) -> None:
        """Let ``record`` record operations separately, each after a timestamp."""
        for operation in operations:
            self.write(commands)
            record([operation])

    def write(self, commands: Handle) -> None:
        """Record the next timestamp."""
        self._device.fn.vkCmdWriteTimestamp(commands, vk.PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, self._pool, self._next)
        self._next += 1

    def collect(self, commands: Handle, iteration: int, frame: int) -> None:
        """Read the timestamps of a command buffer that has just finished. Raises DeviceError."""
        finished_ns = time.perf_counter_ns()
        runs, pool = self._recorded[commands]
        count = sum(len(run) + 1 for run in runs) if self._has_any else 0
        if not count:
            return
        ticks = array("Q", bytes(8 * count))
        device, into = self._device, ffi.from_buffer(ticks)
        code = device.fn.vkGetQueryPoolResults(
            device.handle, pool, 0, count, 8 * count, into, 8, vk.QUERY_RESULT_64_BIT
        )
        if check(code, _NAME, "reading timestamps") == vk.NOT_READY:
            raise DeviceError(f"{_NAME} returned no timestamps for a finished frame")
        self.frames.append(FrameTimes(iteration, frame, runs, ticks, finished_ns, self.device_clock.now()))


_INSTRUMENTATION: Final = "VK_ARM_shader_instrumentation"
_NEEDED: Final = (
    ("VkPhysicalDeviceShaderInstrumentationFeaturesARM", "shaderInstrumentation"),
    ("VkPhysicalDeviceVulkan14Features", "maintenance5"),  # 64 bits of pipeline flags
)
_HEADER: Final = struct.Struct("=4I")
_STAGES: Final = {
    vk.SHADER_STAGE_VERTEX_BIT: "vertex",
    vk.SHADER_STAGE_FRAGMENT_BIT: "fragment",
    vk.SHADER_STAGE_COMPUTE_BIT: "compute",
}
MAX_RESULTS_BYTES: Final = 1 << 30
"""A driver that asks for more is wrong, and does not get the memory."""


class Metric(NamedTuple):
    """VkShaderInstrumentationMetricDescriptionARM."""

    name: str
    description: str


class Capability(NamedTuple):
    """The measurements of a device. Without ``per_basic_block``, values belong to whole shaders."""

    metrics: tuple[Metric, ...]
    per_basic_block: bool


def instrumentation_capability(physical: PhysicalDevice) -> Capability | None:
    """Return the metrics of a physical device; None without the extension. Raises DeviceError."""
    if _INSTRUMENTATION not in physical.extensions:
        return None
    properties = physical.properties_of("VkPhysicalDeviceShaderInstrumentationPropertiesARM")
    name = "vkEnumeratePhysicalDeviceShaderInstrumentationMetricsARM"
    kind = "VkShaderInstrumentationMetricDescriptionARM"
    descriptions = enumerated(kind, name, getattr(physical.fn, name), physical.handle)
    if not len(descriptions) == properties.numMetrics > 0:
        raise DeviceError(
            f"{physical.name!r} describes {len(descriptions)} metrics of shader instrumentation and announces"
            f" {properties.numMetrics}"
        )
    metrics = [Metric(text_of(description.name), text_of(description.description)) for description in descriptions]
    return Capability(tuple(metrics), bool(properties.perBasicBlockGranularity))


def instrumentation_required(physical: PhysicalDevice, disabled_extensions: Collection[str] = ()) -> Enabled:
    """Return the features and extensions for opening a device. Raises UnsupportedError with the missing ones."""
    features = [physical.features.find(*names, disabled_extensions) for names in _NEEDED]
    lacking = f"the extension {_INSTRUMENTATION}"
    if _INSTRUMENTATION in disabled_extensions:
        lacking += ", which --disable-extension turns off"
    elif _INSTRUMENTATION in physical.extensions:
        missing = [names for names, feature in zip(_NEEDED, features, strict=True) if feature is None]
        lacking = " and ".join(f"the feature {member} ({structure})" for structure, member in missing)
    if lacking:
        raise UnsupportedError(
            f"{physical.name!r} cannot instrument shaders: it lacks {lacking}",
            help="run without --shader-instrumentation, or on a device that has it",
        )
    return Enabled.of(feature for feature in features if feature is not None)


class Instrumentation:
    """The shader instrumentation of a run; ``blocks`` has each measured basic block's values.

    Each block names the scenario command by index, and the shader by uid or label. Both are None if the driver's result
    matches no command.
    """

    def __init__(self, device: Device, plan: Plan, stack: ExitStack) -> None:
        capability = instrumentation_capability(device.physical)
        assert capability is not None, "the device was opened with it"
        self.capability = capability
        self.blocks: list[dict[str, object]] = []
        self._device = device
        self._plan = plan
        self._stack = stack
        self._objects: dict[int, Handle] = {}

    @contextmanager
    def recording(self, commands: Handle, frame: int) -> Iterator[None]:
        """Instrument the commands that the block records for the frame with this index."""
        device = self._device
        if frame not in self._objects:
            info = new("VkShaderInstrumentationCreateInfoARM")
            kind, name = "shader instrumentation", "ShaderInstrumentationARM"
            self._objects[frame] = device.create(self._stack, kind, name, info)
        device.fn.vkCmdBeginShaderInstrumentationARM(commands, self._objects[frame])
        yield
        device.fn.vkCmdEndShaderInstrumentationARM(commands)

    def collect(self, iteration: int, index: int, frame: FramePlan) -> None:
        """Read a finished frame's results, and clear them for the next run. Raises DeviceError."""
        device, object = self._device, self._objects[index]
        dispatches = _dispatches(self._plan, frame)
        names = [metric.name for metric in self.capability.metrics]
        for (result, sub_index, stages, block), values in self._read(object):
            command, shader = dispatches[result] if result < len(dispatches) else (None, None)
            self.blocks.append(
                {
                    "iteration": iteration,
                    "frame": index,
                    "command": command,
                    "shader": shader,
                    "result_index": result,
                    "result_sub_index": sub_index,
                    "stages": _stages(stages),
                    "basic_block": block,
                    "values": dict(zip(names, values, strict=True)),
                }
            )
        device.fn.vkClearShaderInstrumentationMetricsARM(device.handle, object)

    def _read(self, object: Handle) -> Iterator[tuple[tuple[int, int, int, int], tuple[int, ...]]]:
        name = "vkGetShaderInstrumentationValuesARM"
        device, get = self._device, self._device.fn.vkGetShaderInstrumentationValuesARM
        count = ffi.new("uint32_t*")
        check(get(device.handle, object, count, ffi.NULL, 0), name)
        number = len(self.capability.metrics)
        stride = _HEADER.size + 8 * number
        room = count[0]
        if room * stride > MAX_RESULTS_BYTES:
            raise DeviceError(f"{name} says that there are {room} metric blocks of {stride} bytes each")
        if not room:
            return
        data = ffi.new("uint64_t[]", room * stride // 8)
        code = check(get(device.handle, object, count, data, 0), name)
        if code == vk.INCOMPLETE or count[0] > room:
            raise DeviceError(f"{name} returned more than the announced {room} metric blocks")
        content = memoryview(ffi.buffer(data))
        values = struct.Struct(f"={number}Q")
        for at in range(0, count[0] * stride, stride):
            yield _HEADER.unpack_from(content, at), values.unpack_from(content, at + _HEADER.size)


def _dispatches(plan: Plan, frame: FramePlan) -> list[tuple[int | None, str | None]]:
    """Return (command, shader) for each result of a frame.

    A driver may split a graph into several dispatches. In a frame with a graph, results cannot be assigned.
    """
    dispatches: list[tuple[int | None, str | None]] = []
    for operation in frame.operations:
        if operation.kind == "dispatch":
            dispatches.append((operation.command, plan.pipelines[operation.pipeline].label))
        elif operation.kind in ("graph_dispatch", "optical_flow_dispatch"):
            return []
        elif operation.kind == "draw":
            dispatches.append((operation.command, plan.graphics_pipelines[operation.pipeline].fragment.label))
    return dispatches


def _stages(mask: int) -> list[str]:
    rest = mask & ~sum(_STAGES)
    return [name for bit, name in _STAGES.items() if mask & bit] + ([f"{rest:#x}"] if rest else [])
