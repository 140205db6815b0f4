"""What a drawing draws into: each rule about its attachments, and nothing on what is right."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.drawings import COMMAND, FRAGMENT, VERTEX, drawing, found, image
from tests.scenes import Scene

FIRST, SECOND = f"{COMMAND}/color_attachment_refs/0", f"{COMMAND}/color_attachment_refs/1"


@pytest.fixture(autouse=True)
def _cache(shader_cache: Path) -> None:
    """Every shader is compiled once."""


@pytest.mark.parametrize(
    "attachments, expected",
    [
        (
            ["a"],
            [
                f"SR-ATTACH-001 warning {COMMAND}: output 'second' of shader 'f' goes to the attachment 1; the drawing"
                " has 1, so that it is lost"
            ],
        ),
        (
            ["a", "b", "d"],
            [
                f"SR-ATTACH-002 warning {COMMAND}/color_attachment_refs/2: shader 'f' has no output at location 2: the"
                " image stays as it is"
            ],
        ),
        (
            ["b", "d"],
            [
                f"SR-ATTACH-003 error {FIRST}: output 'first' of shader 'f' gives float32; image 'b' of"
                " VK_FORMAT_R32_UINT takes unsigned integers of 32 bits",
                f"SR-ATTACH-003 error {SECOND}: output 'second' of shader 'f' gives uint32; image 'd' of"
                " VK_FORMAT_R8_UNORM takes floats of 32 bits",
            ],
        ),
        (
            ["a", "rg"],
            [
                f"SR-ATTACH-004 warning {SECOND}: 'second' of shader 'f' does not give G of image 'rg'"
                " (VK_FORMAT_R8G8_UINT), which stays as it is"
            ],
        ),
        (
            ["plain", "b"],
            [f"SR-ATTACH-005 warning {FIRST}: image 'plain' is drawn into, and its color_attachment is false"],
        ),
        (
            ["depth", "b"],
            [
                f"SR-ATTACH-006 error {FIRST}: image 'depth' has the format VK_FORMAT_D32_SFLOAT, which cannot be drawn"
                " into as a colour"
            ],
        ),
        (
            ["c", "b"],
            [f"SR-ATTACH-007 error {SECOND}: image 'b' has 16 x 8 texels, attachment 0, 'c', has 32 x 16"],
        ),
        (
            ["a", "b", "b"],
            [
                f"SR-ATTACH-002 warning {COMMAND}/color_attachment_refs/2: shader 'f' has no output at location 2: the"
                " image stays as it is",
                f"SR-ATTACH-010 error {COMMAND}/color_attachment_refs/2: image 'b' is attachment 1 already: which of"
                " the two values stays is undefined",
            ],
        ),
    ],
)
def test_attachments(scene: Scene, attachments: list[Any], expected: list[Any]) -> None:
    """Each attachment has an output of its kind with all its components, is an image for drawing, and of one size."""
    drawing(scene, color_attachment_refs=attachments)
    image(scene, "d", format="VK_FORMAT_R8_UNORM")
    image(scene, "rg", format="VK_FORMAT_R8G8_UINT")
    image(scene, "plain", color_attachment=False)
    image(scene, "depth", format="VK_FORMAT_D32_SFLOAT")
    assert sorted(found(scene)) == sorted(expected)


def test_another_extent(scene: Scene) -> None:
    """render_extent is the size of the attachments."""
    message = "image 'a' has 16 x 8 texels, the render_extent has 16 x 4"
    found_ones = found(drawing(scene, render_extent=[16, 4]))
    assert found_ones[0] == f"SR-ATTACH-007 error {FIRST}: {message}"
    assert [each.split()[0] for each in found_ones] == ["SR-ATTACH-007", "SR-ATTACH-007"]


def test_components_of_several_outputs(scene: Scene) -> None:
    """Outputs with different components of one location fill an attachment together."""
    parts = """layout(location = 0) out vec2 first;
    layout(location = 0, component = 2) out vec2 rest;
    layout(location = 1) out uint second;
    void main() { first = vec2(0); rest = vec2(1); second = 1; }
    """
    assert found(drawing(scene, VERTEX, parts)) == []


def test_an_attachment_that_is_also_read(scene: Scene) -> None:
    """An image that is drawn into must not be bound for the shaders at the same level; another level may be."""
    fragment = FRAGMENT.replace("void main() {", "layout(binding = 0) uniform sampler2D s;\nvoid main() {")
    fragment = fragment.replace("first = color", "first = texture(s, vec2(0)) + color")
    bindings = [{"set": 0, "id": 0, "resource_ref": "c", "lod": 1}]
    targets: list[Any] = [{"resource_ref": "c", "lod": 1}, "b"]
    assert found(drawing(scene, VERTEX, fragment, bindings=bindings, color_attachment_refs=targets)) == [
        f"SR-ATTACH-008 error {FIRST}: image 'c', mip level 1, is drawn into while the shaders use it as a binding:"
        " what they see there is undefined"
    ]


def test_another_level_of_an_attachment(scene: Scene) -> None:
    """Reading one level while drawing into another is right."""
    fragment = FRAGMENT.replace("void main() {", "layout(binding = 0) uniform sampler2D s;\nvoid main() {")
    fragment = fragment.replace("first = color", "first = texture(s, vec2(0)) + color")
    bindings = [{"set": 0, "id": 0, "resource_ref": "c", "lod": 0}]
    targets: list[Any] = [{"resource_ref": "c", "lod": 1}, "b"]
    assert found(drawing(scene, VERTEX, fragment, bindings=bindings, color_attachment_refs=targets)) == []
