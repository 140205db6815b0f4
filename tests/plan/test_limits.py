"""A plan against the limits of a device: one sentence for each thing that is too much."""

from __future__ import annotations

from typing import Any

import pytest

from scenario_runner.plan.limits import NAMES, exceeded_limits
from scenario_runner.plan.plan import FramePlan, Plan
from scenario_runner.plan.records import (
    BufferPlan,
    Descriptor,
    DescriptorList,
    Dispatch,
    LayoutBinding,
    PipelinePlan,
    Requirements,
    Specialization,
)

# Exactly what the plan below needs.
ENOUGH: dict[str, Any] = {
    "maxBoundDescriptorSets": 3,
    "maxColorAttachments": 0,
    "maxComputeSharedMemorySize": 4096,
    "maxComputeWorkGroupCount": (10, 20, 30),
    "maxComputeWorkGroupInvocations": 2 * 3 * 4,
    "maxComputeWorkGroupSize": (2, 3, 4),
    "maxFragmentInputComponents": 0,
    "maxFragmentOutputAttachments": 0,
    "maxFramebufferHeight": 0,
    "maxFramebufferWidth": 0,
    "maxImageDimension2D": 1,
    "maxPerStageDescriptorSampledImages": 0,
    "maxPerStageDescriptorSamplers": 0,
    "maxPerStageDescriptorStorageBuffers": 2,
    "maxPerStageDescriptorStorageImages": 0,
    "maxPerStageDescriptorUniformBuffers": 1,
    "maxPerStageResources": 3,
    "maxPushConstantsSize": 128,
    "maxStorageBufferRange": 1000,
    "maxUniformBufferRange": 500,
    "maxVertexOutputComponents": 0,
}

STORAGE, UNIFORM = LayoutBinding(0, "storage_buffer"), LayoutBinding(1, "uniform_buffer")
LAYOUTS = ((STORAGE, UNIFORM), (), (STORAGE,))


def plan() -> Plan:
    """A plan with one dispatch that uses a bit of everything."""
    pipeline = PipelinePlan(b"", "main", Specialization(), LAYOUTS, 128, "s", "/resources/0/shader", (2, 3, 4), 4096)
    buffers = {
        "big": BufferPlan("big", "/resources/1/buffer", 1000),
        "uni": BufferPlan("uni", "/resources/2/buffer", 500),
    }
    descriptors = (
        Descriptor(0, 0, "storage_buffer", "big"),
        Descriptor(0, 1, "uniform_buffer", "uni"),
        Descriptor(2, 0, "storage_buffer", "big"),
    )
    dispatches = (Dispatch(0, 0, (10, 20, 30), bytes(128), True, 0), Dispatch(0, 0, (10, 20, 30), bytes(128), True, 1))
    frame = FramePlan(dispatches, (), 0, False, "/commands")
    return Plan("p", buffers, (pipeline,), (DescriptorList(LAYOUTS, descriptors),), (frame,), (), Requirements({}, {}))


def test_exactly_enough() -> None:
    """A plan that needs exactly what the device has is fine, and so is a device that reports no limits."""
    assert set(ENOUGH) == {name for name in NAMES if name.startswith("max")}
    assert exceeded_limits(plan(), ENOUGH, "card") == []
    assert exceeded_limits(plan(), {}, "card") == []


@pytest.mark.parametrize(
    "name, limit, pointer, words",
    [
        ("maxBoundDescriptorSets", 2, "/resources/0/shader", "shader 's' uses descriptor set 2"),
        ("maxComputeSharedMemorySize", 4095, "/resources/0/shader", "shader 's' has 4096 bytes of shared memory"),
        ("maxComputeWorkGroupCount[1]", 19, "/commands/0/dispatch_compute/rangeND", "20 workgroups along y"),
        ("maxComputeWorkGroupInvocations", 23, "/resources/0/shader", "shader 's' has 24 invocations a workgroup"),
        ("maxComputeWorkGroupSize[2]", 3, "/resources/0/shader", "shader 's' has a workgroup of 4 along z"),
        ("maxPerStageDescriptorStorageBuffers", 1, "/resources/0/shader", "shader 's' uses 2 storage buffers"),
        ("maxPerStageDescriptorUniformBuffers", 0, "/resources/0/shader", "shader 's' uses 1 uniform buffers"),
        ("maxPerStageResources", 2, "/resources/0/shader", "shader 's' uses 3 resources"),
        ("maxPushConstantsSize", 124, "/resources/0/shader/push_constants_size", "push_constants_size is 128"),
        (
            "maxUniformBufferRange",
            499,
            "/resources/2/buffer/size",
            "buffer 'uni' of 500 bytes is bound as a uniform buffer",
        ),
    ],
)
def test_one_too_little(name: str, limit: int, pointer: str, words: str) -> None:
    """Whatever goes beyond a limit is one error, with the limit's name, both numbers and the place."""
    limits = dict(ENOUGH)
    member, _, axis = name.removesuffix("]").partition("[")
    if axis:
        limits[member] = tuple(limit if str(each) == axis else most for each, most in enumerate(ENOUGH[member]))
    else:
        limits[member] = limit
    (finding,) = exceeded_limits(plan(), limits, "card")
    message = f"{words}; {name} of 'card' is {limit}"
    assert (finding.severity, finding.pointer, finding.message) == ("error", pointer, message)


def test_storage_buffer_range_is_tolerated() -> None:
    """Storage buffers beyond maxStorageBufferRange are a warning: drivers work with them as a rule."""
    (finding,) = exceeded_limits(plan(), {**ENOUGH, "maxStorageBufferRange": 999}, "card")
    assert finding.severity == "warning"
    assert finding.message == (
        "buffer 'big' of 1000 bytes is bound as a storage buffer; maxStorageBufferRange of 'card' is 999"
    )


def test_all_at_once() -> None:
    """Everything that is too much is reported together."""
    nothing = {name: (0, 0, 0) if isinstance(limit, tuple) else 0 for name, limit in ENOUGH.items()}
    findings = exceeded_limits(plan(), nothing, "card")
    assert len(findings) == 15  # three axes twice, and nine limits of one number
