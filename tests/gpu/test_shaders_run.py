"""Shaders from GLSL and SPIR-V, run on a real device."""

from __future__ import annotations

import re

import numpy
import pytest

from scenario_runner import Runner
from scenario_runner.errors import CompileError
from tests.scenes import Scene, glsl

ONE = "layout(set = 0, binding = 0) buffer B { uint a[]; };\n"


@pytest.mark.parametrize(
    "options, expected",
    [
        ("-DN=7", 7),
        ("-D N=8", 8),
        ("-DOTHER -DN=3", 3),
        ("  -DN=9   -DOTHER=1 ", 9),
        ('"-DN=(3 + 4)"', 7),
        ("-DN='(5 * 5)'", 25),
        ("-DN=1 -UN -DN=6", 6),
        ("-DADD(a,b)=((a)+(b)) -DN=ADD(20,1)", 21),
    ],
)
def test_build_options(scene: Scene, runner: Runner, options: str, expected: int) -> None:
    """build_options are taken as a compiler's command line takes them."""
    scene.shader("s", glsl("a[0] = uint(N);", ONE), build_options=options).buffer("x", size=4).dispatch("s", ["x"])
    assert runner.run(scene.write()).array("x", "u4").tolist() == [expected]


def test_include_directories(scene: Scene, runner: Runner) -> None:
    """Includes come from the shader's own folder, then include_dirs (relative to the scenario), then -I."""
    include = "#extension GL_GOOGLE_include_directive : require\n"
    scene.file("shaders/own.glsl", "const uint OWN = 1u;\n")
    scene.file("shared/own.glsl", "const uint OWN = 100u;\n")
    scene.file("shared/dir.glsl", '#include "deeper/nested.glsl"\nconst uint DIR = 10u + NESTED;\n')
    scene.file("shared/deeper/nested.glsl", "const uint NESTED = 2u;\n")
    scene.file("option dir/option.glsl", "const uint OPTION = 1000u;\n")
    includes = include + '#include "own.glsl"\n#include "dir.glsl"\n#include <option.glsl>\n'
    scene.file("shaders/s.comp", glsl("a[0] = OWN + DIR + OPTION;", includes + ONE))
    scene.resource(
        "shader", uid="s", src="shaders/s.comp", type="GLSL", include_dirs=["shared"], build_options="-I'option dir'"
    )
    scene.buffer("x", size=4).dispatch("s", ["x"])
    assert runner.run(scene.write()).array("x", "u4").tolist() == [1 + 12 + 1000]


def test_gaps_in_descriptor_sets(scene: Scene, runner: Runner) -> None:
    """Set and binding numbers may leave gaps."""
    declarations = (
        "layout(set = 1, binding = 7) buffer A { uint a[]; };\nlayout(set = 4, binding = 2) buffer B { uint b[]; };\n"
    )
    scene.shader("copy", glsl("b[0] = a[0] * 3u;", declarations))
    scene.buffer("x", numpy.array([5], numpy.uint32)).buffer("y", size=4)
    scene.dispatch("copy", {(4, 2): "y", (1, 7): "x"})
    assert runner.run(scene.write()).array("y", "u4").tolist() == [15]


def test_no_bindings(scene: Scene, runner: Runner) -> None:
    """A shader without resources runs without bindings, also between dispatches that have some."""
    scene.shader("nothing", glsl("")).shader("count", glsl("a[0] += 1u;", ONE)).buffer("x", size=4)
    scene.dispatch("nothing", []).dispatch("count", ["x"]).dispatch("nothing", []).dispatch("count", ["x"])
    assert runner.run(scene.write()).array("x", "u4").tolist() == [2]


def test_unused_shader_is_never_opened(scene: Scene, runner: Runner) -> None:
    """A shader that no command uses need not exist."""
    scene.resource("shader", uid="ghost", src="nowhere.comp", type="GLSL")
    scene.shader("count", glsl("a[0] += 1u;", ONE)).buffer("x", size=4).dispatch("count", ["x"])
    assert runner.run(scene.write()).array("x", "u4").tolist() == [1]


def test_shader_that_does_not_compile(scene: Scene, runner: Runner) -> None:
    """A failed compile shows file and line with the compiler's own message, for every such shader."""
    scene.shader("first", glsl("a[0] = missing;", ONE)).shader("second", glsl("a[0] += ;", ONE))
    scene.buffer("x", size=4).dispatch("first", ["x"]).dispatch("second", ["x"])
    with pytest.raises(CompileError) as caught:
        runner.run(scene.write())
    text = str(caught.value)
    assert re.search(r"first\.comp:6:8: .*'missing' : undeclared identifier", text)
    assert re.search(r"second\.comp:6:(\d+:)? .*syntax error", text)
