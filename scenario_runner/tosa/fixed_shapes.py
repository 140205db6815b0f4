"""A graph module compiled for tensors of any size, made into one for the sizes that there are.

Drivers may be given tensor types without a shape, yet what lies between two operators needs memory of some size: the
emulation layers end the process over it. So every type that leaves its shape open is replaced by one with the shape
that follows from the inputs'. Types stay unique, as SPIR-V wants: a type that is already what is needed moves up.

Source: SPIR-V specification, "Types and Variables"; SPV_ARM_tensors, OpTypeTensorARM; SPV_ARM_graph, OpTypeGraphARM.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from scenario_runner.spirv._generated import opcodes as op
from scenario_runner.tosa.shapes import UNKNOWN, Shape

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from scenario_runner.tosa.values import Values

_HEADER_WORDS, _BOUND_WORD = 5, 3


class Interface(NamedTuple):
    """What one entry point has: its variables and the type of its graph, with a shape for each input and output."""

    variables: Sequence[int]
    graph_type: int
    shapes: Sequence[Shape]


def with_shapes(
    words: Sequence[int], values: Values, shapes: Mapping[int, Shape | tuple[Shape, ...]], interface: Interface
) -> list[int]:
    """The words of the module with types of these shapes.

    ``shapes`` has every value whose type leaves a shape open, with several shapes for a structure. Raises ValueError
    where a rank is not a 32-bit constant.
    """
    return _Writer(words, values, shapes, interface).write()


class _Writer:
    def __init__(
        self,
        words: Sequence[int],
        values: Values,
        shapes: Mapping[int, Shape | tuple[Shape, ...]],
        interface: Interface,
    ) -> None:
        self._words = words
        self._values = values
        self._bound = words[_BOUND_WORD]
        self._at: dict[int, int] = {}
        self._tensors: dict[tuple[int, Shape], int] = {}  # element type and shape → a type of the module's own
        self._pointers: dict[tuple[int, int], int] = {}
        for at in self._instructions():
            self._note(at)
        self._moved: set[int] = set()
        self._behind: dict[int, list[list[int]]] = {}  # what goes behind the instruction that defines an id
        self._structures: dict[tuple[int, object], int] = {}
        self._types = {id: self._type(words[self._at[id] + 1], shape) for id, shape in shapes.items()}
        for variable, shape in zip(interface.variables, interface.shapes, strict=True):
            self._types[variable] = self._pointer(words[self._at[variable] + 1], shape)
        self._graph_type = interface.graph_type
        graph = self._at[interface.graph_type]
        self._graph = [
            self._type(type, shape)
            for type, shape in zip(words[graph + 3 : graph + (words[graph] >> 16)], interface.shapes, strict=True)
        ]

    def write(self) -> list[int]:
        words = self._words
        written = list(words[:_HEADER_WORDS])
        for at in self._instructions():
            count, opcode = words[at] >> 16, words[at] & 0xFFFF
            if at in self._moved:
                continue
            instruction = list(words[at : at + count])
            id = 0
            if opcode in _DEFINED_FIRST:
                id = words[at + 1]
                if id == self._graph_type:
                    instruction[3:] = self._graph
            elif opcode in _WITH_TYPE:
                id = words[at + 2]
                instruction[1] = self._types.get(id, instruction[1])
            written += instruction
            for each in self._behind.get(id, ()):
                written += each
        written[_BOUND_WORD] = self._bound
        return written

    def _instructions(self) -> Iterator[int]:
        at = _HEADER_WORDS
        while at < len(self._words):
            yield at
            at += self._words[at] >> 16

    def _note(self, at: int) -> None:
        words, opcode = self._words, self._words[at] & 0xFFFF
        if opcode in _DEFINED_FIRST:
            id = words[at + 1]
            self._at[id] = at
            if opcode == op.TYPE_TENSOR:
                kind = self._values.type(id)
                if kind.ranked and kind.shape is not None and UNKNOWN not in kind.shape:
                    self._tensors.setdefault((words[at + 2], kind.shape), id)
            elif opcode == op.TYPE_POINTER:
                self._pointers.setdefault((words[at + 2], words[at + 3]), id)
        elif opcode in _WITH_TYPE:
            self._at[words[at + 2]] = at

    def _type(self, type: int, shape: Shape | tuple[Shape, ...]) -> int:
        """The id of a type like ``type`` whose shape is ``shape``; the type itself when it leaves nothing open."""
        kind = self._values.type(type)
        if kind.parts:
            return self._structure(type, shape)
        if kind.shape is None or (kind.ranked and UNKNOWN not in kind.shape):
            return type
        at = self._at[type]
        id, is_new = self._place(self._tensors, (self._words[at + 2], shape), at)
        if is_new:
            self._behind.setdefault(type, []).extend(self._tensor(at, id, shape))  # type: ignore[arg-type]
        return id

    def _place(self, known: dict[Any, int], key: object, at: int) -> tuple[int, bool]:
        """The id for a type that the instruction at ``at`` gives way to, and whether it is to be defined there."""
        id = known.get(key)
        if id is None:
            id = known[key] = self._new()
        elif self._at[id] <= at:
            return id, False
        else:
            self._moved.add(self._at[id])
        self._at[id] = at
        return id, True

    def _tensor(self, at: int, id: int, shape: Shape) -> Iterator[list[int]]:
        """The instructions that define a tensor type with a shape, after the one that leaves it open."""
        words = self._words
        if words[at] >> 16 < 4:
            raise ValueError("has tensors of any rank, which cannot be given a shape")
        rank = words[at + 3]
        number = words[self._at[rank] + 1]
        if words[self._at[number] + 2] != 32:
            raise ValueError("has a rank that is not a 32-bit constant")
        sizes = []
        for size in shape:
            sizes.append(self._new())
            yield [4 << 16 | op.CONSTANT, number, sizes[-1], size]
        array, composite = self._new(), self._new()
        yield [4 << 16 | op.TYPE_ARRAY, array, number, rank]
        yield [(3 + len(sizes)) << 16 | op.CONSTANT_COMPOSITE, array, composite, *sizes]
        yield [5 << 16 | op.TYPE_TENSOR, id, words[at + 2], rank, composite]

    def _pointer(self, type: int, shape: Shape) -> int:
        at = self._at[type]
        storage, tensor = self._words[at + 2 : at + 4]
        pointee = self._type(tensor, shape)
        if pointee == tensor:
            return type
        id, is_new = self._place(self._pointers, (storage, pointee), at)
        if is_new:
            self._behind.setdefault(type, []).append([4 << 16 | op.TYPE_POINTER, id, storage, pointee])
        return id

    def _structure(self, type: int, shapes: Shape | tuple[Shape, ...]) -> int:
        at = self._at[type]
        id = self._structures.get((type, shapes))
        if id is None:
            members = self._words[at + 2 : at + (self._words[at] >> 16)]
            parts = [self._type(member, shape) for member, shape in zip(members, shapes, strict=True)]  # type: ignore[arg-type]
            id = self._structures[type, shapes] = self._new()
            self._behind.setdefault(type, []).append([(2 + len(parts)) << 16 | op.TYPE_STRUCT, id, *parts])
        return id

    def _new(self) -> int:
        self._bound += 1
        return self._bound - 1


_DEFINED_FIRST = frozenset(
    {op.TYPE_INT, op.TYPE_FLOAT, op.TYPE_BOOL, op.TYPE_ARRAY, op.TYPE_STRUCT, op.TYPE_POINTER, op.TYPE_TENSOR}
    | {op.TYPE_GRAPH}
)
_WITH_TYPE = frozenset({op.CONSTANT, op.VARIABLE, op.EXT_INST, op.GRAPH_INPUT, op.COMPOSITE_EXTRACT})
