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
from math import prod
from typing import TYPE_CHECKING, NamedTuple

from scenario_runner.errors import SpirvError
from scenario_runner.tosa import (
    COUNT,
    UNKNOWN,
    Interface,
    Kind,
    Shape,
    Signatures,
    Values,
    operator,
    with_shapes,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from scenario_runner.spirv import Module

_EXT_INST_IMPORT, _EXT_INST = 11, 12
_TYPE_BOOL, _TYPE_INT, _TYPE_FLOAT, _TYPE_VECTOR, _TYPE_ARRAY, _TYPE_STRUCT = 20, 21, 22, 23, 28, 30
_CONSTANT_TRUE, _CONSTANT_FALSE, _CONSTANT, _CONSTANT_COMPOSITE, _CONSTANT_NULL = 41, 42, 43, 44, 46
_REPLICATED = 4461
_TYPE_TENSOR, _GRAPH_CONSTANT, _GRAPH, _GRAPH_INPUT, _GRAPH_SET_OUTPUT, _TYPE_GRAPH = 4163, 4181, 4183, 4184, 4185, 4190
_VARIABLE, _COMPOSITE_EXTRACT = 59, 81
_TYPES = frozenset({*range(19, 40), _TYPE_TENSOR, _TYPE_GRAPH})
_CONSTANTS = frozenset({_CONSTANT_TRUE, _CONSTANT_FALSE, _CONSTANT, _CONSTANT_COMPOSITE, _CONSTANT_NULL, _REPLICATED})
_VALUES = _CONSTANTS | {_EXT_INST, _GRAPH_CONSTANT, _GRAPH_INPUT, _COMPOSITE_EXTRACT}
_WITH_SHAPE = frozenset({_CONSTANT_COMPOSITE, _CONSTANT_NULL, _REPLICATED, _GRAPH_CONSTANT})
_RESULTS = frozenset({_EXT_INST, _GRAPH_INPUT, _COMPOSITE_EXTRACT})
_WITH_TYPE = _VALUES | {_VARIABLE, _GRAPH}
_TOSA = "TOSA.001000.1"
# Sets that this program does not know, such as the motion engine's, are small.
_MOST_OPERATORS = 128


def check_graph_body(module: Module, code: bytes) -> bool:
    """Raise SpirvError where the module is no graph module that a driver can be given.

    Returns whether its types leave shapes open: a driver is to be given what `fix_shapes` makes of it then.
    """
    body = _Body(module, code)
    body.check()
    return body.is_open


class FixedGraph(NamedTuple):
    """A graph for tensors of given shapes.

    ``outputs`` are the shapes of what it gives by set and binding, -1 where a size does not follow from the inputs;
    ``code`` is its module, None where some shape in it does not follow, and ``unknown`` says whose.
    """

    outputs: dict[tuple[int, int], Shape]
    code: bytes | None
    unknown: str = ""


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
    raise SpirvError(f"{module.name}: there is no graph entry point {entry!r}")


class _Body:
    """Reads a module from front to end. ``inputs`` are shapes of the inputs of the graph with the id ``graph``."""

    def __init__(self, module: Module, code: bytes, graph: int = 0, inputs: Sequence[Shape | None] = ()) -> None:
        self._name = module.name
        self._source = module.source
        order = ">" if module.big_endian else "<"
        self._words = struct.unpack(f"{order}{len(code) // 4}I", code)
        self._opcodes: dict[int, int] = {}
        self._places: dict[int, int] = {}
        self._bound = self._words[3]
        entries = module.graph_entry_points
        self._inputs = max((len(entry.inputs) for entry in entries), default=0)
        self._outputs = max((len(entry.outputs) for entry in entries), default=0)
        self._sets: dict[int, str] = {}
        assert module.source.constants is not None, "read_module makes them"
        self._values = Values(module.source, module.source.constants, self._places)
        self._operators = Signatures(self._values)
        self._graph, self._input_shapes = graph, inputs
        self._current = 0
        self._graph_types: dict[int, int] = {}
        self._output_shapes: dict[int, Shape] = {}
        self._open: list[int] = []  # the values whose types leave something of their shapes open

    def check(self) -> None:
        words, at = self._words, 5
        while at < len(words):
            opcode, count = words[at] & 0xFFFF, words[at] >> 16
            if not count or at + count > len(words):
                raise self._error(at, "has more words than the module")
            self._instruction(opcode, at, count)
            at += count

    @property
    def is_open(self) -> bool:
        return bool(self._open)

    def fixed(self, entry: int, places: Sequence[tuple[int, int]]) -> FixedGraph:
        """The graph with the shapes that were found; its entry point is at a word, its outputs at ``places``."""
        outputs = {place: self._output_shapes[i] for i, place in enumerate(places) if i in self._output_shapes}
        shapes: dict[int, Shape | tuple[Shape, ...]] = {}
        for id in self._open:
            shape = self._operators.parts.get(id) or self._operators.shape(id) or (UNKNOWN,)
            if any(UNKNOWN in each if isinstance(each, tuple) else each == UNKNOWN for each in shape):
                return FixedGraph(outputs, None, self._called(id))
            shapes[id] = shape
        words = self._words
        interface = [*self._input_shapes, *(self._output_shapes.get(i) for i in range(len(places)))]
        known = [shape for shape in interface if shape is not None]
        if len(self._graph_types) > 1 or len(known) < len(interface):
            return FixedGraph(outputs, None, "one of several graphs" if len(self._graph_types) > 1 else "an output")
        _, behind = self._source.string_and_end(entry + 2, entry + (words[entry] >> 16))
        variables = words[behind : entry + (words[entry] >> 16)]
        try:
            fixed = with_shapes(
                words, self._values, shapes, Interface(variables, self._graph_types[self._graph], known)
            )
        except ValueError as error:
            raise self._error(entry, str(error)) from None
        return FixedGraph(outputs, struct.pack(f"<{len(fixed)}I", *fixed))

    def _called(self, id: int) -> str:
        """What messages call a value: by its operator and id."""
        at = self._places[id]
        if self._opcodes[id] != _EXT_INST or self._sets[self._words[at + 3]] != _TOSA:
            return f"the id {id}"
        return f"the result {id} of the operator {operator(self._words[at + 4]).name}"

    def _instruction(self, opcode: int, at: int, count: int) -> None:
        words = self._words
        if opcode in _TYPES or opcode == _EXT_INST_IMPORT:
            self._type(opcode, at, count)
            self._define(opcode, at, 1, count)
            if opcode == _EXT_INST_IMPORT:
                self._sets[words[at + 1]] = self._source.string(at + 2, at + count)
        elif opcode in _WITH_TYPE:
            self._need(at, count, 3)
            if self._opcodes.get(words[at + 1]) not in _TYPES:
                raise self._error(at, f"has the id {words[at + 1]} as its type, which is no type")
            if opcode in _WITH_SHAPE:
                self._fixed(at)
            elif opcode in _RESULTS and _is_open(self._kind(at, words[at + 1])):
                self._open.append(words[at + 2])
            if opcode in (_CONSTANT_COMPOSITE, _REPLICATED):
                self._composite(at, count, replicated=opcode == _REPLICATED)
            elif opcode == _CONSTANT:
                self._scalar(at, count)
            elif opcode in (_CONSTANT_TRUE, _CONSTANT_FALSE):
                if self._opcodes[words[at + 1]] != _TYPE_BOOL:
                    raise self._error(at, f"is a Boolean of the type {words[at + 1]}, which is none")
            elif opcode == _EXT_INST:
                self._operator(at, count)
            elif opcode == _GRAPH_INPUT:
                self._tensor_result(at)
                self._need(at, count, 4)
                self._index(at, words[at + 3], self._inputs)
            elif opcode == _GRAPH:
                self._current = words[at + 2]
                self._graph_types[words[at + 2]] = words[at + 1]
            elif opcode == _COMPOSITE_EXTRACT:
                self._part(at, count)
            self._define(opcode, at, 2, count)
            if opcode == _GRAPH_INPUT and self._current == self._graph:
                self._input(at)
        elif opcode == _GRAPH_SET_OUTPUT:
            self._need(at, count, 3)
            self._value(at, words[at + 1])
            self._index(at, words[at + 2], self._outputs)
            shape = self._operators.shape(words[at + 1])  # its type was read where it was defined
            number = self._number(words[at + 2])
            if shape is not None and number is not None and self._current == self._graph:
                self._output_shapes[number] = shape

    def _type(self, opcode: int, at: int, count: int) -> None:
        words = self._words
        if opcode == _TYPE_TENSOR:
            self._need(at, count, 3)
            if self._opcodes.get(words[at + 2]) not in (_TYPE_BOOL, _TYPE_INT, _TYPE_FLOAT):
                raise self._error(at, f"is a tensor of the id {words[at + 2]}, which is no number type")
            for operand in words[at + 3 : at + count]:
                self._constant(at, operand)
        elif opcode == _TYPE_ARRAY:
            self._need(at, count, 4)
            self._constant(at, words[at + 3])
        elif opcode == _TYPE_GRAPH:
            for operand in words[at + 3 : at + count]:
                if self._opcodes.get(operand) not in _TYPES:
                    raise self._error(at, f"takes or gives the id {operand}, which is no type")

    def _composite(self, at: int, count: int, *, replicated: bool) -> None:
        """Every part of a composite constant is a constant of the element's type, and there are as many as it holds."""
        words = self._words
        type_at = self._places[words[at + 1]]
        element = words[type_at + 2]
        parts = words[at + 3 : at + count]
        for part in parts:
            self._constant(at, part)
            type = words[self._places[part] + 1]
            nested = self._opcodes.get(type) in (_TYPE_TENSOR, _TYPE_ARRAY)  # tensors of higher rank are built so
            if type != element and not nested:
                raise self._error(at, f"has the part {part} of the type {type}, expected {element}")
        length = self._length(words[at + 1])
        if length is not None and not replicated and not 0 < len(parts) <= length:
            raise self._error(at, f"has {len(parts)} parts for {length} elements")

    def _length(self, type: int) -> int | None:
        """How many elements a composite type has; None where that is not plain to see."""
        words, at = self._words, self._places[type]
        opcode, count = self._opcodes[type], words[at] >> 16
        if opcode == _TYPE_VECTOR:
            return int(words[at + 3])
        if opcode == _TYPE_ARRAY:
            return self._number(words[at + 3])
        if opcode == _TYPE_TENSOR and count == 5:
            shape = self._places.get(words[at + 4])
            if shape is None or words[shape] & 0xFFFF != _CONSTANT_COMPOSITE:
                return None
            sizes = [self._number(each) for each in words[shape + 3 : shape + (words[shape] >> 16)]]
            return prod(size for size in sizes if size is not None) if None not in sizes else None
        return None

    def _scalar(self, at: int, count: int) -> None:
        type_at = self._places[self._words[at + 1]]
        if self._words[type_at] & 0xFFFF not in (_TYPE_INT, _TYPE_FLOAT):
            raise self._error(at, f"is a number of the type {self._words[at + 1]}, which is none")
        width = self._words[type_at + 2]
        if count != 3 + max(1, width // 32):
            raise self._error(at, f"has {count - 3} words for a number of {width} bits")

    def _operator(self, at: int, count: int) -> None:
        words = self._words
        self._need(at, count, 5)
        self._tensor_result(at)
        if self._opcodes.get(words[at + 3]) != _EXT_INST_IMPORT:
            raise self._error(at, f"is of the instruction set {words[at + 3]}, which is not imported")
        if words[at + 4] > _MOST_OPERATORS:
            raise self._error(at, f"is the operator {words[at + 4]}, which no instruction set has")
        operands = words[at + 5 : at + count]
        for operand in operands:
            self._value(at, operand)
        if self._sets[words[at + 3]] == _TOSA:
            self._tosa_operator(at, operands)

    def _tosa_operator(self, at: int, operands: Sequence[int]) -> None:
        words = self._words
        number, result = words[at + 4], words[at + 2]
        if number >= COUNT:
            raise self._error(at, f"is the operator {number} of {_TOSA}, which ends with {COUNT - 1}")
        wanted = operator(number)
        try:
            self._operators.check(wanted, result, words[at + 1], operands)
        except ValueError as error:
            label = self._source.name_of(result)
            called = f"{result} ({label!r:.100})" if label else str(result)
            place = f"{self._name}: " if self._name else ""
            text = f"{place}byte {at * 4}: the operator {wanted.name} with the result {called} {error}"
            raise SpirvError(text) from None

    def _part(self, at: int, count: int) -> None:
        """One of the results of an operator that has several."""
        words = self._words
        if count != 5:
            raise self._error(at, f"has {count} words, expected 5")
        self._value(at, words[at + 3])
        parts = self._kind(at, words[self._places[words[at + 3]] + 1]).parts
        if words[at + 4] >= len(parts) or parts[words[at + 4]] != self._kind(at, words[at + 1]):
            raise self._error(at, f"takes part {words[at + 4]} of the id {words[at + 3]}, which has no such part")
        known = self._operators.parts.get(words[at + 3])
        if known is not None:
            self._operators.shapes[words[at + 2]] = known[words[at + 4]]

    def _input(self, at: int) -> None:
        """An input of the graph whose input shapes are given."""
        number = self._number(self._words[at + 3])
        shape = None if number is None else self._input_shapes[number] if number < len(self._input_shapes) else None
        if shape is not None:
            self._operators.shapes[self._words[at + 2]] = shape

    def _tensor_result(self, at: int) -> None:
        type = self._words[at + 1]
        if self._opcodes[type] not in (_TYPE_TENSOR, _TYPE_STRUCT):  # operators with several results give a structure
            raise self._error(at, f"gives the type {type}, which is no tensor")

    def _kind(self, at: int, type: int) -> Kind:
        """What a type stands for; one that no tensor can have is an error."""
        try:
            return self._values.type(type)
        except ValueError as error:
            raise self._error(at, str(error)) from None

    def _fixed(self, at: int) -> None:
        """A constant has as many elements as its type says, so that the type has to say it."""
        kind = self._kind(at, self._words[at + 1])
        if kind.shape is not None and (UNKNOWN in kind.shape or not kind.ranked):
            raise self._error(at, f"is a constant that is {kind}, expected one with a shape")

    def _value(self, at: int, operand: int) -> None:
        if self._opcodes.get(operand) not in _VALUES:
            raise self._error(at, f"uses the id {operand}, which is no value defined before it")

    def _constant(self, at: int, operand: int) -> None:
        if self._opcodes.get(operand) not in _CONSTANTS:
            raise self._error(at, f"uses the id {operand}, which is no constant defined before it")

    def _index(self, at: int, operand: int, count: int) -> None:
        self._constant(at, operand)
        number = self._number(operand)
        if number is None or number >= count:
            raise self._error(at, f"has the index {number}, but there are {count}")

    def _number(self, operand: int) -> int | None:
        at = self._places.get(operand)
        return None if at is None or self._words[at] & 0xFFFF != _CONSTANT else self._words[at + 3]

    def _define(self, opcode: int, at: int, word: int, count: int) -> None:
        self._need(at, count, word + 1)
        id = self._words[at + word]
        if not 0 < id < self._bound:
            raise self._error(at, f"defines the id {id}, which is not below the module's bound {self._bound}")
        if id in self._opcodes:
            raise self._error(at, f"defines the id {id} again")
        self._opcodes[id] = opcode
        self._places[id] = at

    def _need(self, at: int, count: int, least: int) -> None:
        if count < least:
            raise self._error(at, f"has {count} words, expected {least} or more")

    def _error(self, at: int, message: str) -> SpirvError:
        name = f"{self._name}: " if self._name else ""
        opcode = self._words[at] & 0xFFFF
        return SpirvError(f"{name}byte {at * 4}: the instruction {opcode} of the graph module {message}")


def _is_open(kind: Kind) -> bool:
    return any(map(_is_open, kind.parts)) or (kind.shape is not None and (UNKNOWN in kind.shape or not kind.ranked))
