"""Inputs for the codes of devices, drivers and the system."""

import os
import subprocess

import numpy
import pytest

from scenario_runner import PipelineCaching, Runner
from scenario_runner.vulkan.layers import VALIDATION_LAYER, available_layers
from tests.drawings import drawing
from tests.errors.case import Case, Codes, Input
from tests.program import COMMAND
from tests.scenes import Scene, glsl

DATA = "layout(set = 0, binding = 0) buffer Data { uint data[]; };"
DOUBLE = "data[0] = uint(double(data[1]) * 1.5lf);"
IMAGE = {"dims": [1, 5, 5, 1], "format": "VK_FORMAT_R8G8B8A8_UNORM", "shader_access": "readwrite"}


def without_64_bit_floats(case: Case) -> Codes:
    case.scene.shader("s", glsl(DOUBLE, DATA)).buffer("x", size=64).dispatch("s", ["x"])
    return case.against(lambda device: device["features"]["VkPhysicalDeviceFeatures"].update(shaderFloat64=False))


def one_invocation_in_full_subgroups(case: Case) -> Codes:
    case.scene.shader("s", glsl("", DATA), full_subgroups=True).dispatch("s", [])
    properties = {"VkPhysicalDeviceVulkan11Properties": {"subgroupSize": 8}}
    features = {"VkPhysicalDeviceVulkan13Features": {"computeFullSubgroups": True}}
    return case.against(lambda device: (device["properties"].update(properties), device["features"].update(features)))


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


def padded_rows(case: Case) -> Codes:
    """Rows of 20 bytes, which the driver pads, and a buffer that takes them as tightly packed."""
    group = {"memory_group": {"id": "g"}}
    case.scene.resource("image", uid="i", tiling="LINEAR", **IMAGE, **group).buffer("x", size=100, **group)
    return case.run()


def no_memory_type(case: Case) -> Codes:
    """Run on a driver that has no memory type for both images and buffers."""
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
    """Return the codes that a run in another environment raises."""
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


def failing_device(case: Case) -> Codes:
    small(case.scene)
    return in_a_process(
        case, {**case.fault_layer, "FAULT_CALL": "vkCreateDevice", "FAULT_AT": "1", "FAULT_RESULT": "-3"}
    )


def no_driver(case: Case) -> Codes:
    small(case.scene)
    return in_a_process(case, {"VK_DRIVER_FILES": str(case.scene.folder / "none.json")})


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


INPUTS: dict[str, Input] = {
    "SR-LIMIT-011": tensor_of_seven_dimensions,
    "SR-LIMIT-013": one_invocation_in_full_subgroups,
    "SR-FEATURE-001": without_64_bit_floats,
    "SR-FEATURE-004": without_graphics,
    "SR-MEMORY-007": padded_rows,
    "SR-MEMORY-008": no_memory_type,
    "SR-DEVICE-001": failing_device,
    "SR-DEVICE-002": no_driver,
    "SR-DEVICE-007": what_the_validation_layer_reports,
    "SR-DEVICE-008": no_more_threads,
    "SR-DEVICE-009": pipeline_that_was_not_kept,
    "SR-RUN-005": without_renderdoc,
}
