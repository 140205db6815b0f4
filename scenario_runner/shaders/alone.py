"""One shader by one process: where diagnostics come from."""

from __future__ import annotations

import os

from scenario_runner.diagnostics import Diagnostic
from scenario_runner.errors import CompileError, CompilerNotFoundError
from scenario_runner.shaders.compilers.compiler import OUTPUT_NAME, SOURCE_NAME, Compiler
from scenario_runner.shaders.diagnostics import compile_problem, log_warnings
from scenario_runner.shaders.discovery import names
from scenario_runner.shaders.job import Job
from scenario_runner.shaders.module import is_module, read_module
from scenario_runner.shaders.process import Processes, make_runnable, run_program

_UNSUPPORTED = "extension not supported"


def compile_alone(job: Job, folder: str, processes: Processes, timeout_s: float) -> None:
    """Fill ``module`` and ``made_by``, or raise CompileError or CompilerNotFoundError. The compilers are tried in turn:
    the next one only where the one before does not know an extension. ``folder`` must not exist yet."""
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
        log_warnings(job.request, job.assembled, said, compiler.style)
        return
    assert first is not None
    raise first


class _NextCompilerError(Exception):
    """A refusal that another compiler may not share."""

    def __init__(self, refusal: CompileError) -> None:
        super().__init__(str(refusal))
        self.refusal = refusal


def _compile_with(
    compiler: Compiler, job: Job, folder: str, processes: Processes, timeout_s: float
) -> tuple[bytes, str]:
    """The module, and what the compiler said."""
    request = job.request
    place, who = request.place, f"shader {request.label!r}: " if request.label else ""
    try:
        argv = compiler.arguments(request, job.options, job.target(compiler))
        make_runnable(argv[0])
        done = run_program(argv, folder=folder, timeout_s=timeout_s, processes=processes)
    except (OSError, ValueError) as error:
        reason = (getattr(error, "strerror", None) or str(error)).lower()
        raise CompilerNotFoundError(f"the shader compiler {compiler.path!r} cannot be started: {reason}") from error
    if done.failure:
        text = f"{who}the shader compiler {compiler.path!r} {done.failure}"
        raise CompileError(
            Diagnostic(
                "SR-SHADER-010",
                "error",
                None,
                text,
                "the shader may be too much for it, or another compiler may do better",
                path=place,
            )
        )
    output = os.path.join(folder, OUTPUT_NAME)
    if done.code != 0:
        said = _all_errors(compiler, argv, done.output, folder, processes, timeout_s)
        problem = compile_problem(request, job.assembled, said, compiler.style)
        if _UNSUPPORTED in done.output:
            from scenario_runner.arm_glslc import install_line

            advice = f"{names([compiler])} lacks the extension; a newer glslang, or Arm's glslc, may have it: "
            advice += install_line()
            problem = problem._replace(help=advice)
            raise _NextCompilerError(CompileError(problem))
        if request.language == "HLSL" and compiler.hlsl_is_dated:
            from scenario_runner.shaders.compilers.dxc_library import install_line

            advice = f"{names([compiler])} does not know HLSL 2021; dxc may compile it: {install_line()}"
            raise CompilerNotFoundError(problem._replace(code=CompilerNotFoundError.code, help=advice))
        raise CompileError(problem)
    try:
        module = read_module(output)
    except OSError:
        raise CompileError(
            Diagnostic(
                "SR-SHADER-010",
                "error",
                None,
                f"{who}the shader compiler {compiler.path!r} wrote no module",
                path=place,
            )
        ) from None
    if not is_module(module):
        text = f"{who}the shader compiler {compiler.path!r} wrote {len(module)} bytes that are not a SPIR-V module"
        raise CompileError(Diagnostic("SR-SHADER-010", "error", None, text, path=place))
    return module, done.output


def _all_errors(
    compiler: Compiler, argv: list[str], said: str, folder: str, processes: Processes, timeout_s: float
) -> str:
    """What a compiler says when it is asked to go on behind the first error; ``said`` where that brings no more."""
    first = next((line.split(": ", 2)[-1] for line in said.splitlines() if line.startswith("ERROR: ")), None)
    for more in compiler.asking_again:
        try:
            done = run_program([argv[0], *more, *argv[1:]], folder=folder, timeout_s=timeout_s, processes=processes)
        except (OSError, ValueError):
            break
        if not done.failure and first is not None and first in done.output:
            return done.output
    return said
