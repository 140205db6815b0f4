"""An image and a tensor of OPTIMAL tiling in one memory group: both show the same values."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

from scenario_runner import Runner
from scenario_runner.errors import UnsupportedError
from scenario_runner.validation import validate_file
from tests.gpu import fragment_scenes
from tests.gpu.image_scenes import add_image
from tests.gpu.ml_scenes import HEAD, bindings, random, tensor
from tests.scenes import Scene, glsl

GROUP = {"memory_group": {"id": "shared"}}
OPTIMAL = {"tiling": "OPTIMAL", **GROUP}
ADD = (
    HEAD
    + """
layout(set = 0, binding = 0) uniform tensorARM<float, RANK> values;
void main() {
    uint at[RANK];
    uint rest = gl_WorkGroupID.x;
    uint sizes[3] = uint[](HEIGHT, WIDTH, 4);
    for (int axis = 2; axis >= 0; --axis) { at[RANK - 3 + axis] = rest % sizes[axis]; rest /= sizes[axis]; }
    if (RANK == 4) at[0] = 0;
    float value;
    tensorReadARM(values, at, value);
    tensorWriteARM(values, at, value + 0.5);
}
"""
)
TWICE = glsl(
    "ivec2 p = ivec2(gl_WorkGroupID.xy); imageStore(target, p, 2 * imageLoad(target, p));",
    "layout(set = 0, binding = 0, rgba32f) uniform image2D target;",
)


def image(scene: Scene, width: int, height: int, content: Any = None, **keys: Any) -> Scene:
    """A float32 RGBA image of the group."""
    return add_image(scene, "image", "R32G32B32A32_SFLOAT", content, size=(width, height), **OPTIMAL, **keys)


def add_shader(scene: Scene, width: int, height: int, rank: int) -> Scene:
    """A shader that adds a half to each element of a tensor."""
    text = ADD.replace("RANK", str(rank)).replace("WIDTH", str(width)).replace("HEIGHT", str(height))
    return scene.shader("add", text)


@pytest.mark.parametrize("width", [4, 7, 64])
@pytest.mark.parametrize("sourced", ["image", "tensor"])
def test_without_a_shader(ml: Runner, scene: Scene, width: int, sourced: str) -> None:
    """The initial content of one is what both are read back with."""
    content = random((5, width, 4))
    image(scene, width, 5, content if sourced == "image" else None)
    tensor(scene, "t", content if sourced == "tensor" else None, dims=[5, width, 4], **OPTIMAL)
    result = ml.run(scene.write(), outputs=["image", "t"], repeat=2)
    assert (result["image"].reshape(content.shape) == content).all()
    assert (result["t"] == content).all()


@pytest.mark.parametrize("rank, width", [(3, 7), (4, 7), (4, 16)])
def test_a_shader_sees_the_tensor(ml: Runner, scene: Scene, rank: int, width: int) -> None:
    """A shader changes the tensor and another one the image, in turn, twice; each sees what the other stored."""
    content = random((5, width, 4))
    image(scene, width, 5, content)
    tensor(scene, "t", dims=[1, 5, width, 4][4 - rank :], **OPTIMAL)
    add_shader(scene, width, 5, rank).shader("twice", TWICE)
    for _ in range(2):
        scene.dispatch("add", ["t"], (5 * width * 4,)).dispatch("twice", ["image"], (width, 5))
    scene.command("mark_boundary", frame_id=0, resources=["image", "t"])
    scene.dispatch("add", ["t"], (5 * width * 4,))
    result = ml.run(scene.write(), outputs=["image", "t"])
    between = ((content + numpy.float32(0.5)) * 2 + numpy.float32(0.5)) * 2
    for uid in ("image", "t"):
        assert (result.frames[0][uid].reshape(content.shape) == between).all()
        assert (result[uid].reshape(content.shape) == between + numpy.float32(0.5)).all()


def test_with_barriers_of_the_scenario(ml: Runner, scene: Scene) -> None:
    """Image barriers that the scenario has move the image as well, and are followed."""
    content = random((5, 8, 4))
    image(scene, 8, 5, content)
    tensor(scene, "t", dims=[1, 5, 8, 4], **OPTIMAL)
    add_shader(scene, 8, 5, 4).shader("twice", TWICE)
    access = {"src_access": "memory_write", "dst_access": "memory_read", "image_resource": "image"}
    scene.resource("image_barrier", uid="to", old_layout="general", new_layout="tensor_aliasing", **access)
    scene.resource("image_barrier", uid="back", old_layout="tensor_aliasing", new_layout="general", **access)
    scene.command("dispatch_barrier", image_barrier_refs=["to"])
    scene.dispatch("add", ["t"], (160,), implicit_barrier=False)
    scene.command("dispatch_barrier", image_barrier_refs=["back"])
    scene.dispatch("twice", ["image"], (8, 5))
    result = ml.run(scene.write(), outputs=["image", "t"])
    assert (result["t"] == ((content + numpy.float32(0.5)) * 2)[None]).all()
    assert not result.warnings


def test_a_drawing_between_tensor_shaders(ml: Runner, scene: Scene) -> None:
    """What is drawn into the image is what the tensor shows next, and the other way round."""
    content = random((5, 8, 4))
    image(scene, 8, 5, content, color_attachment=True)
    tensor(scene, "t", dims=[1, 5, 8, 4], **OPTIMAL)
    add_shader(scene, 8, 5, 4)
    fragment_scenes.vertex(scene)
    body = "if (gl_FragCoord.x > 4) discard; color = vec4(gl_FragCoord.xy, 7, 8);"
    fragment_scenes.fragment(scene, body, fragment_scenes.output("vec4"))
    scene.dispatch("add", ["t"], (160,))
    fragment_scenes.draw(scene, ["image"])
    scene.dispatch("add", ["t"], (160,))
    result = ml.run(scene.write(), outputs=["image", "t"])
    expected = content + numpy.float32(0.5)
    y, x = numpy.mgrid[0:5, 0:4].astype("f4")
    expected[:, :4] = numpy.stack([x + 0.5, y + 0.5, numpy.full_like(x, 7), numpy.full_like(x, 8)], -1)
    assert (result["t"][0] == expected + numpy.float32(0.5)).all()
    assert (result["image"].reshape(expected.shape) == expected + numpy.float32(0.5)).all()


def test_integers(ml: Runner, scene: Scene) -> None:
    """Every byte of an RGBA8 image is an element."""
    content = numpy.random.default_rng(2).integers(0, 256, (9, 13, 4), "u1")
    add_image(scene, "image", "R8G8B8A8_UINT", content, **OPTIMAL)
    tensor(scene, "t", dims=[1, 9, 13, 4], format="VK_FORMAT_R8_UINT", **OPTIMAL)
    result = ml.run(scene.write(), outputs=["t"])
    assert (result["t"][0] == content).all()


@pytest.mark.parametrize(
    "of_image, of_tensor, message, place",
    [
        ("OPTIMAL", "LINEAR", "image 'image' has the tiling OPTIMAL, and tensor 't' in the same", "0/image"),
        ("OPTIMAL", None, "image 'image' has the tiling OPTIMAL, and tensor 't' in the same", "0/image"),
        ("LINEAR", "OPTIMAL", "image 'image' has the tiling LINEAR, and tensor 't' in the same", "1/tensor"),
        (None, "OPTIMAL", "image 'image' has the tiling LINEAR (the default of images that share", "1/tensor"),
    ],
)
def test_different_tilings(scene: Scene, of_image: Any, of_tensor: Any, message: str, place: str) -> None:
    """An image and a tensor with different tilings are an error that names both, at the one that is OPTIMAL."""
    keys = [GROUP if tiling is None else {**GROUP, "tiling": tiling} for tiling in (of_image, of_tensor)]
    add_image(scene, "image", "R8_UINT", size=(4, 4), **keys[0])
    tensor(scene, "t", dims=[4, 4, 1], format="VK_FORMAT_R8_UINT", **keys[1])
    problem = scene.refusal(Runner().plan)
    assert (problem.code, problem.pointer) == ("SR-MEMORY-009", f"/resources/{place}/tiling")
    assert problem.message.startswith(message)


def test_both_at_once(scene: Scene) -> None:
    """A command cannot use the image and the tensor: the image has one layout."""
    image(scene, 4, 5)
    tensor(scene, "t", dims=[5, 4, 4], **OPTIMAL)
    scene.shader(
        "both",
        HEAD
        + """
layout(set = 0, binding = 0) uniform tensorARM<float, 3> values;
layout(set = 0, binding = 1, rgba32f) uniform image2D target;
void main() {
    float value;
    tensorReadARM(values, uint[](0, 0, 0), value);
    imageStore(target, ivec2(0), vec4(value));
}
""",
    )
    scene.command("dispatch_compute", shader_ref="both", bindings=bindings(["t", "image"]), rangeND=[1, 1, 1])
    (problem,) = (each for each in validate_file(scene.write()).findings if each.severity == "error")
    assert (problem.code, problem.pointer) == ("SR-MEMORY-010", "/commands/0/dispatch_compute/bindings")
    assert "image 'image' of OPTIMAL tiling and tensor 't', which shares its memory, are used by one" in problem.message


@pytest.mark.parametrize("member", ["image", "tensor"])
def test_a_buffer_beside_them(scene: Scene, member: str) -> None:
    """A buffer cannot share the memory: only the device knows where the texels or elements lie."""
    if member == "image":
        image(scene, 4, 5)
    tensor(scene, "t", dims=[5, 4, 4], **OPTIMAL)
    scene.buffer("b", size=320, **GROUP)
    uid = "image 'image'" if member == "image" else "tensor 't'"
    with pytest.raises(UnsupportedError, match=f"{uid} has OPTIMAL tiling and shares the memory of group 'shared'"):
        Runner().plan(scene.write())
