"""Missing barriers around commands that are not run yet: drawings and optical flows."""

from pathlib import Path
from typing import Any

import pytest

from scenario_runner.validation import Options, validate_file
from tests.drawings import drawing, image
from tests.scenes import Scene, glsl

VERTEX = "layout(set = 0, binding = 0) readonly buffer D { vec4 d[]; };\nvoid main() { gl_Position = d[0]; }"
FRAGMENT = """
layout(set = 0, binding = 1) writeonly buffer E { vec4 e[]; };
layout(set = 0, binding = 2, rgba8) uniform writeonly image2D p;
layout(location = 0) out vec4 first;
layout(location = 1) out uint second;
void main() { first = vec4(1); second = 7; e[0] = vec4(2); imageStore(p, ivec2(0), vec4(3)); }
"""
FETCH = (
    "layout(set = 0, binding = 0) uniform sampler2D p; layout(set = 0, binding = 1) writeonly buffer B { vec4 b[]; };"
)


@pytest.fixture(autouse=True)
def _cache(shader_cache: Path) -> None:
    """Every shader is compiled once."""


def hazards(scene: Scene) -> list[tuple[str | None, str]]:
    """Code and message of the hazards, the message up to the reason."""
    findings = validate_file(scene.write(), Options(hazards=True)).findings
    assert {each.code for each in findings if each.severity == "error"} == set()
    found = [(each.code, each.message.split(";")[0]) for each in findings]
    return [each for each in found if (each[0] or "").startswith("SR-HAZARD")]


def drawn(scene: Scene, *, implicit_barrier: bool, **keys: Any) -> Scene:
    """A drawing that reads a buffer, writes another one and level 0 of an image, and draws into two images."""
    for uid in "de":
        scene.buffer(uid, size=64)
    image(scene, "i", mips=2)
    bindings = [{"set": 0, "id": number, "resource_ref": uid} for number, uid in enumerate("dei")]
    return drawing(scene, VERTEX, FRAGMENT, bindings=bindings, implicit_barrier=implicit_barrier, **keys)


def fetch(scene: Scene, uid: str, level: int = 0) -> Scene:
    """A dispatch that reads a level of an image."""
    scene.shader("fetch", glsl("b[0] = texelFetch(p, ivec2(0), 0);", FETCH)).buffer("out", size=64)
    bound = [{"set": 0, "id": 0, "resource_ref": uid, "lod": level}, {"set": 0, "id": 1, "resource_ref": "out"}]
    return scene.command("dispatch_compute", shader_ref="fetch", rangeND=[1], bindings=bound)


def fill(scene: Scene, uid: str) -> Scene:
    """A dispatch that writes a buffer."""
    scene.shader("fill", glsl("a[0] = 1;", "layout(set = 0, binding = 0) writeonly buffer A { uint a[]; };"))
    return scene.dispatch("fill", [uid])


DRAWING = "/commands/0/dispatch_fragment (shader 'f')"


@pytest.mark.parametrize("implicit_barrier", [True, False])
def test_attachments_are_written(scene: Scene, implicit_barrier: bool) -> None:
    """Reading what was drawn needs an order with the drawing."""
    fetch(drawn(scene, implicit_barrier=implicit_barrier), "a")
    message = f"shader 'fetch' reads image 'a', which {DRAWING} writes"
    assert hazards(scene) == ([] if implicit_barrier else [("SR-HAZARD-001", message)])


@pytest.mark.parametrize("level, code", [(0, "SR-HAZARD-001"), (1, None)])
def test_the_level_of_an_attachment(scene: Scene, level: int, code: str | None) -> None:
    """Only the level that is drawn into is written."""
    attachments = [{"resource_ref": "i", "lod": 0}, "b"]
    scene.buffer("d", size=64)
    image(scene, "i", mips=2)
    fragment = FRAGMENT.replace("second = 7; e[0] = vec4(2); imageStore(p, ivec2(0), vec4(3));", "second = 7;")
    bindings = [{"set": 0, "id": 0, "resource_ref": "d"}]
    keys = {"bindings": bindings, "implicit_barrier": False, "color_attachment_refs": attachments}
    fetch(drawing(scene, VERTEX, fragment, **keys), "i", level)
    assert [each[0] for each in hazards(scene)] == ([] if code is None else [code])


@pytest.mark.parametrize(
    "uid, expected",
    [
        ("d", [("SR-HAZARD-002", f"shader 'fill' writes buffer 'd', which {DRAWING} reads")]),
        ("e", [("SR-HAZARD-003", f"shader 'fill' writes buffer 'e', which {DRAWING} writes")]),
    ],
)
def test_both_shaders_of_a_drawing_count(scene: Scene, uid: str, expected: list[tuple[str, str]]) -> None:
    """What the vertex shader reads and what the fragment shader writes are accesses of the drawing."""
    assert hazards(fill(drawn(scene, implicit_barrier=False), uid)) == expected


@pytest.mark.parametrize("level, code", [(0, "SR-HAZARD-001"), (1, None)])
def test_a_storage_image_of_a_drawing(scene: Scene, level: int, code: str | None) -> None:
    """A storage image without a level is its first one, in drawings as in dispatches."""
    fetch(drawn(scene, implicit_barrier=False), "i", level)
    assert [each[0] for each in hazards(scene)] == ([] if code is None else [code])


@pytest.mark.parametrize("implicit_barrier", [True, False])
def test_optical_flow(scene: Scene, implicit_barrier: bool) -> None:
    """An optical flow reads its two images and writes the motion."""
    names = ("search_image", "template_image", "output_image")
    for name in names:
        image(scene, name)
    bindings = {name: {"set": 0, "id": number, "resource_ref": name} for number, name in enumerate(names)}
    keys = {"width": 16, "height": 8, "grid_size": "1x1", "bindings": bindings, "implicit_barrier": implicit_barrier}
    scene.command("dispatch_optical_flow", **keys)
    fetch(scene, "output_image")
    scene.dispatch("fetch", ["search_image", "out"])
    flow = "/commands/0/dispatch_optical_flow (the optical flow)"
    message = f"shader 'fetch' reads image 'output_image', which {flow} writes"
    assert hazards(scene) == ([] if implicit_barrier else [("SR-HAZARD-001", message)])
