"""Drawings that no run begins with: each way to write one wrong has its code and its place."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

from scenario_runner import Runner
from scenario_runner.errors import ScenarioError, ScenarioRunnerError, ShaderError, UnsupportedError
from tests.gpu.fragment_scenes import draw, fragment, output, target, vertex
from tests.gpu.image_scenes import binding
from tests.scenes import Scene

COMMAND = "/commands/0/dispatch_fragment"
REFS = "/color_attachment_refs"
# Bodies of fragment shaders with their declarations.
ONE = ("color = 1u;", output("uint"))
TWO = ("color = more = 1u;", output("uint") + output("uint", 1, "more"))
SAMPLING = ("color = texelFetch(from, p, 0).r;", "layout(binding = 0) uniform usampler2D from;\n" + output("uint"))
READING = ("color = words[0];", "layout(binding = 0) readonly buffer B { uint words[]; };\n" + output("uint"))
FLOATS = ("color = 1.0;", output("float"))
COLORS = ("color = vec4(1);", output("vec4"))
INPUT = ("color = n;", "layout(location = 3) flat in uint n;\n" + output("uint"))
PUSHED = ("color = n[0];", "layout(push_constant) uniform P { uint n[1]; };\n" + output("uint"))
MANY = [f"t{number}" for number in range(40)]
PUSHED_3 = ("color = n[2];", "layout(push_constant) uniform P { uint n[3]; };\n" + output("uint"))


@pytest.mark.parametrize(
    "shader, attachments, keys, kind, code, place",
    [
        (TWO, ["x", "z"], {}, ScenarioError, "SR-ATTACH-007", f"{REFS}/1"),
        (ONE, ["x"], {"render_extent": [8, 4]}, ScenarioError, "SR-ATTACH-007", f"{REFS}/0"),
        (ONE, [], {}, ScenarioError, "SR-ATTACH-009", ""),
        (ONE, ["x"], {"render_extent": [8, 0]}, ScenarioError, None, "/render_extent/1"),
        (SAMPLING, ["x"], {"bindings": [binding(0, "x")]}, ScenarioError, "SR-ATTACH-008", f"{REFS}/0"),
        (
            SAMPLING,
            [{"resource_ref": "z", "lod": 2}],
            {"bindings": [binding(0, "z")]},
            ScenarioError,
            "SR-ATTACH-008",
            f"{REFS}/0",
        ),
        (TWO, ["x", "x"], {}, ScenarioError, "SR-ATTACH-010", f"{REFS}/1"),
        (READING, ["shared"], {"bindings": [binding(0, "b")]}, ScenarioError, "SR-ATTACH-008", f"{REFS}/0"),
        (TWO, ["shared", "also"], {}, ScenarioError, "SR-ATTACH-010", f"{REFS}/1"),
        (ONE, [{"resource_ref": "z", "lod": 3}], {}, ScenarioError, "SR-CONFLICT-007", f"{REFS}/0/lod"),
        (FLOATS, ["depth"], {}, ScenarioError, "SR-ATTACH-006", f"{REFS}/0"),
        (ONE, ["b"], {}, ScenarioError, None, f"{REFS}/0"),
        (
            ONE,
            ["x"],
            {"vertex_shader_ref": "f", "fragment_shader_ref": "v"},
            ScenarioError,
            "SR-CONFLICT-006",
            "/vertex_shader_ref",
        ),
        (ONE, ["x"], {"fragment_shader_ref": "g"}, ScenarioError, None, "/fragment_shader_ref"),
        (FLOATS, ["x"], {}, ScenarioRunnerError, "SR-ATTACH-003", f"{REFS}/0"),
        (INPUT, ["x"], {}, ScenarioRunnerError, "SR-STAGE-001", "/fragment_shader_ref"),
        (SAMPLING, ["x"], {}, ScenarioRunnerError, "SR-BIND-001", "/bindings"),
        (PUSHED, ["x"], {"push_data_ref": "d"}, ScenarioError, "SR-PUSH-002", "/push_data_ref"),
        (PUSHED_3, ["x"], {}, ScenarioRunnerError, "SR-PUSH-001", None),
        (ONE, MANY, {}, UnsupportedError, "SR-LIMIT-010", REFS),
        (("", ""), [], {"render_extent": [2**32 - 1, 4]}, UnsupportedError, "SR-LIMIT-009", ""),
        (COLORS, ["three"], {}, UnsupportedError, "SR-FEATURE-003", None),
    ],
)
def test_refusals(
    scene: Scene,
    runner: Runner,
    shader: tuple[str, str],
    attachments: list[Any],
    keys: dict[str, Any],
    kind: type[ScenarioRunnerError],
    code: str | None,
    place: str | None,
) -> None:
    """The first problem is the one that was made, at its line, and says what to do about it."""
    vertex(scene)
    fragment(scene, *shader, **({"push_constants_size": 4} if shader in (PUSHED, PUSHED_3) else {}))
    target(scene, "x", size=(8, 8))
    target(scene, "z", size=(16, 16), mips=3)
    for uid in MANY if attachments is MANY else ():
        target(scene, uid, size=(4, 4))
    if "shared" in attachments:
        for uid in ("shared", "also"):
            target(scene, uid, size=(64, 8), memory_group={"id": "g"})
        scene.buffer("b", size=256, memory_group={"id": "g", "offset": 256})
    if "b" in attachments:
        scene.buffer("b", size=64)
    if "depth" in attachments:
        target(scene, "depth", "D32_SFLOAT", size=(8, 8))
    if "three" in attachments:
        target(scene, "three", "R8G8B8_UNORM", size=(8, 8))
    draw(scene.raw_data("d", numpy.zeros(2, "u4")), attachments, **keys)
    with pytest.raises(kind) as caught:
        runner.run(scene.write())
    first = caught.value.problems[0]
    assert code is None or first.code == code
    assert place is None or first.pointer == COMMAND + place
    assert first.pointer
    assert caught.value.exit_code in {ScenarioError.exit_code, ShaderError.exit_code, UnsupportedError.exit_code}
