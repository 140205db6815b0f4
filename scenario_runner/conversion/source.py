"""A TOSA model in a file or in memory: its form (MLIR text, MLIR bytecode, FlatBuffer), its contents, its errors."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal, NamedTuple

from scenario_runner.conversion.converter import ConverterFailedError, ConverterRefusedError, Input, dump
from scenario_runner.conversion.flatbuffer import parse_flatbuffer
from scenario_runner.conversion.model import Function, Model
from scenario_runner.conversion.syntax import NotUnderstoodError
from scenario_runner.conversion.text_model import parse_text
from scenario_runner.diagnostics import Diagnostic
from scenario_runner.errors import ScenarioRunnerError, error_of
from scenario_runner.files.source import SourceFile
from scenario_runner.flatbuffers import DamagedError

_BYTECODE = b"ML\xefR"
_IS_ALIGNED, _OPERATIONS_SECTION, _HAS_PROPERTIES_AND_REGIONS = 0x80, 4, 0x50
_FLATBUFFER = b"TOSA"
_FLATBUFFER_AT = 4


class Source(NamedTuple):
    """Where a model comes from: a file, or ``memory``. ``name`` is what messages call it.

    ``is_plain`` says that it is one function without custom operations, which the converter can be given as it is. A
    file is not kept in memory. ``function`` is that of a FlatBuffer.
    """

    name: str
    form: Literal["text", "bytecode", "flatbuffer"]
    is_plain: bool
    memory: bytes | None = None
    function: Function | None = None

    def content(self) -> bytes:
        """The bytes of the model. Raises FileError."""
        if self.memory is not None:
            return self.memory
        with SourceFile(self.name) as file:
            return file.read(file.size_bytes)

    @contextmanager
    def opened(self) -> Iterator[bytes | SourceFile]:
        """The same without reading all of a file."""
        if self.memory is not None:
            yield self.memory
            return
        with SourceFile(self.name) as file:
            yield file

    def input(self) -> Input:
        """The model as it is, for the converter."""
        is_flatbuffer = self.form == "flatbuffer"
        return Input(is_flatbuffer, self.name) if self.memory is None else Input(is_flatbuffer, None, [self.memory])


def open_source(model: str | os.PathLike[str] | bytes, name: str = "<memory>") -> Source:
    """Look at a file or at the content of one. Raises FileError where it cannot be read or is a damaged FlatBuffer."""
    if isinstance(model, bytes):
        return _looked_at(Source(name, "text", False, model), model)
    name = os.fspath(model)
    with SourceFile(name) as file:
        start = file.read(_FLATBUFFER_AT + len(_FLATBUFFER))
        is_flatbuffer = start.endswith(_FLATBUFFER)
        return _looked_at(Source(name, "text", False), file if is_flatbuffer else file.read(file.size_bytes))


def _looked_at(source: Source, content: bytes | SourceFile) -> Source:
    """The source with what its content tells. Of a FlatBuffer, which may be large, little is in memory at a time."""
    if isinstance(content, bytes) and content.startswith(_BYTECODE):
        is_plain = b"custom" not in content and _is_one_operation(content)
        return source._replace(form="bytecode", is_plain=is_plain)
    if not isinstance(content, bytes) or content[_FLATBUFFER_AT:].startswith(_FLATBUFFER):
        try:
            function = parse_flatbuffer(content)
        except DamagedError as error:
            raise unreadable(source.name, str(error)) from None
        return source._replace(form="flatbuffer", is_plain=not function.shaders, function=function)
    return source._replace(is_plain=content.count(b"func.func") == 1 and b"custom" not in content)


def _is_one_operation(content: bytes) -> bool:
    """Whether the module of MLIR bytecode holds one operation, which is a function.

    Source: MLIR bytecode format. The section of the operations begins with a block that has the module, whose region
    is a section of its own.
    """
    at = len(_BYTECODE)

    def number() -> int:
        nonlocal at
        first = content[at]
        size = (first & -first).bit_length() or 9  # the zeros below the first one count the bytes that follow
        at += size
        return int.from_bytes(content[at - size : at], "little") >> min(size, 8)

    def section() -> tuple[int, int]:
        nonlocal at
        at += 1
        kind, size = content[at - 1], number()
        if kind & _IS_ALIGNED:
            alignment = number()
            at += -at % alignment
        return kind & ~_IS_ALIGNED, at + size

    try:
        number()  # the version of the format, behind which the producer is named
        at = content.index(0, at) + 1
        while (found := section())[0] != _OPERATIONS_SECTION:
            at = found[1]
        number(), number()  # operations of the block, and the name of the module operation
        at += 1
        if content[at - 1] != _HAS_PROPERTIES_AND_REGIONS:
            return False
        number(), number(), number()  # location, properties, regions
        section()
        number(), number()  # blocks, values
        return number() >> 1 == 1
    except (IndexError, ValueError, ZeroDivisionError):
        return False


def refused(
    source: Source, error: ConverterRefusedError | ConverterFailedError, *, has_lines: bool = True
) -> ScenarioRunnerError:
    """The error for a model that the converter does not convert. ``has_lines`` says that it got the user's lines."""
    if isinstance(error, ConverterFailedError):
        return error.at(path=source.name)
    reason, line, is_invalid = error.refusal
    if not is_invalid:
        message = f"the converter cannot lower this model: {reason}"
        return error_of([Diagnostic("SR-CUSTOM-032", "error", None, message, path=source.name)])
    help = None
    if "does not dominate" in reason:
        help = "a value is used before it is made: the operations of a model form no cycle"
    line = line if source.form == "text" and has_lines else None
    return unreadable(source.name, f"is not a valid TOSA model: {reason}", help, line=line)


def unreadable(path: str, message: str, help: str | None = None, *, line: int | None = None) -> ScenarioRunnerError:
    """The error for a file that is no model."""
    return error_of([Diagnostic("SR-CUSTOM-030", "error", None, message, help, path=path, line=line)])


def parse_model(source: Source) -> Model:
    """The model with its custom operations.

    Raises FileError where it is not a TOSA model, and UnsupportedError where the converter is needed (for bytecode) and
    not installed.
    """
    path = source.name
    try:
        if source.function is not None:
            return Model(path, None, (source.function,), is_users_text=False)
        if source.form == "bytecode":
            return parse_text(dump(source.input()), path)._replace(is_users_text=False)
        text = _decoded(source.content(), path)
        try:
            model = parse_text(text, path)
        except NotUnderstoodError:
            # It may be right all the same: as the converter writes it, it is read.
            model = parse_text(dump(source.input()), path)._replace(is_users_text=False)
    except ConverterRefusedError as error:
        raise refused(source, error) from error
    except NotUnderstoodError as error:
        raise unreadable(path, f"is not understood: {error}") from error
    except ScenarioRunnerError as error:
        raise error.at(path=path) from error
    if not model.functions:
        raise unreadable(path, "has no function", "expected a TOSA model: MLIR with a func.func, or a TOSA FlatBuffer")
    return model


def _decoded(content: bytes, path: str) -> str:
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        message = f"is no TOSA model: the byte at the offset {error.start} is not UTF-8"
        raise unreadable(path, message, "expected MLIR text, MLIR bytecode or a TOSA FlatBuffer") from error
    if "\0" in text:
        message = f"is no TOSA model: there is a NUL character at the offset {text.index(chr(0))}"
        raise unreadable(path, message, "expected MLIR text, MLIR bytecode or a TOSA FlatBuffer")
    return text
