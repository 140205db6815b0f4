"""Data graph pipelines and their sessions (VK_ARM_data_graph), and their reports after a run.

A driver copies a graph's constants from the mapped file into driver memory. Pages that were read stay resident, so a
500 MB model would count twice. `dropping_read_pages` drops these pages; a page that is read again comes from the
system's cache. The workload `graph-constants` (a file of 477 MiB) takes 618 MiB at most with this, 1094 MiB without, in
the same time.

Sources: Vulkan specification, "Data Graph Pipelines", VK_ARM_data_graph_neural_accelerator_statistics; the emulation
layers' documentation of VMEL_GRAPH_PROFILING.
"""

import mmap
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, ClassVar, Final, NamedTuple

from scenario_runner import errors
from scenario_runner.errors.text import one_line
from scenario_runner.plan.graph_records import GraphConstantPlan, GraphPipelinePlan, OpticalFlowPlan
from scenario_runner.plan.sources import in_memory
from scenario_runner.processes import system_limits
from scenario_runner.vulkan import Handle, ffi
from scenario_runner.vulkan._generated import constants as vk
from scenario_runner.vulkan.capabilities import Enabled
from scenario_runner.vulkan.device import Device
from scenario_runner.vulkan.memory import Allocation, allocate, choose_type
from scenario_runner.vulkan.physical_device import PhysicalDevice
from scenario_runner.vulkan.pipeline import PipelineCache, create_pipeline, create_shader_module
from scenario_runner.vulkan.resources import Resource
from scenario_runner.vulkan.tensors import describe, with_strides
from scenario_runner.vulkan.vulkan_api import chain, check, enumerated, new

NEURAL_EXTENSION: Final = "VK_ARM_data_graph_neural_accelerator_statistics"
_NEURAL_FEATURE: Final = (
    "VkPhysicalDeviceDataGraphNeuralAcceleratorStatisticsFeaturesARM",
    "dataGraphNeuralAcceleratorStatistics",
)
DEBUG_DATABASE: Final = vk.DATA_GRAPH_PIPELINE_PROPERTY_NEURAL_ACCELERATOR_DEBUG_DATABASE_ARM
EMULATION_PROFILE: Final = 0x7FFFFFFE
"""A property of the emulation layers: their measurements as JSON."""
_STATISTICS_POINT: Final = vk.DATA_GRAPH_PIPELINE_SESSION_BIND_POINT_NEURAL_ACCELERATOR_STATISTICS_ARM
MODES: Final = (
    vk.NEURAL_ACCELERATOR_STATISTICS_MODE_STATISTICS0_ARM,
    vk.NEURAL_ACCELERATOR_STATISTICS_MODE_STATISTICS1_ARM,
)
_HOST: Final = vk.MEMORY_PROPERTY_HOST_VISIBLE_BIT | vk.MEMORY_PROPERTY_HOST_COHERENT_BIT


class SessionMemory(NamedTuple):
    """One object at a bind point of a session."""

    bind_point: int
    allocation: Allocation

    @property
    def content(self) -> memoryview:
        return self.allocation.view(0, self.allocation.size_bytes)

    @property
    def is_statistics(self) -> bool:
        return self.bind_point == _STATISTICS_POINT


class GraphReports:
    """Requested reports about graphs.

    ``session_memory`` lets the host read session memory. ``statistics_mode`` (0 or 1) asks for statistics of neural
    accelerators, ``debug_database`` for a description of their work.
    """

    def __init__(self, *, session_memory: bool, statistics_mode: int | None, debug_database: bool) -> None:
        self._session_memory = session_memory
        self._mode = statistics_mode
        self._neural = statistics_mode is not None or debug_database

    def required(self, physical: PhysicalDevice, disabled_extensions: Collection[str]) -> Enabled:
        """Return the features and extensions for opening a device. Raises UnsupportedError with the missing ones."""
        if not self._neural:
            return Enabled()
        feature = physical.features.find(*_NEURAL_FEATURE)
        if feature is None or NEURAL_EXTENSION in disabled_extensions:
            reason = "which --disable-extension turns off" if feature is not None else f"which {physical.name!r} lacks"
            raise errors.UnsupportedError(
                f"neural statistics and debug databases need the extension {NEURAL_EXTENSION}, {reason}",
                help="run without the --neural options, or on a device that has it",
            )
        return Enabled.of([feature], [NEURAL_EXTENSION])

    def add_to_pipeline(self, info: Handle) -> None:
        """Allow the reports in a VkDataGraphPipelineCreateInfoARM."""
        if self._mode is not None:
            chain(info, new("VkDataGraphPipelineNeuralStatisticsCreateInfoARM", allowNeuralStatistics=1))

    def add_to_session(self, info: Handle) -> None:
        """Ask for the reports in a VkDataGraphPipelineSessionCreateInfoARM."""
        if self._mode is not None:
            chain(info, new("VkDataGraphPipelineSessionNeuralStatisticsCreateInfoARM", mode=MODES[self._mode]))

    def memory_flags(self, bind_point: int) -> int:
        """Return the memory properties that a bind point needs for the reports."""
        return _HOST if self._session_memory or bind_point == _STATISTICS_POINT else 0


def property_of(device: Device, pipeline: Handle, property_id: int, label: str) -> bytes | None:
    """Return a data graph pipeline's property, text without the final zero; None if the pipeline lacks it.

    Raises DeviceError.
    """
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


# A driver reads about 10 MB in this time. It reads first and then compiles, which may take long: the interval grows to
# this share of the time since the start.
_INTERVAL_S = 0.002
_SHARE = 1 / 64


@contextmanager
def dropping_read_pages(views: Iterable[memoryview]) -> Iterator[None]:
    """Drop the pages of mapped files in ``views`` repeatedly until the block ends."""
    mappings: set[mmap.mmap] = {view.obj for view in views if isinstance(view.obj, mmap.mmap)}
    if not hasattr(mmap, "MADV_DONTNEED") or not mappings:
        yield
        return
    done = threading.Event()
    start_s = time.monotonic()

    def drop() -> None:
        is_done = False
        while not is_done:
            is_done = done.wait(max(_INTERVAL_S, _SHARE * (time.monotonic() - start_s)))
            for mapping in mappings:
                mapping.madvise(mmap.MADV_DONTNEED)

    thread = threading.Thread(target=drop, name="drop-read-pages", daemon=True)
    system_limits.start(thread)
    try:
        yield
    finally:
        done.set()
        thread.join()


class DataGraph(ABC):
    """A data graph pipeline, and the session that all dispatches use in turn.

    ``session_bytes`` is the session's memory, ``size_bytes`` the constants' size.
    """

    kind: ClassVar[str]
    session_flags: ClassVar[int] = 0
    """VkDataGraphPipelineSessionCreateFlagBitsARM."""

    def __init__(self, pipelines: PipelineCache, plan: GraphPipelinePlan | OpticalFlowPlan, stack: ExitStack) -> None:
        """Create the pipeline, destroyed with ``stack``.

        Raises ShaderError, UnsupportedError, OutOfMemoryError or DeviceError.
        """
        self._device = pipelines.device
        self._plan = plan
        self.size_bytes = self.session_bytes = 0
        self.session: Handle = None
        self.memories: list[SessionMemory] = []
        self.layout: Handle = pipelines.layout(plan.set_layouts, 0, plan.label)
        self.handle: Handle = self._create(stack, plan)

    @abstractmethod
    def _create(self, stack: ExitStack, plan: Any) -> Handle:
        """Create the VkPipeline of a plan."""

    def _create_from(self, stack: ExitStack, resources: list[Handle], *structures: Handle) -> Handle:
        """Create the VkPipeline from resource infos and further structures."""
        info = new("VkDataGraphPipelineCreateInfoARM", layout=self.layout, pResourceInfos=resources)
        chain(info, *structures)
        if self._device.graph_reports is not None:
            self._device.graph_reports.add_to_pipeline(info)
        label = self._plan.label
        return create_pipeline(self._device, stack, "DataGraph", info, label, self._plan.pointer, label)

    def start(self, stack: ExitStack) -> None:
        """Create a new session, destroyed with ``stack``."""
        before = self._device.memory_bytes
        try:
            self._create_session(stack)
        except errors.ScenarioRunnerError as error:
            raise error.at(pointer=self._plan.pointer) from None
        self.session_bytes = self._device.memory_bytes - before

    def _create_session(self, stack: ExitStack) -> None:
        """Create a VkDataGraphPipelineSessionARM with memory at each bind point."""
        device = self._device
        info = new("VkDataGraphPipelineSessionCreateInfoARM", flags=self.session_flags, dataGraphPipeline=self.handle)
        if device.graph_reports is not None:
            device.graph_reports.add_to_session(info)
        memory = stack.enter_context(ExitStack())  # freed after the session is destroyed
        label = self._plan.label
        self.session = device.create(stack, "graph session", "DataGraphPipelineSessionARM", info, label)
        self.memories = []
        query = new("VkDataGraphPipelineSessionBindPointRequirementsInfoARM", session=self.session)
        name = "vkGetDataGraphPipelineSessionBindPointRequirementsARM"
        kind = "VkDataGraphPipelineSessionBindPointRequirementARM"
        for point in enumerated(kind, name, getattr(device.fn, name), device.handle, query):
            if point.bindPointType == vk.DATA_GRAPH_PIPELINE_SESSION_BIND_POINT_TYPE_MEMORY_ARM:
                for index in range(point.numObjects):
                    self._bind_memory(memory, point.bindPoint, index)

    def _bind_memory(self, stack: ExitStack, bind_point: int, index: int) -> None:
        """Bind memory to an object of the session. Memory for reports goes to ``memories``."""
        device, label = self._device, self._plan.label
        place = {"session": self.session, "bindPoint": bind_point, "objectIndex": index}
        needs = new("VkMemoryRequirements2")
        query = new("VkDataGraphPipelineSessionMemoryRequirementsInfoARM", **place)
        device.fn.vkGetDataGraphPipelineSessionMemoryRequirementsARM(device.handle, query, needs)
        requirements = needs.memoryRequirements
        if not requirements.size:
            return
        flags = 0 if device.graph_reports is None else device.graph_reports.memory_flags(bind_point)
        type_index = choose_type(device, requirements.memoryTypeBits, flags, vk.MEMORY_PROPERTY_DEVICE_LOCAL_BIT)
        if type_index is None:
            seen = " that the host sees" if flags else ""
            message = f"{device.physical.name!r} has no memory type{seen} for the session of {label}"
            raise errors.UnsupportedError(message)
        memory = allocate(device, stack, requirements.size, type_index, f"the session of {label}", mapped=bool(flags))
        bind = new("VkBindDataGraphPipelineSessionMemoryInfoARM", **place, memory=memory.handle)
        code = device.fn.vkBindDataGraphPipelineSessionMemoryARM(device.handle, 1, bind)
        check(code, "vkBindDataGraphPipelineSessionMemoryARM", label)
        if flags:
            self.memories.append(SessionMemory(bind_point, memory))


class GraphPipeline(DataGraph):
    """The pipeline for a SPIR-V graph with constants."""

    kind = "graph"

    def _create(self, stack: ExitStack, plan: GraphPipelinePlan) -> Handle:
        self.size_bytes = sum(constant.size_bytes for constant in plan.constants)
        resources = [
            chain(
                new("VkDataGraphPipelineResourceInfoARM", descriptorSet=resource.set, binding=resource.binding),
                describe(resource.description, vk.TENSOR_USAGE_DATA_GRAPH_BIT_ARM),
            )
            for resource in plan.resources
        ]
        with ExitStack() as modules:
            views = modules.enter_context(in_memory(constant.data for constant in plan.constants))
            shader = new(
                "VkDataGraphPipelineShaderModuleCreateInfoARM",
                module=create_shader_module(self._device, modules, plan.code, plan.label),
                pName=plan.entry,
                pConstants=[_constant(constant, view) for constant, view in zip(plan.constants, views, strict=True)],
            )
            with dropping_read_pages(views):
                return self._create_from(stack, resources, shader)


def graph_pipeline(
    pipelines: PipelineCache, plan: GraphPipelinePlan, resources: Mapping[str, Resource]
) -> GraphPipeline:
    """Return a graph's pipeline with session, created now if new.

    ``resources`` belong to the run: the images' rows decide the strides of tensors over them. Raises the errors of
    `DataGraph`.
    """

    def create(pipelines: PipelineCache, plan: GraphPipelinePlan, stack: ExitStack) -> GraphPipeline:
        pipeline = GraphPipeline(pipelines, plan, stack)
        pipeline.start(stack)
        return pipeline

    known = (
        resource._replace(description=with_strides(resource.description, resources)) for resource in plan.resources
    )
    plan = plan._replace(resources=tuple(known))
    return pipelines.get_or_create(pipelines.graphs, plan, one_line(plan.label), "graph", plan.name, create)


def _constant(plan: GraphConstantPlan, data: memoryview) -> Handle:
    constant = new("VkDataGraphPipelineConstantARM", id=plan.id, pConstantData=data)
    chain(constant, describe(plan.description, vk.TENSOR_USAGE_DATA_GRAPH_BIT_ARM))
    if plan.sparsity_dimension is not None:
        structure = "VkDataGraphPipelineConstantTensorSemiStructuredSparsityInfoARM"
        # 2:4 sparsity: two of four elements are zero
        chain(constant, new(structure, dimension=plan.sparsity_dimension, zeroCount=2, groupSize=4))
    return constant
