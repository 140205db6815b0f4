"""One shader to compile: the text, the compilers that may compile it, the key of its module in the cache."""

from __future__ import annotations

from scenario_runner.arm_glslc import install_line
from scenario_runner.errors import CompilerNotFoundError, ScenarioError, ScenarioRunnerError, UsageError
from scenario_runner.shaders.compilers import GLSLANG_VARIABLE, Compiler, dxc_install_line
from scenario_runner.shaders.discovery import ShaderCache, names
from scenario_runner.shaders.request import TARGETS, BuildOptions, CompileRequest
from scenario_runner.shaders.source import Assembled
from scenario_runner.system_packages import install_here

TENSORS = b"GL_ARM_tensors"
_FORMAT = 1  # part of every key; raise it when the same key would give another module


class Job:
    """One shader. ``compilers`` can compile it, the preferred one first; ``batch`` is the one of them that tries it
    first, together with other shaders. Afterwards ``module`` is the SPIR-V that ``made_by`` wrote, or ``failure`` the
    error.
    """

    __slots__ = ("assembled", "batch", "compilers", "failure", "made_by", "module", "options", "request")

    def __init__(
        self,
        request: CompileRequest,
        options: BuildOptions,
        assembled: Assembled,
        compilers: list[Compiler],
    ) -> None:
        self.request = request
        self.options = options
        self.assembled = assembled
        self.compilers = compilers
        self.batch = next(
            (one for one in compilers if one.batches(request, options, assembled, preferred=one is compilers[0])), None
        )
        self.module: bytes | None = None
        self.made_by: Compiler | None = None
        self.failure: ScenarioRunnerError | None = None

    def target(self, compiler: Compiler) -> str:
        """The Vulkan version that ``compiler`` is told to compile for."""
        return compiler.target_for(self.request.language, self.request.target, TENSORS in self.assembled.text)

    def key(self, compiler: Compiler) -> bytes:
        """Everything that the module comes from when ``compiler`` makes it."""
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

    def load(self, cache: ShaderCache | None) -> bool:
        """Take the module from the cache: that of the batch's compiler first. Return whether there is one."""
        if cache is None or self.assembled.opaque:
            return False
        for compiler in (self.batch, *self.compilers):
            self.module = None if compiler is None else cache.load(self.key(compiler))
            if self.module is not None:
                self.made_by = compiler
                return True
        return False


def check_request(request: CompileRequest) -> None:
    """Raise UsageError or ScenarioError for a target or an entry point that no compiler can be given."""
    if request.target not in TARGETS:
        raise UsageError(f"unknown target {request.target!r} (expected one of {', '.join(TARGETS)})")
    if not request.entry or "\0" in request.entry or request.entry.startswith("-"):
        raise ScenarioError(
            f"{request.entry!r} is not an entry point name (expected an identifier)", code="SR-JSON-005"
        )


def able_compilers(request: CompileRequest, text: bytes, found: list[Compiler]) -> list[Compiler]:
    """Those of ``found`` that can do what the request needs. Raises CompilerNotFoundError naming what is missing."""
    language = request.language
    if not found:
        advice = f"{install_here('glslang')}, or name one by --glslang or {GLSLANG_VARIABLE}"
        if language == "HLSL":
            advice = dxc_install_line()
        raise CompilerNotFoundError(f"no {language} compiler was found", help=advice)
    able = found
    if language == "GLSL" and TENSORS in text:
        able = [one for one in able if one.knows_tensors]
        if not able:
            raise CompilerNotFoundError(
                f"the source uses GL_ARM_tensors, which {names(found)} does not know",
                help=f"install glslang 15.4 or newer, or Arm's glslc: {install_line()}",
            )
    if language == "GLSL" and request.entry != "main":
        knowing, able = able, [one for one in able if one.renames_entry]
        if not able:
            raise CompilerNotFoundError(
                f"a GLSL entry point called {request.entry!r} is not to be had from {names(knowing)}, only 'main'",
                help=f"leave 'entry' out, or {install_here('glslang')}",
            )
    return able
