"""What the code of a module does with each storage image, and which ids must have one type with it.

A variable is connected with the handles that are loaded from it, and through calls with parameters of functions; what
is connected has one type of image.

Source: SPIR-V specification, "Image Instructions", "Memory Instructions" and "Function Instructions".
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from scenario_runner.spirv import opcodes as op
from scenario_runner.spirv.index import HEADER_WORDS, Index

_STORAGE: Final = 2  # the operand Sampled of OpTypeImage
_FIRST_VENDOR_OPCODE: Final = 4096

# Opcodes whose result is connected with operands: the words that hold these, from the first one in steps.
_PASSES: Final = {
    **dict.fromkeys((op.LOAD, op.COPY_OBJECT, op.COPY_LOGICAL), (3, 4, 1)),
    **dict.fromkeys((op.ACCESS_CHAIN, op.IN_BOUNDS_ACCESS_CHAIN), (3, 4, 1)),
    op.SELECT: (4, 6, 1),
    op.PHI: (3, None, 2),
}
# Opcodes that use an image and lead nowhere: the word that holds it.
_READS: Final = {op.IMAGE_READ: 3, op.IMAGE_SPARSE_READ: 3}
_WRITES: Final = {op.IMAGE_WRITE: 1}
_ATOMIC: Final = {op.IMAGE_TEXEL_POINTER: 3}
_LEADS_AWAY: Final = frozenset({op.STORE, op.RETURN_VALUE, op.COPY_MEMORY})


class Connected(NamedTuple):
    """Ids that must have one type of image. ``reads`` and ``writes`` tell what the code does with texels, ``atomic``
    whether it makes pointers to texels, and ``lost`` whether some use is one that this reader does not know."""

    ids: frozenset[int]
    reads: bool
    writes: bool
    atomic: bool
    lost: bool


class ImageUses:
    """The storage images of one module; made once for each (`Index.once`)."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._roots: dict[int, int] = {}
        self.types_of: dict[int, int] = {}
        """The type of every id that is a storage image, or a pointer to one."""
        self.parameters: dict[int, list[int]] = {}
        """The parameters of each function."""
        self._reads: set[int] = set()
        self._writes: set[int] = set()
        self._atomic: set[int] = set()
        self._lost: set[int] = set()
        self._types = self._image_types()
        if self._types:
            self._note_parameters()
            self._follow()

    def connected(self, id: int) -> Connected:
        """Everything that is connected with a variable, itself among it."""
        root = self._root(id)
        ids = frozenset(each for each in (*self.types_of, id) if self._root(each) == root)
        flags = (self._reads, self._writes, self._atomic, self._lost)
        return Connected(ids, *(not ids.isdisjoint(each) for each in flags))

    def _image_types(self) -> set[int]:
        """The types that are, point to or are arrays of storage images."""
        index = self._index
        words = index.words
        found: set[int] = set()
        for id, at in index.definitions.items():  # in the order of the module
            opcode = index.opcode(at)
            inner = {op.TYPE_POINTER: 3, op.TYPE_ARRAY: 2, op.TYPE_RUNTIME_ARRAY: 2}.get(opcode)
            if opcode == op.TYPE_IMAGE:
                if words[at + 7] == _STORAGE:
                    found.add(id)
            elif inner is not None and words[at + inner] in found:
                found.add(id)
        return found

    def _note_parameters(self) -> None:
        words = self._index.words
        for function, at in self._index.functions.items():
            parameters = self.parameters.setdefault(function, [])
            at += words[at] >> 16
            while at < len(words) and words[at] & 0xFFFF in (op.FUNCTION_PARAMETER, 8, 317):
                if words[at] & 0xFFFF == op.FUNCTION_PARAMETER:
                    parameters.append(words[at + 2])
                at += words[at] >> 16

    def _follow(self) -> None:
        words, types = self._index.words, self._types
        uses = ((_READS, self._reads), (_WRITES, self._writes), (_ATOMIC, self._atomic))
        at, in_function = HEADER_WORDS, False
        while at < len(words):
            count, opcode = words[at] >> 16, words[at] & 0xFFFF
            in_function = in_function or opcode == op.FUNCTION
            passes = _PASSES.get(opcode)
            if passes is not None and count > passes[0]:
                if words[at + 1] in types:
                    self.types_of[words[at + 2]] = words[at + 1]
                    first, last, step = passes
                    self._join(words[at + 2], words[at + first : at + min(last or count, count) : step])
            elif opcode in (op.VARIABLE, op.FUNCTION_PARAMETER) and count > 2:
                if words[at + 1] in types:
                    self.types_of[words[at + 2]] = words[at + 1]
            elif opcode == op.FUNCTION_CALL and count > 3:
                for argument, parameter in zip(
                    words[at + 4 : at + count], self.parameters.get(words[at + 3], ()), strict=False
                ):
                    if argument in self.types_of:
                        self._join(parameter, (argument,))
                if words[at + 1] in types:
                    self._lost.update(words[at + 2 : at + count])
            else:
                for table, used in uses:
                    if opcode in table and count > table[opcode]:
                        used.add(words[at + table[opcode]])
                if opcode in _LEADS_AWAY or (in_function and opcode >= _FIRST_VENDOR_OPCODE):
                    self._lost.update(words[at + 1 : at + count])
            at += count

    def _root(self, id: int) -> int:
        roots = self._roots
        while id in roots:
            id = roots[id]
        return id

    def _join(self, id: int, others: Iterable[int]) -> None:
        for other in others:
            first, second = self._root(id), self._root(other)
            if first != second:
                self._roots[second] = first
