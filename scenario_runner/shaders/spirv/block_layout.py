"""Checks the layout of a block against Vulkan's rules for offsets and strides.

Source: Vulkan specification, "Shader Interfaces", section "Offset and Stride Assignment": scalar, base and extended
alignment, vectors that straddle 16 bytes, and the room behind structures, arrays and matrices.
"""

from itertools import pairwise
from typing import Final

from scenario_runner.shaders.spirv.types import (
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
    innermost,
    matrix_vectors,
)

MAX_FINDINGS: Final = 100
"""Most sentences about a block."""

_UNDEFINED: Final = "SR-LAYOUT-001"
_MISALIGNED: Final = "SR-LAYOUT-002"
_OVERLAPPING: Final = "SR-LAYOUT-003"

EXTENDED: Final = "extended"
"""Alignment that Vulkan asks of a uniform block without the feature uniformBufferStandardLayout."""
BASE: Final = "base"
"""Alignment that Vulkan asks of any other block without the feature scalarBlockLayout."""
SCALAR: Final = "scalar"
"""Alignment that Vulkan asks of a block with the feature scalarBlockLayout."""


def check_layout(block: Struct) -> tuple[dict[str, str], str]:
    """Check a block's layout. Return findings and an alignment.

    The findings are at most `MAX_FINDINGS` sentences, each with a code, about layouts that no feature allows. Without
    findings, the alignment is the strictest that the block keeps: `EXTENDED`, `BASE` or `SCALAR`.
    """
    checker = _Checker()
    checker.struct(block, 0, block.name[:100] or "block")
    return checker.findings, next((rule for rule in (EXTENDED, BASE) if rule in checker.kept), SCALAR)


class _Checker:
    """Walks a structure. Nested structures are checked once for each of their offsets modulo 16."""

    def __init__(self) -> None:
        self._alignments: dict[tuple[int, str], int] = {}
        self._seen: set[tuple[int, int]] = set()
        self.kept = {EXTENDED, BASE}
        self.findings: dict[str, str] = {}

    def struct(self, struct: Struct, start: int, path: str) -> None:
        """Check a structure at byte ``start``; nested structures start modulo 16."""
        if (id(struct), start) in self._seen or len(self.findings) >= MAX_FINDINGS:
            return
        self._seen.add((id(struct), start))
        placed = []
        for number, member in enumerate(struct.members):
            # Names may be as long as the module. They are clipped, so deep nesting does not multiply them.
            name = f"{path}.{member.name[:100] or f'member {number}'}"
            type, offset, row_major = member.type, member.offset_bytes, bool(member.row_major)
            if offset is None:
                self._find(f"{name!r} has no Offset decoration", _UNDEFINED)
                continue
            if member.row_major is None and isinstance(innermost(type), Matrix):
                self._find(f"{name!r} is a matrix without a RowMajor or ColMajor decoration", _UNDEFINED)
            if isinstance(type, RuntimeArray) and number + 1 < len(struct.members):
                message = f"{name!r} is a runtime array before other members: it must be the last member"
                self._find(message, _OVERLAPPING)
            aligned = type.component if isinstance(type, Vector) else type
            if offset:  # 0 is a multiple of any alignment
                self._check_multiple(f"{name!r} of the type {type} is at offset", offset, aligned, row_major)
            self._inside(name, type, start + offset, member.matrix_stride_bytes, row_major)
            placed.append((offset, member.size_bytes, number, name))
        placed.sort()
        for (offset, size, number, name), (next_offset, _, _, next_name) in pairwise(placed):
            member, end = struct.members[number], offset + size
            if next_offset < end:
                message = (
                    f"{next_name!r} at offset {next_offset} overlaps {name!r}, which takes bytes {offset} to {end - 1}"
                )
                self._find(message, _OVERLAPPING)
            elif isinstance(member.type, Struct | Array | Matrix):
                row_major = bool(member.row_major)
                for rule in (EXTENDED, BASE):
                    if next_offset < align_up(end, self._alignment(member.type, rule, row_major)):
                        self.kept.discard(rule)

    def _inside(self, name: str, type: Type, start: int, matrix_stride: int | None, row_major: bool) -> None:
        """Check strides, and the contents of arrays, matrices and structures."""
        starts = {start % 16}
        while isinstance(type, Array | RuntimeArray):
            stride = type.stride_bytes
            if not stride:
                self._find(f"{name!r} is an array without an ArrayStride decoration, or with the stride 0", _UNDEFINED)
                return
            self._check_multiple(f"{name!r} has the ArrayStride", stride, type, row_major)
            size = extent_bytes(type.element, matrix_stride, row_major)
            if stride < size:
                message = f"the ArrayStride {stride} of {name!r} is smaller than its elements of {size} bytes"
                self._find(message, _OVERLAPPING)
            starts = _steps(starts, stride, 16 if isinstance(type, RuntimeArray) else type.length)
            type, name = type.element, f"{name}[]"
        component = type.component if isinstance(type, Vector) else type
        if isinstance(component, Scalar) and component.is_bool:
            self._find(f"{name!r} is a Boolean, which has no size in memory", _UNDEFINED)
        elif isinstance(type, Struct):
            for first in sorted(starts):
                self.struct(type, first, name)
        elif isinstance(type, Matrix):
            vector, count = matrix_vectors(type, row_major)
            if matrix_stride is None:
                self._find(f"{name!r} is a matrix without a MatrixStride decoration", _UNDEFINED)
                return
            self._check_multiple(f"{name!r} has the MatrixStride", matrix_stride, type, row_major)
            if matrix_stride < vector.size_bytes:
                message = f"the MatrixStride {matrix_stride} of {name!r} is smaller than its {vector} vectors"
                self._find(message, _OVERLAPPING)
            self._check_straddling(vector.size_bytes, _steps(starts, matrix_stride, count))
        elif isinstance(type, Vector):
            self._check_straddling(type.size_bytes, starts)

    def _check_multiple(self, what: str, value: int, type: Type, row_major: bool) -> None:
        """Check an offset or a stride against the alignments of a type."""
        self.kept -= {rule for rule in self.kept if value % self._alignment(type, rule, row_major)}
        alignment = self._alignment(type, SCALAR, row_major)
        if value % alignment:
            self._find(f"{what} {value}, which is not a multiple of its scalar alignment {alignment}", _MISALIGNED)

    def _check_straddling(self, size: int, starts: set[int]) -> None:
        """Note vectors that straddle 16 bytes, or are larger and not aligned: only scalarBlockLayout allows them."""
        if any(first % 16 if size > 16 else first % 16 + size > 16 for first in starts):
            self.kept.clear()

    def _find(self, sentence: str, code: str) -> None:
        if len(self.findings) < MAX_FINDINGS:
            self.findings.setdefault(sentence, code)

    def _alignment(self, type: Type, rule: str, row_major: bool) -> int:
        """Return the alignment of a type in bytes."""
        inner = innermost(type)
        if isinstance(inner, Struct):
            if (id(inner), rule) not in self._alignments:
                members = [self._alignment(member.type, rule, bool(member.row_major)) for member in inner.members]
                self._alignments[id(inner), rule] = max(members, default=1)
            alignment = self._alignments[id(inner), rule]
        else:
            vector = matrix_vectors(inner, row_major)[0] if isinstance(inner, Matrix) else inner
            alignment = POINTER_SIZE_BYTES if isinstance(inner, Pointer) else 1
            if isinstance(vector, Scalar):
                alignment = vector.size_bytes
            elif isinstance(vector, Vector):
                components = 1 if rule == SCALAR else 2 if vector.components == 2 else 4
                alignment = vector.component.size_bytes * components
        is_extended = rule == EXTENDED and isinstance(type, Array | RuntimeArray | Matrix | Struct)
        return align_up(alignment, 16) if is_extended else alignment


def _steps(starts: set[int], stride: int, count: int) -> set[int]:
    """Return the starts of ``count`` elements, modulo 16."""
    return {(first + stride * step) % 16 for first in starts for step in range(min(count, 16))}
