"""Storage images whose format a module leaves open.

A module that declares a format for a storage image may only be used with images of that format. With the format
Unknown it may be used with all of the same numeric type, on devices that read and write without a format.

Source: Vulkan specification, "Shaders", features shaderStorageImageReadWithoutFormat and
shaderStorageImageWriteWithoutFormat; SPIR-V specification, OpTypeImage, and "Universal Validation Rules" on types.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from scenario_runner.spirv import opcodes as op
from scenario_runner.spirv.image_uses import ImageUses
from scenario_runner.spirv.index import HEADER_WORDS, Index

READ_WITHOUT_FORMAT: Final = 55
WRITE_WITHOUT_FORMAT: Final = 56
_UNKNOWN: Final = 0
_FORMAT: Final = 8  # the word of OpTypeImage with the format


class OpenFormats(NamedTuple):
    """A module in this machine's byte order. ``reads`` and ``writes`` tell whether its code reads and writes texels of
    the images whose format was changed."""

    code: bytes
    reads: bool
    writes: bool


def open_formats(index: Index, variables: Iterable[int]) -> OpenFormats | None:
    """The module with the format Unknown for the storage images that are bound to ``variables``, by their ids.

    Other variables keep their types, unless functions take both. None where the code makes pointers to texels, for
    atomic operations, which need a format; or uses an image in a way that this reader does not know.
    """
    uses = index.once(ImageUses)
    found = [uses.connected(id) for id in variables]
    if any(each.atomic or each.lost for each in found):
        return None
    reads, writes = any(each.reads for each in found), any(each.writes for each in found)
    ids = frozenset().union(*(each.ids for each in found)) & uses.types_of.keys()
    change = _Change(index, uses, ids)
    lacking = [(READ_WITHOUT_FORMAT, reads), (WRITE_WITHOUT_FORMAT, writes)]
    needed = [number for number, wanted in lacking if wanted and number not in index.capabilities]
    return OpenFormats(change.code(needed), reads, writes)


class _Change:
    """New types for the values ``ids``, beside those that others keep."""

    def __init__(self, index: Index, uses: ImageUses, ids: frozenset[int]) -> None:
        self._index = index
        self._ids = ids
        self._bound = index.bound
        self._new: dict[int, int] = {}  # a type → the one that takes its place
        self._behind: dict[int, list[Sequence[int]]] = {}  # a type → the instructions that come after its definition
        self._images: dict[tuple[int, ...], int] = {}
        self._moved: set[int] = set()  # types that stand there now
        self._functions: dict[int, int] = {}  # a function → its new type
        self._value_types = {id: self._changed(uses.types_of[id]) for id in ids}
        known = {
            tuple(self._instruction(id)[2:]): id
            for id, at in index.definitions.items()
            if index.opcode(at) == op.TYPE_FUNCTION
        }
        for function, parameters in uses.parameters.items():
            if not ids.isdisjoint(parameters):
                old = index.words[index.functions[function] + 4]
                result = self._instruction(old)[2]
                given = self._instruction(old)[3:]
                types = [
                    self._value_types.get(parameter, type) for parameter, type in zip(parameters, given, strict=False)
                ]
                form = (result, *types)
                if form not in known:
                    known[form] = self._add(old, op.TYPE_FUNCTION, form)
                self._functions[function] = known[form]

    def code(self, capabilities: Iterable[int]) -> bytes:
        """The changed module."""
        index = self._index
        words = index.words
        made = array(words.typecode, words[:HEADER_WORDS])
        made[3] = self._bound
        for number in capabilities:
            made.extend((2 << 16 | op.CAPABILITY, number))
        types = {at: id for id, at in index.definitions.items() if id in self._behind or id in self._moved}
        at = HEADER_WORDS
        while at < len(words):
            count, opcode = words[at] >> 16, words[at] & 0xFFFF
            instruction = words[at : at + count]
            if opcode == op.FUNCTION and words[at + 2] in self._functions:
                instruction[4] = self._functions[words[at + 2]]
            elif opcode in _TYPED and count > 2 and words[at + 2] in self._ids:
                instruction[1] = self._value_types[words[at + 2]]
            id = types.get(at)
            if id not in self._moved:
                made.extend(instruction)
            if id is not None:
                for added in self._behind.get(id, ()):
                    made.extend(added)
            at += count
        return made.tobytes()

    def _instruction(self, id: int) -> Sequence[int]:
        at = self._index.definition(id, "a type")
        return self._index.words[at : at + self._index.count(at)]

    def _changed(self, type: int) -> int:
        """The type with an image of format Unknown in the place of that in ``type``."""
        if type in self._new:
            return self._new[type]
        index = self._index
        opcode = index.opcode(index.definitions[type])
        operands = list(self._instruction(type)[2:])
        if opcode == op.TYPE_IMAGE:
            operands[_FORMAT - 2] = _UNKNOWN
            new = self._image(tuple(operands))
        else:
            inner = 1 if opcode == op.TYPE_POINTER else 0
            changed = self._changed(operands[inner])
            new = type
            if changed != operands[inner]:
                operands[inner] = changed
                new = self._add(type, opcode, operands)
        self._new[type] = new
        return new

    def _image(self, operands: tuple[int, ...]) -> int:
        """The type of image with these operands, of which a module may have one only.

        It stands behind the type of its texels: all that needs it comes later.
        """
        if operands not in self._images:
            there = (id for id, at in self._index.definitions.items() if self._index.opcode(at) == op.TYPE_IMAGE)
            new = next((id for id in there if tuple(self._instruction(id)[2:]) == operands), None)
            if new is None:
                new = self._add(operands[0], op.TYPE_IMAGE, operands)
            else:
                self._moved.add(new)
                self._behind.setdefault(operands[0], []).append(self._instruction(new))
            self._images[operands] = new
        return self._images[operands]

    def _add(self, behind: int, opcode: int, operands: Sequence[int]) -> int:
        id = self._bound
        self._bound += 1
        self._behind.setdefault(behind, []).append((len(operands) + 2 << 16 | opcode, id, *operands))
        return id


# Opcodes whose first operand is the type of their result, among those that `ImageUses` connects.
_TYPED: Final = frozenset(
    {
        op.VARIABLE,
        op.FUNCTION_PARAMETER,
        op.LOAD,
        op.COPY_OBJECT,
        op.COPY_LOGICAL,
        op.ACCESS_CHAIN,
        op.IN_BOUNDS_ACCESS_CHAIN,
        op.SELECT,
        op.PHI,
    }
)
