"""Bytes that values take: with the explicit layout of a block, and with the natural one of workgroup memory."""

from __future__ import annotations

from typing import Final

from scenario_runner.spirv.types import Array, Matrix, Pointer, RuntimeArray, Scalar, Struct, Type, Vector

POINTER_SIZE_BYTES: Final = 8
"""A pointer in memory is one to PhysicalStorageBuffer, 64 bits wide (SPIR-V, addressing model)."""


def extent_bytes(type: Type, matrix_stride: int | None = None, row_major: bool = False) -> int:
    """Bytes from the first byte of a value behind its last one, by the decorations of its type and member.

    The last element of an array and the last vector of a matrix count without the padding behind them. A runtime
    array counts as no elements. Strides that are missing count as the element's own size; what has no size in memory
    (images and other opaque types) counts as 0.
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


def matrix_vectors(type: Matrix, row_major: bool) -> tuple[Vector, int]:
    """The array of vectors that a matrix is in memory: its rows or its columns, and how many there are."""
    if row_major:
        return Vector(type.column.component, type.columns), type.column.components
    return type.column, type.columns


def natural_size_and_alignment(type: Type) -> tuple[int, int]:
    """Size and alignment in bytes under GLSL's std430 rules, Booleans as 32 bits, whatever the decorations say.

    This is how workgroup memory without an explicit layout is counted: Vulkan specification, "Shaders", section
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
    """The smallest multiple of ``alignment`` that is not below ``value``."""
    return (value + alignment - 1) // alignment * alignment
