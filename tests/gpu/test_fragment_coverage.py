"""Which texels a drawing touches, and what becomes of the others.

Source: Vulkan specification, "Rasterization", section "Basic Polygon Rasterization": a texel is drawn where its center
lies inside the triangle; of two triangles that share an edge one draws a center on it.
"""

from __future__ import annotations

from typing import Any

import numpy
import pytest

from scenario_runner import Runner
from tests.gpu.fragment_scenes import draw, fragment, grid, output, target, vertex
from tests.scenes import Scene

SIZE = 32


def triangle(scene: Scene, corners: list[tuple[int, int]], uid: str = "v") -> None:
    """A vertex shader for a triangle whose corners are given in texels, exact in floating point."""
    at = ", ".join(f"vec2({x}, {y})" for x, y in corners)
    body = f"vec2 c = vec2[]({at})[gl_VertexIndex]; gl_Position = vec4(c / {SIZE // 2}.0 - 1.0, 0, 1);"
    vertex(scene, body, uid=uid)


def inside(corners: list[tuple[int, int]]) -> Any:
    """The texels whose centers are inside, in integers: twice the coordinates. A center on an edge is drawn where that
    edge is a top or a left one of the triangle, whichever way around it is."""
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
    """Either way around; a texel outside keeps what the image held."""
    before = numpy.arange(SIZE * SIZE, dtype="u4").reshape(SIZE, SIZE) + 1000
    triangle(scene, corners)
    fragment(scene, "color = 7u;", output("uint"))
    target(scene, "x", content=before)
    got = both.run(draw(scene, ["x"]).write())["x"][..., 0]
    assert (got == numpy.where(inside(corners), 7, before)).all()


def test_a_shared_edge_is_drawn_once(scene: Scene, both: Runner) -> None:
    """Two triangles that make up a square draw each of its texels once, those on the diagonal as well."""
    corners = ([(4, 4), (28, 4), (4, 28)], [(28, 28), (28, 4), (4, 28)])
    fragment(scene, "imageAtomicAdd(count, p, 1u);", "layout(binding = 0, r32ui) uniform uimage2D count;\n")
    target(scene, "x", size=(SIZE, SIZE))
    for number, each in enumerate(corners):
        triangle(scene, each, f"v{number}")
        bindings = [{"set": 0, "id": 0, "resource_ref": "x"}]
        draw(scene, [], bindings, vertex_shader_ref=f"v{number}", render_extent=[SIZE, SIZE])
    x, y = grid(SIZE, SIZE)
    expected = (x >= 4) & (x < 28) & (y >= 4) & (y < 28)
    assert (both.run(scene.write(), outputs=["x"])["x"][..., 0] == expected).all()


def test_a_discarded_texel_stays(scene: Scene, both: Runner) -> None:
    """What a fragment shader discards keeps what the drawing before gave it."""
    vertex(scene)
    fragment(scene, "color = uint(p.x);", output("uint"))
    fragment(scene, "if ((p.x + p.y) % 3 == 0) discard; color = 100u;", output("uint"), uid="some")
    target(scene, "x", size=(SIZE, SIZE))
    draw(scene, ["x"], implicit_barrier=False)
    draw(scene, ["x"], fragment_shader_ref="some")
    x, y = grid(SIZE, SIZE)
    expected = numpy.where((x + y) % 3 == 0, x, 100)
    assert (both.run(scene.write())["x"][..., 0] == expected).all()


def test_depths_outside_are_clipped(scene: Scene, both: Runner) -> None:
    """What lies behind the far plane or before the near one is not drawn."""
    body = "gl_Position = vec4(gl_VertexIndex == 1 ? 3 : -1, gl_VertexIndex == 2 ? 3 : -1, {}, 1);"
    fragment(scene, "color = 5u;", output("uint"))
    for uid, depth in (("near", "-0.5"), ("inside", "1.0"), ("far", "1.5")):
        vertex(scene, body.format(depth), uid=f"v_{uid}")
        target(scene, uid, size=(4, 4))
        draw(scene, [uid], vertex_shader_ref=f"v_{uid}")
    result = both.run(scene.write())
    assert [int(result[uid].max()) for uid in ("near", "inside", "far")] == [0, 5, 0]


def test_one_texel_and_long_rows(scene: Scene, both: Runner) -> None:
    """The smallest image and very long ones are drawn to their last texel."""
    vertex(scene)
    fragment(scene, "color = uint(p.x + p.y) + 1u;", output("uint"))
    for uid, size in (("one", (1, 1)), ("wide", (4096, 1)), ("high", (1, 4096))):
        target(scene, uid, size=size)
        draw(scene, [uid])
    result = both.run(scene.write())
    assert result["one"].tolist() == [[[1]]]
    assert (result["wide"].ravel() == numpy.arange(1, 4097)).all()
    assert (result["high"].ravel() == numpy.arange(1, 4097)).all()
