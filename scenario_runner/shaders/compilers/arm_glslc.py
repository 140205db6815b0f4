"""Arm's glslc, of its scenario runner: GLSL with tensors."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from scenario_runner.shaders.compilers.compiler import OUTPUT_NAME, SOURCE_NAME, Compiler

if TYPE_CHECKING:
    from scenario_runner.shaders.options import BuildOptions
    from scenario_runner.shaders.request import CompileRequest


class ArmGlslc(Compiler):
    """GLSL of any kind, but always SPIR-V 1.6 and an entry point called main."""

    __slots__ = ()

    flavour = "arm-glslc"
    languages = ("GLSL",)

    @classmethod
    def candidates(cls) -> list[str]:
        """In the folders of its own that it is installed into; Google's program on PATH has the same name."""
        from scenario_runner import arm_glslc

        return arm_glslc.programs()

    @classmethod
    def version_in(cls, answer: str) -> str | None:
        """Its own version and that of the glslang in it."""
        found = re.search(r'"version": "([^"\s]{1,80})"', answer)
        inside = re.search(r'"glslang=([^"\s]{1,80})"', answer)
        return f"{found[1]} (glslang {inside[1]})" if found and inside else None

    @property
    def knows_tensors(self) -> bool:
        """Always."""
        return True

    def target_for(self, language: str, asked: str, tensors: bool) -> str:
        """It has no choice."""
        return "vulkan1.3"

    def arguments(self, request: CompileRequest, options: BuildOptions, target: str) -> list[str]:
        """Files and stage are all that it takes."""
        return [self.path, "--input", SOURCE_NAME, "--output", OUTPUT_NAME, "--stage", request.stage]
