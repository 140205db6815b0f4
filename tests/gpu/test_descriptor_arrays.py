"""Arrays of descriptors: values, gaps, features that only some devices have, and wrong arrays."""

from pathlib import Path
from typing import Any

import numpy
import pytest

from scenario_runner import Runner
from scenario_runner.errors import UnsupportedError
from tests.left_out import DXC_LIBRARY, needs
from tests.program import Program
from tests.scenes import Scene, findings_of, glsl

OUT = "layout(binding = 1) buffer O { uint o[]; };"
BUFFERS = f"layout(binding = 0) buffer B {{ uint v[]; }} b[3]; {OUT}"
INDEX = "uint i = gl_WorkGroupID.x;"
NON_UNIFORM = "#extension GL_EXT_nonuniform_qualifier : require\n"
NUMBERS = {"x": [1, 2, 3], "y": [10, 20, 30], "z": [100, 200, 300]}
VULKAN_1_2 = "VkPhysicalDeviceVulkan12Features"


def array(*parts: str | dict[str, Any], **keys: Any) -> dict[str, Any]:
    return {"resource_refs": [*parts], **keys}


def scene_of(scene: Scene, body: str, declarations: str, bound: dict[str, Any]) -> Path:
    """Write a scenario with a shader in three workgroups on an array of buffers; `o` has the results."""
    scene.shader("s", glsl(f"{INDEX} {body}", declarations)).buffer("o", size=12)
    for uid, numbers in NUMBERS.items():
        scene.buffer(uid, numpy.array(numbers, "u4"))
    return scene.dispatch("s", [bound, "o"], [3]).write()


ALL = array("x", "y", "z")
RUNS: list[tuple[str, str, dict[str, Any], list[int]]] = [
    ("o[i] = b[0].v[i] + b[1].v[i] + b[2].v[i];", BUFFERS, ALL, [111, 222, 333]),
    ("o[i] = b[i].v[i];", BUFFERS, ALL, [1, 20, 300]),
    ("o[i] = b[i].v[i];", BUFFERS, array("z", "z", "x"), [100, 200, 3]),
    ("o[i] = b[i].v;", f"layout(binding = 0) uniform B {{ uint v; }} b[3]; {OUT}", ALL, [1, 10, 100]),
    (
        "o[i] = texelFetch(b[1], int(i)).x;",
        f"layout(binding = 0) uniform usamplerBuffer b[2]; {OUT}",
        array("x", "z", format="VK_FORMAT_R32_UINT"),
        [100, 200, 300],
    ),
]


@pytest.mark.parametrize("body, declarations, bound, expected", RUNS)
def test_values(
    scene: Scene, both: Runner, body: str, declarations: str, bound: dict[str, Any], expected: list[int]
) -> None:
    """Each entry of the array is the resource at this place, by constant and by other indices."""
    assert both.run(scene_of(scene, body, declarations, bound)).array("o", "u4").tolist() == expected


def test_parts_of_buffers(scene: Scene, both: Runner) -> None:
    """An entry may be a part of a buffer, and two entries parts of one buffer."""
    scene.shader("s", glsl("o[0] = b[0].v[0]; o[1] = b[1].v[1]; o[2] = uint(b[1].v.length());", BUFFERS))
    scene.buffer("w", numpy.arange(256, dtype="u4")).buffer("o", size=12)
    first, second = {"resource_ref": "w", "offset": 256}, {"resource_ref": "w", "offset": 512, "size": 8}
    scene.dispatch("s", [array(first, second, "w"), "o"])
    assert both.run(scene.write()).array("o", "u4").tolist() == [64, 129, 2]


def test_images(scene: Scene, both: Runner) -> None:
    """Arrays of storage images and of samplers with mip levels."""
    declared = "layout(binding = 0, r32ui) uniform writeonly uimage2D stored[2];"
    body = "imageStore(stored[0], ivec2(0), uvec4(5)); imageStore(stored[1], ivec2(0), uvec4(6));"
    scene.shader("store", glsl(body, declared))
    fetch = "o[0] = texelFetch(seen[0], ivec2(0), 0).x; o[1] = texelFetch(seen[1], ivec2(0), 0).x;"
    scene.shader("fetch", glsl(fetch, f"layout(binding = 0) uniform usampler2D seen[2]; {OUT}"))
    scene.image("p", "R32_UINT", size=(2, 2), mips=2).image("q", "R32_UINT", size=(2, 2)).buffer("o", size=8)
    scene.dispatch("store", [array({"resource_ref": "p", "lod": 1}, "q")])
    scene.dispatch("fetch", [array("q", {"resource_ref": "p", "lod": 1}), "o"])
    assert both.run(scene.write()).array("o", "u4").tolist() == [6, 5]


def test_images_of_several_formats(scene: Scene, runner: Runner) -> None:
    """A shader that declares another format runs without a format where the images of its array have several."""
    declared = "layout(binding = 0, rgba8) uniform writeonly image2D stored[2];"
    scene.shader(
        "s", glsl("imageStore(stored[0], ivec2(0), vec4(1)); imageStore(stored[1], ivec2(0), vec4(1));", declared)
    )
    scene.image("p", "R32_SFLOAT", size=(1, 1)).image("q", "R8G8B8A8_UNORM", size=(1, 1))
    result = runner.run(scene.dispatch("s", [array("p", "q")]).write())
    assert result["p"].ravel().tolist() == [1]
    assert result["q"].ravel().tolist() == [255] * 4


TEXELS = f"layout(binding = 0) uniform usamplerBuffer b[3]; {OUT}"
# Body, declarations, binding, expected values, feature of Vulkan 1.2.
FEATURES: list[tuple[str, str, dict[str, Any], list[int], str]] = [
    (
        "o[i] = b[nonuniformEXT(i)].v[i];",
        NON_UNIFORM + BUFFERS,
        ALL,
        [1, 20, 300],
        "shaderStorageBufferArrayNonUniformIndexing",
    ),
    ("o[i] = b[i].v[i];", NON_UNIFORM + BUFFERS.replace("[3]", "[]"), ALL, [1, 20, 300], "runtimeDescriptorArray"),
    ("o[i] = b[i / 2 * 2].v[i];", BUFFERS, array("x", "", "z"), [1, 2, 300], "descriptorBindingPartiallyBound"),
    ("o[i] = b[i / 2].v[i];", BUFFERS, array("x", "y"), [1, 2, 30], "descriptorBindingPartiallyBound"),
    (
        "o[i] = texelFetch(b[i], int(i)).x;",
        TEXELS,
        array("x", "y", "z", format="VK_FORMAT_R32_UINT"),
        [1, 20, 300],
        "shaderUniformTexelBufferArrayDynamicIndexing",
    ),
]


@pytest.mark.parametrize("body, declarations, bound, expected, feature", FEATURES)
def test_features(
    scene: Scene,
    runner: Runner,
    body: str,
    declarations: str,
    bound: dict[str, Any],
    expected: list[int],
    feature: str,
) -> None:
    """A device with the feature gives the values, and another device is refused with the name of the feature."""
    path = scene_of(scene, body, declarations, bound)
    if runner.physical_device.features.find(VULKAN_1_2, feature) is not None:
        assert runner.run(path).array("o", "u4").tolist() == expected
    else:
        with pytest.raises(UnsupportedError, match=feature):
            runner.run(path)


@needs(DXC_LIBRARY)
def test_an_index_marked_by_dxc(scene: Scene, runner: Runner) -> None:
    """dxc marks the index as non-uniform and declares no capability for the kind of descriptor."""
    text = "RWStructuredBuffer<uint> o : register(u1); struct V { uint4 v; }; ConstantBuffer<V> b[2] : register(b0);\n"
    text += "[numthreads(2, 1, 1)] void main(uint i : SV_GroupIndex) { o[i] = b[NonUniformResourceIndex(i)].v.x; }"
    scene.resource("shader", uid="s", type="HLSL", src={"text": text}).buffer("o", size=8)
    for uid, numbers in NUMBERS.items():
        scene.buffer(uid, numpy.array([*numbers, 0], "u4"))
    path = scene.dispatch("s", [array("x", "y"), "o"]).write()
    feature = "shaderUniformBufferArrayNonUniformIndexing"
    if runner.physical_device.features.find(VULKAN_1_2, feature) is not None:
        assert runner.run(path).array("o", "u4").tolist() == [1, 10]
    else:
        with pytest.raises(UnsupportedError, match=feature):
            runner.run(path)


def test_hazards(scene: Scene, shader_cache: Path) -> None:
    """Each entry counts as used: a later command on any of them needs a barrier."""
    scene_of(scene, "b[i].v[0] = 1;", BUFFERS, ALL)
    scene.commands[0]["dispatch_compute"]["implicit_barrier"] = False
    scene.shader("t", glsl("o[0] = a[0];", f"layout(binding = 0) readonly buffer A {{ uint a[]; }}; {OUT}"))
    scene.dispatch("t", ["y", "o"])
    findings = findings_of(scene.write(), hazards=True)
    assert [finding.code for finding in findings] == ["SR-HAZARD-001"]


VARIABLE = "storage buffer 'b' at set 0, binding 0 in shader 's'"
# Binding, body, exit code, code, place in the binding, message.
WRONG: dict[str, tuple[dict[str, Any], str, int, str, str, str]] = {
    "too many": (
        array("x", "y", "z", "x"), "o[i] = b[i].v[i];", 3, "SR-BIND-007", "/resource_refs",
        f"4 resources are bound to {VARIABLE}, which is an array of 3",
    ),
    "both keys": (
        array("x", "y", "z", resource_ref="x"), "o[i] = b[i].v[i];", 3, "SR-JSON-004", "",
        "expected one of 'resource_ref' and 'resource_refs', got both",
    ),
    "neither key": ({}, "o[i] = b[i].v[i];", 3, "SR-JSON-004", "", "the required key 'resource_ref' is missing"),
    "an unknown uid": (
        array("x", "y", "a"), "o[i] = b[i].v[i];", 3, "SR-REF-001", "/resource_refs/2", "no resource has the uid 'a'",
    ),
    "an image": (
        array("x", "y", "p"), "o[i] = b[i].v[i];", 3, "SR-BIND-003", "/resource_refs/2",
        f"image 'p' is bound to {VARIABLE}, which needs a buffer",
    ),
    "a gap that the shader uses": (
        array("x", "", "z"), "o[i] = b[1].v[i];", 3, "SR-BIND-001", "",
        f"nothing is bound to entry 1 of {VARIABLE}, which uses it",
    ),
    "an end that the shader uses": (
        array("x"), "o[i] = b[2].v[i];", 3, "SR-BIND-001", "",
        f"nothing is bound to entry 2 of {VARIABLE}, which uses it",
    ),
    "a range outside": (
        array("x", "y", {"resource_ref": "z", "offset": 12}), "o[i] = b[i].v[i];", 3, "SR-CONFLICT-009",
        "/resource_refs/2/offset", "the buffer 'z' has 12 bytes, got the offset 12",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_wrong(scene: Scene, program: Program, shader_cache: Path, case: str) -> None:
    """A wrong array is one error with the place, for validate and for a run."""
    bound, body, exit_code, code, inside, message = WRONG[case]
    scene.image("p", "R8_UINT", size=(1, 1))
    path = scene_of(scene, body, BUFFERS, bound)
    (finding,) = [each for each in findings_of(path) if each.severity == "error"]
    assert (finding.code, finding.message) == (code, message)
    assert finding.pointer == f"/commands/0/dispatch_compute/bindings/0{inside}"
    assert message in program.fail(exit_code, path.name).err


def test_several_resources_for_one_variable(scene: Scene, shader_cache: Path) -> None:
    """Only an array takes several resources; one resource in an array suits any variable."""
    scene_of(scene, "o[i] = v[i];", f"layout(binding = 0) buffer B {{ uint v[]; }}; {OUT}", array("x", "y"))
    (finding,) = findings_of(scene.write())
    assert (finding.code, finding.pointer) == ("SR-BIND-007", "/commands/0/dispatch_compute/bindings/0/resource_refs")
    assert finding.message.endswith("which is not an array")
    scene.commands[0]["dispatch_compute"]["bindings"][0]["resource_refs"] = ["x"]
    assert findings_of(scene.write()) == []


def test_gaps_and_keys_beside(scene: Scene, shader_cache: Path) -> None:
    """Gaps, and keys of the binding that an array replaces, are warnings."""
    scene_of(scene, "o[i] = b[i].v[i];", BUFFERS, array("x", "", "z", offset=4))
    place = "/commands/0/dispatch_compute/bindings/0"
    assert [(finding.code, finding.pointer, finding.message) for finding in findings_of(scene.write())] == [
        ("SR-BIND-012", place, f"nothing is bound to entry 1 of {VARIABLE}"),
        ("SR-CONFLICT-002", f"{place}/offset", "has no effect beside resource_refs"),
    ]
