"""Reading the shaders of a TOSA model: MLIR text, MLIR bytecode, or a TOSA FlatBuffer."""

from __future__ import annotations

from scenario_runner.conversion.converter import ConverterRefusedError, dump
from scenario_runner.conversion.flatbuffer import DamagedError, parse_flatbuffer
from scenario_runner.conversion.model import Model
from scenario_runner.conversion.source import Source, refused, unreadable
from scenario_runner.conversion.syntax import NotUnderstoodError
from scenario_runner.conversion.text_model import parse_text
from scenario_runner.errors import ScenarioRunnerError


def parse_model(source: Source) -> Model:
    """The model with its custom operations.

    Raises FileError where it is not a TOSA model, and UnsupportedError where the converter is needed (for bytecode) and
    not installed.
    """
    path = source.name
    try:
        if source.form == "flatbuffer":
            with source.opened() as content:
                return Model(path, None, (parse_flatbuffer(content),), is_users_text=False)
        if source.form == "bytecode":
            return parse_text(dump(source.input()), path)._replace(is_users_text=False)
        text = _decoded(source.content(), path)
        try:
            model = parse_text(text, path)
        except NotUnderstoodError:
            # It may be right all the same: as the converter writes it, it is read.
            model = parse_text(dump(source.input()), path)._replace(is_users_text=False)
    except DamagedError as error:
        raise unreadable(path, str(error)) from None
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
