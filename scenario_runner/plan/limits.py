"""Checks for a plan against a device's limits (VkPhysicalDeviceLimits).

Source: Vulkan specification, "Limits"; "Shader Interfaces", table "Shader Input and Output Locations".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING

from scenario_runner.errors.diagnostic import Diagnostic, Severity
from scenario_runner.plan.plan import Plan, ResourcePlan
from scenario_runner.plan.records import Descriptor, PipelinePlan

if TYPE_CHECKING:
    from scenario_runner.plan.image_records import GraphicsPipelinePlan

_PIPELINES_KEPT = 64
_Demand = tuple[str, float, str, str, int | None]
"""A limit's name, the plan's demand, the demand's pointer and words for messages, and an axis (0 to 2) or None."""

# Names as in VkPhysicalDeviceLimits; values are int, or tuples of the lengths in `LENGTHS`.
Limits = Mapping[str, int | tuple[float, ...]]

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
    "maxTexelBufferElements": "SR-LIMIT-008",
    "maxImageDimension2D": "SR-LIMIT-009",
    "maxFramebufferHeight": "SR-LIMIT-009",
    "maxFramebufferWidth": "SR-LIMIT-009",
    "maxColorAttachments": "SR-LIMIT-010",
    "maxFragmentInputComponents": "SR-LIMIT-010",
    "maxFragmentOutputAttachments": "SR-LIMIT-010",
    "maxVertexInputAttributes": "SR-LIMIT-010",
    "maxVertexInputBindings": "SR-LIMIT-010",
    "maxVertexInputBindingStride": "SR-LIMIT-010",
    "maxVertexOutputComponents": "SR-LIMIT-010",
    "maxViewportDimensions": "SR-LIMIT-009",
    "viewportBoundsRange": "SR-LIMIT-009",
}
_ALIGNMENT_OF = {
    "storage_buffer": "minStorageBufferOffsetAlignment",
    "uniform_buffer": "minUniformBufferOffsetAlignment",
    "storage_texel_buffer": "minTexelBufferOffsetAlignment",
    "uniform_texel_buffer": "minTexelBufferOffsetAlignment",
}
_ALIGNMENTS = tuple(dict.fromkeys(_ALIGNMENT_OF.values()))
_OF_GROUPS = ("minStorageBufferOffsetAlignment", "minUniformBufferOffsetAlignment")
_RANGE_OF = {"uniform_buffer": "maxUniformBufferRange", "storage_buffer": "maxStorageBufferRange"}
_USUAL_ALIGNMENT = 256
_ALIGNED = "multiples of 256 suit nearly all devices"
LENGTHS = {
    "maxComputeWorkGroupCount": 3,
    "maxComputeWorkGroupSize": 3,
    "maxViewportDimensions": 2,
    "viewportBoundsRange": 2,
}
"""Limits that are arrays."""
_LOWER_BOUND = ("viewportBoundsRange", 0)
NAMES = (*_CODES, *_ALIGNMENTS)
"""The limits to ask a device for."""
SUBGROUP_SIZE = "subgroupSize"
"""A further limit, of VkPhysicalDeviceVulkan11Properties."""

# Limits for a stage, and the descriptors counted for each (Vulkan specification, "Shader Resource Limits").
_COUNTED = (
    ("maxPerStageDescriptorStorageBuffers", ("storage_buffer",), "storage buffers"),
    ("maxPerStageDescriptorUniformBuffers", ("uniform_buffer",), "uniform buffers"),
    ("maxPerStageDescriptorStorageImages", ("storage_image", "storage_texel_buffer"), "storage images"),
    (
        "maxPerStageDescriptorSampledImages",
        ("sampled_image", "combined_image_sampler", "uniform_texel_buffer"),
        "sampled images",
    ),
    ("maxPerStageDescriptorSamplers", ("sampler", "combined_image_sampler"), "samplers"),
)
# Drivers that report a small range usually work beyond it, and scenarios from other programs rely on that.
_TOLERATED = frozenset({"maxStorageBufferRange"})


def exceeded_limits(plan: Plan, limits: Limits, device: str) -> list[Diagnostic]:
    """Find each demand in ``plan`` above a limit. A finding points to the entry with the demand.

    Limits missing from ``limits`` are not checked.
    """
    demands: list[_Demand] = []
    for pipeline in plan.pipelines:
        demands += _cached_demands(pipeline)
    for drawing in plan.graphics_pipelines:
        demands += _graphics_demands(drawing)
    demands += [*_resource_demands(plan), *_operation_demands(plan)]
    findings = []
    for name, asked, pointer, what, axis in demands:
        limit = limits.get(name)
        most = limit if limit is None or isinstance(limit, int) else limit[axis or 0]
        if most is not None and (asked < most if (name, axis) == _LOWER_BOUND else asked > most):
            shown = name if axis is None else f"{name}[{axis}]"
            severity: Severity = "warning" if name in _TOLERATED else "error"
            findings.append(Diagnostic(_CODES[name], severity, pointer, f"{what}; {shown} of {device!r} is {most}"))
    size = limits.get(SUBGROUP_SIZE)
    if isinstance(size, int) and size > 0:
        findings += _uneven_workgroups(plan.pipelines, size, device)
    alignments = [limits.get(name) for name in _OF_GROUPS]  # each buffer may be bound as storage or uniforms
    alignment = max([limit for limit in alignments if isinstance(limit, int) and limit], default=1)
    findings += misaligned_bindings(plan, limits, device)
    findings += [
        misaligned(resource, alignment, device)
        for resource in plan.resources.values()
        if resource.kind == "buffer" and resource.offset_bytes % alignment
    ]
    return findings


def _uneven_workgroups(pipelines: Iterable[PipelinePlan], size: int, device: str) -> Iterator[Diagnostic]:
    """Find workgroups that cannot consist of full subgroups (VUID-VkPipelineShaderStageCreateInfo-flags-02759)."""
    for pipeline in pipelines:
        along_x = pipeline.local_size[0]
        if pipeline.full_subgroups and along_x % size:
            what = f"shader {pipeline.label!r} has a workgroup of {along_x} along x, which full subgroups of"
            message = f"{what} {device!r} ({size} invocations) do not fill"
            yield Diagnostic("SR-LIMIT-013", "error", pipeline.pointer, message, f"use a multiple of {size}")


def misaligned_bindings(plan: Plan, limits: Limits, device: str) -> Iterator[Diagnostic]:
    """Find bindings that begin in a buffer at no multiple of the device's alignment."""
    for place, descriptor in _bound_with_offset(plan):
        limit = limits.get(_ALIGNMENT_OF[descriptor.kind])
        if isinstance(limit, int) and limit and descriptor.offset_bytes % limit:
            message = f"{_bound_from(descriptor)}, which is not a multiple of {limit}, as {device!r} needs it"
            yield Diagnostic("SR-LIMIT-012", "error", place, message, _ALIGNED)


def unusual_offsets(plan: Plan) -> Iterator[Diagnostic]:
    """Warn of bindings with an offset that some devices refuse."""
    for place, descriptor in _bound_with_offset(plan):
        if descriptor.offset_bytes % _USUAL_ALIGNMENT:
            message = f"{_bound_from(descriptor)}, which some devices refuse"
            yield Diagnostic("SR-LIMIT-014", "warning", place, message, _ALIGNED)


def _bound_from(descriptor: Descriptor) -> str:
    return f"buffer {descriptor.uid!r} is bound from offset {descriptor.offset_bytes} on"


def _bound_with_offset(plan: Plan) -> Iterator[tuple[str, Descriptor]]:
    """Yield each descriptor with an offset in a buffer, after the place of the first command with it."""
    lists = [[each for each in sets.descriptors if each.offset_bytes] for sets in plan.descriptor_lists]
    seen: set[Descriptor] = set()
    for frame in plan.frames if any(lists) else ():
        for operation in frame.operations:
            if operation.kind == "dispatch" or operation.kind == "draw":
                command = "dispatch_compute" if operation.kind == "dispatch" else "dispatch_fragment"
                place = f"/commands/{operation.command}/{command}/bindings"
                yield from ((place, each) for each in lists[operation.descriptors] if each not in seen)
                seen.update(lists[operation.descriptors])


def misaligned(plan: ResourcePlan, alignment: int, device: str) -> Diagnostic:
    """Make the error for a misaligned offset in a memory group."""
    what = f"memory group {plan.group!r} places {plan.uid!r} at offset {plan.offset_bytes}"
    message = f"{what}, which is not a multiple of the alignment {alignment} that {device!r} needs"
    return Diagnostic("SR-LIMIT-012", "error", f"{plan.pointer}/memory_group/offset", message, _ALIGNED)


@lru_cache(_PIPELINES_KEPT)
def _cached_demands(pipeline: PipelinePlan) -> list[_Demand]:
    """List a compute pipeline's demands. The scenarios of a suite share pipelines."""
    return list(_compute_demands(pipeline))


def _compute_demands(pipeline: PipelinePlan) -> Iterator[_Demand]:
    """List a compute pipeline's demands."""
    place, label = pipeline.pointer, f"shader {pipeline.label!r}"
    invocations, shared = prod(pipeline.local_size), pipeline.workgroup_memory_bytes
    for axis, length in enumerate(pipeline.local_size):
        what = f"{label} has a workgroup of {length} along {'xyz'[axis]}"
        yield "maxComputeWorkGroupSize", length, place, what, axis
    what = f"{label} has {invocations} invocations a workgroup"
    yield "maxComputeWorkGroupInvocations", invocations, place, what, None
    what = f"{label} has {shared} bytes of shared memory"
    yield "maxComputeSharedMemorySize", shared, place, what, None
    yield from _layout_demands(pipeline, place, label, ("compute",))


def _graphics_demands(pipeline: GraphicsPipelinePlan) -> Iterator[_Demand]:
    """List a graphics pipeline's demands."""
    vertex, fragment = pipeline.vertex, pipeline.fragment
    names = f"shaders {vertex.label!r} and {fragment.label!r}"
    yield from _layout_demands(pipeline, vertex.pointer, names, ("vertex", "fragment"))
    for stage, way, locations, name, components in (
        (vertex, "outputs", vertex.outputs, "maxVertexOutputComponents", 4),
        (fragment, "inputs", fragment.inputs, "maxFragmentInputComponents", 4),
        (fragment, "outputs", fragment.outputs, "maxFragmentOutputAttachments", 1),
    ):
        what = f"shader {stage.label!r} has {way} up to location {locations - 1}"
        yield name, locations * components, stage.pointer, what, None
    place = f"{pipeline.pointer}/vertex_attributes"
    count, locations = len(pipeline.attributes), max((each.location + 1 for each in pipeline.attributes), default=0)
    stride = max((each.stride_bytes for each in pipeline.attributes), default=0)
    what = f"the drawing has vertex attributes up to location {locations - 1}"
    yield "maxVertexInputAttributes", locations, place, what, None
    yield "maxVertexInputBindings", count, place, f"the drawing has {count} vertex attributes", None
    yield "maxVertexInputBindingStride", stride, place, f"a vertex attribute has the stride {stride}", None
    count = len(pipeline.formats)
    place = f"{pipeline.pointer}/color_attachment_refs"
    yield "maxColorAttachments", count, place, f"the drawing has {count} attachments", None


def _layout_demands(
    pipeline: PipelinePlan | GraphicsPipelinePlan, place: str, label: str, stages: Iterable[str]
) -> Iterator[_Demand]:
    """Count a pipeline's bindings for each stage; ``place`` declares the shaders named in ``label``."""
    layouts, size = pipeline.set_layouts, pipeline.push_constants_size
    what = f"push_constants_size is {size}"
    yield "maxPushConstantsSize", size, f"{place}/push_constants_size", what, None
    what = f"{label} uses descriptor set {len(layouts) - 1}"
    yield "maxBoundDescriptorSets", len(layouts), place, what, None
    for stage in stages:
        seen = [binding for bindings in layouts for binding in bindings if stage in binding.stages]
        kinds = [binding.kind for binding in seen for _ in range(binding.descriptor_count)]
        for name, counted, words in _COUNTED:
            count = sum(map(counted.__contains__, kinds))
            yield name, count, place, f"{label} uses {count} {words}", None
        yield "maxPerStageResources", len(kinds), place, f"{label} uses {len(kinds)} resources", None


def _resource_demands(plan: Plan) -> Iterator[_Demand]:
    """List sizes for bound buffers and for images."""
    largest: dict[tuple[str, str], int] = {}
    for descriptor in (descriptor for sets in plan.descriptor_lists for descriptor in sets.descriptors):
        resource, key = plan.resources[descriptor.uid], (descriptor.uid, descriptor.kind)
        if resource.kind != "buffer":
            continue
        size_bytes = descriptor.bound_bytes(resource)
        if descriptor.format is not None:
            count = size_bytes // descriptor.format.block_size_bytes
            what = f"buffer {resource.uid!r} is bound as {count} texels of {descriptor.format.name}"
            yield "maxTexelBufferElements", count, f"{resource.pointer}/size", what, None
        else:
            largest[key] = max(largest.get(key, 0), size_bytes)
    for (uid, kind), size_bytes in sorted(largest.items()):
        name = _RANGE_OF[kind]
        what = f"buffer {uid!r} of {size_bytes} bytes is bound as a {kind.replace('_', ' ')}"
        yield name, size_bytes, f"{plan.resources[uid].pointer}/size", what, None
    for resource in plan.resources.values():
        if resource.kind == "image":
            what = f"image {resource.uid!r} has {resource.width} x {resource.height} texels"
            longest = max(resource.width, resource.height)
            yield "maxImageDimension2D", longest, f"{resource.pointer}/dims", what, None


def _operation_demands(plan: Plan) -> Iterator[_Demand]:
    """List workgroup counts for dispatches and extents for draws, each distinct value once."""
    seen: set[tuple[object, ...]] = set()
    for frame in plan.frames:
        for operation in frame.operations:
            if operation.kind == "dispatch" and operation.workgroup_count not in seen:
                seen.add(operation.workgroup_count)
                place = f"/commands/{operation.command}/dispatch_compute/rangeND"
                for axis, count in enumerate(operation.workgroup_count):
                    what = f"{count} workgroups along {'xyz'[axis]}"
                    yield "maxComputeWorkGroupCount", count, place, what, axis
            elif operation.kind == "draw" and (operation.extent, operation.viewport) not in seen:
                seen.add((operation.extent, operation.viewport))
                width, height = operation.extent
                place = f"/commands/{operation.command}/dispatch_fragment"
                what = f"the drawing has {width} x {height} texels"
                yield "maxFramebufferWidth", width, place, what, None
                yield "maxFramebufferHeight", height, place, what, None
                yield from _viewport_demands(operation.viewport, f"{place}/viewport")


def _viewport_demands(viewport: tuple[float, ...], place: str) -> Iterator[_Demand]:
    """List a VkViewport's sizes and edges."""
    for axis, name in enumerate("xy"):
        start, size = viewport[axis], viewport[axis + 2]
        edges = sorted((start, start + size))
        yield "maxViewportDimensions", abs(size), place, f"the viewport has {abs(size):g} texels", axis
        yield _LOWER_BOUND[0], edges[0], place, f"the viewport begins at {name} = {edges[0]:g}", 0
        yield _LOWER_BOUND[0], edges[1], place, f"the viewport ends at {name} = {edges[1]:g}", 1
