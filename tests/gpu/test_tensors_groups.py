"""Tensors that share memory with images and buffers; of OPTIMAL tiling, with an image alone."""

from typing import Any

import numpy
import pytest

from scenario_runner import Runner
from scenario_runner.errors import ScenarioError, UnsupportedError
from scenario_runner.validation import validate_file
from tests.gpu import fragment_scenes
from tests.gpu.ml_scenes import HEAD, bindings, random
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


def image(scene: Scene, width: int, height: int, name: str = "R32G32B32A32_SFLOAT", **keys: Any) -> Scene:
    """An image of the group, float32 RGBA by default."""
    return scene.image("image", name, size=(width, height), **{"shader_access": "writeonly", **GROUP, **keys})


def texels(width: int, height: int) -> Any:
    """Return the values of FILL as [1, H, W, C]."""
    y, x = numpy.mgrid[0:height, 0:width]
    return numpy.stack([x, y, x * 10 + y, numpy.ones_like(x)], -1).astype("f4")[None]


@pytest.mark.parametrize("keys", [{}, {"tiling": "LINEAR"}])
def test_a_barrier_to_tensor_aliasing_orders_them(ml: Runner, scene: Scene, keys: dict[str, Any]) -> None:
    """Without implicit barriers, an image_barrier to tensor_aliasing lets a tensor see the stores of a shader."""
    image(scene, 7, 5, **keys).tensor("seen", dims=[1, 5, 7, 4], **GROUP).tensor("out", dims=[1, 5, 7, 4])
    scene.shader("fill", FILL).shader("read", READ)
    access = ("compute_shader_write", "compute_shader_read")
    scene.barrier("share", "image", layouts=("general", "tensor_aliasing"), access=access)
    scene.dispatch("fill", ["image"], (7, 5), implicit_barrier=False)
    scene.command("dispatch_barrier", image_barrier_refs=["share"])
    scene.dispatch("read", ["seen", "out"], (1, 7, 5), implicit_barrier=False)
    ml.run_to_files(scene.write())
    assert (numpy.load(scene.folder / "out.out.npy") == texels(7, 5) + 0.5).all()


def either_bytes_or_padding(ml: Runner, scene: Scene, seen: str, expected: Any, rows: str) -> None:
    """Check that the member shows ``expected``, or that the error names the padded rows of this device."""
    refusal = None
    try:
        result = ml.run(scene.write())
    except UnsupportedError as error:
        (refusal,) = error.problems
    if refusal is None:
        assert result[seen].tobytes() == numpy.ascontiguousarray(expected).tobytes()
        return
    assert (refusal.code, refusal.pointer) == ("SR-MEMORY-007", "/resources/0/image/memory_group")
    assert f"on {ml.physical_device.name!r}: rows of image 'image' are " in refusal.message
    assert rows in refusal.message


@pytest.mark.parametrize("width", [4, 5])
@pytest.mark.parametrize("shape", [[1, -1], [1, 5, -1, 2], [5, -1], [1, -1, 5, 4]])
def test_a_tensor_of_another_shape(ml: Runner, scene: Scene, width: int, shape: list[int]) -> None:
    """A tensor with the bytes of an image in another shape sees them in their order where rows are packed."""
    texel_count = width * 5 * 4
    dims = [texel_count // abs(int(numpy.prod(shape))) if size == -1 else size for size in shape]
    image(scene, width, 5).tensor("seen", dims=dims, dst=None, **GROUP)
    scene.shader("fill", FILL).dispatch("fill", ["image"], (width, 5))
    either_bytes_or_padding(
        ml, scene, "seen", texels(width, 5), f"although their texels take {16 * width}; tensor 'seen'"
    )


@pytest.mark.parametrize("width, size", [(16, 512), (16, 64), (15, 256)])
def test_a_tensor_that_begins_inside_an_image(ml: Runner, scene: Scene, width: int, size: int) -> None:
    """A tensor at an aligned offset inside an image sees the bytes from there on, where rows are packed."""
    image(scene, width, 8).tensor("seen", dims=[size // 4], dst=None, memory_group={"id": "shared", "offset": 512})
    scene.shader("fill", FILL).dispatch("fill", ["image"], (width, 8))
    expected = numpy.frombuffer(texels(width, 8).tobytes()[512 : 512 + size], "f4")
    either_bytes_or_padding(ml, scene, "seen", expected, f"although their texels take {16 * width}; tensor 'seen'")


def test_the_first_row_has_no_padding(ml: Runner, scene: Scene) -> None:
    """A tensor within the first row of an image sees its texels on every device."""
    image(scene, 5, 5).tensor("seen", dims=[4, 4], dst=None, **GROUP)
    scene.shader("fill", FILL).dispatch("fill", ["image"], (5, 5))
    assert (ml.run(scene.write())["seen"] == texels(5, 5).reshape(-1)[:16].reshape(4, 4)).all()


@pytest.mark.parametrize("dims", [[16], [1, 1, 1, 2, 8]])
def test_a_rank_that_the_layers_do_not_take(ml: Runner, scene: Scene, dims: list[int]) -> None:
    """The emulation layers end the process over other ranks in the place of an image: a refusal that says so."""
    image(scene, 4, 5).tensor("seen", dims=dims, dst=None, **GROUP)
    scene.shader("fill", FILL).dispatch("fill", ["image"], (4, 5))
    refusal = None
    try:
        result = ml.run(scene.write())
    except UnsupportedError as error:
        (refusal,) = error.problems
    if refusal is None:  # a device that has tensors itself
        assert result["seen"].tobytes() == texels(4, 5).tobytes()[:64]
        return
    assert (refusal.code, refusal.pointer) == ("SR-FEATURE-002", "/resources/1/tensor/dims")
    assert "begins at the start of image 'image'; the ML emulation layers" in refusal.message


def test_a_tensor_over_depths_and_stencils(scene: Scene) -> None:
    """Depths and stencils lie where the device wants them."""
    image(scene, 4, 5, name="D32_SFLOAT_S8_UINT", shader_access="readonly").tensor("t", dims=[20], **GROUP)
    with pytest.raises(ScenarioError, match="where its depths and stencils lie is up to the device"):
        Runner().plan(scene.write())


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


def optimal_image(scene: Scene, width: int, height: int, content: Any = None, **keys: Any) -> Scene:
    """A float32 RGBA image of the group."""
    return scene.image("image", "R32G32B32A32_SFLOAT", content, size=(width, height), **OPTIMAL, **keys)


def add_shader(scene: Scene, width: int, height: int, rank: int) -> Scene:
    """A shader that adds a half to each element of a tensor."""
    text = ADD.replace("RANK", str(rank)).replace("WIDTH", str(width)).replace("HEIGHT", str(height))
    return scene.shader("add", text)


@pytest.mark.parametrize("width", [4, 7, 64])
@pytest.mark.parametrize("sourced", ["image", "tensor"])
def test_without_a_shader(ml: Runner, scene: Scene, width: int, sourced: str) -> None:
    """The initial content of one member is read back through both."""
    content = random((5, width, 4))
    optimal_image(scene, width, 5, content if sourced == "image" else None)
    scene.tensor("t", content if sourced == "tensor" else None, dims=[5, width, 4], **OPTIMAL)
    result = ml.run(scene.write(), outputs=["image", "t"], repeat=2)
    assert (result["image"].reshape(content.shape) == content).all()
    assert (result["t"] == content).all()


@pytest.mark.parametrize("rank, width", [(3, 7), (4, 7), (4, 16)])
def test_a_shader_sees_the_tensor(ml: Runner, scene: Scene, rank: int, width: int) -> None:
    """One shader changes the tensor and another the image, twice in turn; each sees the stores of the other."""
    content = random((5, width, 4))
    optimal_image(scene, width, 5, content)
    scene.tensor("t", dims=[1, 5, width, 4][4 - rank :], **OPTIMAL)
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
    optimal_image(scene, 8, 5, content)
    scene.tensor("t", dims=[1, 5, 8, 4], **OPTIMAL)
    add_shader(scene, 8, 5, 4).shader("twice", TWICE)
    scene.barrier("to", "image", layouts=("general", "tensor_aliasing"))
    scene.barrier("back", "image", layouts=("tensor_aliasing", "general"))
    scene.command("dispatch_barrier", image_barrier_refs=["to"])
    scene.dispatch("add", ["t"], (160,), implicit_barrier=False)
    scene.command("dispatch_barrier", image_barrier_refs=["back"])
    scene.dispatch("twice", ["image"], (8, 5))
    result = ml.run(scene.write(), outputs=["image", "t"])
    assert (result["t"] == ((content + numpy.float32(0.5)) * 2)[None]).all()
    assert not result.warnings


def test_a_drawing_between_tensor_shaders(ml: Runner, scene: Scene) -> None:
    """The tensor shows the draw into the image, and the image shows the stores through the tensor."""
    content = random((5, 8, 4))
    optimal_image(scene, 8, 5, content, color_attachment=True)
    scene.tensor("t", dims=[1, 5, 8, 4], **OPTIMAL)
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
    """An image and a tensor with different tilings are an error at the OPTIMAL one that names both."""
    keys = [GROUP if tiling is None else {**GROUP, "tiling": tiling} for tiling in (of_image, of_tensor)]
    scene.image("image", "R8_UINT", size=(4, 4), **keys[0])
    scene.tensor("t", dims=[4, 4, 1], format="VK_FORMAT_R8_UINT", **keys[1])
    problem = scene.refusal(Runner().plan)
    assert (problem.code, problem.pointer) == ("SR-MEMORY-009", f"/resources/{place}/tiling")
    assert problem.message.startswith(message)


def test_both_at_once(scene: Scene) -> None:
    """A command cannot use the image and the tensor: the image has one layout."""
    optimal_image(scene, 4, 5)
    scene.tensor("t", dims=[5, 4, 4], **OPTIMAL)
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
        optimal_image(scene, 4, 5)
    scene.tensor("t", dims=[5, 4, 4], **OPTIMAL).buffer("b", size=320, **GROUP)
    uid = "image 'image'" if member == "image" else "tensor 't'"
    with pytest.raises(UnsupportedError, match=f"{uid} has OPTIMAL tiling and shares the memory of group 'shared'"):
        Runner().plan(scene.write())
