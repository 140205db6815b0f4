"""Shaders from GLSL and SPIR-V, run on a real device."""

from __future__ import annotations

import re

import numpy
import pytest

from scenario_runner import Runner
from scenario_runner.errors import CompileError, ShaderError
from tests.scenes import Scene, assemble, glsl

WORDS = "layout(set = 0, binding = {id}) buffer B{id} {{ uint {name}[]; }};\n"
ONE = WORDS.format(id=0, name="a")
TWO = ONE + WORDS.format(id=1, name="b")

# Two entry points in one module: "double" doubles binding 0 into binding 1, "negate" negates binding 0 in place.
TWO_ENTRIES = """
OpCapability Shader
OpMemoryModel Logical GLSL450
OpEntryPoint GLCompute %double "double" %id
OpEntryPoint GLCompute %negate "negate" %id
OpExecutionMode %double LocalSize 4 1 1
OpExecutionMode %negate LocalSize 1 1 1
OpDecorate %id BuiltIn GlobalInvocationId
OpDecorate %array ArrayStride 4
OpDecorate %block Block
OpMemberDecorate %block 0 Offset 0
OpDecorate %in DescriptorSet 0
OpDecorate %in Binding 0
OpDecorate %out DescriptorSet 0
OpDecorate %out Binding 1
%void = OpTypeVoid
%function = OpTypeFunction %void
%int = OpTypeInt 32 1
%uint = OpTypeInt 32 0
%zero = OpConstant %int 0
%vector = OpTypeVector %uint 3
%pvector = OpTypePointer Input %vector
%puint = OpTypePointer Input %uint
%id = OpVariable %pvector Input
%array = OpTypeRuntimeArray %int
%block = OpTypeStruct %array
%pblock = OpTypePointer StorageBuffer %block
%pint = OpTypePointer StorageBuffer %int
%in = OpVariable %pblock StorageBuffer
%out = OpVariable %pblock StorageBuffer
%double = OpFunction %void None %function
%l1 = OpLabel
%p1 = OpAccessChain %puint %id %zero
%i1 = OpLoad %uint %p1
%a1 = OpAccessChain %pint %in %zero %i1
%v1 = OpLoad %int %a1
%s1 = OpIAdd %int %v1 %v1
%b1 = OpAccessChain %pint %out %zero %i1
OpStore %b1 %s1
OpReturn
OpFunctionEnd
%negate = OpFunction %void None %function
%l2 = OpLabel
%p2 = OpAccessChain %puint %id %zero
%i2 = OpLoad %uint %p2
%a2 = OpAccessChain %pint %in %zero %i2
%v2 = OpLoad %int %a2
%s2 = OpSNegate %int %v2
OpStore %a2 %s2
OpReturn
OpFunctionEnd
"""


def test_glsl(scene: Scene, runner: Runner) -> None:
    """A GLSL shader is compiled and run, and its outputs are returned and stored."""
    x = numpy.arange(64, dtype=numpy.uint32)
    scene.shader("square", glsl("uint i = gl_GlobalInvocationID.x; b[i] = a[i] * a[i];", TWO, local_size=8))
    scene.buffer("x", x, shader_access="readonly", dst=None).buffer("y", size=256).dispatch("square", ["x", "y"], [8])
    result = runner.run(scene.write())
    assert list(result) == ["y"]
    assert (result.array("y", "u4") == x * x).all()
    assert (scene.output("y", "u4") == x * x).all()


def test_spirv_with_several_entry_points(scene: Scene, runner: Runner) -> None:
    """Each shader resource runs the entry point it names, out of one module."""
    x = numpy.arange(-8, 8, dtype=numpy.int32)
    code = assemble(TWO_ENTRIES)
    scene.module("twice", code, entry="double").module("minus", code, entry="negate")
    scene.buffer("x", x).buffer("y", size=64)
    scene.dispatch("twice", ["x", "y"], [4]).dispatch("minus", ["x"], [16])
    result = runner.run(scene.write())
    assert (result.array("y", "i4") == x * 2).all()
    assert (result.array("x", "i4") == -x).all()


def test_missing_entry_point(scene: Scene, runner: Runner) -> None:
    """An entry point that the module does not have is an error that lists those it has."""
    scene.module("twice", assemble(TWO_ENTRIES)).buffer("x", size=64).dispatch("twice", ["x"])
    path = scene.write()
    with pytest.raises(ShaderError) as caught:
        runner.run(path)
    assert str(caught.value) == (
        f"{path}:4:14: /resources/0/shader: shader 'twice' has no entry point 'main' for the compute stage;"
        " the module's entry points are: 'double' (GLCompute), 'negate' (GLCompute)"
    )


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


def test_one_shader_with_different_bindings(scene: Scene, runner: Runner) -> None:
    """One shader runs on many buffers, each dispatch with its own."""
    scene.shader("next", glsl("b[0] = a[0] + 1u;", TWO))
    scene.buffer("b0", numpy.array([41], numpy.uint32))
    for number in range(8):
        scene.buffer(f"b{number + 1}", size=4).dispatch("next", [f"b{number}", f"b{number + 1}"])
    result = runner.run(scene.write())
    assert [int(result.array(f"b{number}", "u4")[0]) for number in range(9)] == list(range(41, 50))


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


def test_unused_binding_is_a_warning(scene: Scene, runner: Runner) -> None:
    """A resource bound where the shader uses nothing is a warning, as the reference runner lets it pass."""
    scene.shader("count", glsl("a[0] += 1u;", ONE)).buffer("x", size=4).buffer("y", size=4)
    result = runner.run(scene.dispatch("count", ["x", "y"]).write())
    assert result.array("x", "u4").tolist() == [1]
    assert [warning.message for warning in result.warnings] == [
        "resource 'y' is bound to set 0, binding 1, which shader 'count' does not use"
    ]


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
