"""What every shader compiler is to the rest of this package; each has a class of its own beside this file."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from scenario_runner.shaders.compilers.messages import GLSLANG_STYLE, MessageStyle

if TYPE_CHECKING:
    from scenario_runner.shaders.options import BuildOptions
    from scenario_runner.shaders.request import CompileRequest
    from scenario_runner.shaders.source import Assembled

GLSLANG_VARIABLE = "SCENARIO_RUNNER_GLSLANG"
DXC_VARIABLE = "SCENARIO_RUNNER_DXC"
SOURCE_NAME = "source"
OUTPUT_NAME = "module.spv"

_NUMBER = re.compile(r"\d+")
_LIBRARY = r".*\.(?:so|dll|dylib)(?:\.[\d.]+)?"


class _Found(NamedTuple):
    path: str
    version: str
    identity: str


class Compiler(_Found):
    """One compiler file. ``version`` is its own word; ``identity`` tells two builds apart, wherever they are.

    ``flavour`` names the class in reports and in the cache. ``variable`` is the environment variable that names one of
    them, ``programs`` are their names on PATH. ``renames_entry`` tells whether a GLSL shader's entry point can be
    called other than main, ``many_at_once`` whether it makes batches, and ``writes_logs`` whether a batch has a log for
    each shader. ``asking_again`` are options, tried in turn, with which a compiler that stops at the first error
    reports all. ``hlsl_is_dated`` tells that it knows HLSL as it was before HLSL 2021: no 64-bit or 16-bit types, no
    templates.
    """

    __slots__ = ()

    flavour: ClassVar[str]
    languages: ClassVar[tuple[str, ...]]
    variable: ClassVar[str] = GLSLANG_VARIABLE
    programs: ClassVar[tuple[str, ...]] = ()
    renames_entry: ClassVar[bool] = False
    style: ClassVar[MessageStyle] = GLSLANG_STYLE
    asking_again: ClassVar[tuple[tuple[str, ...], ...]] = ()
    many_at_once: ClassVar[bool] = False
    writes_logs: ClassVar[bool] = False
    hlsl_is_dated: ClassVar[bool] = False

    @classmethod
    def candidates(cls) -> list[str]:
        """Where files of it may be, the preferred one first."""
        return [path for name in cls.programs for path in on_path(name)]

    @classmethod
    def question(cls, path: str) -> list[str] | None:
        """The command line that makes ``path`` say its version; None where it cannot be one of these."""
        return None if is_library(path) else [path, "--version"]

    @classmethod
    def version_in(cls, answer: str) -> str | None:
        """The version in what the command line of `question` wrote; None where another program wrote it."""
        raise NotImplementedError

    @property
    def knows_tensors(self) -> bool:
        """Whether GL_ARM_tensors is known."""
        return False

    def target_for(self, language: str, asked: str, tensors: bool) -> str:
        """The Vulkan version whose SPIR-V it is told to make, where ``asked`` is the oldest that should do."""
        return max(asked, "vulkan1.3") if tensors else asked

    def arguments(self, request: CompileRequest, options: BuildOptions, target: str) -> list[str]:
        """The command line; to be run in a folder that holds ``SOURCE_NAME`` and gets ``OUTPUT_NAME``.

        Macros and includes are in the text already.
        """
        raise NotImplementedError

    def batches(self, request: CompileRequest, options: BuildOptions, assembled: Assembled, *, preferred: bool) -> bool:
        """Whether a shader can be compiled together with others. ``preferred`` tells whether this compiler would
        compile it alone, too; another one may only take what comes out the same."""
        return False

    def batch_arguments(self, target: str, shaders: Sequence[tuple[CompileRequest, BuildOptions]]) -> list[str]:
        """The command line that compiles the files ``0``, ``1``, … to ``0.spv``, ``1.spv``, ….

        There is no such file for a shader that has to be compiled alone. One that ``writes_logs`` also writes
        ``0.log``, … with its messages, and is not asked about those shaders again.
        """
        raise NotImplementedError


def on_path(name: str) -> list[str]:
    """Where a program of this name would be on PATH."""
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    program = name + ".exe" if sys.platform == "win32" else name
    return [os.path.join(folder, program) for folder in folders if folder]


def is_library(path: str) -> bool:
    """Whether a path is that of a shared library, by its name."""
    return re.fullmatch(_LIBRARY, os.path.basename(path)) is not None


def numbers(version: str) -> tuple[int, ...]:
    """The numbers in a version, for comparing."""
    return tuple(int(part[:9]) for part in _NUMBER.findall(version))
