"""Which shader compilers this machine has, and what each can do.

A compiler's version is remembered by path, modification time and size, so that a warm run starts no process to ask.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

from scenario_runner.errors import CompilerNotFoundError
from scenario_runner.shaders.cache import ShaderCache

Flavour = Literal["glslang", "arm-glslc", "shaderc", "dxc"]

GLSLANG_VARIABLE = "SCENARIO_RUNNER_GLSLANG"
DXC_VARIABLE = "SCENARIO_RUNNER_DXC"
_TENSORS_SINCE = (15, 4)
_PROBE_TIMEOUT_S = 10.0
_FLAVOURS: dict[str, Flavour] = {"glslang": "glslang", "arm-glslc": "arm-glslc", "shaderc": "shaderc", "dxc": "dxc"}
_MOST_PROBES_BYTES = 1 << 20
_PROBES = "compilers-1.tsv"


class Compiler(NamedTuple):
    """One program. ``version`` is the compiler's own word; ``identity`` tells two builds apart, wherever they are.

    Flavours: ``glslang`` (glslangValidator), ``arm-glslc`` (of Arm's scenario runner: GLSL of any kind, but always
    SPIR-V 1.6 and an entry point called main), ``shaderc`` (Google's glslc), ``dxc`` (HLSL only).
    """

    path: str
    flavour: Flavour
    version: str
    identity: str

    @property
    def knows_tensors(self) -> bool:
        """Whether GL_ARM_tensors is known; derived from the version, glslang having it since 15.4."""
        if self.flavour == "glslang":
            return _numbers(self.version)[:2] >= _TENSORS_SINCE
        if self.flavour == "shaderc":
            found = re.search(r"glslang (?:\d+:)?(\d+\.\d+)", self.version)
            return found is not None and _numbers(found[1]) >= _TENSORS_SINCE
        return self.flavour == "arm-glslc"

    @property
    def languages(self) -> tuple[str, ...]:
        """``GLSL``, ``HLSL`` or both."""
        return {"glslang": ("GLSL", "HLSL"), "dxc": ("HLSL",)}.get(self.flavour, ("GLSL",))

    @property
    def renames_entry(self) -> bool:
        """Whether a GLSL shader's entry point can be called other than main."""
        return self.flavour == "glslang"

    def target_for(self, language: str, asked: str, tensors: bool) -> str:
        """The Vulkan version whose SPIR-V it is told to make, where ``asked`` is the oldest that should do."""
        if self.flavour == "arm-glslc":
            return "vulkan1.3"  # it has no choice
        if language == "HLSL" and self.flavour == "glslang":
            # Its storage buffers are decorated BufferBlock, which SPIR-V above 1.3 does not have.
            return min(asked, "vulkan1.1")
        return max(asked, "vulkan1.3") if tensors else asked


def find_compilers(
    compiler: str | None = None,
    *,
    language: Literal["GLSL", "HLSL"] | None = None,
    cache_dir: str | None = None,
    use_cache: bool = True,
) -> list[Compiler]:
    """Every usable compiler, the preferred one first; only those for ``language`` when that is given.

    A named one is the only one of its kind: ``compiler`` (the command line's ``--glslang``; a path, or a name on PATH),
    else the variable SCENARIO_RUNNER_GLSLANG; for HLSL SCENARIO_RUNNER_DXC. Otherwise: glslangValidator, glslang and
    glslc on PATH, Arm's glslc where `arm_glslc.folders` says, dxc on PATH; each file once. dxc comes first for HLSL.

    Raises CompilerNotFoundError when a named one is not there, cannot be started, or is not a compiler known here.
    """
    memory = _Memory(ShaderCache(cache_dir) if use_cache else None)
    found: list[Compiler] = []
    hlsl: list[Compiler] = []
    if language != "GLSL":
        named = os.environ.get(DXC_VARIABLE)
        paths = [_named(named, DXC_VARIABLE)] if named else _on_path("dxc")
        hlsl = [one for one in _probed(memory, paths, DXC_VARIABLE if named else None) if one.flavour == "dxc"]
        if named and not hlsl:
            raise _unknown(named, DXC_VARIABLE, "it is not a dxc")
    if language != "HLSL" or not hlsl:
        named, by = (compiler, "--glslang") if compiler else (os.environ.get(GLSLANG_VARIABLE), GLSLANG_VARIABLE)
        if named:
            found = list(_probed(memory, [_named(named, by)], by))
        else:
            from scenario_runner import arm_glslc

            paths = [*_on_path("glslangValidator"), *_on_path("glslang"), *_on_path("glslc"), *arm_glslc.programs()]
            found = [one for one in _probed(memory, paths, None) if one.flavour != "dxc"]
            # Full control of the target first; of those the newest.
            found.sort(
                key=lambda one: (one.flavour == "glslang", one.flavour == "shaderc", _numbers(one.version)),
                reverse=True,
            )
    memory.save()
    everything = [*hlsl, *found]
    return [one for one in everything if language is None or language in one.languages]


def names(compilers: Iterable[Compiler]) -> str:
    """Compilers in a message: their paths and versions."""
    return " or ".join(f"{one.path} ({one.version})" for one in compilers)


def _exe(name: str) -> str:
    return name + ".exe" if sys.platform == "win32" else name


def _on_path(name: str) -> list[str]:
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return [os.path.join(folder, _exe(name)) for folder in folders if folder]


def _named(name: str, by: str) -> str:
    if os.path.dirname(name):
        candidates = [os.path.abspath(name)]
    else:
        candidates = [*_on_path(name.removesuffix(".exe") if sys.platform == "win32" else name), os.path.abspath(name)]
    for path in candidates:
        if os.path.isfile(path):
            return path
    raise CompilerNotFoundError(
        f"the shader compiler {name!r} (named by {by}) does not exist",
        help="name glslangValidator, glslang or Arm's glslc by its path, or leave the choice to the program",
    )


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part[:9]) for part in re.findall(r"\d+", version))


def _probed(memory: _Memory, paths: list[str], named_by: str | None) -> Iterator[Compiler]:
    """The compilers among the files ``paths``, asking those that the memory does not know."""
    import stat

    seen = set()
    for path in paths:
        try:
            status = os.stat(path)
        except (OSError, ValueError):
            continue
        if (status.st_dev, status.st_ino) in seen or not stat.S_ISREG(status.st_mode):
            continue
        seen.add((status.st_dev, status.st_ino))
        known = memory.recall(path, status)
        said = ""
        if known is None:
            known, said = _ask(path)
            if known[0]:
                memory.remember(path, status, known)
        flavour, version = known
        identity = f"{flavour} {version} {status.st_size} {status.st_mtime_ns}"
        if flavour in _FLAVOURS:
            yield Compiler(path, _FLAVOURS[flavour], version, identity)
        elif named_by:
            raise _unknown(path, named_by, said or "--version says nothing known")


def _unknown(path: str, named_by: str, said: str) -> CompilerNotFoundError:
    return CompilerNotFoundError(
        f"{path!r} (named by {named_by}) is not a shader compiler known here: {said}",
        help="expected glslangValidator, glslang, Arm's glslc, Google's glslc or, for HLSL, dxc",
    )


def _ask(path: str) -> tuple[tuple[str, str], str]:
    """(flavour, version) and what went wrong. The flavour is ``""`` when nothing was learned, ``"other"`` for an answer
    that no known compiler gives."""
    from scenario_runner.shaders.process import make_runnable, run_program

    try:
        make_runnable(path)
        done = run_program([path, "--version"], folder=None, timeout_s=_PROBE_TIMEOUT_S)
    except OSError as error:
        return ("", ""), f"it cannot be started: {(error.strerror or str(error)).lower()}"
    if done.failure:
        return ("", ""), f"--version {done.failure}"
    text = done.output
    found = re.search(r"^Glslang Version: (?:\d+:)?(\S{1,80})", text, re.M)
    if found:
        return ("glslang", found[1]), ""
    found = re.search(r'"version": "([^"\s]{1,80})"', text)
    inside = re.search(r'"glslang=([^"\s]{1,80})"', text)
    if found and inside:
        return ("arm-glslc", f"{found[1]} (glslang {inside[1]})"), ""
    if re.search(r"^shaderc ", text, re.M):
        return ("shaderc", " ".join(text.split())[:200]), ""
    found = re.search(r"dxcompiler\S*:? *(.{1,120})", text)
    if found:
        return ("dxc", " ".join(found[1].split())), ""
    return ("other", ""), f"--version says {text.strip()[:80]!r}"


class _Memory:
    """What compilers said, one line each: path, modification time, size, flavour, version."""

    def __init__(self, cache: ShaderCache | None) -> None:
        self.cache = cache
        self.lines: dict[str, str] = {}
        self.changed = False
        self.path = os.path.join(cache.root, _PROBES) if cache else ""
        if cache is None:
            return
        found = cache.read(self.path, _MOST_PROBES_BYTES)
        if found is None:
            return
        text = found[0].decode("utf-8", "surrogateescape")
        # The last piece is empty, or a line that was cut off.
        self.lines = {line.partition("\t")[0]: line for line in text.split("\n")[:-1] if line.count("\t") == 4}

    def recall(self, path: str, status: os.stat_result) -> tuple[str, str] | None:
        line = self.lines.get(path)
        if line is None:
            return None
        _, time_ns, size, flavour, version = line.split("\t")
        return (flavour, version) if (time_ns, size) == (str(status.st_mtime_ns), str(status.st_size)) else None

    def remember(self, path: str, status: os.stat_result, known: tuple[str, str]) -> None:
        if "\t" in path or "\n" in path:
            return
        self.lines[path] = "\t".join((path, str(status.st_mtime_ns), str(status.st_size), *known))
        self.changed = True

    def save(self) -> None:
        if self.changed and self.cache:
            lines = list(self.lines.values())[-64:]
            self.cache.write(self.path, ("\n".join(lines) + "\n").encode("utf-8", "surrogateescape"))
            self.changed = False
