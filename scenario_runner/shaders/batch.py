"""Many shaders by few processes: Google's glslc takes any number of files, and parses GLSL's built-ins only once.

That parsing is nearly all of what a small shader costs: a hundred of them take a process each 8 s, one process 0.17 s.

A batch only ever saves time. It takes the shaders whose module is the same whether glslc or glslangValidator makes it,
and from it only what came out whole, without an error and without a warning. Everything else is compiled alone by the
preferred compiler afterwards, whose words the user reads.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from scenario_runner.shaders.discovery import Compiler
from scenario_runner.shaders.job import Job
from scenario_runner.shaders.options import BuildOptions
from scenario_runner.shaders.request import CompileRequest
from scenario_runner.shaders.source import Assembled

if TYPE_CHECKING:
    from scenario_runner.shaders.process import Processes

BATCH_TIMEOUT_S = 10.0  # a shader that needs longer is compiled alone, with a time limit of its own
MAX_SHADERS = 1000  # in one process: a command line has its bounds
_FUNCTION_END = b"\x38\x00\x01\x00"  # SPIR-V's OpFunctionEnd, with which every module of a shader ends
# What the two see differently: glslc has smaller limits behind GLSL's constants of these names, knows __FILE__
# without being asked, and counts lines in another way in old versions of GLSL.
_DIFFERS = (b"gl_Max", b"__FILE__", b"__LINE__")


def batch_compiler(
    request: CompileRequest, options: BuildOptions, assembled: Assembled, able: Iterable[Compiler]
) -> Compiler | None:
    """Which of the compilers ``able`` is to try the shader in a batch; None when it is to be compiled alone.

    With debug information a module holds its file's name, and optimised by glslc it has lost the names in it: such
    shaders are compiled alone.
    """
    if request.language != "GLSL" or request.entry != "main" or assembled.opaque:
        return None
    if options.debug or options.optimise not in ("", "0"):
        return None
    if any(word in assembled.text for word in _DIFFERS) or _names_files(assembled.text):
        return None
    return next((one for one in able if one.flavour == "shaderc"), None)


def _names_files(text: bytes) -> bool:
    """Whether a ``#line`` directive names a file, which glslc allows without being asked."""
    if b'"' not in text:
        return False
    import re

    return re.search(rb'^[ \t]*#[ \t]*line\b[^\n]*"', text, re.M) is not None


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
    """Fill ``module`` and ``made_by`` of those that compile without a word. ``folder`` must not exist yet.

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
    """One process. The index of the last file that it wrote where it did not come to its end by itself, else None."""
    from scenario_runner.shaders.command import batch_arguments
    from scenario_runner.shaders.module import is_module, read_module
    from scenario_runner.shaders.process import make_runnable, run_program

    compiler = jobs[0].batch
    assert compiler is not None
    os.mkdir(folder)
    for index, job in enumerate(jobs):
        with open(os.path.join(folder, str(index)), "wb") as file:
            file.write(job.assembled.text)
    try:
        make_runnable(compiler.path)
        argv = batch_arguments(compiler, jobs[0].target(compiler), [job.request.stage for job in jobs])
        done = run_program(argv, folder=folder, timeout_s=timeout_s, processes=processes)
    except (OSError, ValueError):
        return None  # whoever compiles them alone says more
    written = [index for index in range(len(jobs)) if os.path.exists(os.path.join(folder, f"{index}.spv"))]
    # It writes one file after the other: where it was ended, only the last one can be a part of a module.
    for index in written[:-1] if done.failure else written:
        module = read_module(os.path.join(folder, f"{index}.spv"))
        if module.endswith(_FUNCTION_END) and is_module(module):
            jobs[index].module, jobs[index].made_by = module, compiler
    return written[-1] if done.failure and written else None
