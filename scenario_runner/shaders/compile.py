"""Compile many shaders at once: each different text once, none that the cache has, the others in parallel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from scenario_runner import system_limits
from scenario_runner.errors import ScenarioRunnerError, error_of
from scenario_runner.shaders.compilers import Compiler
from scenario_runner.shaders.discovery import Job, ShaderCache, able_compilers, check_request, find_compilers
from scenario_runner.shaders.source import CompileRequest, assemble, parse_build_options

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
    compiled = compile_each(
        requests, compiler=compiler, cache_dir=cache_dir, use_cache=use_cache, jobs=jobs, timeout_s=timeout_s
    )
    failures = [one for one in compiled if isinstance(one, ScenarioRunnerError)]
    if failures:
        raise _together(failures)
    return [one.module for one in compiled if isinstance(one, Compiled)]


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
    cache = ShaderCache(cache_dir) if use_cache else None
    by_language: dict[str, list[Compiler]] = {}
    unique: dict[bytes, Job] = {}
    pairs: list[tuple[Job, Job] | ScenarioRunnerError] = []
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
            pairs.append(_labelled(error, request))
            continue
        job = Job(request, options, assembled, able)
        pairs.append((job, unique.setdefault(job.key(able[0]), job)))
    missing = [job for job in unique.values() if not job.load(cache)]
    if missing:
        from scenario_runner.shaders.running import compile_missing

        jobs = jobs or system_limits.processors()
        compile_missing(missing, cache, jobs, timeout_s)
        # A failure speaks of one shader and its file; others with the same text have one that speaks of theirs.
        again = [own for own, shared in (one for one in pairs if isinstance(one, tuple)) if _differs(own, shared)]
        if again:
            compile_missing(again, cache, jobs, timeout_s)
    results: list[Compiled | ScenarioRunnerError] = []
    for one in pairs:
        if isinstance(one, tuple):
            own, shared = one
            outcome = own.failure or own.module or shared.failure or shared.module
            assert outcome is not None
            made_by = own.made_by or shared.made_by
            results.append(
                Compiled(outcome, own.assembled.files[1:], made_by) if isinstance(outcome, bytes) else outcome
            )
        else:
            results.append(one)
    return results


def _differs(own: Job, shared: Job) -> bool:
    return shared.failure is not None and own is not shared and own.request != shared.request


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
