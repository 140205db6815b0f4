"""A module's types and constants by id, under one specialization.

Each is built on request. Declarations precede their uses, except pointers. One pass in module order over a declaration
and its operands therefore builds it without recursion.

Source: SPIR-V specification, "Type-Declaration Instructions" and "Constant-Creation Instructions"; SPV_ARM_tensors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from scenario_runner.errors import SpirvError
from scenario_runner.errors.diagnostic import Diagnostic
from scenario_runner.shaders.spirv._generated import enumerants as spv
from scenario_runner.shaders.spirv._generated import opcodes as op
from scenario_runner.shaders.spirv.constants import VALUES, Literal, Value, compute, decode, fit
from scenario_runner.shaders.spirv.index import Index, enumerant_name
from scenario_runner.shaders.spirv.types import (
    Array,
    Image,
    Matrix,
    Member,
    Opaque,
    Pointer,
    RuntimeArray,
    SampledImage,
    Scalar,
    Struct,
    Tensor,
    Type,
    Vector,
    extent_bytes,
)

MAX_DEPTH: Final = 100
"""Most levels of nested types, which code may walk recursively. (SPIR-V allows 255; no compiler needs them.)"""

MAX_PARTS: Final = 100_000
"""Most members of a type, including nested structures: bounds the time for walking a type."""

MAX_ELEMENTS: Final = 1024
"""Elements of a null or replicated composite, whose length is a mere number in the module."""

# Types with a single inner type, the first operand.
_MADE_OF_ONE: Final = frozenset(
    {op.TYPE_VECTOR, op.TYPE_MATRIX, op.TYPE_IMAGE, op.TYPE_SAMPLED_IMAGE}
    | {op.TYPE_ARRAY, op.TYPE_RUNTIME_ARRAY, op.TYPE_TENSOR}
)
_FLOAT_ENCODINGS: Final = {0: "bfloat16", 4214: "float8_e4m3", 4215: "float8_e5m2"}

_COMPOSITES: Final = frozenset({op.CONSTANT_COMPOSITE, op.SPEC_CONSTANT_COMPOSITE})
_REPLICATES: Final = frozenset({op.CONSTANT_COMPOSITE_REPLICATE, op.SPEC_CONSTANT_COMPOSITE_REPLICATE})
_LITERALS: Final = {
    **dict.fromkeys((op.CONSTANT_TRUE, op.SPEC_CONSTANT_TRUE), True),
    **dict.fromkeys((op.CONSTANT_FALSE, op.SPEC_CONSTANT_FALSE), False),
}
_CONSTANTS: Final = frozenset(
    {*_COMPOSITES, *_REPLICATES, *_LITERALS, op.CONSTANT, op.SPEC_CONSTANT, op.SPEC_CONSTANT_OP}
    | {op.CONSTANT_NULL, op.CONSTANT_SAMPLER, op.UNDEF}
)


class Declarations:
    """Types and constants of a module.

    ``specialization`` maps SpecIds to values. Other constants have their defaults; ids that the module lacks are
    ignored.

    A request for an invalid declaration raises `SpirvError`. A type must not use a later type or itself, be nested
    deeper than `MAX_DEPTH`, or have more than `MAX_PARTS` members. A value must fit the constant.
    """

    def __init__(self, index: Index, specialization: Mapping[int, Literal] | None = None) -> None:
        self.index = index
        self.specialization = specialization or {}
        self._types: dict[int, Type] = {}
        self._values: dict[int, Value] = {}
        self._problems: dict[int, tuple[Diagnostic, ...]] = {}
        self._built: set[int] = set()
        self._depths: dict[int, int] = {}
        self._parts: dict[int, int] = {}
        self._nulls: dict[int, Value] = {}

    def _require(self, id: int, user: int) -> None:
        """Build the constant or type ``id``, operands first. The instruction at offset ``user`` uses this id."""
        definitions, words = self.index.definitions, self.index.words
        if id not in self._built and definitions.get(id, user) < user:
            missing: dict[int, int] = {}  # offset → id
            pending = [id]
            while pending:
                id_below = pending.pop()
                at = definitions.get(id_below)
                if at is not None and id_below not in self._built:
                    self._built.add(id_below)
                    missing[at] = id_below
                    pending += words[at + 1 : at + self.index.count(at)]
            for at in sorted(missing):
                self._build(missing[at], at)
        if id in self._problems:
            raise SpirvError(self._problems[id])

    def _build(self, id: int, at: int) -> None:
        """Build a type or compute a constant, or note the problem."""
        opcode = self.index.opcode(at)
        try:
            if opcode in _CONSTANTS:
                self._values[id] = self._constant(id, opcode, at)
            elif opcode in op.TYPE_NAMES:
                self._measure(id, opcode, at)
                self._types[id] = self._type(id, opcode, at)
        except SpirvError as error:
            self._problems[id] = error.problems

    def type(self, id: int, user: int) -> Type:
        """Return the type ``id`` that the instruction at offset ``user`` names."""
        self._require(id, user)
        index = self.index
        at = index.definitions.get(id)
        if id in self._types and at is not None and at < user:
            return self._types[id]
        if at is None and index.unknown.get(id, user) < user:
            return Opaque(f"OpType{index.opcode(index.unknown[id])}")
        if at is None:
            raise index.error(f"the instruction at word {user} uses the type {id}, which nothing in the module defines")
        opcode = index.opcode(at)
        if at >= user and opcode == op.TYPE_POINTER:  # announced by OpTypeForwardPointer
            return Pointer(index.words[at + 2], index.words[at + 3])
        if at >= user:
            raise index.error(f"the instruction at word {user} uses the type {id} before its declaration at word {at}")
        raise index.error(
            f"the id {id} is used as a type, but the instruction at word {at} (opcode {opcode}) does not declare one"
        )

    def value(self, id: int, user: int) -> Value:
        """Return the value of the constant ``id`` that the instruction at offset ``user`` names."""
        self._require(id, user)
        index = self.index
        at = index.definition(id, f"an operand of the instruction at word {user}")
        if id in self._values and at < user:
            return self._values[id]
        if at >= user:
            raise index.error(f"the instruction at word {user} uses the constant {id} before it is declared")
        raise index.error(f"the id {id} is used as a constant, but the instruction at word {at} declares none")

    def integer(self, id: int, user: int, what: str) -> int:
        """Return the value of an integer constant that the instruction at offset ``user`` names."""
        value = self.value(id, user)
        if type(value) is not int:
            raise self.index.error(f"{what} is the constant {id}, which is not an integer")
        return value

    def integers(self, id: int, user: int, what: str) -> tuple[int, ...]:
        """Return the values of a composite integer constant that the instruction at offset ``user`` names."""
        value = self.value(id, user)
        parts = [part for part in value if type(part) is int] if isinstance(value, tuple) else []
        if not isinstance(value, tuple) or len(parts) != len(value):
            raise self.index.error(f"{what} is the constant {id}, which is not made of integers")
        return tuple(parts)

    def variable_type(self, id: int, at: int) -> Type:
        """Return the type behind a variable's pointer. The instruction at offset ``at`` declares the variable."""
        index = self.index
        pointer = index.definition(index.words[at + 1], f"the type of the variable {id}")
        if index.opcode(pointer) != op.TYPE_POINTER:
            message = f"the type of the variable {id} is the id {index.words[at + 1]}, which is not a pointer type"
            raise index.error(message)
        return self.type(index.words[pointer + 3], at)

    def _measure(self, id: int, opcode: int, at: int) -> None:
        """Note a type's nesting depth and number of members."""
        words = self.index.words
        parts: Sequence[int] = ()
        if opcode in _MADE_OF_ONE:
            parts = words[at + 2 : at + 3]
        elif opcode == op.TYPE_STRUCT:
            parts = words[at + 2 : at + self.index.count(at)]
        self._depths[id] = 1 + max([self._depths.get(part, 0) for part in parts], default=0)
        self._parts[id] = max(1, sum([self._parts.get(part, 1) for part in parts]))
        if self._depths[id] > MAX_DEPTH:
            raise self.index.error(f"the type {id} is nested deeper than {MAX_DEPTH} levels")
        if self._parts[id] > MAX_PARTS:
            raise self.index.error(f"the structure {id} has more than {MAX_PARTS} members, nested ones included")

    def _type(self, id: int, opcode: int, at: int) -> Type:
        index = self.index
        words = index.words
        inner = self.type(words[at + 2], at) if opcode in _MADE_OF_ONE else None
        match opcode, inner:
            case op.TYPE_BOOL, _:
                return Scalar("bool", 32)
            case op.TYPE_INT, _:
                return Scalar("int" if words[at + 3] else "uint", self._width(words[at + 2], at))
            case op.TYPE_FLOAT, _:
                encoding = words[at + 3] if index.count(at) > 3 else None
                name = "" if encoding is None else enumerant_name(_FLOAT_ENCODINGS, encoding, "FPEncoding")
                return Scalar("float", self._width(words[at + 2], at), name)
            case op.TYPE_POINTER, _:
                return Pointer(words[at + 2], words[at + 3])
            case op.TYPE_UNTYPED_POINTER, _:
                return Pointer(words[at + 2], None)
            case op.TYPE_STRUCT, _:
                return self._struct(id, at)
            case op.TYPE_VECTOR, Scalar():
                return Vector(inner, words[at + 3])
            case op.TYPE_MATRIX, Vector():
                return Matrix(inner, words[at + 3])
            case op.TYPE_RUNTIME_ARRAY, _ if inner is not None:
                return RuntimeArray(inner, index.decorations_of(id).get(spv.ARRAY_STRIDE))
            case op.TYPE_ARRAY, _ if inner is not None:
                length = self.integer(words[at + 3], at, f"the length of the array type {id}")
                if length < 1:
                    raise index.error(f"the array type {id} has the length {length}, at least 1 is needed")
                return Array(inner, length, index.decorations_of(id).get(spv.ARRAY_STRIDE))
            case op.TYPE_IMAGE, _:
                return Image(
                    sampled_type=inner if isinstance(inner, Scalar) else None,
                    dim=enumerant_name(spv.DIMS, words[at + 3], "Dim"),
                    depth={0: False, 1: True}.get(words[at + 4]),
                    arrayed=words[at + 5] != 0,
                    multisampled=words[at + 6] != 0,
                    sampled={1: True, 2: False}.get(words[at + 7]),
                    format=enumerant_name(spv.IMAGE_FORMATS, words[at + 8], "ImageFormat"),
                )
            case op.TYPE_SAMPLED_IMAGE, Image():
                return SampledImage(inner)
            case op.TYPE_TENSOR, Scalar():
                return self._tensor(inner, id, at)
            case _, None:
                return Opaque(op.TYPE_NAMES[opcode])
        raise index.error(f"the type {id} ({op.TYPE_NAMES[opcode]}) cannot be made of the type {inner}")

    def _width(self, width: int, at: int) -> int:
        if width not in (8, 16, 32, 64):
            raise self.index.error(f"the number type at word {at} has {width} bits, not 8, 16, 32 or 64")
        return width

    def _tensor(self, element: Scalar, id: int, at: int) -> Tensor:
        index = self.index
        words, count = index.words, index.count(at)
        rank = self.integer(words[at + 3], at, f"the rank of the tensor type {id}") if count > 3 else None
        shape = self.integers(words[at + 4], at, f"the shape of the tensor type {id}") if count > 4 else None
        if shape is not None and len(shape) != rank:
            raise index.error(f"the tensor type {id} has the rank {rank}, but {len(shape)} dimensions in its shape")
        return Tensor(element, rank, shape)

    def _struct(self, id: int, at: int) -> Struct:
        index = self.index
        members = []
        size = 0
        for number, member_id in enumerate(index.words[at + 2 : at + index.count(at)]):
            type = self.type(member_id, at)
            decorations = index.member_decorations_of(id, number)
            row_major = True if spv.ROW_MAJOR in decorations else False if spv.COL_MAJOR in decorations else None
            matrix_stride = decorations.get(spv.MATRIX_STRIDE)
            offset = decorations.get(spv.OFFSET)
            member_size = extent_bytes(type, matrix_stride, bool(row_major))
            size = max(size, (offset or 0) + member_size)
            members.append(
                Member(
                    name=index.member_name_of(id, number),
                    type=type,
                    offset_bytes=offset,
                    size_bytes=member_size,
                    matrix_stride_bytes=matrix_stride,
                    row_major=row_major,
                    readable=spv.NON_READABLE not in decorations,
                    writable=spv.NON_WRITABLE not in decorations,
                )
            )
        decorations = index.decorations_of(id)
        block = "Block" if spv.BLOCK in decorations else "BufferBlock" if spv.BUFFER_BLOCK in decorations else None
        return Struct(id, index.name_of(id), tuple(members), size, block)

    def _constant(self, id: int, opcode: int, at: int) -> Value:
        index = self.index
        words, end = index.words, at + index.count(at)
        if opcode in _COMPOSITES:
            return tuple([self.value(part, at) for part in words[at + 3 : end]])
        type = self.type(words[at + 1], at)
        if opcode in _REPLICATES:
            return (self.value(words[at + 3], at),) * self._inside(type, id)[1]
        if opcode == op.SPEC_CONSTANT_OP:
            return self._operation(id, type, at, end)
        if opcode == op.CONSTANT_NULL or opcode == op.UNDEF:
            return self._null(type, id)
        if not isinstance(type, Scalar):
            raise index.error(f"the constant {id} is a literal of the type {type}, not of a scalar")
        if opcode in (op.SPEC_CONSTANT_TRUE, op.SPEC_CONSTANT_FALSE, op.SPEC_CONSTANT):
            spec_id = index.decorations_of(id).get(spv.SPEC_ID, -1)
            if spec_id in self.specialization:
                try:
                    return fit(type, self.specialization[spec_id])
                except ValueError as error:
                    value = self.specialization[spec_id]
                    message = f"specialization constant {spec_id}: {value!r} does not fit {type}: {error}"
                    raise index.error(message) from None
        if opcode in _LITERALS:
            return _LITERALS[opcode]
        if type.width_bits == 64 and end < at + 5:
            raise index.too_short(at, 5)
        return decode(type, words[at + 3] | (words[at + 4] << 32 if type.width_bits == 64 else 0))

    def _null(self, type: Type, id: int) -> Value:
        if isinstance(type, Scalar):
            return {"bool": False, "float": 0.0}.get(type.kind, 0)
        if isinstance(type, Struct):
            if type.id not in self._nulls:
                self._nulls[type.id] = tuple([self._null(member.type, id) for member in type.members])
            return self._nulls[type.id]
        inner, length = self._inside(type, id)
        return (self._null(inner, id),) * length

    def _inside(self, type: Type, id: int) -> tuple[Type, int]:
        """Return the type of a composite's parts, and their number."""
        inner: Type
        match type:
            case Vector(inner, length) | Matrix(inner, length) | Array(inner, length) | Tensor(inner, 1, (length,)):
                pass
            case _:
                inner, length = type, 0
        if not 0 < length <= MAX_ELEMENTS:
            raise self.index.error(f"the constant {id} of the type {type} cannot be computed")
        return inner, length

    def _operation(self, id: int, result_type: Type, at: int, end: int) -> Value:
        """Compute an OpSpecConstantOp."""
        words = self.index.words
        operation, operands = words[at + 3], words[at + 4 : end]
        count = VALUES.get(operation, len(operands))
        try:
            values = [self.value(operand, at) for operand in operands[:count]]
            operand_type = self.type(words[self.index.definitions[operands[0]] + 1], at)
            return compute(operation, operand_type, result_type, values, operands[count:])
        except (IndexError, KeyError, TypeError, ValueError, OverflowError, RecursionError):
            message = f"the specialization constant operation {id} at word {at} (opcode {operation}) cannot be computed"
            raise self.index.error(message) from None


def declarations_of(index: Index, specialization: Mapping[int, Literal] | None = None) -> Declarations:
    """Return the declarations of a module. Those with default specialization constants are cached."""
    return Declarations(index, specialization) if specialization else index.cached(Declarations)
