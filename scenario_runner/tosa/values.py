"""The values that operators are given, read from a module: element type, shape, and the numbers of constants."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from scenario_runner.spirv import Scalar, Struct, Tensor
from scenario_runner.spirv._generated import opcodes as op
from scenario_runner.spirv.constants import Constants
from scenario_runner.spirv.index import Index
from scenario_runner.tosa.shapes import UNKNOWN, Shape, text

CONSTANTS: Final = frozenset(
    {
        op.CONSTANT_TRUE,
        op.CONSTANT_FALSE,
        op.CONSTANT,
        op.CONSTANT_COMPOSITE,
        op.CONSTANT_NULL,
        op.CONSTANT_COMPOSITE_REPLICATE,
    }
)
_ENCODINGS: Final = {"bfloat16": "bf16", "float8_e4m3": "e4m3", "float8_e5m2": "e5m2"}
_MOST_DIMENSIONS: Final = 6
# Above what any device offers: the device's own limit is its driver's to check.
_MOST_ELEMENTS: Final = 2**48


class Kind(NamedTuple):
    """The type of a value. ``element`` is "bool", "i8" to "i64", "f16" to "f64", "bf16", "e4m3" or "e5m2".

    ``shape`` is None for a scalar, ``ranked`` false for a tensor whose type does not say how many dimensions it has
    (its shape is empty then). ``parts`` are those of a structure, which has no element type of its own.
    """

    element: str
    shape: Shape | None = None
    ranked: bool = True
    parts: tuple["Kind", ...] = ()

    def __str__(self) -> str:
        if self.parts:
            return f"a structure of {len(self.parts)}"
        if self.shape is None:
            return f"one {self.element}" if self.element else "what is not a number"
        return f"a tensor of {self.element}" + (f" {text(self.shape)}" if self.ranked else " of any rank")


class Values:
    """Values by id. ``places`` says at which word each id is defined, and grows while the module is read."""

    def __init__(self, index: Index, constants: Constants, places: Mapping[int, int]) -> None:
        self._index = index
        self._words = index.words
        self._constants = constants
        self._places = places
        self._kinds: dict[int, Kind] = {}

    def opcode(self, id: int) -> int:
        """The opcode of the instruction that defines a value."""
        return self._words[self._places[id]] & 0xFFFF

    def kind(self, id: int) -> Kind:
        """The kind of a value. Raises ValueError for a type that no tensor can have, SpirvError for a damaged one."""
        return self.type(self._words[self._places[id] + 1])

    def type(self, id: int) -> Kind:
        """The kind that a type stands for."""
        kind = self._kinds.get(id)
        if kind is None:
            kind = self._kinds[id] = self.described(self._constants.types.type(id, len(self._words)))
        return kind

    def numbers(self, id: int) -> tuple[int, ...]:
        """The numbers of a constant that is an integer, a Boolean or a tensor of one dimension with few of them.

        Raises ValueError for one that is made of anything else.
        """
        words, at = self._words, self._places[id]
        opcode, count = words[at] & 0xFFFF, words[at] >> 16
        if opcode == op.CONSTANT_COMPOSITE:
            return tuple(map(self._number, words[at + 3 : at + count]))
        shape = self.kind(id).shape
        if shape is None:
            return (self._number(id),)
        return (self._number(words[at + 3]) if opcode == op.CONSTANT_COMPOSITE_REPLICATE else 0,) * shape[0]

    def _number(self, id: int) -> int:
        words, at = self._words, self._places[id]
        opcode = words[at] & 0xFFFF
        if opcode == op.CONSTANT:
            return _signed(words[at + 3])
        if opcode in (op.CONSTANT_TRUE, op.CONSTANT_FALSE):
            return int(opcode == op.CONSTANT_TRUE)
        if opcode != op.CONSTANT_NULL or self.kind(id).shape is not None:
            raise ValueError(f"has a constant that is made of {self.kind(id)}, expected numbers")
        return 0

    def described(self, type: object) -> Kind:
        """The kind that a type of the reader stands for."""
        if isinstance(type, Struct):
            return Kind("", None, True, tuple(self.described(member.type) for member in type.members))
        if isinstance(type, Scalar):
            return Kind(_element(type))
        if not isinstance(type, Tensor):
            return Kind("")
        element = _element(type.element)
        if type.rank is None:
            return Kind(element, (), ranked=False)
        if not 0 < type.rank <= _MOST_DIMENSIONS:
            raise ValueError(f"has a tensor of {type.rank} dimensions, expected 1 to {_MOST_DIMENSIONS}")
        shape = (UNKNOWN,) * type.rank if type.shape is None else type.shape
        check_size(shape)
        return Kind(element, shape)


def check_size(shape: Sequence[int]) -> int:
    """The number of elements, at least. Raises ValueError for a shape that no tensor can have."""
    count = 1
    for size in shape:
        count *= 1 if size == UNKNOWN else size
        if not (size == UNKNOWN or size > 0) or count > _MOST_ELEMENTS:
            raise ValueError(
                f"has a tensor of the shape {list(shape)}, expected sizes that memory can hold, none of them 0"
            )
    return count


def _element(scalar: Scalar) -> str:
    if scalar.kind == "bool":
        return "bool"
    if scalar.kind != "float":
        return f"i{scalar.width_bits}"
    return _ENCODINGS.get(scalar.encoding, scalar.encoding) if scalar.encoding else f"f{scalar.width_bits}"


def _signed(word: int) -> int:
    return word - (1 << 32) if word >> 31 else word
