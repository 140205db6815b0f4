"""The instructions of a graph module, checked one by one, and the shapes that follow from those of its inputs.

Whoever compiles a graph trusts it: the emulation layers follow every id without looking, and end the process where
one leads nowhere. Checked are ids (defined once, before they are used, of the right kind), the types of constants and
results, and the operands that all graphs have; `scenario_runner.tosa` checks the operators of TOSA. What operators of
other sets make of their operands is left to the driver.

Source: SPIR-V specification, "Constant-Creation Instructions" and "Extension Instructions"; SPV_ARM_graph and
SPV_ARM_tensors.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

from scenario_runner.errors import SpirvError
from scenario_runner.spirv._generated import opcodes as op
from scenario_runner.tosa import COUNT, UNKNOWN, Interface, Kind, Shape, Signatures, operator, with_shapes
from scenario_runner.tosa.graph_declarations import TYPES, VALUES, Declarations

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from scenario_runner.spirv import Module

_WITH_SHAPE = frozenset({op.CONSTANT_COMPOSITE, op.CONSTANT_NULL, op.CONSTANT_COMPOSITE_REPLICATE, op.GRAPH_CONSTANT})
_RESULTS = frozenset({op.EXT_INST, op.GRAPH_INPUT, op.COMPOSITE_EXTRACT})
_WITH_TYPE = VALUES | {op.VARIABLE, op.GRAPH}
_TOSA = "TOSA.001000.1"
# Sets that this program does not know, such as the motion engine's, are small.
_MOST_OPERATORS = 128


class CheckedGraph(NamedTuple):
    """What a module of graphs is like that was found right.

    ``is_open`` tells whether its types leave shapes open: a driver is to be given what `fix_shapes` makes of it then.
    ``largest`` is what messages call the largest value that an operator gives, with its shape; ``computed`` is a
    message about an operand of one element (a shift, a zero point, the constant of PAD) that is not a constant, and
    its name. TOSA's extension EXT-DYNAMIC allows that; the emulation layers look among the module's constants only.
    """

    is_open: bool
    largest: tuple[str, Shape]
    computed: tuple[str, str] = ("", "")


def check_graph_body(module: Module, code: bytes) -> CheckedGraph:
    """Check every instruction of a module. Raises SpirvError for one that a driver may not be given."""
    body = _Body(module, code)
    body.check()
    return CheckedGraph(bool(body.open), body.largest(), body.computed())


class FixedGraph(NamedTuple):
    """A graph for tensors of given shapes.

    ``outputs`` are the shapes of what it gives by set and binding, -1 where a size does not follow from the inputs;
    ``code`` is its module, None where some shape in it does not follow, and ``unknown`` says whose. ``largest`` is as
    that of a `CheckedGraph`.
    """

    outputs: dict[tuple[int, int], Shape]
    code: bytes | None
    unknown: str = ""
    largest: tuple[str, Shape] = ("", ())


def fix_shapes(module: Module, code: bytes, entry: str, inputs: Mapping[tuple[int, int], Shape]) -> FixedGraph:
    """The graph called ``entry`` of a module whose types leave shapes open, for inputs of these shapes.

    Raises SpirvError where the inputs do not fit each other, with the place of the operator that finds so.
    """
    index = module.source
    for at, found in zip(index.graph_entry_points, module.graph_entry_points, strict=True):
        if found.name == entry:
            shapes = [inputs.get((one.set, one.binding)) for one in found.inputs]
            body = _Body(module, code, index.words[at + 1], shapes)
            body.check()
            return body.fixed(at, [(one.set, one.binding) for one in found.outputs])
    raise SpirvError(f"{module.name}: there is no graph entry point {entry!r}", code="SR-GRAPH-014")


class _Body(Declarations):
    """Reads a module from front to end. ``inputs`` are shapes of the inputs of the graph with the id ``graph``."""

    def __init__(self, module: Module, code: bytes, graph: int = 0, inputs: Sequence[Shape | None] = ()) -> None:
        super().__init__(module, code)
        self._entries = module.graph_entry_points
        self._sets: dict[int, str] = {}
        self._operators = Signatures(self.values)
        self._graph, self._input_shapes = graph, inputs
        self._current = 0
        self._graph_types: dict[int, int] = {}
        self._output_shapes: dict[int, Shape] = {}
        self.open: list[int] = []  # the values whose types leave something of their shapes open

    def check(self) -> None:
        words, at = self.words, 5
        while at < len(words):
            opcode, count = words[at] & 0xFFFF, words[at] >> 16
            if not count or at + count > len(words):
                raise self.error(at, "has more words than the module")
            self._instruction(opcode, at, count)
            at += count
        self._entry_points()

    def _entry_points(self) -> None:
        """The variables of every entry point are of the types that its graph takes and gives."""
        for at, entry in zip(self.source.graph_entry_points, self._entries, strict=True):
            place = self.places[self._graph_types[self.words[at + 1]]]
            types = self.words[place + 3 : place + (self.words[place] >> 16)]
            for resource, type in zip((*entry.inputs, *entry.outputs), types, strict=True):
                wanted, found = self.kind(at, type), self.values.described(resource.tensor)
                if wanted.shape is not None and wanted != found:  # it may be an array of tensors
                    raise self.error(at, f"has {resource.name!r}, which is {found}, but its graph says {wanted}")

    def largest(self) -> tuple[str, Shape]:
        """The largest value that an operator gives."""
        count, id, shape = self._operators.largest
        return (self._called(id), shape) if count else ("", ())

    def computed(self) -> tuple[str, str]:
        """The reason and the name of the first operand that should be a constant; empty if there is none."""
        if self._operators.computed is None:
            return "", ""
        id, operand, origin = self._operators.computed
        name = operator(self.words[self.places[id] + 4]).name
        return f"the operator {name} with the id {id} takes {operand} from {origin}, not from a constant", operand

    def fixed(self, entry: int, places: Sequence[tuple[int, int]]) -> FixedGraph:
        """The graph with the shapes that were found; its entry point is at a word, its outputs at ``places``."""
        outputs = {place: self._output_shapes[i] for i, place in enumerate(places) if i in self._output_shapes}
        shapes: dict[int, Shape | tuple[Shape, ...]] = {}
        for id in self.open:
            shape = self._operators.parts.get(id) or self._operators.shape(id) or (UNKNOWN,)
            if any(UNKNOWN in each if isinstance(each, tuple) else each == UNKNOWN for each in shape):
                return FixedGraph(outputs, None, self._called(id))
            shapes[id] = shape
        words = self.words
        interface = [*self._input_shapes, *(self._output_shapes.get(i) for i in range(len(places)))]
        known = [shape for shape in interface if shape is not None]
        if len(self._graph_types) > 1 or len(known) < len(interface):
            return FixedGraph(outputs, None, "one of several graphs" if len(self._graph_types) > 1 else "an output")
        _, behind = self.source.string_and_end(entry + 2, entry + (words[entry] >> 16))
        variables = words[behind : entry + (words[entry] >> 16)]
        try:
            fixed = with_shapes(words, self.values, shapes, Interface(variables, self._graph_types[self._graph], known))
        except ValueError as error:
            raise self.error(entry, str(error)) from None
        return FixedGraph(outputs, struct.pack(f"<{len(fixed)}I", *fixed), "", self.largest())

    def _called(self, id: int) -> str:
        """What messages call a value: by its operator and id."""
        at = self.places[id]
        if self.opcodes[id] != op.EXT_INST or self._sets[self.words[at + 3]] != _TOSA:
            return f"the id {id}"
        return f"the result {id} of the operator {operator(self.words[at + 4]).name}"

    def _instruction(self, opcode: int, at: int, count: int) -> None:
        words = self.words
        if opcode in TYPES or opcode == op.EXT_INST_IMPORT:
            self.check_type(opcode, at, count)
            self.define(opcode, at, 1, count)
            if opcode == op.EXT_INST_IMPORT:
                self._sets[words[at + 1]] = self.source.string(at + 2, at + count)
        elif opcode in _WITH_TYPE:
            self.need(at, count, 3)
            if self.opcodes.get(words[at + 1]) not in TYPES:
                raise self.error(at, f"has the id {words[at + 1]} as its type, which is not a type")
            if opcode in _WITH_SHAPE:
                self.check_shape(at)
            elif opcode in _RESULTS and _is_open(self.kind(at, words[at + 1])):
                self.open.append(words[at + 2])
            if opcode in (op.CONSTANT_COMPOSITE, op.CONSTANT_COMPOSITE_REPLICATE):
                self.check_composite(at, count, replicated=opcode == op.CONSTANT_COMPOSITE_REPLICATE)
            elif opcode == op.CONSTANT:
                self.check_scalar(at, count)
            elif opcode in (op.CONSTANT_TRUE, op.CONSTANT_FALSE):
                if self.opcodes[words[at + 1]] != op.TYPE_BOOL:
                    raise self.error(at, f"has the type {words[at + 1]}, which is not Boolean")
            elif opcode == op.EXT_INST:
                self._operator(at, count)
            elif opcode == op.GRAPH_INPUT:
                self._tensor_result(at)
                self.need(at, count, 4)
                self._port(at, words[at + 3], words[at + 1], is_input=True)
            elif opcode == op.GRAPH:
                if self.opcodes[words[at + 1]] != op.TYPE_GRAPH:
                    raise self.error(at, f"has the type {words[at + 1]}, which is not a type of a graph")
                self._current = words[at + 2]
                self._graph_types[words[at + 2]] = words[at + 1]
            elif opcode == op.COMPOSITE_EXTRACT:
                self._part(at, count)
            self.define(opcode, at, 2, count)
            if opcode == op.GRAPH_INPUT and self._current == self._graph:
                self._input(at)
        elif opcode == op.GRAPH_SET_OUTPUT:
            self.need(at, count, 3)
            self.check_value(at, words[at + 1])
            self._port(at, words[at + 2], words[self.places[words[at + 1]] + 1], is_input=False)
            shape = self._operators.shape(words[at + 1])  # its type was read where it was defined
            number = self.number(words[at + 2])
            if shape is not None and number is not None and self._current == self._graph:
                self._output_shapes[number] = shape

    def _operator(self, at: int, count: int) -> None:
        words = self.words
        self.need(at, count, 5)
        self._tensor_result(at)
        if self.opcodes.get(words[at + 3]) != op.EXT_INST_IMPORT:
            raise self.error(at, f"is of the instruction set {words[at + 3]}, which is not imported")
        if words[at + 4] > _MOST_OPERATORS:
            raise self.error(at, f"is the operator {words[at + 4]}, which no instruction set has")
        operands = words[at + 5 : at + count]
        for operand in operands:
            self.check_value(at, operand)
        if self._sets[words[at + 3]] == _TOSA:
            self._tosa_operator(at, operands)

    def _tosa_operator(self, at: int, operands: Sequence[int]) -> None:
        words = self.words
        number, result = words[at + 4], words[at + 2]
        if number >= COUNT:
            raise self.error(at, f"is the operator {number} of {_TOSA}, which ends with {COUNT - 1}")
        wanted = operator(number)
        try:
            self._operators.check(wanted, result, words[at + 1], operands)
        except ValueError as error:
            label = self.source.name_of(result)
            called = f"{result} ({label!r:.100})" if label else str(result)
            place = f"{self._name}: " if self._name else ""
            text = f"{place}byte {at * 4}: the operator {wanted.name} with the result {called} {error}"
            raise SpirvError(text, code="SR-GRAPH-014") from None

    def _part(self, at: int, count: int) -> None:
        """One of the results of an operator that has several."""
        words = self.words
        if count != 5:
            raise self.error(at, f"has {count} words, expected 5")
        self.check_value(at, words[at + 3])
        parts = self.kind(at, words[self.places[words[at + 3]] + 1]).parts
        if words[at + 4] >= len(parts) or parts[words[at + 4]] != self.kind(at, words[at + 1]):
            raise self.error(at, f"takes part {words[at + 4]} of the id {words[at + 3]}, which has no such part")
        known = self._operators.parts.get(words[at + 3])
        if known is not None:
            self._operators.shapes[words[at + 2]] = known[words[at + 4]]

    def _input(self, at: int) -> None:
        """An input of the graph whose input shapes are given."""
        number = self.number(self.words[at + 3])
        shape = None if number is None else self._input_shapes[number] if number < len(self._input_shapes) else None
        if shape is not None:
            self._operators.shapes[self.words[at + 2]] = shape

    def _tensor_result(self, at: int) -> None:
        type = self.words[at + 1]
        if self.opcodes[type] not in (
            op.TYPE_TENSOR,
            op.TYPE_STRUCT,
        ):  # operators with several results give a structure
            raise self.error(at, f"gives the type {type}, which is not a tensor")

    def _port(self, at: int, operand: int, type: int, *, is_input: bool) -> None:
        """An input or output of the graph: its number and its type are among those that the type of the graph has."""
        self.check_constant(at, operand)
        number = self.number(operand)
        declared = self._ports(at, is_input=is_input)
        if number is None:
            raise self.error(at, f"has the id {operand} as its index, which is not an integer")
        if number >= len(declared):
            raise self.error(at, f"has the index {number}, but there are {len(declared)}")
        wanted, found = self.kind(at, declared[number]), self.kind(at, type)
        if wanted != found:
            raise self.error(at, f"is {found}, but the type of the graph says {wanted}")

    def _ports(self, at: int, *, is_input: bool) -> Sequence[int]:
        """The types of the inputs or of the outputs of the graph that is read."""
        if self._current not in self._graph_types:
            raise self.error(at, "stands outside of a graph")
        words, place = self.words, self.places[self._graph_types[self._current]]
        middle, end = place + 3 + words[place + 2], place + (words[place] >> 16)
        return words[place + 3 : middle] if is_input else words[middle:end]


def _is_open(kind: Kind) -> bool:
    return any(map(_is_open, kind.parts)) or (kind.shape is not None and (UNKNOWN in kind.shape or not kind.ranked))
