"""Checks of a plan against the limits of a device (VkPhysicalDeviceLimits).

Source: Vulkan specification, "Limits"; "Shader Interfaces", table "Shader Input and Output Locations".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from math import prod
from typing import TYPE_CHECKING

from scenario_runner.diagnostics import Diagnostic, Severity
from scenario_runner.plan.model.plan import Plan, ResourcePlan
from scenario_runner.plan.model.records import LayoutBinding

if TYPE_CHECKING:
    from scenario_runner.plan.model.commands import Draw, GraphicsPipelinePlan

_Beyond = Callable[..., None]
_SetLayouts = tuple[tuple[LayoutBinding, ...], ...]

# Of the limits that count components: a location has four.
_COMPONENTS = 4


def check_drawings(plan: Plan, beyond: _Beyond, check_layouts: Callable[..., None]) -> None:
    """Note what goes beyond the limits with ``beyond``; ``check_layouts`` looks at sets, descriptors, push constants.

    ``beyond`` is called with the name of a limit, what is asked for, the pointer, and words for it.
    """
    for pipeline in plan.graphics_pipelines:
        _check_pipeline(pipeline, beyond, check_layouts)
    seen = set()
    for frame in plan.frames:
        for operation in frame.operations:
            if operation.kind == "draw" and operation.extent not in seen:
                seen.add(operation.extent)
                _check_extent(operation, beyond)


def _check_pipeline(pipeline: GraphicsPipelinePlan, beyond: _Beyond, check_layouts: Callable[..., None]) -> None:
    vertex, fragment = pipeline[:2]
    names = f"shaders {vertex.label!r} and {fragment.label!r}"
    check_layouts(pipeline.set_layouts, pipeline.push_constants_size, vertex.pointer, names, ("vertex", "fragment"))
    for stage, way, locations, name, each in (
        (vertex, "outputs", vertex.outputs, "maxVertexOutputComponents", _COMPONENTS),
        (fragment, "inputs", fragment.inputs, "maxFragmentInputComponents", _COMPONENTS),
        (fragment, "outputs", fragment.outputs, "maxFragmentOutputAttachments", 1),
    ):
        what = f"shader {stage.label!r} has {way} up to location {locations - 1}"
        beyond(name, locations * each, stage.pointer, what)
    count = len(pipeline.formats)
    place = f"{pipeline.pointer}/color_attachment_refs"
    beyond("maxColorAttachments", count, place, f"the drawing has {count} attachments")


def _check_extent(draw: Draw, beyond: _Beyond) -> None:
    place = f"/commands/{draw.command}/dispatch_fragment"
    width, height = draw.extent
    what = f"the drawing has {width} x {height} texels"
    beyond("maxFramebufferWidth", width, place, what)
    beyond("maxFramebufferHeight", height, place, what)


# Names as in VkPhysicalDeviceLimits; values are int, or a sequence of three for x, y and z.
Limits = Mapping[str, int | tuple[int, int, int]]

NAMES = (
    "maxBoundDescriptorSets",
    "maxColorAttachments",
    "maxComputeSharedMemorySize",
    "maxComputeWorkGroupCount",
    "maxComputeWorkGroupInvocations",
    "maxComputeWorkGroupSize",
    "maxFragmentInputComponents",
    "maxFragmentOutputAttachments",
    "maxFramebufferHeight",
    "maxFramebufferWidth",
    "maxImageDimension2D",
    "maxPerStageDescriptorSampledImages",
    "maxPerStageDescriptorSamplers",
    "maxPerStageDescriptorStorageBuffers",
    "maxPerStageDescriptorStorageImages",
    "maxPerStageDescriptorUniformBuffers",
    "maxPerStageResources",
    "maxPushConstantsSize",
    "maxStorageBufferRange",
    "maxUniformBufferRange",
    "maxVertexOutputComponents",
    "minStorageBufferOffsetAlignment",
    "minUniformBufferOffsetAlignment",
)

_CODES = {
    "maxComputeWorkGroupSize": "SR-LIMIT-001",
    "maxComputeWorkGroupInvocations": "SR-LIMIT-002",
    "maxComputeWorkGroupCount": "SR-LIMIT-003",
    "maxComputeSharedMemorySize": "SR-LIMIT-004",
    "maxBoundDescriptorSets": "SR-LIMIT-005",
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
_PER_STAGE = "SR-LIMIT-006"
# Which descriptors count against which limit of a stage (Vulkan specification, "Shader Resource Limits").
_COUNTED = (
    ("maxPerStageDescriptorStorageBuffers", ("storage_buffer",), "storage buffers"),
    ("maxPerStageDescriptorUniformBuffers", ("uniform_buffer",), "uniform buffers"),
    ("maxPerStageDescriptorStorageImages", ("storage_image",), "storage images"),
    ("maxPerStageDescriptorSampledImages", ("sampled_image", "combined_image_sampler"), "sampled images"),
    ("maxPerStageDescriptorSamplers", ("sampler", "combined_image_sampler"), "samplers"),
)
# Drivers that report a small range work beyond it as a rule, and scenarios of other programs rely on that.
_TOLERATED = frozenset({"maxStorageBufferRange"})


class _Comparison:
    """Collects what goes beyond the limits of one device."""

    def __init__(self, limits: Limits, device: str) -> None:
        self._limits = limits
        self._device = device
        self.found: list[Diagnostic] = []

    def misaligned(self, plan: ResourcePlan) -> None:
        """Note a buffer whose offset in its memory group is not aligned; each may be bound as storage or uniforms."""
        limits = map(self._limits.get, ("minStorageBufferOffsetAlignment", "minUniformBufferOffsetAlignment"))
        alignment = max((limit for limit in limits if isinstance(limit, int) and limit), default=1)
        if plan.kind == "buffer" and plan.offset_bytes % alignment:
            self.found.append(misaligned(plan, alignment, self._device))

    def beyond(self, name: str, asked: int, pointer: str, what: str, axis: int | None = None) -> None:
        """Note ``what`` where it asks for more than the limit ``name``; a limit that is not reported is not checked."""
        limit = self._limits.get(name)
        if limit is None:
            return
        most = limit if isinstance(limit, int) else limit[axis or 0]
        if asked > most:
            shown = name if axis is None else f"{name}[{axis}]"
            severity: Severity = "warning" if name in _TOLERATED else "error"
            message = f"{what}; {shown} of {self._device!r} is {most}"
            self.found.append(Diagnostic(_CODES.get(name, _PER_STAGE), severity, pointer, message))


def exceeded_limits(plan: Plan, limits: Limits, device: str) -> list[Diagnostic]:
    """Everything in ``plan`` that goes beyond ``limits``; each finding has the pointer of what asks for too much."""
    comparison = _Comparison(limits, device)
    _check_pipelines(plan, comparison.beyond)
    _check_resources(plan, comparison.beyond)
    _check_counts(plan, comparison.beyond)
    for resource in plan.resources.values():
        comparison.misaligned(resource)
    if plan.graphics_pipelines:
        check_drawings(plan, comparison.beyond, partial(_check_layouts, comparison.beyond))
    return comparison.found


def misaligned(plan: ResourcePlan, alignment: int, device: str) -> Diagnostic:
    """The finding for a member of a memory group whose offset does not have the alignment that a device needs."""
    return Diagnostic(
        "SR-LIMIT-012",
        "error",
        f"{plan.pointer}/memory_group/offset",
        f"memory group {plan.group!r} places {plan.uid!r} at offset {plan.offset_bytes}, which is not a"
        f" multiple of the alignment {alignment} that {device!r} needs",
        "multiples of 256 suit nearly all devices",
    )


def _check_pipelines(plan: Plan, beyond: _Beyond) -> None:
    for pipeline in plan.pipelines:
        place, label = pipeline.pointer, f"shader {pipeline.label!r}"
        for axis, length in enumerate(pipeline.local_size):
            what = f"{label} has a workgroup of {length} along {'xyz'[axis]}"
            beyond("maxComputeWorkGroupSize", length, place, what, axis)
        invocations = prod(pipeline.local_size)
        what = f"{label} has {invocations} invocations a workgroup"
        beyond("maxComputeWorkGroupInvocations", invocations, place, what)
        shared = pipeline.workgroup_memory_bytes
        beyond("maxComputeSharedMemorySize", shared, place, f"{label} has {shared} bytes of shared memory")
        _check_layouts(beyond, pipeline.set_layouts, pipeline.push_constants_size, place, label, ("compute",))


def _check_layouts(
    beyond: _Beyond, layouts: _SetLayouts, push_constants_size: int, place: str, label: str, stages: Iterable[str]
) -> None:
    """What the pipeline of the shaders ``label``, declared at ``place``, binds; limits count for each stage."""
    what = f"push_constants_size is {push_constants_size}"
    beyond("maxPushConstantsSize", push_constants_size, f"{place}/push_constants_size", what)
    sets = len(layouts)
    beyond("maxBoundDescriptorSets", sets, place, f"{label} uses descriptor set {sets - 1}")
    for stage in stages:
        kinds = [binding.kind for bindings in layouts for binding in bindings if stage in binding.stages]
        for name, counted, words in _COUNTED:
            count = sum(kind in counted for kind in kinds)
            beyond(name, count, place, f"{label} uses {count} {words}")
        beyond("maxPerStageResources", len(kinds), place, f"{label} uses {len(kinds)} resources")


def _check_resources(plan: Plan, beyond: _Beyond) -> None:
    seen = {(descriptor.uid, descriptor.kind) for each in plan.descriptor_lists for descriptor in each.descriptors}
    for uid, kind in sorted(seen):
        resource = plan.resources[uid]
        if kind in ("uniform_buffer", "storage_buffer"):
            beyond(
                "maxUniformBufferRange" if kind == "uniform_buffer" else "maxStorageBufferRange",
                resource.size_bytes,
                f"{resource.pointer}/size",
                f"buffer {uid!r} of {resource.size_bytes} bytes is bound as a {kind.replace('_', ' ')}",
            )
    for resource in plan.resources.values():
        if resource.kind == "image":
            what = f"image {resource.uid!r} has {resource.width} x {resource.height} texels"
            beyond("maxImageDimension2D", max(resource.width, resource.height), f"{resource.pointer}/dims", what)


def _check_counts(plan: Plan, beyond: _Beyond) -> None:
    checked = set()
    for frame in plan.frames:
        for operation in frame.operations:
            if operation.kind == "dispatch" and operation.workgroup_count not in checked:
                checked.add(operation.workgroup_count)
                for axis, count in enumerate(operation.workgroup_count):
                    pointer = f"/commands/{operation.command}/dispatch_compute/rangeND"
                    beyond("maxComputeWorkGroupCount", count, pointer, f"{count} workgroups along {'xyz'[axis]}", axis)
