"""What data graph pipelines and their sessions tell of themselves after a run, for the files that users ask for.

Nothing here is imported unless a run asks for one of them. A `GraphReports` is the `graph_reports` of a device for as
long as it is open: it takes part when pipelines and sessions are created.

Sources: Vulkan specification, "Data Graph Pipelines", VK_ARM_data_graph_neural_accelerator_statistics; the emulation
layers' documentation of VMEL_GRAPH_PROFILING.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from scenario_runner import errors
from scenario_runner.vulkan.api._generated import constants as vk
from scenario_runner.vulkan.api.ffi import ffi
from scenario_runner.vulkan.api.loader import check
from scenario_runner.vulkan.api.structs import chain, enumerated, new
from scenario_runner.vulkan.devices.requirements import Enabled

if TYPE_CHECKING:
    from scenario_runner.vulkan.devices.device import Device
    from scenario_runner.vulkan.devices.physical_device import PhysicalDevice
    from scenario_runner.vulkan.resources.memory import Allocation

NEURAL_EXTENSION: Final = "VK_ARM_data_graph_neural_accelerator_statistics"
_NEURAL_FEATURE: Final = (
    "VkPhysicalDeviceDataGraphNeuralAcceleratorStatisticsFeaturesARM",
    "dataGraphNeuralAcceleratorStatistics",
)
DEBUG_DATABASE: Final = vk.DATA_GRAPH_PIPELINE_PROPERTY_NEURAL_ACCELERATOR_DEBUG_DATABASE_ARM
EMULATION_PROFILE: Final = 0x7FFFFFFE
"""A property of the emulation layers' own: what they measured, as JSON."""
_STATISTICS_POINT: Final = vk.DATA_GRAPH_PIPELINE_SESSION_BIND_POINT_NEURAL_ACCELERATOR_STATISTICS_ARM
MODES: Final = (
    vk.NEURAL_ACCELERATOR_STATISTICS_MODE_STATISTICS0_ARM,
    vk.NEURAL_ACCELERATOR_STATISTICS_MODE_STATISTICS1_ARM,
)
_HOST: Final = vk.MEMORY_PROPERTY_HOST_VISIBLE_BIT | vk.MEMORY_PROPERTY_HOST_COHERENT_BIT


class SessionMemory(NamedTuple):
    """One object of a bind point of a session."""

    bind_point: int
    allocation: Allocation

    @property
    def content(self) -> memoryview:
        return self.allocation.view(0, self.allocation.size_bytes)

    @property
    def is_statistics(self) -> bool:
        return self.bind_point == _STATISTICS_POINT


class GraphReports:
    """``session_memory`` lets the host read the memory of sessions. ``statistics_mode`` (0 or 1) asks for statistics of
    neural accelerators, and ``debug_database`` for what describes their work."""

    def __init__(self, *, session_memory: bool, statistics_mode: int | None, debug_database: bool) -> None:
        self._session_memory = session_memory
        self._mode = statistics_mode
        self._neural = statistics_mode is not None or debug_database
        self._memories: dict[int, list[SessionMemory]] = {}

    def required(self, physical: PhysicalDevice, disabled_extensions: Collection[str]) -> Enabled:
        """What a device must be opened with. Raises UnsupportedError for what it lacks."""
        if not self._neural:
            return Enabled(frozenset(), frozenset())
        feature = physical.features.find(*_NEURAL_FEATURE)
        if feature is None or NEURAL_EXTENSION in disabled_extensions:
            reason = "which --disable-extension turns off" if feature is not None else f"which {physical.name!r} lacks"
            raise errors.UnsupportedError(
                f"neural statistics and debug databases need the extension {NEURAL_EXTENSION}, {reason}",
                help="run without the --neural options, or on a device that has it",
            )
        return Enabled(frozenset({feature}), frozenset({NEURAL_EXTENSION}))

    def pipeline_info(self, info: Any) -> Any:
        """A VkDataGraphPipelineCreateInfoARM that allows what is asked for."""
        if self._mode is None:
            return info
        return chain(info, new("VkDataGraphPipelineNeuralStatisticsCreateInfoARM", allowNeuralStatistics=1))

    def session_info(self, info: Any) -> Any:
        """A VkDataGraphPipelineSessionCreateInfoARM that asks for it."""
        if self._mode is None:
            return info
        return chain(info, new("VkDataGraphPipelineSessionNeuralStatisticsCreateInfoARM", mode=MODES[self._mode]))

    def session_created(self, session: Any) -> None:
        """Forget the memory of an earlier session with this handle."""
        self._memories[_number(session)] = []

    def memory_flags(self, bind_point: int) -> int:
        """The properties that memory at this bind point must have, beyond what the session needs."""
        return _HOST if self._session_memory or bind_point == _STATISTICS_POINT else 0

    def memory_bound(self, session: Any, bind_point: int, allocation: Allocation) -> None:
        """This memory is the session's next object."""
        self._memories[_number(session)].append(SessionMemory(bind_point, allocation))

    def memories(self, session: Any) -> list[SessionMemory]:
        """The memory of a session, in the order of bind points and objects."""
        return self._memories[_number(session)]


def property_of(device: Device, pipeline: Any, wanted: int, label: str) -> bytes | None:
    """A property of a data graph pipeline, text without its terminating zero; None where the pipeline does not have it.

    Raises DeviceError."""
    query = new("VkDataGraphPipelineInfoARM", dataGraphPipeline=pipeline)
    name = "vkGetDataGraphPipelineAvailablePropertiesARM"
    if wanted not in enumerated("VkDataGraphPipelinePropertyARM", name, getattr(device.fn, name), device.handle, query):
        return None
    result = new("VkDataGraphPipelinePropertyQueryResultARM", property=wanted)
    name, get = "vkGetDataGraphPipelinePropertiesARM", device.fn.vkGetDataGraphPipelinePropertiesARM
    check(get(device.handle, query, 1, result), name, label)
    data = ffi.new("uint8_t[]", max(result.dataSize, 1))
    result.pData = data
    check(get(device.handle, query, 1, result), name, label)
    content = bytes(ffi.buffer(data, result.dataSize))
    return content.split(b"\0", 1)[0] if result.isText else content


def _number(handle: Any) -> int:
    return int(ffi.cast("uintptr_t", handle))
