"""glslangValidator: GLSL, and HLSL that is not too modern."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from scenario_runner.shaders.compilers.compiler import OUTPUT_NAME, SOURCE_NAME, Compiler, numbers

if TYPE_CHECKING:
    from scenario_runner.shaders.options import BuildOptions
    from scenario_runner.shaders.request import CompileRequest

TENSORS_SINCE = (15, 4)
_STAGE = {"compute": "comp", "vertex": "vert", "fragment": "frag"}


class Glslang(Compiler):
    """Khronos' glslangValidator, in newer packages called glslang."""

    __slots__ = ()

    flavour = "glslang"
    languages = ("GLSL", "HLSL")
    programs = ("glslangValidator", "glslang")
    renames_entry = True
    hlsl_is_dated = True
    # Versions before 14 give no columns. Not asked so at once: it may crash when it goes on behind an error.
    asking_again = (("-C", "--error-column"), ("-C",))

    @classmethod
    def version_in(cls, answer: str) -> str | None:
        """The version behind "Glslang Version:"."""
        found = re.search(r"^Glslang Version: (?:\d+:)?(\S{1,80})", answer, re.M)
        return found[1] if found else None

    @property
    def knows_tensors(self) -> bool:
        """Whether GL_ARM_tensors is known; derived from the version."""
        return numbers(self.version)[:2] >= TENSORS_SINCE

    def target_for(self, language: str, asked: str, tensors: bool) -> str:
        """For HLSL an old one: its storage buffers are decorated BufferBlock, which SPIR-V above 1.3 does not have."""
        return min(asked, "vulkan1.1") if language == "HLSL" else super().target_for(language, asked, tensors)

    def arguments(self, request: CompileRequest, options: BuildOptions, target: str) -> list[str]:
        """One optimiser for every level; without it nothing is optimised."""
        extra = ["-g"] if options.debug else []
        extra += [] if options.optimise in ("", "0") else ["-Os"]
        if request.language == "HLSL":
            extra += ["-D", "--hlsl-enable-16bit-types", "-e", request.entry]
        elif request.entry != "main":
            extra += ["--source-entrypoint", "main", "-e", request.entry]
        stage = ["-S", _STAGE[request.stage], "--target-env", target]
        return [self.path, "-V", *stage, *extra, "-o", OUTPUT_NAME, SOURCE_NAME]
