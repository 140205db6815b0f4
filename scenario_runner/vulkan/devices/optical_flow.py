"""What a device offers optical flows, and what a plan asks of it (VK_ARM_data_graph_optical_flow)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from scenario_runner.diagnostics import Diagnostic, error
from scenario_runner.formats import all_formats, format_of_value
from scenario_runner.vulkan.api._generated import constants as vk
from scenario_runner.vulkan.api.arm_types import arm_ffi
from scenario_runner.vulkan.api.ffi import ffi
from scenario_runner.vulkan.api.result import check
from scenario_runner.vulkan.api.structs import new

if TYPE_CHECKING:
    from scenario_runner.plan.model.commands import Connection, FlowConnection, OpticalFlowPlan
    from scenario_runner.plan.model.plan import Plan
    from scenario_runner.vulkan.devices.physical_device import PhysicalDevice

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
    """What a queue family can do; grids as in `GRIDS`, sizes in texels, ``formats`` are VkFormats."""

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
    """What a queue family offers optical flows; None where it has no such operation."""
    arm, fn = arm_ffi(), physical.fn
    count = ffi.new("uint32_t*")
    name = "vkGetPhysicalDeviceQueueFamilyDataGraphPropertiesARM"
    ask = fn.vkGetPhysicalDeviceQueueFamilyDataGraphPropertiesARM
    check(ask(physical.handle, family, count, ffi.NULL), name, physical.name)
    operations = arm.new("VkQueueFamilyDataGraphPropertiesARM[]", count[0])
    kind = new("VkQueueFamilyDataGraphPropertiesARM").sType
    for operation in operations:
        operation.sType = kind
    if count[0]:
        check(ask(physical.handle, family, count, operations), name, physical.name)
    for index in range(count[0]):
        if operations[index].operation.operationType == vk.PHYSICAL_DEVICE_DATA_GRAPH_OPERATION_TYPE_OPTICAL_FLOW_ARM:
            return _support(physical, family, operations + index)
    return None


def _support(physical: PhysicalDevice, family: int, operation: Any) -> FlowSupport:
    fn = physical.fn
    found = new("VkQueueFamilyDataGraphOpticalFlowPropertiesARM")
    code = fn.vkGetPhysicalDeviceQueueFamilyDataGraphEngineOperationPropertiesARM(
        physical.handle, family, operation, ffi.cast("VkBaseOutStructure*", found)
    )
    check(code, "vkGetPhysicalDeviceQueueFamilyDataGraphEngineOperationPropertiesARM", physical.name)
    usages = sorted(set(IMAGE_USAGES.values()))
    return FlowSupport(
        found.supportedOutputGridSizes,
        found.supportedHintGridSizes,
        bool(found.hintSupported),
        bool(found.costSupported),
        (found.minWidth, found.minHeight),
        (found.maxWidth, found.maxHeight),
        {usage: _formats(physical, family, operation, usage) for usage in usages},
    )


def _formats(physical: PhysicalDevice, family: int, operation: Any, usage: int) -> tuple[int, ...]:
    """The VkFormats that images of a usage may have."""
    name = "vkGetPhysicalDeviceQueueFamilyDataGraphOpticalFlowImageFormatsARM"
    ask = physical.fn.vkGetPhysicalDeviceQueueFamilyDataGraphOpticalFlowImageFormatsARM
    info = new("VkDataGraphOpticalFlowImageFormatInfoARM", usage=usage)
    count = ffi.new("uint32_t*")
    check(ask(physical.handle, family, operation, info, count, ffi.NULL), name, physical.name)
    formats = arm_ffi().new("VkDataGraphOpticalFlowImageFormatPropertiesARM[]", count[0])
    kind = new("VkDataGraphOpticalFlowImageFormatPropertiesARM").sType
    for each in formats:
        each.sType = kind
    if count[0]:
        check(ask(physical.handle, family, operation, info, count, formats), name, physical.name)
    return tuple(each.format for each in formats[0 : count[0]])


def problems_of(flow: OpticalFlowPlan, support: FlowSupport, device: str) -> Iterator[Diagnostic]:
    """What an optical flow needs and a device with this support, called ``device``, does not offer."""
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
    for each in flow.connections:
        if each.connection == "hint" and not (support.hints and support.hint_grids & GRIDS[flow.grid]):
            what = f"hint_motion_vectors of the grid size {grid}" if support.hints else "hint_motion_vectors"
            yield _lacking(f"{flow.label} has {what}", device, each.pointer)
        elif each.connection == "cost" and not support.costs:
            yield _lacking(f"{flow.label} has output_cost", device, each.pointer)
        else:
            yield from _format_problems(flow, each, support, device)


def _lacking(what: str, device: str, pointer: str) -> Diagnostic:
    return error("SR-FEATURE-002", pointer, f"{what}, which {device!r} does not support")


def _format_problems(
    flow: OpticalFlowPlan, connection: FlowConnection, support: FlowSupport, device: str
) -> Iterator[Diagnostic]:
    known = support.formats[IMAGE_USAGES[connection.connection]]
    if connection.format in known:
        return
    names = ", ".join(sorted(each.name for each in all_formats() if each.value in known))
    what = connection.connection.replace("_", " ")
    yield error(
        "SR-FEATURE-003",
        connection.pointer,
        f"{flow.label}: image {connection.uid!r} of {format_of_value(connection.format).name} cannot be its {what} on"
        f" {device!r}",
        f"formats that can be: {names}" if names else None,
    )
