"""What a plan asks for against the limits of a device (VkPhysicalDeviceLimits): sentences instead of driver crashes."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from scenario_runner.errors import Problem
from scenario_runner.plan.model import Dispatch, Plan

# Names as in VkPhysicalDeviceLimits; values are int, or a sequence of three for x, y and z.
Limits = Mapping[str, int | tuple[int, int, int]]

NAMES = (
    "maxBoundDescriptorSets",
    "maxComputeSharedMemorySize",
    "maxComputeWorkGroupCount",
    "maxComputeWorkGroupInvocations",
    "maxComputeWorkGroupSize",
    "maxPerStageDescriptorStorageBuffers",
    "maxPerStageDescriptorUniformBuffers",
    "maxPushConstantsSize",
    "maxUniformBufferRange",
)


def exceeded_limits(plan: Plan, limits: Limits, device: str) -> list[Problem]:
    """Everything in ``plan`` that goes beyond ``limits``; each problem has the pointer of what asks for too much."""
    problems = []

    def beyond(name: str, asked: int, pointer: str, what: str, axis: int | None = None) -> None:
        limit = limits[name]
        most = limit if isinstance(limit, int) else limit[axis or 0]
        if asked > most:
            shown = name if axis is None else f"{name}[{axis}]"
            problems.append(Problem(f"{what}; {shown} of {device!r} is {most}", pointer=pointer))

    for pipeline in plan.pipelines:
        place, label = pipeline.pointer, f"shader {pipeline.label!r}"
        beyond(
            "maxPushConstantsSize",
            pipeline.push_constants_size,
            f"{place}/push_constants_size",
            f"push_constants_size is {pipeline.push_constants_size}",
        )
        sets = len(pipeline.set_layouts)
        beyond("maxBoundDescriptorSets", sets, place, f"{label} uses descriptor set {sets - 1}")
        for axis, size in enumerate(pipeline.local_size):
            beyond(
                "maxComputeWorkGroupSize", size, place, f"{label} has a workgroup of {size} along {'xyz'[axis]}", axis
            )
        invocations = prod(pipeline.local_size)
        beyond(
            "maxComputeWorkGroupInvocations", invocations, place, f"{label} has {invocations} invocations a workgroup"
        )
        shared = pipeline.workgroup_memory_bytes
        beyond("maxComputeSharedMemorySize", shared, place, f"{label} has {shared} bytes of shared memory")
        kinds = [binding.kind for bindings in pipeline.set_layouts for binding in bindings]
        for kind, name in (
            ("storage_buffer", "maxPerStageDescriptorStorageBuffers"),
            ("uniform_buffer", "maxPerStageDescriptorUniformBuffers"),
        ):
            count = kinds.count(kind)  # type: ignore[arg-type]
            beyond(name, count, place, f"{label} uses {count} {kind.replace('_', ' ')}s")
    for descriptors in plan.descriptor_lists:
        for descriptor in descriptors.descriptors:
            buffer = plan.resources[descriptor.uid]
            if descriptor.kind == "uniform_buffer":
                beyond(
                    "maxUniformBufferRange",
                    buffer.size_bytes,
                    f"{buffer.pointer}/size",
                    f"buffer {buffer.uid!r} of {buffer.size_bytes} bytes is bound as a uniform buffer",
                )
    checked = set()
    for frame in plan.frames:
        for operation in frame.operations:
            if isinstance(operation, Dispatch) and operation.groups not in checked:
                checked.add(operation.groups)
                for axis, count in enumerate(operation.groups):
                    pointer = f"/commands/{operation.command}/dispatch_compute/rangeND"
                    beyond("maxComputeWorkGroupCount", count, pointer, f"{count} workgroups along {'xyz'[axis]}", axis)
    return problems
