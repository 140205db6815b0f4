"""Layout rules of Vulkan's chapter "Offset and Stride Assignment"."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from scenario_runner.spirv import Block, Scalar, Struct, Type, read_module
from scenario_runner.spirv.layout import RELAXED, RELAXED_STD140, SCALAR, check_layout
from scenario_runner.spirv.types import Array, Matrix, Member, RuntimeArray, Vector, block_of, extent_bytes

FLOAT = Scalar("float", 32)
HALF = Scalar("float", 16)
DOUBLE = Scalar("float", 64)
VEC2, VEC3, VEC4, DVEC3 = Vector(FLOAT, 2), Vector(FLOAT, 3), Vector(FLOAT, 4), Vector(DOUBLE, 3)


def struct(*members: tuple[str, Type, int | None], name: str = "B", strides: dict[str, int] | None = None) -> Struct:
    strides = strides or {}
    made = [
        Member(item, type, offset, extent_bytes(type, strides.get(item)), strides.get(item), False)
        for item, type, offset in members
    ]
    return Struct(len(name), name, tuple(made), max(((m.offset_bytes or 0) + m.size_bytes for m in made), default=0))


def block(*members: tuple[str, Type, int | None], strides: dict[str, int] | None = None) -> Block:
    return block_of(struct(*members, strides=strides))


MEMBERS = """
    float a; vec2 b; vec3 c; float d; vec4 e[3]; mat3 f; layout(row_major) mat4x3 g; float h[2][5];
    inner_t i; inner_t j[4]; mat2 k[3]; uvec2 l; double m; dvec3 n; inner_t o[];
"""
PASSES = {"std140": {RELAXED_STD140, RELAXED, SCALAR}, "std430": {RELAXED, SCALAR}, "scalar": {SCALAR}}


@pytest.mark.parametrize("layout", ["std140", "std430", "scalar"])
@pytest.mark.parametrize("rules", [RELAXED_STD140, RELAXED, SCALAR])
def test_what_the_compiler_lays_out_passes_its_own_rules(glsl: Callable[..., bytes], layout: str, rules: str) -> None:
    """A layout of glslangValidator passes the rules it was made for and every weaker set, and no stronger one."""
    data = glsl(f"""
        #version 450
        #extension GL_EXT_scalar_block_layout : require
        layout(local_size_x = 1) in;
        struct inner_t {{ vec3 p; int q; vec2 r[2]; }};
        layout(binding = 0, {layout}) buffer Block {{ {MEMBERS} }} block;
        void main() {{ block.a = 1.0; }}
    """)
    found = read_module(data).entry_points[0].interface.bindings[0].block
    assert found is not None
    assert (check_layout(found, rules) == []) == (rules in PASSES[layout])


@pytest.mark.parametrize(
    "row",
    [
        (
            block(("a", FLOAT, 2)),
            SCALAR,
            "'B.a' of the type float32 is at offset 2, which is not a multiple of its scalar alignment 4",
        ),
        (block(("a", VEC3, 4)), RELAXED),
        (
            block(("a", FLOAT, 0), ("b", VEC3, 8)),
            RELAXED,
            "'B.b' of the type float32x3 straddles a multiple of 16: it begins 8 behind one",
        ),
        (block(("a", FLOAT, 0), ("b", VEC3, 8)), SCALAR),
        (
            block(("a", DVEC3, 8)),
            RELAXED,
            "'B.a' of the type float64x3 is larger than 16 bytes and does not begin at a multiple of 16",
        ),
        (block(("a", DVEC3, 8)), SCALAR),
        (
            block(("a", VEC4, 0), ("b", FLOAT, 12)),
            SCALAR,
            "'B.b' at offset 12 overlaps 'B.a', which takes bytes 0 to 15",
        ),
        (block(("b", FLOAT, 4), ("a", VEC2, 0)), RELAXED, "'B.b' at offset 4 overlaps 'B.a', which takes bytes 0 to 7"),
        (block(("a", FLOAT, None)), SCALAR, "'B.a' has no Offset decoration"),
        (block(("a", Array(FLOAT, 4, None), 0)), SCALAR, "'B.a' is an array without an ArrayStride decoration"),
        (
            block(("a", Array(FLOAT, 4, 4), 0)),
            RELAXED_STD140,
            "the ArrayStride 4 of 'B.a' is not a multiple of its extended alignment 16",
        ),
        (block(("a", Array(FLOAT, 4, 4), 0)), RELAXED),
        (
            block(("a", Array(VEC4, 4, 8), 0)),
            SCALAR,
            "the ArrayStride 8 of 'B.a' is smaller than its elements of 16 bytes",
        ),
        (
            block(("a", Array(VEC3, 2, 12), 0)),
            RELAXED,
            "the ArrayStride 12 of 'B.a' is not a multiple of its base alignment 16",
            "'B.a[]' of the type float32x3 straddles a multiple of 16: it begins 12 behind one",
        ),
        (block(("a", RuntimeArray(VEC3, 12), 0)), SCALAR),
        (block(("a", Matrix(VEC3, 2), 0)), SCALAR, "'B.a' is a matrix without a MatrixStride decoration"),
        (block(("a", Matrix(VEC3, 2), 0), strides={"a": 12}), SCALAR),
        (
            block(("a", Matrix(VEC2, 2), 0), strides={"a": 8}),
            RELAXED_STD140,
            "the MatrixStride 8 of 'B.a' is not a multiple of its extended alignment 16",
        ),
        (
            block(("a", Matrix(VEC4, 2), 0), strides={"a": 8}),
            SCALAR,
            "the MatrixStride 8 of 'B.a' is smaller than its float32x4 vectors",
        ),
        (
            block(("s", struct(("x", VEC3, 0), name="Inner"), 0), ("b", FLOAT, 12)),
            RELAXED,
            "'B.b' at offset 12 is in the padding behind 'B.s' of the type Inner; the first free offset is 16",
        ),
        (block(("s", struct(("x", VEC3, 0), name="Inner"), 0), ("b", FLOAT, 12)), SCALAR),
        (
            block(("s", struct(("x", FLOAT, 0), name="Inner"), 8)),
            RELAXED_STD140,
            "'B.s' of the type Inner is at offset 8, which is not a multiple of its extended alignment 16",
        ),
        (
            block(("s", struct(("x", FLOAT, 0), ("y", VEC2, 4), name="Inner"), 8)),
            RELAXED,
            "'B.s.y' of the type float32x2 straddles a multiple of 16: it begins 12 behind one",
        ),
        (block(("s", struct(("x", FLOAT, 0), ("y", VEC2, 4), name="Inner"), 16)), RELAXED),
        (block(("a", HALF, 0), ("b", Vector(HALF, 3), 2)), RELAXED),
    ],
)
def test_each_rule(row: Any) -> None:
    """Each rule of the chapter gives its sentence where it is broken, and none where it is not asked for."""
    subject, rules, *sentences = row
    assert check_layout(subject, rules) == sentences


def test_elements_of_arrays_are_looked_at_where_they_lie() -> None:
    """A vector that straddles in the second element only is found."""
    inner = struct(("x", FLOAT, 0), ("y", VEC2, 4), name="Inner")
    assert check_layout(block(("s", Array(inner, 1, 24), 0)), RELAXED) == []
    assert check_layout(block(("s", Array(inner, 2, 24), 0)), RELAXED) == [
        "'B.s[].y' of the type float32x2 straddles a multiple of 16: it begins 12 behind one"
    ]
