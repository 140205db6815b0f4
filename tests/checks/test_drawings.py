"""Draws: the shaders against each other, attachments, vertex attributes, indices and depth attachments.

There is a finding for each rule, and none for right draws."""

import json
from pathlib import Path
from typing import Any

import numpy
import pytest

from scenario_runner.doctor.machine_report import gather
from scenario_runner.plan.resolve import resolve
from scenario_runner.run.reported_device import ReportedDevice
from scenario_runner.scenario import load
from scenario_runner.vulkan.capabilities import enabled_for
from tests.drawings import COMMAND, FRAGMENT, VERTEX, drawing, found, image
from tests.scenes import Scene, assemble, kernel
from tests.tables import cases


@pytest.fixture(autouse=True)
def _cache(shader_cache: Path) -> None:
    """Every shader is compiled once."""


WIDE = VERTEX.replace("location = 2", "location = 5").replace("void", "layout(location = 2) out vec3 wide;\nvoid")
TAKES_LESS = """
layout(location = 2) in vec2 wide;
layout(location = 0) out vec4 first;
layout(location = 1) out uint second;
void main() { first = wide.xyxy; second = 1; }
"""
WITHOUT_OUTPUTS = "layout(location = 0) in vec4 color; void main() { if (color.x < 0) discard; }"
IN_PARTS = """
layout(location = 0) out vec2 first;
layout(location = 0, component = 2) out vec2 rest;
layout(location = 1) out uint second;
void main() { first = vec2(0); rest = vec2(1); second = 1; }
"""


@pytest.mark.parametrize(
    "shaders, keys",
    [
        ((), {"render_extent": [16, 8]}),
        ((), {"color_attachment_refs": [{"resource_ref": "c", "lod": 1}, "b"]}),  # a level counts with its own size
        ((WIDE, TAKES_LESS), {}),  # outputs that nobody takes, and a wider vector (with maintenance4)
        ((VERTEX, WITHOUT_OUTPUTS), {"color_attachment_refs": [], "render_extent": [4, 4]}),
        ((VERTEX, IN_PARTS), {}),  # outputs of one location fill an attachment together
    ],
)
def test_a_right_drawing(scene: Scene, shaders: tuple[str, ...], keys: dict[str, Any]) -> None:
    """A draw with matching locations, types, interpolation and attachments has no finding."""
    assert found(drawing(scene, *shaders, **keys)) == []


REF = f"{COMMAND}/fragment_shader_ref"


@pytest.mark.parametrize("old, new, finding", cases(__file__, "drawings.txt", "INPUTS"))
def test_inputs_without_their_output(scene: Scene, old: str, new: str, finding: str) -> None:
    """Each input needs an output with the same location, component and type."""
    assert old in VERTEX
    vertex = VERTEX.replace(old, new).replace("color = vec4(1);", "").replace("number = 7;", "")
    vertex = vertex.replace("block.place[0] = vec2(0);", "")
    code, message = finding.split(maxsplit=1)
    assert found(drawing(scene, vertex)) == [f"{code} error {REF}: {message}"]


def test_an_input_inside_of_an_output(scene: Scene) -> None:
    """An input that lies in the middle of an array is told with the array."""
    fragment = FRAGMENT.replace(
        "Block { mat2 turn; vec2 place[2]; } block", "mat2 turn; layout(location = 5) in vec2 p"
    )
    fragment = fragment.replace("block.place[1], block.turn", "p, turn")
    message = "shader 'f' takes input 'p' at location 5; shader 'v' has output 'block.place' at location 4 there, which"
    assert found(drawing(scene, VERTEX, fragment)) == [f"SR-STAGE-001 error {REF}: {message + ' begins elsewhere'}"]


MODULE = kernel("""
    OpEntryPoint Fragment %main "main" %color %first %second
    OpExecutionMode %main OriginUpperLeft
    OpName %color "color"
    OpName %first "first"
    OpName %second "second"
    OpDecorate %color Location 1
    OpDecorate %color Flat
    OpDecorate %first Location 0
    OpDecorate %second Location 1
    %float = OpTypeFloat 32
    %v4 = OpTypeVector %float 4
    %in = OpTypePointer Input %uint
    %out = OpTypePointer Output %v4
    %out2 = OpTypePointer Output %uint
    %color = OpVariable %in Input
    %first = OpVariable %out Output
    %second = OpVariable %out2 Output
""")


@pytest.mark.parametrize("old, new, finding", cases(__file__, "drawings.txt", "MODULES"))
def test_modules_from_other_hands(scene: Scene, old: str, new: str, finding: str) -> None:
    """Mistakes that a GLSL compiler would refuse are found in SPIR-V modules. The unchanged module has no finding."""
    code, message = finding.split(maxsplit=1)
    assert old in MODULE
    changed = MODULE.replace(old, new.removeprefix("...").replace("\\n", "\n"))
    assert found(drawing(scene, VERTEX, assemble(changed))) == [f"{code} error /resources/1/shader: {message}"]


def test_the_module_from_other_hands(scene: Scene) -> None:
    """The unchanged module has no finding."""
    assert found(drawing(scene, VERTEX, assemble(MODULE))) == []


def test_a_depth_without_its_mode(scene: Scene) -> None:
    """A depth that is written needs DepthReplacing, which GLSL's compiler gives and this module lacks."""
    text = MODULE.replace("%second Location 1", "%second BuiltIn FragDepth").replace("Output %uint", "Output %float")
    message = "shader 'f' has the output FragDepth without the execution mode DepthReplacing"
    scene = drawing(scene, VERTEX, assemble(text), color_attachment_refs=["a"])
    assert found(scene) == [f"SR-STAGE-006 error /resources/1/shader: {message}"]


def test_vertex_buffers(scene: Scene) -> None:
    """Each input of the vertex shader needs an attribute."""
    vertex = VERTEX.replace("void", "layout(location = 3) in vec4 place;\nvoid")
    message = "shader 'v' takes input 'place' at location 3; vertex_attributes has no location 3"
    assert found(drawing(scene, vertex)) == [f"SR-STAGE-005 error {COMMAND}/vertex_shader_ref: {message}"]


def test_no_position(scene: Scene) -> None:
    """A vertex shader without gl_Position draws nobody knows what."""
    message = "shader 'v' never writes a position (gl_Position), so the draw is undefined"
    vertex = VERTEX.replace("gl_Position = vec4(0);", "")
    assert found(drawing(scene, vertex)) == [f"SR-STAGE-007 warning /resources/0/shader: {message}"]


def test_against_a_device(scene: Scene, tmp_path: Path) -> None:
    """Locations, attachments and maintenance4 are compared with a reported device; this one has them all."""
    (report, *_) = json.loads(json.dumps(gather()))["devices"]
    vertex = VERTEX.replace("void", "layout(location = 9) out vec3 wide;\nvoid")
    fragment = FRAGMENT.replace("void", "layout(location = 9) in vec2 wide;\nvoid").replace("color +", "wide.xyxy +")
    drawing(scene, vertex, fragment)
    assert found(scene, ReportedDevice(report)) == []
    report["limits"] |= {"maxVertexOutputComponents": 36, "maxFragmentOutputAttachments": 1, "maxColorAttachments": 1}
    report["features"]["VkPhysicalDeviceVulkan13Features"]["maintenance4"] = False
    report["features"].pop("VkPhysicalDeviceMaintenance4Features", None)
    name = repr(report["name"])
    assert {each.split(": ", 1)[1] for each in found(scene, ReportedDevice(report))} == {
        f"shader 'v' has outputs up to location 9; maxVertexOutputComponents of {name} is 36",
        f"shader 'f' has outputs up to location 1; maxFragmentOutputAttachments of {name} is 1",
        f"the drawing has 2 attachments; maxColorAttachments of {name} is 1",
        "input 'wide' at location 9 of shader 'f', a part of a vector needs maintenance4"
        f" (VkPhysicalDeviceVulkan13Features), which {name} lacks",
    }


def test_devices_without_dynamic_rendering(scene: Scene) -> None:
    """The feature is named at the first drawing; a device of Vulkan 1.2 has it with the extension."""
    (report, *_) = json.loads(json.dumps(gather()))["devices"]
    drawing(scene)
    for structure in report["features"].values():
        structure.pop("dynamicRendering", None)
    (line,) = found(scene, ReportedDevice(report))
    needs = "dispatch_fragment needs dynamicRendering (VkPhysicalDeviceVulkan13Features), which "
    assert line.startswith(f"SR-FEATURE-002 error {COMMAND}: {needs}")
    report["api_version"] = "1.2.0"
    report["extensions"]["VK_KHR_dynamic_rendering"] = 1
    report["features"]["VkPhysicalDeviceDynamicRenderingFeatures"] = {"dynamicRendering": True}
    assert found(scene, ReportedDevice(report)) == []
    requirements = resolve(load(scene.write())).requirements
    device: Any = ReportedDevice(report)
    enabled = enabled_for(device, requirements)
    assert "VK_KHR_dynamic_rendering" in enabled.extensions
    assert enabled.graphics


FIRST = f"{COMMAND}/color_attachment_refs/0"


@pytest.mark.parametrize("row", cases(__file__, "drawings.txt", "ATTACHMENTS"))
def test_attachments(scene: Scene, row: list[str]) -> None:
    """Each attachment is an image for drawing, has the common size, and gets an output with its kind and components."""
    attachments, *expected = row
    drawing(scene, color_attachment_refs=json.loads(attachments))
    image(scene, "d", format="VK_FORMAT_R8_UNORM")
    image(scene, "rg", format="VK_FORMAT_R8G8_UINT")
    image(scene, "plain", color_attachment=False)
    image(scene, "depth", format="VK_FORMAT_D32_SFLOAT")
    assert sorted(found(scene)) == sorted(each.replace("COMMAND", COMMAND) for each in expected)


def test_another_extent(scene: Scene) -> None:
    """render_extent is the size of the attachments."""
    message = "image 'a' has 16 x 8 texels, the render_extent has 16 x 4"
    found_ones = found(drawing(scene, render_extent=[16, 4]))
    assert found_ones[0] == f"SR-ATTACH-007 error {FIRST}: {message}"
    assert [each.split()[0] for each in found_ones] == ["SR-ATTACH-007", "SR-ATTACH-007"]


@pytest.mark.parametrize("level", [0, 1])
def test_an_attachment_that_is_also_read(scene: Scene, level: int) -> None:
    """An image that is drawn into must not be bound for the shaders at the same level; another level may be."""
    fragment = FRAGMENT.replace("void main() {", "layout(binding = 0) uniform sampler2D s;\nvoid main() {")
    fragment = fragment.replace("first = color", "first = texture(s, vec2(0)) + color")
    bindings = [{"set": 0, "id": 0, "resource_ref": "c", "lod": level}]
    targets: list[Any] = [{"resource_ref": "c", "lod": 1}, "b"]
    message = (
        f"SR-ATTACH-008 error {FIRST}: image 'c', mip level 1, is drawn into while the shaders bind it: the"
        " texels that they read are undefined"
    )
    findings = found(drawing(scene, VERTEX, fragment, bindings=bindings, color_attachment_refs=targets))
    assert findings == ([message] if level == 1 else [])


INPUTS = """
layout(location = 3) in vec4 place;
layout(location = 4) in uvec2 numbers;
layout(location = 5) in mat2 turn;
void"""
ATTRIBUTES = {
    3: {"format": "VK_FORMAT_R32G32_SFLOAT"},
    4: {"format": "VK_FORMAT_R8G8_UINT"},
    5: {"format": "VK_FORMAT_R16G16_SNORM"},
    6: {"format": "VK_FORMAT_A2B10G10R10_UNORM_PACK32"},
}


def attributed(scene: Scene, changes: dict[str, Any]) -> Scene:
    """A draw with attributes from the buffer "v" of 64 bytes, indices in "i" and a depth attachment.

    A change has a location, or "index_buffer", "depth_attachment" or another key of the draw.
    """
    attributes: list[Any] = []
    for location, attribute in ATTRIBUTES.items():
        change = changes.pop(str(location), {})
        if change is not None:
            attributes.append({"location": location, "resource_ref": "vertices", **attribute, **change})
    scene.buffer("vertices", size=64)
    scene.buffer("indices", numpy.array([0, 1, 2], "u2"), dst=None)
    scene.buffer("many", numpy.array([0, 2, 1], "u4"), dst=None)
    image(scene, "depth", format="VK_FORMAT_D32_SFLOAT", color_attachment=False)
    image(scene, "small", format="VK_FORMAT_D16_UNORM", dims=[1, 8, 8, 1], color_attachment=False)
    image(scene, "grouped", format="VK_FORMAT_D16_UNORM", color_attachment=False, memory_group={"id": "g"})
    index_buffer = {"resource_ref": "indices", "index_type": "UINT16", **changes.pop("index_buffer", {})}
    depth = {"resource_ref": "depth", **changes.pop("depth_attachment", {})}
    keys = {"vertex_attributes": attributes, "index_buffer": index_buffer, "depth_attachment": depth, **changes}
    return drawing(scene, VERTEX.replace("void", INPUTS), **keys)


def test_a_right_draw_with_attributes(scene: Scene) -> None:
    """Attributes of each kind, indices and a depth attachment have no finding but the note about the format."""
    (line,) = found(attributed(scene, {}))
    keys = "dispatch_fragment.depth_attachment, dispatch_fragment.index_buffer, dispatch_fragment.vertex_attributes"
    note = f"3 keys beyond the reference runner's format: {keys}"
    assert line == f"SR-JSON-012 note {COMMAND}/depth_attachment: {note}"


@pytest.mark.parametrize("change, expected", [(row[0], row[1:]) for row in cases(__file__, "draw_inputs.txt", "DRAWS")])
def test_wrong_draws(scene: Scene, change: str, expected: list[str]) -> None:
    """Each change of the right draw has these findings beside the note."""
    lines = [line for line in found(attributed(scene, json.loads(change))) if not line.startswith("SR-JSON-012")]
    assert lines == [line.replace("COMMAND", COMMAND) for line in expected]


def test_a_depth_attachment_that_is_bound(scene: Scene) -> None:
    """Shaders cannot read the depths of their own draw, even if the draw stores none."""
    fragment = "layout(binding = 0) uniform sampler2D d; void main() { if (texelFetch(d, ivec2(0), 0).x > 1) discard; }"
    image(scene, "depth", format="VK_FORMAT_D32_SFLOAT")
    bindings = [{"set": 0, "id": 0, "resource_ref": "depth"}]
    attachment = {"resource_ref": "depth", "write": False}
    lines = found(
        drawing(scene, VERTEX, fragment, color_attachment_refs=[], bindings=bindings, depth_attachment=attachment)
    )
    message = "image 'depth' is drawn into while the shaders bind it: the texels that they read are undefined"
    assert [line for line in lines if " note " not in line] == [
        f"SR-ATTACH-008 error {COMMAND}/depth_attachment: {message}"
    ]


def test_features_and_limits_of_a_device(scene: Scene) -> None:
    """Features, limits of attributes and viewports, and the index type are compared with a reported device."""
    (report, *_) = json.loads(json.dumps(gather()))["devices"]
    keys = {"polygon_mode": "LINE", "viewport": {"x": -40000, "width": 20000, "y": 9, "height": -90000}}
    changes = {"index_buffer": {"index_type": "UINT8"}, "depth_attachment": {"clamp": True, "bias": {"clamp": 1}}}
    attributed(scene, {**keys, **changes})
    report["limits"] |= {"maxVertexInputAttributes": 6, "maxVertexInputBindings": 3, "maxVertexInputBindingStride": 7}
    report["limits"] |= {"maxViewportDimensions": [16384, 16384], "viewportBoundsRange": [-32768.0, 32767.0]}
    for features in report["features"].values():
        for member in ("fillModeNonSolid", "depthClamp", "depthBiasClamp", "indexTypeUint8"):
            features.pop(member, None)
    name = repr(report["name"])
    core = f"(VkPhysicalDeviceFeatures), which {name} lacks"
    lines = [line.split(": ", 1)[1] for line in found(scene, ReportedDevice(report)) if " note " not in line]
    assert sorted(lines) == sorted([
        f"the drawing has vertex attributes up to location 6; maxVertexInputAttributes of {name} is 6",
        f"the drawing has 4 vertex attributes; maxVertexInputBindings of {name} is 3",
        f"a vertex attribute has the stride 8; maxVertexInputBindingStride of {name} is 7",
        f"the viewport has 20000 texels; maxViewportDimensions[0] of {name} is 16384",
        f"the viewport has 90000 texels; maxViewportDimensions[1] of {name} is 16384",
        f"the viewport begins at x = -40000; viewportBoundsRange[0] of {name} is -32768.0",
        f"the viewport begins at y = -89991; viewportBoundsRange[0] of {name} is -32768.0",
        f"the polygon_mode LINE needs fillModeNonSolid {core}",
        f"clamp of a depth_attachment needs depthClamp {core}",
        f"clamp of a depth bias needs depthBiasClamp {core}",
        f"the index_type UINT8 needs indexTypeUint8 (VkPhysicalDeviceIndexTypeUint8Features), which {name} lacks",
    ])  # fmt: skip
