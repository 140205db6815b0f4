"""Many shaders by few processes, for compilers that take any number of files.

What did not come out whole is compiled alone by the preferred compiler afterwards, whose words the user reads. Where
another compiler than that makes a batch, it takes the shaders whose module is the same from either.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from scenario_runner.shaders.compilers.compiler import Compiler
from scenario_runner.shaders.job import Job
from scenario_runner.shaders.options import BuildOptions
from scenario_runner.shaders.request import CompileRequest
from scenario_runner.shaders.source import Assembled

if TYPE_CHECKING:
    from scenario_runner.shaders.process import Processes

BATCH_TIMEOUT_S = 10.0  # a shader that needs longer is compiled alone, with a time limit of its own
MAX_SHADERS = 1000  # in one process: a command line has its bounds
MAX_LOG = 1 << 20
_FUNCTION_END = b"\x38\x00\x01\x00"  # SPIR-V's OpFunctionEnd, with which every module of a shader ends


def batch_compiler(
    request: CompileRequest, options: BuildOptions, assembled: Assembled, able: Sequence[Compiler]
) -> Compiler | None:
    """Which of the compilers ``able`` is to try the shader in a batch; None when it is to be compiled alone."""
    for one in able:
        if one.batches(request, options, assembled, preferred=one is able[0]):
            return one
    return None


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

    When the compiler crashes or hangs, the rest is tried again without the shader that it was at, as long as anything
    came before that one.
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
    """One process. The index of the last file that it wrote where it did not come to its end by itself, -1 where it
    ended at the first shader; else, and where that is not known, None."""
    from scenario_runner.shaders.process import make_runnable, run_program

    compiler = jobs[0].batch
    assert compiler is not None
    os.mkdir(folder)
    for index, job in enumerate(jobs):
        with open(os.path.join(folder, str(index)), "wb") as file:
            file.write(job.assembled.text)
    try:
        argv = compiler.batch_arguments(jobs[0].target(compiler), [(job.request, job.options) for job in jobs])
        make_runnable(argv[0])
        done = run_program(argv, folder=folder, timeout_s=timeout_s, processes=processes)
    except (OSError, ValueError):
        return None  # whoever compiles them alone says more
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
    """Take over what the files that begin with ``path`` say of a shader."""
    from scenario_runner.shaders.module import is_module, read_module

    said = None
    if os.path.exists(f"{path}.log"):
        with open(f"{path}.log", encoding="utf-8", errors="replace") as file:
            said = file.read(MAX_LOG)
    if os.path.exists(f"{path}.spv"):
        module = read_module(f"{path}.spv")
        if module.endswith(_FUNCTION_END) and is_module(module):
            job.module, job.made_by = module, compiler
    elif said is not None:
        from scenario_runner.errors import CompileError
        from scenario_runner.shaders.diagnostics import compile_problem

        job.failure = CompileError(compile_problem(job.request, job.assembled, said, compiler.style))
    if said is not None and job.module is not None:
        from scenario_runner.shaders.diagnostics import log_warnings

        log_warnings(job.request, job.assembled, said, compiler.style)
