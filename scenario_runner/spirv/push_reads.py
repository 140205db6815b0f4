"""How much of its push constants a shader reads: up to the last byte that an access chain can reach.

Source: SPIR-V specification, OpAccessChain. Constant indices are followed into structures and arrays; a dynamic index
reaches all elements. What takes the block in another way reads all of it. Functions that the entry point does not call
count too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from scenario_runner.spirv import opcodes as op
from scenario_runner.spirv.access import PUSH_CONSTANT
from scenario_runner.spirv.sizes import extent_bytes
from scenario_runner.spirv.types import Array, Struct, Vector

if TYPE_CHECKING:
    from scenario_runner.spirv.index import Index
    from scenario_runner.spirv.interface import Interface
    from scenario_runner.spirv.types import Type

_CHAINS = (op.ACCESS_CHAIN, op.IN_BOUNDS_ACCESS_CHAIN)


def push_constants_read(interface: Interface) -> int:
    """Bytes of push constants, from the first one on, that the shader may read; 0 without a block."""
    block = interface.push_constants
    if block is None:
        return 0
    index = interface.source
    variables = {id for id in index.variables if index.words[index.definitions[id] + 3] == PUSH_CONSTANT}
    read = 0
    for at in _instructions(index):
        words = index.words
        opcode, count = words[at] & 0xFFFF, words[at] >> 16
        operands = words[at + 1 : at + count]
        if variables.isdisjoint(operands):
            continue
        if opcode in _CHAINS and count > 4 and words[at + 3] in variables:
            indices = [_constant(index, id) for id in words[at + 4 : at + count]]
            read = max(read, _end(block.struct, indices))
        else:
            read = block.size_bytes
    return min(read, block.size_bytes)


def _instructions(index: Index) -> Iterator[int]:
    """Where the instructions of functions begin."""
    words = index.words
    at = min(index.functions.values(), default=len(words))
    while at < len(words) and words[at] >> 16:
        yield at
        at += words[at] >> 16


def _end(type: Type, indices: Sequence[int | None]) -> int:
    """Behind the last byte that a chain of indices reaches in a value; None is an index that is not constant."""
    start = 0
    for number in indices:
        if isinstance(type, Struct) and number is not None and number < len(type.members):
            member = type.members[number]
            if member.offset_bytes is None or not isinstance(member.type, Array | Struct | Vector):
                return start + (member.offset_bytes or 0) + member.size_bytes
            start += member.offset_bytes
            type = member.type
        elif isinstance(type, Array) and number is not None and type.stride_bytes is not None:
            start += type.stride_bytes * number
            type = type.element
        elif isinstance(type, Vector) and number is not None:
            return start + type.component.size_bytes * (number + 1)
        else:
            break
    return start + extent_bytes(type)


def _constant(index: Index, id: int) -> int | None:
    """The value of an integer constant; None for what is not one, specialization constants included."""
    at = index.definitions.get(id)
    if at is None or index.words[at] & 0xFFFF not in (op.CONSTANT, op.CONSTANT_NULL):
        return None
    return 0 if index.words[at] & 0xFFFF == op.CONSTANT_NULL else index.words[at + 3]
