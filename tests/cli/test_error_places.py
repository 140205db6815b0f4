"""Every error of a run begins with the place in the scenario, whatever part of the run finds it."""

import re

import pytest

from tests.program import Program
from tests.scenes import Scene, glsl

WRITES = glsl("x[0] = 1u;", "layout(set = 0, binding = 0) buffer X { uint x[]; };")


def with_options(scene: Scene) -> Scene:
    return scene.shader("s", WRITES, build_options="-what").buffer("x", size=4).dispatch("s", ["x"])


def no_model(scene: Scene) -> Scene:
    scene.file("model.vgf", b"nothing of the kind")
    scene.resource("graph", uid="g", src="model.vgf")
    return scene.command("dispatch_graph", graph_ref="g", bindings=[])


def too_large(scene: Scene) -> Scene:
    return scene.shader("s", WRITES).buffer("x", size=2**50, dst=None).dispatch("s", ["x"])


@pytest.mark.parametrize(
    "make, pointer, code, what",
    [
        (with_options, "/resources/0/shader", 3, "shader 's': build_options: unknown option '-what'"),
        (no_model, "/resources/0/graph/src", 4, r"\S*model\.vgf: "),
        (too_large, "/resources/1/buffer", 9, "vkCreateBuffer failed "),
    ],
)
def test_the_place(program: Program, scene: Scene, make: object, pointer: str, code: int, what: str) -> None:
    """File, line, column and JSON pointer come first."""
    assert callable(make)
    make(scene).write()
    ended = program("scenario.json")
    assert ended.code == code
    errors = [line for line in ended.err.splitlines() if line.startswith("error: ")]
    assert errors
    for error in errors:
        assert re.match(rf"error: scenario\.json:\d+:\d+: {pointer}: {what}", error)


def test_warnings_of_a_device(program: Program, scene: Scene) -> None:
    """What exceeds a limit that drivers do not enforce names the scenario and the place as well."""
    too_large(scene).write()
    warnings = [line for line in program("scenario.json").err.splitlines() if line.startswith("warning: ")]
    assert len(warnings) == 1
    assert warnings[0].startswith("warning: scenario.json: /resources/1/buffer/size: buffer 'x' of ")
