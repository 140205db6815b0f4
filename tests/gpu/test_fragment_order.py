"""Drawings among other commands: barriers, frames, memory that is shared, and what a Runner keeps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy
import pytest

from scenario_runner import Runner
from tests.gpu.fragment_scenes import draw, fragment, grid, output, target, vertex
from tests.gpu.image_scenes import add_image, binding, dispatch, per_texel, storage
from tests.scenes import Scene, glsl

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
        draw(scene, [into], [binding(0, of)], **keys)
        if barrier is not None:
            scene.command("dispatch_barrier", **{f"{barrier.split()[0]}_barrier_refs": [f"{barrier} {into} d"]})
        dispatch(scene, "twice", [binding(0, into)], SIZE, **keys)
        if barrier is not None:
            scene.command("dispatch_barrier", **{f"{barrier.split()[0]}_barrier_refs": [f"{barrier} {into} c"]})
        of, into = into, of
    return of


@pytest.mark.parametrize("rounds", [1, 2, 9])
def test_implicit_barriers(scene: Scene, both: Runner, rounds: int) -> None:
    """Each command sees what those before it left, whether they draw or compute."""
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
        draw(scene, [into], [binding(0, of)], push_data_ref=f"d{number}")
        dispatch(scene, "more", [binding(0, into)], SIZE, push_data_ref=f"d{number}")
        total, of, into = total + 2 * amount, into, of
    assert (both.run(scene.write(), outputs=[of])[of] == total).all()


def test_frames_show_each_drawing(scene: Scene, both: Runner, tmp_path: Path) -> None:
    """Boundaries between drawings: each frame captures what was drawn up to it, and repeats begin anew."""
    steps(scene)
    for of, into in (("x", "y"), ("y", "x"), ("x", "y")):
        draw(scene, [into], [binding(0, of)])
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
        draw(scene, uids, [binding(0, "count")], **keys)
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
    """Two OPTIMAL images in one memory: what is drawn through one is sampled through the other."""
    vertex(scene)
    fragment(scene, "color = uint(p.x * 3 + p.y);", output("uint"))
    body = "imageStore(dst, p, texelFetch(src, p, 0));"
    declarations = "layout(set = 0, binding = 0) uniform usampler2D src;\n" + storage(1, "R32_UINT", "dst")
    scene.shader("copy", per_texel(body, declarations))
    for uid in ("a", "b"):
        target(scene, uid, size=SIZE, tiling="OPTIMAL", memory_group={"id": "g"})
    add_image(scene, "y", "R32_UINT", size=SIZE)
    draw(scene, ["a"])
    dispatch(scene, "copy", [binding(0, "b"), binding(1, "y")], SIZE)
    x, y = grid(*SIZE)
    assert (both.run(scene.write(), outputs=["y"])["y"][..., 0] == x * 3 + y).all()


def test_prepared_with_other_inputs(scene: Scene, both: Runner) -> None:
    """A prepared scenario draws with other push constants and another picture, and without them as before."""
    vertex(scene)
    declarations = "layout(binding = 0) uniform usampler2D from;\n" + PUSHED + output("uint")
    fragment(scene, "color = texelFetch(from, p, 0).r * n;", declarations, push_constants_size=4)
    content = numpy.arange(12, dtype="u4").reshape(3, 4)
    add_image(scene, "from", "R32_UINT", content)
    scene.raw_data("d", numpy.array([2], "u4"))
    target(scene, "x", size=(4, 3))
    draw(scene, ["x"], [binding(0, "from")], push_data_ref="d")
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
    keys = {"src_access": "memory_write", "dst_access": "memory_read"}
    layouts = {"old_layout": "general", "new_layout": "tensor_aliasing"}
    scene.resource("image_barrier", uid="move", image_resource="x", **keys, **layouts)
    scene.command("dispatch_barrier", image_barrier_refs=["move"])
    draw(scene, ["x"])
    problem = scene.refusal(both.run)
    assert (problem.code, problem.pointer) == ("SR-IMAGE-011", "/commands/1/dispatch_fragment/color_attachment_refs/0")
