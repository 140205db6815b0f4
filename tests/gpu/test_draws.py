"""Draws with vertex buffers, indices, instances, viewports and depth tests; NumPy computes the expected pictures.

Corners lie on the edges of texels and points on their centers, so that every device draws the same texels (Vulkan
specification, "Rasterization").
"""

from typing import Any

import numpy
import pytest

from scenario_runner import Runner
from tests.gpu.fragment_scenes import draw, fragment, grid, output, target, vertex
from tests.scenes import Scene

WIDTH, HEIGHT = 16, 8
PLACE = {"location": 0, "resource_ref": "places", "format": "VK_FORMAT_R32G32_SFLOAT"}
# The corners (x, y) of a rectangle from (2, 1) to (10, 6), as a strip.
CORNERS = [(2, 1), (10, 1), (2, 6), (10, 6)]
STRIP = {"topology": "TRIANGLE_STRIP", "vertex_count": 4}


def places(
    scene: Scene, corners: Any, value: str = "7u", *, at: str = "place", depth: str = "0.5", more: str = ""
) -> Scene:
    """Shaders that draw a value into the image "x", with the vertices at texels that a buffer has.

    ``at`` and ``depth`` are expressions of the vertex shader. ``more`` has further inputs, and "number" is handed on.
    """
    scene.buffer("places", numpy.array(corners, "f4"), shader_access="readonly", dst=None)
    position = f"vec4(({at}) / vec2({WIDTH}, {HEIGHT}) * 2.0 - 1.0, {depth}, 1.0)"
    declarations = f"layout(location = 0) in vec2 place;\n{more}\nlayout(location = 0) flat out uint number;\n"
    vertex(scene, f"gl_PointSize = 1.0; gl_Position = {position}; number = gl_InstanceIndex;", declarations)
    fragment(scene, f"color = {value};", "layout(location = 0) flat in uint number;\n" + output("uint"))
    return target(scene, "x", size=(WIDTH, HEIGHT))


def drawn(scene: Scene, runner: Runner, **keys: Any) -> Any:
    """The image "x" after a draw."""
    keys = {"vertex_attributes": [PLACE], **keys}
    return runner.run(draw(scene, ["x"], **keys).write())["x"][..., 0]


def rectangle(left: int, top: int, right: int, bottom: int, value: int = 7) -> Any:
    """A picture with a filled rectangle."""
    x, y = grid(WIDTH, HEIGHT)
    return numpy.where((x >= left) & (x < right) & (y >= top) & (y < bottom), value, 0)


@pytest.mark.parametrize("vertex_count, drawn_ones", [(4, 4), (3, 3), (0, 0)])
def test_points(scene: Scene, both: Runner, vertex_count: int, drawn_ones: int) -> None:
    """A point is a texel."""
    points = [(3, 2), (0, 0), (15, 7), (9, 5)]
    places(scene, numpy.array(points) + 0.5)
    expected = numpy.zeros((HEIGHT, WIDTH), "u4")
    for x, y in points[:drawn_ones]:
        expected[y, x] = 7
    assert (drawn(scene, both, topology="POINT_LIST", vertex_count=vertex_count) == expected).all()


@pytest.mark.parametrize(
    "topology, corners, rows",
    [
        ("LINE_LIST", [(-8, 1.5), (24, 1.5), (-8, 4.5), (24, 4.5)], [1, 4]),
        # the second line of the strip is outside of the picture
        ("LINE_STRIP", [(-8, 1.5), (24, 1.5), (24, 4.5), (-8, 4.5)], [1, 4]),
    ],
)
def test_lines(scene: Scene, both: Runner, topology: str, corners: Any, rows: list[int]) -> None:
    """Lines across the picture fill rows of texels."""
    places(scene, corners)
    expected = numpy.zeros((HEIGHT, WIDTH), "u4")
    expected[rows] = 7
    assert (drawn(scene, both, topology=topology, vertex_count=4) == expected).all()


@pytest.mark.parametrize(
    "topology, order",
    [
        ("TRIANGLE_STRIP", (0, 1, 2, 3)),
        ("TRIANGLE_LIST", (0, 1, 2, 2, 1, 3)),
        ("TRIANGLE_FAN", (0, 1, 3, 2)),
    ],
)
def test_triangles(scene: Scene, both: Runner, topology: str, order: tuple[int, ...]) -> None:
    """A rectangle of two triangles, with its corners in the order of the topology."""
    places(scene, [CORNERS[number] for number in order])
    assert (drawn(scene, both, topology=topology, vertex_count=len(order)) == rectangle(2, 1, 10, 6)).all()


def test_the_first_vertex(scene: Scene, both: Runner) -> None:
    """The vertices before the first one are left out."""
    places(scene, [(0, 0), (0, 0), *CORNERS])
    assert (drawn(scene, both, **STRIP, first_vertex=2) == rectangle(2, 1, 10, 6)).all()


@pytest.mark.parametrize("index_type, dtype", [("UINT8", "u1"), ("UINT16", "u2"), ("UINT32", "u4")])
@pytest.mark.parametrize("offset, keys", [(0, {"first_index": 2}), (2, {}), (1, {"first_index": 1, "vertex_count": 4})])
def test_indices(scene: Scene, both: Runner, index_type: str, dtype: str, offset: int, keys: dict[str, int]) -> None:
    """Indices of each type, from an offset in the buffer and from a first index on. first_vertex is added to each."""
    places(scene, [(0, 0), *reversed(CORNERS)])
    indices = numpy.array([50, 60, 13, 12, 11, 10], dtype)
    scene.buffer("i", indices, shader_access="readonly", dst=None)
    index_buffer = {"resource_ref": "i", "index_type": index_type, "offset": offset * indices.itemsize}
    keys = {"first_vertex": -9, "topology": "TRIANGLE_STRIP", **keys}
    assert (drawn(scene, both, index_buffer=index_buffer, **keys) == rectangle(2, 1, 10, 6)).all()


def test_instances(scene: Scene, both: Runner) -> None:
    """Each instance has a place and a number of its own. The instances before the first one are left out."""
    moves = numpy.array([(0, 0), (3, 1), (12, 2), (6, 0)], "f4")
    scene.buffer("moves", moves, dst=None)
    corners = [(0, 0), (2, 0), (0, 3), (2, 3)]
    places(scene, corners, "10u + number", at="place + move", more="layout(location = 3) in vec2 move;")
    move = {**PLACE, "location": 3, "resource_ref": "moves", "input_rate": "INSTANCE"}
    result = drawn(scene, both, **STRIP, vertex_attributes=[PLACE, move], instance_count=3, first_instance=1)
    expected = numpy.zeros((HEIGHT, WIDTH), "u4")
    for number, (x, y) in enumerate(moves.astype(int)[1:], 1):
        expected[y : y + 3, x : x + 2] = 10 + number
    assert (result == expected).all()


@pytest.mark.parametrize(
    "viewport, expected",
    [
        ({"x": 4, "y": 2, "width": 8, "height": 4}, (5, 3, 9, 5)),
        ({"width": 8}, (1, 2, 5, 6)),
        ({"y": 9, "height": -8}, (2, 3, 10, 7)),
        ({"x": -8, "width": 32}, (0, 2, 12, 6)),
    ],
)
def test_viewports(scene: Scene, both: Runner, viewport: dict[str, float], expected: tuple[int, ...]) -> None:
    """A viewport moves and scales the picture, and a negative height turns it over. The image cuts off the rest."""
    places(scene, [(2, 2), (10, 2), (2, 6), (10, 6)])
    assert (drawn(scene, both, **STRIP, viewport=viewport) == rectangle(*expected)).all()


DEPTHS = {"NEVER": numpy.zeros_like, "LESS": numpy.less, "EQUAL": numpy.equal, "LESS_OR_EQUAL": numpy.less_equal}
DEPTHS |= {"GREATER": numpy.greater, "NOT_EQUAL": numpy.not_equal, "GREATER_OR_EQUAL": numpy.greater_equal}
DEPTHS |= {"ALWAYS": numpy.ones_like}


def depth_image(scene: Scene, format: str = "D32_SFLOAT", content: Any = None, **keys: Any) -> Scene:
    """A depth image "depth" with content, by default 0.25, 0.5 and 0.75 in columns."""
    content = numpy.tile(numpy.arange(WIDTH) % 3 + 1, (HEIGHT, 1)) / 4 if content is None else content
    return scene.image("depth", format, content.astype("f4"), **keys)


@pytest.mark.parametrize("write", [True, False])
@pytest.mark.parametrize("compare_op", [None, *DEPTHS])
def test_depth_tests(scene: Scene, both: Runner, compare_op: str | None, write: bool) -> None:
    """A texel is drawn where the comparison with the image's depth is true, and only then the depth is stored."""
    places(scene, [(0, 0), (16, 0), (0, 6), (16, 6)])
    depth_image(scene)
    keys = {} if compare_op is None else {"compare_op": compare_op}
    draw(
        scene,
        ["x"],
        **STRIP,
        vertex_attributes=[PLACE],
        depth_attachment={"resource_ref": "depth", "write": write, **keys},
    )
    result = both.run(scene.write(), outputs=["x", "depth"])
    before = numpy.load(scene.folder / "depth.npy").reshape(HEIGHT, WIDTH)
    compare: Any = DEPTHS[compare_op or "LESS"]
    passes = (compare(before) if compare in (numpy.zeros_like, numpy.ones_like) else compare(0.5, before)).astype(bool)
    passes[6:] = False
    assert (result["x"][..., 0] == numpy.where(passes, 7, 0)).all()
    assert (result["depth"][..., 0] == numpy.where(passes & write, numpy.float32(0.5), before)).all()
