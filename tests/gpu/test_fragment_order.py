"""Draws among other commands: barriers, frames, shared memory and kept objects; and a code with a place for each wrong
way to write a draw."""

from pathlib import Path
from typing import Any

import numpy
import pytest

from scenario_runner import Runner
from scenario_runner.errors import ScenarioError, ScenarioRunnerError, ShaderError, UnsupportedError
from tests.gpu.fragment_scenes import draw, fragment, grid, output, target, vertex
from tests.gpu.image_scenes import per_texel, storage
from tests.scenes import Scene, bound, error_of, glsl

SIZE = (24, 16)
PUSHED = "layout(push_constant) uniform P { uint n; };\n"


def steps(scene: Scene) -> Scene:
    """A picture, a fragment shader that draws another one from it plus one, and a compute shader that doubles."""
    vertex(scene)
    declarations = "layout(binding = 0) uniform usampler2D from;\n" + output("uint")
    fragment(scene, "color = texelFetch(from, p, 0).r + 1u;", declarations)
    scene.shader("twice", per_texel("imageStore(dst, p, imageLoad(dst, p) * 2u);", storage(0, "R32_UINT", "dst")))
    content = numpy.arange(SIZE[0] * SIZE[1], dtype="u4").reshape(SIZE[::-1])
    target(scene, "x", content=content)
    return target(scene, "y", size=SIZE)


def expected_after(rounds: int) -> Any:
    """y after x → y + 1, y doubled, y → x + 1, x doubled, …"""
    values = numpy.arange(SIZE[0] * SIZE[1], dtype="u4").reshape(SIZE[::-1])
    for _ in range(rounds):
        values = (values + 1) * 2
    return values


def add_rounds(scene: Scene, rounds: int, barrier: str | None = None) -> str:
    """Drawing and compute in turn, each after the other; returns the image that has the result."""
    of, into = "x", "y"
    keys = {} if barrier is None else {"implicit_barrier": False}
    for _ in range(rounds):
        draw(scene, [into], [of], **keys)
        if barrier is not None:
            scene.command("dispatch_barrier", **{f"{barrier.split()[0]}_barrier_refs": [f"{barrier} {into} d"]})
        scene.dispatch("twice", [into], SIZE, **keys)
        if barrier is not None:
            scene.command("dispatch_barrier", **{f"{barrier.split()[0]}_barrier_refs": [f"{barrier} {into} c"]})
        of, into = into, of
    return of


@pytest.mark.parametrize("rounds", [1, 2, 9])
def test_implicit_barriers(scene: Scene, both: Runner, rounds: int) -> None:
    """Each command, draw or dispatch, sees the writes of all commands before it."""
    uid = add_rounds(steps(scene), rounds)
    assert (both.run(scene.write(), outputs=[uid])[uid][..., 0] == expected_after(rounds)).all()


@pytest.mark.parametrize("stages", [True, False])
@pytest.mark.parametrize("kind", ["memory", "image"])
def test_explicit_barriers(scene: Scene, both: Runner, kind: str, stages: bool) -> None:
    """Barriers between the graphics and the compute stage order them, with stages named and without."""
    steps(scene)
    for uid in ("x", "y"):
        for step, src, dst in (("d", "graphics", "compute"), ("c", "compute", "graphics")):
            keys: dict[str, Any] = {"src_access": "memory_write", "dst_access": "memory_read"}
            if kind == "image":
                keys |= {"image_resource": uid, "old_layout": "general", "new_layout": "general"}
            if stages:
                keys |= {"src_stage": [src], "dst_stage": [dst]}
            scene.resource(f"{kind}_barrier", uid=f"{kind} {uid} {step}", **keys)
    uid = add_rounds(scene, 9, kind)
    assert (both.run(scene.write(), outputs=[uid])[uid][..., 0] == expected_after(9)).all()


def test_push_constants_of_drawings_and_dispatches(scene: Scene, both: Runner) -> None:
    """Drawings and dispatches in turn have push constants of their own, however often they change."""
    pushed = "layout(push_constant) uniform P { uint add; };\n"
    vertex(scene)
    declarations = "layout(binding = 0) uniform usampler2D from;\n" + pushed + output("uint")
    fragment(scene, "color = texelFetch(from, p, 0).r + add;", declarations, push_constants_size=4)
    body = "imageStore(dst, p, imageLoad(dst, p) + add);"
    scene.shader("more", per_texel(body, storage(0, "R32_UINT", "dst") + pushed), push_constants_size=4)
    target(scene, "x", size=SIZE)
    target(scene, "y", size=SIZE)
    total, of, into = 0, "x", "y"
    for number, amount in enumerate((1, 1, 10, 10, 100, 1)):
        scene.raw_data(f"d{number}", numpy.array([amount], "u4"))
        draw(scene, [into], [of], push_data_ref=f"d{number}")
        scene.dispatch("more", [into], SIZE, push_data_ref=f"d{number}")
        total, of, into = total + 2 * amount, into, of
    assert (both.run(scene.write(), outputs=[of])[of] == total).all()


def test_frames_show_each_drawing(scene: Scene, both: Runner, tmp_path: Path) -> None:
    """Each frame captures the draws up to its boundary, and repeats begin anew."""
    steps(scene)
    for of, into in (("x", "y"), ("y", "x"), ("x", "y")):
        draw(scene, [into], [of])
        scene.command("mark_boundary", resources=[into], frame_id=0)
    result = both.run(scene.write(), repeat=2)
    first = expected_after(0)
    assert len(result.frames) == 6
    for number, frame in enumerate(result.frames):
        uid = "yxy"[number % 3]
        assert (frame[uid][..., 0] == first + number % 3 + 1).all()


def test_many_drawings_between_which_little_changes(scene: Scene, both: Runner) -> None:
    """Hundreds of drawings in one frame, three at a time into one attachment; a barrier follows only the last one."""
    vertex(scene)
    body = "imageAtomicAdd(count, p, 1u); color = n;"
    stored = "layout(binding = 0, r32ui) uniform uimage2D count;\n"
    fragment(scene, body, PUSHED + stored + output("uint"), push_constants_size=4)
    for uid in ("x", "y", "count"):
        target(scene, uid, size=(8, 8))
    for number in range(4):
        scene.raw_data(f"d{number}", numpy.array([number], "u4"))
    for number in range(400):
        uids = ["x"] if number // 3 % 2 else ["y"]
        keys = {"push_data_ref": f"d{number // 5 % 4}", "implicit_barrier": number % 3 == 2}
        draw(scene, uids, ["count"], **keys)
    result = both.run(scene.write(), outputs=["x", "y", "count"])
    assert (result["count"] == 400).all()
    last = {uid: max(n for n in range(400) if (n // 3 % 2) == (uid == "x")) for uid in ("x", "y")}
    assert {uid: int(result[uid].max()) for uid in last} == {uid: n // 5 % 4 for uid, n in last.items()}


def test_a_shared_image_without_implicit_barriers(scene: Scene, both: Runner) -> None:
    """Drawings into shared memory that follow each other without barriers, between buffers' own changes."""
    size = (64, 4)
    vertex(scene)
    fragment(scene, "if (p.x != int(n)) discard; color = n + 1u;", PUSHED + output("uint"), push_constants_size=4)
    target(scene, "x", size=size, memory_group={"id": "g"})
    scene.buffer("b", size=1024, memory_group={"id": "g"})
    for number in range(64):
        scene.raw_data(f"d{number}", numpy.array([number], "u4"))
        draw(scene, ["x"], push_data_ref=f"d{number}", implicit_barrier=number == 63)
    scene.shader("add", glsl("a[gl_WorkGroupID.x] += 1000u;", "layout(binding = 0) buffer A { uint a[]; };\n"))
    scene.dispatch("add", ["b"], [256])
    result = both.run(scene.write(), outputs=["x", "b"])
    x, _ = grid(*size)
    assert (result["x"][..., 0] == x + 1001).all()
    assert (result.array("b", "u4", (4, 64)) == x + 1001).all()


def test_optimal_images_that_share_memory(scene: Scene, both: Runner) -> None:
    """A draw through one OPTIMAL image is sampled through another image in the same memory."""
    vertex(scene)
    fragment(scene, "color = uint(p.x * 3 + p.y);", output("uint"))
    body = "imageStore(dst, p, texelFetch(src, p, 0));"
    declarations = "layout(set = 0, binding = 0) uniform usampler2D src;\n" + storage(1, "R32_UINT", "dst")
    scene.shader("copy", per_texel(body, declarations))
    for uid in ("a", "b"):
        target(scene, uid, size=SIZE, tiling="OPTIMAL", memory_group={"id": "g"})
    scene.image("y", "R32_UINT", size=SIZE)
    draw(scene, ["a"])
    scene.dispatch("copy", ["b", "y"], SIZE)
    x, y = grid(*SIZE)
    assert (both.run(scene.write(), outputs=["y"])["y"][..., 0] == x * 3 + y).all()


def test_prepared_with_other_inputs(scene: Scene, both: Runner) -> None:
    """A prepared scenario draws with other push constants and another picture, and without them as before."""
    vertex(scene)
    declarations = "layout(binding = 0) uniform usampler2D from;\n" + PUSHED + output("uint")
    fragment(scene, "color = texelFetch(from, p, 0).r * n;", declarations, push_constants_size=4)
    content = numpy.arange(12, dtype="u4").reshape(3, 4)
    scene.image("from", "R32_UINT", content).raw_data("d", numpy.array([2], "u4"))
    target(scene, "x", size=(4, 3))
    draw(scene, ["x"], ["from"], push_data_ref="d")
    prepared = both.prepare(scene.write())
    other = (content + 50).reshape(3, 4, 1)
    assert (prepared.run()["x"][..., 0] == content * 2).all()
    assert (prepared.run(inputs={"d": numpy.array([7], "u4")})["x"][..., 0] == content * 7).all()
    assert (prepared.run(inputs={"from": other})["x"] == other * 2).all()
    assert (prepared.run()["x"][..., 0] == content * 2).all()


def test_an_attachment_in_another_layout(scene: Scene, both: Runner) -> None:
    """An attachment that a barrier moved to tensor_aliasing is an error at its place."""
    vertex(scene)
    fragment(scene, "color = 9u;", output("uint"))
    target(scene, "x", size=(4, 4), tiling="OPTIMAL")
    scene.barrier("move", "x", layouts=("general", "tensor_aliasing"))
    scene.command("dispatch_barrier", image_barrier_refs=["move"])
    draw(scene, ["x"])
    problem = scene.refusal(both.run)
    assert (problem.code, problem.pointer) == ("SR-IMAGE-011", "/commands/1/dispatch_fragment/color_attachment_refs/0")


COMMAND = "/commands/0/dispatch_fragment"
REFS = "/color_attachment_refs"
# Bodies of fragment shaders with their declarations.
ONE = ("color = 1u;", output("uint"))
TWO = ("color = more = 1u;", output("uint") + output("uint", 1, "more"))
SAMPLING = ("color = texelFetch(from, p, 0).r;", "layout(binding = 0) uniform usampler2D from;\n" + output("uint"))
READING = ("color = words[0];", "layout(binding = 0) readonly buffer B { uint words[]; };\n" + output("uint"))
COLORS = ("color = vec4(1);", output("vec4"))
PUSHED_1 = ("color = n[0];", "layout(push_constant) uniform P { uint n[1]; };\n" + output("uint"))
MANY = [f"t{number}" for number in range(40)]
PUSHED_3 = ("color = n[2];", "layout(push_constant) uniform P { uint n[3]; };\n" + output("uint"))


@pytest.mark.parametrize(
    "shader, attachments, keys, kind, code, place",
    [
        (ONE, [], {}, ScenarioError, "SR-ATTACH-009", ""),
        (ONE, ["x"], {"render_extent": [8, 0]}, ScenarioError, None, "/render_extent/1"),
        (SAMPLING, ["x"], {"bindings": bound(["x"])}, ScenarioError, "SR-ATTACH-008", f"{REFS}/0"),
        (READING, ["shared"], {"bindings": bound(["b"])}, ScenarioError, "SR-ATTACH-008", f"{REFS}/0"),
        (TWO, ["shared", "also"], {}, ScenarioError, "SR-ATTACH-010", f"{REFS}/1"),
        (ONE, [{"resource_ref": "x", "lod": 3}], {}, ScenarioError, "SR-CONFLICT-007", f"{REFS}/0/lod"),
        (ONE, ["b"], {}, ScenarioError, None, f"{REFS}/0"),
        (
            ONE,
            ["x"],
            {"vertex_shader_ref": "f", "fragment_shader_ref": "v"},
            ScenarioError,
            "SR-CONFLICT-006",
            "/vertex_shader_ref",
        ),
        (ONE, ["x"], {"fragment_shader_ref": "g"}, ScenarioError, None, "/fragment_shader_ref"),
        (SAMPLING, ["x"], {}, ScenarioRunnerError, "SR-BIND-001", "/bindings"),
        (PUSHED_1, ["x"], {"push_data_ref": "d"}, ScenarioError, "SR-PUSH-002", "/push_data_ref"),
        (PUSHED_3, ["x"], {}, ScenarioRunnerError, "SR-PUSH-001", None),
        (ONE, MANY, {}, UnsupportedError, "SR-LIMIT-010", REFS),
        (("", ""), [], {"render_extent": [2**32 - 1, 4]}, UnsupportedError, "SR-LIMIT-009", ""),
        (COLORS, ["three"], {}, UnsupportedError, "SR-FEATURE-003", None),
    ],
)
def test_refusals(
    scene: Scene,
    runner: Runner,
    shader: tuple[str, str],
    attachments: list[Any],
    keys: dict[str, Any],
    kind: type[ScenarioRunnerError],
    code: str | None,
    place: str | None,
) -> None:
    """The first problem is the mistake at its line, with a help."""
    vertex(scene)
    fragment(scene, *shader, **({"push_constants_size": 4} if shader in (PUSHED_1, PUSHED_3) else {}))
    target(scene, "x", size=(8, 8))
    for uid in MANY if attachments is MANY else ():
        target(scene, uid, size=(4, 4))
    if "shared" in attachments:
        for uid in ("shared", "also"):
            target(scene, uid, size=(64, 8), memory_group={"id": "g"})
        scene.buffer("b", size=256, memory_group={"id": "g", "offset": 256})
    if "b" in attachments:
        scene.buffer("b", size=64)
    if "three" in attachments:
        target(scene, "three", "R8G8B8_UNORM", size=(8, 8))
    draw(scene.raw_data("d", numpy.zeros(2, "u4")), attachments, **keys)
    error = error_of(kind, runner.run, scene.write())
    first = error.problems[0]
    assert code is None or first.code == code
    assert place is None or first.pointer == COMMAND + place
    assert first.pointer
    assert error.exit_code in {ScenarioError.exit_code, ShaderError.exit_code, UnsupportedError.exit_code}
