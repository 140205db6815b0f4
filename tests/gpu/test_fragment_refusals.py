"""Drawings that no run begins with: each way to write one wrong has its code and its place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy
import pytest

from scenario_runner import Runner
from scenario_runner.errors import ScenarioError, ScenarioRunnerError, ShaderError, UnsupportedError
from tests.gpu.fragment_scenes import draw, fragment, output, target, vertex
from tests.gpu.image_scenes import binding
from tests.scenes import Scene

COMMAND = "/commands/0/dispatch_fragment"
SAMPLED = "layout(binding = 0) uniform usampler2D from;\n"


def small(scene: Scene, body: str = "color = 1u;", declarations: str = output("uint"), **keys: Any) -> None:
    """Shaders, two attachments "x" and "y" of 8 x 8 texels, and "z" of 16 x 16 with levels."""
    vertex(scene)
    fragment(scene, body, declarations, **keys)
    target(scene, "x", size=(8, 8))
    target(scene, "y", size=(8, 8))
    target(scene, "z", size=(16, 16), mips=3)


def two_sizes(scene: Scene) -> None:
    small(scene, "color = more = 1u;", output("uint") + output("uint", 1, "more"))
    draw(scene, ["x", "z"])


def another_render_extent(scene: Scene) -> None:
    small(scene)
    draw(scene, ["x"], render_extent=[8, 4])


def no_size(scene: Scene) -> None:
    small(scene)
    draw(scene, [])


def no_extent(scene: Scene) -> None:
    small(scene)
    draw(scene, ["x"], render_extent=[8, 0])


def attachment_that_is_sampled(scene: Scene) -> None:
    small(scene, "color = texelFetch(from, p, 0).r;", SAMPLED + output("uint"))
    draw(scene, ["x"], [binding(0, "x")])


def level_that_is_sampled(scene: Scene) -> None:
    small(scene, "color = texelFetch(from, p, 0).r;", SAMPLED + output("uint"))
    draw(scene, [{"resource_ref": "z", "lod": 2}], [binding(0, "z")])


def attached_twice(scene: Scene) -> None:
    small(scene, "color = more = 1u;", output("uint") + output("uint", 1, "more"))
    draw(scene, ["x", "x"])


def memory_that_is_read(scene: Scene) -> None:
    small(scene, "color = words[0];", "layout(binding = 0) readonly buffer B { uint words[]; };\n" + output("uint"))
    target(scene, "shared", size=(64, 8), memory_group={"id": "g"})
    scene.buffer("b", size=256, memory_group={"id": "g", "offset": 256})
    draw(scene, ["shared"], [binding(0, "b")])


def memory_attached_twice(scene: Scene) -> None:
    small(scene, "color = more = 1u;", output("uint") + output("uint", 1, "more"))
    for name in ("one", "other"):
        target(scene, name, size=(64, 8), memory_group={"id": "g"})
    draw(scene, ["one", "other"])


def level_that_is_not_there(scene: Scene) -> None:
    small(scene)
    draw(scene, [{"resource_ref": "z", "lod": 3}])


def depths(scene: Scene) -> None:
    small(scene, "color = 0.5;", output("float"))
    target(scene, "d", "D32_SFLOAT", size=(8, 8))
    draw(scene, ["d"])


def a_buffer(scene: Scene) -> None:
    small(scene)
    draw(scene.buffer("b", size=64), ["b"])


def swapped(scene: Scene) -> None:
    small(scene)
    draw(scene, ["x"], vertex_shader_ref="f", fragment_shader_ref="v")


def a_missing_shader(scene: Scene) -> None:
    small(scene)
    draw(scene, ["x"], fragment_shader_ref="g")


def another_kind_of_output(scene: Scene) -> None:
    small(scene, "color = 1.0;", output("float"))
    draw(scene, ["x"])


def an_input_without_an_output(scene: Scene) -> None:
    small(scene, "color = n;", "layout(location = 3) flat in uint n;\n" + output("uint"))
    draw(scene, ["x"])


def an_unbound_resource(scene: Scene) -> None:
    small(scene, "color = texelFetch(from, p, 0).r;", SAMPLED + output("uint"))
    draw(scene, ["x"])


def push_data_of_another_size(scene: Scene) -> None:
    small(scene, "color = n;", "layout(push_constant) uniform P { uint n; };\n" + output("uint"), push_constants_size=4)
    draw(scene.raw_data("d", numpy.zeros(2, "u4")), ["x"], push_data_ref="d")


def push_constants_beyond_the_size(scene: Scene) -> None:
    declared = "layout(push_constant) uniform P { uint n[3]; };\n"
    small(scene, "color = n[2];", declared + output("uint"), push_constants_size=4)
    draw(scene, ["x"])


def too_many_attachments(scene: Scene) -> None:
    names = [f"t{number}" for number in range(40)]
    small(scene, "color = 1u;", output("uint"))
    for name in names:
        target(scene, name, size=(4, 4))
    draw(scene, names)


def too_large(scene: Scene) -> None:
    small(scene, "", "")
    draw(scene, [], render_extent=[2**32 - 1, 4])


def a_format_without_drawing(scene: Scene) -> None:
    small(scene, "color = vec4(1);", output("vec4"))
    target(scene, "e", "R8G8B8_UNORM", size=(8, 8))
    draw(scene, ["e"])


@pytest.mark.parametrize(
    "make, kind, code, place",
    [
        (two_sizes, ScenarioError, "SR-ATTACH-007", "/color_attachment_refs/1"),
        (another_render_extent, ScenarioError, "SR-ATTACH-007", "/color_attachment_refs/0"),
        (no_size, ScenarioError, "SR-ATTACH-009", ""),
        (no_extent, ScenarioError, None, "/render_extent/1"),
        (attachment_that_is_sampled, ScenarioError, "SR-ATTACH-008", "/color_attachment_refs/0"),
        (level_that_is_sampled, ScenarioError, "SR-ATTACH-008", "/color_attachment_refs/0"),
        (attached_twice, ScenarioError, "SR-ATTACH-010", "/color_attachment_refs/1"),
        (memory_that_is_read, ScenarioError, "SR-ATTACH-008", "/color_attachment_refs/0"),
        (memory_attached_twice, ScenarioError, "SR-ATTACH-010", "/color_attachment_refs/1"),
        (level_that_is_not_there, ScenarioError, "SR-CONFLICT-007", "/color_attachment_refs/0/lod"),
        (depths, ScenarioError, "SR-ATTACH-006", "/color_attachment_refs/0"),
        (a_buffer, ScenarioError, None, "/color_attachment_refs/0"),
        (swapped, ScenarioError, "SR-CONFLICT-006", "/vertex_shader_ref"),
        (a_missing_shader, ScenarioError, None, "/fragment_shader_ref"),
        (another_kind_of_output, ScenarioRunnerError, "SR-ATTACH-003", "/color_attachment_refs/0"),
        (an_input_without_an_output, ScenarioRunnerError, "SR-STAGE-001", "/fragment_shader_ref"),
        (an_unbound_resource, ScenarioRunnerError, "SR-BIND-001", "/bindings"),
        (push_data_of_another_size, ScenarioError, "SR-PUSH-002", "/push_data_ref"),
        (push_constants_beyond_the_size, ScenarioRunnerError, "SR-PUSH-001", None),
        (too_many_attachments, UnsupportedError, "SR-LIMIT-010", "/color_attachment_refs"),
        (too_large, UnsupportedError, "SR-LIMIT-009", ""),
        (a_format_without_drawing, UnsupportedError, "SR-FEATURE-003", None),
    ],
)
def test_refusals(
    scene: Scene,
    runner: Runner,
    make: Callable[[Scene], None],
    kind: type[ScenarioRunnerError],
    code: str | None,
    place: str | None,
) -> None:
    """The first problem is the one that was made, at its line, and says what to do about it."""
    make(scene)
    with pytest.raises(kind) as caught:
        runner.run(scene.write())
    first = caught.value.problems[0]
    assert code is None or first.code == code
    assert place is None or first.pointer == COMMAND + place
    assert first.pointer
    assert caught.value.exit_code in {ScenarioError.exit_code, ShaderError.exit_code, UnsupportedError.exit_code}
