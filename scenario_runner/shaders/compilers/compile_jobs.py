"""Runs compilers for the shaders that no cache has, and turns their messages into problems.

A problem has places in the user's files, and quotes their source lines.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from typing import NamedTuple

from scenario_runner.errors import CompileError, CompilerNotFoundError, FileError, ScenarioRunnerError, log
from scenario_runner.errors.diagnostic import Diagnostic
from scenario_runner.errors.installation import glslc_command_line
from scenario_runner.files.cache_folder import ContentCache
from scenario_runner.files.input import SPIRV_SIGNATURES
from scenario_runner.processes import system_limits, temporary
from scenario_runner.shaders.compilers.compiler_processes import Processes, ProgramResult, work_off
from scenario_runner.shaders.compilers.search import Compiled, Job, names
from scenario_runner.shaders.compilers.table import OUTPUT_NAME, SOURCE_NAME, Compiler, MessageStyle, dxc_install_line
from scenario_runner.shaders.source import (
    FIRST_FILE,
    OPTIONS_FILE,
    ShaderSource,
)
from scenario_runner.shaders.spirv.index import without_idle_partitions

BATCH_TIMEOUT_S = 10.0  # slower shaders are compiled alone, with their own time limit
MAX_SHADERS = 1000  # in a process: command lines are limited
MAX_LOG = 1 << 20
_MAX_MODULE_BYTES = 64 << 20  # the most bytes that `Processes` lets a compiler write
_FUNCTION_END = b"\x38\x00\x01\x00"  # SPIR-V's OpFunctionEnd, every shader's last instruction
_UNSUPPORTED = "extension not supported"
_TOO_MUCH = "the shader may be too large for this compiler: try another"


def compile_jobs(
    missing: Sequence[Job], cache: ContentCache | None, processes_at_once: int | None, timeout_s: float
) -> None:
    """Compile jobs with at most this many processes (default: a process per core), and cache the modules."""
    processes = Processes()
    count = processes_at_once or system_limits.processors()

    def together(batch: list[Job], folder: str) -> None:
        with contextlib.suppress(OSError, ValueError):  # compiling them alone gives better messages
            compile_batch(batch, folder, processes, timeout_s)

    def alone(job: Job, folder: str) -> None:
        try:
            compile_alone(job, folder, partial(processes.run, folder=folder, timeout_s=timeout_s))
        except ScenarioRunnerError as error:
            job.result = error
        except OSError as error:
            job.result = FileError(f"cannot compile shaders in {os.path.dirname(folder)!r}: {error}")

    try:
        root = temporary.make_folder()
    except OSError as error:
        reason = f"no folder for temporary files can be used to compile shaders: {error.strerror or error}"
        raise FileError(reason, help="set TMPDIR to a folder that can be written and has room") from error
    try:
        tasks: list[Callable[[str], None]] = [partial(together, batch) for batch in batches(missing, count)]
        tasks += [partial(alone, job) for job in missing if job.batch is None]
        work_off(tasks, os.path.join(root, "first"), count, processes)
        left = [partial(alone, job) for job in missing if job.result is None]
        work_off(left, os.path.join(root, "then"), count, processes)
    finally:
        temporary.remove(root)
    if cache is not None:
        for job in missing:
            if isinstance(job.result, Compiled) and job.result.compiler and not job.source.opaque:
                cache.store(job.key(job.result.compiler), job.result.module)
        cache.evict()


def compile_alone(job: Job, folder: str, run: Callable[[list[str]], ProgramResult]) -> None:
    """Finish a job, or raise CompileError or CompilerNotFoundError. ``run`` starts processes in ``folder``.

    Another compiler is tried only if the earlier ones lack an extension. ``folder`` must not exist yet.
    """
    os.mkdir(folder)
    with open(os.path.join(folder, SOURCE_NAME), "wb") as file:
        file.write(job.source.text)
    refusals = []
    for compiler in job.compilers:
        try:
            module, output = _compile_with(compiler, job, folder, run)
        except _NextCompilerError as error:
            refusals.append(error)
            continue
        job.finish(module, compiler)
        log_warnings(job.source, output, compiler.style)
        return
    raise CompileError(refusals[0].problems)


class _NextCompilerError(CompileError):
    """A rejection that another compiler may not share."""


def _compile_with(
    compiler: Compiler, job: Job, folder: str, run: Callable[[list[str]], ProgramResult]
) -> tuple[bytes, str]:
    """Return the module and the compiler's messages."""
    try:
        argv = compiler.arguments(job.source)
        done = run(argv)
    except (OSError, ValueError) as error:
        reason = (getattr(error, "strerror", None) or str(error)).lower()
        raise CompilerNotFoundError(f"the shader compiler {compiler.path!r} cannot be started: {reason}") from error
    if done.failure:
        raise _defect(job, compiler, done.failure, _TOO_MUCH)
    if done.code != 0:
        output = _all_errors(compiler, argv, done.output, run)
        problem = compile_problem(job.source, output, compiler.style)
        if _UNSUPPORTED in done.output:
            advice = f"{names([compiler])} lacks the extension; a newer glslang, or Arm's glslc, may have it: "
            raise _NextCompilerError(problem._replace(help=advice + glslc_command_line()))
        if job.source.request.language == "HLSL" and compiler.hlsl_is_dated and not job.source.other_entry_points():
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
    """Return the error for a compiler that made no module and gave no reason."""
    request = job.source.request
    text = f"{request.who}the shader compiler {compiler.path!r} {does}"
    return CompileError(Diagnostic("SR-SHADER-010", "error", None, text, help, path=request.place))


def _all_errors(compiler: Compiler, argv: list[str], output: str, run: Callable[[list[str]], ProgramResult]) -> str:
    """Ask a compiler to continue after the first error. Return its messages, or ``output`` if there are no more."""
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
    """Split the jobs with a ``batch`` compiler into a list for each process.

    Each target has at most ``processes`` lists, about equally long.
    """
    groups: dict[tuple[str, str], list[Job]] = {}
    for job in jobs:
        if job.batch is not None:
            groups.setdefault((job.batch.path, job.batch.target_for(job.source)), []).append(job)
    split = []
    for group in groups.values():
        group.sort(key=lambda job: len(job.source.text), reverse=True)
        count = max(min(processes, len(group)), -(-len(group) // MAX_SHADERS))
        split += [group[index::count] for index in range(count)]
    return split


def compile_batch(jobs: Sequence[Job], folder: str, processes: Processes, timeout_s: float) -> None:
    """Compile jobs in one process. Finish the compiled and rejected jobs.

    If the compiler crashes or hangs, the other jobs stay unfinished. ``folder`` must not exist yet.
    """
    compiler = jobs[0].batch
    assert compiler is not None
    os.mkdir(folder)
    for index, job in enumerate(jobs):
        with open(os.path.join(folder, str(index)), "wb") as file:
            file.write(job.source.text)
    argv = compiler.batch_arguments([job.source for job in jobs])
    done = processes.run(argv, folder=folder, timeout_s=min(timeout_s, BATCH_TIMEOUT_S))
    paths = [os.path.join(folder, str(index)) for index in range(len(jobs))]
    written = [
        (job, path)
        for job, path in zip(jobs, paths, strict=True)
        if os.path.exists(f"{path}.spv") or os.path.exists(f"{path}.log")
    ]
    # The compiler writes files in turn. After an early end, only the last file can be incomplete.
    for job, path in written[:-1] if done.failure else written:
        _take(job, compiler, path)


def _take(job: Job, compiler: Compiler, path: str) -> None:
    """Read a shader's module and log, and store the result in ``job``. Names of the files begin with ``path``."""
    output = None
    if os.path.exists(f"{path}.log"):
        with open(f"{path}.log", encoding="utf-8", errors="replace") as file:
            output = file.read(MAX_LOG)
    if not os.path.exists(f"{path}.spv"):
        job.result = CompileError(compile_problem(job.source, output or "", compiler.style))
        return
    module = _read_module(f"{path}.spv")
    if module.endswith(_FUNCTION_END) and _is_module(module):
        job.finish(module, compiler)
        log_warnings(job.source, output or "", compiler.style)


def _read_module(path: str) -> bytes:
    """Read a compiler's file, up to one byte beyond ``_MAX_MODULE_BYTES``. Raises OSError.

    Declarations that dxc adds without need are removed, because few devices have the extension.
    """
    with open(path, "rb") as file:
        return without_idle_partitions(file.read(_MAX_MODULE_BYTES + 1))


def _is_module(data: bytes) -> bool:
    """Recognize a SPIR-V module by size and first word."""
    return 20 <= len(data) <= _MAX_MODULE_BYTES and len(data) % 4 == 0 and data.startswith(SPIRV_SIGNATURES[0])


_MAX_ERRORS = 1000
_MAX_LINE = 500
_MOST_CHARACTERS = 100
_QUOTED = re.compile(r"'([^']+)'")


def _lines(source: ShaderSource, path: str) -> list[str]:
    """Return the lines of a shader's file; empty for a name invented by a #line directive."""
    if path not in source.files:
        return []
    text = source.contents[source.files.index(path)].decode(errors="replace")
    return re.split(r"\r\n|\r|\n", text)


def _quoted_line(message: _Message, lines_of: Callable[[str], list[str]]) -> tuple[list[str], int | None]:
    """Return a message's source line with a mark below the error, and the mark's column (from 1) if known.

    The list is empty if the file lacks the line. Most messages without a column name a word of the line. The mark goes
    to this word if the line has it once, or to the word nearest to the column.
    """
    number, column = message.line or 0, message.column
    lines = lines_of(message.file) if message.file is not None else []
    if not 0 < number <= len(lines) or not lines[number - 1].strip():
        return [], column
    line = "".join(character if character.isprintable() else " " for character in lines[number - 1])
    start, length = _marked(line, column, message.text)
    first = max(0, (start or 0) - _MOST_CHARACTERS // 2) if len(line) > _MOST_CHARACTERS else 0
    margin = f"{number:5} | "
    shown = [margin + line[first : first + _MOST_CHARACTERS].rstrip()]
    if start is not None:
        shown.append(" " * (len(margin) - 2) + "| " + " " * (start - first) + "^" + "~" * min(length - 1, 40))
    return shown, column if start is None else start + 1


def _marked(line: str, column: int | None, message: str) -> tuple[int | None, int]:
    """Find the mark's start (from 0) and length."""
    word = _QUOTED.match(message)
    if word:
        places = [match.start() for match in re.finditer(rf"(?<!\w){re.escape(word[1])}(?!\w)", line)]
        if not places and not word[1].isidentifier():
            places = [match.start() for match in re.finditer(re.escape(word[1]), line)]
        if len(places) == 1 or (places and column is not None):
            return min(places, key=lambda place: abs(place + 1 - (column or 1))), len(word[1])
    if column is not None and 0 < column <= len(line) + 1:
        lengths = [len(word) for word in _QUOTED.findall(message) if line.startswith(word, column - 1)]
        return column - 1, max(lengths, default=1)
    return None, 1


def log_warnings(source: ShaderSource, output: str, style: MessageStyle) -> None:
    """Log a compiler's messages about a compiled shader, with the user's file names, if they include a warning."""
    if "WARNING:" not in output and "warning:" not in output:
        return
    names, message = _names(source), re.compile(style.message)
    lines = output.strip()[:2000].splitlines()
    for index, line in enumerate(lines):
        match = message.fullmatch(line)
        if match:
            file = names.get(match["file"], match["file"])
            lines[index] = line[: match.start("file")] + file + line[match.end("file") :]
    log.warning(__name__, "%s: the compiler warns: %s", source.request.place, "\n".join(lines))


def _names(source: ShaderSource) -> dict[str, str]:
    """Map compilers' names of files to the user's files."""
    names = {SOURCE_NAME: source.files[0], "0": source.files[0], str(OPTIONS_FILE): "build_options"}
    return names | {str(FIRST_FILE + index): name for index, name in enumerate(source.files)}


class _Message(NamedTuple):
    """An error of a compiler; without a place if it names none."""

    text: str
    file: str | None = None
    line: int | None = None
    column: int | None = None

    @property
    def at(self) -> str:
        """The place, for the start of a sentence."""
        place = "".join(f"{part}:" for part in (self.file, self.line, self.column) if part is not None)
        return f"{place} " if place else ""

    def and_more(self, text: str) -> _Message:
        """Append a line."""
        return self._replace(text=f"{self.text}\n  {text}")


def _messages(output: str, names: dict[str, str], style: MessageStyle) -> list[_Message]:
    """Parse a compiler's errors, each once, with the user's file names. Return at least one error."""
    messages: list[_Message] = []
    reason = ""
    message, noise = re.compile(style.message), re.compile(style.noise)
    warned = False
    for whole in _without_echoes(output, message) if style.echoes else output.splitlines():
        line = whole.strip()[:_MAX_LINE]
        match = message.fullmatch(line)
        if noise.fullmatch(line):
            reason = reason or (line.removeprefix("ERROR:").strip() if line.startswith("ERROR: Linking") else "")
        elif match:
            severity, column = match["severity"].lower(), int(match["column"][:9]) if match["column"] else None
            file = names.get(match["file"], match["file"])
            new = _Message(match["text"].strip(), file, int(match["line"][:9]), column)
            if severity == "note":
                if messages and not warned:
                    messages[-1] = messages[-1].and_more(f"{new.at}note: {new.text}")
                continue
            warned = severity == "warning" and style.echoes  # its notes and source lines follow
            if severity != "warning":
                messages.append(new)
        elif warned or line in ("", SOURCE_NAME):  # glslang's echo of the file name
            continue
        elif messages and not line.startswith(("ERROR:", "WARNING:")):
            messages[-1] = messages[-1].and_more(line)  # such as the name in a linker message
        elif not line.startswith("WARNING:"):
            messages.append(_Message(line.removeprefix("ERROR:").removeprefix("error:").strip()))
    return list(dict.fromkeys(messages)) or [_Message(reason or "the compiler gave no reason")]


def compile_problem(source: ShaderSource, output: str, style: MessageStyle) -> Diagnostic:
    """Make a problem from a compiler's messages: the first error's place, text and source line, then the others."""
    first, *others = _messages(output, _names(source), style)
    if first.file == "build_options":
        first = first._replace(text=f"in build_options: {first.text}", file=None, line=None)
    request, lines_of = source.request, cache(partial(_lines, source))
    shown, column = _quoted_line(first, lines_of)
    lines = [f"{request.who}{first.text}", *shown]
    for other in others[: _MAX_ERRORS - 1]:
        quoted, at_column = _quoted_line(other, lines_of)
        lines += [f"  {other._replace(column=at_column).at}{other.text}", *quoted]
    if len(others) >= _MAX_ERRORS:
        lines.append(f"  and {len(others) + 1 - _MAX_ERRORS} more")
    help, place = None, first.file or request.place
    if entries := source.other_entry_points():
        lines[0] += f": there is no {request.entry!r}; the entry points are: {', '.join(entries)}"
        help = f'write "entry": "{entries[0]}"'
    if "cannot find the include file" in output and source.missing:
        dirs = ", ".join(repr(folder) for folder in request.include_dirs) or "none"
        help = f"searched: the folder of the including file, then include_dirs ({dirs}), then -I in build_options"
    line = first.line if first.line and first.line > 0 else None
    return Diagnostic("SR-SHADER-010", "error", None, "\n".join(lines), help, place, line, column)


def _without_echoes(output: str, message: re.Pattern[str]) -> list[str]:
    """Remove echoed source lines, the marks below them, and suggested insertions."""
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
