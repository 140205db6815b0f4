"""Types of a SPIR-V module: scalars, vectors, matrices, arrays, structures, images, tensors and the rest.

Source: SPIR-V specification, sections "Type-Declaration Instructions" and "Validation Rules for Explicit Layout";
SPV_ARM_tensors; SPV_KHR_bfloat16 and SPV_EXT_float8 for the encodings. `type_table.TypeTable` builds these.
"""

from typing import Final, NamedTuple, TypeAlias


class Scalar(NamedTuple):
    """OpTypeBool, OpTypeInt or OpTypeFloat.

    ``kind`` is "bool", "int" (signed), "uint" or "float"; ``width_bits`` is 32 for a Boolean. ``encoding`` is empty for
    an IEEE 754 number, otherwise "bfloat16", "float8_e4m3", "float8_e5m2" or ``FPEncoding`` and a number.
    """

    kind: str
    width_bits: int
    encoding: str = ""

    @property
    def size_bytes(self) -> int:
        """Bytes of one value in memory."""
        return (self.width_bits + 7) // 8

    def __str__(self) -> str:
        return "bool" if self.kind == "bool" else self.encoding or f"{self.kind}{self.width_bits}"


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
    """OpTypeArray: ``length`` elements, each ``stride_bytes`` behind the one before (None without an ArrayStride)."""

    element: "Type"
    length: int
    stride_bytes: int | None

    def __str__(self) -> str:
        return _array_name(self)


class RuntimeArray(NamedTuple):
    """OpTypeRuntimeArray: as many elements as what is bound has room for."""

    element: "Type"
    stride_bytes: int | None

    def __str__(self) -> str:
        return _array_name(self)


class Member(NamedTuple):
    """One member of a structure.

    ``offset_bytes`` is None without an Offset decoration, ``matrix_stride_bytes`` without a MatrixStride.
    ``row_major`` is None where neither RowMajor nor ColMajor is given. ``size_bytes`` reaches from the member's first
    byte behind the last one that belongs to it (see `Struct`). ``readable`` and ``writable`` follow NonReadable and
    NonWritable.
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
        """ArrayStride of the member's type where that is an array."""
        return self.type.stride_bytes if isinstance(self.type, Array | RuntimeArray) else None

    @property
    def majorness(self) -> str | None:
        """ "row", "column", or None where it is not given."""
        return None if self.row_major is None else "row" if self.row_major else "column"


class Struct(NamedTuple):
    """OpTypeStruct.

    ``size_bytes`` reaches from byte 0 behind the last byte of any member: padding at the end does not count, and a
    runtime array counts as no elements. ``block`` is "Block", "BufferBlock" or None.
    """

    id: int
    name: str
    members: tuple[Member, ...]
    size_bytes: int
    block: str | None = None

    def __str__(self) -> str:
        return self.name or f"struct {self.id}"


class Pointer(NamedTuple):
    """OpTypePointer, or OpTypeUntypedPointerKHR with ``pointee`` None. What it points to is not followed."""

    storage_class: int
    pointee: int | None

    def __str__(self) -> str:
        return "pointer"


class Image(NamedTuple):
    """OpTypeImage.

    ``sampled_type`` is None for void. ``dim`` and ``format`` are names of the specification, such as "2D", "Buffer",
    "SubpassData" and "Rgba8", "Unknown". ``depth`` is True, False, or None where the module does not say.
    ``sampled`` is True for one used with a sampler, False for a storage image, None where only run time knows.
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
    """OpTypeSampledImage: an image together with its sampler."""

    image: Image

    def __str__(self) -> str:
        return f"sampled {self.image}"


class Tensor(NamedTuple):
    """OpTypeTensorARM: ``rank`` and ``shape`` are None where the type leaves them open."""

    element: Scalar
    rank: int | None
    shape: tuple[int, ...] | None

    def __str__(self) -> str:
        if self.shape is not None:
            return f"tensor<{'x'.join(map(str, self.shape))}x{self.element}>"
        return f"tensor<{self.element}, rank {'?' if self.rank is None else self.rank}>"


class Opaque(NamedTuple):
    """Any other type, by the name of its instruction: "OpTypeSampler", "OpTypeAccelerationStructureKHR", ..."""

    name: str

    def __str__(self) -> str:
        return self.name


SAMPLER: Final = Opaque("OpTypeSampler")
ACCELERATION_STRUCTURE: Final = Opaque("OpTypeAccelerationStructureKHR")

Type: TypeAlias = (
    Scalar | Vector | Matrix | Array | RuntimeArray | Struct | Pointer | Image | SampledImage | Tensor | Opaque
)


def _array_name(type: "Type") -> str:
    """``float32x4[3][]``: outermost length first, as in GLSL and C."""
    lengths = ""
    while isinstance(type, Array | RuntimeArray):
        lengths += f"[{type.length}]" if isinstance(type, Array) else "[]"
        type = type.element
    return f"{type}{lengths}"
