"""Compile many shaders at once: each different text once, none that the cache has, the others in parallel.

Compilers run for many shaders in one process where they allow it, else for one each. A shader that a batch did not
compile is compiled alone by the preferred compiler, whose messages become a problem (see `shaders.messages`).
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from scenario_runner import system_limits, temporary
from scenario_runner.arm_glslc import install_line
from scenario_runner.content_cache import ContentCache
from scenario_runner.diagnostics import Diagnostic
from scenario_runner.errors import CompileError, CompilerNotFoundError, FileError, ScenarioRunnerError, error_of
from scenario_runner.shaders.compilers import OUTPUT_NAME, SOURCE_NAME, Compiler, dxc_install_line
from scenario_runner.shaders.discovery import (
    Job,
    able_compilers,
    check_request,
    find_compilers,
    names,
)
from scenario_runner.shaders.source import CompileRequest, assemble, parse_build_options

if TYPE_CHECKING:
    from scenario_runner.program import Processes, ProgramResult

COMPILE_TIMEOUT_S = 60.0
BATCH_TIMEOUT_S = 10.0  # a shader that needs longer is compiled alone, with a time limit of its own
MAX_SHADERS = 1000  # in one process: a command line has its bounds
MAX_LOG = 1 << 20
_MAX_MODULE_BYTES = 64 << 20  # most bytes of a file that `Processes` lets a compiler write
_SPIRV_MAGIC = b"\x03\x02\x23\x07"
_FUNCTION_END = b"\x38\x00\x01\x00"  # SPIR-V's OpFunctionEnd, with which every module of a shader ends
_UNSUPPORTED = "extension not supported"
_TOO_MUCH = "the shader may be too much for it, or another compiler may do better"


class Compiled(NamedTuple):
    """A SPIR-V module, the files that its source includes, as far as this program looks for them itself, and the
    compiler that made it; None for a module that was given."""

    module: bytes
    includes: list[str]
    compiler: Compiler | None = None


def compile_all(
    requests: Sequence[CompileRequest],
    *,
    compiler: str | None = None,
    cache_dir: str | None = None,
    use_cache: bool = True,
    jobs: int | None = None,
    timeout_s: float = COMPILE_TIMEOUT_S,
) -> list[bytes]:
    """The SPIR-V module of each request, in their order (bytes of 32-bit little-endian words).

    ``compiler`` names the GLSL compiler (see `find_compilers`), ``jobs`` bounds the processes at a time (default: one
    per core), ``timeout_s`` each process's seconds. All failures are reported together: CompileError with one problem
    per shader that its compiler refused, CompilerNotFoundError when no compiler found can do what a shader needs,
    FileError for sources that cannot be read, ScenarioError for build_options; the error's class is that of the
    first problem. KeyboardInterrupt passes through, after every process is dead.
    """
    compiled = compile_each(
        requests, compiler=compiler, cache_dir=cache_dir, use_cache=use_cache, jobs=jobs, timeout_s=timeout_s
    )
    failures = [result for result in compiled if isinstance(result, ScenarioRunnerError)]
    if failures:
        raise _together(failures)
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
    """Compile as `compile_all` does; in place of a module that cannot be made stands the error."""
    cache = ContentCache(cache_dir, "shaders") if use_cache else None
    by_language: dict[str, list[Compiler]] = {}
    prepared: list[Job | ScenarioRunnerError] = []
    same: dict[bytes, list[Job]] = {}
    for request in requests:
        try:
            options = parse_build_options(request.build_options, request.base_dir)
            check_request(request)
            assembled = assemble(request, options)
            if request.language not in by_language:
                by_language[request.language] = find_compilers(
                    compiler, language=request.language, cache_dir=cache_dir, use_cache=use_cache
                )
            able = able_compilers(request, assembled.text, by_language[request.language])
        except ScenarioRunnerError as error:
            prepared.append(_labelled(error, request))
            continue
        job = Job(request, options, assembled, able)
        prepared.append(job)
        same.setdefault(job.key(able[0]), []).append(job)
    compile_missing([first for first, *_ in same.values() if not first.load(cache)], cache, jobs, timeout_s)
    left = []
    for first, *others in same.values():
        for job in others:
            if first.module is not None or job.request == first.request:
                job.module, job.made_by, job.failure = first.module, first.made_by, first.failure
            else:  # a failure speaks of one shader and its file
                left.append(job)
    compile_missing(left, cache, jobs, timeout_s)
    return [_result(job) if isinstance(job, Job) else job for job in prepared]


def _result(job: Job) -> Compiled | ScenarioRunnerError:
    if job.failure is not None:
        return job.failure
    assert job.module is not None
    return Compiled(job.module, job.assembled.files[1:], job.made_by)


def _labelled(error: ScenarioRunnerError, request: CompileRequest) -> ScenarioRunnerError:
    """The same error, its problems naming the shader."""
    if request.label:
        who = f"shader {request.label!r}: "
        error.problems = tuple(problem._replace(message=who + problem.message) for problem in error.problems)
    return error


def _together(failures: list[ScenarioRunnerError]) -> ScenarioRunnerError:
    problems = tuple(dict.fromkeys(problem for error in failures for problem in error.problems))
    raised = error_of(problems)
    raised.__cause__ = failures[0].__cause__
    return raised


def compile_missing(missing: list[Job], cache: ContentCache | None, jobs: int | None, timeout_s: float) -> None:
    """Fill ``module`` or ``failure`` of each, with at most ``jobs`` processes at a time (default: one per core)."""
    if not missing:
        return
    from scenario_runner.program import Processes, work_off

    processes = Processes()
    jobs = jobs or system_limits.processors()

    def together(batch: list[Job], folder: str) -> None:
        with contextlib.suppress(OSError, ValueError):  # compiling them alone says more
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
        _log_warnings(job, compiler, output)
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


def _problem(job: Job, compiler: Compiler, output: str) -> Diagnostic:
    """The errors of which a compiler wrote."""
    from scenario_runner.shaders.messages import compile_problem

    return compile_problem(job.request, job.assembled, output, compiler.style)


def _log_warnings(job: Job, compiler: Compiler, output: str) -> None:
    """Log the messages about a shader that was compiled, where there is a warning among them."""
    if "WARNING:" in output or "warning:" in output:
        from scenario_runner.shaders.messages import log_warnings

        log_warnings(job.request, job.assembled, output, compiler.style)


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
    """Fill ``module`` and ``made_by`` of those that compile, or ``failure``, by one process.

    Where the compiler crashes or hangs, what it had not finished is left as it is. ``folder`` must not exist yet.
    """
    compiler = jobs[0].batch
    assert compiler is not None
    os.mkdir(folder)
    for index, job in enumerate(jobs):
        with open(os.path.join(folder, str(index)), "wb") as file:
            file.write(job.assembled.text)
    argv = compiler.batch_arguments(jobs[0].target(compiler), [(job.request, job.options) for job in jobs])
    done = processes.run(argv, folder=folder, timeout_s=min(timeout_s, BATCH_TIMEOUT_S))
    written = [index for index in range(len(jobs)) if _wrote(folder, index)]
    # It writes one file after the other: where it was ended, only the last one can be a part of a module.
    for index in written[:-1] if done.failure else written:
        _take(jobs[index], compiler, os.path.join(folder, str(index)))


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
        job.failure = CompileError(_problem(job, compiler, output))
    if output is not None and job.module is not None:
        _log_warnings(job, compiler, output)


def _read_module(path: str) -> bytes:
    """At most one byte more than ``_MAX_MODULE_BYTES`` of the file that a compiler wrote. Raises OSError."""
    with open(path, "rb") as file:
        return file.read(_MAX_MODULE_BYTES + 1)


def _is_module(data: bytes) -> bool:
    """Tell a SPIR-V module by its size and first word."""
    return 20 <= len(data) <= _MAX_MODULE_BYTES and len(data) % 4 == 0 and data[:4] == _SPIRV_MAGIC
