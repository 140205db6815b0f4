"""Checks the layout of a block against Vulkan's rules for offsets and strides.

Source: Vulkan specification, "Shader Interfaces", section "Offset and Stride Assignment": scalar, base and extended
alignment, vectors that straddle 16 bytes, and the room behind structures, arrays and matrices.
"""

from itertools import pairwise
from typing import Final

from scenario_runner.spirv.types import (
    POINTER_SIZE_BYTES,
    Array,
    Matrix,
    Pointer,
    RuntimeArray,
    Scalar,
    Struct,
    Type,
    Vector,
    align_up,
    extent_bytes,
    matrix_vectors,
)

MAX_FINDINGS: Final = 100
"""Most sentences about one block."""

_UNDEFINED: Final = "SR-LAYOUT-001"
_MISALIGNED: Final = "SR-LAYOUT-002"
_OVERLAPPING: Final = "SR-LAYOUT-003"


RELAXED_STD140: Final = "extended"
"""Alignment that Vulkan asks of a uniform block without the feature uniformBufferStandardLayout."""
RELAXED: Final = "base"
"""Alignment that Vulkan asks of any other block without the feature scalarBlockLayout."""
SCALAR: Final = "scalar"
"""Alignment that Vulkan asks of a block with the feature scalarBlockLayout."""


def check_layout(block: Struct, alignment: str) -> dict[str, str]:
    """Return what is wrong with a block's layout, at most `MAX_FINDINGS` sentences, each with its code.

    ``alignment`` is `RELAXED_STD140`, `RELAXED` or `SCALAR`.
    """
    checker = _Checker(alignment)
    checker.struct(block, 0, block.name[:100] or "block")
    return checker.findings


class _Checker:
    """Walks a structure. Nested structures are checked once for every offset modulo 16 at which they begin."""

    def __init__(self, alignment: str) -> None:
        self._rule = alignment
        self._alignments: dict[int, int] = {}
        self._seen: set[tuple[int, int]] = set()
        self.findings: dict[str, str] = {}

    def struct(self, struct: Struct, start: int, path: str) -> None:
        """Check a structure that begins at byte ``start``, counted modulo 16 once it is nested."""
        if (id(struct), start) in self._seen or len(self.findings) >= MAX_FINDINGS:
            return
        self._seen.add((id(struct), start))
        placed = []
        for number, member in enumerate(struct.members):
            # Names may be as long as the module: clipped, so that deep nesting does not multiply them.
            name = f"{path}.{member.name[:100] or f'member {number}'}"
            if member.offset_bytes is None:
                self._find(f"{name!r} has no Offset decoration", _UNDEFINED)
                continue
            alignment = self._alignment(member.type, bool(member.row_major))
            if member.row_major is None and isinstance(_innermost(member.type), Matrix):
                self._find(f"{name!r} is a matrix without a RowMajor or ColMajor decoration", _UNDEFINED)
            if isinstance(member.type, RuntimeArray) and number + 1 < len(struct.members):
                self._find(
                    f"{name!r} is a runtime array that overlaps what is behind it: it must be the last member",
                    _OVERLAPPING,
                )
            self._place(name, member.type, start, member.offset_bytes, alignment)
            self._inside(
                name, member.type, start + member.offset_bytes, member.matrix_stride_bytes, bool(member.row_major)
            )
            placed.append((member.offset_bytes, member.size_bytes, number, name, alignment))
        placed.sort()
        for (offset, size, number, name, alignment), (next_offset, _, _, next_name, _) in pairwise(placed):
            type = struct.members[number].type
            if next_offset < offset + size:
                self._find(
                    f"{next_name!r} at offset {next_offset} overlaps {name!r}, which takes bytes {offset} to "
                    f"{offset + size - 1}",
                    _OVERLAPPING,
                )
            elif isinstance(type, Struct | Array | Matrix) and self._rule != "scalar":
                behind = align_up(offset + size, alignment)
                if next_offset < behind:
                    self._find(
                        f"{next_name!r} at offset {next_offset} is in the padding behind {name!r} of the type {type}; "
                        f"the first free offset is {behind}"
                    )

    def _place(self, name: str, type: Type, start: int, offset: int, alignment: int) -> None:
        """Check alignment and straddling of one member."""
        if isinstance(type, Vector):
            needed = type.component.size_bytes
            if offset % needed:
                self._find(f"{name!r} of the type {type} is at offset {offset}, which is not a multiple of {needed}")
            else:
                self._straddle(name, type, start + offset)
        elif offset % alignment:
            self._find(
                f"{name!r} of the type {type} is at offset {offset}, which is not a multiple of its "
                f"{self._rule} alignment {alignment}"
            )

    def _straddle(self, name: str, type: Vector, first: int) -> None:
        if self._rule == "scalar":
            return
        size = type.size_bytes
        if size > 16 and first % 16:
            self._find(f"{name!r} of the type {type} is larger than 16 bytes and does not begin at a multiple of 16")
        elif size <= 16 and first // 16 != (first + size - 1) // 16:
            self._find(f"{name!r} of the type {type} straddles a multiple of 16: it begins {first % 16} behind one")

    def _inside(self, name: str, type: Type, start: int, matrix_stride: int | None, row_major: bool) -> None:
        """Check strides, and the insides of arrays, matrices and structures."""
        starts = [start % 16]
        while isinstance(type, Array | RuntimeArray):
            stride = type.stride_bytes
            if stride is None:
                self._find(f"{name!r} is an array without an ArrayStride decoration", _UNDEFINED)
                return
            if not stride:
                self._find(f"{name!r} is an array without a stride: its ArrayStride is 0", _UNDEFINED)
                return
            self._stride(name, "ArrayStride", stride, self._alignment(type, row_major))
            size = extent_bytes(type.element, matrix_stride, row_major)
            if stride < size:
                self._find(
                    f"the ArrayStride {stride} of {name!r} is smaller than its elements of {size} bytes", _OVERLAPPING
                )
            length = 16 if isinstance(type, RuntimeArray) else min(type.length, 16)
            starts = sorted({(first + stride * step) % 16 for first in starts for step in range(length)})
            type, name = type.element, f"{name}[]"
        component = type.component if isinstance(type, Vector) else type
        if isinstance(component, Scalar) and component.kind == "bool":
            self._find(f"{name!r} is a Boolean, which is without a size in memory", _UNDEFINED)
        elif isinstance(type, Struct):
            for first in starts:
                self.struct(type, first, name)
        elif isinstance(type, Matrix):
            vector, count = matrix_vectors(type, row_major)
            if matrix_stride is None:
                self._find(f"{name!r} is a matrix without a MatrixStride decoration", _UNDEFINED)
                return
            self._stride(name, "MatrixStride", matrix_stride, self._alignment(type, row_major))
            if matrix_stride < vector.size_bytes:
                self._find(
                    f"the MatrixStride {matrix_stride} of {name!r} is smaller than its {vector} vectors", _OVERLAPPING
                )
            steps = range(min(count, 16))
            for first in sorted({(first + matrix_stride * step) % 16 for first in starts for step in steps}):
                self._straddle(f"{name}[]", vector, first)
        elif isinstance(type, Vector) and name.endswith("[]"):
            for first in starts:
                self._straddle(name, type, first)

    def _stride(self, name: str, what: str, stride: int, alignment: int) -> None:
        if stride % alignment:
            self._find(f"the {what} {stride} of {name!r} is not a multiple of its {self._rule} alignment {alignment}")

    def _find(self, sentence: str, code: str = _MISALIGNED) -> None:
        if len(self.findings) < MAX_FINDINGS:
            self.findings.setdefault(sentence, code)

    def _alignment(self, type: Type, row_major: bool) -> int:
        """Return the alignment of a type in bytes."""
        inner = _innermost(type)
        if isinstance(inner, Struct):
            if id(inner) not in self._alignments:
                members = [self._alignment(member.type, bool(member.row_major)) for member in inner.members]
                self._alignments[id(inner)] = max(members, default=1)
            alignment = self._alignments[id(inner)]
        else:
            vector = matrix_vectors(inner, row_major)[0] if isinstance(inner, Matrix) else inner
            alignment = POINTER_SIZE_BYTES if isinstance(inner, Pointer) else 1
            if isinstance(vector, Scalar):
                alignment = vector.size_bytes
            elif isinstance(vector, Vector):
                components = 1 if self._rule == "scalar" else 2 if vector.components == 2 else 4
                alignment = vector.component.size_bytes * components
        is_extended = self._rule == "extended" and isinstance(type, Array | RuntimeArray | Matrix | Struct)
        return align_up(alignment, 16) if is_extended else alignment


def _innermost(type: Type) -> Type:
    """Return the element of an array of arrays."""
    while isinstance(type, Array | RuntimeArray):
        type = type.element
    return type
