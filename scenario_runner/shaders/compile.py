"""Compiles many shaders at once: equal texts once, cached modules not at all, the others in parallel.

A process compiles many shaders if the compiler supports batches, else a single shader. If a shader in a batch does not
compile, the preferred compiler compiles it alone, and its messages become a problem (see
`shaders.compilers.compile_jobs`).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

from scenario_runner.errors import ScenarioRunnerError, error_of
from scenario_runner.files.cache_folder import ContentCache
from scenario_runner.files.input import file_identity
from scenario_runner.files.sandbox import is_confined
from scenario_runner.shaders.compilers.search import Compiled, Job, able_compilers, check_request, find_compilers
from scenario_runner.shaders.compilers.table import Compiler
from scenario_runner.shaders.source import CompileRequest, assemble, options_of

COMPILE_TIMEOUT_S = 60.0


_MOST_KNOWN = 64
_known: dict[Hashable, Compiled] = {}
"""Modules by `_key_of_file`: the scenarios of a suite share shaders."""


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

    ``compiler`` names the GLSL compiler (see `find_compilers`). ``jobs`` limits the processes (default: the number of
    cores), ``timeout_s`` the seconds of each process.

    One error of the first problem's class reports all failures. CompileError has a problem for each rejected shader.
    CompilerNotFoundError: no compiler supports a shader. FileError: a source cannot be read. ScenarioError:
    build_options are wrong. KeyboardInterrupt ends all processes and is raised again.
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
    prepared: list[Job | Compiled | ScenarioRunnerError] = []
    same: dict[bytes, list[Job]] = {}
    keys: dict[Hashable, Job] = {}
    for request in requests:
        try:
            if request.language not in by_language:
                by_language[request.language] = find_compilers(
                    compiler, language=request.language, cache_dir=cache_dir, use_cache=use_cache
                )
            compilers = by_language[request.language]
            key = _key_of_file(request, cache_dir, compilers) if use_cache else None
            if key in _known:
                prepared.append(_known[key])
                continue
            options = options_of(request)
            request = request._replace(target=options.target or request.target)
            check_request(request)
            source = assemble(request, options)
            job = Job(source, able_compilers(source, compilers))
            if key is not None and source.follows_from_file:
                keys[key] = job
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
    _compile_missing([first for first, *_ in same.values()], cache, jobs, timeout_s)
    for first, *others in same.values():
        for job in others:
            if isinstance(first.result, Compiled):
                job.finish(first.result.module, first.result.compiler)
            elif job.source.request == first.source.request:
                job.result = first.result  # a failure names one shader and its file
    _compile_missing([job for _, *others in same.values() for job in others], cache, jobs, timeout_s)
    if len(_known) > _MOST_KNOWN:
        _known.clear()
    _known.update((key, job.result) for key, job in keys.items() if isinstance(job.result, Compiled))
    results = (job.result if isinstance(job, Job) else job for job in prepared)
    return [result for result in results if result is not None]


def _key_of_file(request: CompileRequest, cache_dir: str | None, compilers: Iterable[Compiler]) -> Hashable:
    """Return a key for a file's bytes and all settings, without the path. None if the file may change unnoticed."""
    if request.path is None or request.source is not None or is_confined():
        return None
    identity = file_identity(request.path)
    if identity is None or not identity.settled:
        return None
    return identity, request._replace(path=None, base_dir="", label=""), cache_dir, *compilers


def _compile_missing(jobs: Iterable[Job], cache: ContentCache | None, processes: int | None, timeout_s: float) -> None:
    """Compile the jobs without a result."""
    missing = [job for job in jobs if job.result is None]
    if missing:
        from scenario_runner.shaders.compilers.compile_jobs import compile_jobs

        compile_jobs(missing, cache, processes, timeout_s)
