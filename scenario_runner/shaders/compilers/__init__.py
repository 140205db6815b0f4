"""The shader compilers that are known: a class each. Adding one is its class and a line in this table."""

from __future__ import annotations

from scenario_runner.shaders.compilers.arm_glslc import ArmGlslc
from scenario_runner.shaders.compilers.compiler import Compiler
from scenario_runner.shaders.compilers.dxc import Dxc
from scenario_runner.shaders.compilers.dxc_library import DxcLibrary
from scenario_runner.shaders.compilers.glslang import Glslang
from scenario_runner.shaders.compilers.shaderc import Shaderc

COMPILERS: tuple[type[Compiler], ...] = (
    Dxc,
    DxcLibrary,
    Glslang,
    Shaderc,
    ArmGlslc,
)
"""The preferred one first; those that one environment variable names stand together."""
