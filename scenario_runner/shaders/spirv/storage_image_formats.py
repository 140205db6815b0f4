"""Changes the formats of storage images in a module.

A module that declares a format for a storage image can only be used with images of that format. `change_formats`
replaces it by the image's format, or by Unknown if SPIR-V has no name for the format. With Unknown, all images with
texels of the same kind may be used, on devices that read and write without a format. A variable is connected with
handles loaded from it, and through calls with functions' parameters. All connected ids share an image type.

Source: Vulkan specification, "SPIR-V and Vulkan Image Format Compatibility"; SPIR-V specification, OpTypeImage, "Image
Format", and "Universal Validation Rules" on types.
"""

from array import array
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from scenario_runner.shaders.spirv._generated import opcodes as op
from scenario_runner.shaders.spirv._generated.enumerants import CAPABILITIES, IMAGE_FORMATS
from scenario_runner.shaders.spirv.access import LOST, READ, TEXEL_POINTER, WRITE, Access
from scenario_runner.shaders.spirv.index import HEADER_WORDS, Index, Rewriting

UNKNOWN: Final = "Unknown"
READ_WITHOUT_FORMAT: Final = "StorageImageReadWithoutFormat"
WRITE_WITHOUT_FORMAT: Final = "StorageImageWriteWithoutFormat"
_EXTENDED: Final = "StorageImageExtendedFormats"
_BASIC: Final = frozenset(
    {"Rgba32f", "Rgba16f", "R32f", "Rgba8", "Rgba8Snorm"}
    | {name + kind for name in ("Rgba32", "Rgba16", "Rgba8", "R32") for kind in ("i", "ui")}
)
"""Formats that every shader may declare. Others, except Unknown, need StorageImageExtendedFormats."""
_NUMBERS: Final = {name: number for number, name in IMAGE_FORMATS.items()}
_CAPABILITY_NUMBERS: Final = {CAPABILITIES[number]: number for number in (49, 55, 56)}
_FORMAT: Final = 8  # the word of OpTypeImage with the format

_STORAGE: Final = 2  # the operand Sampled of OpTypeImage

# Opcodes with the result's type first, which may be an image or a pointer to an image.
_TYPED: Final = frozenset(
    {op.VARIABLE, op.FUNCTION_PARAMETER, op.LOAD, op.COPY_OBJECT, op.COPY_LOGICAL, op.COMPOSITE_EXTRACT}
    | {op.ACCESS_CHAIN, op.IN_BOUNDS_ACCESS_CHAIN, op.SELECT, op.PHI}
)


class ImageUses:
    """Uses of a module's storage images, found once per module (`Index.cached`)."""

    def __init__(self, index: Index) -> None:
        access = index.cached(Access)
        summaries = {function: access.summary(function) for function in index.functions}
        self.parameters = {function: summary.parameters for function, summary in summaries.items()}
        """The parameters of each function."""
        self._joined: dict[int, int] = {}
        for summary in summaries.values():
            for call in summary.calls:
                for parameter, roots in zip(self.parameters.get(call.function, ()), call.arguments, strict=False):
                    self._join((parameter, *roots))
        for roots in access.roots.values():
            self._join(roots)
        self._roots = {id: self._root(roots[0]) for id, roots in access.roots.items()}
        self._flags: dict[int, int] = {}
        for summary in summaries.values():
            for id, flags in summary.effects.items():
                self._flags[self._root(id)] = self._flags.get(self._root(id), 0) | flags
        words, types = index.words, _image_types(index)
        self.types_of = {
            words[at + 2]: words[at + 1]
            for at in index.instructions()
            if words[at] & 0xFFFF in _TYPED and words[at] >> 16 > 2 and words[at + 1] in types
        }
        """The type of every id that is a storage image, or a pointer to a storage image."""

    def connected(self, variable: int) -> tuple[set[int], int]:
        """Return all ids that must share a variable's image type, and the `access` flags of their uses."""
        root = self._root(variable)
        return {id for id, other in self._roots.items() if other == root}, self._flags.get(root, 0)

    def _root(self, id: int) -> int:
        while id in self._joined:
            id = self._joined[id]
        return id

    def _join(self, ids: Sequence[int]) -> None:
        for id in ids:
            first, second = self._root(ids[0]), self._root(id)
            if first != second:
                self._joined[second] = first


def _image_types(index: Index) -> set[int]:
    """Return the types that are storage images, point to them, or are arrays of them."""
    words = index.words
    types: set[int] = set()
    for id, at in index.definitions.items():  # in the order of the module
        opcode = index.opcode(at)
        inner = {op.TYPE_POINTER: 3, op.TYPE_ARRAY: 2, op.TYPE_RUNTIME_ARRAY: 2}.get(opcode)
        is_image = opcode == op.TYPE_IMAGE and words[at + 7] == _STORAGE
        if is_image or (inner is not None and words[at + inner] in types):
            types.add(id)
    return types


class ChangedFormats(NamedTuple):
    """A module in this machine's byte order.

    ``capabilities`` are required by the formats, declared before or not. ``unknown`` are the variables with the format
    Unknown.
    """

    code: bytes
    capabilities: tuple[str, ...]
    unknown: frozenset[int]


def change_formats(index: Index, formats: Mapping[int, str]) -> ChangedFormats | None:
    """Change the formats of storage images: variable's id → format.

    Other variables keep their formats. If a function takes several variables for one parameter, they share a type, with
    the format Unknown if theirs differ. Returns None if the code makes pointers to texels, because atomic operations
    need the declared format. Returns None as well for image uses that this reader does not know.
    """
    uses = index.cached(ImageUses)
    declared: dict[int, str] = {}
    needed: set[str] = set()
    unknown: set[int] = set()
    for variable in formats:
        connected, flags = uses.connected(variable)
        if flags & (TEXEL_POINTER | LOST):
            return None
        together = connected & set(index.variables)
        new_formats = {formats.get(other, UNKNOWN) for other in together}
        format = new_formats.pop() if len(new_formats) == 1 else UNKNOWN
        if format == UNKNOWN:
            unknown |= together
            needed |= {READ_WITHOUT_FORMAT} if flags & READ else set()
            needed |= {WRITE_WITHOUT_FORMAT} if flags & WRITE else set()
        elif format not in _BASIC:
            needed.add(_EXTENDED)
        declared |= dict.fromkeys(connected & uses.types_of.keys(), format)
    change = _Change(index, uses, declared)
    numbers = sorted(_CAPABILITY_NUMBERS[name] for name in needed)
    code = change.code(number for number in numbers if number not in index.capabilities)
    return ChangedFormats(code, tuple(CAPABILITIES[number] for number in numbers), frozenset(unknown))


class _Change:
    """A module with new image types for some values; all other values keep their types. ``formats`` maps ids of values
    to the new format."""

    def __init__(self, index: Index, uses: ImageUses, formats: Mapping[int, str]) -> None:
        self._index = index
        self._rewriting = Rewriting(index)
        self._new: dict[tuple[int, str], int] = {}  # (type, format) → the new type
        self._images: dict[tuple[int, ...], int] = {}
        self._declared = {tuple(index.instruction(at)[2:]): at for at in reversed(index.offsets[op.TYPE_IMAGE])}
        self._value_types = {id: self._changed(uses.types_of[id], format) for id, format in formats.items()}
        offsets = index.offsets[op.TYPE_FUNCTION]
        known = {tuple(index.instruction(at)[2:]): index.words[at + 1] for at in offsets}
        for function, parameters in uses.parameters.items():
            if not formats.keys().isdisjoint(parameters):
                place = index.functions[function] + 4
                old = index.words[place]
                result, *operands = index.instruction(index.definition(old, "a type"))[2:]
                pairs = zip(parameters, operands, strict=False)
                form = (result, *(self._value_types.get(parameter, type) for parameter, type in pairs))
                if form not in known:
                    known[form] = self._add(old, op.TYPE_FUNCTION, form)
                self._rewriting.words[place] = known[form]

    def code(self, capabilities: Iterable[int]) -> bytes:
        """Return the changed module."""
        words = self._rewriting.words
        for at in self._index.instructions():
            if words[at] & 0xFFFF in _TYPED and words[at] >> 16 > 2 and words[at + 2] in self._value_types:
                words[at + 1] = self._value_types[words[at + 2]]
        added = [word for number in capabilities for word in (2 << 16 | op.CAPABILITY, number)]
        result = self._rewriting.result()
        result[HEADER_WORDS:HEADER_WORDS] = array(result.typecode, added)
        return result.tobytes()

    def _changed(self, type: int, format: str) -> int:
        """Return a type like ``type`` with another image format."""
        if (type, format) in self._new:
            return self._new[type, format]
        at = self._index.definition(type, "a type")
        opcode, operands = self._index.opcode(at), list(self._index.instruction(at)[2:])
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
        """Return the image type with these operands; a module must not declare it twice.

        The image type is placed after the texel type, before all uses.
        """
        if operands not in self._images:
            at = self._declared.get(operands)
            if at is None:
                self._images[operands] = self._add(operands[0], op.TYPE_IMAGE, operands)
            else:
                self._rewriting.left_out.add(at)
                self._rewriting.put(self._index.definitions[operands[0]], self._index.instruction(at))
                self._images[operands] = self._index.words[at + 1]
        return self._images[operands]

    def _add(self, behind: int, opcode: int, operands: Sequence[int]) -> int:
        return self._rewriting.define(self._index.definitions[behind], opcode, operands)
