"""What stands for a type is one: in result types, and in types that are made of others, which come before them.

Source: SPIR-V specification, "Type-Declaration Instructions" and "Logical Layout of a Module".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from scenario_runner.spirv import opcodes as op
from scenario_runner.spirv.index import DEFINITIONS

if TYPE_CHECKING:
    from scenario_runner.spirv.index import Index

# Functions have a type as an operand of their own, besides that of what they give.
_NOT_FOR_VALUES: Final = {op.STRING, op.EXT_INST_IMPORT, op.DECORATION_GROUP, op.TYPE_FUNCTION}
_TYPES: Final = frozenset(opcode for opcode, (slot, _) in DEFINITIONS.items() if slot == 1) - _NOT_FOR_VALUES
# Types made of others → the words of those: the first, and the one behind the last (0: to the end).
_MADE_OF: Final = {
    op.TYPE_VECTOR: (2, 3),
    op.TYPE_MATRIX: (2, 3),
    op.TYPE_ARRAY: (2, 3),
    op.TYPE_RUNTIME_ARRAY: (2, 3),
    op.TYPE_STRUCT: (2, 0),
    op.TYPE_POINTER: (3, 4),
    op.TYPE_FUNCTION: (2, 0),
}


def check_types(index: Index, result_types: set[int]) -> None:
    """Check the types of all results, and the parts of all types. Raises SpirvError.

    Ids that are defined by instructions of unknown extensions are taken for what they should be.
    """
    words, definitions = index.words, index.definitions
    for type in result_types:
        if type not in index.unknown and not _is_type(index, type):
            raise index.error(f"the id {type} is the type of a result, but it is not a type that a value can have")
    for id, at in definitions.items():
        opcode = words[at] & 0xFFFF
        if opcode not in _MADE_OF:
            continue
        first, behind = _MADE_OF[opcode]
        for part in words[at + first : at + (behind or words[at] >> 16)]:
            if part in index.unknown:
                continue
            # a pointer may be declared before what it points to, or named before it is declared
            if not _is_type(index, part) or (
                opcode != op.TYPE_POINTER and definitions[part] >= at and _opcode(index, part) != op.TYPE_POINTER
            ):
                raise index.error(
                    f"the type {id} at word {at} is made of the id {part}, which is not a type declared before it"
                )


def _opcode(index: Index, id: int) -> int:
    return index.words[index.definitions[id]] & 0xFFFF


def _is_type(index: Index, id: int) -> bool:
    return id in index.definitions and _opcode(index, id) in _TYPES
