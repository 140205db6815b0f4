"""Implicit and explicit barriers; those over images, and the layouts that they leave behind."""

import itertools
from typing import Any

import numpy
import pytest

from scenario_runner import Runner
from scenario_runner.errors import UnsupportedError
from scenario_runner.plan.plan import Barrier, FramePlan
from scenario_runner.plan.records import ImageBarrier
from tests.gpu.image_scenes import per_texel, storage
from tests.scenes import Scene, at_level, glsl

NEXT = glsl(
    "uint i = gl_GlobalInvocationID.x; uint n = gl_NumWorkGroups.x * 64u; b[i] = a[(i + 1u) % n] + 1u;",
    "layout(set = 0, binding = 0) buffer A { uint a[]; };\nlayout(set = 0, binding = 1) buffer B { uint b[]; };\n",
    local_size=64,
)
COUNT = 4096
STEPS = 20


def chain(scene: Scene, barrier: dict[str, list[str]] | None, **keys: Any) -> Any:
    """Add dispatches that each need all writes of the one before, and return the expected result."""
    start = numpy.arange(COUNT, dtype=numpy.uint32) * 7
    scene.shader("next", NEXT).buffer("even", start).buffer("odd", size=COUNT * 4)
    for step in range(STEPS):
        pair = ["even", "odd"] if step % 2 == 0 else ["odd", "even"]
        scene.dispatch("next", pair, [COUNT // 64], **keys)
        if barrier is not None:
            scene.command("dispatch_barrier", **barrier)
    return numpy.roll(start, -STEPS) + STEPS


@pytest.mark.parametrize("stages", [{}, {"src_stage": ["compute"], "dst_stage": ["compute"]}, {"dst_stage": ["ALL"]}])
@pytest.mark.parametrize("access", [("compute_shader_write", "compute_shader_read"), ("memory_write", "memory_read")])
def test_memory_barrier(scene: Scene, runner: Runner, stages: dict[str, list[str]], access: tuple[str, str]) -> None:
    """With implicit_barrier off a memory barrier orders the dispatches, for every stage and access that covers them."""
    scene.barrier("wait", access=access, **stages)
    expected = chain(scene, {"memory_barrier_refs": ["wait"]}, implicit_barrier=False)
    assert (runner.run(scene.write()).array("even", "u4") == expected).all()


def test_every_stage_and_access(scene: Scene, runner: Runner) -> None:
    """Barriers of every stage, none included, and every access are taken, in both spellings; nothing is disturbed."""
    stages = ["graph", "compute", "graphics", "all"]
    accesses = ["memory_write", "memory_read", "graph_write", "graph_read", "compute_shader_write"]
    accesses += ["compute_shader_read", "ACCESS_MEMORY_WRITE", "ACCESS_GRAPH_READ"]
    scene.shader("next", NEXT).buffer("even", size=256).buffer("odd", size=256)
    for number, (source, destination) in enumerate(itertools.product([*stages, None], repeat=2)):
        keys = {
            "src_stage": [source] if source else [],
            "dst_stage": [destination.upper()] if destination else [],
            "src_access": accesses[number % len(accesses)],
            "dst_access": accesses[(number * 3 + 1) % len(accesses)],
        }
        scene.resource("memory_barrier", uid=f"m{number}", **keys)
        scene.resource("buffer_barrier", uid=f"b{number}", buffer_resource="odd", size=12, offset=4 * number, **keys)
        scene.command("dispatch_barrier", memory_barrier_refs=[f"m{number}"], buffer_barrier_refs=[f"b{number}"])
    scene.command("pipeline_barrier").dispatch("next", ["even", "odd"])
    assert runner.run(scene.write()).array("odd", "u4").tolist() == [1] * 64


def test_barrier_over_the_rest_of_a_buffer(scene: Scene, runner: Runner) -> None:
    """A size of 2^64 - 1 (VK_WHOLE_SIZE) covers all from the offset on."""
    access = {"src_access": "memory_write", "dst_access": "memory_read"}
    scene.resource("buffer_barrier", uid="rest", buffer_resource="odd", size=2**64 - 1, offset=8, **access)
    scene.shader("next", NEXT).buffer("even", size=256).buffer("odd", size=256)
    scene.command("dispatch_barrier", buffer_barrier_refs=["rest"]).dispatch("next", ["even", "odd"])
    assert runner.run(scene.write()).array("odd", "u4").tolist() == [1] * 64


ADD = "imageStore(dst, p, imageLoad(dst, p) + 1u);"


def moves(frame: FramePlan) -> list[tuple[Any, ...]]:
    """Return the layouts and the levels of each image barrier."""
    return [
        (barrier.old_layout, barrier.new_layout, barrier.base_level, barrier.level_count)
        for operation in frame.operations
        if isinstance(operation, Barrier)
        for barrier in operation.barriers
        if isinstance(barrier, ImageBarrier)
    ]


def add_barrier(scene: Scene, uid: str, **keys: Any) -> Scene:
    """An image barrier between two dispatches."""
    access = {"src_access": "compute_shader_write", "dst_access": "compute_shader_read"}
    layouts = {"old_layout": "general", "new_layout": "general"}
    return scene.resource("image_barrier", uid=uid, image_resource="x", **{**access, **layouts, **keys})


def counting(scene: Scene, size: tuple[int, int] = (8, 8), **keys: Any) -> Scene:
    """An image and a shader that adds one to each texel of a level."""
    scene.shader("add", per_texel(ADD, storage(0, "R32_UINT", "dst")))
    return scene.image("x", "R32_UINT", size=size, **keys)


@pytest.mark.parametrize("stages", [{}, {"src_stage": ["compute"], "dst_stage": ["COMPUTE"]}])
def test_image_barriers_order_dispatches(scene: Scene, both: Runner, stages: dict[str, Any]) -> None:
    """With implicit_barrier off an image barrier orders the dispatches that use the image."""
    counting(scene)
    add_barrier(scene, "wait", **stages)
    for _ in range(20):
        scene.dispatch("add", ["x"], (8, 8), implicit_barrier=False)
        scene.command("dispatch_barrier", image_barrier_refs=["wait"])
    assert (both.run(scene.write())["x"] == 20).all()


def test_a_barrier_over_some_levels(scene: Scene, both: Runner) -> None:
    """A barrier over some levels leaves the other levels unchanged."""
    counting(scene, mips=4)
    add_barrier(scene, "wait", subresource_range={"base_mip_level": 1, "level_count": 2})
    add_barrier(scene, "rest", subresource_range={"base_mip_level": 2, "level_count": 2**32 - 1})
    for level in (1, 2, 3):
        scene.dispatch("add", [at_level("x", level)], (8 >> level, 8 >> level), implicit_barrier=False)
    scene.command("dispatch_barrier", image_barrier_refs=["wait", "rest"])
    result = both.run(scene.write())
    assert [int(result.level("x", level).max()) for level in range(4)] == [0, 1, 1, 1]


def test_depth_barriers(scene: Scene, both: Runner) -> None:
    """A barrier over an image with depth and stencil covers both."""
    content = numpy.random.default_rng(1).random((4, 4, 1), numpy.float32)
    scene.image("x", "D32_SFLOAT_S8_UINT", content)
    add_barrier(scene, "wait")
    scene.command("dispatch_barrier", image_barrier_refs=["wait"])
    assert (both.run(scene.write())["x"] == content).all()


def test_dropping_the_content(scene: Scene, both: Runner) -> None:
    """A barrier from the layout undefined runs, and later writes are there."""
    scene.shader("fill", per_texel("imageStore(dst, p, uvec4(7u));", storage(0, "R32_UINT", "dst", "writeonly")))
    scene.image("x", "R32_UINT", size=(8, 8))
    add_barrier(scene, "drop", old_layout="IMAGE_LAYOUT_UNDEFINED", new_layout="IMAGE_LAYOUT_GENERAL")
    scene.command("dispatch_barrier", image_barrier_refs=["drop"])
    scene.dispatch("fill", ["x"], (8, 8))
    assert (both.run(scene.write(), repeat=2)["x"] == 7).all()


def test_undefined_is_no_goal(scene: Scene, runner: Runner) -> None:
    """No image can be moved to the layout undefined."""
    counting(scene)
    add_barrier(scene, "wrong", new_layout="undefined")
    scene.command("dispatch_barrier", image_barrier_refs=["wrong"])
    problem = scene.refusal(runner.run)
    assert "image barrier 'wrong' moves 'x' to the layout undefined" in problem.message
    assert problem.pointer == "/resources/2/image_barrier/new_layout"


def test_tensor_aliasing_needs_its_extension(scene: Scene) -> None:
    """The layout tensor_aliasing on a device without VK_ARM_tensors is refused by name."""
    counting(scene)
    add_barrier(scene, "move", new_layout="tensor_aliasing")
    scene.command("dispatch_barrier", image_barrier_refs=["move"])
    with Runner(ml_emulation="off") as runner:
        if "VK_ARM_tensors" in runner.physical_device.extensions:
            assert (runner.run(scene.write())["x"] == 0).all()
            return
        with pytest.raises(UnsupportedError, match="layout tensor_aliasing of image 'x'"):
            runner.run(scene.write())


def test_shaders_need_general(scene: Scene, runner: Runner) -> None:
    """A dispatch with an image in the layout tensor_aliasing is an error with a help."""
    counting(scene, mips=2)
    add_barrier(scene, "move", new_layout="tensor_aliasing", subresource_range={"base_mip_level": 1})
    scene.command("dispatch_barrier", image_barrier_refs=["move"])
    scene.dispatch("add", [at_level("x", 0)], (8, 8))
    scene.dispatch("add", [at_level("x", 1)], (4, 4))
    problem = scene.refusal(runner.plan)
    assert "mip level 1 of image 'x' is in the layout tensor_aliasing here" in problem.message
    assert problem.pointer == "/commands/2/dispatch_compute/bindings/0"


def test_layouts_are_followed(scene: Scene, runner: Runner) -> None:
    """Each barrier starts from the layout that is there; a wrong old_layout is a warning; the end is as the start."""
    counting(scene, mips=3)
    add_barrier(scene, "away", new_layout="tensor_aliasing", subresource_range={"level_count": 2})
    add_barrier(scene, "back", subresource_range={"level_count": 3})
    scene.command("dispatch_barrier", image_barrier_refs=["away"])
    scene.command("mark_boundary", resources=["x"], frame_id=0)
    scene.command("dispatch_barrier", image_barrier_refs=["back"])
    scene.command("dispatch_barrier", image_barrier_refs=["away"])
    plan = runner.plan(scene.write())
    first, second = plan.frames
    assert first.layouts == (("x", ("tensor_aliasing", "tensor_aliasing", "general")),)
    assert second.layouts == ()
    assert moves(first) + moves(second) == [
        ("general", "tensor_aliasing", 0, 2),
        ("tensor_aliasing", "general", 0, 2),
        ("general", "general", 2, 1),
        ("general", "tensor_aliasing", 0, 2),
        ("tensor_aliasing", "general", 0, 1),
        ("tensor_aliasing", "general", 1, 1),
    ]
    assert "expects mip level 0 of 'x' in the layout general; it is in tensor_aliasing" in plan.warnings[0].message


def test_linear_images_share_in_general(scene: Scene, runner: Runner) -> None:
    """tensor_aliasing is a layout of OPTIMAL tiling; a LINEAR image stays in general, and the barrier orders memory."""
    counting(scene, tiling="LINEAR")
    add_barrier(scene, "move", new_layout="tensor_aliasing")
    add_barrier(scene, "back", old_layout="tensor_aliasing")
    scene.command("dispatch_barrier", image_barrier_refs=["move"])
    scene.dispatch("add", ["x"], (8, 8))
    scene.command("dispatch_barrier", image_barrier_refs=["back"])
    plan = runner.plan(scene.write())
    assert not plan.warnings
    assert moves(plan.frames[0]) == [("general", "general", 0, 1)] * 2
    assert (runner.run(scene.write())["x"] == 1).all()
