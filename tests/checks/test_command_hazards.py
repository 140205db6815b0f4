"""Missing barriers around draws, graphs and wrong commands, and barriers that are missing for certain."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from scenario_runner.errors.diagnostic import Diagnostic
from scenario_runner.validation import Options, validate_file
from tests.drawings import drawing, image
from tests.effort import calls_of
from tests.gpu.ml_scenes import SPIRV, bindings, random
from tests.left_out import VGF_LIBRARY, needs
from tests.scenes import Scene, at_level, findings_of, glsl

VERTEX = "layout(set = 0, binding = 0) readonly buffer D { vec4 d[]; };\nvoid main() { gl_Position = d[0]; }"
FRAGMENT = """
layout(set = 0, binding = 1) writeonly buffer E { vec4 e[]; };
layout(set = 0, binding = 2, rgba8) uniform writeonly image2D p;
layout(location = 0) out vec4 first;
layout(location = 1) out uint second;
void main() { first = vec4(1); second = 7; e[0] = vec4(2); imageStore(p, ivec2(0), vec4(3)); }
"""
FETCH = (
    "layout(set = 0, binding = 0) uniform sampler2D p; layout(set = 0, binding = 1) writeonly buffer B { vec4 b[]; };"
)


@pytest.fixture(autouse=True)
def _cache(shader_cache: Path) -> None:
    """Every shader is compiled once."""


def hazards(scene: Scene) -> list[tuple[str | None, str]]:
    """Code and message of the hazards, the message up to the reason."""
    findings = validate_file(scene.write(), Options(hazards=True)).findings
    assert {each.code for each in findings if each.severity == "error"} == set()
    found = [(each.code, each.message.split(";")[0]) for each in findings]
    return [each for each in found if (each[0] or "").startswith("SR-HAZARD")]


def drawn(scene: Scene, *, implicit_barrier: bool, **keys: Any) -> Scene:
    """A drawing that reads a buffer, writes another one and level 0 of an image, and draws into two images."""
    for uid in "de":
        scene.buffer(uid, size=64)
    image(scene, "i", mips=2)
    bindings = [{"set": 0, "id": number, "resource_ref": uid} for number, uid in enumerate("dei")]
    return drawing(scene, VERTEX, FRAGMENT, bindings=bindings, implicit_barrier=implicit_barrier, **keys)


def fetch(scene: Scene, uid: str, level: int = 0) -> Scene:
    """A dispatch that reads a level of an image."""
    scene.shader("fetch", glsl("b[0] = texelFetch(p, ivec2(0), 0);", FETCH)).buffer("out", size=64)
    bound = [{"set": 0, "id": 0, "resource_ref": uid, "lod": level}, {"set": 0, "id": 1, "resource_ref": "out"}]
    return scene.command("dispatch_compute", shader_ref="fetch", rangeND=[1], bindings=bound)


def fill(scene: Scene, uid: str) -> Scene:
    """A dispatch that writes a buffer."""
    scene.shader("fill", glsl("a[0] = 1;", "layout(set = 0, binding = 0) writeonly buffer A { uint a[]; };"))
    return scene.dispatch("fill", [uid])


DRAWING = "/commands/0/dispatch_fragment (shader 'f')"


@pytest.mark.parametrize("implicit_barrier", [True, False])
def test_attachments_are_written(scene: Scene, implicit_barrier: bool) -> None:
    """A read after a draw needs a barrier."""
    fetch(drawn(scene, implicit_barrier=implicit_barrier), "a")
    message = f"shader 'fetch' reads image 'a', which {DRAWING} writes"
    assert hazards(scene) == ([] if implicit_barrier else [("SR-HAZARD-001", message)])


@pytest.mark.parametrize("level, code", [(0, "SR-HAZARD-001"), (1, None)])
def test_the_level_of_an_attachment(scene: Scene, level: int, code: str | None) -> None:
    """A draw writes only the attached level."""
    attachments = [{"resource_ref": "i", "lod": 0}, "b"]
    scene.buffer("d", size=64)
    image(scene, "i", mips=2)
    fragment = FRAGMENT.replace("second = 7; e[0] = vec4(2); imageStore(p, ivec2(0), vec4(3));", "second = 7;")
    bindings = [{"set": 0, "id": 0, "resource_ref": "d"}]
    keys = {"bindings": bindings, "implicit_barrier": False, "color_attachment_refs": attachments}
    fetch(drawing(scene, VERTEX, fragment, **keys), "i", level)
    assert [each[0] for each in hazards(scene)] == ([] if code is None else [code])


@pytest.mark.parametrize(
    "uid, expected",
    [
        ("d", [("SR-HAZARD-002", f"shader 'fill' writes buffer 'd', which {DRAWING} reads")]),
        ("e", [("SR-HAZARD-003", f"shader 'fill' writes buffer 'e', which {DRAWING} writes")]),
    ],
)
def test_both_shaders_of_a_drawing_count(scene: Scene, uid: str, expected: list[tuple[str, str]]) -> None:
    """Reads of the vertex shader and writes of the fragment shader are accesses of the draw."""
    assert hazards(fill(drawn(scene, implicit_barrier=False), uid)) == expected


@pytest.mark.parametrize("level, code", [(0, "SR-HAZARD-001"), (1, None)])
def test_a_storage_image_of_a_drawing(scene: Scene, level: int, code: str | None) -> None:
    """A storage image without a level is its first one, in drawings as in dispatches."""
    fetch(drawn(scene, implicit_barrier=False), "i", level)
    assert [each[0] for each in hazards(scene)] == ([] if code is None else [code])


@pytest.mark.parametrize("implicit_barrier", [True, False])
def test_optical_flow(scene: Scene, implicit_barrier: bool) -> None:
    """An optical flow reads its two images and writes the motion."""
    names = ("search_image", "template_image", "output_image")
    for name in names:
        image(scene, name)
    bindings = {name: {"set": 0, "id": number, "resource_ref": name} for number, name in enumerate(names)}
    keys = {"width": 16, "height": 8, "grid_size": "1x1", "bindings": bindings, "implicit_barrier": implicit_barrier}
    scene.command("dispatch_optical_flow", **keys)
    fetch(scene, "output_image")
    scene.dispatch("fetch", ["search_image", "out"])
    flow = "/commands/0/dispatch_optical_flow (the optical flow)"
    message = f"shader 'fetch' reads image 'output_image', which {flow} writes"
    assert hazards(scene) == ([] if implicit_barrier else [("SR-HAZARD-001", message)])


def missing_barriers(path: Path, *, hazards: bool = True) -> list[Diagnostic]:
    """The findings about missing barriers."""
    findings = validate_file(path, Options(hazards=hazards)).findings
    return [finding for finding in findings if finding.code.startswith("SR-HAZARD")]


def model(checkout: Path, folder: Path, name: str) -> Path:
    """The scenario of a model, copied into ``folder``."""
    shutil.copytree(checkout / "scenarios" / "ml" / name, folder, dirs_exist_ok=True)
    return folder / "scenario.json"


def run_twice(path: Path, *, src_stage: list[str]) -> Path:
    """The scenario with its graph run twice, without an implicit barrier and with an explicit one between."""
    scenario = json.loads(path.read_text(encoding="utf-8"))
    (command,) = scenario["commands"]
    (dispatch,) = command.values()
    dispatch["implicit_barrier"] = False
    words = {"src_access": "memory_write", "dst_access": "memory_read", "src_stage": src_stage, "dst_stage": ["all"]}
    scenario["resources"].append({"memory_barrier": {"uid": "between", **words}})
    scenario["commands"] = [command, {"dispatch_barrier": {"memory_barrier_refs": ["between"]}}, command]
    path.write_text(json.dumps(scenario), encoding="utf-8")
    return path


@needs(VGF_LIBRARY)
@pytest.mark.parametrize(
    "name, src_stage, expected",
    [
        ("classifier", ["graph"], []),
        ("classifier", ["all"], []),
        ("classifier", ["compute"], ["SR-HAZARD-004"]),
        # the barriers between the segments of the second run come before it writes again
        ("mixed", ["compute"], []),
    ],
)
def test_a_graph_is_of_the_stage_of_graphs(
    checkout: Path, tmp_path: Path, name: str, src_stage: list[str], expected: list[str]
) -> None:
    """A graph without an implicit barrier needs one from the stage of graphs; its segments are in order anyway."""
    path = run_twice(model(checkout, tmp_path, name), src_stage=src_stage)
    assert [finding.code for finding in missing_barriers(path)] == expected


def test_a_graph_module_reads_its_inputs_and_writes_its_outputs(scene: Scene) -> None:
    """A SPIR-V graph reads the tensors at its inputs and writes those at its outputs."""
    scene.tensor("x", random((1, 8, 8, 4)))
    scene.tensor("y", dims=[1, 8, 8, 2])
    scene.module("graph", (SPIRV / "graph_constant.spv").read_bytes())
    weights = scene.npy("w.npy", random((2, 3, 3, 4), seed=2))
    scene.resource("graph_constant", uid="w", dims=[2, 3, 3, 4], format="VK_FORMAT_R32_SFLOAT", src=weights)
    keys = {"graph_ref": "graph", "bindings": bindings(["x", "y"]), "graph_constants": ["w"]}
    scene.command("dispatch_spirv_graph", **keys, implicit_barrier=False)
    scene.command("dispatch_spirv_graph", **keys)
    (hazard,) = missing_barriers(scene.write())  # the input, which both read, has none
    assert (hazard.code, hazard.message.split(",")[0]) == ("SR-HAZARD-003", "graph 'graph' writes tensor 'y'")


def test_a_command_that_cannot_be_planned_still_orders(scene: Scene, shader_cache: Path) -> None:
    """The implicit barrier of a wrong command still orders the commands before and after it."""
    scene.shader("fill", glsl("a[0] = 1;", "layout(set = 0, binding = 0) buffer A { uint a[]; };")).buffer("x", size=64)
    scene.shader("bad", "#version 450\nvoid main() { nonsense; }")
    scene.dispatch("fill", ["x"], implicit_barrier=False).dispatch("bad", []).dispatch("fill", ["x"])
    assert missing_barriers(scene.write()) == []


@pytest.mark.parametrize("kind", ["buffer", "image", "tensor"])
def test_barriers_over_a_resource_with_an_error(scene: Scene, kind: str) -> None:
    """A missing input file is the only finding, also if a barrier names the resource."""
    keys = {"dims": [1, 4, 4, 1], "format": "VK_FORMAT_R8_SINT"} if kind != "buffer" else {"size": 16}
    scene.resource(kind, uid="x", src="missing.npy", shader_access="readwrite", **keys)
    more = {"buffer": {"size": 16}, "image": {"old_layout": "general", "new_layout": "general"}, "tensor": {}}[kind]
    access = {"src_access": "memory_write", "dst_access": "memory_read"}
    scene.resource(f"{kind}_barrier", uid="b", **{f"{kind}_resource": "x"}, **access, **more)
    scene.command("dispatch_barrier", **{f"{kind}_barrier_refs": ["b"]})
    assert [finding.code for finding in findings_of(scene.write(), hazards=True)] == ["SR-FILE-006"]


def certain(scene: Scene) -> list[str]:
    """Return the codes and commands of hazards that are found without --hazards."""
    findings = missing_barriers(scene.write(), hazards=False)
    return [f"{each.code} {(each.pointer or '').split('/')[2]}" for each in findings]


WORDS = "layout(set = 0, binding = 0) buffer A { uint a[]; };"
READS = f"{WORDS} layout(set = 0, binding = 1) buffer B {{ uint b[]; }};"
TEXELS_2D = "layout(set = 0, binding = 0, rgba8) uniform writeonly image2D p;"
PARAMETER = "layout(push_constant) uniform P { uint n; };"
TEXELS = "layout(set = 0, binding = 0, r32ui) uniform uimageBuffer t;"


@pytest.mark.parametrize(
    "first, declared, second, code",
    [
        ("a[3] = 1;", WORDS, "a[1 + 2] = 1;", "SR-HAZARD-003"),
        ("a[gl_GlobalInvocationID.x] = 1;", WORDS, "uint b = a[gl_LocalInvocationIndex];", "SR-HAZARD-001"),
        ("uint i = gl_WorkGroupID.y * 8; i += 2; a[i] = 1;", WORDS, "a[2] = 1;", "SR-HAZARD-003"),
        ("uvec2 i = gl_WorkGroupID.yx; if (i.x < 4) a[i.y] = 1;", WORDS, "a[0] = 1;", "SR-HAZARD-003"),
        ("for (int i = 0; i < 3; i++) a[i] = 1;", WORDS, "a[2] = 1;", "SR-HAZARD-003"),
        ("imageStore(t, 2, uvec4(1));", TEXELS, "a[2] = 1;", "SR-HAZARD-003"),
        # a read before a write, other elements, and accesses that depend on data
        ("uint b = a[0];", WORDS, "a[0] = 1;", None),
        ("a[0] = 1;", WORDS, "a[1] = 1;", None),
        ("imageStore(t, 2, uvec4(1));", TEXELS, "a[1] = 1;", None),
        ("if (a[5] > 0) return; a[0] = 1;", WORDS, "a[0] = 1;", None),
        ("a[a[5]] = 1;", WORDS, "a[0] = 1;", None),
        ("a[n] = 1;", WORDS + PARAMETER, "a[0] = 1;", None),
        ("uint i = 0; if (n > 0) i = 1; a[i] = 1;", WORDS + PARAMETER, "a[0] = 1;", None),
        ("if (gl_WorkGroupID.x > 0) a[0] = 1;", WORDS, "a[0] = 1;", None),
        ("atomicAdd(a[0], 1);", WORDS, "atomicAdd(a[0], 1);", None),
        ("a[99] = 1;", WORDS, "a[99] = 1;", None),
        # a[10] as seen by the second shader
        ("q[0].a[2] = 1;", "layout(binding = 0) buffer A { uvec4 c[2]; uint a[8]; } q[1];", "a[6] = 1;", None),
    ],
)
def test_certain_hazards_of_shaders(scene: Scene, first: str, declared: str, second: str, code: str | None) -> None:
    """Without --hazards, `validate` warns if the first invocations certainly use the same bytes without any barrier."""
    scene.shader("first", glsl(first, declared)).shader("second", glsl(second, WORDS)).buffer("x", size=64)
    scene.resource("memory_barrier", uid="b", src_access="memory_read", dst_access="memory_read")

    def found(groups: int = 1, **keys: Any) -> list[str]:
        scene.dispatch("first", ["x"], (groups,), **keys).dispatch("second", ["x"])
        codes = certain(scene)
        scene.commands.clear()
        return codes

    assert found(implicit_barrier=False) == ([] if code is None else [f"{code} 1"])
    assert found() == found(0, implicit_barrier=False) == []
    scene.dispatch("first", ["x"], implicit_barrier=False)
    scene.command("dispatch_barrier", memory_barrier_refs=["b"])
    assert found() == []


def test_certain_hazards_of_other_commands(scene: Scene) -> None:
    """Fills and copies of buffers use known bytes, and images known texels. The end of a frame orders all commands."""
    scene.shader("read", glsl("b[0] = a[2];", READS)).buffer("x", size=64).buffer("y", size=64)
    fill = {"resource_ref": "x", "value": [1], "dtype": "uint32", "implicit_barrier": False}
    scene.command("fill", **fill, offset=8, size=4).command("fill", **fill, offset=12)
    scene.command("mark_boundary", resources=[]).dispatch("read", ["x", "y"])
    assert certain(scene) == []
    del scene.commands[2]
    assert certain(scene) == ["SR-HAZARD-001 2"]

    scene = Scene(scene.folder)
    scene.shader("store", glsl("imageStore(p, ivec2(gl_GlobalInvocationID.x + 1), vec4(1));", TEXELS_2D))
    scene.image("i", "R8G8B8A8_UNORM", size=(8, 8), mips=2)
    for level in (0, 1, 1):
        scene.dispatch("store", [at_level("i", level)], implicit_barrier=False)
    assert certain(scene) == ["SR-HAZARD-003 2"]

    scene.file("store.comp", glsl("imageStore(p, ivec2(gl_GlobalInvocationID.x - 1, 1), vec4(1));", TEXELS_2D))
    assert certain(scene) == []  # the texel is outside of the image


def test_effort_of_certain_hazards(scene: Scene) -> None:
    """Twice as many commands take twice the effort, also where each shader uses many words and each command a part."""
    scene.shader("loop", glsl("for (int i = 0; i < 300; i++) a[i] = i;", WORDS.replace("uint a", "int a")))
    scene.buffer("x", size=1 << 20)
    efforts = []
    for more in (20, 20, 40):
        for number in range(more):
            part = {"resource_ref": "x", "offset": 16 * number, "size": 8192}
            scene.dispatch("loop", [part], implicit_barrier=False)
        codes, effort = calls_of(lambda: certain(scene))
        efforts.append(effort)
        assert "SR-HAZARD-003 1" in codes
    assert efforts[2] < 2.5 * efforts[1]  # the first also compiles
