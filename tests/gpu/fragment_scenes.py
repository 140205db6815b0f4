"""Vertex and fragment shaders in scenes, and commands that draw."""

from collections.abc import Sequence
from typing import Any

import numpy

from tests.scenes import Bindings, Scene, bound

HEAD = "#version 450\n"
# One triangle over the whole picture, its corners told apart by their numbers.
WHOLE = "gl_Position = vec4(gl_VertexIndex == 1 ? 3.0 : -1.0, gl_VertexIndex == 2 ? 3.0 : -1.0, 0.0, 1.0);"
# The texel that is drawn, as integers.
TEXEL = "ivec2 p = ivec2(gl_FragCoord.xy);"


def vertex(scene: Scene, body: str = WHOLE, declarations: str = "", uid: str = "v", **keys: Any) -> Scene:
    """A vertex shader."""
    return scene.shader(uid, f"{HEAD}{declarations}\nvoid main() {{ {body} }}\n", stage="vertex", **keys)


def fragment(scene: Scene, body: str, declarations: str = "", uid: str = "f", **keys: Any) -> Scene:
    """A fragment shader."""
    return scene.shader(uid, f"{HEAD}{declarations}\nvoid main() {{ {TEXEL} {body} }}\n", stage="fragment", **keys)


def output(kind: str, location: int = 0, name: str = "color") -> str:
    """The declaration of an output of a fragment shader."""
    return f"layout(location = {location}) out {kind} {name};\n"


def target(scene: Scene, uid: str, name: str = "R32_UINT", content: Any = None, **keys: Any) -> Scene:
    """An image that is drawn into."""
    return scene.image(uid, name, content, **{"color_attachment": True, **keys})


def draw(scene: Scene, attachments: Sequence[Any], bindings: Bindings = (), **keys: Any) -> Scene:
    """A dispatch_fragment with the shaders "v" and "f"."""
    given = {"vertex_shader_ref": "v", "fragment_shader_ref": "f", "color_attachment_refs": list(attachments)}
    return scene.command("dispatch_fragment", **{**given, "bindings": bound(bindings), **keys})


def grid(width: int, height: int) -> tuple[Any, Any]:
    """x and y of every texel, as (height, width)."""
    y, x = numpy.mgrid[:height, :width]
    return x.astype("u4"), y.astype("u4")
