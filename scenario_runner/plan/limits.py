"""Checks of a plan against the limits of a device (VkPhysicalDeviceLimits).

Source: Vulkan specification, "Limits"; "Shader Interfaces", table "Shader Input and Output Locations".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from math import prod
from typing import TYPE_CHECKING

from scenario_runner.errors.diagnostic import Diagnostic, Severity
from scenario_runner.plan.plan import Plan, ResourcePlan
from scenario_runner.plan.records import LayoutBinding

if TYPE_CHECKING:
    from scenario_runner.plan.image_records import GraphicsPipelinePlan

_SetLayouts = tuple[tuple[LayoutBinding, ...], ...]
_Demand = tuple[str, int, str, str, int | None]
"""Name of a limit, what is asked for, its pointer and words for it; the axis of a limit that has three."""

# Names as in VkPhysicalDeviceLimits; values are int, or a sequence of three for x, y and z.
Limits = Mapping[str, int | tuple[int, int, int]]

_CODES = {
    "maxComputeWorkGroupSize": "SR-LIMIT-001",
    "maxComputeWorkGroupInvocations": "SR-LIMIT-002",
    "maxComputeWorkGroupCount": "SR-LIMIT-003",
    "maxComputeSharedMemorySize": "SR-LIMIT-004",
    "maxBoundDescriptorSets": "SR-LIMIT-005",
    "maxPerStageDescriptorSampledImages": "SR-LIMIT-006",
    "maxPerStageDescriptorSamplers": "SR-LIMIT-006",
    "maxPerStageDescriptorStorageBuffers": "SR-LIMIT-006",
    "maxPerStageDescriptorStorageImages": "SR-LIMIT-006",
    "maxPerStageDescriptorUniformBuffers": "SR-LIMIT-006",
    "maxPerStageResources": "SR-LIMIT-006",
    "maxPushConstantsSize": "SR-LIMIT-007",
    "maxUniformBufferRange": "SR-LIMIT-008",
    "maxStorageBufferRange": "SR-LIMIT-008",
    "maxImageDimension2D": "SR-LIMIT-009",
    "maxFramebufferHeight": "SR-LIMIT-009",
    "maxFramebufferWidth": "SR-LIMIT-009",
    "maxColorAttachments": "SR-LIMIT-010",
    "maxFragmentInputComponents": "SR-LIMIT-010",
    "maxFragmentOutputAttachments": "SR-LIMIT-010",
    "maxVertexOutputComponents": "SR-LIMIT-010",
}
_ALIGNMENTS = ("minStorageBufferOffsetAlignment", "minUniformBufferOffsetAlignment")
NAMES = (*_CODES, *_ALIGNMENTS)
"""The limits that are looked at."""

# Limits of a stage, and the descriptors that count against each (Vulkan specification, "Shader Resource Limits").
_COUNTED = (
    ("maxPerStageDescriptorStorageBuffers", ("storage_buffer",), "storage buffers"),
    ("maxPerStageDescriptorUniformBuffers", ("uniform_buffer",), "uniform buffers"),
    ("maxPerStageDescriptorStorageImages", ("storage_image",), "storage images"),
    ("maxPerStageDescriptorSampledImages", ("sampled_image", "combined_image_sampler"), "sampled images"),
    ("maxPerStageDescriptorSamplers", ("sampler", "combined_image_sampler"), "samplers"),
)
# Drivers that report a small range work beyond it as a rule, and scenarios of other programs rely on that.
_TOLERATED = frozenset({"maxStorageBufferRange"})


def exceeded_limits(plan: Plan, limits: Limits, device: str) -> list[Diagnostic]:
    """Everything in ``plan`` that goes beyond ``limits``; each finding has the pointer of what asks for too much.

    A limit that is not reported is not checked.
    """
    findings = []
    for demands in (_pipelines(plan), _resources(plan), _operations(plan)):
        for name, asked, pointer, what, axis in demands:
            limit = limits.get(name)
            most = limit if limit is None or isinstance(limit, int) else limit[axis or 0]
            if most is not None and asked > most:
                shown = name if axis is None else f"{name}[{axis}]"
                severity: Severity = "warning" if name in _TOLERATED else "error"
                findings.append(Diagnostic(_CODES[name], severity, pointer, f"{what}; {shown} of {device!r} is {most}"))
    alignments = map(limits.get, _ALIGNMENTS)  # each buffer may be bound as storage or uniforms
    alignment = max((limit for limit in alignments if isinstance(limit, int) and limit), default=1)
    findings += [
        misaligned(resource, alignment, device)
        for resource in plan.resources.values()
        if resource.kind == "buffer" and resource.offset_bytes % alignment
    ]
    return findings


def misaligned(plan: ResourcePlan, alignment: int, device: str) -> Diagnostic:
    """The finding for a member of a memory group whose offset does not have the alignment that a device needs."""
    what = f"memory group {plan.group!r} places {plan.uid!r} at offset {plan.offset_bytes}"
    message = f"{what}, which is not a multiple of the alignment {alignment} that {device!r} needs"
    help = "multiples of 256 suit nearly all devices"
    return Diagnostic("SR-LIMIT-012", "error", f"{plan.pointer}/memory_group/offset", message, help)


def _pipelines(plan: Plan) -> Iterator[_Demand]:
    for pipeline in plan.pipelines:
        place, label = pipeline.pointer, f"shader {pipeline.label!r}"
        for axis, length in enumerate(pipeline.local_size):
            what = f"{label} has a workgroup of {length} along {'xyz'[axis]}"
            yield "maxComputeWorkGroupSize", length, place, what, axis
        invocations, shared = prod(pipeline.local_size), pipeline.workgroup_memory_bytes
        what = f"{label} has {invocations} invocations a workgroup"
        yield "maxComputeWorkGroupInvocations", invocations, place, what, None
        yield "maxComputeSharedMemorySize", shared, place, f"{label} has {shared} bytes of shared memory", None
        yield from _layouts(pipeline.set_layouts, pipeline.push_constants_size, place, label, ("compute",))
    for drawing in plan.graphics_pipelines:
        yield from _drawing(drawing)


def _drawing(pipeline: GraphicsPipelinePlan) -> Iterator[_Demand]:
    vertex, fragment = pipeline[:2]
    names = f"shaders {vertex.label!r} and {fragment.label!r}"
    stages = ("vertex", "fragment")
    yield from _layouts(pipeline.set_layouts, pipeline.push_constants_size, vertex.pointer, names, stages)
    for stage, way, locations, name, components in (
        (vertex, "outputs", vertex.outputs, "maxVertexOutputComponents", 4),
        (fragment, "inputs", fragment.inputs, "maxFragmentInputComponents", 4),
        (fragment, "outputs", fragment.outputs, "maxFragmentOutputAttachments", 1),
    ):
        what = f"shader {stage.label!r} has {way} up to location {locations - 1}"
        yield name, locations * components, stage.pointer, what, None
    count = len(pipeline.formats)
    place = f"{pipeline.pointer}/color_attachment_refs"
    yield "maxColorAttachments", count, place, f"the drawing has {count} attachments", None


def _layouts(
    layouts: _SetLayouts, push_constants_size: int, place: str, label: str, stages: Iterable[str]
) -> Iterator[_Demand]:
    """Count the bindings of the pipeline of the shaders ``label``, declared at ``place``; limits count for each
    stage."""
    what = f"push_constants_size is {push_constants_size}"
    yield "maxPushConstantsSize", push_constants_size, f"{place}/push_constants_size", what, None
    yield "maxBoundDescriptorSets", len(layouts), place, f"{label} uses descriptor set {len(layouts) - 1}", None
    for stage in stages:
        kinds = [binding.kind for bindings in layouts for binding in bindings if stage in binding.stages]
        for name, counted, words in _COUNTED:
            count = sum(map(counted.__contains__, kinds))
            yield name, count, place, f"{label} uses {count} {words}", None
        yield "maxPerStageResources", len(kinds), place, f"{label} uses {len(kinds)} resources", None


def _resources(plan: Plan) -> Iterator[_Demand]:
    seen = {
        (descriptor.uid, descriptor.kind)
        for descriptor_list in plan.descriptor_lists
        for descriptor in descriptor_list.descriptors
    }
    for uid, kind in sorted(seen):
        resource = plan.resources[uid]
        if kind in ("uniform_buffer", "storage_buffer"):
            name = "maxUniformBufferRange" if kind == "uniform_buffer" else "maxStorageBufferRange"
            what = f"buffer {uid!r} of {resource.size_bytes} bytes is bound as a {kind.replace('_', ' ')}"
            yield name, resource.size_bytes, f"{resource.pointer}/size", what, None
    for resource in plan.resources.values():
        if resource.kind == "image":
            what = f"image {resource.uid!r} has {resource.width} x {resource.height} texels"
            yield "maxImageDimension2D", max(resource.width, resource.height), f"{resource.pointer}/dims", what, None


def _operations(plan: Plan) -> Iterator[_Demand]:
    """Workgroups of dispatches and extents of draws, each that there is once."""
    seen: set[tuple[int, ...]] = set()
    for operation in (operation for frame in plan.frames for operation in frame.operations):
        if operation.kind == "dispatch" and operation.workgroup_count not in seen:
            seen.add(operation.workgroup_count)
            for axis, count in enumerate(operation.workgroup_count):
                place = f"/commands/{operation.command}/dispatch_compute/rangeND"
                yield "maxComputeWorkGroupCount", count, place, f"{count} workgroups along {'xyz'[axis]}", axis
        elif operation.kind == "draw" and operation.extent not in seen:
            seen.add(operation.extent)
            width, height = operation.extent
            place = f"/commands/{operation.command}/dispatch_fragment"
            what = f"the drawing has {width} x {height} texels"
            yield "maxFramebufferWidth", width, place, what, None
            yield "maxFramebufferHeight", height, place, what, None
