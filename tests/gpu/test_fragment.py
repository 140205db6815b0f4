"""Drawings on a device: what fragment shaders give is what the attachments hold. Expected values are NumPy's.

Which texels are touched: Vulkan specification, "Rasterization", section "Basic Polygon Rasterization": a texel is drawn
where its center lies inside the triangle; of two triangles that share an edge one draws a center on it.
"""

from typing import Any

import numpy
import pytest

from scenario_runner import Runner
from tests.gpu.fragment_scenes import HEAD, draw, fragment, grid, output, target, vertex
from tests.gpu.image_scenes import texels
from tests.scenes import Scene, assemble

WIDTH, HEIGHT = 37, 21


def whole(scene: Scene, body: str, declarations: str = "", **keys: Any) -> Scene:
    """A triangle over the whole picture."""
    vertex(scene)
    return fragment(scene, body, declarations, **keys)


@pytest.mark.parametrize("tiling", [None, "LINEAR", "OPTIMAL"])
def test_a_procedural_picture(scene: Scene, both: Runner, tiling: str | None) -> None:
    """Every texel has the value of the fragment shader, in each tiling."""
    whole(scene, "color = uint(p.x) * 65536u + uint(p.y * p.y);", output("uint"))
    target(scene, "x", size=(WIDTH, HEIGHT), **({"tiling": tiling} if tiling else {}))
    x, y = grid(WIDTH, HEIGHT)
    assert (both.run(draw(scene, ["x"]).write())["x"][..., 0] == x * 65536 + y * y).all()


@pytest.mark.parametrize(
    "name, kind, body",
    [
        ("R8G8B8A8_UINT", "uvec4", "uvec4(n, n >> 3, ~n, 7) & 255u"),
        ("R8G8B8A8_SINT", "ivec4", "ivec4(n % 100u, -int(n % 100u), 5, -128)"),
        ("R8_UINT", "uint", "n & 255u"),
        ("R16G16_UINT", "uvec2", "uvec2(n, n * 3) & 65535u"),
        ("R16G16B16A16_SINT", "ivec4", "ivec4(-int(n), n, 0, 1)"),
        ("R32_SINT", "int", "-int(n)"),
        ("R32G32B32A32_UINT", "uvec4", "uvec4(n, n * n, ~n, 1)"),
        ("R32_SFLOAT", "float", "float(n) / 8.0"),
        ("R16G16_SFLOAT", "vec2", "vec2(n % 2048u, -float(n % 1024u) / 2.0)"),
        ("R32G32B32A32_SFLOAT", "vec4", "vec4(n, -float(n), 0.25, 1e20)"),
        ("R8G8B8A8_UNORM", "vec4", "vec4(n & 255u, n >> 4 & 255u, 255, 0) / 255.0"),
        ("B8G8R8A8_UNORM", "vec4", "vec4(n & 255u, n >> 4 & 255u, 255, 0) / 255.0"),
    ],
)
def test_formats(scene: Scene, both: Runner, name: str, kind: str, body: str) -> None:
    """Integers and floats are stored exactly in every format that takes them."""
    whole(scene, f"uint n = uint(p.x + {WIDTH} * p.y); color = {kind}({body});", output(kind))
    target(scene, "x", name, size=(WIDTH, HEIGHT))
    n = numpy.arange(WIDTH * HEIGHT, dtype="i8")
    zero = n * 0
    items = {
        "R8G8B8A8_UINT": (n & 255, n >> 3 & 255, ~n & 255, zero + 7),
        "R8G8B8A8_SINT": (n % 100, -(n % 100), zero + 5, zero - 128),
        "R8_UINT": (n & 255,),
        "R16G16_UINT": (n, n * 3 & 65535),
        "R16G16B16A16_SINT": (-n, n, zero, zero + 1),
        "R32_SINT": (-n,),
        "R32G32B32A32_UINT": (n, n * n, ~n & 0xFFFFFFFF, zero + 1),
        "R32_SFLOAT": (n / 8,),
        "R16G16_SFLOAT": (n % 2048, -(n % 1024) / 2),
        "R32G32B32A32_SFLOAT": (n, -n, zero + 0.25, zero + numpy.float32(1e20)),
        "R8G8B8A8_UNORM": (n & 255, n >> 4 & 255, zero + 255, zero),
        "B8G8R8A8_UNORM": (zero + 255, n >> 4 & 255, n & 255, zero),
    }[name]
    got = both.run(draw(scene, ["x"]).write())["x"]
    expected = numpy.stack(items, -1).reshape(HEIGHT, WIDTH, -1).astype(got.dtype)
    numpy.testing.assert_array_equal(got, expected)


def test_bindings_of_both_shaders(scene: Scene, both: Runner) -> None:
    """Buffers are read by the vertex and by the fragment shader, in sets of their own and in a shared one."""
    buffer = "layout(set = {}, binding = {}) readonly buffer {} {{ {} }};\n"
    corners = buffer.format(2, 1, "C", "vec4 corners[];") + buffer.format(0, 0, "S", "uint shared_value;")
    declarations = corners + "layout(location = 0) flat out uint n;\n"
    vertex(scene, "gl_Position = corners[gl_VertexIndex]; n = shared_value;", declarations)
    table = buffer.format(0, 0, "S", "uint shared_value;") + buffer.format(0, 4, "T", "uint table[];")
    body = "color = table[p.x] + shared_value + n;"
    fragment(scene, body, table + "layout(location = 0) flat in uint n;\n" + output("uint"))
    scene.buffer("c", numpy.array([[-1, -1, 0, 1], [3, -1, 0, 1], [-1, 3, 0, 1]], "f4"), dst=None)
    values = numpy.arange(WIDTH, dtype="u4") * 11
    scene.buffer("t", values, dst=None).buffer("s", numpy.array([1000], "u4"), dst=None)
    target(scene, "x", size=(WIDTH, HEIGHT))
    result = both.run(draw(scene, ["x"], {(2, 1): "c", (0, 0): "s", (0, 4): "t"}).write())
    assert (result["x"][..., 0] == values + 2000).all()


def test_a_fragment_shader_writes_buffers_and_images(scene: Scene, both: Runner) -> None:
    """Without an attachment, render_extent gives the size, and the stores of the shader are there."""
    declarations = (
        "layout(binding = 0) buffer A { uint count; };\nlayout(binding = 1, r32ui) uniform writeonly uimage2D stored;\n"
    )
    whole(scene, "atomicAdd(count, 1u); imageStore(stored, p, uvec4(p.x * 7 + p.y));", declarations)
    scene.buffer("a", size=4).image("x", "R32_UINT", size=(WIDTH, HEIGHT))
    draw(scene, [], ["a", "x"], render_extent=[WIDTH - 5, HEIGHT - 2])
    result = both.run(scene.write(), outputs=["a", "x"])
    x, y = grid(WIDTH, HEIGHT)
    assert result.array("a", "u4").tolist() == [(WIDTH - 5) * (HEIGHT - 2)]
    expected = numpy.where((x < WIDTH - 5) & (y < HEIGHT - 2), x * 7 + y, 0)
    assert (result["x"][..., 0] == expected).all()


@pytest.mark.parametrize("sizes", [(16, 16), (16, 0), (0, 16), (4, 16), (0, 0)])
def test_push_constants_of_both_shaders(scene: Scene, both: Runner, sizes: tuple[int, int]) -> None:
    """Both shaders see the same bytes, as many as the larger push_constants_size or block."""
    first = "layout(push_constant) uniform P { uint factor; } pc;\nlayout(location = 0) flat out uint n;\n"
    vertex(
        scene,
        "gl_Position = vec4(gl_VertexIndex == 1 ? 3 : -1, gl_VertexIndex == 2 ? 3 : -1, 0, 1); n = pc.factor;",
        first,
        push_constants_size=sizes[0],
    )
    second = "layout(push_constant) uniform P { uint factor; uint add[3]; } pc;\nlayout(location = 0) flat in uint n;\n"
    fragment(scene, "color = uint(p.x) * n + pc.add[2];", second + output("uint"), push_constants_size=sizes[1])
    for number, value in enumerate((3, 5, 5)):
        scene.raw_data(f"d{number}", numpy.array([value, 0, 0, value * 100], "u4"))
        target(scene, f"x{number}", size=(WIDTH, HEIGHT))
        draw(scene, [f"x{number}"], push_data_ref=f"d{number}", implicit_barrier=False)
    result = both.run(scene.write())
    x, _ = grid(WIDTH, HEIGHT)
    for number, value in enumerate((3, 5, 5)):
        assert (result[f"x{number}"][..., 0] == x * value + value * 100).all()


def test_specialization_of_both_shaders(scene: Scene, both: Runner) -> None:
    """Each shader has its own constants, although their numbers are the same."""
    constants = "layout(constant_id = 1) const int which = 0;\n"
    place = "gl_Position = vec4(gl_VertexIndex == 1 ? 3 : -1, gl_VertexIndex == 2 ? 3 : -1, 0, 1); n = which;"
    for uid, value in (("v", 40), ("v2", 50)):
        given = [{"id": 1, "value": value}]
        vertex(scene, place, constants + "layout(location = 0) flat out int n;\n", uid, specialization_constants=given)
    declarations = constants + "layout(location = 0) flat in int n;\n" + output("int")
    fragment(scene, "color = n * 1000 + which;", declarations, specialization_constants=[{"id": 1, "value": -7}])
    for uid, shader in (("x", "v"), ("y", "v2")):
        target(scene, uid, "R32_SINT", size=(4, 4))
        draw(scene, [uid], vertex_shader_ref=shader)
    result = both.run(scene.write())
    assert (result["x"] == 40 * 1000 - 7).all()
    assert (result["y"] == 50 * 1000 - 7).all()


def test_interpolation(scene: Scene, both: Runner) -> None:
    """Values of the vertex shader are interpolated over the triangle, and flat values come from the first vertex."""
    handed = "layout(location = 0) {} vec2 at;\nlayout(location = 1) flat {} uint first;\n"
    place = "vec2 c = vec2(gl_VertexIndex == 1 ? 2 : 0, gl_VertexIndex == 2 ? 2 : 0);"
    given = f"{place} gl_Position = vec4(c * 2.0 - 1.0, 0, 1); at = c * 64.0; first = 10u + gl_VertexIndex;"
    vertex(scene, given, handed.format("out", "out"))
    body = "color = uvec4(floor(at), first, 0);"
    fragment(scene, body, handed.format("in", "in") + output("uvec4"))
    target(scene, "x", "R32G32B32A32_UINT", size=(64, 64))
    result = both.run(draw(scene, ["x"]).write())
    x, y = grid(64, 64)
    assert (result["x"] == numpy.stack([x, y, x * 0 + 10, x * 0], -1)).all()


def test_spirv_and_entry_points(scene: Scene, both: Runner) -> None:
    """Shaders in SPIR-V run as those in GLSL, by the names of their entry points."""
    code = assemble(
        """
        OpCapability Shader
        OpMemoryModel Logical GLSL450
        OpEntryPoint Fragment %paint "paint" %color
        OpEntryPoint Fragment %other "other" %color
        OpExecutionMode %paint OriginUpperLeft
        OpExecutionMode %other OriginUpperLeft
        OpDecorate %color Location 0
        %void = OpTypeVoid
        %function = OpTypeFunction %void
        %uint = OpTypeInt 32 0
        %pointer = OpTypePointer Output %uint
        %color = OpVariable %pointer Output
        %five = OpConstant %uint 5
        %six = OpConstant %uint 6
        %paint = OpFunction %void None %function
        %1 = OpLabel
        OpStore %color %five
        OpReturn
        OpFunctionEnd
        %other = OpFunction %void None %function
        %2 = OpLabel
        OpStore %color %six
        OpReturn
        OpFunctionEnd
        """
    )
    vertex(scene)
    scene.module("f", code, stage="fragment", entry="other")
    target(scene, "x", size=(5, 5))
    assert (both.run(draw(scene, ["x"]).write())["x"] == 6).all()


def test_an_undeclared_attachment(scene: Scene, both: Runner) -> None:
    """A draw into an image with color_attachment false works, with a warning."""
    whole(scene, "color = 3u;", output("uint"))
    target(scene, "x", size=(4, 4), color_attachment=False)
    result = both.run(draw(scene, ["x"]).write())
    assert (result["x"] == 3).all()
    assert [each.code for each in result.warnings] == ["SR-ATTACH-005"]


def test_shaders_that_include(scene: Scene, both: Runner) -> None:
    """Include directories and build options hold for vertex and fragment shaders."""
    scene.file("parts/value.glsl", "const uint VALUE = 9u;\n")
    vertex(scene)
    text = f'{HEAD}#extension GL_GOOGLE_include_directive : require\n#include "value.glsl"\n' + output("uint")
    text += "void main() { color = VALUE * FACTOR; }\n"
    scene.shader("f", text, stage="fragment", include_dirs=["parts"], build_options="-DFACTOR=5u")
    target(scene, "x", size=(4, 4))
    assert (both.run(draw(scene, ["x"]).write())["x"] == 45).all()


def test_what_has_no_output_keeps_its_values(scene: Scene, both: Runner) -> None:
    """An attachment or component without an output of the fragment shader keeps its values."""
    whole(scene, "b = vec2(p) / 4.0; c = uvec2(p);", output("vec2", 1, "b") + output("uvec2", 2, "c"))
    x, y, z = (texels(name, WIDTH, HEIGHT) for name in ("R32_UINT", "R32G32_SFLOAT", "R8G8B8A8_UINT"))
    target(scene, "x", "R32_UINT", x)
    target(scene, "y", "R32G32_SFLOAT", y)
    target(scene, "z", "R8G8B8A8_UINT", z)
    result = both.run(draw(scene, ["x", "y", "z"]).write())
    texel = numpy.stack(grid(WIDTH, HEIGHT), -1)
    numpy.testing.assert_array_equal(result["x"], x)
    numpy.testing.assert_array_equal(result["y"], texel.astype("f4") / 4)
    numpy.testing.assert_array_equal(result["z"], numpy.concatenate([texel, z[..., 2:]], -1))
    assert [warning.code for warning in result.warnings] == ["SR-ATTACH-002", "SR-ATTACH-004"]


def test_a_shader_without_outputs_draws_nothing(scene: Scene, both: Runner) -> None:
    """A single attachment without an output of the shader keeps its values."""
    whole(scene, "if (p.x < 0) discard;")
    content = texels("R8G8B8A8_UNORM", WIDTH, HEIGHT)
    target(scene, "x", "R8G8B8A8_UNORM", content)
    numpy.testing.assert_array_equal(both.run(draw(scene, ["x"]).write())["x"], content)


SIZE = 32


def triangle(scene: Scene, corners: list[tuple[int, int]], uid: str = "v") -> None:
    """Add a vertex shader for a triangle with corners in texels, exact in floating point."""
    at = ", ".join(f"vec2({x}, {y})" for x, y in corners)
    body = f"vec2 c = vec2[]({at})[gl_VertexIndex]; gl_Position = vec4(c / {SIZE // 2}.0 - 1.0, 0, 1);"
    vertex(scene, body, uid=uid)


def inside(corners: list[tuple[int, int]]) -> Any:
    """Return the texels with centers inside, computed in integers of half a texel. A center on a top or left edge
    counts, in either direction."""
    x, y = (2 * each.astype("i8") + 1 for each in grid(SIZE, SIZE))
    points = [(2 * cx, 2 * cy) for cx, cy in corners]
    (ax, ay), (bx, by), (cx, cy) = points
    area = (bx - ax) * (cy - ay) - (by - ay) * (cx - ax)
    if area < 0:
        points.reverse()
    drawn = numpy.ones((SIZE, SIZE), bool)
    for (ax, ay), (bx, by) in zip(points, [*points[1:], points[0]], strict=True):
        distance = (bx - ax) * (y - ay) - (by - ay) * (x - ax)
        top_left = (by == ay and bx > ax) or by < ay  # clockwise, with y downwards
        drawn &= (distance > 0) | ((distance == 0) & top_left)
    return drawn


@pytest.mark.parametrize(
    "corners",
    [
        [(0, 0), (32, 0), (0, 32)],
        [(0, 0), (0, 32), (32, 0)],
        [(5, 3), (29, 11), (9, 27)],
        [(31, 31), (1, 30), (30, 1)],
        [(2, 2), (2, 30), (30, 16)],
        [(-16, -16), (48, 0), (0, 48)],
        [(4, 4), (5, 4), (4, 5)],
        [(8, 8), (8, 8), (20, 20)],
    ],
)
def test_a_triangle_covers_the_centers_inside(scene: Scene, both: Runner, corners: list[tuple[int, int]]) -> None:
    """A triangle in either direction draws the centers inside, and the other texels keep their values."""
    before = numpy.arange(SIZE * SIZE, dtype="u4").reshape(SIZE, SIZE) + 1000
    triangle(scene, corners)
    fragment(scene, "color = 7u;", output("uint"))
    target(scene, "x", content=before)
    got = both.run(draw(scene, ["x"]).write())["x"][..., 0]
    assert (got == numpy.where(inside(corners), 7, before)).all()


def test_a_discarded_texel_stays(scene: Scene, both: Runner) -> None:
    """A discarded texel keeps the value of the draw before."""
    vertex(scene)
    fragment(scene, "color = uint(p.x);", output("uint"))
    fragment(scene, "if ((p.x + p.y) % 3 == 0) discard; color = 100u;", output("uint"), uid="some")
    target(scene, "x", size=(SIZE, SIZE))
    draw(scene, ["x"], implicit_barrier=False)
    draw(scene, ["x"], fragment_shader_ref="some")
    x, y = grid(SIZE, SIZE)
    expected = numpy.where((x + y) % 3 == 0, x, 100)
    assert (both.run(scene.write())["x"][..., 0] == expected).all()
