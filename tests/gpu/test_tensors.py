"""Tensors: every format, rank and tiling in compute shaders of GLSL and SPIR-V, and each misfit."""

from typing import Any

import ml_dtypes
import numpy
import pytest

from scenario_runner import Runner
from scenario_runner.errors import FileError, ScenarioError, ScenarioRunnerError, UnsupportedError, UsageError
from tests.gpu.ml_scenes import HEAD, SPIRV, random
from tests.program import Program
from tests.scenes import Scene, error_of


def run(runner: Runner, scene: Scene, uid: str = "t") -> Any:
    """Run, and return the content of the tensor's file."""
    runner.run_to_files(scene.write())
    return numpy.load(scene.folder / f"{uid}.out.npy")


@pytest.mark.parametrize("dtype", ["b1", "u1", "i1", "u2", "i2", "u4", "i4", "i8", "f2", "f4"])
@pytest.mark.parametrize("tiling", ["LINEAR", "OPTIMAL"])
def test_a_tensor_comes_back_as_it_went_in(ml: Runner, scene: Scene, dtype: str, tiling: str) -> None:
    """Every format of the specification keeps every bit, the type and the shape of its file, in both tilings."""
    array = random((2, 3, 5), "?" if dtype == "b1" else dtype)
    scene.tensor("t", array, tiling=tiling)
    found = run(ml, scene)
    assert found.dtype == array.dtype
    assert found.shape == array.shape
    assert found.tobytes() == array.tobytes()


@pytest.mark.parametrize("shape", [(), (1,), (7,), (2, 3), (1, 2, 3, 4), (2, 1, 3, 1, 2), (1, 2, 1, 2, 1, 2)])
def test_every_rank_is_kept(ml: Runner, scene: Scene, shape: tuple[int, ...]) -> None:
    """Tensors of rank 0 to 6 keep their shape; a scalar's file has the shape ()."""
    array = numpy.asarray(random(shape))
    scene.tensor("t", array, dims=list(shape))
    found = run(ml, scene)
    assert found.shape == shape
    assert found.tobytes() == array.tobytes()


@pytest.mark.parametrize(
    "format, dtype, descr",
    [
        ("R16_SFLOAT_FPENCODING_BFLOAT16_ARM", "bfloat16", "|V2"),
        ("R8_SFLOAT_FPENCODING_FLOAT8E4M3_ARM", "float8_e4m3fn", "|V1"),
        ("R8_SFLOAT_FPENCODING_FLOAT8E5M2_ARM", "float8_e5m2", "|u1"),
    ],
)
def test_small_floats_are_raw_in_files_and_numbers_in_arrays(
    ml: Runner, scene: Scene, format: str, dtype: str, descr: str
) -> None:
    """bfloat16 and float8 are ml_dtypes in the API, and raw bytes in files as the reference runner writes them."""
    array = numpy.array([[0.5, -1.0, 2.0], [0.0, 3.0, 1.5]], dtype=getattr(ml_dtypes, dtype))
    scene.tensor("t", dims=[2, 3], format=f"VK_FORMAT_{format}")
    result = ml.run(scene.write(), {"t": array})
    assert result["t"].dtype == array.dtype
    assert (result["t"] == array).all()
    written = numpy.load(scene.folder / "t.out.npy")
    assert written.dtype.str == descr
    assert written.tobytes() == array.tobytes()
    numpy.save(scene.folder / "saved.npy", array)  # ml_dtypes call float8_e5m2 "<f1", which no NumPy reads
    again = Scene(scene.folder).tensor("t", dims=[2, 3], format=f"VK_FORMAT_{format}", src="saved.npy")
    assert (ml.run(again.write())["t"] == array).all()


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "bfloat16"])
@pytest.mark.parametrize("encoding, taken", [("FLOAT8E4M3", "float8_e4m3fn"), ("FLOAT8E5M2", "float8_e5m2")])
def test_small_floats_of_another_encoding_are_refused(scene: Scene, dtype: str, encoding: str, taken: str) -> None:
    """The bits of one float8 type are other values of another."""
    scene.tensor("t", dims=[2], format=f"VK_FORMAT_R8_SFLOAT_FPENCODING_{encoding}_ARM")
    array = numpy.array([1, 2], getattr(ml_dtypes, dtype))
    if dtype == taken:
        Runner().plan(scene.write(), {"t": array})
    else:
        assert f"the array given for it holds '{dtype}'" in problem(scene, UsageError, t=array)


@pytest.mark.parametrize("tiling", ["LINEAR", "OPTIMAL"])
def test_a_tensor_without_content_is_zero(ml: Runner, scene: Scene, tiling: str) -> None:
    """A tensor that nobody writes is zeros."""
    scene.tensor("t", dims=[3, 5], format="VK_FORMAT_R16_SINT", tiling=tiling)
    assert (run(ml, scene) == numpy.zeros((3, 5), "i2")).all()


def test_a_large_tensor_goes_through_in_pieces(ml: Runner, scene: Scene) -> None:
    """40 MB, more than the staging buffer has, arrive unchanged."""
    array = random((5, 2, 1000, 1000))
    scene.tensor("t", array)
    assert run(ml, scene).tobytes() == array.tobytes()


def test_a_frame_captures_tensors(ml: Runner, scene: Scene) -> None:
    """A boundary hands back a tensor in its own type and shape."""
    array = random((2, 3), "i4")
    scene.tensor("t", array, dst=None).command("mark_boundary", resources=["t"], frame_id=3)
    frame = ml.run(scene.write()).frames[0]
    assert frame["t"].dtype == array.dtype
    assert (frame["t"] == array).all()


def problem(scene: Scene, kind: type[ScenarioRunnerError], **inputs: Any) -> str:
    """Return the message of the error that planning the scenario raises."""
    return str(error_of(kind, Runner().plan, scene.write(), inputs or None)).replace(f"{scene.folder}/", "")


@pytest.mark.parametrize(
    "array, keys, message",
    [
        (
            random((2, 3)),
            {"format": "VK_FORMAT_R32_SINT"},
            "tensor 't' has the format VK_FORMAT_R32_SINT (int32), but 't.npy' holds float32",
        ),
        (
            random((2, 3), "f2"),
            {"format": "VK_FORMAT_R32_SFLOAT"},
            "tensor 't' has the format VK_FORMAT_R32_SFLOAT (float32), but 't.npy' holds float16",
        ),
        (random((2, 3)), {"dims": [3, 2]}, "tensor 't' has the shape [3, 2], but 't.npy' has the shape [2, 3]"),
        (random((6,)), {"dims": [2, 3]}, "tensor 't' has the shape [2, 3], but 't.npy' has the shape [6]"),
    ],
)
def test_a_file_that_does_not_fit_is_refused(scene: Scene, array: Any, keys: dict[str, Any], message: str) -> None:
    """Type and shape of a file must be the tensor's, also where the number of bytes would do."""
    scene.tensor("t", array, **keys)
    assert problem(scene, FileError).endswith(f"/resources/0/tensor/src: {message}")


def test_an_array_that_does_not_fit_is_refused(scene: Scene) -> None:
    """An array from code that does not fit is refused like a file."""
    scene.tensor("t", dims=[2, 3])
    assert problem(scene, UsageError, t=random((2, 3), "i4")).endswith(
        "tensor 't' has the format VK_FORMAT_R32_SFLOAT (float32), but the array given for it holds int32"
    )


@pytest.mark.parametrize(
    "name, message",
    [
        ("R32_FLOAT", "unknown format 'VK_FORMAT_R32_FLOAT'"),
        *(
            (name, f"a tensor cannot have the format 'VK_FORMAT_{name}': its elements are single numbers")
            for name in ("R8G8B8A8_UNORM", "D32_SFLOAT", "BC4_UNORM_BLOCK")
        ),
    ],
)
def test_formats_that_no_tensor_has_are_refused(scene: Scene, name: str, message: str) -> None:
    """A tensor has one number an element."""
    scene.tensor("t", dims=[2], format=f"VK_FORMAT_{name}")
    assert message in problem(scene, ScenarioError)


def test_more_dimensions_than_the_device_has_are_refused(ml: Runner, scene: Scene) -> None:
    """The rank is checked before the device sees it: the emulation layers would end the process."""
    scene.tensor("t", dims=[1] * 7)
    with pytest.raises(UnsupportedError, match=r"tensor 't' has 7 dimensions; maxTensorDimensionCount of .* is 6"):
        ml.run(scene.write())


def test_more_elements_than_the_device_takes_are_refused(ml: Runner, scene: Scene) -> None:
    """More elements than the device takes are refused."""
    ml.run(Scene(scene.folder).tensor("t", dims=[1]).write())  # now the device is one that has tensors
    physical = ml.physical_device
    limit = int(physical.properties_of("VkPhysicalDeviceTensorPropertiesARM").maxTensorElements)
    if limit >= 1 << 47:
        pytest.skip(f"maxTensorElements is {limit}: no address space holds more, so that no scenario can ask for it")
    scene.tensor("t", dims=[limit // 4096 + 1, 4096], format="VK_FORMAT_R8_UINT")
    found = (limit // 4096 + 1) * 4096
    error = error_of(UnsupportedError, ml.run, scene.write())
    message = f"tensor 't' has {found} elements; maxTensorElements of {physical.name!r} is {limit}"
    assert message in [problem.message for problem in error.problems]


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


def doubled_twice(scene: Scene, barrier: str | None) -> None:
    """x to y to z, with an explicit barrier of this kind between the two, or the implicit one."""
    scene.tensor("x", random((5, 7))).tensor("y", dims=[5, 7]).tensor("z", dims=[5, 7], tiling="OPTIMAL")
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
    doubled_twice(scene, barrier)
    ml.run_to_files(scene.write())
    x, b = random((5, 7)), random((8,), seed=2)[:7]
    y = 2 * x + b
    assert (numpy.load(scene.folder / "y.out.npy") == y).all()
    assert (numpy.load(scene.folder / "z.out.npy") == 2 * y + b).all()


def test_a_spirv_shader_sees_tensors_of_several_types(ml: Runner, scene: Scene) -> None:
    """SPIR-V with SPV_ARM_tensors adds one to every element of an int8 tensor, and leaves the unused one alone."""
    source, both = random((1, 2, 4, 4), "i1"), random((4, 4), "f2")
    scene.tensor("source", source).tensor("target", dims=[1, 2, 4, 4], format="VK_FORMAT_R8_SINT")
    scene.tensor("both", both).tensor("unused", random((3,), "u4"))
    scene.module("shader", (SPIRV / "tensor.spv").read_bytes())
    scene.dispatch("shader", {(0, 0): "source", (0, 1): "target", (1, 3): "both", (1, 4): "unused"}, (1, 2, 2))
    ml.run_to_files(scene.write())
    assert (numpy.load(scene.folder / "target.out.npy") == source + numpy.int8(1)).all()
    assert (numpy.load(scene.folder / "unused.out.npy") == random((3,), "u4")).all()


@pytest.mark.parametrize("format, given", [("VK_FORMAT_R8_SINT", "u1"), ("VK_FORMAT_R8_UINT", "i1")])
def test_integers_of_the_other_sign_are_taken_bit_by_bit(
    program: Program, scene: Scene, format: str, given: str
) -> None:
    """Data with the width of the format and another sign run with a warning, and every bit arrives."""
    data = numpy.arange(256, dtype="u1").view(given)
    scene.tensor("x", data, format=format)
    ended = program(scene.write().name, exit_code=0)
    assert ended.err.startswith("warning: scenario.json:")
    assert numpy.load(scene.folder / "x.out.npy").tobytes() == data.tobytes()


def test_a_tensor_that_a_shader_only_declares(ml: Runner, scene: Scene) -> None:
    """A set with nothing but a tensor that the code never names is bound like any other."""
    x = random((4, 16))
    scene.tensor("x", x).tensor("y", dims=[4, 16]).tensor("unused", x)
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
        ({"dims": [5, 7, 1]}, "has the rank 2; the bound tensor 'x' has the shape [5, 7, 1] of rank 3"),
        (
            {"dims": [5, 7], "format": "VK_FORMAT_R32_SINT"},
            "has elements of float32; the bound tensor 'x' is of VK_FORMAT_R32_SINT",
        ),
        ({"dims": [5, 7], "format": "VK_FORMAT_R16_SFLOAT"}, "has elements of float32; the bound tensor 'x' is of"),
        ({"size": 140}, "buffer"),
    ],
)
def test_a_tensor_that_the_shader_does_not_declare_is_refused(
    scene: Scene, shader_cache: object, keys: dict[str, Any], message: str
) -> None:
    """Kind of resource, rank and elements are compared before a device sees them."""
    (scene.buffer if "size" in keys else scene.tensor)("x", **keys).tensor("y", dims=[5, 7])
    scene.buffer("b", size=32).shader("double", DOUBLE)
    scene.dispatch("double", {(0, 0): "x", (0, 1): "y", (1, 0): "b"}, (2, 2))
    problem = scene.refusal(Runner().plan)
    assert "tensor 'x' at set 0, binding 0" in problem.message
    assert message in problem.message
