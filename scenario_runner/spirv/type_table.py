"""Types of a module by id, built from its words under one specialization."""

from typing import Final, Protocol

from scenario_runner.spirv._generated import opcodes as op
from scenario_runner.spirv._generated.enumerants import (
    ARRAY_STRIDE,
    BLOCK,
    BUFFER_BLOCK,
    COL_MAJOR,
    DIMS,
    IMAGE_FORMATS,
    MATRIX_STRIDE,
    NON_READABLE,
    NON_WRITABLE,
    OFFSET,
    ROW_MAJOR,
)
from scenario_runner.spirv.index import Index, enumerant_name
from scenario_runner.spirv.types import (
    ACCELERATION_STRUCTURE,
    SAMPLER,
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


class Lengths(Protocol):
    """The constants that lengths and shapes are: `constants.Constants`, which has a table itself."""

    def integer(self, id: int, user: int, what: str) -> int: ...

    def integers(self, id: int, user: int, what: str) -> tuple[int, ...]: ...


MAX_DEPTH: Final = 100
"""Levels that types may nest, so that code may walk them recursively. (SPIR-V allows 255; no compiler uses that.)"""

MAX_DETOURS: Final = 20
"""Steps from the length of an array over the type of its constant to the length of another array, and so on."""

MAX_PARTS: Final = 100_000
"""Members of a type, those of nested structures included: bounds the time of walking a type."""

# Types whose first operand is the only type they consist of.
_MADE_OF_ONE: Final = frozenset(
    {
        op.TYPE_VECTOR,
        op.TYPE_MATRIX,
        op.TYPE_IMAGE,
        op.TYPE_SAMPLED_IMAGE,
        op.TYPE_ARRAY,
        op.TYPE_RUNTIME_ARRAY,
        op.TYPE_TENSOR,
    }
)

_FLOAT_ENCODINGS: Final = {0: "bfloat16", 4214: "float8_e4m3", 4215: "float8_e5m2"}


class TypeTable:
    """Types by id. Array lengths and tensor shapes follow the specialization of ``constants``.

    Raises `SpirvError` for an id that is not a type, a type that uses one declared after it (as a type that contains
    itself must), nesting deeper than `MAX_DEPTH` and more than `MAX_PARTS` members.
    """

    def __init__(self, index: Index, constants: Lengths) -> None:
        self._index = index
        self.constants = constants
        self._types: dict[int, Type] = {}
        self._parts: dict[int, int] = {}
        self._depths: dict[int, int] = {}
        self._active = 0

    def type(self, id: int, user: int) -> Type:
        """Return the type ``id`` that the instruction at offset ``user`` names."""
        found = self._types.get(id)
        if found is not None:
            return found
        if self._active >= MAX_DETOURS:
            raise self._index.error(f"the type {id} and constants need each other over more than {MAX_DETOURS} steps")
        self._active += 1
        try:
            return self._resolve(id, user)
        finally:
            self._active -= 1

    def _resolve(self, id: int, user: int) -> Type:
        """Build a type after all types it consists of."""
        index, types = self._index, self._types
        stack = [(id, user)]
        while stack:
            part, user = stack[-1]
            if part in types:
                stack.pop()
                continue
            at = index.definitions.get(part)
            if at is None:
                types[part] = self._unknown(part, user)
                continue
            if at >= user:
                raise index.error(
                    f"the instruction at word {user} uses the type {part} before its declaration at word {at}"
                )
            parts = self._parts_of(at)
            missing = [(inner, at) for inner in parts if inner not in types]
            if missing:
                stack.extend(missing)
                continue
            depth = self._depths[part] = 1 + max([self._depths.get(inner, 0) for inner in parts], default=0)
            if depth > MAX_DEPTH:
                raise index.error(f"the type {part} is nested deeper than {MAX_DEPTH} levels")
            types[part] = self._build(part, at)
        return types[id]

    def _parts_of(self, at: int) -> list[int]:
        """Return the types that the type at an offset consists of."""
        words = self._index.words
        opcode = words[at] & 0xFFFF
        if opcode == op.TYPE_STRUCT:
            return [id for id in words[at + 2 : at + (words[at] >> 16)] if self._later_pointer(id, at) is None]
        return [words[at + 2]] if opcode in _MADE_OF_ONE else []

    def _later_pointer(self, id: int, at: int) -> Pointer | None:
        """Return the pointer type of a member that is declared later (OpTypeForwardPointer)."""
        words = self._index.words
        later = self._index.definitions.get(id, 0)
        if later > at and words[later] & 0xFFFF == op.TYPE_POINTER:
            return Pointer(words[later + 2], words[later + 3])
        return None

    def _unknown(self, id: int, user: int) -> Type:
        """Return a type of an extension that this reader does not know."""
        index = self._index
        at = index.unknown.get(id)
        if at is None or at >= user:
            raise index.error(f"the instruction at word {user} uses the type {id}, which nothing in the module defines")
        return Opaque(f"OpType{index.opcode(at)}")

    def _build(self, id: int, at: int) -> Type:
        index = self._index
        words = index.words
        opcode = words[at] & 0xFFFF
        if opcode == op.TYPE_INT:
            return Scalar("int" if words[at + 3] else "uint", self._width(words[at + 2], at))
        if opcode == op.TYPE_FLOAT:
            encoding = words[at + 3] if index.count(at) > 3 else None
            name = "" if encoding is None else enumerant_name(_FLOAT_ENCODINGS, encoding, "FPEncoding")
            return Scalar("float", self._width(words[at + 2], at), name)
        if opcode == op.TYPE_VECTOR:
            component = self.type(words[at + 2], at)
            if not isinstance(component, Scalar):
                raise index.error(f"the vector type {id} has components of the type {component}, not scalars")
            return Vector(component, words[at + 3])
        if opcode == op.TYPE_STRUCT:
            return self._struct(id, at)
        if opcode == op.TYPE_POINTER:
            return Pointer(words[at + 2], words[at + 3])
        if opcode == op.TYPE_ARRAY or opcode == op.TYPE_RUNTIME_ARRAY:
            element = self.type(words[at + 2], at)
            self._parts[id] = self._parts.get(words[at + 2], 1)
            stride = index.decorations_of(id).get(ARRAY_STRIDE)
            if opcode == op.TYPE_RUNTIME_ARRAY:
                return RuntimeArray(element, stride)
            length = self.constants.integer(words[at + 3], at, f"the length of the array type {id}")
            if length < 1:
                raise index.error(f"the array type {id} has the length {length}, at least 1 is needed")
            return Array(element, length, stride)
        if opcode == op.TYPE_BOOL:
            return Scalar("bool", 32)
        if opcode == op.TYPE_MATRIX:
            column = self.type(words[at + 2], at)
            if not isinstance(column, Vector):
                raise index.error(f"the matrix type {id} has columns of the type {column}, not vectors")
            return Matrix(column, words[at + 3])
        if opcode == op.TYPE_IMAGE:
            return self._image(at)
        if opcode == op.TYPE_SAMPLER:
            return SAMPLER
        if opcode == op.TYPE_SAMPLED_IMAGE:
            image = self.type(words[at + 2], at)
            if not isinstance(image, Image):
                raise index.error(f"the sampled image type {id} is made of the type {image}, not of an image")
            return SampledImage(image)
        if opcode == op.TYPE_TENSOR:
            return self._tensor(id, at)
        if opcode == op.TYPE_ACCELERATION_STRUCTURE:
            return ACCELERATION_STRUCTURE
        if opcode == op.TYPE_UNTYPED_POINTER:
            return Pointer(words[at + 2], None)
        if opcode in op.TYPE_NAMES:
            return Opaque(op.TYPE_NAMES[opcode])
        raise index.error(
            f"the id {id} is used as a type, but the instruction at word {at} (opcode {opcode}) does not declare one"
        )

    def _width(self, width: int, at: int) -> int:
        if width not in (8, 16, 32, 64):
            raise self._index.error(f"the number type at word {at} has {width} bits, not 8, 16, 32 or 64")
        return width

    def _image(self, at: int) -> Image:
        words = self._index.words
        sampled_type = self.type(words[at + 2], at)
        return Image(
            sampled_type=sampled_type if isinstance(sampled_type, Scalar) else None,
            dim=enumerant_name(DIMS, words[at + 3], "Dim"),
            depth={0: False, 1: True}.get(words[at + 4]),
            arrayed=words[at + 5] != 0,
            multisampled=words[at + 6] != 0,
            sampled={1: True, 2: False}.get(words[at + 7]),
            format=enumerant_name(IMAGE_FORMATS, words[at + 8], "ImageFormat"),
        )

    def _tensor(self, id: int, at: int) -> Tensor:
        index = self._index
        words, count = index.words, index.count(at)
        element = self.type(words[at + 2], at)
        if not isinstance(element, Scalar):
            raise index.error(f"the tensor type {id} has elements of the type {element}, not scalars")
        rank = self.constants.integer(words[at + 3], at, f"the rank of the tensor type {id}") if count > 3 else None
        shape = self.constants.integers(words[at + 4], at, f"the shape of the tensor type {id}") if count > 4 else None
        if shape is not None and len(shape) != rank:
            raise index.error(f"the tensor type {id} has the rank {rank}, but {len(shape)} dimensions in its shape")
        return Tensor(element, rank, shape)

    def _struct(self, id: int, at: int) -> Struct:
        index = self._index
        words, count = index.words, index.count(at)
        members = []
        size = 0
        parts = 1
        for number in range(count - 2):
            member_id = words[at + 2 + number]
            type = self._later_pointer(member_id, at) or self.type(member_id, at)
            parts += self._parts.get(member_id, 1)
            decorations = index.member_decorations_of(id, number)
            row_major = True if ROW_MAJOR in decorations else False if COL_MAJOR in decorations else None
            matrix_stride = decorations.get(MATRIX_STRIDE)
            offset = decorations.get(OFFSET)
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
                    readable=NON_READABLE not in decorations,
                    writable=NON_WRITABLE not in decorations,
                )
            )
        if parts > MAX_PARTS:
            raise index.error(f"the structure {id} has more than {MAX_PARTS} members, nested ones included")
        self._parts[id] = parts
        decorations = index.decorations_of(id)
        block = "Block" if BLOCK in decorations else "BufferBlock" if BUFFER_BLOCK in decorations else None
        return Struct(id, index.name_of(id), tuple(members), size, block)
