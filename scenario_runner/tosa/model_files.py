"""Reading of TOSA models from files or memory. The form is MLIR text, MLIR bytecode or a FlatBuffer.

Source: the schema of TOSA FlatBuffers (tosa.fbs of the TOSA serialization library).
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from io import SEEK_CUR, BytesIO
from typing import Literal, NamedTuple

from scenario_runner.errors import ScenarioRunnerError, error_of
from scenario_runner.errors.diagnostic import Diagnostic
from scenario_runner.files.input import VGF_SIGNATURE, SourceFile, recognized
from scenario_runner.ml.flatbuffers import DamagedError, Tables
from scenario_runner.ml.vgf_tables import Content
from scenario_runner.tosa.model import CustomOperation, Function, Model, Value, ValueType
from scenario_runner.tosa.model_converter import FAILED, INVALID, NOT_LOWERED, STOPPED, Input, dump
from scenario_runner.tosa.text_model import NotUnderstoodError, parse_text

_GRAPH_REGIONS = _REGION_BLOCKS = BLOCK_OPERATORS = 1
BLOCK_TENSORS, BLOCK_INPUTS, BLOCK_OUTPUTS = 2, 3, 4
OPERATOR_OP, _OPERATOR_ATTRIBUTE, OPERATOR_INPUTS, OPERATOR_OUTPUTS = 0, 2, 3, 4
_CUSTOM_FIELDS = _, _, _CUSTOM_ATTRIBUTES = 0, 1, 2  # name, domain, attributes
TENSOR_NAME, _TENSOR_SHAPE, _TENSOR_TYPE, _TENSOR_IS_UNRANKED = 0, 1, 2, 5
_CUSTOM = 69
_UNKNOWN = ValueType(None, "?", "unknown")
_ELEMENTS = ("?", "i1", "i4", "i8", "i16", "i32", "i48", "f32", "f16", "bf16", "shape", "f8E4M3FN", "f8E5M2")
_IDENTIFIER = b"TOSA"


def first_block(file: Tables) -> int:
    """Find the block that the converter converts, the first in the first region."""
    for region in file.elements(file.number(0), _GRAPH_REGIONS):
        for block in file.elements(region, _REGION_BLOCKS):
            return block
    raise DamagedError


def parse_flatbuffer(content: Content) -> tuple[Function, str]:
    """Read the function in a FlatBuffer, and the first operator that reads a value before it is made.

    The converter fails on such an operator without a message. The second result is a message about it, or empty. The
    ``attributes_span`` of a custom operation is the place of the reference to the attributes. Raises DamagedError.
    """
    file = Tables(content.part, content.size_bytes)
    block = first_block(file)
    inputs, outputs = (file.texts(block, index) for index in (BLOCK_INPUTS, BLOCK_OUTPUTS))
    tensors = file.elements(block, BLOCK_TENSORS)
    types = {file.text(file.child(table, TENSOR_NAME)): tensor_type(file, table) for table in tensors}

    def values(names: Sequence[str]) -> tuple[Value, ...]:
        return tuple(Value(name, types.get(name, _UNKNOWN)) for name in names)

    known = set(inputs)
    operations = []
    problem, count = "", 0
    for table in file.elements(block, BLOCK_OPERATORS):
        reads, makes = (file.texts(table, index) for index in (OPERATOR_INPUTS, OPERATOR_OUTPUTS))
        label = f"operator {count}"
        if file.value(table, OPERATOR_OP) == _CUSTOM and (custom := file.child(table, _OPERATOR_ATTRIBUTE)):
            name, domain, attributes = (file.text(file.child(custom, index)) for index in _CUSTOM_FIELDS)
            at = file.field(custom, _CUSTOM_ATTRIBUTES)
            span = (at, at + 4) if at else (0, 0)
            operands, results = values(reads), values(makes)
            operations.append(CustomOperation(name, domain, attributes, operands, results, (0, 0), span))
            label += f" (custom operation {name!r:.200})"
        unknown = next((name for name in reads if name not in known), None)
        if unknown is not None and not problem:
            problem = f"is not a valid TOSA model: {label} reads {unknown!r:.200}, which no operator before it makes"
        known.update(makes)
        count += 1
    returned = values(outputs)
    function = Function(
        name="main",
        arguments=values(inputs),
        result_types=tuple(value.type for value in returned),
        operations=tuple(operations),
        returned=returned,
        is_only_shaders=sum(operation.is_shader for operation in operations) == count,
        input_names=inputs,
        output_names=outputs,
    )
    return function, problem


def tensor_type(file: Tables, table: int) -> ValueType:
    """Read the type of a tensor in a FlatBuffer."""
    number = file.value(table, _TENSOR_TYPE)
    element = _ELEMENTS[number] if number < len(_ELEMENTS) else "?"
    if file.value(table, _TENSOR_IS_UNRANKED, "B"):
        return ValueType(None, element, f"tensor<*x{element}>")
    sizes = file.numbers(table, _TENSOR_SHAPE)
    text = "".join(f"{'?' if size < 0 else size}x" for size in sizes)
    return ValueType(tuple(None if size < 0 else size for size in sizes), element, f"tensor<{text}{element}>")


_BYTECODE = b"ML\xefR"
_IS_ALIGNED, _OPERATIONS_SECTION, _HAS_PROPERTIES_AND_REGIONS = 0x80, 4, 0x50
_IDENTIFIER_AT, _START_BYTES = 4, 8
_CHUNK_SIZE_BYTES = 1 << 20


class Source(NamedTuple):
    """The source of a model; messages call it ``name``.

    A FlatBuffer in a file may be large: ``content`` is None, and the file is read in parts. A plain model has a single
    function and no custom operations, so that the converter can read it unchanged. ``function`` and ``problem`` are the
    results of `parse_flatbuffer`.
    """

    name: str
    content: bytes | None
    form: Literal["text", "bytecode", "flatbuffer"] = "text"
    is_plain: bool = False
    function: Function | None = None
    problem: str = ""

    @contextmanager
    def opened(self) -> Iterator[Content]:
        """Open the model without reading the whole file. Raises FileError."""
        if self.content is not None:
            yield Content(memoryview(self.content), len(self.content))
        else:
            with SourceFile(self.name) as file:
                yield Content(file, file.size_bytes)

    def parts(self) -> Iterator[memoryview]:
        """Yield the whole model in chunks. Raises FileError."""
        with self.opened() as content:
            yield from parts_of(content)

    def input(self) -> Input:
        """Return the unchanged model as input of the converter."""
        return Input(self.form == "flatbuffer", self.parts())


def parts_of(content: Content, start: int = 0, end: int | None = None) -> Iterator[memoryview]:
    """Yield the bytes from ``start`` to ``end``, by default to the end of the content, in chunks."""
    end = content.size_bytes if end is None else end
    for at in range(start, end, _CHUNK_SIZE_BYTES):
        yield content.part(at, min(_CHUNK_SIZE_BYTES, end - at))


def open_source(model: str | os.PathLike[str] | bytes, name: str = "<memory>") -> Source:
    """Find out the form of a model, given by path or content. Raises FileError if it is unreadable or damaged."""
    source = Source(name, model) if isinstance(model, bytes) else Source(os.fspath(model), None)
    with source.opened() as file:
        start = bytes(file.part(0, _START_BYTES))
        if start.startswith(VGF_SIGNATURE):
            help = "name the TOSA model that it was made from; convert --expose-intermediates turns layers into outputs"
            raise unreadable(source.name, "is a VGF file, expected a TOSA model", help)
        if start[_IDENTIFIER_AT:] == _IDENTIFIER:
            try:
                function, problem = parse_flatbuffer(file)
            except DamagedError as error:
                raise unreadable(source.name, str(error)) from None
            return source._replace(form="flatbuffer", is_plain=not function.shaders, function=function, problem=problem)
        content = model if isinstance(model, bytes) else bytes(file.part(0, file.size_bytes))
    if (kind := recognized(content, source.name)) is not None:
        raise unreadable(source.name, f"is {kind[0]}, expected a TOSA model", kind[1])
    if content.startswith(_BYTECODE):
        return Source(source.name, content, "bytecode", b"custom" not in content and _is_one_operation(content))
    return Source(source.name, content, is_plain=content.count(b"func.func") == 1 and b"custom" not in content)


def _is_one_operation(content: bytes) -> bool:
    """Return whether the module in MLIR bytecode holds a single operation, which is a function.

    Source: MLIR bytecode format. The operations' section begins with the module's block; the module's region
    is a section within it.
    """
    file = BytesIO(content)

    def number() -> int:
        first = file.read(1)[0]
        size = (first & -first).bit_length() or 9  # zeros below the lowest set bit count the following bytes
        return int.from_bytes(bytes([first]) + file.read(size - 1), "little") >> min(size, 8)

    def section() -> tuple[int, int]:
        kind, size = file.read(1)[0], number()
        if kind & _IS_ALIGNED:
            alignment = number()
            file.seek(-file.tell() % alignment, SEEK_CUR)
        return kind & ~_IS_ALIGNED, file.tell() + size

    try:
        file.seek(len(_BYTECODE))
        number()  # the format version; the producer's name follows
        file.seek(content.index(0, file.tell()) + 1)
        kind, end = section()
        while kind != _OPERATIONS_SECTION:
            file.seek(end)
            kind, end = section()
        number(), number()  # the block's operations, the name of the module operation
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
    """Turn converter errors into model errors.

    ``model`` is given if the converter reads another text than the source. The error repeats ``findings`` about
    operations that were left to the converter, since they may be the reason.
    """
    try:
        yield
    except NotUnderstoodError as error:
        raise unreadable(source.name, f"is not understood: {error}") from error
    except ScenarioRunnerError as error:
        problem, *others = error.at(path=source.name).problems
        if problem.code not in (INVALID, NOT_LOWERED, FAILED, STOPPED):
            raise
        if source.problem:
            raise unreadable(source.name, source.problem) from error
        if source.form != "text" or (model and not model.is_users_text):
            problem = problem._replace(line=None)
        left = [finding for finding in findings if finding.code == "SR-CUSTOM-035"]
        raise error_of([problem, *others, *left]) from error


def unreadable(path: str, message: str, help: str | None = None) -> ScenarioRunnerError:
    """Make the error for a file that is not a readable model."""
    return error_of([Diagnostic(INVALID, "error", None, message, help, path=path)])


def parse_model(source: Source) -> Model:
    """Parse a model, including custom operations.

    Raises FileError if it is not a TOSA model, and UnsupportedError if it is bytecode and the converter is missing.
    """
    path = source.name
    if source.problem:
        raise unreadable(path, source.problem)
    if source.function is not None:
        return Model(path, None, (source.function,), is_users_text=False)
    model = None
    if source.form == "text":
        assert source.content is not None, "only FlatBuffers are read in parts"
        text = _decoded(source.content, path)
        with suppress(NotUnderstoodError):  # it may still be valid: the converter can print it in a known way
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
    raise unreadable(path, f"is not a TOSA model: {problem}", "expected MLIR text, MLIR bytecode or a TOSA FlatBuffer")
