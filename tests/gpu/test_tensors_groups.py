"""Tensors that share memory with images and buffers."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

from scenario_runner import Runner
from scenario_runner.errors import ScenarioError, UnsupportedError
from tests.gpu.ml_scenes import HEAD, SPIRV, bindings, random, tensor
from tests.scenes import Scene, glsl

GROUP = {"memory_group": {"id": "shared"}}
# Texel (x, y) becomes (x, y, 10 x + y, 1).
FILL = glsl(
    "ivec2 p = ivec2(gl_GlobalInvocationID.xy); imageStore(target, p, vec4(p.x, p.y, p.x * 10 + p.y, 1));",
    "layout(set = 0, binding = 0, rgba32f) writeonly uniform image2D target;",
)
READ = (
    HEAD
    + """
layout(local_size_x = 4) in;
layout(set = 0, binding = 0) uniform tensorARM<float, 4> source;
layout(set = 0, binding = 1) uniform tensorARM<float, 4> target;
void main() {
    uint at[4] = uint[](0, gl_GlobalInvocationID.z, gl_GlobalInvocationID.y, gl_GlobalInvocationID.x);
    float value;
    tensorReadARM(source, at, value);
    tensorWriteARM(target, at, value + 0.5);
}
"""
)


def image(scene: Scene, width: int, height: int, **keys: Any) -> Scene:
    """A float32 RGBA image of the group."""
    keys = {"format": "VK_FORMAT_R32G32B32A32_SFLOAT", "shader_access": "writeonly", **GROUP, **keys}
    return scene.resource("image", uid="image", dims=[1, width, height, 1], **keys)


def texels(width: int, height: int) -> Any:
    """What FILL stores, as [1, H, W, C]."""
    y, x = numpy.mgrid[0:height, 0:width]
    return numpy.stack([x, y, x * 10 + y, numpy.ones_like(x)], -1).astype("f4")[None]


@pytest.mark.parametrize("width", [4, 7])
def test_a_shader_reads_an_image_as_a_tensor(ml: Runner, scene: Scene, width: int) -> None:
    """An image that one shader writes is a tensor to the next and to the file, with and without padded rows."""
    tensor(tensor(image(scene, width, 5), "seen", dims=[1, 5, width, 4], **GROUP), "out", dims=[1, 5, width, 4])
    scene.shader("fill", FILL).shader("read", READ)
    scene.dispatch("fill", ["image"], (width, 5)).dispatch("read", ["seen", "out"], (1, width, 5))
    ml.run_to_files(scene.write())
    assert (numpy.load(scene.folder / "seen.out.npy") == texels(width, 5)).all()
    assert (numpy.load(scene.folder / "out.out.npy") == texels(width, 5) + 0.5).all()


@pytest.mark.parametrize("keys", [{}, {"tiling": "LINEAR"}])
def test_a_barrier_to_tensor_aliasing_orders_them(ml: Runner, scene: Scene, keys: dict[str, Any]) -> None:
    """With implicit barriers off, an image_barrier to tensor_aliasing lets a tensor see what a shader stored."""
    tensor(tensor(image(scene, 7, 5, **keys), "seen", dims=[1, 5, 7, 4], **GROUP), "out", dims=[1, 5, 7, 4])
    scene.shader("fill", FILL).shader("read", READ)
    access = {"src_access": "compute_shader_write", "dst_access": "compute_shader_read"}
    layouts = {"old_layout": "general", "new_layout": "tensor_aliasing"}
    scene.resource("image_barrier", uid="share", image_resource="image", **access, **layouts)
    scene.dispatch("fill", ["image"], (7, 5), implicit_barrier=False)
    scene.command("dispatch_barrier", image_barrier_refs=["share"])
    scene.dispatch("read", ["seen", "out"], (1, 7, 5), implicit_barrier=False)
    ml.run_to_files(scene.write())
    assert (numpy.load(scene.folder / "out.out.npy") == texels(7, 5) + 0.5).all()


@pytest.mark.parametrize("width", [4, 7])
def test_an_image_shows_what_a_tensor_starts_with(ml: Runner, scene: Scene, width: int) -> None:
    """The content of a tensor's file is the image's, row by row."""
    content = random((5, width, 4))
    tensor(scene, "start", content, dst=None, **GROUP)
    image(scene, width, 5, shader_access="image_read", dst="image.dds")
    result = ml.run(scene.write())
    assert (result["image"] == content).all()


@pytest.mark.parametrize("tiling", ["LINEAR", "OPTIMAL"])
def test_a_graph_reads_an_image_as_a_tensor(ml: Runner, scene: Scene, tiling: str) -> None:
    """An image that a shader writes is the input of a graph: a convolution with weights of 1 and a bias of 1 and 2."""
    tensor(image(scene, 8, 8, tiling=tiling), "seen", dims=[1, 8, 8, 4], dst=None, tiling=tiling, **GROUP)
    tensor(scene, "sums", dims=[1, 8, 8, 2])
    scene.shader("fill", FILL).dispatch("fill", ["image"], (8, 8))
    scene.module("graph", (SPIRV / "graph_constant.spv").read_bytes(), entry="graph_partition_0")
    ones = scene.npy("ones.npy", numpy.ones((2, 3, 3, 4), "f4"))
    scene.resource("graph_constant", uid="ones", dims=[2, 3, 3, 4], format="VK_FORMAT_R32_SFLOAT", src=ones)
    scene.command(
        "dispatch_spirv_graph", graph_ref="graph", bindings=bindings(["seen", "sums"]), graph_constants=["ones"]
    )
    ml.run_to_files(scene.write())
    padded = numpy.pad(texels(8, 8)[0], ((1, 1), (1, 1), (0, 0)))
    sums = numpy.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(0, 1)).sum((2, 3, 4))
    expected = numpy.stack([sums + 1, sums + 2], -1)
    assert (numpy.load(scene.folder / "sums.out.npy")[0] == expected).all()


def test_a_buffer_shows_a_tensor(ml: Runner, scene: Scene) -> None:
    """A packed tensor and a buffer in one place have the same bytes."""
    content = random((3, 5))
    tensor(scene, "t", content, **GROUP)
    scene.buffer("b", size=60, **GROUP)
    ml.run_to_files(scene.write())
    assert (scene.output("b", "f4") == content.reshape(-1)).all()


@pytest.mark.parametrize(
    "keys, image_keys, message",
    [
        (
            {"dims": [1, 5, 4, 3]},
            {},
            "its shape must be [5, 4, 4] or [1, 5, 4, 4]: height, width, components of a texel",
        ),
        ({"dims": [1, 4, 5, 4]}, {}, "its shape must be [5, 4, 4] or [1, 5, 4, 4]"),
        ({"dims": [80]}, {}, "its shape must be [5, 4, 4] or [1, 5, 4, 4]"),
        (
            {"dims": [1, 5, 4, 4], "format": "VK_FORMAT_R16_SFLOAT"},
            {},
            "a texel of VK_FORMAT_R32G32B32A32_SFLOAT has 4 components of 32 bits",
        ),
        (
            {"dims": [1, 5, 4, 4], "format": "VK_FORMAT_R8_UINT"},
            {"format": "VK_FORMAT_A2B10G10R10_UNORM_PACK32"},
            "its texels of VK_FORMAT_A2B10G10R10_UNORM_PACK32 are not made of whole numbers side by side",
        ),
    ],
)
def test_a_tensor_that_cannot_show_an_image(
    scene: Scene, keys: dict[str, Any], image_keys: dict[str, Any], message: str
) -> None:
    """The innermost dimension counts components, the two before it are height and width."""
    tensor(image(scene, 4, 5, **image_keys), "t", **keys, **GROUP)
    with pytest.raises(ScenarioError) as caught:
        Runner().plan(scene.write())
    assert message in str(caught.value)


def test_an_optimal_tensor_shares_nothing(scene: Scene) -> None:
    """Only the device knows where the elements of an OPTIMAL tensor lie."""
    tensor(scene, "t", dims=[4], tiling="OPTIMAL", **GROUP)
    scene.buffer("b", size=16, **GROUP)
    with pytest.raises(UnsupportedError, match="tensor 't' has OPTIMAL tiling and shares the memory of group 'shared'"):
        Runner().plan(scene.write())


def test_a_tensor_that_begins_inside_an_image(scene: Scene) -> None:
    """A tensor over an image begins where the image does."""
    keys = {"memory_group": {"id": "shared", "offset": 64}}
    tensor(image(scene, 4, 5), "t", dims=[1, 5, 4, 4], **keys)
    with pytest.raises(ScenarioError, match="tensor 't' at offset 64 of memory group 'shared' begins inside image"):
        Runner().plan(scene.write())
