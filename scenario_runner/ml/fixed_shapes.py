"""Fixed shapes for a graph module that was compiled for tensors of any size.

Drivers accept tensor types without a shape, but values between operators need memory of a known size: the emulation
layers end the process over such types. So every type with an open shape is replaced by a type with the shape that
follows from the inputs. SPIR-V demands unique types: if the new type exists further down, it moves up.

Source: SPIR-V specification, "Types and Variables"; SPV_ARM_tensors, OpTypeTensorARM; SPV_ARM_graph, OpTypeGraphARM.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence

from scenario_runner.ml.tosa_operators import UNKNOWN, Shape, ShapeError
from scenario_runner.shaders.spirv import Struct, Tensor, Type
from scenario_runner.shaders.spirv._generated import opcodes as op
from scenario_runner.shaders.spirv.declarations import Declarations
from scenario_runner.shaders.spirv.index import Rewriting


def declared_shape(type: Type) -> Shape | None:
    """Return the shape of a type with `UNKNOWN` for open sizes; None without a rank."""
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

    ``places`` has the words of definitions by id, in module order. ``shapes`` has every value with an open
    type; a structure has several shapes. ``bound`` has the input and output shapes of the entry point at the word
    ``entry``. Raises ShapeError if a rank is not a 32-bit constant.
    """
    index = declarations.index
    types = _Types(declarations, places)
    old, words = index.words, types.changes.words
    for id, parts in shapes.items():
        at = places[id] + 1
        words[at] = types.with_shapes(old[at], parts)
    end = entry + index.count(entry)
    for variable, shape in zip(old[index.string_and_end(entry + 2, end)[1] : end], bound, strict=True):
        at = places[variable] + 1
        words[at] = types.pointer(old[at], shape)
    graph = places[old[index.graphs[old[entry + 1]] + 1]]
    for at, shape in zip(range(graph + 3, graph + index.count(graph)), bound, strict=True):
        words[at] = types.with_shapes(old[at], [shape])
    return types.changes.result()


class _Types:
    """The types of a module, and new types. A new type is defined behind the replaced type."""

    def __init__(self, declarations: Declarations, places: Mapping[int, int]) -> None:
        self._declarations = declarations
        self._words = declarations.index.words
        self.changes = Rewriting(declarations.index)
        self._at = dict(places)
        self._known: dict[tuple[int, ...], int] = {}  # by opcode and operands, for tensors by element and shape
        words = self._words
        for id, at in places.items():
            if words[at] & 0xFFFF == op.TYPE_TENSOR:
                shape = declared_shape(self._type_of(id))
                if shape is not None and UNKNOWN not in shape:
                    self._known.setdefault((op.TYPE_TENSOR, words[at + 2], *shape), id)
            elif words[at] & 0xFFFF == op.TYPE_POINTER:
                self._known.setdefault((op.TYPE_POINTER, *words[at + 2 : at + 4]), id)

    def with_shapes(self, type: int, shapes: Sequence[Shape]) -> int:
        """Return the id of a type like ``type`` with shapes, or ``type`` itself if no shape is open."""
        open_type = self._type_of(type)
        if isinstance(open_type, Struct):
            at = self._at[type]
            members = self._words[at + 2 : at + (self._words[at] >> 16)]
            parts = [self.with_shapes(member, [shape]) for member, shape in zip(members, shapes, strict=True)]
            return self._composed(op.TYPE_STRUCT, parts, at)
        (shape,) = shapes
        declared = declared_shape(open_type)
        if not isinstance(open_type, Tensor) or (declared is not None and UNKNOWN not in declared):
            return type
        at = self._at[type]
        id, is_new = self._place((op.TYPE_TENSOR, self._words[at + 2], *shape), at)
        if is_new:
            self._define_tensor(at, id, shape)
        return id

    def pointer(self, type: int, shape: Shape) -> int:
        """Return the id of a pointer like ``type`` to a tensor with a shape."""
        at = self._at[type]
        storage, tensor = self._words[at + 2 : at + 4]
        pointee = self.with_shapes(tensor, [shape])
        return type if pointee == tensor else self._composed(op.TYPE_POINTER, (storage, pointee), at)

    def _composed(self, opcode: int, operands: Sequence[int], at: int) -> int:
        """Return the id of a composite type that replaces the type at ``at``."""
        id, is_new = self._place((opcode, *operands), at)
        return self.changes.define(at, opcode, operands, id) if is_new else id

    def _place(self, key: tuple[int, ...], at: int) -> tuple[int, bool]:
        """Return the id of a type that replaces the type at ``at``, and whether the caller must define it there."""
        id = self._known.get(key)
        if id is None:
            id = self._known[key] = self.changes.new_id()
        elif self._at[id] <= at:
            return id, False
        else:
            self.changes.withdraw(self._at[id], id)
        self._at[id] = at
        return id, True

    def _define_tensor(self, at: int, id: int, shape: Shape) -> None:
        """Define a tensor type with a shape behind the open type at ``at``."""
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

    def _type_of(self, id: int) -> Type:
        return self._declarations.type(id, len(self._words))
