"""Values of constants: their bits, specialization constants under given values, and OpSpecConstantOp arithmetic.

Source: SPIR-V specification, "Literal" and "Constant-Creation Instructions"; SPV_KHR_bfloat16; SPV_EXT_float8 (the OCP
8-bit floating point formats).
"""

from __future__ import annotations

import operator
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from scenario_runner.spirv._generated import opcodes as op
from scenario_runner.spirv._generated.enumerants import SPEC_ID
from scenario_runner.spirv.index import Index
from scenario_runner.spirv.type_table import TypeTable
from scenario_runner.spirv.types import Array, Matrix, Scalar, Struct, Tensor, Type, Vector

Literal: TypeAlias = bool | int | float
# A composite constant is a tuple of its parts.
Value: TypeAlias = bool | int | float | tuple["Value", ...]

MAX_ELEMENTS: Final = 1024
"""Elements of a null or replicated composite, whose length is a mere number in the module."""

_COMPOSITES: Final = frozenset({op.CONSTANT_COMPOSITE, op.SPEC_CONSTANT_COMPOSITE})
_REPLICATES: Final = frozenset({op.CONSTANT_COMPOSITE_REPLICATE, op.SPEC_CONSTANT_COMPOSITE_REPLICATE})

# Opcode → (how its operands are read: "u"nsigned, "s"igned or as they "are", the operation).
_Operation: TypeAlias = tuple[str, Callable[[int, int], int]]


def _truncated_quotient(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1) if b else 0


_BINARY: Final[dict[int, _Operation]] = {
    op.I_ADD: ("u", operator.add),
    op.I_SUB: ("u", operator.sub),
    op.I_MUL: ("u", operator.mul),
    # The specification leaves division by zero undefined; 0 keeps the reader going.
    op.U_DIV: ("u", lambda a, b: a // b if b else 0),
    op.S_DIV: ("s", _truncated_quotient),
    op.U_MOD: ("u", lambda a, b: a % b if b else 0),
    op.S_MOD: ("s", lambda a, b: a % b if b else 0),
    op.S_REM: ("s", lambda a, b: a - _truncated_quotient(a, b) * b),
    # A shift by the width or more is undefined; 64 bits are the most there are, so nothing grows without limit.
    op.SHIFT_RIGHT_LOGICAL: ("u", lambda a, b: a >> min(b, 64)),
    op.SHIFT_RIGHT_ARITHMETIC: ("s", lambda a, b: a >> min(b & 0xFFFF_FFFF, 64)),
    op.SHIFT_LEFT_LOGICAL: ("u", lambda a, b: a << min(b, 64)),
    op.BITWISE_OR: ("u", operator.or_),
    op.BITWISE_XOR: ("u", operator.xor),
    op.BITWISE_AND: ("u", operator.and_),
    op.LOGICAL_OR: ("are", lambda a, b: a or b),
    op.LOGICAL_AND: ("are", lambda a, b: a and b),
    op.LOGICAL_EQUAL: ("are", operator.eq),
    op.LOGICAL_NOT_EQUAL: ("are", operator.ne),
    op.I_EQUAL: ("u", operator.eq),
    op.I_NOT_EQUAL: ("u", operator.ne),
    op.U_GREATER_THAN: ("u", operator.gt),
    op.S_GREATER_THAN: ("s", operator.gt),
    op.U_GREATER_THAN_EQUAL: ("u", operator.ge),
    op.S_GREATER_THAN_EQUAL: ("s", operator.ge),
    op.U_LESS_THAN: ("u", operator.lt),
    op.S_LESS_THAN: ("s", operator.lt),
    op.U_LESS_THAN_EQUAL: ("u", operator.le),
    op.S_LESS_THAN_EQUAL: ("s", operator.le),
}
_UNARY: Final[dict[int, _Operation]] = {
    op.U_CONVERT: ("u", lambda a, _: a),
    op.S_CONVERT: ("s", lambda a, _: a),
    op.F_CONVERT: ("are", lambda a, _: a),
    op.QUANTIZE_TO_F16: ("are", lambda a, _: a),
    op.S_NEGATE: ("s", lambda a, _: -a),
    op.NOT: ("u", lambda a, _: ~a),
    op.LOGICAL_NOT: ("are", lambda a, _: not a),
}
_OPERATIONS: Final[dict[int, _Operation]] = {**_BINARY, **_UNARY}


class Constants:
    """Values of a module's constants, and its types, under one specialization.

    ``specialization`` maps SpecId to a value; constants that it leaves out have their defaults, ids that the module
    does not have are ignored. Raises `SpirvError` for a value that does not fit and a constant that cannot be computed.
    """

    def __init__(self, index: Index, specialization: Mapping[int, Literal] | None = None) -> None:
        self._index = index
        self._specialization = specialization or {}
        self._values: dict[int, Value] = {}
        self.types = TypeTable(index, self)

    def integer(self, id: int, user: int, what: str) -> int:
        """Return the value of an integer constant that the instruction at offset ``user`` names."""
        value = self.value(id, user)
        if isinstance(value, bool) or not isinstance(value, int):
            raise self._index.error(f"{what} is the constant {id}, which is not an integer")
        return value

    def integers(self, id: int, user: int, what: str) -> tuple[int, ...]:
        """Return the values of a composite constant of integers that the instruction at offset ``user`` names."""
        value = self.value(id, user)
        parts: list[int] = []
        for part in value if isinstance(value, tuple) else ():
            if isinstance(part, int) and not isinstance(part, bool):
                parts.append(part)
        if not isinstance(value, tuple) or len(parts) != len(value):
            raise self._index.error(f"{what} is the constant {id}, which is not made of integers")
        return tuple(parts)

    def variable_type(self, id: int, at: int) -> Type:
        """Return the type that the variable ``id``, declared by the instruction at an offset, points to."""
        index = self._index
        pointer = index.definition(index.words[at + 1], f"the type of the variable {id}")
        if index.opcode(pointer) != op.TYPE_POINTER:
            message = f"the type of the variable {id} is the id {index.words[at + 1]}, which is not a pointer type"
            raise index.error(message)
        return self.types.type(index.words[pointer + 3], at)

    def value(self, id: int, user: int) -> Value:
        """Return the value of any constant. Operands come before their users in a module, so this always ends."""
        values = self._values
        stack = [(id, user)]
        while stack:
            id, user = stack[-1]
            if id in values:
                stack.pop()
                continue
            at = self._index.definition(id, f"an operand of the instruction at word {user}")
            if at >= user:
                raise self._index.error(f"the instruction at word {user} uses the constant {id} before it is declared")
            missing = [(part, at) for part in self._operands(at) if part not in values]
            if missing:
                stack.extend(missing)
            else:
                values[id] = self._compute(id, at)
                stack.pop()
        return values[id]

    def scalar(self, id: int) -> tuple[Scalar, Literal]:
        """Return type and default value of a scalar constant that is defined outside functions."""
        index = self._index
        at = index.definitions[id]
        words = index.words
        scalar = self.types.type(words[at + 1], at)
        if not isinstance(scalar, Scalar):
            raise index.error(f"the constant {id} is a literal of the type {scalar}, not of a scalar")
        opcode = words[at] & 0xFFFF
        if opcode in (op.CONSTANT_TRUE, op.SPEC_CONSTANT_TRUE):
            return scalar, True
        if opcode in (op.CONSTANT_FALSE, op.SPEC_CONSTANT_FALSE):
            return scalar, False
        bits = words[at + 3]
        if scalar.width_bits == 64:
            if index.count(at) < 5:
                raise index.too_short(at, 5)
            bits |= words[at + 4] << 32
        return scalar, decode(scalar, bits)

    def _operands(self, at: int) -> list[int]:
        """Return the ids of the constants that the instruction at an offset consists of."""
        words = self._index.words
        opcode, count = words[at] & 0xFFFF, words[at] >> 16
        if opcode in _COMPOSITES:
            return list(words[at + 3 : at + count])
        if opcode in _REPLICATES:
            return [words[at + 3]]
        if opcode == op.SPEC_CONSTANT_OP:
            operation = words[at + 3]
            if operation == op.COMPOSITE_EXTRACT:
                return list(words[at + 4 : min(at + 5, at + count)])
            if operation in (op.VECTOR_SHUFFLE, op.COMPOSITE_INSERT):
                return list(words[at + 4 : min(at + 6, at + count)])
            if operation == op.SELECT or operation in _OPERATIONS:
                return list(words[at + 4 : at + count])
        return []

    def _compute(self, id: int, at: int) -> Value:
        index = self._index
        words = index.words
        opcode, count = words[at] & 0xFFFF, words[at] >> 16
        if opcode in _COMPOSITES:
            return tuple(self._values[part] for part in words[at + 3 : at + count])
        if opcode == op.SPEC_CONSTANT_OP:
            return self._operate(id, at, count)
        if opcode == op.CONSTANT_NULL or opcode == op.UNDEF:
            return self._null(self.types.type(words[at + 1], at), id)
        if opcode in _REPLICATES:
            _, length = self._inside(self.types.type(words[at + 1], at), id)
            return (self._values[words[at + 3]],) * length
        if not op.CONSTANT_TRUE <= opcode <= op.SPEC_CONSTANT:
            raise index.error(f"the id {id} is used as a constant, but opcode {opcode} at word {at} makes none")
        scalar, value = self.scalar(id)
        if opcode >= op.SPEC_CONSTANT_TRUE and self._specialization:
            spec_id = index.decorations_of(id).get(SPEC_ID)
            if spec_id is not None and spec_id in self._specialization:
                specialized = self._specialization[spec_id]
                try:
                    value = fit(scalar, specialized)
                except ValueError as error:
                    message = f"specialization constant {spec_id}: {specialized!r} does not fit {scalar}: {error}"
                    raise index.error(message) from None
        return value

    def _null(self, type: Type, id: int) -> Value:
        if isinstance(type, Scalar):
            return {"bool": False, "float": 0.0}.get(type.kind, 0)
        if isinstance(type, Struct):
            return tuple([self._null(member.type, id) for member in type.members])
        inner, length = self._inside(type, id)
        return (self._null(inner, id),) * length

    def _inside(self, type: Type, id: int) -> tuple[Type, int]:
        """Return the type of the parts of a composite, and their number."""
        inner: Type
        match type:
            case Vector():
                inner, length = type.component, type.components
            case Matrix():
                inner, length = type.column, type.columns
            case Array():
                inner, length = type.element, type.length
            case Tensor(rank=1, shape=(length,)):
                inner = type.element
            case _:
                inner, length = type, 0
        if not 0 < length <= MAX_ELEMENTS:
            raise self._index.error(f"the constant {id} of the type {type} is not one this reader can compute")
        return inner, length

    def _operate(self, id: int, at: int, count: int) -> Value:
        index = self._index
        words = index.words
        operation = words[at + 3]
        operands = [self._values[part] for part in self._operands(at)]
        result_type = self.types.type(words[at + 1], at)
        try:
            if operation == op.COMPOSITE_EXTRACT:
                return _extract(operands[0], words[at + 5 : at + count])
            if operation == op.COMPOSITE_INSERT:
                return _insert(operands[1], operands[0], words[at + 6 : at + count])
            if operation == op.VECTOR_SHUFFLE:
                pool = [*_parts(operands[0]), *_parts(operands[1])]
                # 0xFFFFFFFF asks for an undefined component.
                return tuple(pool[part] if part != 0xFFFF_FFFF else 0 for part in words[at + 6 : at + count])
            if operation == op.SELECT:
                return _select(*operands)
            how, function = _OPERATIONS[operation]
            operand_type = self._type_of(words[at + 4], at)
            if operation in _BINARY:
                return _apply(how, function, operand_type, result_type, operands[0], operands[1])
            return _apply(how, function, operand_type, result_type, operands[0], operands[0])
        except (KeyError, IndexError, TypeError, ValueError, OverflowError, RecursionError):
            message = f"the specialization constant operation {id} at word {at} (opcode {operation}) cannot be computed"
            raise index.error(message) from None

    def _type_of(self, id: int, user: int) -> Type:
        return self.types.type(self._index.words[self._index.definition(id, "an operand") + 1], user)


def _parts(value: Value) -> tuple[Value, ...]:
    if not isinstance(value, tuple):
        raise TypeError
    return value


def _extract(value: Value, path: Sequence[int]) -> Value:
    for step in path:
        value = _parts(value)[step]
    return value


def _insert(into: Value, part: Value, path: Sequence[int]) -> Value:
    if not path:
        return part
    parts = _parts(into)
    return (*parts[: path[0]], _insert(parts[path[0]], part, path[1:]), *parts[path[0] + 1 :])


def _select(condition: Value, accepted: Value, refused: Value) -> Value:
    if isinstance(condition, tuple):
        rows = zip(condition, _parts(accepted), _parts(refused), strict=True)
        return tuple(yes if choose else no for choose, yes, no in rows)
    return accepted if condition else refused


def _apply(
    how: str, function: Callable[[int, int], int], operand: Type, result: Type, first: Value, second: Value
) -> Value:
    """Apply an operation to scalars, or component by component to vectors."""
    if isinstance(first, tuple):
        if not isinstance(operand, Vector) or not isinstance(result, Vector):
            raise TypeError
        pairs = zip(first, _parts(second), strict=True)
        return tuple([_apply(how, function, operand.component, result.component, one, two) for one, two in pairs])
    if not isinstance(operand, Scalar) or not isinstance(result, Scalar) or isinstance(second, tuple):
        raise TypeError
    if how == "are":
        answer = function(first, second)  # type: ignore[arg-type]
        return answer if result.kind == "float" else bool(answer)
    if not isinstance(first, int) or not isinstance(second, int):
        raise TypeError
    read = Scalar("int" if how == "s" else "uint", operand.width_bits)
    answer = function(int(decode(read, first)), int(decode(read, second)))
    return decode(result, int(answer))


def decode(scalar: Scalar, bits: int) -> Literal:
    """Return the scalar in the low bits of ``bits``; NaN for an unknown float encoding."""
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
    if scalar.encoding not in _ML_DTYPES:
        return float("nan")
    return float(_ml_array(scalar.encoding, bits, f"u{width // 8}"))


def fit(scalar: Scalar, value: Literal) -> Literal:
    """Convert a value to the scalar's type; raise ValueError with the reason when it does not fit.

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
    """Return the value's bytes in this machine's byte order, a Boolean as a VkBool32; ValueError as for `fit`."""
    fitted = fit(scalar, value)
    if scalar.kind == "bool":
        return struct.pack("=I", fitted)
    if scalar.kind != "float":
        code = {8: "b", 16: "h", 32: "i", 64: "q"}[scalar.width_bits]
        return struct.pack("=" + (code if scalar.kind == "int" else code.upper()), fitted)
    if not scalar.encoding:
        return struct.pack("=" + {16: "e", 32: "f", 64: "d"}[scalar.width_bits], fitted)
    return bytes(_ml_array(scalar.encoding, fitted).tobytes())


def _fit_float(scalar: Scalar, value: Literal) -> float:
    try:
        number = float(value)
        if not scalar.encoding and scalar.width_bits > 8:
            struct.pack("<" + {16: "e", 32: "f", 64: "d"}[scalar.width_bits], number)
            return number
    except OverflowError:
        raise ValueError(f"it is beyond the range of {scalar}") from None
    if scalar.encoding not in _ML_DTYPES:
        raise ValueError(f"values of the type {scalar} cannot be written")
    rounded = float(_ml_array(scalar.encoding, number))
    if scalar.width_bits == 8:
        highest = 448.0 if scalar.encoding == "float8_e4m3" else 57344.0
        if abs(number) > highest and rounded != number:
            raise ValueError(f"the range is {-highest} to {highest}")
    elif abs(rounded) == float("inf") != abs(number):
        raise ValueError(f"it is beyond the range of {scalar}")
    return number


_ML_DTYPES: Final = {"bfloat16": "bfloat16", "float8_e4m3": "float8_e4m3fn", "float8_e5m2": "float8_e5m2"}
"""The names that encodings have in ml_dtypes."""


def _ml_array(encoding: str, value: float, written_as: str = "") -> Any:
    """Return an array of one value of an encoding, or of bits of the type ``written_as``. Few modules need these."""
    import ml_dtypes
    import numpy

    dtype = getattr(ml_dtypes, _ML_DTYPES[encoding])
    return numpy.array(value, written_as).view(dtype) if written_as else numpy.array(value, dtype)
