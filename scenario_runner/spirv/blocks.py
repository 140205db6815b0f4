"""Blocks: the structures behind uniform buffers, storage buffers and push constants."""

from typing import NamedTuple

from scenario_runner.spirv.sizes import extent_bytes
from scenario_runner.spirv.types import Member, RuntimeArray, Struct


class Block(NamedTuple):
    """The structure of a buffer or of push constants.

    ``size_bytes`` is what a buffer must have at least so that every member lies within it: from byte 0 behind the last
    byte of any member. Padding at the end does not count, and a runtime array at the end counts as **no** elements.
    ``runtime_stride_bytes`` is what every element of that array adds; None without one. ``members`` are in the order
    of the declaration, which need not be that of their offsets.
    """

    name: str
    size_bytes: int
    runtime_stride_bytes: int | None
    members: tuple[Member, ...]
    struct: Struct


def block_of(struct: Struct) -> Block:
    """A structure as a block."""
    return Block(struct.name, struct.size_bytes, _runtime_stride(struct), struct.members, struct)


def _runtime_stride(struct: Struct) -> int | None:
    """The stride of the runtime array that the last member is, or ends with as a structure."""
    while struct.members:
        type = struct.members[-1].type
        if isinstance(type, RuntimeArray):
            return extent_bytes(type.element) if type.stride_bytes is None else type.stride_bytes
        if not isinstance(type, Struct):
            return None
        struct = type
    return None
