"""Scalar values to bits and back: integers, IEEE 754 floats of 16 to 64 bits, bfloat16 and the 8-bit floats.

Source: SPIR-V specification, "Literal"; SPV_KHR_bfloat16; SPV_EXT_float8 (the OCP 8-bit floating point formats).
"""

from __future__ import annotations

import struct
from typing import TypeAlias

from scenario_runner.spirv.types import Scalar

Literal: TypeAlias = bool | int | float


def decode(scalar: Scalar, bits: int) -> Literal:
    """The value of a scalar whose bits are the low ones of ``bits``; NaN for a float encoding that is not known."""
    if scalar.kind == "bool":
        return bits != 0
    width = scalar.width_bits
    bits &= (1 << width) - 1
    if scalar.kind == "uint":
        return bits
    if scalar.kind == "int":
        return bits - (1 << width) if bits >> (width - 1) else bits
    if not scalar.encoding:
        code, size = {16: ("e", 2), 32: ("f", 4), 64: ("d", 8)}.get(width, ("", 0))
        return float(struct.unpack("<" + code, bits.to_bytes(size, "little"))[0]) if code else float("nan")
    if scalar.encoding == "bfloat16":
        return float(struct.unpack("<f", (bits << 16).to_bytes(4, "little"))[0])
    if scalar.encoding in ("float8_e4m3", "float8_e5m2"):
        return _decode_float8(bits, scalar.encoding)
    return float("nan")


def fit(scalar: Scalar, value: Literal) -> Literal:
    """The value as one of the scalar's type; raises ValueError with the reason when it does not fit.

    3.0 is the integer 3 and 3 is the float 3.0; ``True`` is 1, and 0 and 1 are Booleans.
    """
    if not isinstance(value, bool | int | float):
        raise ValueError("it is neither a number nor true or false")
    if scalar.kind == "bool":
        if value not in (0, 1):
            raise ValueError("a Boolean is true, false, 1 or 0")
        return bool(value)
    if scalar.kind == "float":
        return _fit_float(scalar, value)
    if isinstance(value, float):
        if not value.is_integer():
            raise ValueError("it is not an integer")
        value = int(value)
    signed = scalar.kind == "int"
    lowest = -(1 << scalar.width_bits - 1) if signed else 0
    highest = (1 << scalar.width_bits - signed) - 1
    if not lowest <= value <= highest:
        raise ValueError(f"the range is {lowest} to {highest}")
    return int(value)


def encode(scalar: Scalar, value: Literal) -> bytes:
    """The value's bytes in the byte order of this machine, a Boolean as a VkBool32; ValueError as for `fit`."""
    fitted = fit(scalar, value)
    if scalar.kind == "bool":
        return struct.pack("=I", fitted)
    if scalar.kind != "float":
        code = {8: "b", 16: "h", 32: "i", 64: "q"}[scalar.width_bits]
        return struct.pack("=" + (code if scalar.kind == "int" else code.upper()), fitted)
    if not scalar.encoding:
        return struct.pack("=" + {16: "e", 32: "f", 64: "d"}[scalar.width_bits], fitted)
    if scalar.encoding == "bfloat16":
        return struct.pack("=H", _bfloat16_bits(float(fitted)))
    return bytes([_float8_bits(float(fitted), scalar.encoding)])


def _fit_float(scalar: Scalar, value: Literal) -> float:
    try:
        number = float(value)
    except OverflowError:
        raise ValueError(f"it is beyond the range of {scalar}") from None
    if scalar.encoding in ("float8_e4m3", "float8_e5m2"):
        highest = 448.0 if scalar.encoding == "float8_e4m3" else 57344.0
        infinite = number in (float("inf"), float("-inf"))
        if abs(number) > highest and not (infinite and scalar.encoding == "float8_e5m2"):
            raise ValueError(f"the range is {-highest} to {highest}")
        return number
    if scalar.encoding not in ("", "bfloat16") or scalar.width_bits == 8:
        raise ValueError(f"values of the type {scalar} cannot be written")
    if number in (float("inf"), float("-inf")):
        return number
    try:
        if scalar.encoding:
            bits = _bfloat16_bits(number)
            if bits & 0x7FFF == 0x7F80:
                raise OverflowError
        else:
            struct.pack("<" + {16: "e", 32: "f", 64: "d"}[scalar.width_bits], number)
    except OverflowError:
        raise ValueError(f"it is beyond the range of {scalar}") from None
    return number


def _bfloat16_bits(value: float) -> int:
    """The upper half of a float32, rounded to nearest even; OverflowError beyond float32."""
    bits: int = struct.unpack("<I", struct.pack("<f", value))[0]
    if value != value:
        return bits >> 16 | 0x40
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16


def _decode_float8(bits: int, encoding: str) -> float:
    sign = -1.0 if bits & 0x80 else 1.0
    mantissa_bits, bias = (3, 7) if encoding == "float8_e4m3" else (2, 15)
    exponent = (bits & 0x7F) >> mantissa_bits
    mantissa = bits & ((1 << mantissa_bits) - 1)
    if encoding == "float8_e4m3":
        if bits & 0x7F == 0x7F:
            return float("nan")
    elif exponent == 31:
        return float("nan") if mantissa else sign * float("inf")
    if not exponent:
        return sign * mantissa * 2.0 ** (1 - bias - mantissa_bits)
    return sign * (1 + mantissa / (1 << mantissa_bits)) * 2.0 ** (exponent - bias)


def _float8_bits(value: float, encoding: str) -> int:
    """The nearest of the 256 values, the even one of two that are equally near."""
    if value != value:
        return 0x7F
    sign = 0x80 if str(value).startswith("-") else 0
    finite = [bits for bits in range(0x7F) if _decode_float8(bits, encoding) < float("inf")]
    if abs(value) == float("inf"):
        return sign | 0x7C
    return sign | min(finite, key=lambda bits: (abs(_decode_float8(bits, encoding) - abs(value)), bits & 1))
