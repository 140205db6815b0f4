"""dxc, Microsoft's compiler of HLSL, as a program."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar

from scenario_runner.shaders.compilers.compiler import DXC_VARIABLE, OUTPUT_NAME, SOURCE_NAME, Compiler
from scenario_runner.shaders.compilers.messages import CLANG_STYLE

if TYPE_CHECKING:
    from scenario_runner.shaders.options import BuildOptions
    from scenario_runner.shaders.request import CompileRequest

_PROFILE = {"compute": "cs_6_2", "vertex": "vs_6_2", "fragment": "ps_6_2"}


class Dxc(Compiler):
    """The program dxc."""

    __slots__ = ()

    flavour = "dxc"
    languages = ("HLSL",)
    variable = DXC_VARIABLE
    programs: ClassVar[tuple[str, ...]] = ("dxc",)
    style = CLANG_STYLE

    @classmethod
    def version_in(cls, answer: str) -> str | None:
        """What it says of its library."""
        found = re.search(r"dxcompiler\S*:? *(.{1,120})", answer)
        return " ".join(found[1].split()) if found else None

    def arguments(self, request: CompileRequest, options: BuildOptions, target: str) -> list[str]:
        """The options of `options_of`, between the names of the files."""
        return [self.path, *options_of(request, options, target), "-Fo", OUTPUT_NAME, SOURCE_NAME]


def options_of(request: CompileRequest, options: BuildOptions, target: str) -> list[str]:
    """What dxc is told about a shader. Registers are bindings and spaces are sets, without shifts."""
    extra = ["-Zi"] if options.debug else []
    extra += {"": [], "s": ["-O3"]}.get(options.optimise, [f"-O{options.optimise}"])
    extra += [f"-fspv-target-env={min(target, 'vulkan1.3')}"]
    profile = ["-T", _PROFILE[request.stage], "-E", request.entry]
    return ["-spirv", "-enable-16bit-types", "-Wno-conversion", *profile, *extra]
