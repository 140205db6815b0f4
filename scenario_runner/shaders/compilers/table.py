"""The shader compilers: a class for each, and the table of all. To add a compiler, write a class and add it to the
table."""

import os
import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, NamedTuple

from scenario_runner.errors.installation import glslc_programs, has_glibc, requirement
from scenario_runner.shaders.source import PROFILES, ShaderSource


class MessageStyle(NamedTuple):
    """Regular expressions for the messages of a compiler.

    ``message`` has the groups file, line, column (may be missing), severity and text. ``noise`` matches lines that say
    nothing about the source. With ``echoes``, a line of the source and a line with marks may follow a message.
    """

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
    """An installed compiler. ``version`` comes from its output; ``identity`` distinguishes two builds at any path.

    ``flavour`` names the class in reports and in the cache. ``variable`` is the environment variable for a compiler's
    path, ``programs`` are the names on PATH. ``renames_entry`` means that a GLSL entry point can have another name than
    main, ``many_at_once`` that the compiler makes batches. ``asking_again`` are options, tried in turn, that report all
    errors if the compiler stops at the first. ``hlsl_is_dated`` means HLSL before HLSL 2021: no 64-bit or 16-bit types,
    no templates.
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
        """List the paths to try, best first."""
        return [path for name in cls.programs for path in on_path(name)]

    @classmethod
    @abstractmethod
    def version_in(cls, answer: str) -> str | None:
        """Find the version in the output of `version_command`; None for the output of another program."""

    @property
    def knows_tensors(self) -> bool:
        """True if the compiler knows GL_ARM_tensors."""
        return False

    def target_for(self, source: ShaderSource) -> str:
        """Return the Vulkan version to compile for."""
        return max(source.request.target, "vulkan1.3") if source.has_tensors else source.request.target

    @abstractmethod
    def arguments(self, source: ShaderSource) -> list[str]:
        """Return the command line, which runs in a folder with ``SOURCE_NAME`` and writes ``OUTPUT_NAME`` there.

        Macros and includes are in the text already.
        """

    def batches(self, source: ShaderSource, *, preferred: bool) -> bool:
        """Return whether a shader can be compiled together with others.

        ``preferred`` means that this compiler would also compile the shader alone. Another compiler must make the same
        module.
        """
        return False

    def batch_arguments(self, sources: Sequence[ShaderSource]) -> list[str]:
        """Return the command line that compiles the files ``0``, ``1``, …, for one target, to ``0.spv``, ``1.spv``, ….

        The compiler writes no module for a shader that must be compiled alone. If it writes messages to ``0.log``, …,
        those shaders are not compiled again. A compiler without batches returns nothing.
        """
        return []


def on_path(name: str) -> list[str]:
    """List a program's possible paths in the PATH folders."""
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    program = name.removesuffix(".exe") + ".exe" if sys.platform == "win32" else name
    return [os.path.join(folder, program) for folder in folders if folder]


def numbers(version: str) -> tuple[int, ...]:
    """Return the numbers in a version, for comparisons."""
    return tuple(int(part[:9]) for part in _NUMBER.findall(version))


TENSORS_SINCE = (15, 4)
_STAGE = {"compute": "comp", "vertex": "vert", "fragment": "frag"}
# SPIR-V version → the oldest Vulkan version that takes it.
_VULKAN = {"spv1.0": "vulkan1.0", "spv1.5": "vulkan1.2", "spv1.6": "vulkan1.3"}


class Glslang(Compiler):
    """Khronos' glslangValidator, called glslang in newer packages."""

    flavour = "glslang"
    languages = ("GLSL", "HLSL")
    programs = ("glslangValidator", "glslang")
    renames_entry = True
    hlsl_is_dated = True
    # Versions before 14 have no columns. Not the first choice: the compiler may crash when it continues after an error.
    asking_again = (("-C", "--error-column"), ("-C",))

    @classmethod
    def version_in(cls, answer: str) -> str | None:
        """Find the version after "Glslang Version:"."""
        match = re.search(r"^Glslang Version: (?:\d+:)?(\S{1,80})", answer, re.M)
        return match[1] if match else None

    @property
    def knows_tensors(self) -> bool:
        """True for versions with GL_ARM_tensors."""
        return numbers(self.version)[:2] >= TENSORS_SINCE

    def target_for(self, source: ShaderSource) -> str:
        """Return an old version for HLSL: storage buffers have BufferBlock, which SPIR-V after 1.3 lacks."""
        is_hlsl = source.request.language == "HLSL"
        return min(source.request.target, "vulkan1.1") if is_hlsl else super().target_for(source)

    def arguments(self, source: ShaderSource) -> list[str]:
        """Return the command line. All optimisation levels mean the same optimiser; without a level, nothing is
        optimised."""
        request, options = source.request, source.options
        extra = ["-g"] if options.debug else []
        extra += [] if options.optimise in ("", "0") else ["-Os"]
        if request.language == "HLSL":
            extra += ["-D", "--hlsl-enable-16bit-types", "-e", request.entry]
        elif request.entry != "main":
            extra += ["--source-entrypoint", "main", "-e", request.entry]
        target = self.target_for(source)
        stage = ["-S", _STAGE[request.stage], "--target-env", _vulkan_version(target)]
        if target.startswith("spv"):
            stage += ["--target-env", target.replace("spv", "spirv")]
        return [self.path, "-V", *stage, *extra, "-o", OUTPUT_NAME, SOURCE_NAME]


def _vulkan_version(target: str) -> str:
    return _VULKAN.get(target, "vulkan1.1") if target.startswith("spv") else target


# Text that glslangValidator compiles differently: glslc has smaller limits behind GLSL's constants of these names,
# allows __FILE__ and file names in #line without an extension, and counts lines differently in old GLSL versions.
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
        """Return the whole output: the versions of all parts."""
        return " ".join(answer.split())[:200] if re.search(r"^shaderc ", answer, re.M) else None

    @property
    def knows_tensors(self) -> bool:
        """True if the included glslang knows GL_ARM_tensors."""
        match = re.search(r"glslang (?:\d+:)?(\d+\.\d+)", self.version)
        return match is not None and numbers(match[1]) >= TENSORS_SINCE

    def arguments(self, source: ShaderSource) -> list[str]:
        """Return a command line with options like clang's."""
        options = source.options
        extra = ["-g"] if options.debug else []
        extra += [] if options.optimise in ("", "0") else ["-Os" if options.optimise == "s" else "-O"]
        called = [f"-fshader-stage={source.request.stage}", *self._targets(source), *extra]
        return [self.path, *called, "-o", OUTPUT_NAME, SOURCE_NAME]

    def batches(self, source: ShaderSource, *, preferred: bool) -> bool:
        """Return whether glslangValidator would make the same module.

        Debug information contains the file's name, and glslc removes names when it optimises.
        """
        request, options = source.request, source.options
        if request.language != "GLSL" or request.entry != "main" or source.opaque:
            return False
        if options.debug or options.optimise not in ("", "0"):
            return False
        return _DIFFERS.search(source.text) is None

    def batch_arguments(self, sources: Sequence[ShaderSource]) -> list[str]:
        """Return the command line. Warnings count as errors, so that the preferred compiler reports them."""
        argv = [self.path, "-c", "-Werror", *self._targets(sources[0]), "-x", "glsl"]
        for index, source in enumerate(sources):
            argv += [f"-fshader-stage={source.request.stage}", str(index)]
        return argv

    def _targets(self, source: ShaderSource) -> list[str]:
        target = self.target_for(source)
        versions = [f"--target-spv={target}"] if target.startswith("spv") else []
        return [f"--target-env={_vulkan_version(target)}", *versions]


class ArmGlslc(Compiler):
    """Arm's glslc: GLSL of any kind, but only SPIR-V 1.6 and an entry point called main."""

    flavour = "arm-glslc"
    languages = ("GLSL",)

    @classmethod
    def candidates(cls) -> list[str]:
        """List the folders that it is installed into. Google's program on PATH has the same name."""
        return glslc_programs()

    @classmethod
    def version_in(cls, answer: str) -> str | None:
        """Return the versions of the program and the included glslang."""
        match = re.search(r'"version": "([^"\s]{1,80})"', answer)
        inside = re.search(r'"glslang=([^"\s]{1,80})"', answer)
        return f"{match[1]} (glslang {inside[1]})" if match and inside else None

    @property
    def knows_tensors(self) -> bool:
        """True for every version."""
        return True

    def target_for(self, source: ShaderSource) -> str:
        """Return the only supported version."""
        return "vulkan1.3"

    def arguments(self, source: ShaderSource) -> list[str]:
        """Return the command line. It only has files and the stage."""
        return [self.path, "--input", SOURCE_NAME, "--output", OUTPUT_NAME, "--stage", source.request.stage]


class Dxc(Compiler):
    """The program dxc."""

    flavour = "dxc"
    languages = ("HLSL",)
    variable = DXC_VARIABLE
    programs: ClassVar[tuple[str, ...]] = ("dxc",)
    style = CLANG_STYLE

    @classmethod
    def version_in(cls, answer: str) -> str | None:
        """Find the library's version."""
        match = re.search(r"^(?!error: ).*?dxcompiler\S*:? *(.{1,120})", answer, re.M)
        return " ".join(match[1].split()) if match else None

    def arguments(self, source: ShaderSource) -> list[str]:
        """Return the command line: the shader's options, and the files."""
        return [self.path, *self.options(source), "-Fo", OUTPUT_NAME, SOURCE_NAME]

    def options(self, source: ShaderSource) -> list[str]:
        """List dxc's options for a shader. Registers are bindings and spaces are sets, without shifts."""
        options, request = source.options, source.request
        words = [word for word in options.dxc_words if word != "-Gis"]  # dxc refuses -Gis beside -spirv
        extra = ["-Zi"] if options.debug else []
        extra += {"": [], "s": ["-O3"]}.get(options.optimise, [f"-O{options.optimise}"])
        if not any(word.startswith("-fspv-target-env=") for word in words):
            extra += [f"-fspv-target-env={min(self.target_for(source), 'vulkan1.3')}"]
        if not options.profile and "-enable-16bit-types" not in words:
            extra += ["-enable-16bit-types"]
        profile = ["-T", options.profile or f"{PROFILES[request.stage]}_6_2", "-E", request.entry]
        return ["-spirv", "-Wno-conversion", *profile, *extra, *words]


DXC_PACKAGE = "compushady-lrtu"
"""Package of the extra ``hlsl``. Only the library is used."""
DXC_PLACE = os.path.join("compushady", "backends", "libdxcompiler_x86_64.so")
# Ends without the library's own clean-up, which takes time and could fail.
_PROGRAM = """
import os, sys
sys.path.insert(0, sys.argv[1])
from dxc_process import main
os._exit(main(sys.argv[2:]))
"""


def dxc_install_line() -> str:
    """Return the advice for a machine without dxc."""
    advice = f"put dxc on PATH, or name it or its library by {DXC_VARIABLE}"
    return f"pip install '{requirement(DXC_PACKAGE).text}', or {advice}" if has_dxc_wheels() else advice


class DxcLibrary(Dxc):
    """libdxcompiler.so, with the messages, options and modules of `Dxc`."""

    flavour = "dxc-library"
    programs = ()
    many_at_once = True

    @classmethod
    def candidates(cls) -> list[str]:
        """List the library's places in the package, in every folder for packages."""
        return [os.path.join(folder, DXC_PLACE) for folder in sys.path if folder]

    @classmethod
    def version_in(cls, answer: str) -> str | None:
        """Find the version in the output of our process."""
        match = re.match(r"scenario-runner: DXC library (.{1,120})", answer)
        return match[1] if match else None

    def arguments(self, source: ShaderSource) -> list[str]:
        """Return the command line of our process, with dxc's options. Messages go to standard output."""
        arguments = [SOURCE_NAME, OUTPUT_NAME, "-", _includes(source), *self.options(source)]
        return [*_process(self.path), str(len(arguments)), *arguments]

    def batches(self, source: ShaderSource, *, preferred: bool) -> bool:
        """Return ``preferred``: the preferred compiler compiles every shader in batches."""
        return preferred

    def batch_arguments(self, sources: Sequence[ShaderSource]) -> list[str]:
        """Return the command line of a process that loads the library once."""
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
    # Site-packages and the user's environment are left out, because only the standard library is needed. The imported
    # module is compiled once (10 ms), unless Python was told not to write bytecode.
    flags = "-ISBc" if sys.dont_write_bytecode else "-ISc"
    return [sys.executable or "", flags, _PROGRAM, os.path.dirname(os.path.abspath(__file__)), path]


def version_command(path: str) -> list[str]:
    """Return the command line that prints a compiler's version. A process of ours loads a library."""
    is_library = re.fullmatch(_LIBRARY, os.path.basename(path)) is not None
    return [*(_process(path) if is_library else [path]), "--version"]


COMPILERS: tuple[type[Compiler], ...] = (Dxc, DxcLibrary, Glslang, Shaderc, ArmGlslc)
"""The preferred compiler first; compilers with the same environment variable are adjacent."""
