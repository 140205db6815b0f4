"""Vertex attributes, indices and depth attachments of draws: a finding for each rule, and none for right draws."""

import json
from pathlib import Path
from typing import Any

import numpy
import pytest

from scenario_runner.doctor.machine_report import gather
from scenario_runner.run.reported_device import ReportedDevice
from tests.drawings import COMMAND, VERTEX, drawing, found, image
from tests.scenes import Scene
from tests.tables import cases

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


@pytest.fixture(autouse=True)
def _cache(shader_cache: Path) -> None:
    """Every shader is compiled once."""


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


def test_a_right_draw(scene: Scene) -> None:
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


def test_against_a_device(scene: Scene) -> None:
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
