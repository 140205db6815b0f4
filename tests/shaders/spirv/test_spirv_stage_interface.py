"""Inputs and outputs by location, from what the real compiler and assembler make."""

from collections.abc import Callable

import pytest

from scenario_runner.shaders.spirv import read_module
from scenario_runner.shaders.spirv.stage_interface import StageInterface, StageVariable
from tests.scenes import assemble, kernel

Source = Callable[..., bytes]


def stage(module: bytes, **specialization: int) -> StageInterface:
    return read_module(module).entry_points[0].stage_interface({0: specialization["n"]} if specialization else None)


def places(variables: tuple[StageVariable, ...]) -> list[tuple[str, int, int, int, str]]:
    return [(each.name, each.location, each.locations, each.component, str(each.type)) for each in variables]


VERTEX = """
layout(constant_id = 0) const int N = 2;
struct S { vec3 x; float y[2]; };
layout(location = 3) in vec4 place;
layout(location = 0) out vec3 color;
layout(location = 0, component = 3) out float alpha;
layout(location = 1, component = 2) flat out int number;
layout(location = 2) out Block { mat3x2 m; layout(location = 30) S s; noperspective float z; } block;
layout(location = 10) out vec2 list[N];
layout(location = 20) centroid out S structs[2];
layout(location = 40) flat out dvec3 wide;
void main() {
    gl_Position = place; color = vec3(1); alpha = 1; number = 2; block.z = 1; list[0] = vec2(0); wide = dvec3(0);
}
"""


def test_locations_follow_the_types(glsl: Source) -> None:
    """Matrices take one a column, arrays one an element, structures one after the other, wide vectors two."""
    found = stage(glsl(VERTEX, stage="vert"))
    assert places(found.inputs) == [("place", 3, 1, 0, "float32x4")]
    assert places(found.outputs) == [
        ("color", 0, 1, 0, "float32x3"),
        ("alpha", 0, 1, 3, "float32"),
        ("number", 1, 1, 2, "int32"),
        ("block.m", 2, 3, 0, "float32x2x3"),
        ("list", 10, 2, 0, "float32x2[2]"),
        ("structs", 20, 6, 0, "S[2]"),
        ("block.s.x", 30, 1, 0, "float32x3"),
        ("block.s.y", 31, 2, 0, "float32[2]"),
        ("block.z", 33, 1, 0, "float32"),
        ("wide", 40, 2, 0, "float64x3"),
    ]
    assert found.problems == ()
    assert "Position" in found.outputs_built_in
    by_name = {each.name: each for each in found.outputs}
    assert (by_name["number"].flat, by_name["color"].flat) == (True, False)
    assert by_name["block.z"].interpolation == ("noperspective",)
    assert by_name["structs"].interpolation == ("centroid",)
    assert list(by_name["wide"].words()) == [(40, 0), (40, 1), (40, 2), (40, 3), (41, 0), (41, 1)]
    assert list(by_name["structs"].words()) == [
        (20, 0), (20, 1), (20, 2), (21, 0), (22, 0), (23, 0), (23, 1), (23, 2), (24, 0), (25, 0),
    ]  # fmt: skip


def test_arrays_follow_the_specialization(glsl: Source) -> None:
    """An array whose length is a specialization constant takes as many locations as the value says."""
    found = {each.name: each for each in stage(glsl(VERTEX, stage="vert"), n=5).outputs}
    assert found["list"].locations == 5


def test_compute_shaders_have_none(glsl: Source) -> None:
    """Built-in variables are named apart, and have no location."""
    buffer = "layout(binding = 0) buffer A { uint a; };"
    found = stage(glsl("layout(local_size_x = 1) in;" + buffer + "void main() { a = gl_GlobalInvocationID.x; }"))
    assert (found.inputs, found.outputs, found.problems) == ((), (), ())
    assert found.inputs_built_in == ("GlobalInvocationId",)


MODULE = kernel("""
    OpEntryPoint Fragment %main "main" %a %b
    OpExecutionMode %main OriginUpperLeft
    OpName %a "a"
    OpName %b "b"
    OpDecorate %a Location 0
    OpDecorate %b Location 1
    %bool = OpTypeBool
    %float = OpTypeFloat 32
    %double = OpTypeFloat 64
    %v2 = OpTypeVector %float 2
    %d2 = OpTypeVector %double 2
    %m2 = OpTypeMatrix %v2 2
    %ptr = OpTypePointer Output %v2
    %a = OpVariable %ptr Output
    %b = OpVariable %ptr Output
""")


@pytest.mark.parametrize(
    "old, new, problem",
    [
        ("OpDecorate %b Location 1\n", "", "output 'b' has no Location decoration"),
        ("%b Location 1", "%b Location 0", "outputs 'a' and 'b' both take component 0 of location 0"),
        ("%b Location 1", "%b Location 5000", "output 'b' takes the locations 5000 to 5000; no device has that many"),
        ("Output %v2", "Output %bool", "output 'a' has the type bool, which stages cannot hand on"),
    ],
)
def test_declarations_that_cannot_be(old: str, new: str, problem: str) -> None:
    """What the rules of locations and components forbid is a sentence; the same module without it has none."""
    assert stage(assemble(MODULE)).problems == ()
    assert old in MODULE
    assert problem in stage(assemble(MODULE.replace(old, new))).problems


def test_shared_locations() -> None:
    """Two outputs may share a location where their components, or their indices, differ."""
    for decoration in ("Component 2", "Index 1"):
        text = MODULE.replace("%b Location 1", f"%b Location 0\nOpDecorate %b {decoration}")
        assert stage(assemble(text)).problems == ()
