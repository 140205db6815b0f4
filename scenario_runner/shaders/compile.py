"""Compiles many shaders at once: equal texts once, cached modules not at all, the others in parallel.

A process compiles many shaders if its compiler supports that, else one. If a shader in a batch does not compile, the
preferred compiler compiles it alone, and its messages become a problem (see `shaders.compilers.compile_problems`).
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from scenario_runner.errors import CompileError, CompilerNotFoundError, FileError, ScenarioRunnerError, error_of
from scenario_runner.errors.diagnostic import Diagnostic
from scenario_runner.errors.installation import glslc_command_line
from scenario_runner.files.cache_folder import ContentCache
from scenario_runner.processes import system_limits, temporary
from scenario_runner.shaders.compilers.search import able_compilers, check_request, find_compilers, names
from scenario_runner.shaders.compilers.table import OUTPUT_NAME, SOURCE_NAME, Compiler, dxc_install_line
from scenario_runner.shaders.source import CompileRequest, ShaderSource, assemble, parse_build_options

if TYPE_CHECKING:
    from scenario_runner.shaders.compilers.compiler_processes import Processes, ProgramResult

COMPILE_TIMEOUT_S = 60.0
BATCH_TIMEOUT_S = 10.0  # slower shaders are compiled alone, with their own time limit
MAX_SHADERS = 1000  # in one process: command lines are limited
MAX_LOG = 1 << 20
_MAX_MODULE_BYTES = 64 << 20  # the most bytes that `Processes` lets a compiler write
_SPIRV_MAGIC = b"\x03\x02\x23\x07"
_FUNCTION_END = b"\x38\x00\x01\x00"  # OpFunctionEnd of SPIR-V, the last instruction of every shader
_UNSUPPORTED = "extension not supported"
_TOO_MUCH = "the shader may be too much for it, or another compiler may do better"


class Compiled(NamedTuple):
    """A SPIR-V module, the files that its source includes (as far as this program resolves includes), and its compiler.

    The compiler is None for a module that was given.
    """

    module: bytes
    includes: list[str]
    compiler: Compiler | None = None


_FORMAT = 2  # part of every key: raise it if the same key would mean another module


class Job:
    """One shader. ``compilers`` can compile it, the preferred one first. ``batch`` first tries it with other
    shaders."""

    def __init__(self, source: ShaderSource, compilers: list[Compiler]) -> None:
        self.source = source
        self.compilers = compilers
        batching = (compiler for compiler in compilers if compiler.batches(source, preferred=compiler is compilers[0]))
        self.batch = next(batching, None)
        self.result: Compiled | ScenarioRunnerError | None = None

    def finish(self, module: bytes, compiler: Compiler | None) -> None:
        """Take a compiled module."""
        self.result = Compiled(module, self.source.files[1:], compiler)

    def key(self, compiler: Compiler) -> bytes:
        """Return the cache key: all inputs of the module that ``compiler`` would make."""
        request, options, target = self.source.request, self.source.options, compiler.target_for(self.source)
        called = request.language, request.stage, request.entry, target, options.optimise, options.debug
        head = repr((_FORMAT, compiler.identity, called)).encode("utf-8", "backslashreplace")
        return head + b"\n" + self.source.text

    def load(self, cache: ContentCache) -> None:
        """Take the module from the cache; the batch's compiler comes first."""
        for compiler in (self.batch, *self.compilers):
            module = None if compiler is None else cache.load(self.key(compiler))
            if module is not None:
                self.finish(module, compiler)
                return


def compile_all(
    requests: Sequence[CompileRequest],
    *,
    compiler: str | None = None,
    cache_dir: str | None = None,
    use_cache: bool = True,
    jobs: int | None = None,
    timeout_s: float = COMPILE_TIMEOUT_S,
) -> list[bytes]:
    """Compile the requests. Return their SPIR-V modules in order (bytes of 32-bit little-endian words).

    ``compiler`` names the GLSL compiler (see `find_compilers`), ``jobs`` limits the number of processes (default: one
    per core), ``timeout_s`` the seconds of each process.

    All failures are reported together, in an error of the first problem's class. CompileError has a problem for each
    rejected shader. CompilerNotFoundError means that no compiler supports a shader, FileError that a source cannot be
    read, ScenarioError that build_options are wrong. KeyboardInterrupt ends all processes and is raised again.
    """
    compiled = compile_each(
        requests, compiler=compiler, cache_dir=cache_dir, use_cache=use_cache, jobs=jobs, timeout_s=timeout_s
    )
    failures = [result for result in compiled if isinstance(result, ScenarioRunnerError)]
    if failures:
        error = error_of(dict.fromkeys(problem for failure in failures for problem in failure.problems))
        raise error from failures[0].__cause__
    return [result.module for result in compiled if isinstance(result, Compiled)]


def compile_each(
    requests: Sequence[CompileRequest],
    *,
    compiler: str | None = None,
    cache_dir: str | None = None,
    use_cache: bool = True,
    jobs: int | None = None,
    timeout_s: float = COMPILE_TIMEOUT_S,
) -> list[Compiled | ScenarioRunnerError]:
    """Compile like `compile_all`, but return an error in the place of each failed module."""
    cache = ContentCache(cache_dir, "shaders") if use_cache else None
    by_language: dict[str, list[Compiler]] = {}
    prepared: list[Job | ScenarioRunnerError] = []
    same: dict[bytes, list[Job]] = {}
    for request in requests:
        try:
            options = parse_build_options(request.build_options, request.base_dir)
            check_request(request)
            source = assemble(request, options)
            if request.language not in by_language:
                by_language[request.language] = find_compilers(
                    compiler, language=request.language, cache_dir=cache_dir, use_cache=use_cache
                )
            job = Job(source, able_compilers(source, by_language[request.language]))
        except ScenarioRunnerError as error:
            named = (problem._replace(message=request.who + problem.message) for problem in error.problems)
            error.problems = tuple(named)
            prepared.append(error)
            continue
        prepared.append(job)
        same.setdefault(job.key(job.compilers[0]), []).append(job)
    for first, *_ in same.values():
        if cache is not None and not first.source.opaque:
            first.load(cache)
    compile_missing([first for first, *_ in same.values()], cache, jobs, timeout_s)
    for first, *others in same.values():
        for job in others:
            if isinstance(first.result, Compiled):
                job.finish(first.result.module, first.result.compiler)
            elif job.source.request == first.source.request:
                job.result = first.result  # a failure names one shader and its file
    compile_missing([job for _, *others in same.values() for job in others], cache, jobs, timeout_s)
    results = (job.result if isinstance(job, Job) else job for job in prepared)
    return [result for result in results if result is not None]


def compile_missing(
    prepared: Iterable[Job], cache: ContentCache | None, processes_at_once: int | None, timeout_s: float
) -> None:
    """Compile the jobs without a result, with at most this many processes (default: one per core)."""
    missing = [job for job in prepared if job.result is None]
    if not missing:
        return
    from scenario_runner.shaders.compilers.compiler_processes import Processes, work_off

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
        _log_warnings(job, compiler, output)
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
        problem = _problem(job, compiler, output)
        if _UNSUPPORTED in done.output:
            advice = f"{names([compiler])} lacks the extension; a newer glslang, or Arm's glslc, may have it: "
            raise _NextCompilerError(problem._replace(help=advice + glslc_command_line()))
        if job.source.request.language == "HLSL" and compiler.hlsl_is_dated:
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


def _problem(job: Job, compiler: Compiler, output: str) -> Diagnostic:
    """Make a problem from the errors that a compiler printed."""
    from scenario_runner.shaders.compilers.compile_problems import compile_problem

    return compile_problem(job.source, output, compiler.style)


def _log_warnings(job: Job, compiler: Compiler, output: str) -> None:
    """Log a compiler's messages about a compiled shader if they include a warning."""
    if "WARNING:" in output or "warning:" in output:
        from scenario_runner.shaders.compilers.compile_problems import log_warnings

        log_warnings(job.source, output, compiler.style)


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
    """Split the jobs with a ``batch`` compiler into lists for one process each.

    For each target, there are at most ``processes`` lists, of about the same size.
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
    """Compile jobs in one process. Finish the jobs that it compiled or rejected.

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
    # Files are written one after the other. If the compiler was ended, only the last file can be incomplete.
    for job, path in written[:-1] if done.failure else written:
        _take(job, compiler, path)


def _take(job: Job, compiler: Compiler, path: str) -> None:
    """Take the module and the log of a shader from the files that begin with ``path``."""
    output = None
    if os.path.exists(f"{path}.log"):
        with open(f"{path}.log", encoding="utf-8", errors="replace") as file:
            output = file.read(MAX_LOG)
    if not os.path.exists(f"{path}.spv"):
        job.result = CompileError(_problem(job, compiler, output or ""))
        return
    module = _read_module(f"{path}.spv")
    if module.endswith(_FUNCTION_END) and _is_module(module):
        job.finish(module, compiler)
        _log_warnings(job, compiler, output or "")


def _read_module(path: str) -> bytes:
    """Read the file of a compiler, up to one byte beyond ``_MAX_MODULE_BYTES``. Raises OSError."""
    with open(path, "rb") as file:
        return file.read(_MAX_MODULE_BYTES + 1)


def _is_module(data: bytes) -> bool:
    """Recognize a SPIR-V module by its size and first word."""
    return 20 <= len(data) <= _MAX_MODULE_BYTES and len(data) % 4 == 0 and data[:4] == _SPIRV_MAGIC
