"""The types and constants of a graph module, and where each of its ids is defined.

Source: SPIR-V specification, "Type-Declaration Instructions" and "Constant-Creation Instructions"; SPV_ARM_tensors and
SPV_ARM_graph.
"""

from __future__ import annotations

import struct
from math import prod
from typing import TYPE_CHECKING

from scenario_runner.errors import SpirvError
from scenario_runner.spirv._generated import opcodes as op
from scenario_runner.spirv.module import default_constants
from scenario_runner.tosa import CONSTANTS, UNKNOWN, Kind, Values

if TYPE_CHECKING:
    from scenario_runner.spirv import Module

TYPES = frozenset({*range(19, 40), op.TYPE_TENSOR, op.TYPE_GRAPH})
VALUES = CONSTANTS | {op.EXT_INST, op.GRAPH_CONSTANT, op.GRAPH_INPUT, op.COMPOSITE_EXTRACT}


class Declarations:
    """What a module has defined so far, while it is read from front to end.

    ``opcodes`` says what defines an id, ``places`` at which word. Checks take the word at which the instruction begins
    that is looked at, and raise SpirvError with its place.
    """

    def __init__(self, module: Module, code: bytes) -> None:
        self._name = module.name
        self.source = module.source
        order = ">" if module.big_endian else "<"
        self.words = struct.unpack(f"{order}{len(code) // 4}I", code)
        self.opcodes: dict[int, int] = {}
        self.places: dict[int, int] = {}
        self.values = Values(module.source, default_constants(module.source), self.places)

    def check_type(self, opcode: int, at: int, count: int) -> None:
        words = self.words
        if opcode == op.TYPE_TENSOR:
            self.need(at, count, 3)
            if self.opcodes.get(words[at + 2]) not in (op.TYPE_BOOL, op.TYPE_INT, op.TYPE_FLOAT):
                raise self.error(at, f"is a tensor of the id {words[at + 2]}, which is not a number type")
            for operand in words[at + 3 : at + count]:
                self.check_constant(at, operand)
        elif opcode == op.TYPE_ARRAY:
            self.need(at, count, 4)
            self.check_constant(at, words[at + 3])
        elif opcode == op.TYPE_GRAPH:
            for operand in words[at + 3 : at + count]:
                if self.opcodes.get(operand) not in TYPES:
                    raise self.error(at, f"takes or gives the id {operand}, which is not a type")

    def check_composite(self, at: int, count: int, *, replicated: bool) -> None:
        """Every part of a composite constant is a constant of the element's type, and there are as many as it holds."""
        words = self.words
        type_at = self.places[words[at + 1]]
        element = words[type_at + 2]
        parts = words[at + 3 : at + count]
        for part in parts:
            self.check_constant(at, part)
            type = words[self.places[part] + 1]
            nested = self.opcodes.get(type) in (op.TYPE_TENSOR, op.TYPE_ARRAY)  # tensors of higher rank are built so
            if type != element and not nested:
                raise self.error(at, f"has the part {part} of the type {type}, expected {element}")
        length = self._length(words[at + 1])
        if length is not None and not replicated and not 0 < len(parts) <= length:
            raise self.error(at, f"has {len(parts)} parts for {length} elements")

    def _length(self, type: int) -> int | None:
        """How many elements a composite type has; None where that is not plain to see."""
        words, at = self.words, self.places[type]
        opcode, count = self.opcodes[type], words[at] >> 16
        if opcode == op.TYPE_VECTOR:
            return int(words[at + 3])
        if opcode == op.TYPE_ARRAY:
            return self.number(words[at + 3])
        if opcode == op.TYPE_TENSOR and count == 5:
            shape = self.places.get(words[at + 4])
            if shape is None or words[shape] & 0xFFFF != op.CONSTANT_COMPOSITE:
                return None
            sizes = [self.number(each) for each in words[shape + 3 : shape + (words[shape] >> 16)]]
            return prod(size for size in sizes if size is not None) if None not in sizes else None
        return None

    def check_scalar(self, at: int, count: int) -> None:
        type_at = self.places[self.words[at + 1]]
        if self.words[type_at] & 0xFFFF not in (op.TYPE_INT, op.TYPE_FLOAT):
            raise self.error(at, f"has the type {self.words[at + 1]}, which is not a type of numbers")
        width = self.words[type_at + 2]
        if count != 3 + max(1, width // 32):
            raise self.error(at, f"has {count - 3} words for a number of {width} bits")

    def kind(self, at: int, type: int) -> Kind:
        """What a type stands for; one that no tensor can have is an error."""
        try:
            return self.values.type(type)
        except ValueError as error:
            raise self.error(at, str(error)) from None

    def check_shape(self, at: int) -> None:
        """A constant has as many elements as its type says, so that the type has to say it."""
        kind = self.kind(at, self.words[at + 1])
        if kind.shape is not None and (UNKNOWN in kind.shape or not kind.ranked):
            raise self.error(at, f"is a constant that is {kind}, expected one with a shape")

    def check_value(self, at: int, operand: int) -> None:
        if self.opcodes.get(operand) not in VALUES:
            raise self.error(at, f"uses the id {operand}, which is not a value defined before it")

    def check_constant(self, at: int, operand: int) -> None:
        if self.opcodes.get(operand) not in CONSTANTS:
            raise self.error(at, f"uses the id {operand}, which is not a constant defined before it")

    def number(self, operand: int) -> int | None:
        """The value of an integer constant; None for anything else."""
        words, at = self.words, self.places.get(operand)
        if at is None or words[at] & 0xFFFF != op.CONSTANT or self.opcodes.get(words[at + 1]) != op.TYPE_INT:
            return None
        return int(words[at + 3])

    def define(self, opcode: int, at: int, word: int, count: int) -> None:
        self.need(at, count, word + 1)
        id = self.words[at + word]
        if not 0 < id < self.words[3]:
            raise self.error(at, f"defines the id {id}, which is not below the module's bound {self.words[3]}")
        if id in self.opcodes:
            raise self.error(at, f"defines the id {id} again")
        self.opcodes[id] = opcode
        self.places[id] = at

    def need(self, at: int, count: int, least: int) -> None:
        if count < least:
            raise self.error(at, f"has {count} words, expected {least} or more")

    def error(self, at: int, message: str) -> SpirvError:
        name = f"{self._name}: " if self._name else ""
        opcode = self.words[at] & 0xFFFF
        return SpirvError(
            f"{name}byte {at * 4}: the instruction {opcode} of the graph module {message}", code="SR-GRAPH-014"
        )
