"""Data graph pipelines and their sessions (VK_ARM_data_graph), and what they report after a run.

A driver copies the constants of a graph from the mapped file into memory of its own. Pages that it has read stay
resident, so that a model of 500 MB would count twice; `read_once` drops them, and one that is read again comes back
from the system's cache. Measured with the workload `graph-constants`, a file of 477 MiB: 618 MiB at most with this,
1094 MiB without it, in the same time.

Sources: Vulkan specification, "Data Graph Pipelines", VK_ARM_data_graph_neural_accelerator_statistics; the emulation
layers' documentation of VMEL_GRAPH_PROFILING.
"""

from __future__ import annotations

import mmap
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, Final, NamedTuple

from scenario_runner import errors, system_limits
from scenario_runner.plan.sources import in_memory
from scenario_runner.plan.special_records import GraphConstantPlan, GraphPipelinePlan
from scenario_runner.text import one_line
from scenario_runner.vulkan import ffi
from scenario_runner.vulkan._generated import constants as vk
from scenario_runner.vulkan.device import Device
from scenario_runner.vulkan.loader import check
from scenario_runner.vulkan.memory import Allocation, allocate, choose_type
from scenario_runner.vulkan.physical_device import PhysicalDevice
from scenario_runner.vulkan.pipeline import PipelineCache, create_shader_module, created
from scenario_runner.vulkan.requirements import Enabled
from scenario_runner.vulkan.structs import chain, enumerated, new
from scenario_runner.vulkan.tensors import describe, settled

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

    def required(self, physical: PhysicalDevice, disabled_extensions: Collection[str]) -> Enabled:
        """The requirements that a device must be opened with. Raises UnsupportedError for what it lacks."""
        if not self._neural:
            return Enabled()
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

    def memory_flags(self, bind_point: int) -> int:
        """The properties that memory at this bind point must have, beyond what the session needs."""
        return _HOST if self._session_memory or bind_point == _STATISTICS_POINT else 0


def property_of(device: Device, pipeline: Any, property_id: int, label: str) -> bytes | None:
    """A property of a data graph pipeline, text without its terminating zero; None where the pipeline does not have it.

    Raises DeviceError."""
    query = new("VkDataGraphPipelineInfoARM", dataGraphPipeline=pipeline)
    name = "vkGetDataGraphPipelineAvailablePropertiesARM"
    if property_id not in enumerated("int32_t", name, getattr(device.fn, name), device.handle, query):
        return None
    result = new("VkDataGraphPipelinePropertyQueryResultARM", property=property_id)
    name, get = "vkGetDataGraphPipelinePropertiesARM", device.fn.vkGetDataGraphPipelinePropertiesARM
    check(get(device.handle, query, 1, result), name, label)
    data = ffi.new("uint8_t[]", max(result.dataSize, 1))
    result.pData = data
    check(get(device.handle, query, 1, result), name, label)
    content = bytes(ffi.buffer(data, result.dataSize))
    return content.split(b"\0", 1)[0] if result.isText else content


def create_session(
    device: Device, stack: ExitStack, pipeline: Any, label: str, flags: int = 0
) -> tuple[Any, list[SessionMemory]]:
    """A VkDataGraphPipelineSessionARM with memory at each of its bind points; it lives as long as ``stack``.

    Memory that reports are about comes with it, in the order of bind points and objects.

    ``flags`` are VkDataGraphPipelineSessionCreateFlagBitsARM. Raises UnsupportedError, OutOfMemoryError or DeviceError.
    """
    info = new("VkDataGraphPipelineSessionCreateInfoARM", flags=flags, dataGraphPipeline=pipeline)
    reports = device.graph_reports
    if reports is not None:
        info = reports.session_info(info)
    memory = stack.enter_context(ExitStack())  # freed after the session is destroyed
    session = device.create(stack, "graph session", "DataGraphPipelineSessionARM", info, label)
    query = new("VkDataGraphPipelineSessionBindPointRequirementsInfoARM", session=session)
    name = "vkGetDataGraphPipelineSessionBindPointRequirementsARM"
    kind = "VkDataGraphPipelineSessionBindPointRequirementARM"
    memories: list[SessionMemory] = []
    for point in enumerated(kind, name, getattr(device.fn, name), device.handle, query):
        if point.bindPointType == vk.DATA_GRAPH_PIPELINE_SESSION_BIND_POINT_TYPE_MEMORY_ARM:
            for index in range(point.numObjects):
                memories += _bind_memory(device, memory, session, point.bindPoint, index, label)
    return session, memories


def _bind_memory(
    device: Device, stack: ExitStack, session: Any, bind_point: int, index: int, label: str
) -> list[SessionMemory]:
    """Give an object of a session its memory; returns it where it is reported."""
    needs = new("VkMemoryRequirements2")
    query = new(
        "VkDataGraphPipelineSessionMemoryRequirementsInfoARM",
        session=session,
        bindPoint=bind_point,
        objectIndex=index,
    )
    device.fn.vkGetDataGraphPipelineSessionMemoryRequirementsARM(device.handle, query, needs)
    requirements = needs.memoryRequirements
    if not requirements.size:
        return []
    reports = device.graph_reports
    flags = 0 if reports is None else reports.memory_flags(bind_point)
    type_index = choose_type(device, requirements.memoryTypeBits, flags, vk.MEMORY_PROPERTY_DEVICE_LOCAL_BIT)
    if type_index is None:
        seen = " that the host sees" if flags else ""
        raise errors.UnsupportedError(f"{device.physical.name!r} has no memory type{seen} for the session of {label}")
    memory = allocate(device, stack, requirements.size, type_index, f"the session of {label}", mapped=bool(flags))
    bind = new(
        "VkBindDataGraphPipelineSessionMemoryInfoARM",
        session=session,
        bindPoint=bind_point,
        objectIndex=index,
        memory=memory.handle,
    )
    code = device.fn.vkBindDataGraphPipelineSessionMemoryARM(device.handle, 1, bind)
    check(code, "vkBindDataGraphPipelineSessionMemoryARM", label)
    return [SessionMemory(bind_point, memory)] if flags else []


def create_graph_pipeline(device: Device, stack: ExitStack, info: Any, label: str, pointer: str) -> Any:
    """A VkPipeline of VkDataGraphPipelineCreateInfoARM, destroyed with ``stack``. Raises DeviceError."""
    if device.graph_reports is not None:
        info = device.graph_reports.pipeline_info(info)
    handle = ffi.new("VkPipeline*")
    create, owner = device.fn.vkCreateDataGraphPipelinesARM, device.handle
    code = created(
        device,
        lambda cache, info: create(owner, ffi.NULL, cache, 1, info, ffi.NULL, handle),
        info,
        label,
        pointer,
        stages=0,
    )
    check(code, "vkCreateDataGraphPipelinesARM", label)
    device.own(stack, "graph pipeline", device.fn.vkDestroyPipeline, handle[0])
    return handle[0]


# Below this much, the thread costs more than it saves.
_WORTHWHILE_BYTES = 64 << 20
# Bytes that a driver reads in the meantime: about 10 MB.
_INTERVAL_S = 0.002


@contextmanager
def read_once(views: Iterable[memoryview]) -> Iterator[None]:
    """Drop pages of the files that ``views`` are mapped from, again and again until the block ends."""
    views = list(views)
    mappings = _mappings(views) if sum(view.nbytes for view in views) >= _WORTHWHILE_BYTES else []
    if not mappings:
        yield
        return
    done = threading.Event()

    def drop() -> None:
        while not done.wait(_INTERVAL_S):
            _drop(mappings)

    thread = threading.Thread(target=drop, name="drop-read-pages", daemon=True)
    system_limits.start(thread)
    try:
        yield
    finally:
        done.set()
        thread.join()
        _drop(mappings)


def _mappings(views: Iterable[memoryview]) -> list[Any]:
    """The mmap objects under the views, where the system can drop pages of them."""
    if not hasattr(mmap, "MADV_DONTNEED"):
        return []
    mappings: dict[int, Any] = {id(view.obj): view.obj for view in views if isinstance(view.obj, mmap.mmap)}
    return list(mappings.values())


def _drop(mappings: Iterable[Any]) -> None:
    for mapping in mappings:
        mapping.madvise(mmap.MADV_DONTNEED)


# 2:4 semi-structured sparsity: two of four elements are zero.
_ZEROS, _GROUP = 2, 4


class GraphPipeline:
    """A data graph pipeline and the session that all of its dispatches use, one after the other.

    ``session_bytes`` is the memory of the session, ``size_bytes`` that of the constants.
    """

    kind = "graph"

    def __init__(self, pipelines: PipelineCache, plan: GraphPipelinePlan, stack: ExitStack) -> None:
        """Everything is destroyed with ``stack``. Raises ShaderError, UnsupportedError, OutOfMemoryError or
        DeviceError."""
        device = pipelines.device
        self.size_bytes = sum(constant.data.size_bytes for constant in plan.constants)
        self.layout: Any = pipelines.layout(plan.set_layouts, 0, plan.label)
        self.handle: Any = _create(device, stack, plan, self.layout)
        before = device.memory_bytes
        self.session, self.memories = create_session(device, stack, self.handle, plan.label)
        self.session_bytes = device.memory_bytes - before


def graph_pipeline(pipelines: PipelineCache, plan: GraphPipelinePlan, resources: Mapping[str, Any]) -> GraphPipeline:
    """The pipeline of a graph, made now if it is new. Raises what `GraphPipeline` raises, with the place.

    ``resources`` are those of the run; how the texels of its images lie decides about tensors that see them.
    """
    if any(resource.description.image is not None for resource in plan.resources):
        known = (resource._replace(description=settled(resource.description, resources)) for resource in plan.resources)
        plan = plan._replace(resources=tuple(known))
    return pipelines.graph(plan, one_line(plan.label), plan.name, GraphPipeline)


def _create(device: Device, stack: ExitStack, plan: GraphPipelinePlan, layout: Any) -> Any:
    infos = [
        chain(
            new("VkDataGraphPipelineResourceInfoARM", descriptorSet=resource.set, binding=resource.binding),
            describe(resource.description, vk.TENSOR_USAGE_DATA_GRAPH_BIT_ARM),
        )
        for resource in plan.resources
    ]
    with ExitStack() as module_stack:
        views = module_stack.enter_context(in_memory(constant.data for constant in plan.constants))
        constants = [_constant(constant, view) for constant, view in zip(plan.constants, views, strict=True)]
        module = create_shader_module(device, module_stack, plan.code, plan.label)
        shader = new(
            "VkDataGraphPipelineShaderModuleCreateInfoARM", module=module, pName=plan.entry, pConstants=constants
        )
        info = chain(new("VkDataGraphPipelineCreateInfoARM", layout=layout, pResourceInfos=infos), shader)
        with read_once(views):
            return create_graph_pipeline(device, stack, info, plan.label, plan.pointer)


def _constant(plan: GraphConstantPlan, data: memoryview) -> Any:
    description = describe(plan.description, vk.TENSOR_USAGE_DATA_GRAPH_BIT_ARM)
    if plan.sparsity_dimension is not None:
        sparsity = new(
            "VkDataGraphPipelineConstantTensorSemiStructuredSparsityInfoARM",
            dimension=plan.sparsity_dimension,
            zeroCount=_ZEROS,
            groupSize=_GROUP,
        )
        chain(description, sparsity)
    constant = new("VkDataGraphPipelineConstantARM", id=plan.id, pConstantData=data)
    return chain(constant, description)
