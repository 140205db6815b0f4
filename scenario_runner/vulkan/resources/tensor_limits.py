"""What a plan's tensors ask for against what a device offers: the emulation layers abort the process otherwise.

Source: VkPhysicalDeviceTensorPropertiesARM; valid usage of VkTensorDescriptionARM.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

from scenario_runner.diagnostics import Diagnostic
from scenario_runner.plan.model.resources import TensorPlan
from scenario_runner.vulkan.api._generated import constants as vk
from scenario_runner.vulkan.api.structs import chain, new
from scenario_runner.vulkan.resources.tensors import format_features

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scenario_runner.plan.model.plan import Plan
    from scenario_runner.vulkan.devices.physical_device import PhysicalDevice


def exceeded_tensor_limits(plan: Plan, physical: PhysicalDevice, *, emulated: bool = False) -> list[Diagnostic]:
    """Everything about the tensors of ``plan`` that ``physical`` cannot do; it must have VK_ARM_tensors.

    Where graphs are ``emulated``, what lies between their operators are tensors as well.
    """
    tensors = [each for each in plan.resources.values() if isinstance(each, TensorPlan)]
    if not tensors:
        return []
    limits = new("VkPhysicalDeviceTensorPropertiesARM")
    physical.fn.vkGetPhysicalDeviceProperties2(physical.handle, chain(new("VkPhysicalDeviceProperties2"), limits))
    used = _uses(plan)
    problems = []
    for tensor in tensors:
        problems += [
            Diagnostic(
                "SR-LIMIT-011",
                "error",
                tensor.pointer,
                f"tensor {tensor.uid!r} {what}; {name} of {physical.name!r} is {limit}",
            )
            for what, name, limit in _beyond(tensor, limits)
        ]
        features = format_features(physical, tensor.format.value, linear=tensor.linear)
        for use, bit in (
            ("shader", vk.FORMAT_FEATURE_2_TENSOR_SHADER_BIT_ARM),
            ("graph", vk.FORMAT_FEATURE_2_TENSOR_DATA_GRAPH_BIT_ARM),
        ):
            user = used.get((tensor.uid, use))
            if user is not None and not features & bit:
                problems.append(
                    Diagnostic(
                        "SR-FEATURE-003",
                        "error",
                        f"{tensor.pointer}/format",
                        f"{user} uses tensor {tensor.uid!r}; {physical.name!r} has no {tensor.format.name} tensors for"
                        f" {use}s",
                    )
                )
        if not emulated and not features & vk.FORMAT_FEATURE_2_TENSOR_IMAGE_ALIASING_BIT_ARM:
            problems += _without_aliasing(tensor, physical.name)
    if emulated:
        problems += _beyond_inside(plan, physical, limits)
        problems += _over_images(plan, tensors, physical)
    counted = [(pipeline.set_layouts, pipeline.label, pipeline.pointer) for pipeline in plan.pipelines]
    for layouts, label, pointer in counted:
        count = sum(binding.kind == "tensor" for bindings in layouts for binding in bindings)
        limit = limits.maxPerStageDescriptorSetStorageTensors
        if count > limit:
            problems.append(
                Diagnostic(
                    "SR-LIMIT-006",
                    "error",
                    pointer,
                    f"shader {label!r} uses {count} tensors; maxPerStageDescriptorSetStorageTensors of"
                    f" {physical.name!r} is {limit}",
                )
            )
    return problems


def _without_aliasing(tensor: TensorPlan, device: str) -> list[Diagnostic]:
    """A tensor that needs what the device does not have. The emulation layers have it, and do not report it."""
    if tensor.linear or tensor.image is None:
        return []
    message = (
        f"tensor {tensor.uid!r} shares the memory of image {tensor.image!r}, both of OPTIMAL tiling; {device!r} lacks"
        f" VK_FORMAT_FEATURE_2_TENSOR_IMAGE_ALIASING_BIT_ARM for {tensor.format.name}"
    )
    place = f"{tensor.pointer}/memory_group"
    return [Diagnostic("SR-FEATURE-003", "error", place, message, "give both the tiling LINEAR")]


def _beyond(tensor: TensorPlan, limits: object) -> Iterator[tuple[str, str, int]]:
    dims = tensor.dims
    strides = tensor.strides or ()
    for name, asked, what in (
        ("maxTensorDimensionCount", len(dims), f"has {len(dims)} dimensions"),
        ("maxTensorElements", prod(dims), f"has {prod(dims)} elements"),
        ("maxPerDimensionTensorElements", max(dims), f"has a dimension of {max(dims)}"),
        ("maxTensorStride", max(strides, default=0), f"has a stride of {max(strides, default=0)} bytes"),
        ("maxTensorSize", tensor.size_bytes, f"has {tensor.size_bytes} bytes"),
    ):
        limit = int(getattr(limits, name))
        if asked > limit:
            yield what, name, limit
            return  # what has too many dimensions has no other sensible numbers


def _beyond_inside(plan: Plan, physical: PhysicalDevice, limits: Any) -> Iterator[Diagnostic]:
    for graph in plan.graph_pipelines:
        if graph.kind != "graph":
            continue
        reason, help = graph.unbuildable
        if reason:
            message = f"{graph.label}: {reason.replace('{device}', repr(physical.name))}"
            yield Diagnostic("SR-FEATURE-002", "error", graph.pointer, message, help)
        what, shape = graph.largest
        count, limit = prod(shape), int(limits.maxTensorElements)
        if count > limit:
            yield Diagnostic(
                "SR-LIMIT-011",
                "error",
                graph.pointer,
                f"{graph.label}: {what} has {count} elements (shape {list(shape)}); maxTensorElements of"
                f" {physical.name!r} is {limit}",
            )


def _over_images(plan: Plan, tensors: list[TensorPlan], physical: PhysicalDevice) -> Iterator[Diagnostic]:
    images = {(each.group, each.offset_bytes): each.uid for each in plan.resources.values() if each.kind == "image"}
    for tensor in tensors:
        image = None if tensor.group is None else images.get((tensor.group, tensor.offset_bytes))
        if image is not None and not 2 <= len(tensor.dims) <= 4:
            yield Diagnostic(
                "SR-FEATURE-002",
                "error",
                f"{tensor.pointer}/dims",
                f"tensor {tensor.uid!r} has {len(tensor.dims)} dimension{'s' * (len(tensor.dims) > 1)} and begins where"
                f" image {image!r} does; the ML emulation layers, through which {physical.name!r} has tensors, end the"
                " process unless it has 2 to 4",
                "add dimensions of 1",
            )


def _uses(plan: Plan) -> dict[tuple[str, str], str]:
    """Who binds a tensor, by its uid and the kind of its user."""
    found: dict[tuple[str, str], str] = {}
    seen = set()
    for frame in plan.frames:
        for operation in frame.operations:
            if operation.kind != "dispatch" and operation.kind != "graph_dispatch":
                continue  # nothing else binds tensors
            is_graph = operation.kind == "graph_dispatch"
            key = (is_graph, operation.pipeline, operation.descriptors)
            if key in seen:
                continue
            seen.add(key)
            user = plan.graph_pipelines[operation.pipeline].label if is_graph else None
            user = user or f"shader {plan.pipelines[operation.pipeline].label!r}"
            for descriptor in plan.descriptor_lists[operation.descriptors].descriptors:
                if descriptor.kind == "tensor":
                    found.setdefault((descriptor.uid, "graph" if is_graph else "shader"), user)
    return found
