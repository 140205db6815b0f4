"""A thousand small drawings, and a drawing that fills a large picture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.bounds import Bound
from benchmarks.programs import Program
from benchmarks.workloads.workload import Workload, buffer, compile_shader, shader, write_scenario

WHOLE = """#version 450
void main() {
    gl_Position = vec4(gl_VertexIndex == 1 ? 3.0 : -1.0, gl_VertexIndex == 2 ? 3.0 : -1.0, 0.0, 1.0);
}
"""
NEXT = """#version 450
layout(set = 0, binding = 0) uniform usampler2D source;
layout(location = 0) out uint color;
void main() { color = texelFetch(source, ivec2(gl_FragCoord.xy), 0).r + 1u; }
"""
# The buffer is zero. It exists since the reference runs no drawing without a binding.
FILL = """#version 450
layout(set = 0, binding = 0) readonly buffer Shift { uint shift; };
layout(location = 0) out vec4 color;
void main() { uvec2 p = uvec2(gl_FragCoord.xy) + shift; color = vec4(uvec4(p, p.x ^ p.y, 255) & 255u) / 255.0; }
"""
_DDS_HEADER_BYTES = 148


class _Drawings(Workload):
    """Drawings with the shaders `WHOLE` and ``fragment_text`` as SPIR-V: the reference compiles GLSL each time."""

    fragment_text = NEXT
    timeout_s = 300.0

    def _write(self, folder: Path, resources: list[dict[str, Any]], commands: list[dict[str, Any]]) -> None:
        (folder / "whole.spv").write_bytes(compile_shader(WHOLE, "vertex"))
        (folder / "fragment.spv").write_bytes(compile_shader(self.fragment_text, "fragment"))
        shaders = [
            shader("whole", "whole.spv", stage="vertex"),
            shader("fragment", "fragment.spv", stage="fragment"),
        ]
        write_scenario(folder / "scenario.json", commands, [*shaders, *resources])


class Drawings(_Drawings):
    """Drawings that each read the previous picture and draw the next."""

    name = "drawings"
    title = "1,000 drawings of 64 x 64 texels, each from the previous one"
    time_bound = Bound(must=0.25)
    side = 64

    def __init__(self) -> None:
        self._count = 1000

    def make(self, folder: Path, *, quick: bool) -> None:
        if quick:
            self._count = 10
        names = ["even", "odd"]
        images = [_image(name, "VK_FORMAT_R32_UINT", self.side, dst=f"{name}.dds") for name in names]
        bindings = [[{"set": 0, "id": 0, "resource_ref": name}] for name in names]
        commands = [_drawing(names[1 - number % 2], bindings[number % 2]) for number in range(self._count)]
        self._write(folder, images, commands)

    def check(self, folder: Path, program: Program, output: Path) -> None:
        for name, value in (("even", self._count), ("odd", self._count - 1)):
            got = np.fromfile(output / f"{name}.dds", "u4", offset=_DDS_HEADER_BYTES)
            np.testing.assert_array_equal(got, np.full(self.side**2, value, "u4"))


class Fill(_Drawings):
    """A drawing over a large picture, which is written to a file."""

    name = "fill"
    title = "a drawing over 4096x4096 RGBA8, 67 MB of .dds out"
    fragment_text = FILL

    def __init__(self) -> None:
        self._side = 4096

    def make(self, folder: Path, *, quick: bool) -> None:
        if quick:
            self._side = 64
        picture = _image("picture", "VK_FORMAT_R8G8B8A8_UNORM", self._side, dst="picture.dds")
        bindings = [{"set": 0, "id": 0, "resource_ref": "shift"}]
        self._write(folder, [picture, buffer("shift", 4)], [_drawing("picture", bindings)])

    def check(self, folder: Path, program: Program, output: Path) -> None:
        y, x = np.mgrid[: self._side, : self._side].astype("u2")
        expected = np.stack([x & 255, y & 255, (x ^ y) & 255, x * 0 + 255], -1).astype("u1")
        got = np.fromfile(output / "picture.dds", "u1", offset=_DDS_HEADER_BYTES)
        np.testing.assert_array_equal(got, expected.ravel())


def _image(uid: str, format: str, side: int, **more: Any) -> dict[str, Any]:
    keys = {"uid": uid, "dims": [1, side, side, 1], "format": format, "shader_access": "readonly"}
    return {"image": {**keys, "color_attachment": True, **more}}


def _drawing(attachment: str, bindings: list[dict[str, Any]]) -> dict[str, Any]:
    refs = {"vertex_shader_ref": "whole", "fragment_shader_ref": "fragment"}
    return {"dispatch_fragment": {**refs, "bindings": bindings, "color_attachment_refs": [attachment]}}
