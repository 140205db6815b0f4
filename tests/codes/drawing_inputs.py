"""Inputs for the codes of drawings: from the vertex shader to the fragment shader, and into the attachments."""

from __future__ import annotations

from typing import Any

from tests.codes.case import Case, Codes, Input
from tests.drawings import FRAGMENT, VERTEX, drawing, image
from tests.scenes import assemble, kernel

MODULE = kernel("""
    OpEntryPoint Fragment %main "main" %color %first
    OpExecutionMode %main OriginUpperLeft
    OpDecorate %color Location 1
    OpDecorate %color Flat
    OpDecorate %first Location 0
    %float = OpTypeFloat 32
    %v4 = OpTypeVector %float 4
    %in = OpTypePointer Input %uint
    %out = OpTypePointer Output %v4
    %color = OpVariable %in Input
    %first = OpVariable %out Output
""")


def vertex(old: str, new: str, **keys: Any) -> Input:
    assert old in VERTEX
    text = VERTEX.replace(old, new)
    return lambda case: drawn(case, text, FRAGMENT, **keys)


def module(old: str, new: str = "") -> Input:
    assert old in MODULE
    return lambda case: drawn(case, VERTEX, assemble(MODULE.replace(old, new)))


def into(*uids: str) -> Input:
    return lambda case: drawn(case, color_attachment_refs=list(uids))


def drawn(case: Case, *shaders: str | bytes, **keys: Any) -> Codes:
    """A drawing; beside its own images there are some that do not fit."""
    image(case.scene, "two", format="VK_FORMAT_R8G8_UINT")
    image(case.scene, "depth", format="VK_FORMAT_D32_SFLOAT")
    image(case.scene, "plain", color_attachment=False)
    image(case.scene, "third")
    drawing(case.scene, *shaders, **keys)
    return case.validated()


def attachment_that_is_sampled(case: Case) -> Codes:
    text = FRAGMENT.replace("void main", "layout(binding = 0) uniform sampler2D s;\nvoid main")
    text = text.replace("first = color", "first = texture(s, vec2(0)) + color")
    return drawn(case, VERTEX, text, bindings=[{"set": 0, "id": 0, "resource_ref": "a"}])


INPUTS: dict[str, Input] = {
    "SR-STAGE-001": vertex("location = 0) out vec4", "location = 8) out vec4"),
    "SR-STAGE-002": vertex("out uint number", "out int number"),
    "SR-STAGE-003": module("OpDecorate %color Flat\n"),
    "SR-STAGE-004": module("OpDecorate %first Location 0\n"),
    "SR-STAGE-005": vertex("void", "layout(location = 3) in vec4 place;\nvoid"),
    "SR-STAGE-006": module("OriginUpperLeft", "OriginLowerLeft"),
    "SR-STAGE-007": vertex("gl_Position = vec4(0);", ""),
    "SR-ATTACH-001": into("a"),
    "SR-ATTACH-002": into("a", "b", "third"),
    "SR-ATTACH-003": into("b", "b"),
    "SR-ATTACH-004": into("a", "two"),
    "SR-ATTACH-005": into("plain", "b"),
    "SR-ATTACH-006": into("depth", "b"),
    "SR-ATTACH-007": into("c", "b"),
    "SR-ATTACH-008": attachment_that_is_sampled,
    "SR-ATTACH-010": into("a", "b", "b"),
}
