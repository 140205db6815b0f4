"""Block layouts, compared with sizes worked out from GLSL's rules, and the rules of Vulkan's chapter "Offset and Stride
Assignment"."""

import pytest

from scenario_runner.shaders.spirv import Scalar, Struct, Type, read_module
from scenario_runner.shaders.spirv.block_layout import BASE, EXTENDED, SCALAR, check_layout
from scenario_runner.shaders.spirv.types import Array, Matrix, Member, RuntimeArray, Vector, extent_bytes
from tests.shaders.modules import Compile

MEMBERS = """
    float a; vec2 b; vec3 c; float d; vec4 e[3]; mat3 f; layout(row_major) mat4x3 g; float h[2][5];
    struct_t i; struct_t j[4]; mat2 k[3]; uvec2 l;
"""


def declared_block(data: bytes) -> Struct:
    block = read_module(data).entry_points[0].interface.bindings[0].block
    assert block is not None
    return block


def shader(layout: str, members: str = MEMBERS) -> str:
    return f"""
        #version 450
        #extension GL_EXT_scalar_block_layout : require
        layout(local_size_x = 1) in;
        struct struct_t {{ vec3 p; int q; double r; }};
        layout(binding = 0, {layout}) buffer Block {{ {members} }} block;
        void main() {{ block.a = 1.0; }}
    """


@pytest.mark.parametrize(
    "layout, expected",
    [
        # By the rules of GLSL 4.60, section 7.6.2.2, worked out by hand; the last element without padding behind it.
        (
            "std140",
            {
                "a": (0, 4), "b": (8, 8), "c": (16, 12), "d": (28, 4), "e": (32, 48), "f": (80, 44), "g": (128, 48),
                "h": (176, 148), "i": (336, 24), "j": (368, 120), "k": (496, 88), "l": (592, 8),
            },
        ),
        (
            "std430",
            {
                "a": (0, 4), "b": (8, 8), "c": (16, 12), "d": (28, 4), "e": (32, 48), "f": (80, 44), "g": (128, 48),
                "h": (176, 40), "i": (224, 24), "j": (256, 120), "k": (384, 48), "l": (432, 8),
            },
        ),
        (
            "scalar",
            {
                "a": (0, 4), "b": (4, 8), "c": (12, 12), "d": (24, 4), "e": (28, 48), "f": (76, 36), "g": (112, 48),
                "h": (160, 40), "i": (200, 24), "j": (224, 96), "k": (320, 48), "l": (368, 8),
            },
        ),
    ],
)  # fmt: skip
def test_offsets_and_sizes_follow_the_rules_of_glsl(
    glsl: Compile, layout: str, expected: dict[str, tuple[int | None, int]]
) -> None:
    """Members lie and end where std140, std430 and the scalar layout put them, and the block ends with the last."""
    block = declared_block(glsl(shader(layout)))
    assert {member.name: (member.offset_bytes, member.size_bytes) for member in block.members} == expected
    assert block.size_bytes == sum(expected["l"])  # type: ignore[arg-type]


def test_a_runtime_array_counts_as_no_elements(glsl: Compile) -> None:
    """The minimum size ends where the runtime array begins, and the stride is the size of an element."""
    block = declared_block(glsl(shader("std430", "float a; vec3 tail[];")))
    assert (block.size_bytes, block.runtime_stride_bytes) == (16, 16)
    assert (str(block.members[1].type), block.members[1].array_stride_bytes) == ("float32x3[]", 16)


def test_types_are_described(glsl: Compile) -> None:
    """Types read like C: the element, then the lengths from outside in."""
    block = declared_block(glsl(shader("std430")))
    assert [str(member.type) for member in block.members] == [
        "float32", "float32x2", "float32x3", "float32", "float32x4[3]", "float32x3x3", "float32x3x4", "float32[2][5]",
        "struct_t", "struct_t[4]", "float32x2x2[3]", "uint32x2",
    ]  # fmt: skip
    assert isinstance(block.members[5].type, Matrix)


def test_members_may_come_in_any_order(glsl: Compile) -> None:
    """The member that ends last gives the size of a block, wherever it is declared."""
    block = declared_block(glsl(shader("std430", "layout(offset = 64) vec2 late; layout(offset = 0) float a;")))
    assert [(member.name, member.offset_bytes) for member in block.members] == [("late", 64), ("a", 0)]
    assert block.size_bytes == 72


def test_access_by_member(glsl: Compile) -> None:
    """A block is read-only only when every member is."""
    some = "readonly float a; float b;"
    every = "readonly float a; readonly float b;"
    for members, writable in ((some, True), (every, False)):
        data = glsl(shader("std430", members).replace("block.a = 1.0", "float x = block.a"))
        (binding,) = read_module(data).entry_points[0].interface.bindings
        assert (binding.readable, binding.writable) == (True, writable)
        assert [member.writable for member in declared_block(data).members] == [False, writable]


def test_pointers_in_a_block_are_eight_bytes(glsl: Compile) -> None:
    """A buffer reference, even one to its own structure, is a pointer of 8 bytes."""
    block = declared_block(
        glsl(
            """
            #version 450
            #extension GL_EXT_buffer_reference : require
            layout(local_size_x = 1) in;
            layout(buffer_reference) buffer Node;
            layout(buffer_reference, std430) buffer Node { float value; Node next; };
            layout(binding = 0, std430) buffer List { uint count; Node first; } list;
            void main() { list.first.next.value = 1.0; }
            """,
            "--target-env",
            "vulkan1.2",
        )
    )
    assert [(str(member.type), member.offset_bytes, member.size_bytes) for member in block.members] == [
        ("uint32", 0, 4),
        ("pointer", 8, 8),
    ]


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


@pytest.mark.parametrize("layout, alignment", [("std140", EXTENDED), ("std430", BASE), ("scalar", SCALAR)])
def test_what_the_compiler_lays_out_keeps_its_own_alignment(glsl: Compile, layout: str, alignment: str) -> None:
    """A layout of glslangValidator keeps the alignment that it was made for, and no stricter one."""
    block = declared_block(glsl(shader(layout, MEMBERS + "double m; dvec3 n; struct_t o[];")))
    assert check_layout(block) == ({}, alignment)


INNER = struct(("x", VEC3, 0), name="Inner")
PAIR = struct(("x", FLOAT, 0), ("y", VEC2, 4), name="Inner")


@pytest.mark.parametrize(
    "block, alignment",
    [
        (struct(("a", VEC3, 4)), EXTENDED),
        (struct(("a", FLOAT, 0), ("b", VEC3, 8)), SCALAR),
        (struct(("a", DVEC3, 8)), SCALAR),
        (struct(("a", HALF, 0), ("b", Vector(HALF, 3), 2)), EXTENDED),
        (struct(("a", Array(FLOAT, 4, 4), 0)), BASE),
        (struct(("a", RuntimeArray(VEC3, 12), 0)), SCALAR),
        (struct(("a", Matrix(VEC3, 2), 0), strides={"a": 12}), SCALAR),
        (struct(("a", Matrix(VEC2, 2), 0), strides={"a": 8}), BASE),
        (struct(("s", INNER, 0), ("b", FLOAT, 12)), SCALAR),
        (struct(("s", struct(("x", FLOAT, 0), name="Inner"), 8)), BASE),
        (struct(("s", PAIR, 8)), SCALAR),
        (struct(("s", PAIR, 16)), EXTENDED),
        # The vector straddles in the second element only.
        (struct(("s", Array(PAIR, 1, 24), 0)), BASE),
        (struct(("s", Array(PAIR, 2, 24), 0)), SCALAR),
    ],
)
def test_the_alignment_that_a_block_keeps(block: Struct, alignment: str) -> None:
    """Offsets, strides, straddling vectors and the room behind structures tell which feature a block needs."""
    assert check_layout(block) == ({}, alignment)


@pytest.mark.parametrize(
    "block, sentence",
    [
        (
            struct(("a", FLOAT, 2)),
            "'B.a' of the type float32 is at offset 2, which is not a multiple of its scalar alignment 4",
        ),
        (struct(("a", VEC4, 0), ("b", FLOAT, 12)), "'B.b' at offset 12 overlaps 'B.a', which takes bytes 0 to 15"),
        (struct(("b", FLOAT, 4), ("a", VEC2, 0)), "'B.b' at offset 4 overlaps 'B.a', which takes bytes 0 to 7"),
        (struct(("a", FLOAT, None)), "'B.a' has no Offset decoration"),
        (
            struct(("a", Array(FLOAT, 4, None), 0)),
            "'B.a' is an array without an ArrayStride decoration, or with the stride 0",
        ),
        (
            struct(("a", Array(FLOAT, 4, 6), 0)),
            "'B.a' has the ArrayStride 6, which is not a multiple of its scalar alignment 4",
        ),
        (struct(("a", Array(VEC4, 4, 8), 0)), "the ArrayStride 8 of 'B.a' is smaller than its elements of 16 bytes"),
        (struct(("a", Matrix(VEC3, 2), 0)), "'B.a' is a matrix without a MatrixStride decoration"),
        (
            struct(("a", Matrix(VEC4, 2), 0), strides={"a": 8}),
            "the MatrixStride 8 of 'B.a' is smaller than its float32x4 vectors",
        ),
    ],
)
def test_what_no_feature_allows(block: Struct, sentence: str) -> None:
    """Each rule of the chapter gives its sentence where it is broken whatever the device has."""
    assert list(check_layout(block)[0]) == [sentence]
