"""Tensors in compute shaders: GLSL with GL_ARM_tensors and SPIR-V, barriers, and mismatches."""

from __future__ import annotations

import numpy
import pytest

from scenario_runner import Runner
from tests.gpu.ml_scenes import HEAD, SPIRV, random, tensor
from tests.program import Program
from tests.scenes import Scene

# y = 2 x + b[column]
DOUBLE = (
    HEAD
    + """
layout(local_size_x = 4, local_size_y = 4) in;
layout(set = 0, binding = 0) uniform tensorARM<float, 2> x;
layout(set = 0, binding = 1) uniform tensorARM<float, 2> y;
layout(set = 1, binding = 0) readonly buffer B { float b[]; };
void main() {
    uint at[2] = uint[](gl_GlobalInvocationID.y, gl_GlobalInvocationID.x);
    if (at[0] < tensorSizeARM(x, 0) && at[1] < tensorSizeARM(x, 1)) {
        float value;
        tensorReadARM(x, at, value);
        tensorWriteARM(y, at, 2.0 * value + b[at[1]]);
    }
}
"""
)


def chain(scene: Scene, barrier: str | None) -> None:
    """x to y to z, with an explicit barrier of this kind between the two, or the implicit one."""
    tensor(scene, "x", random((5, 7)))
    tensor(scene, "y", dims=[5, 7])
    tensor(scene, "z", dims=[5, 7], tiling="OPTIMAL")
    scene.buffer("b", random((8,), seed=2), dst=None, shader_access="readonly").shader("double", DOUBLE)
    places = {(0, 0): "x", (0, 1): "y", (1, 0): "b"}
    scene.dispatch("double", places, (2, 2), implicit_barrier=barrier is None)
    if barrier is not None:
        keys = {"tensor_resource": "y"} if barrier == "tensor_barrier" else {}
        accesses = {"src_access": "compute_shader_write", "dst_access": "compute_shader_read"}
        scene.resource(barrier, uid="order", src_stage=["compute"], dst_stage=["compute"], **accesses, **keys)
        scene.command("dispatch_barrier", **{f"{barrier}_refs": ["order"]})
    scene.dispatch("double", {(0, 0): "y", (0, 1): "z", (1, 0): "b"}, (2, 2))


@pytest.mark.parametrize("barrier", [None, "tensor_barrier", "memory_barrier"])
def test_shaders_read_and_write_tensors(ml: Runner, scene: Scene, barrier: str | None) -> None:
    """A GLSL shader fills a tensor that the next dispatch reads, in either tiling and with any kind of barrier."""
    chain(scene, barrier)
    ml.run_to_files(scene.write())
    x, b = random((5, 7)), random((8,), seed=2)[:7]
    y = 2 * x + b
    assert (numpy.load(scene.folder / "y.out.npy") == y).all()
    assert (numpy.load(scene.folder / "z.out.npy") == 2 * y + b).all()


def test_a_spirv_shader_sees_tensors_of_several_types(ml: Runner, scene: Scene) -> None:
    """SPIR-V with SPV_ARM_tensors adds one to every element of an int8 tensor, and leaves the unused one alone."""
    source, both = random((1, 2, 4, 4), "i1"), random((4, 4), "f2")
    tensor(scene, "source", source)
    tensor(scene, "target", dims=[1, 2, 4, 4], format="VK_FORMAT_R8_SINT")
    tensor(tensor(scene, "both", both), "unused", random((3,), "u4"))
    scene.module("shader", (SPIRV / "tensor.spv").read_bytes())
    scene.dispatch("shader", {(0, 0): "source", (0, 1): "target", (1, 3): "both", (1, 4): "unused"}, (1, 2, 2))
    ml.run_to_files(scene.write())
    assert (numpy.load(scene.folder / "target.out.npy") == source + numpy.int8(1)).all()
    assert (numpy.load(scene.folder / "unused.out.npy") == random((3,), "u4")).all()


@pytest.mark.parametrize("format, given", [("VK_FORMAT_R8_SINT", "u1"), ("VK_FORMAT_R8_UINT", "i1")])
def test_integers_of_the_other_sign_are_taken_bit_by_bit(
    program: Program, scene: Scene, format: str, given: str
) -> None:
    """Data of the width of the format whose sign differs run with a warning; every bit arrives."""
    data = numpy.arange(256, dtype="u1").view(given)
    tensor(scene, "x", data, format=format)
    ended = program(scene.write().name)
    assert ended.code == 0
    assert ended.err.startswith("warning: scenario.json:")
    assert numpy.load(scene.folder / "x.out.npy").tobytes() == data.tobytes()


def test_a_tensor_that_a_shader_only_declares(ml: Runner, scene: Scene) -> None:
    """A set with nothing but a tensor that the code never names is bound like any other."""
    x = random((4, 16))
    tensor(tensor(tensor(scene, "x", x), "y", dims=[4, 16]), "unused", x)
    body = """layout(local_size_x = 16) in;
layout(set = 0, binding = 0) uniform tensorARM<float, 2> x;
layout(set = 0, binding = 1) uniform tensorARM<float, 2> y;
layout(set = 2, binding = 1) uniform tensorARM<float, 2> unused;
void main() {
    float v;
    tensorReadARM(x, uint[](gl_WorkGroupID.x, gl_LocalInvocationID.x), v);
    tensorWriteARM(y, uint[](gl_WorkGroupID.x, gl_LocalInvocationID.x), v + 1.0);
}
"""
    scene.shader("copy", HEAD + body).dispatch("copy", {(0, 0): "x", (0, 1): "y", (2, 1): "unused"}, (4,))
    ml.run_to_files(scene.write())
    assert (numpy.load(scene.folder / "y.out.npy") == x + numpy.float32(1)).all()


@pytest.mark.parametrize(
    "keys, message",
    [
        ({"dims": [5, 7, 1]}, "has the rank 2; tensor 'x' has the shape [5, 7, 1], which is of rank 3"),
        (
            {"dims": [5, 7], "format": "VK_FORMAT_R32_SINT"},
            "has elements of float32; tensor 'x' is of VK_FORMAT_R32_SINT",
        ),
        ({"dims": [5, 7], "format": "VK_FORMAT_R16_SFLOAT"}, "has elements of float32; tensor 'x' is of"),
    ],
)
def test_a_tensor_that_the_shader_does_not_declare_is_refused(
    scene: Scene, shader_cache: object, keys: dict[str, object], message: str
) -> None:
    """Rank and elements are compared before a device sees them."""
    tensor(scene, "x", **keys)
    tensor(scene, "y", dims=[5, 7])
    scene.buffer("b", size=32).shader("double", DOUBLE)
    scene.dispatch("double", {(0, 0): "x", (0, 1): "y", (1, 0): "b"}, (2, 2))
    problem = scene.refusal(Runner().plan)
    assert "tensor 'x' at set 0, binding 0" in problem.message
    assert message in problem.message


def test_a_buffer_in_place_of_a_tensor_is_refused(scene: Scene, shader_cache: object) -> None:
    """Every binding wants its own kind of resource."""
    scene.buffer("x", size=140)
    tensor(scene, "y", dims=[5, 7])
    scene.buffer("b", size=32).shader("double", DOUBLE)
    scene.dispatch("double", {(0, 0): "x", (0, 1): "y", (1, 0): "b"}, (2, 2))
    problem = scene.refusal(Runner().plan)
    assert "'x'" in problem.message
    assert "buffer" in problem.message
