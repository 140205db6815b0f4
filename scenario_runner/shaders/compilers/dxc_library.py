"""dxc as a shared library, such as the one in a Python package: called in a process of its own, which may crash."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from scenario_runner.shaders.compilers.compiler import DXC_VARIABLE, OUTPUT_NAME, SOURCE_NAME, is_library
from scenario_runner.shaders.compilers.dxc import Dxc, options_of

if TYPE_CHECKING:
    from scenario_runner.shaders.options import BuildOptions
    from scenario_runner.shaders.request import CompileRequest
    from scenario_runner.shaders.source import Assembled

PACKAGE = "compushady-lrtu>=0.18"
"""The package with the library that the extra ``hlsl`` brings. Nothing else of it is used."""
EXTRA = "scenario-runner[hlsl]"
PLACE = os.path.join("compushady", "backends", "libdxcompiler_x86_64.so")
# Ends at once: the library's own clean-up takes time and could go wrong.
_PROGRAM = """
import os, sys
sys.path.insert(0, sys.argv[1])
from dxc_process import main
os._exit(main(sys.argv[2:]))
"""


def install_line() -> str:
    """What to do where there is no dxc."""
    advice = f"put dxc on PATH, or name it or its library by {DXC_VARIABLE}"
    return f"pip install '{EXTRA}', or {advice}" if has_wheels() else advice


class DxcLibrary(Dxc):
    """libdxcompiler.so; its messages, options and modules are those of `Dxc`."""

    __slots__ = ()

    flavour = "dxc-library"
    programs = ()
    many_at_once = True
    writes_logs = True

    @classmethod
    def candidates(cls) -> list[str]:
        """In the package, wherever Python finds packages."""
        return [os.path.join(folder, PLACE) for folder in sys.path if folder]

    @classmethod
    def question(cls, path: str) -> list[str] | None:
        """Our process is asked, which loads the library."""
        return [*_process(path), "--version"] if is_library(path) and sys.executable else None

    @classmethod
    def version_in(cls, answer: str) -> str | None:
        """What our process says, and nothing else does."""
        found = re.match(r"scenario-runner: dxcompiler library (.{1,120})", answer)
        return found[1] if found else None

    def arguments(self, request: CompileRequest, options: BuildOptions, target: str) -> list[str]:
        """Our process, with the options that dxc takes; messages go to standard output."""
        given = [SOURCE_NAME, OUTPUT_NAME, "-", *options_of(request, options, target)]
        return [*_process(self.path), str(len(given)), *given]

    def batches(self, request: CompileRequest, options: BuildOptions, assembled: Assembled, *, preferred: bool) -> bool:
        """Everything that it would compile alone."""
        return preferred

    def batch_arguments(self, target: str, shaders: Sequence[tuple[CompileRequest, BuildOptions]]) -> list[str]:
        """One process, which loads the library once."""
        argv = _process(self.path)
        for index, (request, options) in enumerate(shaders):
            given = [str(index), f"{index}.spv", f"{index}.log", *options_of(request, options, target)]
            argv += [str(len(given)), *given]
        return argv


def has_wheels() -> bool:
    """Whether the package exists for this kind of machine: Linux with glibc on x86-64."""
    import platform

    return platform.libc_ver()[0] == "glibc" and platform.machine() == "x86_64"


def _process(path: str) -> list[str]:
    # Without site-packages and the user's environment: nothing but the standard library is needed. As any module of
    # ours, the one that is imported is kept compiled, unless Python was told not to: compiling it takes 10 ms.
    flags = "-ISBc" if sys.dont_write_bytecode else "-ISc"
    return [sys.executable, flags, _PROGRAM, os.path.dirname(os.path.abspath(__file__)), path]
