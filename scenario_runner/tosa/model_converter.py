"""Calls of Arm's model-converter, which lowers TOSA to SPIR-V graphs, and the reported errors.

The program belongs to the PyPI package ai_ml_sdk_model_converter. The package's command is a Python script around the
program; this module calls the program directly.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, suppress
from importlib.util import find_spec
from mmap import ACCESS_READ, mmap
from tempfile import TemporaryFile
from typing import IO, NamedTuple

from scenario_runner.errors import ScenarioRunnerError, UsageError, error_of
from scenario_runner.errors.diagnostic import Diagnostic
from scenario_runner.errors.text import reason_of
from scenario_runner.processes.programs import Program
from scenario_runner.processes.temporary import temporary_folder

PACKAGE = "ai_ml_sdk_model_converter"
VARIABLE = "SCENARIO_RUNNER_MODEL_CONVERTER"
TIMEOUT_S = 60.0
_TIMEOUT_S_PER_BYTE = 1 / (1 << 20)
_NAME = "model-converter.exe" if sys.platform == "win32" else "model-converter"
_DUMP = b"// -----// IR Dump "
# The converter's messages end with the name of the temporary file that holds a FlatBuffer.
_TEMPORARY = re.compile(r" \S*model\.tosa$", re.MULTILINE)
_ERROR = re.compile(r"^([^\n:]*):([0-9]+)(?::[0-9]+)?: error: (.*)$", re.MULTILINE)
_PLAIN_ERROR = "ERROR: "
_NO_REASON = ("VGF [", "Warning: ", "Failed to compile network")
_LONGEST_REASON = 400

INVALID, NOT_LOWERED, FAILED, STOPPED = "SR-CUSTOM-030", "SR-CUSTOM-032", "SR-CUSTOM-033", "SR-CUSTOM-039"
"""Codes of errors if the converter wrote no file. `STOPPED` says nothing about the model.

The errors have lines of the converter's input; the caller adds the path."""
_STOPS = (2, 9, 15)  # SIGINT, SIGKILL, SIGTERM


class Input(NamedTuple):
    """A model for the converter; the bytes come in parts."""

    is_flatbuffer: bool
    parts: Iterable[bytes | memoryview]


def find_converter() -> str | None:
    """Find the program: named by the environment variable, in the installed package, or on PATH."""
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
    """A call of the converter, which runs in the background until `result` or the end of the ``with`` block."""

    def __init__(self, model: Input, options: Sequence[str] = (), *, dump: bool = False) -> None:
        """Start the converter. With ``dump``, standard error is a pipe.

        Raises UnsupportedError if the converter is not installed.
        """
        converter = find_converter()
        if converter is None:
            message = f"the converter of machine-learning operations (package {PACKAGE}) is not installed"
            raise _error("SR-CUSTOM-031", message, f"install it: pip install {PACKAGE}")
        self._options = tuple(options)
        with ExitStack() as stack:
            path, stdin, self._output = _stored(model, stack)
            self._said = stack.enter_context(TemporaryFile())
            program = os.path.abspath(converter)
            try:
                # in a separate folder: elsewhere a file may be called "-", which the converter would read
                self.program = stack.enter_context(
                    Program(
                        [program, "-i", path, "-o", self._output, *options],
                        TIMEOUT_S + os.fstat(stdin.fileno()).st_size * _TIMEOUT_S_PER_BYTE,
                        stdin=stdin,
                        stdout=subprocess.DEVNULL,  # the converter prints warnings about some TOSA versions
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
        """Wait for the converter and map the output file. Raises ScenarioRunnerError."""
        with self:
            if self.program.wait():
                self._said.seek(0)
                output = self._said.read()
                raise _refused_options(self._options, output) or _refused(self.program, output)
            with suppress(OSError, ValueError), open(self._output, "rb") as file:  # ValueError: empty file
                return memoryview(mmap(file.fileno(), 0, access=ACCESS_READ))
            raise _error(FAILED, "the converter wrote nothing", f"is {VARIABLE} right?")

    def __enter__(self) -> ConverterCall:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()


def _stored(model: Input, stack: ExitStack) -> tuple[str, IO[bytes], str]:
    """Store a model for the converter, which expects MLIR on standard input and FlatBuffers in files called *.tosa.

    Return the program's argument for the model, the file for standard input, and the path of the result.
    """
    try:
        folder = stack.enter_context(temporary_folder())
        path = os.path.join(folder, "model.tosa") if model.is_flatbuffer else ""
        file = stack.enter_context(open(path, "w+b") if path else TemporaryFile())  # noqa: SIM115  (until the call ends)
        file.writelines(model.parts)
        file.seek(0)  # also flushes the buffer
    except OSError as error:
        message = f"the model cannot be written to a temporary file for the converter: {reason_of(error)}"
        raise _error(STOPPED, message, "set TMPDIR to a folder with enough room") from error
    return path or "-", file, os.path.join(folder, "model.vgf")


def dump(model: Input, before: str = "") -> str:
    """Let the converter print a model as MLIR text: unchanged, or in the state ``before`` a pass.

    Raises ScenarioRunnerError.
    """
    heading = _DUMP + b"Before " + before.encode()
    output = bytearray()  # from the last heading on
    is_dump = False
    with ConverterCall(model, ["--dump-mlir"], dump=True) as call:
        assert call.program.stderr is not None
        for line in call.program.stderr:
            if not line.startswith(_DUMP):
                output += line
            elif is_dump:
                return output.decode()
            else:
                is_dump = line.startswith(heading)
                output.clear()
        call.program.wait()
    raise _refused(call.program, output)


def _refused_options(options: Sequence[str], output: bytes) -> UsageError | None:
    """Make the error for user options that the converter rejects; return None for other errors."""
    if not options or b"Error creating parser" not in output:
        return None
    reason = output.decode(errors="replace").splitlines()[0][:_LONGEST_REASON]
    message = f"model-converter does not take the options {' '.join(options)!r:.200}: {reason}"
    return UsageError(message, help="model-converter --help shows its options")


def _refused(program: Program, output: bytes | bytearray) -> ScenarioRunnerError:
    """Make the error for a converter that wrote no file; ``output`` comes from standard error."""
    text = _TEMPORARY.sub("", output.decode(errors="replace"))
    lines = [line for line in text.splitlines() if line and not line.startswith(_NO_REASON)]
    if program.failure or not lines:
        how = program.failure or f"ended with the exit code {program.returncode} and no reason"
        message = "\n".join([f"the converter {how}", *(line[:_LONGEST_REASON] for line in lines[-3:])])
        if program.timed_out or -program.returncode in _STOPS:
            return _error(STOPPED, message, "convert it again, with fewer models at a time")
        return _error(FAILED, message, "this is a defect of model-converter")
    match = _ERROR.search(text)
    errors = [line.removeprefix(_PLAIN_ERROR) for line in lines if line.startswith(_PLAIN_ERROR)]
    reason = match[3] if match else "; ".join(errors or lines)
    if len(reason) > _LONGEST_REASON:
        reason = f"{reason[:_LONGEST_REASON]}…"
    if match is None or match[1] == "<unknown>":
        return _error(NOT_LOWERED, f"the converter cannot lower this model: {reason}")
    cycle = "the operations of a model form no cycle" if "does not dominate" in reason else None
    return _error(INVALID, f"is not a valid TOSA model: {reason}", cycle, int(match[2]) or None)


def _error(code: str, message: str, help: str | None = None, line: int | None = None) -> ScenarioRunnerError:
    return error_of([Diagnostic(code, "error", None, message, help, line=line)])
