"""Data graph pipelines and their sessions (VK_ARM_data_graph): the memory that a graph works in, at each bind point."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from scenario_runner import errors
from scenario_runner.vulkan.api._generated import constants as vk
from scenario_runner.vulkan.api.arm_types import arm_ffi
from scenario_runner.vulkan.api.ffi import ffi
from scenario_runner.vulkan.api.result import check
from scenario_runner.vulkan.api.structs import new
from scenario_runner.vulkan.pipelines.compute import created
from scenario_runner.vulkan.resources.memory import allocate, choose_type

if TYPE_CHECKING:
    from scenario_runner.vulkan.devices.device import Device


def create_session(device: Device, stack: ExitStack, pipeline: Any, label: str, flags: int = 0) -> Any:
    """A VkDataGraphPipelineSessionARM with memory at each of its bind points; it lives as long as ``stack``.

    ``flags`` are VkDataGraphPipelineSessionCreateFlagBitsARM. Raises UnsupportedError, OutOfMemoryError or DeviceError.
    """
    fn, arm = device.fn, arm_ffi()
    handle = arm.new("VkDataGraphPipelineSessionARM*")
    info = new("VkDataGraphPipelineSessionCreateInfoARM", flags=flags, dataGraphPipeline=pipeline)
    reports = device.graph_reports
    if reports is not None:
        info = reports.session_info(info)
    check(
        fn.vkCreateDataGraphPipelineSessionARM(device.handle, info, ffi.NULL, handle),
        "vkCreateDataGraphPipelineSessionARM",
        label,
    )
    session = handle[0]
    if reports is not None:
        reports.session_created(session)
    memory = stack.enter_context(ExitStack())  # freed after the session is destroyed
    device.own(stack, "graph session", fn.vkDestroyDataGraphPipelineSessionARM, session)
    query = new("VkDataGraphPipelineSessionBindPointRequirementsInfoARM", session=session)
    count = ffi.new("uint32_t*")
    name = "vkGetDataGraphPipelineSessionBindPointRequirementsARM"
    ask = fn.vkGetDataGraphPipelineSessionBindPointRequirementsARM
    check(ask(device.handle, query, count, ffi.NULL), name, label)
    points = arm.new("VkDataGraphPipelineSessionBindPointRequirementARM[]", count[0])
    kind = new("VkDataGraphPipelineSessionBindPointRequirementARM").sType
    for point in points:
        point.sType = kind
    if count[0]:
        check(ask(device.handle, query, count, points), name, label)
    for point in points[0 : count[0]]:
        if point.bindPointType == vk.DATA_GRAPH_PIPELINE_SESSION_BIND_POINT_TYPE_MEMORY_ARM:
            for index in range(point.numObjects):
                _bind_memory(device, memory, session, point.bindPoint, index, label)
    return session


def _bind_memory(device: Device, stack: ExitStack, session: Any, bind_point: int, index: int, label: str) -> None:
    needs = new("VkMemoryRequirements2")
    query = new(
        "VkDataGraphPipelineSessionMemoryRequirementsInfoARM",
        session=session,
        bindPoint=bind_point,
        objectIndex=index,
    )
    device.fn.vkGetDataGraphPipelineSessionMemoryRequirementsARM(device.handle, query, needs)
    found = needs.memoryRequirements
    if not found.size:
        return
    reports = device.graph_reports
    flags = 0 if reports is None else reports.memory_flags(bind_point)
    type_index = choose_type(device, found.memoryTypeBits, flags, vk.MEMORY_PROPERTY_DEVICE_LOCAL_BIT)
    if type_index is None:
        seen = " that the host sees" if flags else ""
        raise errors.UnsupportedError(f"{device.physical.name!r} has no memory type{seen} for the session of {label}")
    memory = allocate(device, stack, found.size, type_index, f"the session of {label}", mapped=bool(flags))
    bind = new(
        "VkBindDataGraphPipelineSessionMemoryInfoARM",
        session=session,
        bindPoint=bind_point,
        objectIndex=index,
        memory=memory.handle,
    )
    code = device.fn.vkBindDataGraphPipelineSessionMemoryARM(device.handle, 1, bind)
    check(code, "vkBindDataGraphPipelineSessionMemoryARM", label)
    if flags:
        reports.memory_bound(session, bind_point, memory)


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
