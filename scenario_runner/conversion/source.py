"""A TOSA model in a file or in memory: its form (MLIR text, MLIR bytecode, FlatBuffer), its contents, its errors.

Of a FlatBuffer the shaders are read as a `Function`, and the same file is written with placeholders for its shaders.
Source: the schema of TOSA FlatBuffers (tosa.fbs of the TOSA serialization library). Tables refer forwards only.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from io import SEEK_CUR, BytesIO
from typing import Literal, NamedTuple

from scenario_runner.conversion.converter import FAILED, INVALID, NOT_LOWERED, Input, dump
from scenario_runner.conversion.model import CustomOperation, Function, Model, Value
from scenario_runner.conversion.text_model import NotUnderstoodError, parse_text
from scenario_runner.custom_shader.attributes import ValueType
from scenario_runner.diagnostics import Diagnostic
from scenario_runner.errors import ScenarioRunnerError, error_of
from scenario_runner.files.source import SourceFile
from scenario_runner.flatbuffers import DamagedError, Tables

_GRAPH_REGIONS = _REGION_BLOCKS = _BLOCK_OPERATORS = 1
_BLOCK_TENSORS, _BLOCK_INPUTS, _BLOCK_OUTPUTS = 2, 3, 4
_OPERATOR_OP, _OPERATOR_ATTRIBUTE, _OPERATOR_INPUTS, _OPERATOR_OUTPUTS = 0, 2, 3, 4
_CUSTOM_FIELDS = _, _, _CUSTOM_ATTRIBUTES = 0, 1, 2  # name, domain, attributes
_TENSOR_NAME, _TENSOR_SHAPE, _TENSOR_TYPE, _TENSOR_IS_UNRANKED = 0, 1, 2, 5
_CUSTOM = 69
_UNKNOWN = ValueType(None, "?", "unknown")
_ELEMENTS = ("?", "i1", "i4", "i8", "i16", "i32", "i48", "f32", "f16", "bf16", "shape", "f8E4M3FN", "f8E5M2")
_IDENTIFIER = b"TOSA"
_ALIGNMENT = 16


def _tables(content: bytes | SourceFile) -> Tables:
    return Tables.of(content) if isinstance(content, bytes) else Tables(content.read, content.size_bytes)


def _block(file: Tables) -> int:
    """The block that the converter converts: the first one of the first region."""
    for region in file.elements(file.number(0), _GRAPH_REGIONS):
        for block in file.elements(region, _REGION_BLOCKS):
            return block
    raise DamagedError


def parse_flatbuffer(content: bytes | SourceFile) -> tuple[Function, str]:
    """The function that the file holds; ``span`` of a custom operation is its number among the operators.

    Also the problem of an operator that reads what none before it makes, which ends the converter without a word.
    Raises DamagedError.
    """
    file = _tables(content)
    block = _block(file)
    inputs, outputs = (file.texts(block, index) for index in (_BLOCK_INPUTS, _BLOCK_OUTPUTS))
    known = set(inputs)
    customs = []
    has_others, problem = False, ""
    for number, table in enumerate(file.elements(block, _BLOCK_OPERATORS)):
        reads, makes = (file.texts(table, index) for index in (_OPERATOR_INPUTS, _OPERATOR_OUTPUTS))
        custom = file.child(table, _OPERATOR_ATTRIBUTE) if file.value(table, _OPERATOR_OP) == _CUSTOM else 0
        fields = [file.text(file.child(custom, index)) for index in _CUSTOM_FIELDS] if custom else []
        for read in reads:
            if read not in known:
                label = f"operator {number}" + (f" (custom operation {fields[0]!r:.200})" if fields else "")
                problem = problem or f"is no valid TOSA model: {label} reads {read!r:.200}, which none before it makes"
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
        )
        for number, (name, domain, attributes), reads, makes in customs
    )
    returned = values(outputs)
    function = Function(
        name="main",
        arguments=values(inputs),
        result_types=tuple(value.type for value in returned),
        operations=operations,
        returned=returned,
        is_only_shaders=not has_others and all(operation.is_shader for operation in operations),
        input_names=inputs,
        output_names=outputs,
    )
    return function, problem


def _tensor_type(file: Tables, table: int) -> ValueType:
    number = file.value(table, _TENSOR_TYPE)
    element = _ELEMENTS[number] if number < len(_ELEMENTS) else "?"
    if file.value(table, _TENSOR_IS_UNRANKED, "B"):
        return ValueType(None, element, f"tensor<*x{element}>")
    sizes = file.numbers(table, _TENSOR_SHAPE)
    text = "".join(f"{'?' if size < 0 else size}x" for size in sizes)
    return ValueType(tuple(None if size < 0 else size for size in sizes), element, f"tensor<{text}{element}>")


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
        output = list(file.elements(old, _OPERATOR_OUTPUTS))[result]
        front.vector(front.field(operator, _OPERATOR_OUTPUTS), [output])
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


_BYTECODE = b"ML\xefR"
_IS_ALIGNED, _OPERATIONS_SECTION, _HAS_PROPERTIES_AND_REGIONS = 0x80, 4, 0x50
_IDENTIFIER_AT, _START_BYTES = 4, 8


class Source(NamedTuple):
    """The source of a model: a file, or ``memory``. ``name`` is what messages call it.

    ``is_plain`` says that it is one function without custom operations, which the converter can be given as it is. A
    file is not kept in memory. ``function`` and ``problem`` are those of a FlatBuffer (`parse_flatbuffer`).
    """

    name: str
    form: Literal["text", "bytecode", "flatbuffer"]
    is_plain: bool
    memory: bytes | None = None
    function: Function | None = None
    problem: str = ""

    def opened(self) -> AbstractContextManager[bytes | SourceFile]:
        """Open the model without reading all of a file. Raises FileError."""
        return SourceFile(self.name) if self.memory is None else nullcontext(self.memory)

    def input(self) -> Input:
        """The model as it is, for the converter."""
        is_flatbuffer = self.form == "flatbuffer"
        return Input(is_flatbuffer, self.name) if self.memory is None else Input(is_flatbuffer, None, [self.memory])


def _all_of(content: bytes | SourceFile) -> bytes:
    return content if isinstance(content, bytes) else content.read(content.size_bytes)


def open_source(model: str | os.PathLike[str] | bytes, name: str = "<memory>") -> Source:
    """Look at a file or at the content of one. Raises FileError where it cannot be read or is a damaged FlatBuffer."""
    source = Source(name, "text", False, model) if isinstance(model, bytes) else Source(os.fspath(model), "text", False)
    with source.opened() as file:
        start = file[:_START_BYTES] if isinstance(file, bytes) else file.read(_START_BYTES)
        if start[_IDENTIFIER_AT:] == _IDENTIFIER:  # it may be large: little of it is in memory at a time
            try:
                function, problem = parse_flatbuffer(file)
            except DamagedError as error:
                raise unreadable(source.name, str(error)) from None
            return source._replace(form="flatbuffer", is_plain=not function.shaders, function=function, problem=problem)
        content = _all_of(file)
    if content.startswith(_BYTECODE):
        return source._replace(form="bytecode", is_plain=b"custom" not in content and _is_one_operation(content))
    return source._replace(is_plain=content.count(b"func.func") == 1 and b"custom" not in content)


def _is_one_operation(content: bytes) -> bool:
    """Tell whether the module of MLIR bytecode holds one operation, which is a function.

    Source: MLIR bytecode format. The section of the operations begins with a block that has the module, whose region
    is a section of its own.
    """
    file = BytesIO(content)

    def number() -> int:
        first = file.read(1)[0]
        size = (first & -first).bit_length() or 9  # the zeros below the first one count the bytes that follow
        return int.from_bytes(bytes([first]) + file.read(size - 1), "little") >> min(size, 8)

    def section() -> tuple[int, int]:
        kind, size = file.read(1)[0], number()
        if kind & _IS_ALIGNED:
            alignment = number()
            file.seek(-file.tell() % alignment, SEEK_CUR)
        return kind & ~_IS_ALIGNED, file.tell() + size

    try:
        file.seek(len(_BYTECODE))
        number()  # the version of the format, behind which the producer is named
        file.seek(content.index(0, file.tell()) + 1)
        kind, end = section()
        while kind != _OPERATIONS_SECTION:
            file.seek(end)
            kind, end = section()
        number(), number()  # operations of the block, and the name of the module operation
        if file.read(1)[0] != _HAS_PROPERTIES_AND_REGIONS:
            return False
        number(), number(), number()  # location, properties, regions
        section()
        number(), number()  # blocks, values
        return number() >> 1 == 1
    except (IndexError, ValueError, ArithmeticError):
        return False


@contextmanager
def converter_errors(source: Source, model: Model | None = None, findings: Iterable[Diagnostic] = ()) -> Iterator[None]:
    """Errors of the converter become those of the model that it does not convert.

    ``model`` is what it was given in place of the source itself. Of the ``findings`` so far, what was left to the
    converter may be the reason.
    """
    try:
        yield
    except NotUnderstoodError as error:
        raise unreadable(source.name, f"is not understood: {error}") from error
    except ScenarioRunnerError as error:
        problem, *others = error.at(path=source.name).problems
        if problem.code not in (INVALID, NOT_LOWERED, FAILED):
            raise
        if source.problem:
            raise unreadable(source.name, source.problem) from error
        if source.form != "text" or (model and not model.is_users_text):
            problem = problem._replace(line=None)
        left = [finding for finding in findings if finding.code == "SR-CUSTOM-035"]
        raise error_of([problem, *others, *left]) from error


def unreadable(path: str, message: str, help: str | None = None) -> ScenarioRunnerError:
    """The error for a file that is no model."""
    return error_of([Diagnostic(INVALID, "error", None, message, help, path=path)])


def parse_model(source: Source) -> Model:
    """The model with its custom operations.

    Raises FileError where it is not a TOSA model, and UnsupportedError where the converter is needed (for bytecode) and
    not installed.
    """
    path = source.name
    if source.problem:
        raise unreadable(path, source.problem)
    if source.function is not None:
        return Model(path, None, (source.function,), is_users_text=False)
    model = None
    if source.form == "text":
        with source.opened() as file:
            text = _decoded(_all_of(file), path)
        with suppress(NotUnderstoodError):  # it may be right all the same: as the converter writes it, it is read
            model = parse_text(text, path)
    if model is None:
        with converter_errors(source):
            model = parse_text(dump(source.input()), path)._replace(is_users_text=False)
    if not model.functions:
        raise unreadable(path, "has no function", "expected a TOSA model: MLIR with a func.func, or a TOSA FlatBuffer")
    return model


def _decoded(content: bytes, path: str) -> str:
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        problem = f"the byte at the offset {error.start} is not UTF-8"
    else:
        if "\0" not in text:
            return text
        problem = f"there is a NUL character at the offset {text.index(chr(0))}"
    raise unreadable(path, f"is no TOSA model: {problem}", "expected MLIR text, MLIR bytecode or a TOSA FlatBuffer")
