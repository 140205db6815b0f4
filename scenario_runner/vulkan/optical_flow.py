"""Optical flows (VK_ARM_data_graph_optical_flow): support of a device, pipelines, sessions and copies of their inputs.

The ML emulation layers sample the pictures of an optical flow with unnormalized coordinates. That is allowed with any
view of a single level, but where this is not the first level of its image, llvmpipe of Mesa 25 reads none of its texels
(seen with 25.0.7; 22.3.6 is right). On llvmpipe such a level is copied into an image that has no other, before each
optical flow that reads it (`flow_inputs`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import Any, Final, NamedTuple

from scenario_runner import errors
from scenario_runner.diagnostics import Diagnostic, error
from scenario_runner.formats import all_formats, format_of_value
from scenario_runner.plan.plan import Plan
from scenario_runner.plan.records import Descriptor
from scenario_runner.plan.special_records import Connection, FlowConnection, OpticalFlowDispatch, OpticalFlowPlan
from scenario_runner.vulkan import ffi
from scenario_runner.vulkan._generated import constants as vk
from scenario_runner.vulkan.companion_image import CompanionImage
from scenario_runner.vulkan.device import Device
from scenario_runner.vulkan.graph_pipelines import SessionMemory, create_graph_pipeline, create_session
from scenario_runner.vulkan.image_support import usage_flags
from scenario_runner.vulkan.loader import check
from scenario_runner.vulkan.physical_device import PhysicalDevice
from scenario_runner.vulkan.pipeline import PipelineCache, allocate_sets
from scenario_runner.vulkan.structs import chain, enumerated, new

IMAGE_USAGES: Final[dict[Connection, int]] = {
    "input": vk.DATA_GRAPH_OPTICAL_FLOW_IMAGE_USAGE_INPUT_BIT_ARM,
    "reference": vk.DATA_GRAPH_OPTICAL_FLOW_IMAGE_USAGE_INPUT_BIT_ARM,
    "hint": vk.DATA_GRAPH_OPTICAL_FLOW_IMAGE_USAGE_HINT_BIT_ARM,
    "flow_vector": vk.DATA_GRAPH_OPTICAL_FLOW_IMAGE_USAGE_OUTPUT_BIT_ARM,
    "cost": vk.DATA_GRAPH_OPTICAL_FLOW_IMAGE_USAGE_COST_BIT_ARM,
}
"""VkDataGraphOpticalFlowImageUsageFlagBitsARM of what is connected."""
GRIDS: Final = {
    1: vk.DATA_GRAPH_OPTICAL_FLOW_GRID_SIZE_1X1_BIT_ARM,
    2: vk.DATA_GRAPH_OPTICAL_FLOW_GRID_SIZE_2X2_BIT_ARM,
    4: vk.DATA_GRAPH_OPTICAL_FLOW_GRID_SIZE_4X4_BIT_ARM,
    8: vk.DATA_GRAPH_OPTICAL_FLOW_GRID_SIZE_8X8_BIT_ARM,
}
"""Texels along one side of the area of a vector → VkDataGraphOpticalFlowGridSizeFlagBitsARM."""


class FlowSupport(NamedTuple):
    """Capabilities of a queue family; grids as in `GRIDS`, sizes in texels, ``formats`` are VkFormats."""

    grids: int
    hint_grids: int
    hints: bool
    costs: bool
    min_extent: tuple[int, int]
    max_extent: tuple[int, int]
    formats: dict[int, tuple[int, ...]]


def flow_problems(plan: Plan, physical: PhysicalDevice) -> list[Diagnostic]:
    """Everything that the optical flows of ``plan`` need and ``physical``, which has the extension, does not offer."""
    flows = [pipeline for pipeline in plan.graph_pipelines if pipeline.kind == "optical_flow"]
    if not flows:
        return []
    family = physical.queue_family(graphics=plan.requirements.graphics is not None)
    assert family is not None, "`enabled_for` refuses a device without"
    support = flow_support(physical, family)
    if support is None:
        message = f"{physical.name!r} offers no optical flow on its queue family {family}, which has compute"
        return [error("SR-FEATURE-002", flow.pointer, f"{flow.label}: {message}") for flow in flows]
    return [problem for flow in flows for problem in problems_of(flow, support, physical.name)]


def flow_support(physical: PhysicalDevice, family: int) -> FlowSupport | None:
    """Query the optical flows of a queue family; None where it has no such operation."""
    name = "vkGetPhysicalDeviceQueueFamilyDataGraphPropertiesARM"
    ask = getattr(physical.fn, name)
    operations = enumerated("VkQueueFamilyDataGraphPropertiesARM", name, ask, physical.handle, family)
    for index, operation in enumerate(operations):
        if operation.operation.operationType == vk.PHYSICAL_DEVICE_DATA_GRAPH_OPERATION_TYPE_OPTICAL_FLOW_ARM:
            return _support(physical, family, operations + index)
    return None


def _support(physical: PhysicalDevice, family: int, operation: Any) -> FlowSupport:
    fn = physical.fn
    properties = new("VkQueueFamilyDataGraphOpticalFlowPropertiesARM")
    code = fn.vkGetPhysicalDeviceQueueFamilyDataGraphEngineOperationPropertiesARM(
        physical.handle, family, operation, ffi.cast("VkBaseOutStructure*", properties)
    )
    check(code, "vkGetPhysicalDeviceQueueFamilyDataGraphEngineOperationPropertiesARM", physical.name)
    usages = sorted(set(IMAGE_USAGES.values()))
    return FlowSupport(
        properties.supportedOutputGridSizes,
        properties.supportedHintGridSizes,
        bool(properties.hintSupported),
        bool(properties.costSupported),
        (properties.minWidth, properties.minHeight),
        (properties.maxWidth, properties.maxHeight),
        {usage: _formats(physical, family, operation, usage) for usage in usages},
    )


def _formats(physical: PhysicalDevice, family: int, operation: Any, usage: int) -> tuple[int, ...]:
    """The VkFormats that images of a usage may have."""
    name = "vkGetPhysicalDeviceQueueFamilyDataGraphOpticalFlowImageFormatsARM"
    info = new("VkDataGraphOpticalFlowImageFormatInfoARM", usage=usage)
    kind = "VkDataGraphOpticalFlowImageFormatPropertiesARM"
    formats = enumerated(kind, name, getattr(physical.fn, name), physical.handle, family, operation, info)
    return tuple(format_.format for format_ in formats)


def problems_of(flow: OpticalFlowPlan, support: FlowSupport, device: str) -> Iterator[Diagnostic]:
    """Find what an optical flow needs and a device with this support, called ``device``, does not offer."""
    (least_width, least_height), (most_width, most_height) = support.min_extent, support.max_extent
    if not (least_width <= flow.width <= most_width and least_height <= flow.height <= most_height):
        yield error(
            "SR-FLOW-007",
            f"{flow.pointer}/width",
            f"{flow.label} has {flow.width} x {flow.height} texels; {device!r} takes {least_width} x"
            f" {least_height} to {most_width} x {most_height}",
        )
    grid = f"{flow.grid}x{flow.grid}"
    if not support.grids & GRIDS[flow.grid]:
        yield _lacking(f"{flow.label} has the grid size {grid}", device, f"{flow.pointer}/grid_size")
    for connection in flow.connections:
        if connection.connection == "hint" and not (support.hints and support.hint_grids & GRIDS[flow.grid]):
            what = f"hint_motion_vectors of the grid size {grid}" if support.hints else "hint_motion_vectors"
            yield _lacking(f"{flow.label} has {what}", device, connection.pointer)
        elif connection.connection == "cost" and not support.costs:
            yield _lacking(f"{flow.label} has output_cost", device, connection.pointer)
        else:
            yield from _format_problems(flow, connection, support, device)


def _lacking(what: str, device: str, pointer: str) -> Diagnostic:
    return error("SR-FEATURE-002", pointer, f"{what}, which {device!r} does not support")


def _format_problems(
    flow: OpticalFlowPlan, connection: FlowConnection, support: FlowSupport, device: str
) -> Iterator[Diagnostic]:
    known = support.formats[IMAGE_USAGES[connection.connection]]
    if connection.format in known:
        return
    names = ", ".join(sorted(all_format_.name for all_format_ in all_formats() if all_format_.value in known))
    what = connection.connection.replace("_", " ")
    yield error(
        "SR-FEATURE-003",
        connection.pointer,
        f"{flow.label}: image {connection.uid!r} of {format_of_value(connection.format).name} cannot be its {what} on"
        f" {device!r}",
        f"formats that can be: {names}" if names else None,
    )


_CONNECTIONS: Final[dict[Connection, int]] = {
    "input": vk.DATA_GRAPH_PIPELINE_NODE_CONNECTION_TYPE_OPTICAL_FLOW_INPUT_ARM,
    "reference": vk.DATA_GRAPH_PIPELINE_NODE_CONNECTION_TYPE_OPTICAL_FLOW_REFERENCE_ARM,
    "hint": vk.DATA_GRAPH_PIPELINE_NODE_CONNECTION_TYPE_OPTICAL_FLOW_HINT_ARM,
    "flow_vector": vk.DATA_GRAPH_PIPELINE_NODE_CONNECTION_TYPE_OPTICAL_FLOW_FLOW_VECTOR_ARM,
    "cost": vk.DATA_GRAPH_PIPELINE_NODE_CONNECTION_TYPE_OPTICAL_FLOW_COST_ARM,
}
_LEVELS: Final = {
    "unknown": vk.DATA_GRAPH_OPTICAL_FLOW_PERFORMANCE_LEVEL_UNKNOWN_ARM,
    "slow": vk.DATA_GRAPH_OPTICAL_FLOW_PERFORMANCE_LEVEL_SLOW_ARM,
    "medium": vk.DATA_GRAPH_OPTICAL_FLOW_PERFORMANCE_LEVEL_MEDIUM_ARM,
    "fast": vk.DATA_GRAPH_OPTICAL_FLOW_PERFORMANCE_LEVEL_FAST_ARM,
}
_FLAGS: Final = {
    "disable_temporal_hints": vk.DATA_GRAPH_OPTICAL_FLOW_EXECUTE_DISABLE_TEMPORAL_HINTS_BIT_ARM,
    "input_unchanged": vk.DATA_GRAPH_OPTICAL_FLOW_EXECUTE_INPUT_UNCHANGED_BIT_ARM,
    "reference_unchanged": vk.DATA_GRAPH_OPTICAL_FLOW_EXECUTE_REFERENCE_UNCHANGED_BIT_ARM,
    "input_is_previous_reference": vk.DATA_GRAPH_OPTICAL_FLOW_EXECUTE_INPUT_IS_PREVIOUS_REFERENCE_BIT_ARM,
    "reference_is_previous_input": vk.DATA_GRAPH_OPTICAL_FLOW_EXECUTE_REFERENCE_IS_PREVIOUS_INPUT_BIT_ARM,
}


class OpticalFlowPipeline:
    """A pipeline; the session that the dispatches of one run share is made by `start`."""

    kind = "optical_flow"
    size_bytes = session_bytes = 0

    def __init__(self, pipelines: PipelineCache, plan: OpticalFlowPlan, stack: ExitStack) -> None:
        """The pipeline is destroyed with ``stack``. Raises UnsupportedError, OutOfMemoryError or DeviceError."""
        self._device = pipelines.device
        self._label, self._pointer = plan.label, plan.pointer
        self.session: Any = None
        self.memories: list[SessionMemory] = []
        self.layout: Any = pipelines.layout(plan.set_layouts, 0, plan.label)
        self.handle: Any = _create_flow(self._device, stack, plan, self.layout)

    def start(self, stack: ExitStack) -> None:
        """Begin a sequence of images: a new session, which has seen none yet, lives as long as ``stack``.

        What a session has seen gives hints for the next images (see disable_temporal_hints), so that a session that is
        kept from one run to the next would change the results of the second.
        """
        flags = vk.DATA_GRAPH_PIPELINE_SESSION_CREATE_OPTICAL_FLOW_CACHE_BIT_ARM
        try:
            before = self._device.memory_bytes
            self.session, self.memories = create_session(self._device, stack, self.handle, self._label, flags)
            self.session_bytes = self._device.memory_bytes - before
        except errors.ScenarioRunnerError as error:
            raise error.at(pointer=self._pointer) from None


def flow_pipeline(pipelines: PipelineCache, plan: OpticalFlowPlan, _resources: object) -> OpticalFlowPipeline:
    """The pipeline of an optical flow, made now if it is new. Raises what `OpticalFlowPipeline` raises."""
    return pipelines.graph(plan, plan.label, plan.label, OpticalFlowPipeline)


def dispatch_info(operation: OpticalFlowDispatch) -> Any:
    """The VkDataGraphPipelineDispatchInfoARM of a dispatch."""
    flow = new(
        "VkDataGraphPipelineOpticalFlowDispatchInfoARM",
        flags=sum(_FLAGS[flag] for flag in operation.flags),
        meanFlowL1NormHint=operation.mean_flow_l1_norm_hint,
    )
    return chain(new("VkDataGraphPipelineDispatchInfoARM"), flow)


def _create_flow(device: Device, stack: ExitStack, plan: OpticalFlowPlan, layout: Any) -> Any:
    infos = [
        chain(
            new("VkDataGraphPipelineResourceInfoARM", descriptorSet=connection.set, binding=connection.binding),
            new("VkDataGraphPipelineResourceInfoImageLayoutARM", layout=vk.IMAGE_LAYOUT_GENERAL),
        )
        for connection in plan.connections
    ]
    connections = [
        new(
            "VkDataGraphPipelineSingleNodeConnectionARM",
            set=connection.set,
            binding=connection.binding,
            connection=_CONNECTIONS[connection.connection],
        )
        for connection in plan.connections
    ]
    node = new(
        "VkDataGraphPipelineSingleNodeCreateInfoARM",
        nodeType=vk.DATA_GRAPH_PIPELINE_NODE_TYPE_OPTICAL_FLOW_ARM,
        pConnections=connections,
    )
    hint, cost = plan.format_of("hint"), plan.format_of("cost")
    flags = vk.DATA_GRAPH_OPTICAL_FLOW_CREATE_ENABLE_HINT_BIT_ARM if hint is not None else 0
    flags |= vk.DATA_GRAPH_OPTICAL_FLOW_CREATE_ENABLE_COST_BIT_ARM if cost is not None else 0
    flow = new(
        "VkDataGraphPipelineOpticalFlowCreateInfoARM",
        width=plan.width,
        height=plan.height,
        imageFormat=plan.format_of("input"),
        flowVectorFormat=plan.format_of("flow_vector"),
        costFormat=cost or 0,
        outputGridSize=GRIDS[plan.grid],
        hintGridSize=GRIDS[plan.grid] if hint is not None else 0,
        performanceLevel=_LEVELS[plan.performance_level],
        flags=flags,
    )
    info = chain(new("VkDataGraphPipelineCreateInfoARM", layout=layout, pResourceInfos=infos), node, flow)
    return create_graph_pipeline(device, stack, info, plan.label, plan.pointer)


class FlowInputs(NamedTuple):
    """The descriptor sets of an optical flow, (VkDescriptorSet*, count), and the images to fill before it."""

    sets: tuple[Any, int]
    copies: tuple[CompanionImage, ...]


class _WithCopies(NamedTuple):
    """A resource for `allocate_sets`: an image that has a copy in its place at some bindings."""

    image: Any
    copies: Mapping[int, CompanionImage]

    def write_descriptor(self, write: Any, descriptor: Descriptor) -> Any:
        info = self.image.write_descriptor(write, descriptor)
        copy = self.copies.get(descriptor.binding)
        if copy is not None:
            info.imageView, info.imageLayout = copy.view, copy.layout
        return info


def flow_inputs(
    pipelines: PipelineCache, stack: ExitStack, plan: Plan, resources: Mapping[str, Any]
) -> dict[int, FlowInputs]:
    """The replacements of the descriptor lists, by their index, of optical flows that read other levels than the first
    ones; nothing where the driver reads them rightly."""
    device = pipelines.device
    if device.physical.vulkan12_properties.driverID != vk.DRIVER_ID_MESA_LLVMPIPE:
        return {}
    flows = {
        operation.descriptors: plan.graph_pipelines[operation.pipeline]
        for frame in plan.frames
        for operation in frame.operations
        if operation.kind == "optical_flow_dispatch"
    }
    images: dict[tuple[str, int], CompanionImage] = {}
    inputs = {}
    for index, flow in flows.items():
        descriptors = plan.descriptor_lists[index]
        read = {connection.binding for connection in flow.resources if connection.reads}
        copies: dict[int, CompanionImage] = {}
        for descriptor in descriptors.descriptors:
            uid, level = descriptor.uid, descriptor.level
            if level and descriptor.binding in read:
                if (uid, level) not in images:
                    image = resources[uid]
                    usage = usage_flags(device, image.plan, "OPTIMAL")
                    images[uid, level] = CompanionImage(device, stack, image, level, usage, vk.IMAGE_LAYOUT_GENERAL)
                copies[descriptor.binding] = images[uid, level]
        if copies:
            seen: dict[str, Any] = {
                descriptor.uid: _WithCopies(resources[descriptor.uid], copies) for descriptor in descriptors.descriptors
            }
            (sets,) = allocate_sets(pipelines, stack, [descriptors], seen)
            inputs[index] = FlowInputs(sets, tuple(dict.fromkeys(copies.values())))
    return inputs
