"""Shaders compiled and compared with their attributes, and with the types of the operation."""

import base64
import json
from typing import Any

import pytest

from scenario_runner.tosa.attribute_parsing import parse_attributes
from scenario_runner.tosa.model import ValueType
from scenario_runner.tosa.shader_agreement import check_shaders, with_shader_offsets
from tests.left_out import DXC_LIBRARY, needs
from tests.scenes import assemble, kernel
from tests.tables import cases
from tests.tosa.attributes import SOURCE, examined, messages, resource, text_of

pytestmark = pytest.mark.usefixtures("shader_cache")

TWO = {"workgroup_sizes": [2, 1, 1]}

IMAGES = """#version 450
layout(local_size_x = 8, local_size_y = 8) in;
layout(set = 0, binding = 0) uniform sampler2D picture;
layout(set = 0, binding = 1, rgba8) writeonly uniform image2D result;
void main() { imageStore(result, ivec2(gl_GlobalInvocationID.xy), texture(picture, vec2(0.5))); }
"""
IMAGE_KEYS = {
    **resource("input_0", 0, "COMBINED_IMAGE_SAMPLER", "R8G8B8A8_UNORM"),
    **resource("output_0", 1, "STORAGE_IMAGE", "R8G8B8A8_UNORM"),
    "shader_code": IMAGES,
    "push_constants": "...",
}


def values(*shapes: Any, element: str = "f32") -> tuple[list[ValueType], list[ValueType]]:
    """An operand and a result of these shapes."""
    first, last = [ValueType(shape, element) for shape in (shapes[0], shapes[-1])]
    return [first], [last]


def test_agreement() -> None:
    """Agreeing shader, attributes and types have no finding."""
    assert examined(TWO, types=values((8,))) == []
    assert examined(IMAGE_KEYS | {"workgroup_sizes": [2, 3, 1]}, types=values((1, 24, 16, 4), element="i8")) == []


@pytest.mark.parametrize(
    "row",
    [
        *cases(__file__, "wrong_attributes.txt", "DISAGREEMENTS"),
        (
            json.dumps({"shader_code": SOURCE.replace("scale * ", "").replace(" + bias", "")}),
            "SR-CUSTOM-017 /push_constants: the shader uses no push constants, but the attributes have 'scale: 4, bias:"
            " 4'",
        ),
    ],
)
def test_disagreement(row: list[str]) -> None:
    """Each disagreement of shader and attributes is one finding at the attribute."""
    change, *expected = row
    assert messages(examined(TWO | json.loads(change), operands=None, results=None)) == expected


@pytest.mark.parametrize(
    "change, types, expected",
    [
        (
            {},
            values((33,)),
            "SR-CUSTOM-014 /workgroup_sizes: 2 x 1 x 1 workgroups of 4 x 1 x 1 invocations are 8 invocations, but the"
            " largest output has 33 elements or texels",
        ),
        (
            {"shader_code": SOURCE.replace("x[]", "x[16]")},
            values((8,)),
            "SR-BIND-005 /input_0_binding: input_0 has 32 bytes, but storage buffer 'In' at set 0, binding 0 declares"
            " 64",
        ),
        (
            IMAGE_KEYS | {"workgroup_sizes": [1, 1, 1]},
            values((8, 8, 3), (8, 8, 4), element="i8"),
            "SR-CUSTOM-016 /input_0_vkdescriptortype: input_0 is an image of VK_FORMAT_R8G8B8A8_UNORM, but the value"
            " has the shape [8, 8, 3]; expected [height, width, 4] or [1, height, width, 4]",
        ),
        (
            IMAGE_KEYS | {"workgroup_sizes": [1, 1, 1], "output_0_vkformat": "VK_FORMAT_R8G8B8A8_SRGB"},
            values((8, 8, 4), (8, None, 4), element="i8"),
            "SR-CUSTOM-012 /output_0_vkformat: output_0 is VK_FORMAT_R8G8B8A8_SRGB, but storage image 'result' at set"
            " 0, binding 1 is Rgba8",
        ),
    ],
)
def test_types(change: dict[str, Any], types: Any, expected: str) -> None:
    """The types of the operation's values count where they are known."""
    assert messages(examined(TWO | change, types=types)) == [expected]


def test_element_types() -> None:
    """Texels of an image have the elements of the value."""
    change = IMAGE_KEYS | {"workgroup_sizes": [1, 1, 1]}
    assert messages(examined(change, types=values((8, 8, 4)))) == [
        f"SR-CUSTOM-016 /{name}_vkformat: {name} is an image of VK_FORMAT_R8G8B8A8_UNORM, which has 4 bytes a texel,"
        " but 4 elements of f32 have 16"
        for name in ("input_0", "output_0")
    ]


def test_texels() -> None:
    """Images have texels of the kind that the shader declares."""
    change = IMAGE_KEYS | {"workgroup_sizes": [1, 1, 1], "input_0_vkformat": "VK_FORMAT_R8G8B8A8_UINT"}
    assert messages(examined(change)) == [
        "SR-IMAGE-002 /input_0_vkformat: combined image sampler 'picture' at set 0, binding 0, in shader 'scale' has"
        " texels of float32; image 'input_0' of VK_FORMAT_R8G8B8A8_UINT has unsigned integers"
    ]


def test_tensors() -> None:
    """Tensors have the rank and elements of the value and of the shader."""
    source = """#version 460
    #extension GL_ARM_tensors : require
    #extension GL_EXT_shader_explicit_arithmetic_types : require
    layout(local_size_x = 1) in;
    layout(set = 0, binding = 0) uniform tensorARM<float, 2> x;
    layout(set = 0, binding = 1) uniform tensorARM<float, 2> y;
    void main() {
        float v;
        tensorReadARM(x, uint[](gl_GlobalInvocationID.y, gl_GlobalInvocationID.x), v);
        tensorWriteARM(y, uint[](gl_GlobalInvocationID.y, gl_GlobalInvocationID.x), v);
    }
    """
    right = {"shader_code": source, "push_constants": "...", "workgroup_sizes": [2, 2, 1]}
    right |= resource("input_0", 0, "TENSOR_ARM") | resource("output_0", 1, "TENSOR_ARM")
    assert examined(right, types=values((2, 2))) == []
    wrong = right | {"output_0_vkformat": "VK_FORMAT_R16_SFLOAT"}
    assert messages(examined(wrong, types=values((4,), (2, 2)))) == [
        "SR-TENSOR-001 /input_0_vkformat: tensor 'x' at set 0, binding 0 in shader 'scale' has the rank 2; the"
        " bound tensor 'input_0' has the shape [4] of rank 1",
        "SR-TENSOR-002 /output_0_vkformat: tensor 'y' at set 0, binding 1 in shader 'scale' has elements of float32;"
        " the bound tensor 'output_0' is of VK_FORMAT_R16_SFLOAT",
        "SR-CUSTOM-016 /output_0_vkformat: output_0 is VK_FORMAT_R16_SFLOAT, but the value has elements of f32",
    ]


def test_code_that_does_not_compile() -> None:
    """A compiler error names the operation and the line of the code."""
    found = examined({"shader_code": "#version 450\nvoid main() { x = 1; }\n"})
    assert [(each.code, each.path, each.line) for each in found] == [("SR-SHADER-010", "<shader_code of 'scale'>", 2)]
    assert "'x' : undeclared identifier" in found[0].message


def test_spirv_modules() -> None:
    """A module is used unchanged: its entry point is looked up, and a damaged module is refused."""
    module = assemble(
        kernel("""
            OpEntryPoint GLCompute %main "other"
        """)
    )

    def change(code: bytes) -> dict[str, Any]:
        return TWO | {"shader_language": "SPIR-V", "shader_code": base64.b64encode(code).decode()}

    (found,) = examined(change(module))
    assert messages([found]) == [
        "SR-SHADER-001 /entry_point: shader 'scale' has no entry point 'main' for the compute stage; the entry points"
        " are: 'other' (GLCompute)"
    ]
    assert (found.path, found.line) == ("<attributes of 'scale'>", 2)
    (found,) = examined(change(module[:-4] + bytes(4)))
    assert (found.code, found.pointer) == ("SR-SHADER-012", "/shader_code")


HLSL = """
struct Push { float scale; float bias; };
[[vk::push_constant]] Push push;
[[vk::binding(0)]] StructuredBuffer<float> x;
[[vk::binding(1)]] RWStructuredBuffer<float> y;
[numthreads(4, 1, 1)] void scale(uint at : SV_DispatchThreadID) { y[at] = push.scale * x[at] + push.bias; }
"""


@needs(DXC_LIBRARY)
def test_hlsl() -> None:
    """HLSL is compiled for its entry point, whatever that is called, and checked in the same way."""
    change = TWO | {"shader_language": "HLSL", "shader_code": HLSL, "entry_point": "scale"}
    assert examined(change, types=values((8,))) == []
    wrong = change | {"output_0_vkformat": "VK_FORMAT_R16_UINT", "push_constants": "bias: 4, scale: 4"}
    assert [each.code for each in examined(wrong)] == ["SR-CUSTOM-015", "SR-CUSTOM-015", "SR-CUSTOM-012"]
    (found,) = examined(change | {"entry_point": "main"})
    assert (found.code, found.path) == ("SR-SHADER-010", "<shader_code of 'scale'>")


def test_many_shaders() -> None:
    """Shaders are checked together, in the order in which they are given; a placeholder has no module."""
    texts = [{}, {"shader_code": "#version 450\nvoid main() { y; }"}, {"shader_language": "", "shader_code": ""}]
    shaders = [parse_attributes(text_of(TWO | change), operation=f"op{n}") for n, change in enumerate(texts)]
    good, wrong, placeholder = check_shaders(shaders)
    assert good.is_good
    assert good.module is not None
    assert good.interface is not None
    assert not wrong.is_good
    assert (wrong.module, placeholder.module) == (None, None)
    assert placeholder.is_good


def test_offsets_of_push_constants() -> None:
    """Push constants lie where the shader has them, and the range covers the whole block."""
    source = SOURCE.replace("float bias;", "vec4 bias;").replace("+ bias", "+ bias.x")
    shader = parse_attributes(
        text_of(TWO | {"shader_code": source, "push_constants": "scale: 4, bias: 16"}), operation="scale"
    )
    assert [(each.name, each.offset_bytes) for each in shader.push_constants] == [("scale", 0), ("bias", 4)]
    (checked,) = check_shaders([shader])
    assert checked.findings == ()
    constants, size = with_shader_offsets(shader, checked.interface)
    assert [(each.name, each.offset_bytes) for each in constants] == [("scale", 0), ("bias", 16)]
    assert size == 32
    assert with_shader_offsets(shader, None) == (shader.push_constants, 20)
