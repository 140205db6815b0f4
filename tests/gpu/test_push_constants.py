"""Push constants: their size in the scenario, the shader, the data and the device; specialization constants of every
type, as a real device sees them."""

from typing import Any

import numpy
import pytest

from scenario_runner import Runner
from scenario_runner.errors import ScenarioError, ScenarioRunnerError, UnsupportedError
from tests.scenes import Scene, error_of, glsl

PUSHED = "layout(push_constant) uniform P { uint n; float x; } p;\nlayout(binding = 0) buffer B { float a[]; };\n"
SUM = glsl("a[gl_WorkGroupID.x] += p.x + float(p.n);", PUSHED)


def pushed(n: int, x: float) -> numpy.ndarray:  # type: ignore[type-arg]
    return numpy.frombuffer(numpy.uint32(n).tobytes() + numpy.float32(x).tobytes(), numpy.uint8)


def test_data_reaches_the_shader(scene: Scene, runner: Runner) -> None:
    """Each dispatch sees its own push constants; one without push_data_ref sees zeros, with a warning."""
    scene.shader("s", SUM, push_constants_size=8).raw_data("p", pushed(3, 0.5)).raw_data("q", pushed(10, 0.25))
    for number, push in enumerate(("p", "q", "q", "p")):
        scene.buffer(f"b{number}", size=4).dispatch("s", [f"b{number}"], push_data_ref=push)
    scene.buffer("b4", numpy.array([1], numpy.float32)).dispatch("s", ["b4"])
    result = runner.run(scene.write())
    assert [float(result.array(f"b{number}", "f4")[0]) for number in range(5)] == [3.5, 10.25, 10.25, 3.5, 1.0]
    assert [warning.message for warning in result.warnings] == [
        "shader 's' reads push constants, but the command gives it none; zeros are used"
    ]


def test_push_constants_survive_other_pipelines(scene: Scene, runner: Runner) -> None:
    """Push constants are right when dispatches of shaders with other layouts come between."""
    scene.shader("s", SUM, push_constants_size=8).raw_data("p", pushed(3, 0.5))
    scene.shader("plain", glsl("a[0] *= 2.0;", "layout(binding = 0) buffer B { float a[]; };\n"))
    wide = "layout(push_constant) uniform P { uvec4 n; } p;\nlayout(binding = 0) buffer B { float a[]; };\n"
    scene.shader("wide", glsl("a[0] += float(p.n.w);", wide), push_constants_size=16)
    scene.raw_data("w", numpy.array([1, 2, 3, 4], numpy.uint32)).buffer("x", size=4)
    for shader, push in (("s", "p"), ("plain", None), ("s", "p"), ("wide", "w"), ("s", "p")):
        scene.dispatch(shader, ["x"], **({"push_data_ref": push} if push else {}))
    assert runner.run(scene.write()).array("x", "f4").tolist() == [((3.5 * 2) + 3.5) + 4 + 3.5]


def test_the_size_may_be_left_out(scene: Scene, runner: Runner) -> None:
    """Without push_constants_size it is the shader's, with and without data."""
    scene.shader("s", SUM).raw_data("p", pushed(3, 0.5)).buffer("x", size=4).buffer("y", size=4)
    scene.dispatch("s", ["x"], push_data_ref="p").dispatch("s", ["y"])
    result = runner.run(scene.write())
    assert result.array("x", "f4").tolist() == [3.5]
    assert result.array("y", "f4").tolist() == [0.0]


LONG = (
    "layout(push_constant) uniform P { uint n; uvec3 v; uint a[4]; } p;\nlayout(binding = 0) buffer B { uint o[]; };\n"
)


@pytest.mark.parametrize("said", [{}, {"push_constants_size": 44}, {"push_constants_size": 64}])
@pytest.mark.parametrize(
    "expression, read",
    [("p.n", 4), ("p.v.y", 24), ("p.v.x + p.n", 20), ("p.a[1]", 36), ("p.a[gl_WorkGroupID.x]", 44), ("p.v.z", 28)],
)
def test_data_may_be_shorter(scene: Scene, runner: Runner, said: dict[str, int], expression: str, read: int) -> None:
    """Data that hold all that the shader reads are pushed as they are; one byte less is an error that says how many."""
    numbers = numpy.arange(7, 7 + 11, dtype=numpy.uint32)  # n at byte 0, v at 16, a at 28
    wanted = {"p.n": 7, "p.v.y": 12, "p.v.x + p.n": 18, "p.a[1]": 15, "p.a[gl_WorkGroupID.x]": 14, "p.v.z": 13}
    data = numpy.frombuffer(numbers.tobytes()[:read], numpy.uint8)
    scene.shader("s", glsl(f"o[0] = {expression};", LONG), **said).buffer("x", size=4)
    scene.raw_data("p", data).raw_data("q", data[:-1]).dispatch("s", ["x"], push_data_ref="p")
    assert runner.run(scene.write()).array("x", "u4").tolist() == [wanted[expression]]
    scene.dispatch("s", ["x"], push_data_ref="q")
    problem = scene.refusal(runner.run)
    assert problem.pointer == "/commands/1/dispatch_compute/push_data_ref"
    assert problem.message == (
        f"raw_data 'q' holds {read - 1} bytes, but {read} bytes of push constants are read by shader 's'"
    )


def test_whole_blocks_are_read(scene: Scene, runner: Runner) -> None:
    """A block that is copied, or handed to a function, is read to its end."""
    struct = "struct S { uint n; uint m; };\n"
    block = struct + "layout(push_constant) uniform P { S s; } p;\nlayout(binding = 0) buffer B { uint o[]; };\n"
    body = "S t = p.s; o[0] = t.n;"
    scene.shader("s", glsl(body, block)).buffer("x", size=4).raw_data("p", numpy.array([5], numpy.uint32))
    with pytest.raises(ScenarioError, match="holds 4 bytes, but 8 bytes of push constants are read"):
        runner.run(scene.dispatch("s", ["x"], push_data_ref="p").write())


def test_absurd_size_is_refused_without_allocating_it(scene: Scene, runner: Runner) -> None:
    """A push_constants_size of 4 GiB is an error at once, with and without data."""
    scene.shader("s", SUM, push_constants_size=2**32 - 4).buffer("x", size=4)
    problem = scene.dispatch("s", ["x"]).refusal(runner.plan, UnsupportedError)
    assert problem.pointer == "/resources/0/shader/push_constants_size"
    assert problem.message == "push_constants_size is 4294967292; no device takes more than 65536"


def test_absurd_raw_data_is_not_read(scene: Scene, runner: Runner) -> None:
    """raw_data of more bytes than any push constants have is refused without being read."""
    path = scene.folder / "p.npy"
    scene.shader("s", SUM, push_constants_size=8).raw_data("p", numpy.zeros(0, numpy.uint8)).buffer("x", size=4)
    header = b"{'descr': '|u1', 'fortran_order': False, 'shape': (1099511627776,), }"
    path.write_bytes(b"\x93NUMPY\x01\x00" + (118).to_bytes(2, "little") + header.ljust(117) + b"\n")
    with path.open("r+b") as file:
        file.truncate(128 + 2**40)
    problem = scene.dispatch("s", ["x"], push_data_ref="p").refusal(runner.plan)
    assert problem.pointer == "/commands/0/dispatch_compute/push_data_ref"
    assert problem.message == "raw_data 'p' holds 1099511627776 bytes, but the push_constants_size of shader 's' is 8"


EXTENSIONS = """
#extension GL_EXT_shader_explicit_arithmetic_types : require
#extension GL_EXT_shader_8bit_storage : require
#extension GL_EXT_shader_16bit_storage : require
"""
STORED = {"bool": ("uint", "u4"), "int": ("int", "i4"), "uint": ("uint", "u4"), "float": ("float", "f4")} | {
    glsl_type: (glsl_type, dtype)
    for glsl_type, dtype in {
        "double": "f8",
        "int64_t": "i8",
        "uint64_t": "u8",
        "int16_t": "i2",
        "uint16_t": "u2",
        "float16_t": "f2",
        "int8_t": "i1",
        "uint8_t": "u1",
    }.items()
}


def specialized(scene: Scene, kind: str, value: Any, default: str = "1") -> None:
    """Add a shader that stores its only constant, of this type and value, in buffer x."""
    stored = STORED[kind][0]
    text = f"layout(constant_id = 5) const {kind} C = {kind}({default});\n"
    text += f"layout(set = 0, binding = 0) buffer B {{ {stored} a[]; }};\n"
    scene.shader(
        "s", glsl(f"a[0] = {stored}(C);", EXTENSIONS + text), specialization_constants=[{"id": 5, "value": value}]
    )
    scene.buffer("x", size=8).dispatch("s", ["x"])


@pytest.mark.parametrize(
    "kind, value",
    [
        ("float", 4),
        ("float", 2.5),
        ("double", 0.1),
        ("float16_t", -0.333),
        ("int", 2**31 - 1),
        ("int", 6.0),
        ("uint", 2**32 - 1),
        ("int64_t", -(2**63)),
        ("uint64_t", 2**64 - 1),
        ("int16_t", -32768),
        ("uint16_t", 65535),
        ("int8_t", -128),
        ("uint8_t", 255),
        ("bool", True),
        ("bool", False),
        ("uint", True),
    ],
)
def test_value_has_the_declared_type(scene: Scene, runner: Runner, kind: str, value: Any) -> None:
    """The number in the JSON becomes a value of the type that the shader declares, whatever its spelling."""
    specialized(scene, kind, value)
    dtype = numpy.dtype(STORED[kind][1])
    result = runner.run(scene.write()).array("x", dtype)
    assert result[0] == numpy.array(value).astype(dtype)


@pytest.mark.parametrize(
    "kind, value, reason",
    [
        ("uint8_t", 256, "256 does not fit uint8: the range is 0 to 255"),
        ("int8_t", -129, "-129 does not fit int8: the range is -128 to 127"),
        ("uint", -1, "-1 does not fit uint32: the range is 0 to 4294967295"),
        ("int", 2.5, "2.5 does not fit int32: it is not an integer"),
        ("bool", 2, "2 does not fit bool: a Boolean is true, false, 1 or 0"),
        ("float16_t", 65520, "65520 does not fit float16: it is beyond the range of float16"),
        ("float", 1e39, "1e+39 does not fit float32: it is beyond the range of float32"),
    ],
)
def test_value_that_does_not_fit(scene: Scene, runner: Runner, kind: str, value: Any, reason: str) -> None:
    """A value that the declared type cannot hold is an error with its place, before anything runs."""
    specialized(scene, kind, value)
    error = error_of(ScenarioRunnerError, runner.run, scene.write())
    (problem,) = error.problems
    assert problem.pointer == "/resources/0/shader/specialization_constants/0/value"
    assert problem.message == f"specialization constant 5 'C': {reason}"
    assert error.exit_code in (3, 5)


def test_workgroup_size_and_array_length(scene: Scene, runner: Runner) -> None:
    """Specialization constants may set the workgroup size and the length of shared arrays."""
    text = """
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint LENGTH = 1;
shared uint sums[LENGTH];
layout(set = 0, binding = 0) buffer B { uint a[]; };
void main() {
  sums[gl_LocalInvocationID.x] = gl_LocalInvocationID.x;
  barrier();
  if (gl_LocalInvocationID.x == 0) { for (uint i = 0; i < LENGTH; i++) a[gl_WorkGroupID.x] += sums[i] + 1u; }
}"""
    constants = [{"id": 0, "value": 32}, {"id": 1, "value": 32}]
    scene.shader("s", f"#version 450\n{text}", specialization_constants=constants)
    result = runner.run(scene.buffer("x", size=8).dispatch("s", ["x"], [2]).write())
    assert result.array("x", "u4").tolist() == [sum(range(32)) + 32] * 2


def test_two_shaders_of_one_source(scene: Scene, runner: Runner) -> None:
    """Shaders that differ in their constants alone are different pipelines."""
    text = "layout(constant_id = 0) const uint C = 9;\nlayout(binding = 0) buffer B { uint a[]; };\n"
    text = glsl("a[gl_WorkGroupID.x] = C;", text)
    scene.shader("plain", text)
    scene.shader("seven", text, specialization_constants=[{"id": 0, "value": 7}])
    scene.buffer("x", size=8).buffer("y", size=8).dispatch("plain", ["x"], [2]).dispatch("seven", ["y"], [2])
    result = runner.run(scene.write())
    assert result.array("x", "u4").tolist() == [9, 9]
    assert result.array("y", "u4").tolist() == [7, 7]
