"""Fixed shapes for a graph module that was compiled for tensors of any size.

Drivers may be given tensor types without a shape, yet values between two operators need memory of some size: the
emulation layers end the process over them. So every type that leaves its shape open is replaced by one with the shape
that follows from the inputs. Types stay unique, as SPIR-V demands: a type that exists already moves up.

Source: SPIR-V specification, "Types and Variables"; SPV_ARM_tensors, OpTypeTensorARM; SPV_ARM_graph, OpTypeGraphARM.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from typing import Any

from scenario_runner.graphs.tosa import UNKNOWN, Shape, ShapeError
from scenario_runner.spirv import Struct, Tensor, Type
from scenario_runner.spirv._generated import opcodes as op
from scenario_runner.spirv.declarations import Declarations
from scenario_runner.spirv.index import Rewriting


def declared_shape(type: Type) -> Shape | None:
    """Return the shape that a type says, `UNKNOWN` where it leaves sizes open; None without a rank."""
    if not isinstance(type, Tensor) or type.rank is None:
        return None
    return (UNKNOWN,) * type.rank if type.shape is None else type.shape


def with_shapes(
    declarations: Declarations,
    places: Mapping[int, int],
    shapes: Mapping[int, Sequence[Shape]],
    entry: int,
    bound: Sequence[Shape],
) -> array[int]:
    """Return the words of the module with types of these shapes.

    ``places`` are those of definitions by id, in the order of the module. ``shapes`` has every value whose type leaves
    a shape open, with several shapes for a structure. ``bound`` are those of the inputs and outputs of the entry point
    at the word ``entry``. Raises ShapeError where a rank is not a 32-bit constant.
    """
    index = declarations.index
    writer = _Writer(declarations, places)
    for id, parts in shapes.items():
        writer.set_shapes(id, parts)
    words, end = index.words, entry + index.count(entry)
    for variable, shape in zip(words[index.string_and_end(entry + 2, end)[1] : end], bound, strict=True):
        writer.set_pointee(variable, shape)
    writer.set_graph(words[index.graphs[words[entry + 1]] + 1], bound)
    return writer.changes.result()


class _Writer:
    """Changes the types of values; each new type is defined behind the one that it replaces."""

    def __init__(self, declarations: Declarations, places: Mapping[int, int]) -> None:
        self._declarations = declarations
        self._words = declarations.index.words
        self.changes = Rewriting(declarations.index)
        self._at = dict(places)
        self._tensors: dict[tuple[int, Shape], int] = {}  # element type and shape → a type of the module's own
        self._pointers: dict[tuple[int, int], int] = {}
        self._structures: dict[tuple[int, tuple[Shape, ...]], int] = {}
        words = self._words
        for id, at in places.items():
            if words[at] & 0xFFFF == op.TYPE_TENSOR:
                shape = declared_shape(self._type_of(id))
                if shape is not None and UNKNOWN not in shape:
                    self._tensors.setdefault((words[at + 2], shape), id)
            elif words[at] & 0xFFFF == op.TYPE_POINTER:
                self._pointers.setdefault((words[at + 2], words[at + 3]), id)

    def set_shapes(self, id: int, shapes: Sequence[Shape]) -> None:
        at = self._at[id] + 1
        self.changes.words[at] = self._type(self._words[at], shapes)

    def set_pointee(self, variable: int, shape: Shape) -> None:
        at = self._at[variable] + 1
        self.changes.words[at] = self._pointer(self._words[at], shape)

    def set_graph(self, type: int, shapes: Sequence[Shape]) -> None:
        graph = self._at[type]
        for at, shape in zip(range(graph + 3, graph + (self._words[graph] >> 16)), shapes, strict=True):
            self.changes.words[at] = self._type(self._words[at], [shape])

    def _type(self, type: int, shapes: Sequence[Shape]) -> int:
        """Return the id of a type like ``type`` with shapes; the type itself when it leaves nothing open."""
        open_type = self._type_of(type)
        if isinstance(open_type, Struct):
            return self._structure(type, tuple(shapes))
        (shape,) = shapes
        declared = declared_shape(open_type)
        if not isinstance(open_type, Tensor) or (declared is not None and UNKNOWN not in declared):
            return type
        at = self._at[type]
        id, is_new = self._place(self._tensors, (self._words[at + 2], shape), at)
        if is_new:
            self._define_tensor(at, id, shape)
        return id

    def _place(self, known: dict[Any, int], key: object, at: int) -> tuple[int, bool]:
        """Return the id for the type that replaces that at ``at``, and whether it is to be defined there."""
        id = known.get(key)
        if id is None:
            id = known[key] = self.changes.new_id()
        elif self._at[id] <= at:
            return id, False
        else:
            self.changes.withdraw(self._at[id], id)
        self._at[id] = at
        return id, True

    def _define_tensor(self, at: int, id: int, shape: Shape) -> None:
        """Define a tensor type with a shape behind the one at ``at`` that leaves it open."""
        words = self._words
        if words[at] >> 16 < 4:
            raise ShapeError("has tensors of any rank, which cannot be given a shape")
        rank = words[at + 3]
        number = words[self._at[rank] + 1]
        if words[self._at[number] + 2] != 32:
            raise ShapeError("has a rank that is not a 32-bit constant")
        sizes = [self.changes.new_id() for _ in shape]
        for constant, size in zip(sizes, shape, strict=True):
            self.changes.put(at, (4 << 16 | op.CONSTANT, number, constant, size))
        array, composite = self.changes.define(at, op.TYPE_ARRAY, (number, rank)), self.changes.new_id()
        self.changes.put(at, (3 + len(sizes) << 16 | op.CONSTANT_COMPOSITE, array, composite, *sizes))
        self.changes.define(at, op.TYPE_TENSOR, (words[at + 2], rank, composite), id)

    def _pointer(self, type: int, shape: Shape) -> int:
        at = self._at[type]
        storage, tensor = self._words[at + 2 : at + 4]
        pointee = self._type(tensor, [shape])
        if pointee == tensor:
            return type
        id, is_new = self._place(self._pointers, (storage, pointee), at)
        if is_new:
            self.changes.define(at, op.TYPE_POINTER, (storage, pointee), id)
        return id

    def _structure(self, type: int, shapes: tuple[Shape, ...]) -> int:
        at = self._at[type]
        id = self._structures.get((type, shapes))
        if id is None:
            members = self._words[at + 2 : at + (self._words[at] >> 16)]
            parts = [self._type(member, [shape]) for member, shape in zip(members, shapes, strict=True)]
            id = self._structures[type, shapes] = self.changes.define(at, op.TYPE_STRUCT, parts)
        return id

    def _type_of(self, id: int) -> Type:
        return self._declarations.type(id, len(self._words))
