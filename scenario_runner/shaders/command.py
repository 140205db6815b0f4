"""How each compiler is called. The macros and includes are in the text already; what is left is small."""

from __future__ import annotations

from collections.abc import Sequence

from scenario_runner.shaders.discovery import Compiler
from scenario_runner.shaders.options import BuildOptions
from scenario_runner.shaders.request import CompileRequest

SOURCE_NAME = "source"
OUTPUT_NAME = "module.spv"
_GLSLANG_STAGE = {"compute": "comp", "vertex": "vert", "fragment": "frag"}
_DXC_PROFILE = {"compute": "cs_6_2", "vertex": "vs_6_2", "fragment": "ps_6_2"}


def batch_arguments(compiler: Compiler, target: str, stages: Sequence[str]) -> list[str]:
    """The command line by which a shaderc compiles the GLSL files ``0``, ``1``, … of the stages given to ``0.spv``, …;
    a warning counts as an error, and then there is no such file."""
    argv = [compiler.path, "-c", "-Werror", f"--target-env={target}", "-x", "glsl"]
    before = ""
    for index, stage in enumerate(stages):
        if stage != before:
            argv.append(f"-fshader-stage={stage}")
            before = stage
        argv.append(str(index))
    return argv


def arguments(compiler: Compiler, request: CompileRequest, options: BuildOptions, target: str) -> list[str]:
    """The command line; to be run in a folder that holds ``SOURCE_NAME`` and gets ``OUTPUT_NAME``."""
    path, stage = compiler.path, request.stage
    if compiler.flavour == "arm-glslc":
        return [path, "--input", SOURCE_NAME, "--output", OUTPUT_NAME, "--stage", stage]
    if compiler.flavour == "shaderc":
        extra = ["-g"] if options.debug else []
        extra += [] if options.optimise in ("", "0") else ["-Os" if options.optimise == "s" else "-O"]
        return [path, f"-fshader-stage={stage}", f"--target-env={target}", *extra, "-o", OUTPUT_NAME, SOURCE_NAME]
    if compiler.flavour == "dxc":
        extra = ["-Zi"] if options.debug else []
        extra += {"": [], "s": ["-O3"]}.get(options.optimise, [f"-O{options.optimise}"])
        extra += [f"-fspv-target-env={min(target, 'vulkan1.3')}"]
        profile = ["-T", _DXC_PROFILE[stage], "-E", request.entry]
        base = ["-spirv", "-enable-16bit-types", "-Wno-conversion"]
        return [path, *base, *profile, *extra, "-Fo", OUTPUT_NAME, SOURCE_NAME]
    extra = ["-g"] if options.debug else []
    # Its one optimiser; without it nothing is optimised.
    extra += [] if options.optimise in ("", "0") else ["-Os"]
    if request.language == "HLSL":
        extra += ["-D", "--hlsl-enable-16bit-types", "-e", request.entry]
    elif request.entry != "main":
        extra += ["--source-entrypoint", "main", "-e", request.entry]
    return [path, "-V", "-S", _GLSLANG_STAGE[stage], "--target-env", target, *extra, "-o", OUTPUT_NAME, SOURCE_NAME]
