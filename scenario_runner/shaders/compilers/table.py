"""The shader compilers: one class each, and the table of them. Adding one is its class and a line there."""

import os
import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, NamedTuple

from scenario_runner.errors.installation import glslc_programs, has_glibc, requirement
from scenario_runner.shaders.source import ShaderSource


class MessageStyle(NamedTuple):
    """Regular expressions. ``message`` has the groups file, line, column (may be missing), severity and text; ``noise``
    matches lines that say nothing about the source. After a message may come the line of the source and a line with
    marks below it, where ``echoes``."""

    message: str
    noise: str
    echoes: bool = False


# "ERROR: file:3: text", or "file:3:7:" on request.
GLSLANG_STYLE = MessageStyle(
    r"(?P<severity>ERROR|WARNING): (?P<file>.*?):(?P<line>-?\d+):(?:(?P<column>\d+):)? (?P<text>.*)",
    r"ERROR: \d+ compilation errors\..*|"
    r".*'' : compilation terminated.*|"
    r"SPIR-V is not generated for failed compile or link|Failed to compiled GLSL input to SPIR-V:|"
    r"ERROR: Linking \w+ stage: Missing entry point: Each stage requires one entry point|"
    r"\S*\(\d+\): error at column \d+, HLSL parsing failed\.",
)
# dxc: "file:3:7: error: text"; shaderc: "file:3: error: text".
CLANG_STYLE = MessageStyle(
    r"(?P<file>.+?):(?P<line>\d+):(?:(?P<column>\d+):)? (?P<severity>(?:fatal )?error|warning|note): (?P<text>.*)",
    r"\d+ (?:errors?|warnings?)(?: and \d+ errors?)? generated\.|.*'' : compilation terminated.*",
    echoes=True,
)


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


class Compiler(_Found, ABC):
    """One compiler file. ``version`` is its own word; ``identity`` tells two builds apart, wherever they are.

    ``flavour`` names the class in reports and in the cache. ``variable`` is the environment variable that names one of
    them, ``programs`` are their names on PATH. ``renames_entry`` tells whether a GLSL shader's entry point can be
    called other than main, ``many_at_once`` whether it makes batches. ``asking_again`` are options, tried in turn,
    with which a compiler that stops at the first error reports all. ``hlsl_is_dated`` tells that it knows HLSL as it
    was before HLSL 2021: no 64-bit or 16-bit types, no templates.
    """

    flavour: ClassVar[str]
    languages: ClassVar[tuple[str, ...]]
    variable: ClassVar[str] = GLSLANG_VARIABLE
    programs: ClassVar[tuple[str, ...]] = ()
    renames_entry: ClassVar[bool] = False
    style: ClassVar[MessageStyle] = GLSLANG_STYLE
    asking_again: ClassVar[tuple[tuple[str, ...], ...]] = ()
    many_at_once: ClassVar[bool] = False
    hlsl_is_dated: ClassVar[bool] = False

    @classmethod
    def candidates(cls) -> list[str]:
        """List the places where it may be, the preferred one first."""
        return [path for name in cls.programs for path in on_path(name)]

    @classmethod
    @abstractmethod
    def version_in(cls, answer: str) -> str | None:
        """Find the version in the output of `version_command`; None where another program wrote it."""

    @property
    def knows_tensors(self) -> bool:
        """True where GL_ARM_tensors is known."""
        return False

    def target_for(self, source: ShaderSource) -> str:
        """The Vulkan version whose SPIR-V it is told to make."""
        return max(source.request.target, "vulkan1.3") if source.has_tensors else source.request.target

    @abstractmethod
    def arguments(self, source: ShaderSource) -> list[str]:
        """Return the command line, which runs in a folder with ``SOURCE_NAME`` and writes ``OUTPUT_NAME`` there.

        Macros and includes are in the text already.
        """

    def batches(self, source: ShaderSource, *, preferred: bool) -> bool:
        """Tell whether a shader can be compiled together with others. ``preferred`` tells whether this compiler would
        compile it alone, too; another one may only take what comes out the same."""
        return False

    def batch_arguments(self, sources: Sequence[ShaderSource]) -> list[str]:
        """Return the command line that compiles the files ``0``, ``1``, …, of one target, to ``0.spv``, ``1.spv``, ….

        The compiler writes no module for a shader that must be compiled alone. If it writes messages to ``0.log``, …,
        those shaders are not compiled again. A compiler without batches returns nothing.
        """
        return []


def on_path(name: str) -> list[str]:
    """List the places of a program of this name on PATH."""
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    program = name.removesuffix(".exe") + ".exe" if sys.platform == "win32" else name
    return [os.path.join(folder, program) for folder in folders if folder]


def numbers(version: str) -> tuple[int, ...]:
    """The numbers in a version, for comparing."""
    return tuple(int(part[:9]) for part in _NUMBER.findall(version))


TENSORS_SINCE = (15, 4)
_STAGE = {"compute": "comp", "vertex": "vert", "fragment": "frag"}


class Glslang(Compiler):
    """Khronos' glslangValidator, in newer packages called glslang."""

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
        match = re.search(r"^Glslang Version: (?:\d+:)?(\S{1,80})", answer, re.M)
        return match[1] if match else None

    @property
    def knows_tensors(self) -> bool:
        """True for versions that know GL_ARM_tensors."""
        return numbers(self.version)[:2] >= TENSORS_SINCE

    def target_for(self, source: ShaderSource) -> str:
        """Give HLSL an old one: its storage buffers are decorated BufferBlock, which SPIR-V above 1.3 does not have."""
        is_hlsl = source.request.language == "HLSL"
        return min(source.request.target, "vulkan1.1") if is_hlsl else super().target_for(source)

    def arguments(self, source: ShaderSource) -> list[str]:
        """One optimiser for every level; without it nothing is optimised."""
        request, options = source.request, source.options
        extra = ["-g"] if options.debug else []
        extra += [] if options.optimise in ("", "0") else ["-Os"]
        if request.language == "HLSL":
            extra += ["-D", "--hlsl-enable-16bit-types", "-e", request.entry]
        elif request.entry != "main":
            extra += ["--source-entrypoint", "main", "-e", request.entry]
        stage = ["-S", _STAGE[request.stage], "--target-env", self.target_for(source)]
        return [self.path, "-V", *stage, *extra, "-o", OUTPUT_NAME, SOURCE_NAME]


# Text that glslangValidator compiles differently: glslc has smaller limits behind GLSL's constants of these names, has
# __FILE__ and the names of files in #line without being asked, and counts lines in another way in old versions of GLSL.
_DIFFERS = re.compile(rb'gl_Max|__FILE__|__LINE__|^[ \t]*#[ \t]*line\b[^\n]*"', re.M)


class Shaderc(Compiler):
    """Google's glslc."""

    flavour = "shaderc"
    languages = ("GLSL",)
    programs = ("glslc",)
    style = CLANG_STYLE
    many_at_once = True

    @classmethod
    def version_in(cls, answer: str) -> str | None:
        """All that it says: the versions of its parts."""
        return " ".join(answer.split())[:200] if re.search(r"^shaderc ", answer, re.M) else None

    @property
    def knows_tensors(self) -> bool:
        """True where the glslang in it knows GL_ARM_tensors."""
        match = re.search(r"glslang (?:\d+:)?(\d+\.\d+)", self.version)
        return match is not None and numbers(match[1]) >= TENSORS_SINCE

    def arguments(self, source: ShaderSource) -> list[str]:
        """Options like those of clang."""
        options = source.options
        extra = ["-g"] if options.debug else []
        extra += [] if options.optimise in ("", "0") else ["-Os" if options.optimise == "s" else "-O"]
        called = [f"-fshader-stage={source.request.stage}", f"--target-env={self.target_for(source)}", *extra]
        return [self.path, *called, "-o", OUTPUT_NAME, SOURCE_NAME]

    def batches(self, source: ShaderSource, *, preferred: bool) -> bool:
        """Tell whether glslangValidator would make the same module.

        With debug information a module holds its file's name, and optimised by glslc it has lost the names in it.
        """
        request, options = source.request, source.options
        if request.language != "GLSL" or request.entry != "main" or source.opaque:
            return False
        if options.debug or options.optimise not in ("", "0"):
            return False
        return _DIFFERS.search(source.text) is None

    def batch_arguments(self, sources: Sequence[ShaderSource]) -> list[str]:
        """A warning counts as an error: the preferred compiler then says its own words about that shader."""
        argv = [self.path, "-c", "-Werror", f"--target-env={self.target_for(sources[0])}", "-x", "glsl"]
        for index, source in enumerate(sources):
            argv += [f"-fshader-stage={source.request.stage}", str(index)]
        return argv


class ArmGlslc(Compiler):
    """GLSL of any kind, but always SPIR-V 1.6 and an entry point called main."""

    flavour = "arm-glslc"
    languages = ("GLSL",)

    @classmethod
    def candidates(cls) -> list[str]:
        """In the folders of its own that it is installed into; Google's program on PATH has the same name."""
        return glslc_programs()

    @classmethod
    def version_in(cls, answer: str) -> str | None:
        """Its own version and that of the glslang in it."""
        match = re.search(r'"version": "([^"\s]{1,80})"', answer)
        inside = re.search(r'"glslang=([^"\s]{1,80})"', answer)
        return f"{match[1]} (glslang {inside[1]})" if match and inside else None

    @property
    def knows_tensors(self) -> bool:
        """Always."""
        return True

    def target_for(self, source: ShaderSource) -> str:
        """It has no choice."""
        return "vulkan1.3"

    def arguments(self, source: ShaderSource) -> list[str]:
        """Files and stage are all that it takes."""
        return [self.path, "--input", SOURCE_NAME, "--output", OUTPUT_NAME, "--stage", source.request.stage]


_PROFILE = {"compute": "cs_6_2", "vertex": "vs_6_2", "fragment": "ps_6_2"}


class Dxc(Compiler):
    """The program dxc."""

    flavour = "dxc"
    languages = ("HLSL",)
    variable = DXC_VARIABLE
    programs: ClassVar[tuple[str, ...]] = ("dxc",)
    style = CLANG_STYLE

    @classmethod
    def version_in(cls, answer: str) -> str | None:
        """Find the version of its library."""
        match = re.search(r"^(?!error: ).*?dxcompiler\S*:? *(.{1,120})", answer, re.M)
        return " ".join(match[1].split()) if match else None

    def arguments(self, source: ShaderSource) -> list[str]:
        """The options of a shader, between the names of the files."""
        return [self.path, *self.options(source), "-Fo", OUTPUT_NAME, SOURCE_NAME]

    def options(self, source: ShaderSource) -> list[str]:
        """List the options of dxc for a shader. Registers are bindings and spaces are sets, without shifts."""
        optimise = source.options.optimise
        extra = ["-Zi"] if source.options.debug else []
        extra += {"": [], "s": ["-O3"]}.get(optimise, [f"-O{optimise}"])
        extra += [f"-fspv-target-env={min(self.target_for(source), 'vulkan1.3')}"]
        profile = ["-T", _PROFILE[source.request.stage], "-E", source.request.entry]
        return ["-spirv", "-enable-16bit-types", "-Wno-conversion", *profile, *extra]


DXC_PACKAGE = "compushady-lrtu"
"""The package with the library that the extra ``hlsl`` brings. Nothing else of it is used."""
DXC_PLACE = os.path.join("compushady", "backends", "libdxcompiler_x86_64.so")
# Ends at once: the library's own clean-up takes time and could go wrong.
_PROGRAM = """
import os, sys
sys.path.insert(0, sys.argv[1])
from dxc_process import main
os._exit(main(sys.argv[2:]))
"""


def dxc_install_line() -> str:
    """The advice for a machine without dxc."""
    advice = f"put dxc on PATH, or name it or its library by {DXC_VARIABLE}"
    return f"pip install '{requirement(DXC_PACKAGE).text}', or {advice}" if has_dxc_wheels() else advice


class DxcLibrary(Dxc):
    """libdxcompiler.so; its messages, options and modules are those of `Dxc`."""

    flavour = "dxc-library"
    programs = ()
    many_at_once = True

    @classmethod
    def candidates(cls) -> list[str]:
        """In the package, wherever Python finds packages."""
        return [os.path.join(folder, DXC_PLACE) for folder in sys.path if folder]

    @classmethod
    def version_in(cls, answer: str) -> str | None:
        """Find the version in the words of our process."""
        match = re.match(r"scenario-runner: DXC library (.{1,120})", answer)
        return match[1] if match else None

    def arguments(self, source: ShaderSource) -> list[str]:
        """Our process, with the options that dxc takes; messages go to standard output."""
        arguments = [SOURCE_NAME, OUTPUT_NAME, "-", _includes(source), *self.options(source)]
        return [*_process(self.path), str(len(arguments)), *arguments]

    def batches(self, source: ShaderSource, *, preferred: bool) -> bool:
        """Everything that it would compile alone."""
        return preferred

    def batch_arguments(self, sources: Sequence[ShaderSource]) -> list[str]:
        """One process, which loads the library once."""
        argv = _process(self.path)
        for index, source in enumerate(sources):
            arguments = [str(index), f"{index}.spv", f"{index}.log", _includes(source), *self.options(source)]
            argv += [str(len(arguments)), *arguments]
        return argv


def _includes(source: ShaderSource) -> str:
    return "own-includes" if source.opaque else "no-includes"


def has_dxc_wheels() -> bool:
    """Return whether the package exists for this machine and Python."""
    return has_glibc("x86_64") and not requirement(DXC_PACKAGE).without_wheels


def _process(path: str) -> list[str]:
    # Without site-packages and the user's environment: nothing but the standard library is needed. As any module of
    # ours, the one that is imported is kept compiled, unless Python was told not to: compiling it takes 10 ms.
    flags = "-ISBc" if sys.dont_write_bytecode else "-ISc"
    return [sys.executable or "", flags, _PROGRAM, os.path.dirname(os.path.abspath(__file__)), path]


def version_command(path: str) -> list[str]:
    """The command line that makes a compiler say its version; a library is loaded by a process of ours."""
    is_library = re.fullmatch(_LIBRARY, os.path.basename(path)) is not None
    return [*(_process(path) if is_library else [path]), "--version"]


COMPILERS: tuple[type[Compiler], ...] = (Dxc, DxcLibrary, Glslang, Shaderc, ArmGlslc)
"""The preferred one first; those that one environment variable names stand together."""
