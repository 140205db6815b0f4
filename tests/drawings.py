"""Scenarios with a draw, for the rules about shaders and attachments."""

from typing import Any

from scenario_runner.run.reported_device import ReportedDevice
from scenario_runner.validation import Options, validate_file
from tests.scenes import Scene

HEAD = "#version 450\n"
VERTEX = """
layout(location = 0) out vec4 color;
layout(location = 1) flat out uint number;
layout(location = 2) out Block { mat2 turn; vec2 place[2]; } block;
void main() { gl_Position = vec4(0); color = vec4(1); number = 7; block.turn = mat2(1); block.place[0] = vec2(0); }
"""
FRAGMENT = """
layout(location = 0) in vec4 color;
layout(location = 1) flat in uint number;
layout(location = 2) in Block { mat2 turn; vec2 place[2]; } block;
layout(location = 0) out vec4 first;
layout(location = 1) out uint second;
void main() { first = color + vec4(block.place[1], block.turn[0]); second = number; }
"""
COMMAND = "/commands/0/dispatch_fragment"


def image(scene: Scene, uid: str, **keys: Any) -> None:
    given = {"dims": [1, 16, 8, 1], "format": "VK_FORMAT_R8G8B8A8_UNORM", "shader_access": "readwrite"}
    scene.resource("image", uid=uid, **{**given, "color_attachment": True, **keys})


def drawing(scene: Scene, vertex: str | bytes = VERTEX, fragment: str | bytes = FRAGMENT, **keys: Any) -> Scene:
    """A scenario that draws into "a" (floats), "b" (unsigned integers); "c" is half as large at its level 1 only."""
    for uid, stage, code in (("v", "vertex", vertex), ("f", "fragment", fragment)):
        if isinstance(code, bytes):
            scene.module(uid, code, stage=stage)
        else:
            scene.shader(uid, HEAD + code, stage=stage)
    image(scene, "a")
    image(scene, "b", format="VK_FORMAT_R32_UINT")
    image(scene, "c", dims=[1, 32, 16, 1], mips=2)
    given = {"vertex_shader_ref": "v", "fragment_shader_ref": "f", "bindings": [], "color_attachment_refs": ["a", "b"]}
    return scene.command("dispatch_fragment", **{**given, **keys})


def found(scene: Scene, device: ReportedDevice | None = None) -> list[str]:
    """Code, severity, pointer and message of everything that validation finds."""
    findings = validate_file(scene.write(), Options(device=device)).findings
    assert all(each.line is not None for each in findings)
    return [f"{each.code} {each.severity} {each.pointer}: {each.message}" for each in findings]
