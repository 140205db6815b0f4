"""Compile many shaders at once: each different one once, what the cache has not at all, the rest in parallel."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from scenario_runner import system_limits
from scenario_runner.errors import (
    CompilerNotFoundError,
    FileError,
    ScenarioError,
    ScenarioRunnerError,
    UsageError,
    error_of,
)
from scenario_runner.shaders.batch import batch_compiler
from scenario_runner.shaders.cache import ShaderCache
from scenario_runner.shaders.compilers.compiler import GLSLANG_VARIABLE, Compiler
from scenario_runner.shaders.discovery import find_compilers, names
from scenario_runner.shaders.job import TENSORS, Job
from scenario_runner.shaders.options import parse_build_options
from scenario_runner.shaders.request import TARGETS, CompileRequest
from scenario_runner.shaders.source import assemble

if TYPE_CHECKING:
    from scenario_runner.shaders.process import Processes

COMPILE_TIMEOUT_S = 60.0


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
    made = compile_each(
        requests, compiler=compiler, cache_dir=cache_dir, use_cache=use_cache, jobs=jobs, timeout_s=timeout_s
    )
    failures = [one for one in made if isinstance(one, ScenarioRunnerError)]
    if failures:
        raise _together(failures)
    return [one.module for one in made if isinstance(one, Compiled)]


def compile_each(
    requests: Sequence[CompileRequest],
    *,
    compiler: str | None = None,
    cache_dir: str | None = None,
    use_cache: bool = True,
    jobs: int | None = None,
    timeout_s: float = COMPILE_TIMEOUT_S,
) -> list[Compiled | ScenarioRunnerError]:
    """As `compile_all`, but what `compile_all` would raise stands in the place of the module that there is not."""
    cache = ShaderCache(cache_dir) if use_cache else None
    found: dict[str, list[Compiler]] = {}
    unique: dict[bytes, Job] = {}
    wanted: list[tuple[Job, Job] | ScenarioRunnerError] = []
    for request in requests:
        try:
            options = parse_build_options(request.build_options, request.base_dir)
            _check(request)
            assembled = assemble(request, options)
            if request.language not in found:
                found[request.language] = find_compilers(
                    compiler, language=request.language, cache_dir=cache_dir, use_cache=use_cache
                )
            able = _able(request, assembled.text, found[request.language])
        except ScenarioRunnerError as error:
            wanted.append(_labelled(error, request))
            continue
        job = Job(request, options, assembled, able, batch_compiler(request, options, assembled, able))
        wanted.append((job, unique.setdefault(job.key(able[0]), job)))
    missing = [job for job in unique.values() if not _from_cache(job, cache)]
    if missing:
        jobs = jobs or system_limits.processors()
        _compile_missing(missing, cache, jobs, timeout_s)
        # A failure speaks of one shader and its file; others with the same text have one that speaks of theirs.
        again = [own for own, shared in (one for one in wanted if isinstance(one, tuple)) if _differs(own, shared)]
        if again:
            _compile_missing(again, cache, jobs, timeout_s)
    made: list[Compiled | ScenarioRunnerError] = []
    for one in wanted:
        if isinstance(one, tuple):
            own, shared = one
            outcome = own.failure or own.module or shared.failure or shared.module
            assert outcome is not None
            made_by = own.made_by or shared.made_by
            made.append(Compiled(outcome, own.assembled.files[1:], made_by) if isinstance(outcome, bytes) else outcome)
        else:
            made.append(one)
    return made


def _differs(own: Job, shared: Job) -> bool:
    return shared.failure is not None and own is not shared and own.request != shared.request


def _check(request: CompileRequest) -> None:
    if request.target not in TARGETS:
        raise UsageError(f"unknown target {request.target!r} (expected one of {', '.join(TARGETS)})")
    if not request.entry or "\0" in request.entry or request.entry.startswith("-"):
        raise ScenarioError(
            f"{request.entry!r} is not an entry point name (expected an identifier)", code="SR-JSON-005"
        )


def _able(request: CompileRequest, text: bytes, found: list[Compiler]) -> list[Compiler]:
    """Those of ``found`` that can do what the request needs. Raises CompilerNotFoundError naming what is missing."""
    language = request.language
    if not found:
        from scenario_runner.system_packages import install_here

        advice = f"{install_here('glslang')}, or name one by --glslang or {GLSLANG_VARIABLE}"
        if language == "HLSL":
            from scenario_runner.shaders.compilers import dxc_library

            advice = dxc_library.install_line()
        raise CompilerNotFoundError(f"no {language} compiler was found", help=advice)
    able = found
    if language == "GLSL" and TENSORS in text:
        able = [one for one in able if one.knows_tensors]
        if not able:
            from scenario_runner.arm_glslc import install_line

            raise CompilerNotFoundError(
                f"the source uses GL_ARM_tensors, which {names(found)} does not know",
                help=f"install glslang 15.4 or newer, or Arm's glslc: {install_line()}",
            )
    if language == "GLSL" and request.entry != "main":
        knowing, able = able, [one for one in able if one.renames_entry]
        if not able:
            from scenario_runner.system_packages import install_here

            raise CompilerNotFoundError(
                f"a GLSL entry point called {request.entry!r} is not to be had from {names(knowing)}, only 'main'",
                help=f"leave 'entry' out, or {install_here('glslang')}",
            )
    return able


def _from_cache(job: Job, cache: ShaderCache | None) -> bool:
    if cache is None or job.assembled.opaque:
        return False
    for compiler in job.makers():
        job.module = cache.load(job.key(compiler))
        if job.module is not None:
            job.made_by = compiler
            return True
    return False


def _compile_missing(missing: list[Job], cache: ShaderCache | None, jobs: int, timeout_s: float) -> None:
    """Fill ``module`` or ``failure`` of each, with at most ``jobs`` processes at a time."""
    from scenario_runner import temporary
    from scenario_runner.shaders.alone import compile_alone
    from scenario_runner.shaders.batch import batches, compile_batch
    from scenario_runner.shaders.process import Processes

    processes = Processes()

    def together(batch: list[Job], folder: str) -> None:
        with contextlib.suppress(OSError):  # whoever compiles them alone says more
            compile_batch(batch, folder, processes, timeout_s)

    def alone(job: Job, folder: str) -> None:
        try:
            compile_alone(job, folder, processes, timeout_s)
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
        stored = [job for job in missing if job.module is not None and job.made_by and not job.assembled.opaque]
        for job in stored:
            assert job.module is not None
            assert job.made_by is not None
            cache.store(job.key(job.made_by), job.module)
        if stored:
            cache.evict()


def work_off(tasks: Sequence[Callable[[str], None]], prefix: str, count: int, processes: Processes) -> None:
    """Do the tasks in ``count`` threads, each with the name of a folder that it may make. Ends all ``processes`` when
    Ctrl-C comes."""
    import threading
    from collections import deque

    waiting = deque(enumerate(tasks))
    crashes: list[Exception] = []

    def work() -> None:
        while not processes.stopped:
            try:
                index, task = waiting.popleft()
            except IndexError:
                return
            try:
                task(f"{prefix}-{index}")
            except Exception as error:  # a defect of ours, to be seen by the caller's thread
                crashes.append(error)

    threads = [threading.Thread(target=work, daemon=True) for _ in range(min(count, len(tasks)))]
    try:
        for thread in threads:
            system_limits.start(thread)
        for thread in threads:
            while thread.is_alive():
                thread.join(0.2)  # with a limit: a signal to another thread does not wake this one
    except BaseException:
        processes.stop()
        for thread in threads:
            if thread.ident is not None:
                thread.join(5.0)
        raise
    if crashes:
        raise crashes[0]


def _labelled(error: ScenarioRunnerError, request: CompileRequest) -> ScenarioRunnerError:
    """The same error, its problems naming the shader."""
    if request.label:
        who = f"shader {request.label!r}: "
        error.problems = tuple(one._replace(message=who + one.message) for one in error.problems)
    return error


def _together(failures: list[ScenarioRunnerError]) -> ScenarioRunnerError:
    problems = tuple(dict.fromkeys(problem for error in failures for problem in error.problems))
    raised = error_of(problems)
    raised.__cause__ = failures[0].__cause__
    return raised
