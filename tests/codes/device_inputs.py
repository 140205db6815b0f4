"""Inputs for the codes of devices, drivers and the system."""

from __future__ import annotations

import os
import subprocess
import sys
from signal import SIGSEGV
from typing import Any

import numpy
import pytest

from scenario_runner import PipelineCaching, Runner
from scenario_runner.graphs.tables import decoder
from scenario_runner.vulkan.layers import VALIDATION_LAYER, available_layers
from tests.codes.case import Case, Codes, Input
from tests.drawings import drawing
from tests.program import COMMAND
from tests.scenes import Scene, glsl

DATA = "layout(set = 0, binding = 0) buffer Data { uint data[]; };"
PUSH = "layout(push_constant) uniform Push { uint step; };" + DATA
TABLE = DATA + "shared uint table[8];"
DOUBLE = "data[0] = uint(double(data[1]) * 1.5lf);"
IMAGE = {"dims": [1, 5, 5, 1], "format": "VK_FORMAT_R8G8B8A8_UNORM", "shader_access": "readwrite"}


def limit(body: str = "data[0] = 1;", declarations: str = DATA, **limits: Any) -> Input:
    """A dispatch of 3 workgroups of 8 invocations on a device whose limits are lower."""

    def found(case: Case) -> Codes:
        keys = {"push_constants_size": 4} if declarations is PUSH else {}
        case.scene.shader("s", glsl(body, declarations, local_size=8), **keys).buffer("x", size=64)
        case.scene.resource("image", uid="i", **IMAGE).dispatch("s", ["x"], [3])
        return case.against(lambda device: device["limits"].update(limits))

    return found


def misaligned_offset(case: Case) -> Codes:
    """A buffer at an offset that suits the items of any buffer, but not the device."""
    case.scene.buffer("x", size=64, memory_group={"id": "g"})
    case.scene.buffer("y", size=64, memory_group={"id": "g", "offset": 64})
    return case.against(lambda device: device["limits"].update(minStorageBufferOffsetAlignment=256))


def without_64_bit_floats(case: Case) -> Codes:
    case.scene.shader("s", glsl(DOUBLE, DATA)).buffer("x", size=64).dispatch("s", ["x"])
    return case.against(lambda device: device["features"]["VkPhysicalDeviceFeatures"].update(shaderFloat64=False))


def without_tensors(case: Case) -> Codes:
    case.scene.tensor("t", dims=[4])
    return case.against(lambda device: [_forget(device, name) for name in ("features", "extensions")])


def _forget(device: dict[str, Any], what: str) -> None:
    """The device has nothing of tensors and graphs, and there are no layers for them."""
    device["ml"]["path"] = None
    device[what] = {name: value for name, value in device[what].items() if "ARM" not in name}


def many_attachments(case: Case) -> Codes:
    drawing(case.scene)
    return case.against(lambda device: device["limits"].update(maxColorAttachments=1))


def without_renderdoc(case: Case) -> Codes:
    """The library that the environment names is not there."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SCENARIO_RUNNER_RENDERDOC", "/nonexistent/librenderdoc.so")
        return case.raised(lambda: Runner(capture_frame="run"))


def without_graphics(case: Case) -> Codes:
    drawing(case.scene)
    return case.against(lambda device: [family["flags"].remove("graphics") for family in device["queue_families"]])


def tensor_of_seven_dimensions(case: Case) -> Codes:
    case.scene.tensor("t", dims=[1] * 7)
    return case.run()


def image_that_cannot_be_stored_to(case: Case) -> Codes:
    declared = "layout(set = 0, binding = 0) uniform writeonly image2D p;"
    case.scene.shader("s", glsl("imageStore(p, ivec2(0), vec4(1));", declared))
    case.scene.resource("image", uid="i", **{**IMAGE, "format": "VK_FORMAT_R8G8B8A8_SRGB"}).dispatch("s", ["i"])
    return case.run()


def padded_rows(case: Case) -> Codes:
    """Rows of 20 bytes, which the driver pads, and a buffer that takes them as tightly packed."""
    group = {"memory_group": {"id": "g"}}
    case.scene.resource("image", uid="i", tiling="LINEAR", **IMAGE, **group).buffer("x", size=100, **group)
    return case.run()


def no_memory_type(case: Case) -> Codes:
    """A driver whose images go into memory that buffers cannot have."""
    group = {"memory_group": {"id": "g"}}
    case.scene.resource("image", uid="i", **{**IMAGE, "dims": [1, 64, 4, 1]}, **group).buffer("x", size=1024, **group)
    return in_a_process(case, {**case.fault_layer, "FAULT_IMAGE_MEMORY_TYPES": "2"})


_CODES_OF_A_RUN = """
import sys
from scenario_runner import Runner, ScenarioRunnerError
try:
    with Runner() as runner:
        runner.run(sys.argv[1])
except ScenarioRunnerError as error:
    print(*{each.code for each in error.problems})
"""


def in_a_process(case: Case, environment: dict[str, str]) -> Codes:
    """What a run raises in a process with another environment."""
    done = subprocess.run(
        [COMMAND[0], "-c", _CODES_OF_A_RUN, str(case.scene.write())],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return set(done.stdout.split())


def small(scene: Scene, uid: str = "x") -> Scene:
    scene.shader("s", glsl("data[gl_WorkGroupID.x] += 1u;", DATA))
    return scene.buffer(uid, numpy.arange(4, dtype=numpy.uint32)).dispatch("s", [uid], [4])


def failing(call: str, result: int) -> Input:
    """A run in which a Vulkan call fails."""

    def found(case: Case) -> Codes:
        small(case.scene)
        fault = {"FAULT_CALL": call, "FAULT_AT": "1", "FAULT_RESULT": str(result)}
        return in_a_process(case, {**case.fault_layer, **fault})

    return found


def crash(case: Case) -> Codes:
    small(case.scene)
    fault = {"FAULT_CALL": "vkQueueSubmit", "FAULT_AT": "1", "FAULT_SIGNAL": str(int(SIGSEGV))}
    # with a second file, since a process that runs one alone ends by the signal
    other = small(Scene(case.scene.folder), "y").write("other.json")
    return case.ended(other.name, env={**case.fault_layer, **fault})


def no_driver(case: Case) -> Codes:
    small(case.scene)
    return in_a_process(case, {"VK_DRIVER_FILES": str(case.scene.folder / "none.json")})


def endless_loop(case: Case) -> Codes:
    """Work that the device says has not finished when the time is over."""
    small(case.scene)
    fault = {"FAULT_CALL": "vkWaitForFences", "FAULT_AT": "1", "FAULT_RESULT": "2", "FAULT_STAYS": "1"}
    return case.ended("--timeout", "1", env={**case.fault_layer, **fault})


def no_more_threads(case: Case) -> Codes:
    """Each thread wants a stack that is larger than the address space."""
    small(case.scene)
    return case.ended(launcher=("prlimit", f"--stack={8 << 30}", f"--as={4 << 30}"))


def pipeline_that_was_not_kept(case: Case) -> Codes:
    """The shader changed since the cache was written."""
    caching = PipelineCaching(case.scene.folder)
    with Runner(pipeline_cache=caching) as runner:
        runner.run(small(case.scene).write())
    case.scene.file("s.comp", glsl("data[0] = 3;", DATA))
    return case.run(pipeline_cache=PipelineCaching(case.scene.folder, fail_on_miss=True))


def what_the_validation_layer_reports(case: Case) -> Codes:
    """A hazard, which the layer takes for an error."""
    assert VALIDATION_LAYER in [name for name, _, _ in available_layers()], "this needs vulkan-validationlayers"
    two = "layout(binding = 0) buffer A { uint a[]; };\nlayout(binding = 1) buffer B { uint b[]; };\n"
    scene = case.scene.shader("copy", glsl("b[gl_WorkGroupID.x] = a[gl_WorkGroupID.x];", two))
    scene.buffer("x", numpy.arange(4, dtype=numpy.uint32)).buffer("y", size=16).buffer("z", size=16)
    scene.dispatch("copy", ["x", "y"], [4], implicit_barrier=False).dispatch("copy", ["y", "z"], [4])
    return case.ended("--validation-sync")


def without_the_library(case: Case) -> Codes:
    """The Python that runs has no package that reads VGF files."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "vgfpy", None)
        return case.raised(lambda: decoder("CreateModuleTableDecoder", bytes(8), "a.vgf", "module"))


INPUTS: dict[str, Input] = {
    "SR-LIMIT-001": limit(maxComputeWorkGroupSize=[4, 4, 4]),
    "SR-LIMIT-002": limit(maxComputeWorkGroupInvocations=4),
    "SR-LIMIT-003": limit(maxComputeWorkGroupCount=[2, 2, 2]),
    "SR-LIMIT-004": limit(
        "table[gl_LocalInvocationIndex] = 1; data[0] = table[1];", TABLE, maxComputeSharedMemorySize=16
    ),
    "SR-LIMIT-005": limit(maxBoundDescriptorSets=0),
    "SR-LIMIT-006": limit(maxPerStageDescriptorStorageBuffers=0),
    "SR-LIMIT-007": limit("data[0] = step;", PUSH, maxPushConstantsSize=0),
    "SR-LIMIT-008": limit(maxStorageBufferRange=8),
    "SR-LIMIT-009": limit(maxImageDimension2D=4),
    "SR-LIMIT-010": many_attachments,
    "SR-LIMIT-011": tensor_of_seven_dimensions,
    "SR-LIMIT-012": misaligned_offset,
    "SR-FEATURE-001": without_64_bit_floats,
    "SR-FEATURE-002": without_tensors,
    "SR-FEATURE-003": image_that_cannot_be_stored_to,
    "SR-FEATURE-004": without_graphics,
    "SR-FEATURE-005": without_the_library,
    "SR-MEMORY-007": padded_rows,
    "SR-MEMORY-008": no_memory_type,
    "SR-DEVICE-001": failing("vkCreateDevice", -3),
    "SR-DEVICE-002": no_driver,
    "SR-DEVICE-003": failing("vkAllocateMemory", -2),
    "SR-DEVICE-004": endless_loop,
    "SR-DEVICE-005": failing("vkQueueSubmit", -4),
    "SR-DEVICE-006": crash,
    "SR-DEVICE-007": what_the_validation_layer_reports,
    "SR-DEVICE-008": no_more_threads,
    "SR-DEVICE-009": pipeline_that_was_not_kept,
    "SR-RUN-005": without_renderdoc,
}
