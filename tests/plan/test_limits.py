"""Scenarios against the limits of a reported device: one finding for each thing that is too much."""

import copy
import json
from pathlib import Path
from typing import Any

import numpy
import pytest

from scenario_runner.doctor.machine_report import gather
from scenario_runner.errors.diagnostic import Diagnostic
from scenario_runner.plan.limits import NAMES
from scenario_runner.run.reported_device import read_device
from scenario_runner.validation import Options, validate_file
from tests.scenes import Scene, glsl

NOTHING: dict[str, Any] = {name: 0 for name in NAMES if name.startswith("max")}
# Exactly what the scenario below needs.
ENOUGH = NOTHING | {
    "maxBoundDescriptorSets": 3,
    "maxComputeSharedMemorySize": 4096,
    "maxComputeWorkGroupCount": [10, 20, 30],
    "maxComputeWorkGroupInvocations": 2 * 3 * 4,
    "maxComputeWorkGroupSize": [2, 3, 4],
    "maxImageDimension2D": 7,
    "maxPerStageDescriptorStorageBuffers": 2,
    "maxPerStageDescriptorUniformBuffers": 1,
    "maxPerStageResources": 3,
    "maxPushConstantsSize": 128,
    "maxStorageBufferRange": 1000,
    "maxUniformBufferRange": 500,
}
DECLARED = """
layout(local_size_y = 3, local_size_z = 4) in;
layout(set = 0, binding = 0) buffer Data { uint data[]; };
layout(set = 0, binding = 1) uniform Uniform { uint first; };
layout(set = 2, binding = 0) buffer More { uint more[]; };
layout(push_constant) uniform Push { uint pushed[32]; };
shared uint table[1024];
"""
BODY = "table[gl_LocalInvocationIndex] = more[0]; barrier(); data[0] = table[1] + first + pushed[31];"


@pytest.fixture(scope="module")
def report() -> dict[str, Any]:
    """The doctor's report of this machine, whose first device is called "card"."""
    content: dict[str, Any] = json.loads(json.dumps(gather()))
    content["devices"] = content["devices"][:1]
    content["devices"][0]["name"] = "card"
    return content


@pytest.fixture
def scene(scene: Scene, shader_cache: Path) -> Scene:
    """One dispatch that uses a bit of everything."""
    scene.shader("s", glsl(BODY, DECLARED, local_size=2), push_constants_size=128)
    scene.buffer("big", size=1000).buffer("uni", size=500).image("i", "R8G8B8A8_UNORM", size=(5, 7))
    scene.raw_data("pushed", numpy.zeros(32, "u4"))
    bindings = {(0, 0): "big", (0, 1): "uni", (2, 0): "big"}
    return scene.dispatch("s", bindings, [10, 20, 30], push_data_ref="pushed")


def findings(scene: Scene, report: dict[str, Any], limits: dict[str, Any]) -> tuple[Diagnostic, ...]:
    """The findings about the scenario on a device with these limits."""
    report["devices"][0]["limits"] = limits
    path = scene.file("doctor.json", json.dumps(report))
    return validate_file(scene.write(), Options(device=read_device(str(path)))).findings


def test_exactly_enough(scene: Scene, report: dict[str, Any]) -> None:
    """A scenario that needs exactly what the device has is fine, and so is a device that reports no limits."""
    assert findings(scene, report, ENOUGH) == ()
    assert findings(scene, report, {}) == ()


SHADER = "/resources/0/shader"
COMMAND = "/commands/0/dispatch_compute"


@pytest.mark.parametrize(
    "code, name, limit, pointer, words",
    [
        ("SR-LIMIT-001", "maxComputeWorkGroupSize[2]", 3, SHADER, "shader 's' has a workgroup of 4 along z"),
        ("SR-LIMIT-002", "maxComputeWorkGroupInvocations", 23, SHADER, "shader 's' has 24 invocations a workgroup"),
        ("SR-LIMIT-003", "maxComputeWorkGroupCount[1]", 19, f"{COMMAND}/rangeND", "20 workgroups along y"),
        ("SR-LIMIT-004", "maxComputeSharedMemorySize", 4095, SHADER, "shader 's' has 4096 bytes of shared memory"),
        ("SR-LIMIT-005", "maxBoundDescriptorSets", 2, SHADER, "shader 's' uses descriptor set 2"),
        ("SR-LIMIT-006", "maxPerStageDescriptorStorageBuffers", 1, SHADER, "shader 's' uses 2 storage buffers"),
        ("SR-LIMIT-006", "maxPerStageResources", 2, SHADER, "shader 's' uses 3 resources"),
        ("SR-LIMIT-007", "maxPushConstantsSize", 124, f"{SHADER}/push_constants_size", "push_constants_size is 128"),
        (
            "SR-LIMIT-008",
            "maxUniformBufferRange",
            499,
            "/resources/2/buffer/size",
            "buffer 'uni' of 500 bytes is bound as a uniform buffer",
        ),
        # drivers work beyond it as a rule
        (
            "SR-LIMIT-008",
            "maxStorageBufferRange",
            999,
            "/resources/1/buffer/size",
            "buffer 'big' of 1000 bytes is bound as a storage buffer",
        ),
        ("SR-LIMIT-009", "maxImageDimension2D", 6, "/resources/3/image/dims", "image 'i' has 5 x 7 texels"),
    ],
)
def test_one_too_little(
    scene: Scene, report: dict[str, Any], code: str, name: str, limit: int, pointer: str, words: str
) -> None:
    """Whatever goes beyond a limit is one finding, with the limit's name, both numbers and the place."""
    member, _, axis = name.removesuffix("]").partition("[")
    limits = dict(ENOUGH)
    if axis:
        limits[member] = [limit if str(number) == axis else most for number, most in enumerate(ENOUGH[member])]
    else:
        limits[member] = limit
    (finding,) = findings(scene, report, limits)
    assert (finding.code, finding.pointer) == (code, pointer)
    assert finding.message == f"{words}; {name} of 'card' is {limit}"
    assert finding.severity == ("warning" if name == "maxStorageBufferRange" else "error")


@pytest.mark.parametrize("scope, has_workgroup_scope", [(3, False), (2, False), (2, True)])
def test_cooperative_matrices(report: dict[str, Any], tmp_path: Path, scope: int, has_workgroup_scope: bool) -> None:
    """A report lists the combinations of a device, and they are compared with those of the shaders."""
    components = ["float16", "float16", "float32", "float32"]
    row = {"sizes": [16, 16, 16], "components": components, "scope": scope, "saturating": False}
    report = copy.deepcopy(report)
    device = report["devices"][0]
    assert device["cooperative_matrices"] is None or "VK_KHR_cooperative_matrix" in device["extensions"]
    device["cooperative_matrices"] = [row | {"invocations": 0, "is_flexible": False}]
    features = {"cooperativeMatrixWorkgroupScope": has_workgroup_scope}
    device["features"] |= {"VkPhysicalDeviceCooperativeMatrix2FeaturesNV": features}
    (tmp_path / "doctor.json").write_text(json.dumps(report))
    matrices = Path(__file__).resolve().parents[2] / "scenarios" / "shader_features" / "cooperative_matrix"
    options = Options(device=read_device(str(tmp_path / "doctor.json")))
    messages = [finding.message for finding in validate_file(matrices / "scenario.json", options).findings]
    lacking = [each for each in messages if "needs cooperative matrices that 'card' lacks: A of 16 x 16" in each]
    assert len(lacking) == (scope == 2), messages
    assert all(("supports none" in each) != has_workgroup_scope for each in lacking)


def test_misaligned_members_of_a_group(scene: Scene, report: dict[str, Any]) -> None:
    """An offset must suit storage and uniform buffers."""
    scene.buffer("x", size=64, memory_group={"id": "g"}).buffer("y", size=64, memory_group={"id": "g", "offset": 64})
    limits = {"minStorageBufferOffsetAlignment": 32, "minUniformBufferOffsetAlignment": 256}
    (finding,) = findings(scene, report, ENOUGH | limits)
    assert (finding.code, finding.pointer) == ("SR-LIMIT-012", "/resources/6/buffer/memory_group/offset")
    assert finding.message == (
        "memory group 'g' places 'y' at offset 64, which is not a multiple of the alignment 256 that 'card' needs"
    )


def test_all_at_once(scene: Scene, report: dict[str, Any]) -> None:
    """Everything that is too much is reported together."""
    nothing = {name: [0] * 3 if isinstance(ENOUGH[name], list) else 0 for name in NOTHING}
    assert len(findings(scene, report, nothing)) == 16  # three axes twice, and ten limits of one number
