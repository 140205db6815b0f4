"""Source to SPIR-V: GLSL and HLSL through external compilers, with a cache keyed by content.

A run whose shaders are all in the cache starts no process, and imports nothing that could.
"""

from __future__ import annotations

from scenario_runner.content_cache import default_cache_dir
from scenario_runner.shaders.compile import Compiled, compile_all, compile_each
from scenario_runner.shaders.compilers import Compiler
from scenario_runner.shaders.discovery import ShaderCache, find_compilers
from scenario_runner.shaders.source import BuildOptions, CompileRequest, parse_build_options

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
