"""Source to SPIR-V: GLSL and HLSL through external compilers, with a cache keyed by content.

A run whose shaders are all in the cache starts no process, and imports nothing that could.
"""

from scenario_runner.shaders.compile import Compiled, compile_all, compile_each
from scenario_runner.shaders.source import CompileRequest

__all__ = ["CompileRequest", "Compiled", "compile_all", "compile_each"]
