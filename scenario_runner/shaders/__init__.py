"""Source to SPIR-V: GLSL and HLSL through external compilers, with a cache keyed by content.

A run whose shaders are all in the cache starts no process, and imports nothing that could.
"""

from __future__ import annotations

from scenario_runner.content_cache import default_cache_dir
from scenario_runner.shaders.cache import ShaderCache
from scenario_runner.shaders.compile import Compiled, compile_all, compile_each
from scenario_runner.shaders.compilers.compiler import Compiler
from scenario_runner.shaders.discovery import find_compilers
from scenario_runner.shaders.options import BuildOptions, parse_build_options
from scenario_runner.shaders.request import CompileRequest

__all__ = [
    "BuildOptions",
    "CompileRequest",
    "Compiled",
    "Compiler",
    "ShaderCache",
    "compile_all",
    "compile_each",
    "default_cache_dir",
    "find_compilers",
    "parse_build_options",
]
