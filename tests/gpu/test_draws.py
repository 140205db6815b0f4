"""Draws with vertex buffers, indices, instances, viewports and depth tests; NumPy computes the expected pictures.

Corners lie on the edges of texels and points on their centers, so that every device draws the same texels (Vulkan
specification, "Rasterization").
"""

from pathlib import Path
from typing import Any

import numpy
import pytest

from scenario_runner import Runner, load, loads
from scenario_runner.errors import ScenarioError, UnsupportedError
from tests.gpu.fragment_scenes import draw, fragment, grid, output, target, vertex
from tests.program import Program
from tests.scenes import Scene, glsl, hazards_of

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
    dtype = "f4" if format == "D32_SFLOAT" else "u2"
    content = numpy.tile(numpy.arange(WIDTH) % 3 + 1, (HEIGHT, 1)) / 4 if content is None else content
    return scene.image("depth", format, content.astype(dtype), **keys)


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


@pytest.mark.parametrize(
    "keys, expected",
    [
        ({"bias": {"constant": -64}}, True),
        ({"bias": {"constant": 64}}, False),
        ({"bias": {"slope": -1, "constant": 4}}, False),
        ({"bias": {"constant": -64}, "compare_op": "GREATER"}, False),
    ],
)
def test_depth_biases(scene: Scene, both: Runner, keys: dict[str, Any], expected: bool) -> None:
    """A bias moves the depth before the comparison. A triangle that faces the viewer has no slope."""
    places(scene, [(0, 0), (16, 0), (0, 8), (16, 8)])
    depth_image(scene, "D16_UNORM", numpy.full((HEIGHT, WIDTH), 32768, "u2"))
    picture = drawn(scene, both, **STRIP, depth_attachment={"resource_ref": "depth", **keys})
    assert (picture == (7 if expected else 0)).all()


@pytest.mark.parametrize("clamp", [True, False])
def test_depths_behind_the_far_plane(scene: Scene, both: Runner, clamp: bool) -> None:
    """They are clipped, or clamped to the viewport's depth."""
    places(scene, [(0, 0), (16, 0), (0, 8), (16, 8)], depth="place.x < 8.0 ? 0.5 : 1.5")
    depth_image(scene, content=numpy.ones((HEIGHT, WIDTH)))
    attachment = {"resource_ref": "depth", "clamp": clamp, "compare_op": "LESS"}
    draw(scene, ["x"], **STRIP, vertex_attributes=[PLACE], depth_attachment=attachment, viewport={"max_depth": 0.75})
    result = both.run(scene.write(), outputs=["x", "depth"])
    x, _ = grid(WIDTH, HEIGHT)
    depths = 0.75 * (0.5 + (x + 0.5) / WIDTH)  # between the two edges
    shown = (depths < 0.75) | clamp
    assert (result["x"][..., 0] == numpy.where(shown, 7, 0)).all()
    expected = numpy.where(shown, numpy.minimum(depths, 0.75), 1)
    numpy.testing.assert_allclose(result["depth"][..., 0], expected, atol=1e-5)


def test_a_depth_level_without_colours(scene: Scene, both: Runner) -> None:
    """A draw of depths alone has the size of the attachment, here of a mip level. A shader reads the depths later."""
    places(scene, [(0, 0), (16, 0), (0, 8), (16, 8)], depth="0.25")
    fragment(scene, "if (number > 0u) discard;", "layout(location = 0) flat in uint number;\n", uid="nothing")
    scene.image("levels", "D32_SFLOAT", size=(2 * WIDTH, 2 * HEIGHT), mips=2)
    attachment = {"resource_ref": "levels", "lod": 1, "compare_op": "ALWAYS"}
    keys = {"vertex_attributes": [PLACE], "depth_attachment": attachment, "viewport": {"width": 8}}
    draw(scene, [], fragment_shader_ref="nothing", **STRIP, **keys)
    declarations = "layout(binding = 0) uniform sampler2D d; layout(binding = 1) buffer B { float b[]; };"
    body = "uint i = gl_GlobalInvocationID.x; b[i] = texelFetch(d, ivec2(i, 3), 0).x;"
    scene.shader("read", glsl(body, declarations)).buffer("b", size=4 * WIDTH)
    scene.command("dispatch_compute", shader_ref="read", rangeND=[WIDTH], bindings=[
        {"set": 0, "id": 0, "resource_ref": "levels", "lod": 1}, {"set": 0, "id": 1, "resource_ref": "b"}
    ])  # fmt: skip
    result = both.run(scene.write())
    assert (result.array("b", "f4") == numpy.where(numpy.arange(WIDTH) < 8, 0.25, 0)).all()


@pytest.mark.parametrize(
    "name, kind, elements, values",
    [
        ("R32G32B32A32_SFLOAT", "vec4", numpy.array([[1, -2, 0.5, 3e9]], "f4"), (1, -2, 0.5, numpy.float32(3e9))),
        ("R32_SFLOAT", "vec4", numpy.array([[4]], "f4"), (4, 0, 0, 1)),
        ("R8G8B8A8_UNORM", "vec4", numpy.array([[0, 255, 255, 0]], "u1"), (0, 1, 1, 0)),
        ("R16G16_SNORM", "vec4", numpy.array([[-32767, 32767]], "i2"), (-1, 1, 0, 1)),
        ("R16G16_SFLOAT", "vec4", numpy.array([[2, -8]], "f2"), (2, -8, 0, 1)),
        ("A2B10G10R10_UNORM_PACK32", "vec4", numpy.array([[1023 << 10 | 3 << 30]], "u4"), (0, 1, 0, 1)),
        ("R8G8_UINT", "uvec4", numpy.array([[9, 255]], "u1"), (9, 255, 0, 1)),
        ("R16_SINT", "ivec4", numpy.array([[-5]], "i2"), (-5, 0, 0, 1)),
        ("R32G32_UINT", "uvec4", numpy.array([[1 << 20, 7]], "u4"), (1 << 20, 7, 0, 1)),
    ],
)
def test_formats_of_attributes(
    scene: Scene, both: Runner, name: str, kind: str, elements: Any, values: tuple[float, ...]
) -> None:
    """The vertex shader reads the values of the format; 0, 0 and 1 stand for missing components."""
    handed = f"layout(location = 0) flat {{}} {kind} value;\n"
    corners = "gl_Position = vec4(gl_VertexIndex == 1 ? 3 : -1, gl_VertexIndex == 2 ? 3 : -1, 0, 1);"
    vertex(scene, f"{corners} value = read;", f"layout(location = 2) in {kind} read;\n" + handed.format("out"))
    fragment(scene, "color = vec4(value);", handed.format("in") + output("vec4"))
    scene.buffer("values", numpy.concatenate([numpy.zeros((1, 8), "u1"), elements.view("u1")], axis=1), dst=None)
    target(scene, "x", "R32G32B32A32_SFLOAT", size=(2, 2))
    read = {"location": 2, "resource_ref": "values", "format": f"VK_FORMAT_{name}", "offset": 8, "stride": 0}
    result = both.run(draw(scene, ["x"], vertex_attributes=[read]).write())
    assert (result["x"] == numpy.array(values, "f4")).all()


def test_interleaved_attributes(scene: Scene, both: Runner) -> None:
    """Attributes share a buffer by offset and stride; each column of a matrix is an attribute of its own."""
    table = numpy.zeros(4, [("place", "f4", 2), ("number", "u2"), ("unused", "u2"), ("moves", "f4", (2, 2))])
    table["place"] = numpy.array(CORNERS) * 3
    table["number"] = 3
    table["moves"] = [[1, 0], [0, 2]]
    scene.buffer("table", table.view("u1"), dst=None)
    more = "layout(location = 1) in uint factor;\nlayout(location = 4) in mat2 moves;"
    places(scene, CORNERS, at="moves * place / float(factor)", more=more)
    keys = {"resource_ref": "table", "stride": table.itemsize}
    attributes = [
        {"location": 0, "format": "VK_FORMAT_R32G32_SFLOAT", "offset": 0, **keys},
        {"location": 1, "format": "VK_FORMAT_R16_UINT", "offset": 8, **keys},
        {"location": 4, "format": "VK_FORMAT_R32G32_SFLOAT", "offset": 12, **keys},
        {"location": 5, "format": "VK_FORMAT_R32G32_SFLOAT", "offset": 20, **keys},
    ]
    assert (drawn(scene, both, **STRIP, vertex_attributes=attributes) == rectangle(2, 2, 10, 12)).all()


@pytest.mark.parametrize("mode", ["LINE", "POINT"])
def test_polygon_modes(scene: Scene, both: Runner, mode: str) -> None:
    """Only the edges or the corners of a triangle are drawn."""
    places(scene, [(2.5, 1.5), (9.5, 1.5), (2.5, 5.5)])
    picture = drawn(scene, both, polygon_mode=mode)
    corners = [picture[1, 2], picture[1, 9], picture[5, 2]]
    if mode == "POINT":
        assert corners == [7, 7, 7]
        assert picture.sum() == 21
    else:
        assert (picture[1, 3:9] == 7).all()
        assert (picture[2:5, 2] == 7).all()
        assert picture[3, 3] == picture[2, 6] == picture[6, 2] == 0


def test_draws_with_other_states(scene: Scene, both: Runner) -> None:
    """Draws that differ in one key alone are draws of their own, in one frame and with shared buffers."""
    places(scene, [*CORNERS, (2, 1), (10, 1), (2, 6), (10, 6)], "number + 1u")
    scene.buffer("i", numpy.array([0, 1, 2, 3], "u4"), dst=None)
    indexed = {"index_buffer": {"resource_ref": "i"}}
    changes: list[dict[str, Any]] = [
        {}, {"vertex_count": 3}, {"topology": "TRIANGLE_LIST"}, {"instance_count": 2}, {"first_vertex": 4},
        {"first_instance": 3}, {"viewport": {"width": 8}}, indexed, {**indexed, "vertex_count": 3},
    ]  # fmt: skip
    for number, change in enumerate(changes):
        target(scene, f"x{number}", size=(WIDTH, HEIGHT))
        draw(scene, [f"x{number}"], **{**STRIP, "vertex_attributes": [PLACE], "implicit_barrier": False, **change})
    result = both.run(scene.write(), outputs=[f"x{number}" for number in range(len(changes))])
    pictures = [result[f"x{number}"][..., 0] for number in range(len(changes))]
    whole = rectangle(2, 1, 10, 6, 1)
    assert (pictures[0] == whole).all()
    assert (pictures[1] == pictures[2]).all()
    assert 0 < pictures[1].sum() < whole.sum()
    assert (pictures[3] == 2 * whole).all()
    assert (pictures[4] == whole).all()
    assert (pictures[5] == 4 * whole).all()
    assert (pictures[6] == rectangle(1, 1, 5, 6, 1)).all()
    assert (pictures[7] == whole).all()
    assert (pictures[8] == pictures[1]).all()


BUFFERS = """
layout(binding = 0) writeonly buffer P { vec2 p[4]; };
layout(binding = 1) writeonly buffer N { uint n[4]; };
"""
WRITES = "uint i = gl_GlobalInvocationID.x; p[i] = vec2(i % 2 == 0 ? 2 : 10, i < 2 ? 1 : 6); n[i] = i;"


@pytest.mark.parametrize(
    "barrier, codes",
    [
        (None, ["SR-HAZARD-001", "SR-HAZARD-001"]),
        ({"dst_stage": ["graphics"]}, []),
        ({"dst_stage": ["all"]}, []),
        ({"dst_stage": ["compute"]}, ["SR-HAZARD-004", "SR-HAZARD-004"]),
        ({"dst_stage": ["graphics"], "dst_access": "compute_shader_read"}, ["SR-HAZARD-004", "SR-HAZARD-004"]),
    ],
)
def test_vertices_from_a_dispatch(
    scene: Scene, check_hazards: Any, barrier: dict[str, Any] | None, codes: list[str]
) -> None:
    """A draw that reads vertices and indices which a dispatch wrote needs a barrier, also for the validation layer."""
    places(scene, numpy.zeros((4, 2)))
    scene.shader("write", glsl(WRITES, BUFFERS)).buffer("n", size=16)
    scene.dispatch("write", ["places", "n"], [4], implicit_barrier=False)
    if barrier is not None:
        access = ("compute_shader_write", barrier.pop("dst_access", "memory_read"))
        scene.barrier("between", access=access, src_stage=["compute"], **barrier)
        scene.command("dispatch_barrier", memory_barrier_refs=["between"])
    draw(scene, ["x"], **STRIP, vertex_attributes=[PLACE], index_buffer={"resource_ref": "n"})
    picture = check_hazards(scene.write(), codes)["x"][..., 0]
    if not codes:
        assert (picture == rectangle(2, 1, 10, 6)).all()


@pytest.mark.parametrize("write, codes", [(True, ["SR-HAZARD-001"]), (False, [])])
def test_depths_read_after_a_draw(scene: Scene, shader_cache: Path, write: bool, codes: list[str]) -> None:
    """A dispatch that reads the depths of an earlier draw needs a barrier if the draw writes them."""
    places(scene, CORNERS)
    depth_image(scene)
    declarations = "layout(binding = 0) uniform sampler2D d; layout(binding = 1) writeonly buffer B { float b; };"
    scene.shader("read", glsl("b = texelFetch(d, ivec2(0), 0).x;", declarations)).buffer("b", size=4)
    keys = {"vertex_attributes": [PLACE], "depth_attachment": {"resource_ref": "depth", "write": write}}
    draw(scene, ["x"], **STRIP, **keys, implicit_barrier=False).dispatch("read", ["depth", "b"])
    path = scene.write()
    assert hazards_of(path) == codes
    with Runner(validation="report", sync_validation=True) as runner:
        runner.run(path)
        assert codes or runner.validation_messages == []  # older layers do not know about attachments


def test_other_bytes_of_a_buffer(scene: Scene, shader_cache: Path) -> None:
    """A draw reads the bytes of its vertices alone: a write of the others needs no barrier."""
    places(scene, [*CORNERS, (0, 0), (0, 0), (0, 0), (0, 0)])
    keys = {"vertex_attributes": [PLACE], "implicit_barrier": False}
    draw(scene, ["x"], **STRIP, **keys)
    for offset, codes in ((32, []), (24, ["SR-HAZARD-002"])):
        scene.commands[1:] = []
        scene.command("fill", resource_ref="places", value=1, offset=offset, size=8)
        assert hazards_of(scene.write()) == codes


def test_a_format_that_no_device_reads_vertices_in(scene: Scene, both: Runner) -> None:
    """A format without the feature for vertex buffers is not supported, and the message names the feature."""
    places(scene, CORNERS)
    draw(scene, ["x"], vertex_attributes=[{**PLACE, "format": "VK_FORMAT_R8G8B8_SRGB"}])
    problem = scene.refusal(both.run, UnsupportedError)
    assert (problem.code, problem.pointer) == ("SR-FEATURE-003", "/commands/0/dispatch_fragment")
    assert "it lacks VK_FORMAT_FEATURE_VERTEX_BUFFER_BIT" in problem.message


def test_robust_access(scene: Scene, shader_cache: Path) -> None:
    """Vertices behind the end of a buffer are a warning, and no warning with robust access."""
    places(scene, CORNERS)
    draw(scene, ["x"], topology="TRIANGLE_STRIP", vertex_count=5, vertex_attributes=[PLACE])
    path = scene.write()
    with Runner(robustness=True, strict=True) as runner:
        runner.run(path)
    with pytest.raises(ScenarioError) as caught, Runner(strict=True) as runner:
        runner.run(path)
    assert [problem.code for problem in caught.value.problems] == ["SR-DRAW-003"]


def test_dumps_and_packs(scene: Scene, program: Program) -> None:
    """A dump after a draw has colors and depths. A packed scenario brings the buffers, and draws the same picture."""
    places(scene, CORNERS)
    scene.buffer("i", numpy.array([0, 1, 2, 3], "u2"), shader_access="readonly", dst=None)
    depth_image(scene)
    scene.resources[-1]["image"]["dst"] = "depth.out.npy"
    index_buffer = {"resource_ref": "i", "index_type": "UINT16"}
    keys = {"vertex_attributes": [PLACE], "index_buffer": index_buffer, "depth_attachment": {"resource_ref": "depth"}}
    draw(scene, ["x"], topology="TRIANGLE_STRIP", **keys)
    program.succeed(scene.write().name, "--dump-all", "dumps")
    assert {path.stem for path in (scene.folder / "dumps" / "0_dispatch_fragment").iterdir()} == {"x", "depth"}
    program.succeed("pack", "scenario.json", "--output", "packed")
    program.succeed("packed/scenario.json")
    packed, first = (numpy.load(scene.folder / folder / "depth.out.npy") for folder in ("packed", "."))
    assert (packed == first).all()
    assert (packed == 0.5).any()


def test_saved_scenarios(scene: Scene) -> None:
    """A scenario with each key is the same after it is written and read, and a notebook shows the keys."""
    places(scene, CORNERS)
    depth = {"resource_ref": "depth", "bias": {"constant": 2, "slope": -1.5}, "clamp": True}
    keys: dict[str, Any] = {
        "topology": "TRIANGLE_STRIP",
        "vertex_count": 4,
        "polygon_mode": "LINE",
        "first_instance": 1,
    }
    keys |= {"viewport": {"x": 1, "height": -8}, "instance_count": 2, "first_vertex": 0, "vertex_attributes": [PLACE]}
    draw(depth_image(scene), ["x"], depth_attachment=depth, **keys)
    scenario = load(scene.write())
    assert loads(scenario.to_json()).commands == scenario.commands
    assert "polygon_mode: LINE" in scenario._repr_html_()
