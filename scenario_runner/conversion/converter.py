"""Arm's model-converter, which lowers TOSA to SPIR-V graphs: finding it, calling it, and what it says when it refuses.

It is the program of the PyPI package ai_ml_sdk_model_converter. The package's own command is a Python script around
the program; here the program is called itself.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from importlib.util import find_spec
from mmap import ACCESS_READ, mmap
from tempfile import TemporaryFile
from typing import NamedTuple

from scenario_runner.diagnostics import Diagnostic
from scenario_runner.errors import ScenarioRunnerError, UsageError, error_of
from scenario_runner.program import Program
from scenario_runner.temporary import temporary_folder

PACKAGE = "ai_ml_sdk_model_converter"
VARIABLE = "SCENARIO_RUNNER_MODEL_CONVERTER"
TIMEOUT_S = 60.0
_TIMEOUT_S_PER_BYTE = 1 / (1 << 20)
_NAME = "model-converter.exe" if sys.platform == "win32" else "model-converter"
_HELP = f"install it: pip install {PACKAGE}"
_SUFFIX = ".tosa"
_DUMP = b"// -----// IR Dump "
_ERROR = re.compile(r"^([^\n:]*):([0-9]+)(?::[0-9]+)?: error: (.*)$", re.MULTILINE)
_NOWHERE = "<unknown>"
_PLAIN_ERROR = "ERROR: "
_NO_REASON = ("VGF [", "Warning: ", "Failed to compile network")
_LONGEST_REASON = 400
_WRONG_OPTIONS = b"Error creating parser"
_DEFECT = "this is a defect of model-converter"
_NO_CYCLE = "a value is used before it is made: the operations of a model form no cycle"
_OPTIONS_HELP = "model-converter --help shows its options"
_CHUNK_SIZE_BYTES = 1 << 20


INVALID, NOT_LOWERED, FAILED = "SR-CUSTOM-030", "SR-CUSTOM-032", "SR-CUSTOM-033"
"""Codes of the errors where the converter made nothing. The line of an invalid model counts in the text that the
converter was given; the caller attaches the path."""


class Input(NamedTuple):
    """A model for the converter: one that consists of ``parts`` and, where there is one, the file at ``path``."""

    is_flatbuffer: bool
    path: str | None = None
    parts: Iterable[bytes] = ()


def find_converter() -> str | None:
    """The path of the program: that of the environment variable, of the installed package, or on PATH."""
    configured = os.environ.get(VARIABLE)
    if configured:
        return configured

    spec = find_spec("model_converter")
    for folder in (spec and spec.submodule_search_locations) or ():
        path = os.path.join(folder, "binaries", "bin", _NAME)
        if os.path.isfile(path):
            return path
    return shutil.which(_NAME)


class ConverterCall:
    """One call of the converter. It runs beside the caller until `result` is asked for or the ``with`` block ends."""

    def __init__(self, model: Input, options: Sequence[str] = (), *, dump: bool = False) -> None:
        """Start it; with ``dump`` standard error is a pipe. Raises UnsupportedError where there is none."""
        converter = find_converter()
        if converter is None:
            message = f"the converter of machine-learning operations (package {PACKAGE}) is not installed"
            raise _error("SR-CUSTOM-031", message, _HELP)
        self._options = tuple(options)
        with ExitStack() as stack:
            path, stdin, size_bytes = _opened(model, stack)
            self._content = stack.enter_context(TemporaryFile())
            self._said = stack.enter_context(TemporaryFile())
            program = os.path.abspath(converter)
            try:
                # in its own folder: it takes "-" for a file where there is one of this name
                self.program = stack.enter_context(
                    Program(
                        [program, "-i", path, "-o", "-", *options],
                        TIMEOUT_S + size_bytes * _TIMEOUT_S_PER_BYTE,
                        stdin=stdin,
                        stdout=self._content,
                        stderr=subprocess.PIPE if dump else self._said,
                        cwd=os.path.dirname(program),
                    )
                )
            except OSError as error:
                reason = (error.strerror or str(error)).lower()
                message = f"the converter {program} cannot be started: {reason}"
                help = f"set {VARIABLE} to the path of model-converter, or: pip install --force-reinstall {PACKAGE}"
                raise _error("SR-CUSTOM-031", message, help) from error
            self._stack = stack.pop_all()

    def result(self) -> memoryview:
        """The VGF file, which is mapped. Raises ScenarioRunnerError."""
        with self:
            if self.program.wait():
                self._said.seek(0)
                output = self._said.read()
                raise _refused_options(self._options, output) or _refused(self.program, output)
            if not os.fstat(self._content.fileno()).st_size:
                raise _error(FAILED, "the converter wrote nothing", f"is {VARIABLE} right?")
            return memoryview(mmap(self._content.fileno(), 0, access=ACCESS_READ))

    def __enter__(self) -> ConverterCall:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()


def _opened(model: Input, stack: ExitStack) -> tuple[str, int, int]:
    """The argument that names the model, standard input, and the size of the model.

    A FlatBuffer is recognised by the suffix of its name alone, and MLIR is what has no name."""
    model_file = stack.enter_context(open(model.path, "rb")) if model.path else None  # noqa: SIM115
    if model_file is not None and not model.parts:
        size_bytes = os.fstat(model_file.fileno()).st_size
        if not model.is_flatbuffer:
            return "-", model_file.fileno(), size_bytes
        if model_file.name.endswith(_SUFFIX):
            return os.path.abspath(model_file.name), subprocess.DEVNULL, size_bytes
    path = ""
    if model.is_flatbuffer:
        path = os.path.join(stack.enter_context(temporary_folder()), f"model{_SUFFIX}")
    file = stack.enter_context(open(path, "wb") if path else TemporaryFile())  # noqa: SIM115  (until the end of the call)
    file.writelines(model.parts)
    if model_file is not None:
        shutil.copyfileobj(model_file, file, _CHUNK_SIZE_BYTES)
    file.seek(0)  # which also writes what is kept back
    size_bytes = os.fstat(file.fileno()).st_size
    return (path, subprocess.DEVNULL, size_bytes) if path else ("-", file.fileno(), size_bytes)


def dump(model: Input, before: str = "") -> str:
    """The MLIR text of a model as the converter reads it, or with ``before`` as it is before the pass of this name.

    Raises ScenarioRunnerError.
    """
    heading = _DUMP + b"Before " + before.encode()
    with ConverterCall(model, ["--dump-mlir"], dump=True) as call:
        program = call.program
        assert program.stderr is not None
        output = bytearray()
        start = -1
        while chunk := program.stderr.read1(_CHUNK_SIZE_BYTES):  # type: ignore[attr-defined]
            searched = max(0, len(output) - len(heading))
            output += chunk
            if start < 0:
                start = output.find(heading, searched)
                if start < 0:
                    # dumps before the wanted one are not kept
                    del output[: max(0, output.rfind(_DUMP))]
                    continue
                del output[:start]
                start = searched = len(heading)
            end = output.find(b"\n" + _DUMP, max(start, searched))
            if end >= 0:
                return output[output.index(b"\n") : end].decode()
        program.wait()
    raise _refused(program, bytes(output))


def _refused_options(options: Sequence[str], output: bytes) -> UsageError | None:
    """The error where the program does not take the options that the user gave."""
    if not options or _WRONG_OPTIONS not in output:
        return None
    reason = output.decode(errors="replace").splitlines()[0][:_LONGEST_REASON]
    option_text = " ".join(options)
    return UsageError(f"model-converter does not take the options {option_text!r:.200}: {reason}", help=_OPTIONS_HELP)


def _refused(program: Program, output: bytes) -> ScenarioRunnerError:
    """The error for a program that made nothing; ``output`` is its standard error."""
    text = output.decode(errors="replace")
    lines = [line for line in text.splitlines() if line and not line.startswith(_NO_REASON)]
    if program.failure or not lines:
        how = program.failure or f"ended with the exit code {program.returncode} and no reason"
        message = "\n".join([f"the converter {how}", *(line[:_LONGEST_REASON] for line in lines[-3:])])
        return _error(FAILED, message, "is the model damaged?" if program.timed_out else _DEFECT)
    match = _ERROR.search(text)
    errors = [line.removeprefix(_PLAIN_ERROR) for line in lines if line.startswith(_PLAIN_ERROR)]
    reason = match[3] if match else "; ".join(errors or lines)
    if len(reason) > _LONGEST_REASON:
        reason = f"{reason[:_LONGEST_REASON]}…"
    if match is None or match[1] == _NOWHERE:
        return _error(NOT_LOWERED, f"the converter cannot lower this model: {reason}")
    help = _NO_CYCLE if "does not dominate" in reason else None
    return _error(INVALID, f"is not a valid TOSA model: {reason}", help, int(match[2]) or None)


def _error(code: str, message: str, help: str | None = None, line: int | None = None) -> ScenarioRunnerError:
    return error_of([Diagnostic(code, "error", None, message, help, line=line)])
