"""TOSA FlatBuffers: their shaders as a `Function`, and the same file with placeholders for its shaders.

Source: the schema of TOSA FlatBuffers (tosa.fbs of the TOSA serialization library). Tables refer forwards only.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

from scenario_runner.conversion.model import CustomOperation, Function, TensorType, Value
from scenario_runner.files.source import SourceFile
from scenario_runner.flatbuffers import DamagedError, Tables

_GRAPH_REGIONS = _REGION_BLOCKS = _BLOCK_OPERATORS = 1
_BLOCK_TENSORS, _BLOCK_INPUTS, _BLOCK_OUTPUTS = 2, 3, 4
_OPERATOR_OP, _OPERATOR_ATTRIBUTE, _OPERATOR_INPUTS, _OPERATOR_OUTPUTS = 0, 2, 3, 4
_CUSTOM_FIELDS = _, _, _CUSTOM_ATTRIBUTES = 0, 1, 2  # name, domain, attributes
_TENSOR_NAME, _TENSOR_SHAPE, _TENSOR_TYPE, _TENSOR_IS_UNRANKED = 0, 1, 2, 5
_CUSTOM = 69
_UNKNOWN = TensorType("unknown", None, "?")
_ELEMENTS = ("?", "i1", "i4", "i8", "i16", "i32", "i48", "f32", "f16", "bf16", "shape", "f8E4M3FN", "f8E5M2")
_IDENTIFIER = b"TOSA"
_ALIGNMENT = 16


def _tables(content: bytes | SourceFile) -> Tables:
    if isinstance(content, bytes):
        return Tables.of(content)
    return Tables(lambda at, size: content.read(size, at), content.size_bytes)


def _block(file: Tables) -> int:
    """The block that the converter converts: the first one of the first region."""
    for region in file.elements(file.number(0), _GRAPH_REGIONS):
        for block in file.elements(region, _REGION_BLOCKS):
            return block
    raise DamagedError


def parse_flatbuffer(content: bytes | SourceFile) -> Function:
    """The function that the file holds; ``span`` of a custom operation is its number among the operators.

    Raises DamagedError, also for operators that read what none before them makes, which ends the converter without a
    word.
    """
    file = _tables(content)
    block = _block(file)
    inputs, outputs = (file.texts(block, index) for index in (_BLOCK_INPUTS, _BLOCK_OUTPUTS))
    known = set(inputs)
    customs = []
    has_others = False
    for number, table in enumerate(file.elements(block, _BLOCK_OPERATORS)):
        reads, makes = (file.texts(table, index) for index in (_OPERATOR_INPUTS, _OPERATOR_OUTPUTS))
        custom = file.child(table, _OPERATOR_ATTRIBUTE) if file.value(table, _OPERATOR_OP) == _CUSTOM else 0
        fields = [file.text(file.child(custom, index)) for index in _CUSTOM_FIELDS] if custom else []
        for read in reads:
            if read not in known:
                label = f"operator {number}" + (f" (custom operation {fields[0]!r:.200})" if fields else "")
                raise DamagedError(f"is no valid TOSA model: {label} reads {read!r:.200}, which none before it makes")
        known.update(makes)
        if fields:
            customs.append((number, fields, reads, makes))
        has_others = has_others or not fields
    shown = {*inputs, *outputs, *(name for _, _, reads, makes in customs for name in (*reads, *makes))}
    types = {}
    for table in file.elements(block, _BLOCK_TENSORS):
        name = file.text(file.child(table, _TENSOR_NAME))
        if name in shown:
            types[name] = _tensor_type(file, table)

    def values(names: Sequence[str]) -> tuple[Value, ...]:
        return tuple(Value(name, types.get(name, _UNKNOWN)) for name in names)

    operations = tuple(
        CustomOperation(
            name=name,
            domain=domain,
            attributes=attributes,
            operands=values(reads),
            results=values(makes),
            span=(number, number),
            attributes_span=(0, 0),
            line=0,
        )
        for number, (name, domain, attributes), reads, makes in customs
    )
    returned = values(outputs)
    return Function(
        name="main",
        arguments=values(inputs),
        result_types=tuple(value.type for value in returned),
        operations=operations,
        nested=(),
        returned=returned,
        is_only_shaders=not has_others and all(operation.is_shader for operation in operations),
        input_names=inputs,
        output_names=outputs,
        span=(0, 0),
        has_body=True,
    )


def _tensor_type(file: Tables, table: int) -> TensorType:
    number = file.value(table, _TENSOR_TYPE)
    element = _ELEMENTS[number] if number < len(_ELEMENTS) else "?"
    if file.value(table, _TENSOR_IS_UNRANKED, "B"):
        return TensorType(f"tensor<*x{element}>", None, element)
    sizes = file.numbers(table, _TENSOR_SHAPE)
    text = "".join(f"{'?' if size < 0 else size}x" for size in sizes)
    return TensorType(f"tensor<{text}{element}>", tuple(None if size < 0 else size for size in sizes), element)


def placeholder_front(content: bytes | SourceFile, function: Function, attributes: Sequence[Sequence[bytes]]) -> bytes:
    """The beginning of a file that ends with ``content``, and has placeholders for its shaders: operators of one result
    each, with these ``attributes``.

    The tables around the operators are written anew, and refer to all others in ``content``.
    """
    file = _tables(content)
    front = _Front(file)
    graph = front.copy(0, file.number(0))
    regions = front.vector(front.field(graph, _GRAPH_REGIONS), file.elements(file.number(0), _GRAPH_REGIONS))
    old = file.at(file.child(file.number(0), _GRAPH_REGIONS) + 4)
    region = front.copy(regions[0], old)
    blocks = front.vector(front.field(region, _REGION_BLOCKS), file.elements(old, _REGION_BLOCKS))
    block = front.copy(blocks[0], _block(file))
    shaders = {shader.span[0]: number for number, shader in enumerate(function.shaders)}
    operators: list[int] = []
    new: list[tuple[int, int, int]] = []
    for number, table in enumerate(file.elements(_block(file), _BLOCK_OPERATORS)):
        results = len(attributes[shaders[number]]) if number in shaders else 1
        if number in shaders:
            new += [(len(operators) + result, shaders[number], result) for result in range(results)]
        operators += [table] * results
    places = front.vector(front.field(block, _BLOCK_OPERATORS), operators)
    for place, shader, result in new:
        old = operators[place]
        operator = front.copy(places[place], old, scalars=_OPERATOR_ATTRIBUTE)
        made = list(file.elements(old, _OPERATOR_OUTPUTS))[result]
        front.vector(front.field(operator, _OPERATOR_OUTPUTS), [made])
        custom = front.copy(front.field(operator, _OPERATOR_ATTRIBUTE), file.child(old, _OPERATOR_ATTRIBUTE))
        front.add_bytes(front.field(custom, _CUSTOM_ATTRIBUTES), attributes[shader][result])
    return front.finish()


class _Front:
    """New tables, each written behind the reference to it, and references from them into the old file."""

    def __init__(self, file: Tables) -> None:
        self._file = file
        self._data = bytearray(bytes(4) + _IDENTIFIER)
        self._old: dict[int, int] = {}

    def _begin(self, reference: int) -> int:
        """A new object, to which ``reference`` refers."""
        self._data += bytes(-len(self._data) % 4)
        self._old.pop(reference, None)
        struct.pack_into("<I", self._data, reference, len(self._data) - reference)
        return len(self._data)

    def copy(self, reference: int, old: int, scalars: int = 0) -> int:
        """A copy of a table of which all fields behind the first ``scalars`` are references."""
        table, offsets = self._file.table(old)
        vtable = len(self._data) + len(self._data) % 2
        self._data += bytes(vtable - len(self._data)) + offsets
        at = self._begin(reference)
        self._data += table
        struct.pack_into("<i", self._data, at, at - vtable)
        for index in range(scalars, len(offsets) // 2 - 2):
            field = self._file.field(old, index)
            if field:
                self._old[at + field - old] = self._file.at(field)
        return at

    def field(self, table: int, index: int) -> int:
        """The position of a field of a new table."""
        vtable = table - int(struct.unpack_from("<i", self._data, table)[0])
        return table + int(struct.unpack_from("<H", self._data, vtable + 4 + 2 * index)[0])

    def vector(self, reference: int, elements: Iterator[int] | Sequence[int]) -> list[int]:
        """A vector of references to tables or strings of the old file; their places."""
        old = list(elements)
        at = self._begin(reference) + 4
        self._data += struct.pack("<I", len(old)) + bytes(4 * len(old))
        places = [at + 4 * i for i in range(len(old))]
        self._old.update(zip(places, old, strict=True))
        return places

    def add_bytes(self, reference: int, content: bytes) -> None:
        """A vector of bytes."""
        self._begin(reference)
        self._data += struct.pack("<I", len(content)) + content

    def finish(self) -> bytes:
        self._data += bytes(-len(self._data) % _ALIGNMENT)
        for reference, old in self._old.items():
            struct.pack_into("<I", self._data, reference, len(self._data) + old - reference)
        return bytes(self._data)
