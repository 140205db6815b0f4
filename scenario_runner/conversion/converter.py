"""Arm's model-converter, which lowers TOSA to SPIR-V graphs: finding it, calling it, and what it says when it refuses.

It is the program of the PyPI package ai_ml_sdk_model_converter. The package's own command is a Python script around
the program; here the program is called itself.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO, NamedTuple

from scenario_runner.diagnostics import Diagnostic
from scenario_runner.errors import ScenarioRunnerError, ShaderError, UsageError, error_of

PACKAGE = "ai_ml_sdk_model_converter"
VARIABLE = "SCENARIO_RUNNER_MODEL_CONVERTER"
_NAME = "model-converter.exe" if sys.platform == "win32" else "model-converter"
_HELP = f"install it: pip install {PACKAGE}"
_DUMP = b"// -----// IR Dump "
_ERROR = re.compile(r"^(?:<stdin>|<unknown>|[^\n:]*):([0-9]+)(?::([0-9]+))?: error: (.*)$", re.MULTILINE)
_LONGEST_REASON = 400
_WRONG_OPTIONS = b"Error creating parser"
_OPTIONS_HELP = "model-converter --help shows its options"
_CHUNK_SIZE_BYTES = 1 << 20


class Refusal(NamedTuple):
    """Why the converter made nothing. ``line`` counts in the text that it was given; None where it names none."""

    reason: str
    line: int | None = None


class ConverterFailedError(ShaderError):
    """The converter was ended by a signal, or did not say why it made nothing."""

    code = "SR-CUSTOM-033"


class ConverterRefusedError(Exception):
    """The converter made nothing; the caller knows what that is about."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.reason)
        self.refusal = refusal


def find_converter() -> str | None:
    """The path of the program: that of the environment variable, of the installed package, or on PATH."""
    given = os.environ.get(VARIABLE)
    if given:
        return given
    from importlib.util import find_spec

    spec = find_spec("model_converter")
    for folder in (spec and spec.submodule_search_locations) or ():
        path = os.path.join(folder, "binaries", "bin", _NAME)
        if os.path.isfile(path):
            return path
    from shutil import which

    return which(_NAME)


def _program() -> str:
    found = find_converter()
    if found is None:
        message = f"the converter of machine-learning operations (package {PACKAGE}) is not installed"
        raise error_of([Diagnostic("SR-CUSTOM-031", "error", None, message, _HELP)])
    return found


@contextmanager
def _started(arguments: Sequence[str], stdin: int, stdout: int) -> Iterator[subprocess.Popen[bytes]]:
    """The running program; it does not outlive the block."""
    program = os.path.abspath(_program())
    try:
        # in its own folder: it takes "-" for a file where there is one of this name
        process = subprocess.Popen(
            [program, *arguments],
            stdin=stdin,
            stdout=stdout,
            stderr=subprocess.PIPE,
            cwd=os.path.dirname(program),
        )
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        message = f"the converter {program} cannot be started: {reason}"
        help = f"set {VARIABLE} to the path of model-converter, or: pip install --force-reinstall {PACKAGE}"
        raise error_of([Diagnostic("SR-CUSTOM-031", "error", None, message, help)]) from error
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                stream.close()


class ConverterCall:
    """One call of the converter, which runs beside the caller until `result` is asked for."""

    def __init__(self, text: str, options: Sequence[str] = ()) -> None:
        """Convert MLIR text. Nothing is raised here."""
        self._text = text
        self._options = tuple(options)
        self._content = b""
        self._error: BaseException | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            with _started(["-i", "-", "-o", "-", *self._options], subprocess.PIPE, subprocess.PIPE) as process:
                self._process = process
                self._content, said = process.communicate(self._text.encode())
                if process.returncode:
                    raise _refused_options(self._options, said) or refused(process.returncode, said)
                if not self._content:
                    raise ConverterFailedError("the converter wrote nothing", help=f"is {VARIABLE} right?")
        except BaseException as error:
            self._error = error

    def result(self) -> bytes:
        """The VGF file. Raises ConverterRefusedError, and ScenarioRunnerError where there is no converter."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._content

    def stop(self) -> None:
        """End the call: nobody wants its result."""
        process = self._process
        if process is not None and process.poll() is None:
            process.kill()
        self._thread.join()


def _refused_options(options: Sequence[str], said: bytes) -> UsageError | None:
    """The error where the program does not take the options that the user gave."""
    if not options or _WRONG_OPTIONS not in said:
        return None
    reason = said.decode(errors="replace").splitlines()[0][:_LONGEST_REASON]
    given = " ".join(options)
    return UsageError(f"model-converter does not take the options {given!r:.200}: {reason}", help=_OPTIONS_HELP)


def refused(code: int, said: bytes) -> ConverterRefusedError | ScenarioRunnerError:
    """What the end of the program with an exit code other than 0 means; ``said`` is its standard error."""
    text = said.decode(errors="replace")
    if code < 0 or not (found := _ERROR.search(text)):
        if code < 0:
            ended = f"was ended by {signal.Signals(-code).name}"
        else:
            ended = f"ended with the exit code {code} and no reason"
        last = [line for line in text.splitlines() if line and not line.startswith("VGF [")][-3:]
        message = "\n".join([f"the converter {ended}", *(line[:_LONGEST_REASON] for line in last)])
        return ConverterFailedError(message, help="this is a defect of model-converter")
    line, reason = int(found[1]), found[3]
    if len(reason) > _LONGEST_REASON:
        reason = f"{reason[:_LONGEST_REASON]}…"
    return ConverterRefusedError(Refusal(reason, line or None))


def text_of(path: str, before: str = "") -> str:
    """The MLIR text of the model at ``path``, as the converter reads it.

    With ``before`` the text as it is before the pass of this name. Bytecode is recognised by its content, a TOSA
    FlatBuffer by the suffix ``.tosa`` alone. Raises ConverterRefusedError, and ScenarioRunnerError.
    """
    return _dump(["-i", path], subprocess.DEVNULL, b"", before)


def later_text(text: str, before: str) -> str:
    """The same of MLIR text."""
    return _dump(["-i", "-"], subprocess.PIPE, text.encode(), before)


def _dump(arguments: Sequence[str], stdin: int, fed: bytes, before: str) -> str:
    """The first dump, or that before a pass. The program prints one before each pass; it is ended at the one behind."""
    wanted = _DUMP + b"Before " + before.encode()
    with _started([*arguments, "-o", "-", "--dump-mlir"], stdin, subprocess.DEVNULL) as process:
        feeder = None
        if process.stdin is not None:
            feeder = threading.Thread(target=_feed, args=(process.stdin, fed), daemon=True)
            feeder.start()
        assert process.stderr is not None
        said = bytearray()
        start = -1
        while chunk := process.stderr.read1(_CHUNK_SIZE_BYTES):  # type: ignore[attr-defined]
            searched = max(0, len(said) - len(wanted))
            said += chunk
            if start < 0:
                start = said.find(wanted, searched)
                if start < 0:
                    # dumps before the wanted one are not kept
                    del said[: max(0, said.rfind(_DUMP))]
                    continue
                del said[:start]
                start = searched = len(wanted)
            end = said.find(b"\n" + _DUMP, max(start, searched))
            if end >= 0:
                process.kill()
                if feeder is not None:
                    feeder.join()
                return said[said.index(b"\n") : end].decode()
        if feeder is not None:
            feeder.join()
        code = process.wait()
    raise refused(code or 1, bytes(said))


def _feed(stream: IO[bytes], content: bytes) -> None:
    try:
        stream.write(content)
        stream.close()
    except OSError:
        pass  # it has ended, and says why
