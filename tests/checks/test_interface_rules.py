"""Bindings of a scenario against declarations of shaders: one test for each rule, with the whole message and the
place."""

from pathlib import Path

import pytest

from scenario_runner.validation import validate_file
from tests.drawings import found
from tests.scenes import Scene, assemble, glsl, kernel
from tests.tables import cases

DATA = "layout(set = 0, binding = 0) buffer Data { uint data[]; };"


@pytest.fixture(autouse=True)
def _cache(shader_cache: Path) -> None:
    """Every shader is compiled once."""


def image(scene: Scene, uid: str = "picture", **keys: object) -> Scene:
    given = {"dims": [1, 8, 8, 1], "format": "VK_FORMAT_R8G8B8A8_UNORM", "shader_access": "readwrite", **keys}
    return scene.resource("image", uid=uid, **given)


@pytest.mark.parametrize("row", cases(__file__, "rules.txt", "BINDINGS"), ids=lambda row: row[0])
def test_bindings(scene: Scene, row: list[str]) -> None:
    """Each rule about bindings has its finding, and right bindings have none."""
    _, body, declared, uids, exit_code, *expected = row
    image(scene.shader("s", glsl(body, declared)).buffer("x", size=16)).dispatch("s", uids.split())
    assert found(scene) == [each.replace("COMMAND", "/commands/0/dispatch_compute") for each in expected]
    assert validate_file(scene.folder / "scenario.json").exit_code == int(exit_code)


def test_a_descriptor_type_that_the_shader_contradicts(scene: Scene) -> None:
    """descriptor_type must equal the descriptor type in the shader."""
    binding = {"resource_ref": "x", "descriptor_type": "VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER"}
    scene.shader("s", glsl("data[0] = 1;", DATA)).buffer("x", size=16).dispatch("s", [binding])
    assert found(scene) == [
        "SR-BIND-004 error /commands/0/dispatch_compute/bindings/0/descriptor_type: descriptor type"
        " 'VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER' does not match storage buffer 'Data' at set 0, binding 0 in shader"
        " 's'"
    ]


def test_an_acceleration_structure(scene: Scene) -> None:
    """An acceleration structure, which no resource can be bound to, is named."""
    declared = f"#extension GL_EXT_ray_query : require\n{DATA} layout(binding = 1) uniform accelerationStructureEXT a;"
    body = "rayQueryEXT q; rayQueryInitializeEXT(q, a, 0, 255, vec3(0), 0, vec3(1), 1);"
    text = glsl(f"{body} data[0] = uint(rayQueryProceedEXT(q));", declared)
    scene.shader("s", text.replace("#version 450", "#version 460")).buffer("x", size=16)
    scene.dispatch("s", ["x", "x"])
    assert any(each.startswith("SR-BIND-008 error ") for each in found(scene))


def test_a_variable_without_a_binding(scene: Scene) -> None:
    """A variable without set and binding cannot be bound."""
    scene.module("s", assemble(UNBOUND)).dispatch("s", [])
    assert found(scene) == [
        "SR-BIND-009 error /resources/0/shader: shader 's': the variable 'data' has no DescriptorSet and no Binding"
        " decoration, so nothing can be bound to it"
    ]


def test_a_set_that_no_device_has(scene: Scene) -> None:
    """A set number out of a broken module is an error at once, not four thousand million empty layouts."""
    module = assemble(LAYOUT.replace("DescriptorSet 0", "DescriptorSet 4294967295").replace("Offset 6", "Offset 4"))
    scene.module("s", module).buffer("x", size=16).dispatch("s", {(4294967295, 0): "x"})
    (finding,) = found(scene)
    assert finding.startswith("SR-LIMIT-005 error /resources/0/shader: ")
    assert finding.endswith("; no device has more than 1024 descriptor sets")


def test_writing_a_readonly_resource(scene: Scene) -> None:
    """A shader that writes a readonly resource gives a warning, and a shader that reads it gives none."""
    scene.shader("w", glsl("data[0] = 1;", DATA)).shader("r", glsl("uint x = data[0]; if (x == 7) data[1];", DATA))
    scene.buffer("x", size=16, shader_access="readonly", dst="").dispatch("w", ["x"]).dispatch("r", ["x"])
    assert [each for each in found(scene) if each.startswith("SR-ACCESS-001")] == [
        "SR-ACCESS-001 warning /commands/0/dispatch_compute/bindings/0: shader 'w' writes buffer 'x' through"
        " 'Data', but its shader_access is 'readonly'"
    ]


@pytest.mark.parametrize(
    "type, body, format, expected, words",
    [
        ("image3D", "ivec3(0), vec4(1)", "R8G8B8A8_UNORM", ["SR-IMAGE-001 error"], "as 3D;"),
        ("uimage2D", "ivec2(0), uvec4(1)", "R8G8B8A8_UNORM", ["SR-IMAGE-002 error"], "texels of"),
        ("image2D", "ivec2(0), vec4(1)", "R8_UNORM", ["SR-IMAGE-004 warning"], "as Rgba8;"),
        ("image2D", "ivec2(0), vec4(1)", "R8G8B8A8_UNORM", [], ""),
    ],
)
def test_images(scene: Scene, type: str, body: str, format: str, expected: list[str], words: str) -> None:
    """An image has the dimension, the kind of texels and the storage format of the declaration."""
    declared = (
        f"layout(set = 0, binding = 0, {'rgba8ui' if type == 'uimage2D' else 'rgba8'}) uniform writeonly {type} p;"
    )
    scene.shader("s", glsl(f"imageStore(p, {body});", declared))
    image(scene, format=f"VK_FORMAT_{format}").dispatch("s", ["picture"])
    lines = found(scene)
    assert [each.partition(" /")[0] for each in lines] == expected
    assert all(words in each for each in lines)


def test_push_constants(scene: Scene) -> None:
    """The block must fit push_constants_size, and a block without data is a warning."""
    block = "layout(push_constant) uniform Push { uint a; uint b; };" + DATA
    scene.shader("small", glsl("data[0] = b;", block), push_constants_size=4).buffer("x", size=16)
    scene.shader("without", glsl("data[1] = b;", block), push_constants_size=8)
    scene.dispatch("small", ["x"]).dispatch("without", ["x"])
    assert found(scene) == [
        "SR-PUSH-001 error /resources/0/shader/push_constants_size: shader 'small' reads 8 bytes of push constants,"
        " but push_constants_size is 4",
        "SR-PUSH-003 warning /commands/1/dispatch_compute: shader 'without' reads push constants, but the command"
        " gives it none; zeros are used",
    ]


def test_specialization_constants(scene: Scene) -> None:
    """Unknown ids are warnings; values that do not fit are errors."""
    constants = [{"id": 3, "value": 1}, {"id": 0, "value": -1}]
    scene.shader(
        "s",
        glsl("data[0] = n;", "layout(constant_id = 0) const uint n = 1;" + DATA),
        specialization_constants=constants,
    )
    scene.buffer("x", size=16).dispatch("s", ["x"])
    assert found(scene) == [
        "SR-SPEC-001 warning /resources/0/shader/specialization_constants/0/id: shader 's' declares no"
        " specialization constant 3 (it has: 0)",
        "SR-SPEC-002 error /resources/0/shader/specialization_constants/1/value: specialization constant 0 'n': -1"
        " does not fit uint32: the range is 0 to 4294967295",
    ]


def test_a_workgroup_of_nothing(scene: Scene) -> None:
    """A specialization constant of 0 as workgroup size is an error."""
    text = f"#version 450\nlayout(local_size_x_id = 0) in;\n{DATA}\nvoid main() {{ data[0] = 1; }}\n"
    scene.shader("s", text, specialization_constants=[{"id": 0, "value": 0}]).buffer("x", size=16).dispatch("s", ["x"])
    assert found(scene) == [
        "SR-SHADER-003 error /resources/0/shader: shader 's' has a workgroup of 0 x 1 x 1 invocations, expected at"
        " least 1"
    ]


def test_entry_points(scene: Scene) -> None:
    """A missing entry point, or an entry point of another stage, is reported with the existing ones."""
    scene.module("missing", assemble(UNBOUND), entry="other").module("stage", assemble(FRAGMENT))
    scene.shader("glsl", glsl("", "void mian() {}"), entry="mian")
    scene.dispatch("missing", []).dispatch("stage", []).dispatch("glsl", [])
    assert found(scene) == [
        "SR-SHADER-001 error /resources/0/shader/entry: shader 'missing' has no entry point 'other' for the compute"
        " stage; the entry points are: 'main' (GLCompute)",
        "SR-SHADER-002 error /resources/1/shader: shader 'stage' has no entry point 'main' for the compute stage;"
        " the entry points are: 'main' (Fragment)",
        "SR-SHADER-001 error /resources/2/shader/entry: shader 'glsl' has no entry point 'mian' for the compute stage;"
        " the entry points are: 'main' (GLCompute)",
    ]


def test_layouts(scene: Scene) -> None:
    """A missing Offset is an error; one that is not aligned, or inside another member, is a warning."""
    scene.module("missing", assemble(LAYOUT.replace("OpMemberDecorate %block 1 Offset 6", "")))
    scene.module("unaligned", assemble(LAYOUT)).buffer("x", size=16)
    scene.module("overlapping", assemble(LAYOUT.replace("Offset 6", "Offset 0")))
    scene.dispatch("missing", ["x"]).dispatch("unaligned", ["x"]).dispatch("overlapping", ["x"])
    assert found(scene) == [
        "SR-LAYOUT-001 error /resources/0/shader: shader 'missing': 'Data.b' has no Offset decoration",
        "SR-LAYOUT-002 warning /resources/1/shader: shader 'unaligned': 'Data.b' of the type uint32 is at offset 6,"
        " which is not a multiple of its scalar alignment 4",
        "SR-LAYOUT-003 warning /resources/3/shader: shader 'overlapping': 'Data.b' at offset 0 overlaps 'Data.a', which"
        " takes bytes 0 to 3",
    ]


def test_all_findings_of_several_shaders(scene: Scene) -> None:
    """Every shader and every command is looked at, whatever is wrong with the others."""
    scene.shader("broken", glsl("nonsense;")).shader("s", glsl("data[0] = 1;", DATA)).module("spv", b"no module")
    scene.buffer("x", size=16, src="missing.npy").buffer("y", size=16)
    scene.dispatch("broken", []).dispatch("s", []).dispatch("spv", []).dispatch("s", ["y", "y"])
    assert sorted(each.split()[0] for each in found(scene)) == [
        "SR-BIND-001",
        "SR-BIND-002",
        "SR-FILE-006",
        "SR-SHADER-010",
        "SR-SHADER-012",
    ]


def test_drawings_are_checked_without_being_run(scene: Scene) -> None:
    """The two shaders of dispatch_fragment share their bindings, and each binding has one kind."""
    vertex = "#version 450\nlayout(set = 0, binding = 0) buffer D { vec4 d[]; };\nvoid main() { gl_Position = d[0]; }\n"
    fragment = (
        "#version 450\nlayout(set = 0, binding = 1) uniform U { vec4 u; };\nlayout(location = 0) out vec4 c;\n"
        "void main() { c = u; }\n"
    )
    scene.shader("v", vertex, stage="vertex").shader("f", fragment, stage="fragment").buffer("x", size=64)
    image(scene, color_attachment=True)
    bound = [{"set": 0, "id": 0, "resource_ref": "x"}, {"set": 0, "id": 5, "resource_ref": "x"}]
    scene.command(
        "dispatch_fragment",
        vertex_shader_ref="v",
        fragment_shader_ref="f",
        bindings=bound,
        color_attachment_refs=["picture"],
    )
    told = {each.split()[0]: each.split(": ", 1)[1] for each in found(scene)}
    assert told["SR-BIND-001"] == "nothing is bound to uniform buffer 'U' at set 0, binding 1, which shader 'f' uses"
    assert told["SR-BIND-002"].endswith("binding 5, which the shaders 'v' and 'f' do not use")


FRAGMENT = kernel("""
    OpEntryPoint Fragment %main "main"
    OpExecutionMode %main OriginUpperLeft
""")
LAYOUT = kernel("""
    OpName %block "Data"
    OpMemberName %block 0 "a"
    OpMemberName %block 1 "b"
    OpDecorate %block Block
    OpMemberDecorate %block 0 Offset 0
    OpMemberDecorate %block 1 Offset 6
    Bind %data 0 0
    %block = OpTypeStruct %uint %uint
    %to_block = OpTypePointer StorageBuffer %block
    %to_uint = OpTypePointer StorageBuffer %uint
    %zero = OpConstant %uint 0
    %data = OpVariable %to_block StorageBuffer
    main:
    %at = OpAccessChain %to_uint %data %zero
    OpStore %at %zero
""")
UNBOUND = LAYOUT.replace("OpDecorate %data DescriptorSet 0", "").replace("OpDecorate %data Binding 0", "")
