"""One operator of a graph against what the instruction set says of it: operands, types, shapes.

Whoever compiles a graph trusts all of this: the emulation layers end the process where an attribute is not a constant,
and shaders read past the end of a tensor whose shape does not follow from the inputs'.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scenario_runner.spirv._generated import opcodes as op
from scenario_runner.tosa.operators import Attribute, Operand, Operator
from scenario_runner.tosa.shapes import UNKNOWN, Call, Shape, merged, result_shapes, text
from scenario_runner.tosa.values import CONSTANTS, Kind, Values, check_size

if TYPE_CHECKING:
    from collections.abc import Sequence

_MOST_NUMBERS = 128
_ACCUMULATORS = {1: "INT32", 2: "FP16", 3: "FP32", 4: "INT48"}


class Signatures:
    """Checks operators in the order of the module, and follows the shapes of values from one to the next.

    ``shapes`` holds shapes of values that are known better than their types say; a caller may set those of a graph's
    inputs before it begins.
    """

    def __init__(self, values: Values) -> None:
        self._values = values
        self.shapes: dict[int, Shape] = {}
        self.parts: dict[int, tuple[Shape, ...]] = {}
        self.largest: tuple[int, int, Shape] = (0, 0, ())  # elements, id and shape of the largest result so far
        self.computed: tuple[int, str, str] | None = None  # the first operand of `check` that should be a constant
        self._attributes: dict[tuple[Attribute, int, Kind | None], tuple[int, ...]] = {}

    def shape(self, id: int) -> Shape | None:
        """What is known of the shape of a value; None when it has no shape or its rank is not known."""
        known = self.shapes.get(id)
        if known is not None:
            return known
        kind = self._values.kind(id)
        return kind.shape if kind.ranked else None

    def check(self, wanted: Operator, result: int, type: int, operands: Sequence[int]) -> None:
        """Compare one operator with its signature; the ids of its operands and of its type are known to be defined.

        Raises ValueError with the end of a sentence whose subject is the operator, and SpirvError for damaged types.
        """
        count, least = len(operands), len(wanted.attributes) + len(wanted.inputs)
        if count < least or (count > least and not wanted.repeated):
            names = ", ".join([each.name for each in wanted.attributes] + [each.name for each in wanted.inputs])
            more = " or more" if wanted.repeated else ""
            raise ValueError(f"has {count} operands, expected {least}{more}: {names}")
        given = operands[len(wanted.attributes) :]
        letters: dict[str, str] = {}
        shapes: dict[str, Shape | None] = {}
        constants: dict[str, tuple[int, ...]] = {}
        for operand, id in zip(wanted.inputs, given, strict=False):
            kind = self._values.kind(id)
            if operand.type == "shape":
                constants[operand.name] = self._shape_constant(operand.name, id, kind)
            else:
                shapes[operand.name] = self._input(operand, id, kind, letters)
                if operand.single and not self.computed and self._values.opcode(id) not in CONSTANTS:
                    self.computed = result, operand.name, self._origin(id)
        repeated = [shapes[wanted.inputs[0].name]] if wanted.repeated else []
        for position, id in enumerate(given[len(wanted.inputs) :], 2):
            operand = wanted.inputs[0]._replace(name=f"input{position}")
            repeated.append(self._input(operand, id, self._values.kind(id), letters))
        first = self._values.kind(given[0])
        attributes = {
            each.name: self._attribute(each, id, first) for each, id in zip(wanted.attributes, operands, strict=False)
        }
        declared = self._results(wanted, self._values.type(type), letters)
        if "acc_type" in attributes:
            letters["A"] = _ACCUMULATORS[attributes["acc_type"][0]]
        _check_types(wanted, letters)
        if wanted.name == "RESCALE":
            _check_rescale(attributes, letters)
        if None in shapes.values() or None in repeated:
            return  # of a rank that only the device learns
        call = Call(attributes, shapes, constants, repeated)  # type: ignore[arg-type]
        self._keep(result, declared, result_shapes(wanted.name, call))

    def _attribute(self, wanted: Attribute, id: int, first: Kind) -> tuple[int, ...]:
        """The numbers of an attribute; operators like each other share its constants."""
        key = wanted, id, None if wanted.type and wanted.length != 0 else first
        found = self._attributes.get(key)
        if found is None:
            found = self._attributes[key] = self._read_attribute(wanted, id, first)
        return found

    def _read_attribute(self, wanted: Attribute, id: int, first: Kind) -> tuple[int, ...]:
        if self._values.opcode(id) not in CONSTANTS:
            raise ValueError(f"has {wanted.name} from {self._origin(id)}, expected a constant")
        kind = self._values.kind(id)
        if kind.element == "bool" and self._values.opcode(id) == op.CONSTANT_NULL:
            raise ValueError(f"has OpConstantNull as {wanted.name}, expected OpConstantTrue or OpConstantFalse")
        length = wanted.length
        if length == 0:
            length = len(first.shape or ()) if first.ranked else None
        element = wanted.type or first.element
        shape = None if wanted.length is None else (length or UNKNOWN,)
        fits = kind.shape == shape or (shape == (UNKNOWN,) and kind.shape is not None and len(kind.shape) == 1)
        if kind.element != element or not fits:
            raise ValueError(f"has {kind} as {wanted.name}, expected {Kind(element, shape)}")
        if not wanted.type:
            return ()  # a limit in the elements' own type, which need not be an integer
        numbers = self._numbers(wanted.name, id, kind)
        for number in numbers:
            if (wanted.least is not None and number < wanted.least) or (
                wanted.most is not None and number > wanted.most
            ):
                limits = f"{wanted.least} or more" if wanted.most is None else f"{wanted.least} to {wanted.most}"
                raise ValueError(f"has {number} in {wanted.name}, expected {limits}")
        return numbers

    def _shape_constant(self, name: str, id: int, kind: Kind) -> tuple[int, ...]:
        if self._values.opcode(id) not in CONSTANTS:
            raise ValueError(f"has {name} from {self._origin(id)}, expected a constant")
        if kind.element != "i32" or kind.shape is None or len(kind.shape) != 1:
            raise ValueError(f"has {kind} as {name}, expected {Kind('i32', (UNKNOWN,))}")
        return self._numbers(name, id, kind)

    def _numbers(self, name: str, id: int, kind: Kind) -> tuple[int, ...]:
        """The numbers of a constant; as many as its type says, for whoever reads them counts on that."""
        length = 1 if kind.shape is None else kind.shape[0]
        if not 0 < length <= _MOST_NUMBERS:
            raise ValueError(f"has {kind} as {name}, expected 1 to {_MOST_NUMBERS} numbers")
        numbers = self._values.numbers(id)
        if len(numbers) != length:
            raise ValueError(f"has {len(numbers)} numbers in {name}, whose type has {length}")
        return numbers

    def _input(self, wanted: Operand, id: int, kind: Kind, letters: dict[str, str]) -> Shape | None:
        """The shape of an input; None where its rank is not known."""
        if kind.shape is None:
            raise ValueError(f"has {kind} as {wanted.name}, expected a tensor")
        _note_type(wanted, kind.element, letters)
        shape = self.shape(id)
        if shape is None:
            return None
        if wanted.rank is not None and len(shape) != wanted.rank:
            raise ValueError(f"has {kind} as {wanted.name}, expected {_dimensions(wanted.rank)}")
        if wanted.single and shape[0] not in (1, UNKNOWN):
            raise ValueError(f"has {kind} as {wanted.name}, expected one element")
        return shape

    def _results(self, wanted: Operator, kind: Kind, letters: dict[str, str]) -> tuple[Kind, ...]:
        found = kind.parts or (kind,)
        several = len(wanted.results) > 1
        if bool(kind.parts) != several or len(found) != len(wanted.results):
            expected = f"a structure of {len(wanted.results)} tensors" if several else "a tensor"
            raise ValueError(f"gives {kind}, expected {expected}")
        for operand, part in zip(wanted.results, found, strict=True):
            if part.shape is None:
                raise ValueError(f"gives {part}, expected a tensor")
            _note_type(operand, part.element, letters)
            if part.ranked and operand.rank is not None and len(part.shape) != operand.rank:
                raise ValueError(f"gives {part}, expected {_dimensions(operand.rank)}")
        return found

    def _keep(self, result: int, declared: Sequence[Kind], computed: Sequence[Shape]) -> None:
        """Compare shapes of results with what their types say, and remember both together."""
        known = []
        for kind, shape in zip(declared, computed, strict=True):
            both = shape if not kind.ranked or kind.shape is None else merged(kind.shape, shape)
            if both is None:
                raise ValueError(f"gives {kind}, but its inputs make {text(shape)}")
            count = check_size(both)
            if count > self.largest[0]:
                self.largest = count, result, both
            known.append(both)
        if len(known) == 1:
            self.shapes[result] = known[0]
        else:
            self.parts[result] = tuple(known)

    def _origin(self, id: int) -> str:
        opcode = self._values.opcode(id)
        names = {op.EXT_INST: "an operator", op.GRAPH_INPUT: "an input", op.GRAPH_CONSTANT: "a graph constant"}
        return names.get(opcode, f"the instruction {opcode}")


def _note_type(wanted: Operand, element: str, letters: dict[str, str]) -> None:
    """Note what a letter stands for; an element type that contradicts it is an error."""
    expected = wanted.type if not wanted.type.isupper() else letters.setdefault(wanted.type, element)
    if expected != element:
        what = "gives" if wanted.name == "result" else f"has {wanted.name} of"
        raise ValueError(f"{what} {element}, expected {expected}")


def _check_types(wanted: Operator, letters: dict[str, str]) -> None:
    for group, rows in wanted.types:
        found = tuple(letters[letter] for letter in group)
        if found not in rows:
            near = [row for row in rows if row[0] == found[0]] or rows
            expected = ", ".join(sorted("/".join(row) for row in near))
            raise ValueError(f"is used with the element types {'/'.join(found)}, expected one of: {expected}")


def _check_rescale(attributes: dict[str, tuple[int, ...]], letters: dict[str, str]) -> None:
    """What the attributes of RESCALE say about its types."""
    expected = "i32" if attributes["scale32"][0] else "i16"
    if letters["M"] != expected:
        raise ValueError(f"has multiplier of {letters['M']}, expected {expected} as scale32 says")
    unsigned = [name for name in ("input_unsigned", "output_unsigned") if attributes[name][0]]
    if len(unsigned) > 1:
        raise ValueError("has input_unsigned and output_unsigned, expected one of them at most")
    wide = [letters[letter] for letter in "IO" if letters[letter] not in ("i8", "i16")]
    if unsigned and wide:
        raise ValueError(f"has {unsigned[0]} together with {wide[0]}, expected i8 and i16 only")


def _dimensions(rank: int) -> str:
    return f"{rank} dimensions" if rank > 1 else "1 dimension"
