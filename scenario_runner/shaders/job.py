"""One shader to make: what the compiler gets, who may compile it, and what came of it."""

from __future__ import annotations

from scenario_runner.errors import ScenarioRunnerError
from scenario_runner.shaders.compilers.compiler import Compiler
from scenario_runner.shaders.options import BuildOptions
from scenario_runner.shaders.request import CompileRequest
from scenario_runner.shaders.source import Assembled

TENSORS = b"GL_ARM_tensors"
_FORMAT = 1  # part of every key; raise it when the same key would give another module


class Job:
    """``compilers`` may compile it, the preferred one first; ``batch`` is the one of them that is to try it before all
    others, together with other shaders. Afterwards ``module`` is what ``made_by`` made, or ``failure`` says why not.
    """

    __slots__ = ("assembled", "batch", "compilers", "failure", "made_by", "module", "options", "request")

    def __init__(
        self,
        request: CompileRequest,
        options: BuildOptions,
        assembled: Assembled,
        compilers: list[Compiler],
        batch: Compiler | None = None,
    ) -> None:
        self.request = request
        self.options = options
        self.assembled = assembled
        self.compilers = compilers
        self.batch = batch
        self.module: bytes | None = None
        self.made_by: Compiler | None = None
        self.failure: ScenarioRunnerError | None = None

    def makers(self) -> list[Compiler]:
        """Whose module is taken from the cache, in this order."""
        if self.batch is None:
            return self.compilers
        return [self.batch, *(one for one in self.compilers if one is not self.batch)]

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
