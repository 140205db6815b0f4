"""Optical flows (VK_ARM_data_graph_optical_flow): support of a device, and pipelines with their sessions."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import Final, NamedTuple

from scenario_runner.errors.diagnostic import Diagnostic, error
from scenario_runner.files.vk_formats import all_formats, format_of_value
from scenario_runner.plan.graph_records import Connection, GraphPipelinePlan, OpticalFlowDispatch, OpticalFlowPlan
from scenario_runner.plan.plan import Plan
from scenario_runner.vulkan import Handle, ffi
from scenario_runner.vulkan._generated import constants as vk
from scenario_runner.vulkan.graph_pipelines import DataGraph, graph_pipeline
from scenario_runner.vulkan.physical_device import PhysicalDevice
from scenario_runner.vulkan.pipeline import PipelineCache
from scenario_runner.vulkan.resources import Resource
from scenario_runner.vulkan.vulkan_api import chain, check, enumerated, new

IMAGE_USAGES: Final[dict[Connection, int]] = {
    "input": vk.DATA_GRAPH_OPTICAL_FLOW_IMAGE_USAGE_INPUT_BIT_ARM,
    "reference": vk.DATA_GRAPH_OPTICAL_FLOW_IMAGE_USAGE_INPUT_BIT_ARM,
    "hint": vk.DATA_GRAPH_OPTICAL_FLOW_IMAGE_USAGE_HINT_BIT_ARM,
    "flow_vector": vk.DATA_GRAPH_OPTICAL_FLOW_IMAGE_USAGE_OUTPUT_BIT_ARM,
    "cost": vk.DATA_GRAPH_OPTICAL_FLOW_IMAGE_USAGE_COST_BIT_ARM,
}
"""VkDataGraphOpticalFlowImageUsageFlagBitsARM of each connection."""
GRIDS: Final = {
    1: vk.DATA_GRAPH_OPTICAL_FLOW_GRID_SIZE_1X1_BIT_ARM,
    2: vk.DATA_GRAPH_OPTICAL_FLOW_GRID_SIZE_2X2_BIT_ARM,
    4: vk.DATA_GRAPH_OPTICAL_FLOW_GRID_SIZE_4X4_BIT_ARM,
    8: vk.DATA_GRAPH_OPTICAL_FLOW_GRID_SIZE_8X8_BIT_ARM,
}
"""Texels along one side of a vector's area → VkDataGraphOpticalFlowGridSizeFlagBitsARM."""


class FlowSupport(NamedTuple):
    """Support of a queue family: VkQueueFamilyDataGraphOpticalFlowPropertiesARM, and the VkFormats of each image
    usage."""

    properties: Handle
    formats: dict[int, tuple[int, ...]]


def flow_problems(plan: Plan, physical: PhysicalDevice) -> list[Diagnostic]:
    """List the requirements of the plan's optical flows that ``physical``, which has the extension, does not meet."""
    flows = [pipeline for pipeline in plan.graph_pipelines if pipeline.kind == "optical_flow"]
    family = physical.queue_family(graphics=plan.requirements.graphics is not None)
    assert family is not None, "`enabled_for` refuses a device without"
    support = flow_support(physical, family)
    if support is None:
        message = f"{physical.name!r} offers no optical flow on its queue family {family}, which has compute"
        return [error("SR-FEATURE-002", flow.pointer, f"{flow.label}: {message}") for flow in flows]
    return [problem for flow in flows for problem in problems_of(flow, support, physical.name)]


def flow_support(physical: PhysicalDevice, family: int) -> FlowSupport | None:
    """Query the optical flows of a queue family; None if it does not support them."""
    name = "vkGetPhysicalDeviceQueueFamilyDataGraphPropertiesARM"
    operations = enumerated(
        "VkQueueFamilyDataGraphPropertiesARM", name, getattr(physical.fn, name), physical.handle, family
    )
    optical_flow = vk.PHYSICAL_DEVICE_DATA_GRAPH_OPERATION_TYPE_OPTICAL_FLOW_ARM
    indices = [index for index, row in enumerate(operations) if row.operation.operationType == optical_flow]
    if not indices:
        return None
    operation, properties = operations + indices[0], new("VkQueueFamilyDataGraphOpticalFlowPropertiesARM")
    name = "vkGetPhysicalDeviceQueueFamilyDataGraphEngineOperationPropertiesARM"
    base = ffi.cast("VkBaseOutStructure*", properties)
    check(getattr(physical.fn, name)(physical.handle, family, operation, base), name, physical.name)
    usages = sorted(set(IMAGE_USAGES.values()))
    return FlowSupport(properties, {usage: _formats(physical, family, operation, usage) for usage in usages})


def _formats(physical: PhysicalDevice, family: int, operation: Handle, usage: int) -> tuple[int, ...]:
    """Return the VkFormats for images of a usage."""
    name = "vkGetPhysicalDeviceQueueFamilyDataGraphOpticalFlowImageFormatsARM"
    info = new("VkDataGraphOpticalFlowImageFormatInfoARM", usage=usage)
    kind = "VkDataGraphOpticalFlowImageFormatPropertiesARM"
    formats = enumerated(kind, name, getattr(physical.fn, name), physical.handle, family, operation, info)
    return tuple(format_.format for format_ in formats)


def problems_of(flow: OpticalFlowPlan, support: FlowSupport, device: str) -> Iterator[Diagnostic]:
    """Find an optical flow's requirements that a device called ``device`` does not support."""
    has = support.properties
    if not (has.minWidth <= flow.width <= has.maxWidth and has.minHeight <= flow.height <= has.maxHeight):
        takes = f"{has.minWidth} x {has.minHeight} to {has.maxWidth} x {has.maxHeight}"
        message = f"{flow.label} has {flow.width} x {flow.height} texels; {device!r} takes {takes}"
        yield error("SR-FLOW-007", f"{flow.pointer}/width", message)
    grid = f"{flow.grid}x{flow.grid}"
    size = GRIDS[flow.grid]
    lacking = []
    if not has.supportedOutputGridSizes & size:
        lacking.append((f"the grid size {grid}", f"{flow.pointer}/grid_size"))
    for connection in flow.resources:
        if connection.connection == "hint" and not (
            has.hintSupported and has.supportedHintGridSizes & GRIDS[flow.grid]
        ):
            of_size = f" of the grid size {grid}" if has.hintSupported else ""
            lacking.append((f"hint_motion_vectors{of_size}", connection.pointer))
        elif connection.connection == "cost" and not has.costSupported:
            lacking.append(("output_cost", connection.pointer))
        elif connection.format not in (known := support.formats[IMAGE_USAGES[connection.connection]]):
            names = ", ".join(sorted(format_.name for format_ in all_formats() if format_.value in known))
            image = f"image {connection.uid!r} of {format_of_value(connection.format).name}"
            what = connection.connection.replace("_", " ")
            message = f"{flow.label}: {image} cannot be its {what} on {device!r}"
            help = f"supported formats: {names}" if names else None
            yield error("SR-FEATURE-003", connection.pointer, message, help)
    for what, pointer in lacking:
        yield error("SR-FEATURE-002", pointer, f"{flow.label} has {what}, which {device!r} does not support")


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


class OpticalFlowPipeline(DataGraph):
    """The pipeline for an optical flow. Each image sequence begins with a new session.

    A session remembers images as hints for the next images (see disable_temporal_hints). A session kept between runs
    would therefore change the second run's results.
    """

    kind = "optical_flow"
    session_flags = vk.DATA_GRAPH_PIPELINE_SESSION_CREATE_OPTICAL_FLOW_CACHE_BIT_ARM

    def _create(self, stack: ExitStack, plan: OpticalFlowPlan) -> Handle:
        resources = [
            chain(
                new("VkDataGraphPipelineResourceInfoARM", descriptorSet=connection.set, binding=connection.binding),
                new("VkDataGraphPipelineResourceInfoImageLayoutARM", layout=vk.IMAGE_LAYOUT_GENERAL),
            )
            for connection in plan.resources
        ]
        connections = [
            new(
                "VkDataGraphPipelineSingleNodeConnectionARM",
                set=connection.set,
                binding=connection.binding,
                connection=_CONNECTIONS[connection.connection],
            )
            for connection in plan.resources
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
        return self._create_from(stack, resources, node, flow)


def dispatch_info(operation: OpticalFlowDispatch) -> Handle:
    """Return the VkDataGraphPipelineDispatchInfoARM of a dispatch."""
    flow = new(
        "VkDataGraphPipelineOpticalFlowDispatchInfoARM",
        flags=sum(_FLAGS[flag] for flag in operation.flags),
        meanFlowL1NormHint=operation.mean_flow_l1_norm_hint,
    )
    return chain(new("VkDataGraphPipelineDispatchInfoARM"), flow)


def pipeline_of(
    cache: PipelineCache, resources: Mapping[str, Resource], plan: GraphPipelinePlan | OpticalFlowPlan
) -> DataGraph:
    """Return the pipeline of a graph or flow, created now if it is new. Raises errors of `DataGraph`."""
    if plan.kind == "optical_flow":
        return cache.get_or_create(cache.graphs, plan, plan.label, "optical flow", plan.label, OpticalFlowPipeline)
    return graph_pipeline(cache, plan, resources)
