"""Specialization constants of every type, as a real device sees them."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

from scenario_runner import Runner
from scenario_runner.errors import ScenarioRunnerError
from tests.scenes import Scene, glsl

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
    """A shader whose only constant has this type and value; it stores the constant in buffer x."""
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
        ("float", -7),
        ("float", 1e-30),
        ("double", 3),
        ("double", 0.1),
        ("float16_t", 2),
        ("float16_t", -0.333),
        ("int", -5),
        ("int", 2**31 - 1),
        ("int", 6.0),
        ("uint", 2**32 - 1),
        ("int64_t", -(2**63)),
        ("int64_t", 2**40 + 1),
        ("uint64_t", 2**64 - 1),
        ("int16_t", -32768),
        ("uint16_t", 65535),
        ("int8_t", -128),
        ("uint8_t", 255),
        ("bool", True),
        ("bool", False),
        ("bool", 1),
        ("bool", 0),
        ("float16_t", False),
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
    with pytest.raises(ScenarioRunnerError) as caught:
        runner.run(scene.write())
    (problem,) = caught.value.problems
    assert problem.pointer == "/resources/0/shader/specialization_constants/0/value"
    assert problem.message == f"specialization constant 5 'C': {reason}"
    assert caught.value.exit_code in (3, 5)


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
