"""Storage images with another format than a module declares.

A module that declares a format for a storage image may only be used with images of that format. It is given the format
of the image, or the format Unknown where SPIR-V has no name for it: then all images with texels of the same kind may be
used, on devices that read and write without a format. A variable is connected with the handles that are loaded from it,
and through calls with parameters of functions; all that are connected have one type of image.

Source: Vulkan specification, "SPIR-V and Vulkan Image Format Compatibility"; SPIR-V specification, OpTypeImage, "Image
Format", and "Universal Validation Rules" on types.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from scenario_runner.spirv._generated import opcodes as op
from scenario_runner.spirv._generated.enumerants import CAPABILITIES, IMAGE_FORMATS
from scenario_runner.spirv.index import FIRST_VENDOR_OPCODE, HEADER_WORDS, Index

UNKNOWN: Final = "Unknown"
READ_WITHOUT_FORMAT: Final = "StorageImageReadWithoutFormat"
WRITE_WITHOUT_FORMAT: Final = "StorageImageWriteWithoutFormat"
_EXTENDED: Final = "StorageImageExtendedFormats"
_BASIC: Final = frozenset(
    (
        *("Rgba32f", "Rgba16f", "R32f", "Rgba8", "Rgba8Snorm"),
        *(name + kind for name in ("Rgba32", "Rgba16", "Rgba8", "R32") for kind in ("i", "ui")),
    )
)
"""Formats that every shader may declare; others but Unknown take the capability StorageImageExtendedFormats."""
_NUMBERS: Final = {name: number for number, name in IMAGE_FORMATS.items()}
_CAPABILITY_NUMBERS: Final = {CAPABILITIES[number]: number for number in (49, 55, 56)}
_FORMAT: Final = 8  # the word of OpTypeImage with the format

_STORAGE: Final = 2  # the operand Sampled of OpTypeImage

# Opcodes whose result is connected with operands: the words that hold these, from the first one in steps.
_PASSES: Final = {
    **dict.fromkeys((op.LOAD, op.COPY_OBJECT, op.COPY_LOGICAL), (3, 4, 1)),
    **dict.fromkeys((op.ACCESS_CHAIN, op.IN_BOUNDS_ACCESS_CHAIN), (3, 4, 1)),
    op.SELECT: (4, 6, 1),
    op.PHI: (3, None, 2),
}
# Opcodes whose first operand is the type of their result, among those that are connected.
_TYPED: Final = frozenset({op.VARIABLE, op.FUNCTION_PARAMETER, *_PASSES})
# Opcodes that use an image and lead nowhere: the word that holds it, and the use.
_USES: Final = {
    op.IMAGE_READ: (3, "reads"),
    op.IMAGE_SPARSE_READ: (3, "reads"),
    op.IMAGE_WRITE: (1, "writes"),
    op.IMAGE_TEXEL_POINTER: (3, "atomic"),
}
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
    """Uses of the storage images of one module; made once for each (`Index.once`)."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._roots: dict[int, int] = {}
        self.types_of: dict[int, int] = {}
        """The type of every id that is a storage image, or a pointer to one."""
        self.parameters: dict[int, list[int]] = {}
        """The parameters of each function."""
        self._used: dict[str, set[int]] = {"reads": set(), "writes": set(), "atomic": set(), "lost": set()}
        self._types = self._image_types()
        if self._types:
            self._note_parameters()
            self._follow()

    def connected(self, id: int) -> Connected:
        """Return all ids that are connected with a variable, itself included."""
        root = self._root(id)
        ids = frozenset(each for each in (*self.types_of, id) if self._root(each) == root)
        return Connected(ids, **{use: not ids.isdisjoint(used) for use, used in self._used.items()})

    def _image_types(self) -> set[int]:
        """Return the types that are, point to or are arrays of storage images."""
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
            while at < len(words) and words[at] & 0xFFFF in (op.FUNCTION_PARAMETER, op.LINE, op.NO_LINE):
                if words[at] & 0xFFFF == op.FUNCTION_PARAMETER:
                    parameters.append(words[at + 2])
                at += words[at] >> 16

    def _follow(self) -> None:
        words, types = self._index.words, self._types
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
                    self._used["lost"].update(words[at + 2 : at + count])
            else:
                word, use = _USES.get(opcode, (count, ""))
                if word < count:
                    self._used[use].add(words[at + word])
                if opcode in _LEADS_AWAY or (in_function and opcode >= FIRST_VENDOR_OPCODE):
                    self._used["lost"].update(words[at + 1 : at + count])
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


class ChangedFormats(NamedTuple):
    """A module in this machine's byte order. ``capabilities`` are those that the formats take, declared before or not;
    ``unknown`` are the variables whose images have the format Unknown now."""

    code: bytes
    capabilities: tuple[str, ...]
    unknown: frozenset[int]


def change_formats(index: Index, formats: Mapping[int, str]) -> ChangedFormats | None:
    """Change the formats of the storage images that are bound to variables: id of the variable → format.

    Other variables keep theirs. Where a function takes several variables for one parameter, these have one type: they
    get the format Unknown if theirs are not the same. None where the code makes pointers to texels, for atomic
    operations, which need the declared format; or uses an image in a way that this reader does not know.
    """
    uses = index.once(ImageUses)
    given: dict[int, str] = {}
    needed: set[str] = set()
    unknown: set[int] = set()
    for variable in formats:
        connected = uses.connected(variable)
        if connected.atomic or connected.lost:
            return None
        together = connected.ids & set(index.variables)
        wanted = {formats.get(each, UNKNOWN) for each in together}
        format = wanted.pop() if len(wanted) == 1 else UNKNOWN
        if format == UNKNOWN:
            unknown |= together
            needed |= {READ_WITHOUT_FORMAT} if connected.reads else set()
            needed |= {WRITE_WITHOUT_FORMAT} if connected.writes else set()
        elif format not in _BASIC:
            needed.add(_EXTENDED)
        given |= dict.fromkeys(connected.ids & uses.types_of.keys(), format)
    change = _Change(index, uses, given)
    numbers = sorted(_CAPABILITY_NUMBERS[name] for name in needed)
    code = change.code(number for number in numbers if number not in index.capabilities)
    return ChangedFormats(code, tuple(CAPABILITIES[number] for number in numbers), frozenset(unknown))


class _Change:
    """New types for values, beside those that others keep; ``formats`` are those of their images, by id."""

    def __init__(self, index: Index, uses: ImageUses, formats: Mapping[int, str]) -> None:
        self._index = index
        self._bound = index.bound
        self._new: dict[tuple[int, str], int] = {}  # a type and a format → the one that takes its place
        self._behind: dict[int, list[Sequence[int]]] = {}  # a type → the instructions that come after its definition
        self._images: dict[tuple[int, ...], int] = {}
        self._moved: set[int] = set()  # types that stand there now
        self._functions: dict[int, int] = {}  # a function → its new type
        self._value_types = {id: self._changed(uses.types_of[id], format) for id, format in formats.items()}
        known = {
            tuple(self._instruction(id)[2:]): id
            for id, at in index.definitions.items()
            if index.opcode(at) == op.TYPE_FUNCTION
        }
        for function, parameters in uses.parameters.items():
            if not formats.keys().isdisjoint(parameters):
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
        """Return the changed module."""
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
            elif opcode in _TYPED and count > 2 and words[at + 2] in self._value_types:
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

    def _changed(self, type: int, format: str) -> int:
        """Return a type like ``type`` with an image of another format."""
        if (type, format) in self._new:
            return self._new[type, format]
        index = self._index
        opcode = index.opcode(index.definitions[type])
        operands = list(self._instruction(type)[2:])
        if opcode == op.TYPE_IMAGE:
            operands[_FORMAT - 2] = _NUMBERS[format]
            new = self._image(tuple(operands))
        else:
            inner = 1 if opcode == op.TYPE_POINTER else 0
            changed = self._changed(operands[inner], format)
            new = type
            if changed != operands[inner]:
                operands[inner] = changed
                new = self._add(type, opcode, operands)
        self._new[type, format] = new
        return new

    def _image(self, operands: tuple[int, ...]) -> int:
        """Return the type of image with these operands, of which a module may have only one.

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
