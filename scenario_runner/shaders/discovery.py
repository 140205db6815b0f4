"""The shader compilers of this machine, with versions; which of them can compile a shader; the cache of modules.

A compiler's version is kept by path, modification time and size, so that a warm run starts no process to ask.
"""

from __future__ import annotations

import os
import stat
import sys
import time
from collections.abc import Iterable, Iterator
from typing import Literal

from scenario_runner.arm_glslc import install_line
from scenario_runner.content_cache import ContentCache
from scenario_runner.errors import CompilerNotFoundError, ScenarioError, ScenarioRunnerError, UsageError
from scenario_runner.shaders.compilers import (
    COMPILERS,
    DXC_VARIABLE,
    GLSLANG_VARIABLE,
    Compiler,
    dxc_install_line,
    numbers,
    on_path,
    version_command,
)
from scenario_runner.shaders.source import TARGETS, Assembled, BuildOptions, CompileRequest
from scenario_runner.system_packages import install_here

_PROBE_TIMEOUT_S = 10.0
_FLAVOURS = {kind.flavour: kind for kind in COMPILERS}
_NAMING = tuple(dict.fromkeys(kind.variable for kind in COMPILERS))
_VARIABLES = ("PATH", "HOME", "XDG_DATA_HOME")  # where compilers are searched for
_SEARCHED_EVERY_S = 1.0  # a suite asks for each of its scenarios

_searches: dict[tuple[object, ...], tuple[list[Compiler], float]] = {}
"""The compilers that the last search found, and the time of its end, by its arguments and surroundings."""

_VERSIONS = "compilers-2.tsv"  # in the folder of the caches; a line is a key of `_answers`, flavour and version
_MOST_VERSIONS, _MOST_VERSIONS_BYTES = 64, 1 << 20

_answers: dict[str, list[str]] = {}
"""Flavour and version of each compiler that this process has met, as they are in the file `_VERSIONS`."""


def find_compilers(
    compiler: str | None = None,
    *,
    language: Literal["GLSL", "HLSL"] | None = None,
    cache_dir: str | None = None,
    use_cache: bool = True,
) -> list[Compiler]:
    """Every usable compiler, the preferred one first; only those for ``language`` when that is given.

    A named one is the only one of its kind: ``compiler`` (the command line's ``--glslang``; a path, or a name on PATH),
    else the variable SCENARIO_RUNNER_GLSLANG; for HLSL SCENARIO_RUNNER_DXC. Otherwise each class of `COMPILERS` says
    where it may be; each file counts once. HLSL is left to glslang only where there is no dxc.

    Raises CompilerNotFoundError when a named one is not there, cannot be started, or is not a compiler known here.
    """
    cache = ContentCache(cache_dir, "shaders") if use_cache else None
    if compiler or any(map(os.environ.get, _NAMING)):
        return _search(compiler, language, cache)
    key = (language, cache_dir, use_cache, *map(os.environ.get, _VARIABLES), *sys.path)
    if key not in _searches or time.monotonic() - _searches[key][1] > _SEARCHED_EVERY_S:
        _searches[key] = _search(None, language, cache), time.monotonic()
    return list(_searches[key][0])


def search_again() -> None:
    """Forget what was found: compilers may just have been installed."""
    _searches.clear()


def _search(compiler: str | None, language: str | None, cache: ContentCache | None) -> list[Compiler]:
    compilers: list[Compiler] = []
    for variable in _NAMING:
        kinds = tuple(kind for kind in COMPILERS if kind.variable == variable)
        if language is not None and (compilers or not any(language in kind.languages for kind in kinds)):
            continue
        named, by = os.environ.get(variable), variable
        if compiler and variable == GLSLANG_VARIABLE:
            named, by = compiler, "--glslang"
        if named:
            usable = list(_probed(cache, [_named(named, by)], by))
            if variable == DXC_VARIABLE and not isinstance(usable[0], kinds):
                raise _unknown(named, by, "it is not a dxc")
        else:
            paths = dict.fromkeys(path for kind in kinds for path in kind.candidates())
            usable = [candidate for candidate in _probed(cache, paths, None) if isinstance(candidate, kinds)]
            if variable == GLSLANG_VARIABLE:  # of one kind the newest first
                usable.sort(key=lambda candidate: numbers(candidate.version), reverse=True)
            usable.sort(key=lambda candidate: kinds.index(type(candidate)))
        compilers += usable
    return [candidate for candidate in compilers if language is None or language in candidate.languages]


def names(compilers: Iterable[Compiler]) -> str:
    """Compilers in a message: their paths and versions."""
    return " or ".join(f"{compiler.path} ({compiler.version})" for compiler in compilers)


def _named(name: str, by: str) -> str:
    if os.path.dirname(name):
        candidates = [os.path.abspath(name)]
    else:
        candidates = [*on_path(name.removesuffix(".exe") if sys.platform == "win32" else name), os.path.abspath(name)]
    for path in candidates:
        if os.path.isfile(path):
            return path
    raise CompilerNotFoundError(
        f"the shader compiler {name!r} (named by {by}) does not exist",
        help=f"name {_fitting(by)} by its path, or leave the choice to the program",
    )


def _probed(cache: ContentCache | None, paths: Iterable[str], named_by: str | None) -> Iterator[Compiler]:
    """The compilers among the files ``paths``; those that are not in the cache are asked."""
    seen = set()
    for path in paths:
        try:
            status = os.stat(path)
        except (OSError, ValueError):
            continue
        if (status.st_dev, status.st_ino) in seen or not stat.S_ISREG(status.st_mode):
            continue
        seen.add((status.st_dev, status.st_ino))
        key = f"{status.st_size} {status.st_mtime_ns} {path}"
        problem = "--version says nothing known"
        if key not in _answers and cache is not None:
            _answers.update(_kept_versions(cache))
        if key in _answers:
            flavour, version = _answers[key]
        else:
            flavour, version, problem = _ask(path)
            if flavour:
                _answers[key] = [flavour, version]
                if cache is not None:
                    kept = _kept_versions(cache) | {key: _answers[key]}
                    lines = ["\t".join((name, *answer)) + "\n" for name, answer in kept.items()]
                    text = "".join(lines[-_MOST_VERSIONS:])
                    cache.write(_path_of_versions(cache), text.encode("utf-8", "surrogateescape"))
        if flavour in _FLAVOURS:
            yield _FLAVOURS[flavour](path, version, f"{flavour} {version} {status.st_size} {status.st_mtime_ns}")
        elif named_by:
            raise _unknown(path, named_by, problem)


def _path_of_versions(cache: ContentCache) -> str:
    return os.path.join(cache.root, _VERSIONS)


def _kept_versions(cache: ContentCache) -> dict[str, list[str]]:
    """Read the file of versions; nothing where it is missing or damaged."""
    content = cache.read(_path_of_versions(cache), _MOST_VERSIONS_BYTES)
    text = content[0].decode("utf-8", "surrogateescape") if content else ""
    # The last piece is empty, or a line that was cut off.
    parts = [line.split("\t") for line in text.split("\n")[:-1]]
    return {part[0]: part[1:] for part in parts if len(part) == 3}


def _unknown(path: str, named_by: str, answer: str) -> CompilerNotFoundError:
    return CompilerNotFoundError(
        f"{path!r} (named by {named_by}) is not a shader compiler known here: {answer}",
        help=f"expected {_fitting(named_by)}",
    )


def _fitting(named_by: str) -> str:
    return (
        "dxc or libdxcompiler.so"
        if named_by == DXC_VARIABLE
        else "glslangValidator, glslang, or Arm's or Google's glslc"
    )


def _ask(path: str) -> tuple[str, str, str]:
    """Flavour, version and what went wrong. The flavour is ``""`` when nothing was learned, ``"other"`` for an answer
    that no known compiler gives."""
    from scenario_runner.program import Processes

    try:
        done = Processes().run(version_command(path), folder=None, timeout_s=_PROBE_TIMEOUT_S)
    except OSError as error:
        return "", "", f"it cannot be started: {(error.strerror or str(error)).lower()}"
    if done.failure:
        return "", "", f"--version {done.failure}"
    for kind in COMPILERS:
        version = kind.version_in(done.output)
        if version is not None:
            return kind.flavour, version, ""
    return "other", "", f"--version says {done.output.strip()[:80]!r}"


TENSORS = b"GL_ARM_tensors"
_FORMAT = 1  # part of every key; raise it when the same key would give another module


class Job:
    """One shader. ``compilers`` can compile it, the preferred one first; ``batch`` is the one of them that tries it
    first, together with other shaders. Afterwards ``module`` is the SPIR-V that ``made_by`` wrote, or ``failure`` the
    error.
    """

    def __init__(
        self, request: CompileRequest, options: BuildOptions, assembled: Assembled, compilers: list[Compiler]
    ) -> None:
        self.request = request
        self.options = options
        self.assembled = assembled
        self.compilers = compilers
        batching = (
            compiler
            for compiler in compilers
            if compiler.batches(request, options, assembled, preferred=compiler is compilers[0])
        )
        self.batch = next(batching, None)
        self.module: bytes | None = None
        self.made_by: Compiler | None = None
        self.failure: ScenarioRunnerError | None = None

    def target(self, compiler: Compiler) -> str:
        """The Vulkan version that ``compiler`` is told to compile for."""
        return compiler.target_for(self.request.language, self.request.target, TENSORS in self.assembled.text)

    def key(self, compiler: Compiler) -> bytes:
        """Everything that the module comes from when ``compiler`` makes it."""
        request, options = self.request, self.options
        called = request.language, request.stage, request.entry, self.target(compiler), options.optimise, options.debug
        head = repr((_FORMAT, compiler.identity, called)).encode("utf-8", "backslashreplace")
        return head + b"\n" + self.assembled.text

    def load(self, cache: ContentCache | None) -> bool:
        """Take the module from the cache: that of the batch's compiler first. Return whether there is one."""
        if cache is None or self.assembled.opaque:
            return False
        for compiler in (self.batch, *self.compilers):
            self.module = None if compiler is None else cache.load(self.key(compiler))
            if self.module is not None:
                self.made_by = compiler
                return True
        return False


def check_request(request: CompileRequest) -> None:
    """Raise UsageError or ScenarioError for a target or an entry point that no compiler can be given."""
    if request.target not in TARGETS:
        raise UsageError(f"unknown target {request.target!r} (expected one of {', '.join(TARGETS)})")
    if not request.entry or "\0" in request.entry or request.entry.startswith("-"):
        raise ScenarioError(
            f"{request.entry!r} is not an entry point name (expected an identifier)", code="SR-JSON-005"
        )


def able_compilers(request: CompileRequest, text: bytes, compilers: list[Compiler]) -> list[Compiler]:
    """Choose those of ``compilers`` that fit a request. Raises CompilerNotFoundError naming what is missing."""
    language = request.language
    if not compilers:
        advice = f"{install_here('glslang')}, or name one by --glslang or {GLSLANG_VARIABLE}"
        if language == "HLSL":
            advice = dxc_install_line()
        raise CompilerNotFoundError(f"no {language} compiler was found", help=advice)
    able = compilers
    if language == "GLSL" and TENSORS in text:
        able = [compiler for compiler in able if compiler.knows_tensors]
        if not able:
            raise CompilerNotFoundError(
                f"the source uses GL_ARM_tensors, which {names(compilers)} does not know",
                help=f"install glslang 15.4 or newer, or Arm's glslc: {install_line()}",
            )
    if language == "GLSL" and request.entry != "main":
        knowing, able = able, [compiler for compiler in able if compiler.renames_entry]
        if not able:
            raise CompilerNotFoundError(
                f"a GLSL entry point called {request.entry!r} is not to be had from {names(knowing)}, only 'main'",
                help=f"leave 'entry' out, or {install_here('glslang')}",
            )
    return able
