"""Reading a TOSA model: MLIR text, MLIR bytecode, or a TOSA FlatBuffer. All become text, which `text_model` reads."""

from __future__ import annotations

import os

from scenario_runner.conversion.converter import ConverterFailedError, ConverterRefusedError, later_text, text_of
from scenario_runner.conversion.model import Model
from scenario_runner.conversion.syntax import NotUnderstoodError
from scenario_runner.conversion.text_model import parse_text
from scenario_runner.diagnostics import Diagnostic
from scenario_runner.errors import ScenarioRunnerError, error_of
from scenario_runner.files.source import SourceFile
from scenario_runner.temporary import temporary_folder

_BYTECODE = b"ML\xefR"
_FLATBUFFER = b"TOSA"
_FLATBUFFER_AT = 4


def read_model(path: str | os.PathLike[str]) -> Model:
    """The model in the file at ``path``.

    Raises FileError where it cannot be read or is not a TOSA model, and UnsupportedError where the form needs the
    converter (all but text) and that is not installed.
    """
    path = os.fspath(path)
    with SourceFile(path) as file:
        content = file.read(file.size_bytes)
    return parse_model(content, path)


def parse_model(content: bytes, path: str = "<memory>") -> Model:
    """The model that ``content`` is; ``path`` is for messages. Raises like `read_model`."""
    try:
        if content.startswith(_BYTECODE):
            return _converted(content, path, ".mlirbc")
        if content[_FLATBUFFER_AT : _FLATBUFFER_AT + len(_FLATBUFFER)] == _FLATBUFFER:
            try:
                return _converted(content, path, ".tosa")
            except ConverterFailedError as error:
                from scenario_runner.conversion.flatbuffer import why_not_loaded

                raise unreadable(path, why_not_loaded(content)) from error
        text = _decoded(content, path)
        try:
            model = parse_text(text, path)
        except NotUnderstoodError:
            # It may be right all the same: as the converter writes it, it is read.
            model = parse_text(later_text(text, ""), path)._replace(is_users_text=False)
    except ConverterRefusedError as error:
        raise unreadable(path, f"is not a valid TOSA model: {error}", line=error.refusal.line) from error
    except ScenarioRunnerError as error:
        raise error.at(path=path) from error
    except NotUnderstoodError as error:
        raise unreadable(path, f"is not understood: {error}") from error
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


def _converted(content: bytes, path: str, suffix: str) -> Model:
    """The model in another form than text. The converter recognises a FlatBuffer by the file's name."""
    with temporary_folder() as folder:
        copy = os.path.join(folder, f"model{suffix}")
        with open(copy, "wb") as file:
            file.write(content)
        text = text_of(copy)
    return parse_text(text, path)._replace(is_users_text=False)


def unreadable(path: str, message: str, help: str | None = None, *, line: int | None = None) -> ScenarioRunnerError:
    """The error for a file that is no model."""
    return error_of([Diagnostic("SR-CUSTOM-030", "error", None, message, help, path=path, line=line)])
