"""Types of a SPIR-V module (scalars, vectors, arrays, structures, images, tensors, ...) and their sizes.

Source: SPIR-V specification, sections "Type-Declaration Instructions" and "Validation Rules for Explicit Layout";
SPV_ARM_tensors; SPV_KHR_bfloat16 and SPV_EXT_float8 for the encodings. `declarations.Declarations` builds these.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple, TypeAlias


class Scalar(NamedTuple):
    """OpTypeBool, OpTypeInt or OpTypeFloat.

    ``kind`` is "bool", "int" (signed), "uint" or "float"; ``width_bits`` is 32 for a Boolean. ``encoding`` is empty for
    IEEE 754 numbers, otherwise "bfloat16", "float8_e4m3", "float8_e5m2" or ``FPEncoding`` and a number.
    """

    kind: str
    width_bits: int
    encoding: str = ""

    @property
    def size_bytes(self) -> int:
        """Bytes of one value in memory."""
        return (self.width_bits + 7) // 8

    @property
    def is_bool(self) -> bool:
        """Return whether values are true or false. They have no size in memory."""
        return self.kind == "bool"

    @property
    def is_float(self) -> bool:
        """Return whether values are floating-point numbers, of any encoding."""
        return self.kind == "float"

    @property
    def is_signed(self) -> bool:
        """Return whether values are integers with a sign."""
        return self.kind == "int"

    def __str__(self) -> str:
        return "bool" if self.is_bool else self.encoding or f"{self.kind}{self.width_bits}"


class Vector(NamedTuple):
    """OpTypeVector: ``components`` scalars."""

    component: Scalar
    components: int

    @property
    def size_bytes(self) -> int:
        """Bytes of one value in memory, without padding."""
        return self.component.size_bytes * self.components

    def __str__(self) -> str:
        return f"{self.component}x{self.components}"


class Matrix(NamedTuple):
    """OpTypeMatrix: ``columns`` column vectors."""

    column: Vector
    columns: int

    def __str__(self) -> str:
        return f"{self.column.component}x{self.column.components}x{self.columns}"


class Array(NamedTuple):
    """OpTypeArray: ``length`` elements, ``stride_bytes`` apart (None without an ArrayStride)."""

    element: "Type"
    length: int
    stride_bytes: int | None

    def __str__(self) -> str:
        return _array_name(self)


class RuntimeArray(NamedTuple):
    """OpTypeRuntimeArray: as many elements as fit into the bound buffer."""

    element: "Type"
    stride_bytes: int | None

    def __str__(self) -> str:
        return _array_name(self)


class Member(NamedTuple):
    """A member of a structure.

    ``offset_bytes`` is None without an Offset decoration, ``matrix_stride_bytes`` without a MatrixStride. ``row_major``
    is None without RowMajor or ColMajor. ``size_bytes`` counts from the member's first to last byte (see `Struct`).
    ``readable`` and ``writable`` follow NonReadable and NonWritable.
    """

    name: str
    type: "Type"
    offset_bytes: int | None
    size_bytes: int
    matrix_stride_bytes: int | None = None
    row_major: bool | None = None
    readable: bool = True
    writable: bool = True

    @property
    def array_stride_bytes(self) -> int | None:
        """ArrayStride of the member's type if it is an array."""
        return self.type.stride_bytes if isinstance(self.type, Array | RuntimeArray) else None

    @property
    def majorness(self) -> str | None:
        """Order of a matrix: "row", "column", or None without a decoration."""
        return None if self.row_major is None else "row" if self.row_major else "column"


class Struct(NamedTuple):
    """OpTypeStruct.

    ``size_bytes`` is the least size of a buffer that contains every member: from byte 0 to the last member's end.
    Padding at the end does not count, and a runtime array at the end counts as **no** elements. ``members`` are in
    declaration order, which may differ from offset order. ``block`` is "Block", "BufferBlock" or None.
    """

    id: int
    name: str
    members: tuple[Member, ...]
    size_bytes: int
    block: str | None = None

    @property
    def runtime_stride_bytes(self) -> int | None:
        """Bytes that each element of the final runtime array adds; None without such an array."""
        type: Type = self
        while isinstance(type, Struct) and type.members:
            type = type.members[-1].type
        if not isinstance(type, RuntimeArray):
            return None
        return extent_bytes(type.element) if type.stride_bytes is None else type.stride_bytes

    def __str__(self) -> str:
        return self.name or f"struct {self.id}"


class Pointer(NamedTuple):
    """OpTypePointer, or OpTypeUntypedPointerKHR with ``pointee`` None. The pointed-to type is not read."""

    storage_class: int
    pointee: int | None

    def __str__(self) -> str:
        return "pointer"


class Image(NamedTuple):
    """OpTypeImage.

    ``sampled_type`` is None for void. ``dim`` and ``format`` are names of the specification, such as "2D", "Buffer",
    "SubpassData" and "Rgba8", "Unknown". ``depth`` is True, False, or None if the module does not say. ``sampled`` is
    True with a sampler, False for a storage image, and None if only the run time knows.
    """

    sampled_type: Scalar | None
    dim: str
    depth: bool | None
    arrayed: bool
    multisampled: bool
    sampled: bool | None
    format: str

    def __str__(self) -> str:
        flags = ("Array" if self.arrayed else "") + ("MS" if self.multisampled else "")
        return f"image{self.dim}{flags}<{self.sampled_type or 'void'}, {self.format}>"


class SampledImage(NamedTuple):
    """OpTypeSampledImage: an image together with a sampler."""

    image: Image

    def __str__(self) -> str:
        return f"sampled {self.image}"


class Tensor(NamedTuple):
    """OpTypeTensorARM: ``rank`` and ``shape`` are None if the type leaves them open."""

    element: Scalar
    rank: int | None
    shape: tuple[int, ...] | None

    def __str__(self) -> str:
        if self.shape is not None:
            return f"tensor<{'x'.join(map(str, self.shape))}x{self.element}>"
        return f"tensor<{self.element}, rank {'?' if self.rank is None else self.rank}>"


class Opaque(NamedTuple):
    """Any other type, as the instruction's name: "OpTypeSampler", "OpTypeAccelerationStructureKHR", ..."""

    name: str

    def __str__(self) -> str:
        return self.name


Type: TypeAlias = (
    Scalar | Vector | Matrix | Array | RuntimeArray | Struct | Pointer | Image | SampledImage | Tensor | Opaque
)


def _array_name(type: "Type") -> str:
    """Name an array like ``float32x4[3][]``: outermost length first, as in GLSL and C."""
    lengths = ""
    while isinstance(type, Array | RuntimeArray):
        lengths += f"[{type.length}]" if isinstance(type, Array) else "[]"
        type = type.element
    return f"{type}{lengths}"


POINTER_SIZE_BYTES: Final = 8
"""Pointers in memory point to PhysicalStorageBuffer and have 64 bits (SPIR-V, addressing model)."""


def extent_bytes(type: Type, matrix_stride: int | None = None, row_major: bool = False) -> int:
    """Count the bytes from a value's first to last byte, by the decorations of type and member.

    An array's last element and a matrix's last vector count without padding after them. A runtime array counts as no
    elements. A missing stride counts as the element's size. Types without a size in memory, such as images, count as 0.
    """
    skipped = 0
    while isinstance(type, Array):
        if type.stride_bytes is None:
            return skipped + type.length * extent_bytes(type.element, matrix_stride, row_major)
        skipped += type.stride_bytes * (type.length - 1)
        type = type.element
    if isinstance(type, Scalar | Vector | Struct):
        return skipped + type.size_bytes
    if isinstance(type, Matrix):
        vector, count = matrix_vectors(type, row_major)
        stride = vector.size_bytes if matrix_stride is None else matrix_stride
        return skipped + stride * (count - 1) + vector.size_bytes
    if isinstance(type, RuntimeArray):
        return skipped
    return skipped + (POINTER_SIZE_BYTES if isinstance(type, Pointer) else 0)


def innermost(type: Type) -> Type:
    """Return the innermost element of nested arrays."""
    while isinstance(type, Array | RuntimeArray):
        type = type.element
    return type


def scalars(type: Type) -> Iterator[Scalar]:
    """Yield the types of the numbers in a type."""
    match innermost(type):
        case Scalar() as scalar:
            yield scalar
        case Vector(component, _) | Matrix(Vector(component, _), _):
            yield component
        case Struct(members=members):
            for member in members:
                yield from scalars(member.type)


def matrix_vectors(type: Matrix, row_major: bool) -> tuple[Vector, int]:
    """Return a matrix's vectors in memory (rows or columns), and their number."""
    if row_major:
        return Vector(type.column.component, type.columns), type.column.components
    return type.column, type.columns


def natural_size_and_alignment(type: Type) -> tuple[int, int]:
    """Return size and alignment in bytes under GLSL's std430 rules, with 32-bit Booleans and without decorations.

    Vulkan counts Workgroup memory without an explicit layout by these rules: Vulkan specification, "Shaders", section
    "Workgroup memory" of "Memory Model".
    """
    if isinstance(type, Scalar):
        return type.size_bytes, type.size_bytes
    if isinstance(type, Vector):
        return type.size_bytes, type.component.size_bytes * (2 if type.components == 2 else 4)
    if isinstance(type, Matrix):
        size, alignment = natural_size_and_alignment(type.column)
        return align_up(size, alignment) * type.columns, alignment
    if isinstance(type, Array):
        size, alignment = natural_size_and_alignment(type.element)
        return align_up(size, alignment) * type.length, alignment
    if isinstance(type, Struct):
        size, alignment = 0, 1
        for member in type.members:
            member_size, member_alignment = natural_size_and_alignment(member.type)
            size = align_up(size, member_alignment) + member_size
            alignment = max(alignment, member_alignment)
        return align_up(size, alignment), alignment
    if isinstance(type, Pointer):
        return POINTER_SIZE_BYTES, POINTER_SIZE_BYTES
    return 0, 1


def align_up(value: int, alignment: int) -> int:
    """Round up to a multiple of ``alignment``."""
    return (value + alignment - 1) // alignment * alignment
