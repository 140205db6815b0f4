"""Values of constants: their bits, and the arithmetic of OpSpecConstantOp.

Source: SPIR-V specification, "Literal" and "Constant-Creation Instructions"; SPV_KHR_bfloat16; SPV_EXT_float8 (the OCP
8-bit floating point formats).
"""

from __future__ import annotations

import operator
import struct
import sys
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

from scenario_runner.files.vk_formats import ML_DTYPES, ml_dtype
from scenario_runner.shaders.spirv._generated import opcodes as op
from scenario_runner.shaders.spirv.types import Scalar, Type, Vector

Literal: TypeAlias = bool | int | float
# A composite constant is a tuple of parts.
Value: TypeAlias = bool | int | float | tuple["Value", ...]


def _truncated_quotient(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1) if b else 0


# Operations on unsigned and signed integers, and on Booleans and floats.
_UNSIGNED: Final[dict[int, Callable[..., int]]] = {
    op.U_CONVERT: operator.pos,
    op.NOT: operator.invert,
    op.I_ADD: operator.add,
    op.I_SUB: operator.sub,
    op.I_MUL: operator.mul,
    # The specification leaves division by zero undefined; 0 keeps the reader going.
    op.U_DIV: lambda a, b: a // b if b else 0,
    op.U_MOD: lambda a, b: a % b if b else 0,
    # A shift by the width or more is undefined. 64 bits are the most, so that nothing grows without limit.
    op.SHIFT_RIGHT_LOGICAL: lambda a, b: a >> min(b, 64),
    op.SHIFT_LEFT_LOGICAL: lambda a, b: a << min(b, 64),
    op.BITWISE_OR: operator.or_,
    op.BITWISE_XOR: operator.xor,
    op.BITWISE_AND: operator.and_,
    op.I_EQUAL: operator.eq,
    op.I_NOT_EQUAL: operator.ne,
    op.U_GREATER_THAN: operator.gt,
    op.U_GREATER_THAN_EQUAL: operator.ge,
    op.U_LESS_THAN: operator.lt,
    op.U_LESS_THAN_EQUAL: operator.le,
}
_SIGNED: Final[dict[int, Callable[..., int]]] = {
    op.S_CONVERT: operator.pos,
    op.S_NEGATE: operator.neg,
    op.S_DIV: _truncated_quotient,
    op.S_MOD: lambda a, b: a % b if b else 0,
    op.S_REM: lambda a, b: a - _truncated_quotient(a, b) * b,
    op.SHIFT_RIGHT_ARITHMETIC: lambda a, b: a >> min(b & 0xFFFF_FFFF, 64),
    op.S_GREATER_THAN: operator.gt,
    op.S_GREATER_THAN_EQUAL: operator.ge,
    op.S_LESS_THAN: operator.lt,
    op.S_LESS_THAN_EQUAL: operator.le,
}
_OTHER: Final[dict[int, Callable[..., Literal]]] = {
    op.F_CONVERT: operator.pos,
    op.QUANTIZE_TO_F16: operator.pos,
    op.LOGICAL_NOT: operator.not_,
    op.LOGICAL_OR: lambda a, b: a or b,
    op.LOGICAL_AND: lambda a, b: a and b,
    op.LOGICAL_EQUAL: operator.eq,
    op.LOGICAL_NOT_EQUAL: operator.ne,
}
VALUES: Final = {op.COMPOSITE_EXTRACT: 1, op.COMPOSITE_INSERT: 2, op.VECTOR_SHUFFLE: 2}
"""Operations with literals after their values → the number of values. Other operations only have values."""


def compute(operation: int, operand: Type, result: Type, values: Sequence[Value], literals: Sequence[int]) -> Value:
    """Compute an OpSpecConstantOp. ``operand`` is the first value's type.

    Raises IndexError, KeyError, TypeError, ValueError or OverflowError for unsuitable values.
    """
    match operation:
        case op.COMPOSITE_EXTRACT:
            part = values[0]
            for step in literals:
                part = part[step]  # type: ignore[index]
            return part
        case op.COMPOSITE_INSERT:
            return _inserted(values[1], values[0], literals)
        case op.VECTOR_SHUFFLE:
            pool = (*values[0], *values[1])  # type: ignore[misc]
            # 0xFFFFFFFF asks for an undefined component.
            return tuple([pool[part] if part != 0xFFFF_FFFF else 0 for part in literals])
        case op.SELECT:
            condition, accepted, refused = values
            if not isinstance(condition, tuple):
                return accepted if condition else refused
            rows = zip(condition, accepted, refused, strict=True)  # type: ignore[arg-type]
            return tuple([yes if choose else no for choose, yes, no in rows])
    return _operate(operation, operand, result, values)


def _inserted(into: Value, part: Value, path: Sequence[int]) -> Value:
    """Return a composite with another part at the place of the indices."""
    if not path:
        return part
    parts = list(into)  # type: ignore[arg-type]
    parts[path[0]] = _inserted(parts[path[0]], part, path[1:])
    return tuple(parts)


def _operate(operation: int, operand: Type, result: Type, values: Sequence[Value]) -> Value:
    """Apply an operation to scalars or vectors' components, with the types ``operand`` and ``result``."""
    if isinstance(operand, Vector) and isinstance(result, Vector):
        rows = zip(*values, strict=True)
        return tuple([_operate(operation, operand.component, result.component, row) for row in rows])
    if not isinstance(operand, Scalar) or not isinstance(result, Scalar):
        raise TypeError
    if operation in _OTHER:
        return _OTHER[operation](*values)
    functions, kind = (_SIGNED, "int") if operation in _SIGNED else (_UNSIGNED, "uint")
    numbers = [decode(Scalar(kind, operand.width_bits), value) for value in values]  # type: ignore[arg-type]
    return decode(result, functions[operation](*numbers))


_FLOATS: Final = {16: "e", 32: "f", 64: "d"}
"""Width of an IEEE 754 number → letter for `struct`."""


def decode(scalar: Scalar, bits: int) -> Literal:
    """Return the scalar in the low bits of ``bits``; NaN for an unknown float encoding or width."""
    kind, width = scalar.kind, scalar.width_bits  # read once: modules may compute tens of thousands of constants
    if kind == "bool":
        return bits != 0
    bits &= (1 << width) - 1
    if kind != "float":
        return bits - (1 << width) if kind == "int" and bits >> (width - 1) else bits
    if scalar.encoding.replace("_", "") in ML_DTYPES and width == (16 if scalar.encoding == "bfloat16" else 8):
        return float(_ml_array(scalar.encoding, bits, f"u{width // 8}"))
    if scalar.encoding or width not in _FLOATS:
        return float("nan")
    return float(struct.unpack("<" + _FLOATS[width], bits.to_bytes(width // 8, "little"))[0])


def fit(scalar: Scalar, value: Literal) -> Literal:
    """Convert a value to the scalar's type. Raises ValueError as `encode` does."""
    return decode(scalar, int.from_bytes(encode(scalar, value), sys.byteorder))


def encode(scalar: Scalar, value: Literal) -> bytes:
    """Return the value's bytes in this machine's byte order, a Boolean as a VkBool32.

    3.0 is the integer 3 and 3 is the float 3.0; ``True`` is 1, and 0 and 1 are Booleans. Raises ValueError with the
    reason for a value that does not fit.
    """
    if not isinstance(value, bool | int | float):
        raise ValueError("it is neither a number nor true or false")
    if scalar.is_bool:
        if value not in (0, 1):
            raise ValueError("a Boolean is true, false, 1 or 0")
        return struct.pack("=I", bool(value))
    if scalar.is_float:
        return _encode_float(scalar, value)
    if isinstance(value, float) and not value.is_integer():
        raise ValueError("it is not an integer")
    signed = scalar.is_signed
    try:
        return int(value).to_bytes(scalar.size_bytes, sys.byteorder, signed=signed)
    except OverflowError:
        highest = (1 << scalar.width_bits - signed) - 1
        raise ValueError(f"the range is {-highest - 1 if signed else 0} to {highest}") from None


def _encode_float(scalar: Scalar, value: float) -> bytes:
    try:
        number = float(value)
        if not scalar.encoding and scalar.width_bits in _FLOATS:
            return struct.pack("=" + _FLOATS[scalar.width_bits], number)
    except OverflowError:
        raise ValueError(f"it is beyond the range of {scalar}") from None
    if scalar.encoding.replace("_", "") not in ML_DTYPES:
        raise ValueError(f"values of the type {scalar} cannot be written")
    stored = _ml_array(scalar.encoding, number)
    if scalar.width_bits == 8:
        highest = 448.0 if scalar.encoding == "float8_e4m3" else 57344.0
        if abs(number) > highest and float(stored) != number:
            raise ValueError(f"the range is {-highest} to {highest}")
    elif abs(float(stored)) == float("inf") != abs(number):
        raise ValueError(f"it is beyond the range of {scalar}")
    return bytes(stored.tobytes())


def _ml_array(encoding: str, value: float, written_as: str = "") -> Any:
    """Return an array with a value of an encoding, or with bits of the type ``written_as``. Few modules need numpy."""
    import numpy

    dtype = ml_dtype(encoding.replace("_", ""))
    return numpy.array(value, written_as).view(dtype) if written_as else numpy.array(value, dtype)
