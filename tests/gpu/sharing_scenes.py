"""Scenarios in which an image, a buffer and a tensor share memory, and shaders that fill, change and read each."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy

from tests.gpu.ml_scenes import HEAD
from tests.scenes import Scene

GROUP = {"memory_group": {"id": "shared"}}
LOCAL_SIZE = 64


class Kind(NamedTuple):
    """How GLSL sees the texels of a format: as an image, as the words of a buffer, as the elements of a tensor."""

    dtype: str
    items: int
    prefix: str  # of image2D, sampler2D and vec4
    layout: str
    tensor_format: str
    element: str  # of a tensor
    to_word: str  # from ELEMENT, one item as the bits of a word
    add_to_word: str  # one more in every item of the word w

    @property
    def items_of_a_word(self) -> int:
        return 4 // numpy.dtype(self.dtype).itemsize

    @property
    def words(self) -> int:
        """Of a texel."""
        return self.items // self.items_of_a_word


KINDS = {
    "R32_UINT": Kind("u4", 1, "u", "r32ui", "R32_UINT", "uint32_t", "ELEMENT", "w + 1u"),
    "R8G8B8A8_UINT": Kind("u1", 4, "u", "rgba8ui", "R8_UINT", "uint8_t", "ELEMENT", "w + 0x01010101u"),
    "R32G32B32A32_SFLOAT": Kind(
        "f4", 4, "", "rgba32f", "R32_SFLOAT", "float",
        "floatBitsToUint(ELEMENT)", "floatBitsToUint(uintBitsToFloat(w) + 1.0)",
    ),
}  # fmt: skip
# The value of item e of all that the members show: every type holds it exactly, and some more.
VALUE = "uint value(uint e) { return (e * 7u + 3u) % 251u; }\n"
WORDS = "layout(set = 0, binding = 0) buffer Words { uint t[]; };\n"
OUT = "layout(set = 0, binding = 1) writeonly buffer Out { uint words[]; };\n"


def values(kind: Kind, width: int, height: int) -> Any:
    """Return the values of shape (height, width, items)."""
    items = numpy.arange(width * height * kind.items)
    return ((items * 7 + 3) % 251).astype(kind.dtype).reshape(height, width, kind.items)


def shader(body: str, declarations: str, size: tuple[int, int]) -> str:
    """Runs ``body`` for each texel (``p``) with its number ``i``."""
    width, height = size
    return (
        f"{HEAD if 'tensorARM' in declarations else '#version 450'}\nlayout(local_size_x = {LOCAL_SIZE}) in;\n"
        f"{declarations}\nvoid main() {{\n"
        f"uint i = gl_GlobalInvocationID.x; if (i >= {width * height}u) return;\n"
        f"ivec2 p = ivec2(i % {width}u, i / {width}u);\n{body}\n}}\n"
    )


def image_variable(kind: Kind) -> str:
    return f"layout(set = 0, binding = 0, {kind.layout}) uniform {kind.prefix}image2D t;\n"


def tensor_variable(kind: Kind) -> str:
    return f"layout(set = 0, binding = 0) uniform tensorARM<{kind.element}, 3> t;\n"


def packed(kind: Kind, item: str, store: str, get: str = "") -> str:
    """A loop over the words of texel ``i``: after ``get``, ``item`` is the bits of item ``c`` of the texel, which is
    item ``e`` of all; ``store`` keeps ``word`` number ``k``."""
    per_word = kind.items_of_a_word
    return (
        f"for (uint k = 0u; k < {kind.words}u; ++k) {{\nuint word = 0u;\nfor (uint j = 0u; j < {per_word}u; ++j) {{\n"
        f"uint c = k * {per_word}u + j; uint e = i * {kind.items}u + c; {get}\n"
        f"word |= ({item}) << (j * {32 // per_word}u);\n}}\n{store}\n}}"
    )


def per_word(kind: Kind, body: str) -> str:
    """A loop over the words of texel ``i``; ``at`` is the number of the word."""
    return f"for (uint k = 0u; k < {kind.words}u; ++k) {{ uint at = i * {kind.words}u + k; {body} }}"


def per_element(kind: Kind, body: str) -> str:
    """A loop over the items of texel ``i``; ``at`` is where the tensor has it, ``e`` its number."""
    return (
        f"for (uint c = 0u; c < {kind.items}u; ++c) {{ uint at[3] = uint[](uint(p.y), uint(p.x), c);"
        f" uint e = i * {kind.items}u + c; {body} }}"
    )


def bits(kind: Kind, element: str) -> str:
    return kind.to_word.replace("ELEMENT", element)


def add_group(scene: Scene, name: str, size: tuple[int, int], members: Sequence[str], filled_by: str | None) -> None:
    """Add an image, a buffer and a tensor in one memory group, named after their kinds. A file or a shader fills one of
    them: "image's file" or "image"."""
    width, height = size
    kind = KINDS[name]
    for member in members:
        content = values(kind, width, height) if filled_by == f"{member}'s file" else None
        if member == "image":
            scene.image("image", name, content, size=size, **GROUP)
        elif member == "buffer":
            scene.buffer("buffer", content, size=width * height * kind.words * 4, dst=None, **GROUP)
        else:
            keys = {"dims": [height, width, kind.items], "format": f"VK_FORMAT_{kind.tensor_format}", "dst": None}
            scene.tensor("tensor", content, **keys, **GROUP)
    if filled_by in members:
        fill(scene, name, size, filled_by)


def fill(scene: Scene, name: str, size: tuple[int, int], member: str) -> None:
    """A shader stores the values through one member."""
    kind = KINDS[name]
    if member == "image":
        items = [f"value(i * {kind.items}u + {c}u)" for c in range(kind.items)] + ["0"] * (4 - kind.items)
        body, declaration = f"imageStore(t, p, {kind.prefix}vec4({', '.join(items)}));", image_variable(kind)
    elif member == "buffer":
        value = "float(value(e))" if kind.dtype == "f4" else "value(e)"
        body, declaration = packed(kind, bits(kind, value), f"t[i * {kind.words}u + k] = word;"), WORDS
    else:
        body, declaration = (
            per_element(kind, f"tensorWriteARM(t, at, {kind.element}(value(e)));"),
            tensor_variable(kind),
        )
    _run(scene, f"fill_{member}", shader(body, declaration + VALUE, size), [member], size)


def add_one(scene: Scene, name: str, size: tuple[int, int], member: str) -> None:
    """A shader adds one to every item through one member."""
    kind = KINDS[name]
    if member == "image":
        body, declaration = f"imageStore(t, p, imageLoad(t, p) + {kind.prefix}vec4(1));", image_variable(kind)
    elif member == "buffer":
        body = per_word(kind, f"uint w = t[at]; t[at] = {kind.add_to_word};")
        declaration = WORDS
    else:
        one = f"{kind.element} v; tensorReadARM(t, at, v); tensorWriteARM(t, at, v + {kind.element}(1));"
        body, declaration = per_element(kind, one), tensor_variable(kind)
    _run(scene, f"add_{member}", shader(body, declaration, size), [member], size)


def read(scene: Scene, name: str, size: tuple[int, int], how: str) -> None:
    """A shader reads one member in one way into the buffer ``by_<how>``."""
    kind = KINDS[name]
    store = f"words[i * {kind.words}u + k] = word;"
    if how == "tensor":
        get = "tensorReadARM(t, uint[](uint(p.y), uint(p.x), c), v);"
        body = f"{kind.element} v;\n" + packed(kind, bits(kind, "v" if kind.dtype == "f4" else "uint(v)"), store, get)
        declaration = tensor_variable(kind)
    elif how == "buffer":
        body, declaration = per_word(kind, "words[at] = t[at];"), WORDS
    elif how == "storage":
        body = f"{kind.prefix}vec4 v = imageLoad(t, p);\n" + packed(kind, bits(kind, "v[c]"), store)
        declaration = image_variable(kind)
    else:
        body = f"{kind.prefix}vec4 v = texelFetch(t, p, 0);\n" + packed(kind, bits(kind, "v[c]"), store)
        declaration = f"layout(set = 0, binding = 0) uniform {kind.prefix}sampler2D t;\n"
    scene.buffer(f"by_{how}", size=values(kind, *size).nbytes, dst=None)
    member = "image" if how in ("storage", "sampled") else how
    _run(scene, f"read_{how}", shader(body, declaration + OUT, size), [member, f"by_{how}"], size)


def _run(scene: Scene, uid: str, text: str, uids: list[str], size: tuple[int, int]) -> None:
    scene.shader(uid, text).dispatch(uid, uids, [-(-size[0] * size[1] // LOCAL_SIZE)])
