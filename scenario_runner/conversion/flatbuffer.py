"""What is wrong with a TOSA FlatBuffer that the converter cannot load: it ends without a reason then.

Only what tells is read: which operator reads and makes which values. Source: the schema of TOSA FlatBuffers (tosa.fbs
of the TOSA serialization library), and the FlatBuffers file format: tables with a table of the offsets of their fields.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from typing import NamedTuple

_GRAPH_REGIONS, _REGION_BLOCKS, _BLOCK_OPERATORS, _BLOCK_INPUTS = 1, 1, 1, 3
_OPERATOR_OP, _OPERATOR_ATTRIBUTE, _OPERATOR_INPUTS, _OPERATOR_OUTPUTS = 0, 2, 3, 4
_CUSTOM = 69


class _DamagedError(Exception):
    pass


class _Operator(NamedTuple):
    """One operator: what messages call it, and the names of the values that it reads and makes."""

    label: str
    reads: tuple[str, ...]
    makes: tuple[str, ...]


class _Reader:
    """The file; every offset is checked. Positions of tables and vectors are 0 where there is none."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._elements_left = len(content)  # damaged vectors may overlap

    def number(self, at: int, format: str) -> int:
        if not 0 <= at <= len(self._content) - struct.calcsize(format):
            raise _DamagedError
        return int(struct.unpack_from(f"<{format}", self._content, at)[0])

    def field(self, table: int, index: int) -> int:
        """The position of a field of a table."""
        vtable = table - self.number(table, "i")
        entry = 4 + 2 * index
        if entry >= self.number(vtable, "H"):
            return 0
        offset = self.number(vtable + entry, "H")
        return table + offset if offset else 0

    def at(self, field: int) -> int:
        """What a field refers to."""
        return field + self.number(field, "I") if field else 0

    def elements(self, table: int, index: int) -> Iterator[int]:
        """The tables or strings in a vector."""
        vector = self.at(self.field(table, index))
        if not vector:
            return
        for i in range(self.number(vector, "I")):
            self._elements_left -= 1
            if self._elements_left < 0:
                raise _DamagedError
            yield self.at(vector + 4 + 4 * i)

    def text(self, string: int) -> str:
        size = self.number(string, "I")
        if string + 4 + size > len(self._content):
            raise _DamagedError
        return self._content[string + 4 : string + 4 + size].decode(errors="replace")

    def texts(self, table: int, index: int) -> tuple[str, ...]:
        return tuple(self.text(string) for string in self.elements(table, index))


def why_not_loaded(content: bytes) -> str:
    """Why no graph can be made of a TOSA FlatBuffer, as the end of a sentence that begins with its path."""
    try:
        return _wrong(_Reader(content)) or "cannot be loaded: the converter does not say why"
    except _DamagedError:
        return "is damaged or was cut short"


def _wrong(file: _Reader) -> str | None:
    for region in file.elements(file.number(0, "I"), _GRAPH_REGIONS):
        for block in file.elements(region, _REGION_BLOCKS):
            operators = [
                _operator(file, table, number) for number, table in enumerate(file.elements(block, _BLOCK_OPERATORS))
            ]
            wrong = _wrong_block(set(file.texts(block, _BLOCK_INPUTS)), operators)
            if wrong:
                return wrong
    return None


def _operator(file: _Reader, table: int, number: int) -> _Operator:
    label = f"operator {number}"
    op = file.field(table, _OPERATOR_OP)
    attribute = file.at(file.field(table, _OPERATOR_ATTRIBUTE))
    if op and attribute and file.number(op, "I") == _CUSTOM:
        name = file.at(file.field(attribute, 0))
        label += f" (custom operation {file.text(name)!r:.200})" if name else ""
    return _Operator(label, file.texts(table, _OPERATOR_INPUTS), file.texts(table, _OPERATOR_OUTPUTS))


def _wrong_block(known: set[str], operators: list[_Operator]) -> str | None:
    maker = {name: number for number, operator in enumerate(operators) for name in operator.makes}
    for operator in operators:
        for name in operator.reads:
            if name not in known and name not in maker:
                return f"is no valid TOSA model: {operator.label} reads {name!r:.200}, which nothing makes"
    needs = {
        number: {maker[name] for name in operator.reads if name in maker} for number, operator in enumerate(operators)
    }
    try:
        TopologicalSorter(needs).prepare()
    except CycleError as error:
        labels = " reads what is made by ".join(operators[number].label for number in reversed(error.args[1]))
        return f"is no valid TOSA model, its operators form a cycle: {labels}"
    for number, operator in enumerate(operators):
        for name in operator.reads:
            if maker.get(name, -1) > number:
                return (
                    f"is no valid TOSA model: {operator.label} reads {name!r:.200}, which "
                    f"{operators[maker[name]].label} behind it makes"
                )
    return None
