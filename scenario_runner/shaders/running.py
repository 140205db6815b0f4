"""Run compilers for shaders: many in one process where the compiler allows it, else one process each.

A shader that a batch did not compile is compiled alone by the preferred compiler, whose messages become a problem with
places in the user's files, and the source lines that they are about.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import NamedTuple

from scenario_runner import log, temporary
from scenario_runner.arm_glslc import install_line
from scenario_runner.diagnostics import Diagnostic
from scenario_runner.errors import CompileError, CompilerNotFoundError, FileError, ScenarioRunnerError
from scenario_runner.program import MAX_FILE_BYTES, Processes, ProgramResult, make_runnable, work_off
from scenario_runner.shaders.compilers import OUTPUT_NAME, SOURCE_NAME, Compiler, MessageStyle, dxc_install_line
from scenario_runner.shaders.discovery import Job, ShaderCache, names
from scenario_runner.shaders.source import FIRST_FILE, OPTIONS_FILE, Assembled, CompileRequest, read_source

BATCH_TIMEOUT_S = 10.0  # a shader that needs longer is compiled alone, with a time limit of its own
MAX_SHADERS = 1000  # in one process: a command line has its bounds
MAX_LOG = 1 << 20
_SPIRV_MAGIC = b"\x03\x02\x23\x07"
_FUNCTION_END = b"\x38\x00\x01\x00"  # SPIR-V's OpFunctionEnd, with which every module of a shader ends
_UNSUPPORTED = "extension not supported"
_TOO_MUCH = "the shader may be too much for it, or another compiler may do better"
_MAX_ERRORS = 1000
_MAX_LINE = 500
_MOST_CHARACTERS = 100
_QUOTED = re.compile(r"'([^']+)'")


class SourceLines:
    """The lines of the files of one shader; each file is read again when it is first asked for."""

    def __init__(self, request: CompileRequest) -> None:
        self._request = request
        self._files: dict[str, list[str]] = {}

    def of(self, message: _Message) -> tuple[list[str], int | None]:
        """The line of a message with a mark where the error is, nothing where there is no such line; and the column of
        the mark (from 1), where it is known.

        A compiler that gives no column names the word that is wrong in quotes as a rule: where the line has it once,
        or near the column, it is marked.
        """
        number, column = message.line or 0, message.column
        lines = self._lines(message.file) if message.file is not None else []
        if not 0 < number <= len(lines) or not lines[number - 1].strip():
            return [], column
        line = "".join(each if each.isprintable() else " " for each in lines[number - 1])
        start, length = _marked(line, column, message.text)
        first = max(0, (start or 0) - _MOST_CHARACTERS // 2) if len(line) > _MOST_CHARACTERS else 0
        margin = f"{number:5} | "
        shown = [margin + line[first : first + _MOST_CHARACTERS].rstrip()]
        if start is not None:
            shown.append(" " * (len(margin) - 2) + "| " + " " * (start - first) + "^" + "~" * min(length - 1, 40))
        return shown, column if start is None else start + 1

    def _lines(self, path: str) -> list[str]:
        if path not in self._files:
            text = ""
            if path == self._request.place and self._request.path is None:
                text = self._request.source or ""
            else:
                with contextlib.suppress(ScenarioRunnerError):  # gone, or a name that a #line directive made up
                    text = read_source(path).decode(errors="replace")
            self._files[path] = re.split(r"\r\n|\r|\n", text)
        return self._files[path]


def _marked(line: str, column: int | None, message: str) -> tuple[int | None, int]:
    """Find the start of the mark, from 0, and its length."""
    word = _QUOTED.match(message)
    if word:
        places = [match.start() for match in re.finditer(rf"(?<!\w){re.escape(word[1])}(?!\w)", line)]
        if not places and not word[1].isidentifier():
            places = [match.start() for match in re.finditer(re.escape(word[1]), line)]
        if len(places) == 1 or (places and column is not None):
            return min(places, key=lambda place: abs(place + 1 - (column or 1))), len(word[1])
    if column is not None and 0 < column <= len(line) + 1:
        lengths = [len(each) for each in _QUOTED.findall(message) if line.startswith(each, column - 1)]
        return column - 1, max(lengths, default=1)
    return None, 1


def log_warnings(request: CompileRequest, assembled: Assembled, output: str, style: MessageStyle) -> None:
    """Log what a compiler said of a shader that it compiled, where there is a warning in it, with the user's files."""
    if "WARNING:" in output or "warning:" in output:
        names, message = _names(request, assembled), re.compile(style.message)
        lines = output.strip()[:2000].splitlines()
        for index, line in enumerate(lines):
            match = message.fullmatch(line)
            if match:
                file = names.get(match["file"], match["file"])
                lines[index] = line[: match.start("file")] + file + line[match.end("file") :]
        log.warning(__name__, "%s: the compiler warns: %s", request.place, "\n".join(lines))


def _names(request: CompileRequest, assembled: Assembled) -> dict[str, str]:
    """The user's files by what compilers call them."""
    names = {SOURCE_NAME: request.place, "0": request.place, str(OPTIONS_FILE): "build_options"}
    return names | {str(FIRST_FILE + index): name for index, name in enumerate(assembled.files)}


class _Message(NamedTuple):
    """An error of a compiler, without a place where it names none."""

    text: str
    file: str | None = None
    line: int | None = None
    column: int | None = None

    @property
    def at(self) -> str:
        """The place before a sentence."""
        place = "".join(f"{part}:" for part in (self.file, self.line, self.column) if part is not None)
        return f"{place} " if place else ""

    def and_more(self, text: str) -> _Message:
        """The same with another line."""
        return self._replace(text=f"{self.text}\n  {text}")


def _messages(output: str, names: dict[str, str], style: MessageStyle) -> list[_Message]:
    """The errors of which a compiler wrote, each once, with the names of the user's files; at least one."""
    said: list[_Message] = []
    reason = ""
    message, noise = re.compile(style.message), re.compile(style.noise)
    warned = False
    for whole in _without_echoes(output, message) if style.echoes else output.splitlines():
        line = whole.strip()[:_MAX_LINE]
        found = message.fullmatch(line)
        if noise.fullmatch(line):
            reason = reason or (line.removeprefix("ERROR:").strip() if line.startswith("ERROR: Linking") else "")
        elif found:
            severity, column = found["severity"].lower(), int(found["column"][:9]) if found["column"] else None
            file = names.get(found["file"], found["file"])
            new = _Message(found["text"].strip(), file, int(found["line"][:9]), column)
            if severity == "note":
                if said and not warned:
                    said[-1] = said[-1].and_more(f"{new.at}note: {new.text}")
                continue
            warned = severity == "warning" and style.echoes  # notes about it and its source lines follow
            if severity != "warning":
                said.append(new)
        elif warned or line in ("", SOURCE_NAME):  # glslang's echo of the file name
            continue
        elif said and not line.startswith(("ERROR:", "WARNING:")):
            said[-1] = said[-1].and_more(line)  # such as the name a linker message is about
        elif not line.startswith("WARNING:"):
            said.append(_Message(line.removeprefix("ERROR:").removeprefix("error:").strip()))
    return list(dict.fromkeys(said)) or [_Message(reason or "the compiler gave no reason")]


def compile_problem(request: CompileRequest, assembled: Assembled, output: str, style: MessageStyle) -> Diagnostic:
    """Make one problem of the messages of a compiler: the first error's place, text and source line; the
    further ones follow, with theirs."""
    first, *others = _messages(output, _names(request, assembled), style)
    if first.file == "build_options":
        first = first._replace(text=f"in build_options: {first.text}", file=None, line=None)
    source = SourceLines(request)
    shown, column = source.of(first)
    who = f"shader {request.label!r}: " if request.label else ""
    lines = [f"{who}{first.text}", *shown]
    for other in others[: _MAX_ERRORS - 1]:
        quoted, at_column = source.of(other)
        lines += [f"  {other._replace(column=at_column).at}{other.text}", *quoted]
    if len(others) >= _MAX_ERRORS:
        lines.append(f"  and {len(others) + 1 - _MAX_ERRORS} more")
    help, place = _help(request, assembled, output), first.file or request.place
    line = first.line if first.line and first.line > 0 else None
    return Diagnostic("SR-SHADER-010", "error", None, "\n".join(lines), help, place, line, column)


def _without_echoes(output: str, message: re.Pattern[str]) -> list[str]:
    """The lines without a line of the source, the marks below it and what could be inserted there."""
    kept: list[str] = []
    echoing = False
    for line in output.splitlines():
        if message.fullmatch(line.strip()[:_MAX_LINE]):
            echoing = False
        elif "^" in line and not line.strip("^~ \t"):
            if kept and not message.fullmatch(kept[-1].strip()[:_MAX_LINE]):
                kept.pop()
            echoing = True
        if not echoing:
            kept.append(line)
    return kept


def _help(request: CompileRequest, assembled: Assembled, output: str) -> str | None:
    if "cannot find the include file" in output and assembled.missing:
        dirs = ", ".join(repr(folder) for folder in request.include_dirs) or "none"
        return f"searched: the folder of the including file, then include_dirs ({dirs}), then -I of build_options"
    return None


def compile_missing(missing: list[Job], cache: ShaderCache | None, jobs: int, timeout_s: float) -> None:
    """Fill ``module`` or ``failure`` of each, with at most ``jobs`` processes at a time."""
    processes = Processes()

    def together(batch: list[Job], folder: str) -> None:
        with contextlib.suppress(OSError):  # compiling them alone says more
            compile_batch(batch, folder, processes, timeout_s)

    def alone(job: Job, folder: str) -> None:
        try:
            compile_alone(job, folder, partial(processes.run, folder=folder, timeout_s=timeout_s))
        except ScenarioRunnerError as error:
            job.failure = error
        except OSError as error:
            job.failure = FileError(f"cannot compile shaders in {os.path.dirname(folder)!r}: {error}")

    try:
        root = temporary.make_folder()
    except OSError as error:
        reason = f"no folder for temporary files can be used to compile shaders: {error.strerror or error}"
        raise FileError(reason, help="set TMPDIR to a folder that can be written and has room") from error
    try:
        tasks: list[Callable[[str], None]] = [partial(together, batch) for batch in batches(missing, jobs)]
        tasks += [partial(alone, job) for job in missing if job.batch is None]
        work_off(tasks, os.path.join(root, "first"), jobs, processes)
        left = [job for job in missing if job.batch is not None and job.module is None and job.failure is None]
        work_off([partial(alone, job) for job in left], os.path.join(root, "then"), jobs, processes)
    finally:
        temporary.remove(root)
    if cache is not None:
        for job in missing:
            if job.module is not None and job.made_by and not job.assembled.opaque:
                cache.store(job.key(job.made_by), job.module)
        cache.evict()


def compile_alone(job: Job, folder: str, run: Callable[[list[str]], ProgramResult]) -> None:
    """Fill ``module`` and ``made_by``, or raise CompileError or CompilerNotFoundError; ``run`` starts processes there.

    A further compiler is tried only where those before do not know an extension. ``folder`` must not exist yet.
    """
    os.mkdir(folder)
    with open(os.path.join(folder, SOURCE_NAME), "wb") as file:
        file.write(job.assembled.text)
    refusals = []
    for compiler in job.compilers:
        try:
            job.module, output = _compile_with(compiler, job, folder, run)
        except _NextCompilerError as error:
            refusals.append(error)
            continue
        job.made_by = compiler
        log_warnings(job.request, job.assembled, output, compiler.style)
        return
    raise CompileError(refusals[0].problems)


class _NextCompilerError(CompileError):
    """A refusal that another compiler may not share."""


def _compile_with(
    compiler: Compiler, job: Job, folder: str, run: Callable[[list[str]], ProgramResult]
) -> tuple[bytes, str]:
    """The module, and the messages of the compiler."""
    request = job.request
    try:
        argv = compiler.arguments(request, job.options, job.target(compiler))
        make_runnable(argv[0])
        done = run(argv)
    except (OSError, ValueError) as error:
        reason = (getattr(error, "strerror", None) or str(error)).lower()
        raise CompilerNotFoundError(f"the shader compiler {compiler.path!r} cannot be started: {reason}") from error
    if done.failure:
        raise _defect(job, compiler, done.failure, _TOO_MUCH)
    if done.code != 0:
        output = _all_errors(compiler, argv, done.output, run)
        problem = compile_problem(request, job.assembled, output, compiler.style)
        if _UNSUPPORTED in done.output:
            advice = f"{names([compiler])} lacks the extension; a newer glslang, or Arm's glslc, may have it: "
            raise _NextCompilerError(problem._replace(help=advice + install_line()))
        if request.language == "HLSL" and compiler.hlsl_is_dated:
            advice = f"{names([compiler])} does not know HLSL 2021; dxc may compile it: {dxc_install_line()}"
            raise CompilerNotFoundError(problem._replace(code=CompilerNotFoundError.code, help=advice))
        raise CompileError(problem)
    try:
        module = _read_module(os.path.join(folder, OUTPUT_NAME))
    except OSError:
        raise _defect(job, compiler, "wrote no module") from None
    if not _is_module(module):
        raise _defect(job, compiler, f"wrote {len(module)} bytes that are not a SPIR-V module")
    return module, done.output


def _defect(job: Job, compiler: Compiler, does: str, help: str | None = None) -> CompileError:
    """The error of a compiler that made no module and did not say why."""
    label = f"shader {job.request.label!r}: " if job.request.label else ""
    text = f"{label}the shader compiler {compiler.path!r} {does}"
    return CompileError(Diagnostic("SR-SHADER-010", "error", None, text, help, path=job.request.place))


def _all_errors(compiler: Compiler, argv: list[str], output: str, run: Callable[[list[str]], ProgramResult]) -> str:
    """The messages of a compiler that is asked to go on after the first error; ``output`` where that brings no more."""
    first = next((line.split(": ", 2)[-1] for line in output.splitlines() if line.startswith("ERROR: ")), None)
    for more in compiler.asking_again:
        try:
            done = run([argv[0], *more, *argv[1:]])
        except (OSError, ValueError):
            break
        if not done.failure and first is not None and first in done.output:
            return done.output
    return output


def batches(jobs: Iterable[Job], processes: int) -> list[list[Job]]:
    """The jobs that have a ``batch`` compiler, in lists for one process each: per target as many as ``processes``, of
    about the same size."""
    groups: dict[tuple[str, str], list[Job]] = {}
    for job in jobs:
        if job.batch is not None:
            groups.setdefault((job.batch.path, job.target(job.batch)), []).append(job)
    split = []
    for group in groups.values():
        group.sort(key=lambda job: len(job.assembled.text), reverse=True)
        count = max(min(processes, len(group)), -(-len(group) // MAX_SHADERS))
        split += [group[index::count] for index in range(count)]
    return split


def compile_batch(jobs: Sequence[Job], folder: str, processes: Processes, timeout_s: float) -> None:
    """Fill ``module`` and ``made_by`` of those that compile, or ``failure``. ``folder`` must not exist yet.

    When the compiler crashes or hangs, the others are tried again without the shader that it was at, as long as
    anything came before that one.
    """
    os.mkdir(folder)
    left = list(jobs)
    limit_s = min(timeout_s, BATCH_TIMEOUT_S)
    for attempt in range(len(jobs)):
        reached = _compile_together(left, os.path.join(folder, str(attempt)), processes, limit_s)
        # The last one that it wrote may not be whole, the one after that is what it was at.
        rest = [] if reached is None else [*left[reached : reached + 1], *left[reached + 2 :]]
        if not rest or len(rest) == len(left):
            return
        left = rest


def _compile_together(jobs: Sequence[Job], folder: str, processes: Processes, timeout_s: float) -> int | None:
    """Run one process. Return the index of the last file that it wrote if it did not end by itself, -1 if it ended at
    the first shader; else, and where that is not known, None."""
    compiler = jobs[0].batch
    assert compiler is not None
    os.mkdir(folder)
    for index, job in enumerate(jobs):
        with open(os.path.join(folder, str(index)), "wb") as file:
            file.write(job.assembled.text)
    try:
        argv = compiler.batch_arguments(jobs[0].target(compiler), [(job.request, job.options) for job in jobs])
        make_runnable(argv[0])
        done = processes.run(argv, folder=folder, timeout_s=timeout_s)
    except (OSError, ValueError):
        return None  # compiling them alone says more
    written = [index for index in range(len(jobs)) if _wrote(folder, index)]
    # It writes one file after the other: where it was ended, only the last one can be a part of a module.
    for index in written[:-1] if done.failure else written:
        _take(jobs[index], compiler, os.path.join(folder, str(index)))
    if not done.failure:
        return None
    return written[-1] if written else -1 if compiler.writes_logs else None


def _wrote(folder: str, index: int) -> bool:
    return any(os.path.exists(os.path.join(folder, f"{index}{ending}")) for ending in (".spv", ".log"))


def _take(job: Job, compiler: Compiler, path: str) -> None:
    """Take the module and the log of a shader, whose files begin with ``path``."""
    output = None
    if os.path.exists(f"{path}.log"):
        with open(f"{path}.log", encoding="utf-8", errors="replace") as file:
            output = file.read(MAX_LOG)
    if os.path.exists(f"{path}.spv"):
        module = _read_module(f"{path}.spv")
        if module.endswith(_FUNCTION_END) and _is_module(module):
            job.module, job.made_by = module, compiler
    elif output is not None:
        job.failure = CompileError(compile_problem(job.request, job.assembled, output, compiler.style))
    if output is not None and job.module is not None:
        log_warnings(job.request, job.assembled, output, compiler.style)


def _read_module(path: str) -> bytes:
    """At most one byte more than ``MAX_FILE_BYTES`` of the file that a compiler wrote. Raises OSError."""
    with open(path, "rb") as file:
        return file.read(MAX_FILE_BYTES + 1)


def _is_module(data: bytes) -> bool:
    """Tell a SPIR-V module by its size and first word."""
    return 20 <= len(data) <= MAX_FILE_BYTES and len(data) % 4 == 0 and data[:4] == _SPIRV_MAGIC
