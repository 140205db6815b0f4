"""Google's glslc, which takes any number of files and parses GLSL's built-ins only once.

That parsing is nearly all of what a small shader costs: a hundred of them take a process each 8 s, one process 0.17 s.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from scenario_runner.shaders.compilers.compiler import OUTPUT_NAME, SOURCE_NAME, Compiler, numbers
from scenario_runner.shaders.compilers.glslang import TENSORS_SINCE
from scenario_runner.shaders.compilers.messages import CLANG_STYLE

if TYPE_CHECKING:
    from scenario_runner.shaders.options import BuildOptions
    from scenario_runner.shaders.request import CompileRequest
    from scenario_runner.shaders.source import Assembled

# What glslangValidator sees differently: glslc has smaller limits behind GLSL's constants of these names, knows
# __FILE__ without being asked, and counts lines in another way in old versions of GLSL.
_DIFFERS = (b"gl_Max", b"__FILE__", b"__LINE__")


class Shaderc(Compiler):
    """Google's glslc."""

    __slots__ = ()

    flavour = "shaderc"
    languages = ("GLSL",)
    programs = ("glslc",)
    style = CLANG_STYLE
    many_at_once = True

    @classmethod
    def version_in(cls, answer: str) -> str | None:
        """All that it says: the versions of its parts."""
        return " ".join(answer.split())[:200] if re.search(r"^shaderc ", answer, re.M) else None

    @property
    def knows_tensors(self) -> bool:
        """Whether GL_ARM_tensors is known; derived from the version of the glslang in it."""
        found = re.search(r"glslang (?:\d+:)?(\d+\.\d+)", self.version)
        return found is not None and numbers(found[1]) >= TENSORS_SINCE

    def arguments(self, request: CompileRequest, options: BuildOptions, target: str) -> list[str]:
        """Options like those of clang."""
        extra = ["-g"] if options.debug else []
        extra += [] if options.optimise in ("", "0") else ["-Os" if options.optimise == "s" else "-O"]
        called = [f"-fshader-stage={request.stage}", f"--target-env={target}", *extra]
        return [self.path, *called, "-o", OUTPUT_NAME, SOURCE_NAME]

    def batches(self, request: CompileRequest, options: BuildOptions, assembled: Assembled, *, preferred: bool) -> bool:
        """Whether the module is the same whether this or glslangValidator makes it.

        With debug information a module holds its file's name, and optimised by glslc it has lost the names in it.
        """
        if request.language != "GLSL" or request.entry != "main" or assembled.opaque:
            return False
        if options.debug or options.optimise not in ("", "0"):
            return False
        return not any(word in assembled.text for word in _DIFFERS) and not _names_files(assembled.text)

    def batch_arguments(self, target: str, shaders: Sequence[tuple[CompileRequest, BuildOptions]]) -> list[str]:
        """A warning counts as an error: the preferred compiler then says its own words about that shader."""
        argv = [self.path, "-c", "-Werror", f"--target-env={target}", "-x", "glsl"]
        before = ""
        for index, (request, _) in enumerate(shaders):
            if request.stage != before:
                argv.append(f"-fshader-stage={request.stage}")
                before = request.stage
            argv.append(str(index))
        return argv


def _names_files(text: bytes) -> bool:
    """Whether a ``#line`` directive names a file, which glslc allows without being asked."""
    return b'"' in text and re.search(rb'^[ \t]*#[ \t]*line\b[^\n]*"', text, re.M) is not None
