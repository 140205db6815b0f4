"""docs/limits.md: `validate` reports each limit with the code that the page names, and accepts the alternatives."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy
import pytest

from tests.files.test_dds import dds_bytes
from tests.program import Program
from tests.scenes import Scene, glsl

PAGE = Path(__file__).resolve().parents[2] / "docs" / "limits.md"
# declaration in the shader, what its main does with it
BEYOND = {
    "1d": ("layout(binding = 0, r32f) uniform image1D x;", "imageStore(x, 0, vec4(1));"),
    "3d": ("layout(binding = 0, r32f) uniform image3D x;", "imageStore(x, ivec3(0), vec4(1));"),
    "cube": ("layout(binding = 0, r32f) uniform imageCube x;", "imageStore(x, ivec3(0), vec4(1));"),
    "array": ("layout(binding = 0, r32f) uniform image2DArray x;", "imageStore(x, ivec3(0), vec4(1));"),
    "samples": ("layout(binding = 0) uniform sampler2DMS x;", "r = texelFetch(x, ivec2(0), 0).r;"),
    "shadow": ("layout(binding = 0) uniform sampler2DShadow x;", "r = textureLod(x, vec3(0), 0);"),
    "descriptors": ("layout(binding = 0) uniform sampler2D x[2];", "r = textureLod(x[1], vec2(0), 0).r;"),
    "texel": ("layout(binding = 0, r32f) uniform imageBuffer x;", "imageStore(x, 0, vec4(1));"),
}
CODES = {
    **dict.fromkeys(("1d", "3d", "cube", "array", "samples"), "SR-IMAGE-001"),
    "shadow": "SR-IMAGE-005",
    "descriptors": "SR-BIND-007",
    "texel": "SR-BIND-008",
    "slices": "SR-IMAGE-006",
    "planes": "SR-JSON-005",
    "stage": "SR-JSON-005",
    "depth": "SR-ATTACH-006",
    "volume": "SR-FILE-010",
    "objects": "SR-FILE-008",
}


def _scenes(folder: Path) -> Iterator[tuple[str, Scene]]:
    for name, (declaration, body) in BEYOND.items():
        scene = Scene(folder).image("x", "R32_SFLOAT", size=(4, 4)).buffer("r", size=4)
        scene.shader(name, glsl(body, f"{declaration}\nlayout(binding = 1) buffer R {{ float r; }};"))
        yield name, scene.dispatch(name, ["x", "r"])
    yield "slices", Scene(folder).image("x", "R8_UNORM", dims=[1, 4, 4, 2])
    yield "planes", Scene(folder).image("x", "G8_B8_R8_3PLANE_420_UNORM", size=(4, 4))
    yield "stage", Scene(folder).resource("shader", uid="s", src="3d.comp", stage="geometry")
    scene = Scene(folder).image("x", "D32_SFLOAT", size=(4, 4), color_attachment=True)
    for stage, result in (("vertex", "gl_Position"), ("fragment", "color")):
        out = "layout(location = 0) out vec4 color;" if stage == "fragment" else ""
        text = ["#version 450", out, f"void main() {{ {result} = vec4(0); }}"]
        scene.resource("shader", uid=stage, stage=stage, src={"text": text})
    draw: dict[str, Any] = {"vertex_shader_ref": "vertex", "fragment_shader_ref": "fragment", "bindings": []}
    yield "depth", scene.command("dispatch_fragment", **draw, color_attachment_refs=["x"])
    scene = Scene(folder).image("x", "R8_UNORM", size=(1, 1), src="volume.dds")
    scene.file("volume.dds", dds_bytes(b"a", dimension=4))
    yield "volume", scene
    yield "objects", Scene(folder).raw_data("x", numpy.array([{}], dtype=object))


def _sampler(folder: Path) -> Scene:
    """An image that is filtered as a second one says."""
    scene, linear = Scene(folder), {"min_filter": "LINEAR", "mag_filter": "LINEAR"}
    scene.image("x", "R32_SFLOAT", numpy.array([[0, 1]], "f4"), shader_access="readonly")
    scene.image("filters", "R32_SFLOAT", size=(1, 1), shader_access="readonly", **linear)
    declarations = """layout(binding = 0) uniform texture2D x;
        layout(binding = 1) uniform sampler filters;
        layout(binding = 2) buffer R { float r; };"""
    body = "r = textureLod(sampler2D(x, filters), vec2(0.5), 0).r;"
    scene.buffer("r", size=4).shader("sample", glsl(body, declarations))
    return scene.dispatch("sample", ["x", "filters", "r"])


def test_limits_have_the_codes_of_the_page(tmp_path: Path, program: Program) -> None:
    """Each scenario beyond a limit has the code that the page names, and the page names no other codes."""
    for name, scene in _scenes(tmp_path):
        scene.write(f"{name}.json")
    report = json.loads(program("validate", "--format", "json", *(f"{name}.json" for name in CODES)).out)
    codes = {file["file"]: {finding["code"] for finding in file["findings"]} for file in report["files"]}
    assert codes == {f"{name}.json": {code} for name, code in CODES.items()}
    assert set(re.findall(r"SR-[A-Z]+-\d+", PAGE.read_text(encoding="utf-8"))) == set(CODES.values())


def test_a_sampler_of_another_image(tmp_path: Path, program: Program) -> None:
    """Between two texels, 0 and 1, the filters of the second image give the mean."""
    _sampler(tmp_path).write()
    assert program("scenario.json").code == 0
    assert numpy.load(tmp_path / "r.out.npy").view("f4") == pytest.approx([0.5])
