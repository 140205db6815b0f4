"""Specialization constants: names, types and defaults, and the bytes of given values."""

import math
import struct
from collections.abc import Callable

import numpy as np
import pytest

from scenario_runner.errors import SpirvError
from scenario_runner.shaders.spirv import read_module
from scenario_runner.shaders.spirv.constants import decode
from scenario_runner.shaders.spirv.module import SpecConstant
from scenario_runner.shaders.spirv.types import Scalar
from tests.scenes import assemble
from tests.shaders.modules import Compile, kernel_entry

CONSTANTS = """
    #version 450
    #extension GL_EXT_shader_explicit_arithmetic_types : require
    layout(local_size_x = 1) in;
    layout(constant_id = 7) const bool ENABLED = true;
    layout(constant_id = 0) const int COUNT = -3;
    layout(constant_id = 1) const uint MASK = 0xffffffffu;
    layout(constant_id = 2) const float SCALE = 0.25;
    layout(constant_id = 3) const double FINE = 0.1;
    layout(constant_id = 4) const int64_t LONG = -5000000000L;
    layout(constant_id = 5) const uint16_t SHORT = uint16_t(65535);
    layout(constant_id = 6) const float16_t HALF = 1.5hf;
    layout(constant_id = 8) const int8_t BYTE = int8_t(-1);
    layout(binding = 0) buffer B { double b; };
    void main() {
        b = (ENABLED ? COUNT : MASK) + SCALE + FINE + double(LONG) + uint(SHORT) + float(HALF) + int(BYTE);
    }
"""


@pytest.fixture
def constants(glsl: Compile) -> dict[str, SpecConstant]:
    return {constant.name: constant for constant in read_module(glsl(CONSTANTS)).spec_constants}


def test_constants_have_type_size_and_default(constants: dict[str, SpecConstant]) -> None:
    """Every width and kind of constant is listed by rising SpecId."""
    assert [(item.id, item.name, item.type, item.size_bytes, item.default) for item in constants.values()] == [
        (0, "COUNT", "int32", 4, -3),
        (1, "MASK", "uint32", 4, 0xFFFFFFFF),
        (2, "SCALE", "float32", 4, 0.25),
        (3, "FINE", "float64", 8, 0.1),
        (4, "LONG", "int64", 8, -5000000000),
        (5, "SHORT", "uint16", 2, 65535),
        (6, "HALF", "float16", 2, 1.5),
        (7, "ENABLED", "bool", 4, True),
        (8, "BYTE", "int8", 1, -1),
    ]


@pytest.mark.parametrize("value", [True, 1, 1.0])
def test_a_boolean_takes_numbers(value: float) -> None:
    """0 and 1 are Booleans, also as floating-point numbers."""
    constant = SpecConstant(0, "", Scalar("bool", 32), False)
    assert constant.encode(value) == struct.pack("=I", 1)
    assert constant.encode(type(value)(0)) == struct.pack("=I", 0)
    with pytest.raises(SpirvError, match="a Boolean is true, false, 1 or 0"):
        constant.encode(0.5)


def test_bfloat16_rounds_to_nearest_even() -> None:
    """A bfloat16 is the upper half of a float32, rounded to nearest even."""
    constant = SpecConstant(0, "", Scalar("float", 16, "bfloat16"), 0.0)
    for value in (1.0, 0.1, -3.3, 1.00390625, 1.01171875, 1e-40, 3e38):
        bits = int(np.float32(value).view(np.uint32))
        below, above = bits & 0xFFFF0000, (bits & 0xFFFF0000) + 0x10000
        exact = [abs(float(np.uint32(item).view(np.float32)) - float(np.float32(value))) for item in (below, above)]
        nearest = below if exact[0] < exact[1] or (exact[0] == exact[1] and not below & 0x10000) else above
        assert constant.encode(value) == np.uint16(nearest >> 16).tobytes()
    assert (constant.type, constant.size_bytes) == ("bfloat16", 2)
    with pytest.raises(SpirvError, match="beyond the range of bfloat16"):
        constant.encode(3.4e38)
    with pytest.raises(SpirvError, match="'1' does not fit bfloat16: it is neither a number nor true or false"):
        constant.encode("1")


@pytest.mark.parametrize(
    "encoding, known",
    [
        ("float8_e4m3", {0x38: 1.0, 0x7E: 448.0, 0x01: 2.0**-9, 0xB8: -1.0, 0x3C: 1.5}),
        ("float8_e5m2", {0x3C: 1.0, 0x7B: 57344.0, 0x01: 2.0**-16, 0xBC: -1.0, 0x3E: 1.5, 0x7C: math.inf}),
    ],
)
def test_8_bit_floats(encoding: str, known: dict[int, float]) -> None:
    """The 8-bit floats have the values of the OCP formats, and each value encodes to itself."""
    scalar = Scalar("float", 8, encoding)
    constant = SpecConstant(0, "", scalar, 0.0)
    for bits, value in known.items():
        assert decode(scalar, bits) == value
        assert constant.encode(value) == bytes([bits])
    for bits in range(0x78):
        assert constant.encode(decode(scalar, bits)) == bytes([bits])


@pytest.mark.parametrize(
    "expression, expected",
    [
        ("A + B * 2", lambda a, b: a + b * 2),
        ("A / B", lambda a, b: int(a / b)),
        ("A % B + 5", lambda a, b: a % b + 5),
        ("(A << 3) | 1", lambda a, b: a << 3 | 1),
        ("((A ^ B) & 0xff) + 1", lambda a, b: ((a ^ b) & 0xFF) + 1),
        ("-A + 100", lambda a, b: 100 - a),
        ("~A + 200", lambda a, b: ~a + 200),
        ("A > B ? A : B", max),
        ("((A >= B) ^^ !(A < 13)) ? 3 : 7", lambda a, b: 3 if (a >= b) != (a >= 13) else 7),
        ("int(uint(A) >> 1) + 1", lambda a, b: (a >> 1) + 1),
        ("(A != 12 || B < 2) ? 9 : 11", lambda a, b: 9 if a != 12 or b < 2 else 11),
    ],
)
def test_constant_arithmetic_follows_the_values(
    glsl: Compile, expression: str, expected: Callable[[int, int], int]
) -> None:
    """An array length from OpSpecConstantOp equals the same expression in Python."""
    entry_point = read_module(
        glsl(
            "layout(local_size_x = 1) in;"
            "layout(constant_id = 0) const int A = 12; layout(constant_id = 1) const int B = 5;"
            f"const int N = {expression}; layout(binding = 0) buffer D {{ float d[N]; }};"
            "void main() { d[0] = 1.0; }"
        )
    ).entry_points[0]
    for interface, a, b in (
        (entry_point.interface, 12, 5),
        *((entry_point.specialized({0: a, 1: b}), a, b) for a, b in ((12, 5), (40, 7), (3, 3))),
    ):
        block = interface.bindings[0].block
        assert block is not None
        assert block.size_bytes == 4 * expected(a, b)


def test_vectors_and_64_bits_are_computed() -> None:
    """Shuffles, extracts, inserts, selects and conversions between widths follow the specialization."""
    entry_point = kernel_entry("""
        OpCapability Int64
        OpDecorate %10 SpecId 0
        OpDecorate %30 BuiltIn WorkgroupSize
        %5 = OpTypeInt 64 1
        %6 = OpTypeVector %uint 3
        %7 = OpTypeVector %uint 2
        %10 = OpSpecConstant %5 -4294967290
        %11 = OpConstant %uint 2
        %12 = OpSpecConstantOp %uint UConvert %10
        %13 = OpSpecConstantComposite %7 %12 %11
        %14 = OpSpecConstantOp %7 IMul %13 %13
        %15 = OpSpecConstantOp %6 VectorShuffle %14 %13 1 0 2
        %16 = OpSpecConstantOp %uint CompositeExtract %15 1
        %30 = OpSpecConstantOp %6 CompositeInsert %16 %15 2
    """)
    assert entry_point.interface.local_size() == (4, 36, 36)
    assert entry_point.specialized({0: 2**40 + 3}).local_size() == (4, 9, 9)


def test_int_defaults_are_read_from_their_words() -> None:
    """A 64-bit literal is its two words, low one first."""
    module = read_module(
        assemble(
            "OpCapability Shader\nOpCapability Int64\nOpMemoryModel Logical GLSL450\nOpDecorate %2 SpecId 9\n"
            "%1 = OpTypeInt 64 0\n%2 = OpSpecConstant %1 81985529216486895\n"
        )
    )
    (constant,) = module.spec_constants
    assert (constant.default, constant.type) == (0x0123456789ABCDEF, "uint64")
    assert constant.encode(constant.default) == struct.pack("=Q", 0x0123456789ABCDEF)
