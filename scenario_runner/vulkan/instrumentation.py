"""Shader instrumentation (VK_ARM_shader_instrumentation): what a device measures in shaders, dispatch by dispatch.

Nothing here is imported unless a run asks for it. Life cycle:

1. `required` says what a device must be opened with, by name where it lacks it; pipelines are then made
   for it.
2. An `Instrumentation` belongs to one run. Each frame gets a VkShaderInstrumentationARM of its own, which is on from
   the first to the last command of the frame: result 0 is the frame's first dispatch of a shader, and so on.
3. After each submission `collect` reads the results of the frame and clears them.

Source: Vulkan specification, "Shaders", section "Shader Instrumentation". A metric block is a
VkShaderInstrumentationMetricDataHeaderARM and one uint64_t for each metric.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Final, NamedTuple

from scenario_runner import errors
from scenario_runner.plan.plan import FramePlan, Plan
from scenario_runner.vulkan import ffi
from scenario_runner.vulkan._generated import constants as vk
from scenario_runner.vulkan.device import Device
from scenario_runner.vulkan.loader import check
from scenario_runner.vulkan.physical_device import Feature, PhysicalDevice
from scenario_runner.vulkan.requirements import Enabled
from scenario_runner.vulkan.structs import chain, enumerated, new

EXTENSION: Final = "VK_ARM_shader_instrumentation"
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
"""A driver that claims more than this is wrong, and is not given the memory."""


class Metric(NamedTuple):
    """VkShaderInstrumentationMetricDescriptionARM."""

    name: str
    description: str


class Capability(NamedTuple):
    """The measurements of a device; without ``per_basic_block`` the values are those of whole shaders."""

    metrics: tuple[Metric, ...]
    per_basic_block: bool


class Block(NamedTuple):
    """The values of one basic block of the shaders of one command, in the order of the metrics.

    ``command`` is the index of the scenario's command and ``shader`` the uid (or label) of its shader; None where it
    cannot be told which command a result is of.
    """

    iteration: int
    frame: int
    command: int | None
    shader: str | None
    result_index: int
    result_sub_index: int
    stages: tuple[str, ...]
    basic_block: int
    values: tuple[int, ...]


def capability_of(physical: PhysicalDevice) -> Capability | None:
    """The metrics of a physical device; None without the extension. Raises DeviceError."""
    if EXTENSION not in physical.extensions:
        return None
    properties = new("VkPhysicalDeviceShaderInstrumentationPropertiesARM")
    head = chain(new("VkPhysicalDeviceProperties2"), properties)
    physical.fn.vkGetPhysicalDeviceProperties2(physical.handle, head)
    name = "vkEnumeratePhysicalDeviceShaderInstrumentationMetricsARM"
    kind = "VkShaderInstrumentationMetricDescriptionARM"
    descriptions = enumerated(kind, name, getattr(physical.fn, name), physical.handle)
    if not len(descriptions) == properties.numMetrics > 0:
        raise errors.DeviceError(
            f"{physical.name!r} describes {len(descriptions)} metrics of shader instrumentation and says that it has"
            f" {properties.numMetrics}"
        )
    metrics = [Metric(_text(description.name), _text(description.description)) for description in descriptions]
    return Capability(tuple(metrics), bool(properties.perBasicBlockGranularity))


def _text(field: Any) -> str:
    return str(bytes(ffi.buffer(field)).split(b"\0", 1)[0].decode(errors="replace"))


def required(physical: PhysicalDevice, disabled_extensions: Collection[str] = ()) -> Enabled:
    """The requirements that a device must be opened with. Raises UnsupportedError with what it lacks."""
    features: set[Feature] = set()
    lacking = [] if EXTENSION in physical.extensions else [f"the extension {EXTENSION}"]
    for structure, member in _NEEDED:
        feature = physical.features.find(structure, member, disabled_extensions)
        if feature is not None:
            features.add(feature)
        elif structure != _NEEDED[0][0] or not lacking:
            lacking.append(f"the feature {member} ({structure})")
    if EXTENSION in disabled_extensions:
        lacking = [f"the extension {EXTENSION}, which --disable-extension turns off"]
    if lacking:
        raise errors.UnsupportedError(
            f"shader instrumentation was asked for; {physical.name!r} lacks {' and '.join(lacking)}",
            help="run without --shader-instrumentation, or on a device that has it",
        )
    return Enabled(frozenset(features), frozenset(feature.extension for feature in features if feature.extension))


class Instrumentation:
    """The instrumentation of one run; ``blocks`` is what was measured so far."""

    def __init__(self, device: Device, plan: Plan, stack: ExitStack) -> None:
        capability = capability_of(device.physical)
        assert capability is not None, "the device was opened with it"
        self.capability = capability
        self.blocks: list[Block] = []
        self._device = device
        self._plan = plan
        self._stack = stack
        self._objects: dict[int, Any] = {}

    @contextmanager
    def recording(self, commands: Any, frame: int) -> Iterator[None]:
        """Instrument what is recorded into ``commands`` meanwhile: the commands of the frame with this index."""
        fn = self._device.fn
        fn.vkCmdBeginShaderInstrumentationARM(commands, self._object(frame))
        yield
        fn.vkCmdEndShaderInstrumentationARM(commands)

    def _object(self, frame: int) -> Any:
        instance = self._objects.get(frame)
        if instance is None:
            device = self._device
            info = new("VkShaderInstrumentationCreateInfoARM")
            instance = device.create(self._stack, "shader instrumentation", "ShaderInstrumentationARM", info)
            self._objects[frame] = instance
        return instance

    def collect(self, iteration: int, index: int, frame: FramePlan) -> None:
        """Take the results of a frame that has finished, and clear them for the next time. Raises DeviceError."""
        device, object = self._device, self._objects[index]
        dispatches = _dispatches(self._plan, frame)
        for header, values in self._read(object):
            result, sub_index, stages, block = header
            command, shader = dispatches[result] if result < len(dispatches) else (None, None)
            self.blocks.append(
                Block(iteration, index, command, shader, result, sub_index, _stages(stages), block, values)
            )
        device.fn.vkClearShaderInstrumentationMetricsARM(device.handle, object)

    def _read(self, object: Any) -> Iterator[tuple[tuple[int, int, int, int], tuple[int, ...]]]:
        name = "vkGetShaderInstrumentationValuesARM"
        device, get = self._device, self._device.fn.vkGetShaderInstrumentationValuesARM
        count = ffi.new("uint32_t*")
        check(get(device.handle, object, count, ffi.NULL, 0), name)
        number = len(self.capability.metrics)
        stride = _HEADER.size + 8 * number
        room = count[0]
        if room * stride > MAX_RESULTS_BYTES:
            raise errors.DeviceError(f"{name} says that there are {room} metric blocks of {stride} bytes each")
        if not room:
            return
        data = ffi.new("uint64_t[]", room * stride // 8)
        code = check(get(device.handle, object, count, data, 0), name)
        if code == vk.INCOMPLETE or count[0] > room:
            raise errors.DeviceError(f"{name} has more than the {room} metric blocks that it said before")
        content = memoryview(ffi.buffer(data))
        values = struct.Struct(f"={number}Q")
        for at in range(0, count[0] * stride, stride):
            yield _HEADER.unpack_from(content, at), values.unpack_from(content, at + _HEADER.size)


def _dispatches(plan: Plan, frame: FramePlan) -> list[tuple[int | None, str | None]]:
    """(command, shader) of each result of a frame.

    A graph may be taken apart into dispatches of its own, so that with one nothing can be told of the whole frame.
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


def _stages(mask: int) -> tuple[str, ...]:
    known = [name for bit, name in _STAGES.items() if mask & bit]
    rest = mask & ~sum(_STAGES)
    return (*known, f"{rest:#x}") if rest else tuple(known)
