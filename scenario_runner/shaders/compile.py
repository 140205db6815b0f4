"""Compile many shaders at once: each different one once, what the cache has not at all, the rest in parallel."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from scenario_runner.errors import (
    CompileError,
    CompilerNotFoundError,
    FileError,
    Problem,
    ScenarioError,
    ScenarioRunnerError,
    UsageError,
)
from scenario_runner.shaders.cache import ShaderCache
from scenario_runner.shaders.discovery import (
    DXC_VARIABLE,
    GLSLANG_VARIABLE,
    Compiler,
    arm_glslc_command,
    find_compilers,
)
from scenario_runner.shaders.options import BuildOptions, parse_build_options
from scenario_runner.shaders.request import TARGETS, CompileRequest
from scenario_runner.shaders.source import Assembled, assemble

if TYPE_CHECKING:
    from scenario_runner.shaders.process import Processes

COMPILE_TIMEOUT_S = 60.0
_FORMAT = 1  # part of every key; raise it when the same key would give another module
_SPIRV_MAGIC = b"\x03\x02\x23\x07"
_TENSORS = b"GL_ARM_tensors"
_UNSUPPORTED = "extension not supported"
_INSTALL = "install glslang (Debian and Ubuntu: apt install glslang-tools)"


class _Job:
    """A shader to make: what the compiler gets, and who may compile it, the preferred one first."""

    __slots__ = ("assembled", "compilers", "failure", "made_by", "module", "options", "request")

    def __init__(
        self, request: CompileRequest, options: BuildOptions, assembled: Assembled, compilers: list[Compiler]
    ) -> None:
        self.request = request
        self.options = options
        self.assembled = assembled
        self.compilers = compilers
        self.module: bytes | None = None
        self.made_by: Compiler | None = None
        self.failure: ScenarioRunnerError | None = None

    def target(self, compiler: Compiler) -> str:
        return compiler.target_for(self.request.language, self.request.target, _TENSORS in self.assembled.text)

    def key(self, compiler: Compiler) -> bytes:
        request, text = self.request, self.assembled.text
        called = (
            request.language,
            request.stage,
            request.entry,
            self.target(compiler),
            self.options.optimise,
            self.options.debug,
        )
        return repr((_FORMAT, compiler.identity, called)).encode("utf-8", "backslashreplace") + b"\n" + text


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
    FileError for sources that cannot be read, ScenarioError for build_options; when they differ in kind, CompileError
    holds them all. KeyboardInterrupt passes through, after every process is dead.
    """
    cache = ShaderCache(cache_dir) if use_cache else None
    found: dict[str, list[Compiler]] = {}
    unique: dict[tuple[object, ...], _Job] = {}
    order: list[_Job | None] = []
    failures: list[ScenarioRunnerError] = []
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
            failures.append(_labelled(error, request))
            order.append(None)
            continue
        job = _Job(request, options, assembled, able)
        order.append(unique.setdefault((job.key(able[0]),), job))
    missing = [job for job in unique.values() if not _from_cache(job, cache)]
    if missing:
        _compile_missing(missing, cache, jobs or os.cpu_count() or 1, timeout_s)
    failures += [job.failure for job in unique.values() if job.failure]
    if failures:
        raise _together(failures)
    return [job.module for job in order if job is not None and job.module is not None]


def _check(request: CompileRequest) -> None:
    if request.target not in TARGETS:
        raise UsageError(f"unknown target {request.target!r} (expected one of {', '.join(TARGETS)})")
    if not request.entry or "\0" in request.entry or request.entry.startswith("-"):
        raise ScenarioError(f"{request.entry!r} is no entry point name (expected an identifier)")


def _able(request: CompileRequest, text: bytes, found: list[Compiler]) -> list[Compiler]:
    """Those of ``found`` that can do what the request needs. Raises CompilerNotFoundError naming what is missing."""
    language = request.language
    if not found:
        advice = f"{_INSTALL}, or name one by --glslang or {GLSLANG_VARIABLE}"
        if language == "HLSL":
            advice = f"put dxc on PATH or name it by {DXC_VARIABLE}; or {_INSTALL}"
        raise CompilerNotFoundError(f"no {language} compiler was found", help=advice)
    able = found
    if language == "GLSL" and _TENSORS in text:
        able = [one for one in able if one.knows_tensors]
        if not able:
            raise CompilerNotFoundError(
                f"the source uses GL_ARM_tensors, which {_names(found)} does not know",
                help=f"install glslang 15.4 or newer, or Arm's glslc: {arm_glslc_command()}",
            )
    if language == "GLSL" and request.entry != "main":
        knowing, able = able, [one for one in able if one.renames_entry]
        if not able:
            raise CompilerNotFoundError(
                f"a GLSL entry point called {request.entry!r} is not to be had from {_names(knowing)}, only 'main'",
                help=f"leave 'entry' out, or {_INSTALL}",
            )
    return able


def _names(compilers: Iterable[Compiler]) -> str:
    return " or ".join(f"{one.path} ({one.version})" for one in compilers)


def _from_cache(job: _Job, cache: ShaderCache | None) -> bool:
    if cache is None or job.assembled.opaque:
        return False
    for compiler in job.compilers:
        job.module = cache.load(job.key(compiler))
        if job.module is not None:
            return True
    return False


def _compile_missing(missing: list[_Job], cache: ShaderCache | None, jobs: int, timeout_s: float) -> None:
    """Fill ``module`` or ``failure`` of each, at most ``jobs`` at a time."""
    import tempfile
    import threading
    from collections import deque

    from scenario_runner.shaders.process import Processes

    processes = Processes()
    waiting = deque(enumerate(missing))
    crashes: list[Exception] = []

    def work(folder: str) -> None:
        while not processes.stopped:
            try:
                index, job = waiting.popleft()
            except IndexError:
                return
            try:
                _compile(job, os.path.join(folder, str(index)), processes, timeout_s)
            except ScenarioRunnerError as error:
                job.failure = error
            except OSError as error:
                job.failure = FileError(f"cannot compile shaders in {folder!r}: {error}")
            except Exception as error:  # a defect of ours, to be seen by the caller's thread
                crashes.append(error)

    with tempfile.TemporaryDirectory(prefix="scenario-runner-", ignore_cleanup_errors=True) as folder:
        threads = [threading.Thread(target=work, args=(folder,), daemon=True) for _ in range(min(jobs, len(missing)))]
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        finally:
            processes.stop()  # nothing runs any more, unless Ctrl-C came
            for thread in threads:
                if thread.ident is not None:
                    thread.join(5.0)
    if crashes:
        raise crashes[0]
    if cache is not None:
        stored = [job for job in missing if job.module is not None and job.made_by and not job.assembled.opaque]
        for job in stored:
            assert job.module is not None
            assert job.made_by is not None
            cache.store(job.key(job.made_by), job.module)
        if stored:
            cache.evict()


def _compile(job: _Job, folder: str, processes: Processes, timeout_s: float) -> None:
    """Try the compilers in turn: the next one only where the one before does not know an extension."""
    from scenario_runner.shaders.command import SOURCE_NAME

    os.mkdir(folder)
    with open(os.path.join(folder, SOURCE_NAME), "wb") as file:
        file.write(job.assembled.text)
    first: CompileError | None = None
    for compiler in job.compilers:
        try:
            job.module, said = _compile_with(compiler, job, folder, processes, timeout_s)
        except _NextCompilerError as error:
            first = first or error.refusal
            continue
        job.made_by = compiler
        if "WARNING:" in said or "warning:" in said:
            import logging

            logging.getLogger(__name__).warning("%s: the compiler warns: %s", job.request.place, said.strip()[:2000])
        return
    assert first is not None
    raise first


class _NextCompilerError(Exception):
    """A refusal that another compiler may not share."""

    def __init__(self, refusal: CompileError) -> None:
        super().__init__(str(refusal))
        self.refusal = refusal


def _compile_with(
    compiler: Compiler, job: _Job, folder: str, processes: Processes, timeout_s: float
) -> tuple[bytes, str]:
    from scenario_runner.shaders.command import OUTPUT_NAME, arguments
    from scenario_runner.shaders.diagnostics import compile_problem
    from scenario_runner.shaders.process import MAX_FILE_BYTES, make_runnable, run_program

    request = job.request
    place, who = request.place, f"shader {request.label!r}: " if request.label else ""
    try:
        make_runnable(compiler.path)
        argv = arguments(compiler, request, job.options, job.target(compiler))
        done = run_program(argv, folder=folder, timeout_s=timeout_s, processes=processes)
    except (OSError, ValueError) as error:
        reason = (getattr(error, "strerror", None) or str(error)).lower()
        raise CompilerNotFoundError(f"the shader compiler {compiler.path!r} cannot be started: {reason}") from error
    if done.failure:
        text = f"{who}the shader compiler {compiler.path!r} {done.failure}"
        raise CompileError(
            Problem(text, place, help="the shader may be too much for it, or another compiler may do better")
        )
    output = os.path.join(folder, OUTPUT_NAME)
    if done.code != 0:
        problem = compile_problem(request, job.assembled, done.output)
        if _UNSUPPORTED in done.output:
            advice = f"{_names([compiler])} lacks the extension; a newer glslang, or Arm's glslc, may have it: "
            problem = Problem(
                problem.message, problem.path, problem.line, problem.column, help=advice + arm_glslc_command()
            )
            raise _NextCompilerError(CompileError(problem))
        raise CompileError(problem)
    try:
        with open(output, "rb") as file:
            module = file.read(MAX_FILE_BYTES + 1)
    except OSError:
        raise CompileError(Problem(f"{who}the shader compiler {compiler.path!r} wrote no module", place)) from None
    if len(module) < 20 or len(module) % 4 or len(module) > MAX_FILE_BYTES or module[:4] != _SPIRV_MAGIC:
        text = f"{who}the shader compiler {compiler.path!r} wrote {len(module)} bytes that are no SPIR-V module"
        raise CompileError(Problem(text, place))
    return module, done.output


def _labelled(error: ScenarioRunnerError, request: CompileRequest) -> ScenarioRunnerError:
    """The same error, its problems naming the shader."""
    if request.label:
        who = f"shader {request.label!r}: "
        error.problems = tuple(
            Problem(who + one.message, one.path, one.line, one.column, one.pointer, one.help) for one in error.problems
        )
    return error


def _together(failures: list[ScenarioRunnerError]) -> ScenarioRunnerError:
    problems = tuple(dict.fromkeys(problem for error in failures for problem in error.problems))
    kinds = {type(error) for error in failures}
    raised = (kinds.pop() if len(kinds) == 1 else CompileError)(problems)
    raised.__cause__ = failures[0].__cause__
    return raised
