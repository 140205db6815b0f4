"""Literal and constant indices into composites: below the number of members, components or elements.

Source: SPIR-V specification, OpCompositeExtract, OpCompositeInsert, OpVectorShuffle, OpAccessChain, OpMemberDecorate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from scenario_runner.spirv import opcodes as op

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from scenario_runner.errors import SpirvError
    from scenario_runner.spirv.index import Index

_UNDEFINED_COMPONENT: Final = 0xFFFFFFFF
# Opcode → the word of the pointer, and that of the first index into what it points to.
_CHAINS: Final = {
    op.ACCESS_CHAIN: (3, 4),
    op.IN_BOUNDS_ACCESS_CHAIN: (3, 4),
    op.PTR_ACCESS_CHAIN: (3, 5),
    op.IN_BOUNDS_PTR_ACCESS_CHAIN: (3, 5),
}
_WITHOUT_PARTS: Final = frozenset(
    {op.TYPE_VOID, op.TYPE_BOOL, op.TYPE_INT, op.TYPE_FLOAT, op.TYPE_IMAGE, op.TYPE_SAMPLER, op.TYPE_SAMPLED_IMAGE}
)
_MEMBER_NOTES: Final = (op.MEMBER_NAME, op.MEMBER_DECORATE, 5633)  # and OpMemberDecorateString

MEMBERS: Final = frozenset(
    {*_CHAINS, *_MEMBER_NOTES, op.COMPOSITE_EXTRACT, op.COMPOSITE_INSERT, op.VECTOR_SHUFFLE, op.ARRAY_LENGTH}
)
"""The opcodes that `MemberCheck` looks at."""


class MemberCheck:
    """Follows indices through types. ``types`` has every id of the module with the id of its type, 0 for none."""

    def __init__(self, index: Index, types: dict[int, int]) -> None:
        self._index = index
        self._words = index.words
        self._types = types
        self._done: set[tuple[int, ...]] = set()

    def check(self, places: Iterable[int]) -> None:
        """Check the instructions at these words. Raises SpirvError."""
        words, types, done = self._words, self._types, self._done
        for at in places:
            opcode, end = words[at] & 0xFFFF, at + (words[at] >> 16)
            if opcode in _CHAINS:
                base, first = _CHAINS[opcode]
                key = (opcode, types.get(words[at + base], 0), *words[at + first : end])
                if key not in done:
                    self._chain(at, types.get(words[at + base], 0), words[at + first : end])
                    done.add(key)
            elif opcode == op.COMPOSITE_EXTRACT:
                key = (opcode, types.get(words[at + 3], 0), *words[at + 4 : end])
                if key not in done:
                    self._literals(at, types.get(words[at + 3], 0), words[at + 4 : end])
                    done.add(key)
            elif opcode == op.COMPOSITE_INSERT:
                self._literals(at, types.get(words[at + 4], 0), words[at + 5 : end])
            elif opcode == op.VECTOR_SHUFFLE:
                self._shuffle(at, end)
            elif opcode == op.ARRAY_LENGTH:
                self._literals(at, self._pointee(types.get(words[at + 3], 0)), [words[at + 4]])
            else:
                self._note(at)

    def _literals(self, at: int, type: int, indices: Sequence[int]) -> None:
        for number in indices:
            if not type:
                return
            type = self._element(at, type, number, constant=True)

    def _chain(self, at: int, pointer: int, indices: Sequence[int]) -> None:
        type = self._pointee(pointer)
        for id in indices:
            if not type:
                return
            type = self._element(at, type, self._constant(id), constant=False)

    def _element(self, at: int, type: int, number: int | None, *, constant: bool) -> int:
        """The type of an element; 0 where it is not followed. Indices that are not constants may be anything."""
        words, place = self._words, self._index.definitions.get(type)
        if place is None:
            return 0
        opcode = words[place] & 0xFFFF
        if opcode == op.TYPE_STRUCT:
            members = (words[place] >> 16) - 2
            if number is None:
                raise self._error(at, f"selects a member of the structure {type} by an id that is not a constant")
            if number >= members:
                raise self._error(at, f"selects member {number} of the structure {type}, which has {members}")
            return words[place + 2 + number]
        if opcode in (op.TYPE_VECTOR, op.TYPE_MATRIX):
            self._limit(at, number, words[place + 3], "component or column", constant)
            return words[place + 2]
        if opcode == op.TYPE_ARRAY:
            self._limit(at, number, self._constant(words[place + 3]), "element", constant)
            return words[place + 2]
        if opcode in _WITHOUT_PARTS:
            raise self._error(at, f"selects a part of the type {type}, which has none")
        return words[place + 2] if opcode == op.TYPE_RUNTIME_ARRAY and not constant else 0

    def _limit(self, at: int, number: int | None, count: int | None, what: str, constant: bool) -> None:
        if constant and number is not None and count is not None and number >= count:
            raise self._error(at, f"selects {what} {number} where there are {count}")

    def _shuffle(self, at: int, end: int) -> None:
        words = self._words
        sizes = [self._components(self._types.get(words[at + side], 0)) for side in (3, 4)]
        if None in sizes:
            return
        count = sum(size for size in sizes if size is not None)
        for number in words[at + 5 : end]:
            if number >= count and number != _UNDEFINED_COMPONENT:
                raise self._error(at, f"selects component {number} where there are {count}")

    def _components(self, type: int) -> int | None:
        place = self._index.definitions.get(type)
        if place is None or self._words[place] & 0xFFFF != op.TYPE_VECTOR:
            return None
        return self._words[place + 3]

    def _note(self, at: int) -> None:
        words = self._words
        place = self._index.definitions.get(words[at + 1])
        if place is None or words[place] & 0xFFFF != op.TYPE_STRUCT:
            raise self._error(at, f"is about a member of the id {words[at + 1]}, which is not a structure")
        members = (words[place] >> 16) - 2
        if words[at + 2] >= members:
            raise self._error(
                at, f"is about member {words[at + 2]} of the structure {words[at + 1]}, which has {members}"
            )

    def _pointee(self, pointer: int) -> int:
        place = self._index.definitions.get(pointer)
        if place is None or self._words[place] & 0xFFFF != op.TYPE_POINTER:
            return 0
        return self._words[place + 3]

    def _constant(self, id: int) -> int | None:
        """The value of an integer constant; None for what is not one, specialization constants included."""
        place = self._index.definitions.get(id)
        if place is None or self._words[place] & 0xFFFF not in (op.CONSTANT, op.CONSTANT_NULL):
            return None
        return 0 if self._words[place] & 0xFFFF == op.CONSTANT_NULL else self._words[place + 3]

    def _error(self, at: int, message: str) -> SpirvError:
        return self._index.error(f"the instruction at word {at} (opcode {self._words[at] & 0xFFFF}) {message}")
