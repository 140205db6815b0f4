"""Finds the shader compilers of this machine with their versions, spirv-val, and a shader's suitable compilers (`Job`).

A compiler's version is cached by path, modification time and size, so that a warm run starts no process to ask.
"""

import os
import stat
import sys
import time
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Literal, NamedTuple

from scenario_runner.errors import CompilerNotFoundError, ScenarioError, ScenarioRunnerError, UsageError
from scenario_runner.errors.installation import glslc_command_line, install_here
from scenario_runner.files.cache_folder import ContentCache
from scenario_runner.shaders.compilers.table import (
    COMPILERS,
    DXC_VARIABLE,
    GLSLANG_VARIABLE,
    Compiler,
    dxc_install_line,
    numbers,
    on_path,
    version_command,
)
from scenario_runner.shaders.source import TARGETS, CompileRequest, ShaderSource

_PROBE_TIMEOUT_S = 10.0
_FLAVOURS = {kind.flavour: kind for kind in COMPILERS}
_COMPILER_VARIABLES = tuple(dict.fromkeys(kind.variable for kind in COMPILERS))
_GLSLANG = "--glslang"
_GLSL_COMPILERS = "glslangValidator, glslang, or Arm's or Google's glslc"
# Programs that a variable or an option can name.
_PROGRAMS = {_GLSLANG: _GLSL_COMPILERS, GLSLANG_VARIABLE: _GLSL_COMPILERS, DXC_VARIABLE: "dxc or libdxcompiler.so"}
_SEARCH_VARIABLES = ("PATH", "HOME", "XDG_DATA_HOME")  # the places to search for compilers
_SEARCHED_EVERY_S = 1.0  # a suite searches for each scenario

_searches: dict[tuple[object, ...], tuple[list[Compiler], float]] = {}
"""Results and end times of searches, by their arguments and environment."""

_answers: dict[bytes, list[str]] = {}
"""Flavour and version of each compiler that this process has found."""


def find_compilers(
    compiler: str | None = None,
    *,
    language: Literal["GLSL", "HLSL"] | None = None,
    cache_dir: str | None = None,
    use_cache: bool = True,
) -> list[Compiler]:
    """Return the usable compilers, best first, optionally only for ``language``.

    A named compiler excludes others of the same kind: ``compiler`` (the command line's ``--glslang``; a path, or a name
    on PATH), else the variable SCENARIO_RUNNER_GLSLANG, and SCENARIO_RUNNER_DXC for HLSL. Otherwise, each class of
    `COMPILERS` lists its candidates, and each file counts once. glslang compiles HLSL only without dxc.

    Raises CompilerNotFoundError if a named compiler does not exist, does not start, or is unknown.
    """
    cache = ContentCache(cache_dir, "checked") if use_cache else None
    if compiler or any(map(os.environ.get, _COMPILER_VARIABLES)):
        return _search(compiler, language, cache)
    key = (language, cache_dir, use_cache, *map(os.environ.get, _SEARCH_VARIABLES), *sys.path)
    if key not in _searches or time.monotonic() - _searches[key][1] > _SEARCHED_EVERY_S:
        _searches[key] = _search(None, language, cache), time.monotonic()
    return list(_searches[key][0])


def search_again() -> None:
    """Drop the results of searches: compilers may just have been installed."""
    _searches.clear()


def _search(compiler: str | None, language: str | None, cache: ContentCache | None) -> list[Compiler]:
    compilers: list[Compiler] = []
    for variable in _COMPILER_VARIABLES:
        kinds = tuple(kind for kind in COMPILERS if kind.variable == variable)
        if language is not None and (compilers or not any(language in kind.languages for kind in kinds)):
            continue
        named, by = os.environ.get(variable), variable
        if compiler and variable == GLSLANG_VARIABLE:
            named, by = compiler, _GLSLANG
        if named:
            usable = list(_probed(cache, [_named(named, by)], by))
            if variable == DXC_VARIABLE and not isinstance(usable[0], kinds):
                raise _unknown(named, by, "it is not dxc")
        else:
            paths = dict.fromkeys(path for kind in kinds for path in kind.candidates())
            usable = [candidate for candidate in _probed(cache, paths, None) if isinstance(candidate, kinds)]
            if variable == GLSLANG_VARIABLE:  # the newest of each kind first
                usable.sort(key=lambda candidate: numbers(candidate.version), reverse=True)
            usable.sort(key=lambda candidate: kinds.index(type(candidate)))
        compilers += usable
    return [candidate for candidate in compilers if language is None or language in candidate.languages]


def names(compilers: Iterable[Compiler]) -> str:
    """Return the paths and versions of compilers for a message."""
    return " or ".join(f"{compiler.path} ({compiler.version})" for compiler in compilers)


def _named(name: str, by: str) -> str:
    for path in (*([] if os.path.dirname(name) else on_path(name)), os.path.abspath(name)):
        if os.path.isfile(path):
            return path
    raise CompilerNotFoundError(
        f"the shader compiler {name!r} (named by {by}) does not exist",
        help=f"name {_PROGRAMS[by]} by its path, or leave the choice to the program",
    )


def _probed(cache: ContentCache | None, paths: Iterable[str], named_by: str | None) -> Iterator[Compiler]:
    """Iterate over the compilers among the files ``paths``. Files that are not in the cache are started."""
    seen = set()
    for path, status in _regular_files(paths):
        if (status.st_dev, status.st_ino) in seen:
            continue
        seen.add((status.st_dev, status.st_ino))
        key = f"compiler {status.st_size} {status.st_mtime_ns} {path}".encode("utf-8", "surrogateescape")
        problem = "the output of --version is unknown"
        if key not in _answers and cache is not None and (kept := cache.load(key)) is not None:
            _answers[key] = kept.decode().split("\t")
        if key in _answers:
            flavour, version = _answers[key]
        else:
            flavour, version, problem = _ask(path)
            if flavour:
                _answers[key] = [flavour, version]
                if cache is not None:
                    cache.store(key, f"{flavour}\t{version}".encode())
        if flavour in _FLAVOURS:
            yield _FLAVOURS[flavour](path, version, f"{flavour} {version} {status.st_size} {status.st_mtime_ns}")
        elif named_by:
            raise _unknown(path, named_by, problem)


def _regular_files(paths: Iterable[str]) -> Iterator[tuple[str, os.stat_result]]:
    """Iterate over the regular files among paths, with their status."""
    for path in paths:
        try:
            status = os.stat(path)
        except (OSError, ValueError):
            continue
        if stat.S_ISREG(status.st_mode):
            yield path, status


def _unknown(path: str, named_by: str, answer: str) -> CompilerNotFoundError:
    return CompilerNotFoundError(
        f"{path!r} (named by {named_by}) is not a known shader compiler: {answer}",
        help=f"expected {_PROGRAMS[named_by]}",
    )


def _ask(path: str) -> tuple[str, str, str]:
    """Return flavour, version and problem of a compiler.

    The flavour is ``""`` if the file gave no answer, and ``"other"`` if no known compiler gives this answer.
    """
    from scenario_runner.shaders.compilers.compiler_processes import Processes

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


def check_request(request: CompileRequest) -> None:
    """Raise UsageError or ScenarioError for a target or an entry point that no compiler accepts."""
    if request.target not in TARGETS:
        raise UsageError(f"unknown target {request.target!r} (expected one of {', '.join(TARGETS)})")
    if not request.entry or "\0" in request.entry or request.entry.startswith("-"):
        raise ScenarioError(
            f"{request.entry!r} is not an entry point name (expected an identifier)", code="SR-JSON-005"
        )


def able_compilers(source: ShaderSource, compilers: list[Compiler]) -> list[Compiler]:
    """Choose the ``compilers`` that support a source. Raises CompilerNotFoundError with advice for the installation."""
    language, entry = source.request.language, source.request.entry
    if not compilers:
        advice = f"{install_here('glslang')}, or name one by --glslang or {GLSLANG_VARIABLE}"
        if language == "HLSL":
            advice = dxc_install_line()
        raise CompilerNotFoundError(f"no {language} compiler was found", help=advice)
    able = compilers
    if source.options.profile or source.options.dxc_words:
        able = [compiler for compiler in able if not compiler.hlsl_is_dated]
        if not able:
            message = f"the build_options are for dxc; {names(compilers)} does not know them"
            raise CompilerNotFoundError(message, help=dxc_install_line())
    if language == "GLSL" and source.has_tensors:
        able = [compiler for compiler in able if compiler.knows_tensors]
        if not able:
            raise CompilerNotFoundError(
                f"the source uses GL_ARM_tensors, which {names(compilers)} does not know",
                help=f"install glslang 15.4 or newer, or Arm's glslc: {glslc_command_line()}",
            )
    if language == "GLSL" and entry != "main":
        knowing, able = able, [compiler for compiler in able if compiler.renames_entry]
        if not able:
            raise CompilerNotFoundError(
                f"GLSL entry points must be called 'main' for {names(knowing)}, not {entry!r}",
                help=f"leave 'entry' out, or {install_here('glslang')}",
            )
    return able


VALIDATOR_VARIABLE = "SCENARIO_RUNNER_SPIRV_VAL"
OFF = "off"


class Validator(NamedTuple):
    """The program spirv-val. ``identity`` tells two builds apart."""

    path: str
    identity: str


def find_validator() -> Validator | None:
    """Return the spirv-val in SCENARIO_RUNNER_SPIRV_VAL (``off``: none), else on PATH; None if there is none.

    Raises UsageError if the variable names no program.
    """
    named = os.environ.get(VALIDATOR_VARIABLE)
    if named == OFF:
        return None
    if not named:
        return _validator_on_path(os.environ.get("PATH"), int(time.monotonic() / _SEARCHED_EVERY_S))
    validator = _first_validator([named])
    if validator is None:
        help = f"name spirv-val by its path, unset the variable, or set it to {OFF!r}"
        raise UsageError(f"{VALIDATOR_VARIABLE} names {named!r}, which is not a program", help=help)
    return validator


@lru_cache(1)
def _validator_on_path(path: str | None, turn: int) -> Validator | None:
    """Find spirv-val in the folders of the variable PATH. Each ``turn`` searches only once."""
    return _first_validator(on_path("spirv-val"))


def _first_validator(paths: Iterable[str]) -> Validator | None:
    for path, status in _regular_files(paths):
        if os.access(path, os.X_OK):
            return Validator(path, f"{path} {status.st_size} {status.st_mtime_ns}")
    return None


class Compiled(NamedTuple):
    """A SPIR-V module, the files that its source includes (as far as this program resolves includes), and its compiler.

    The compiler is None for a module that was given.
    """

    module: bytes
    includes: list[str]
    compiler: Compiler | None = None


_FORMAT = 3  # part of every key: raise it if the same key would mean another module


class Job:
    """A shader with the ``compilers`` that can compile it, best first. ``batch`` first tries it with other shaders."""

    def __init__(self, source: ShaderSource, compilers: list[Compiler]) -> None:
        self.source = source
        self.compilers = compilers
        batching = (compiler for compiler in compilers if compiler.batches(source, preferred=compiler is compilers[0]))
        self.batch = next(batching, None)
        self.result: Compiled | ScenarioRunnerError | None = None

    def finish(self, module: bytes, compiler: Compiler | None) -> None:
        """Store a compiled module as the result."""
        self.result = Compiled(module, self.source.files[1:], compiler)

    def key(self, compiler: Compiler) -> bytes:
        """Return the cache key: all inputs of the module that ``compiler`` would make."""
        request, options, target = self.source.request, self.source.options, compiler.target_for(self.source)
        called = request.language, request.stage, request.entry, target, options.optimise, options.debug
        whole = (_FORMAT, compiler.identity, called, options.profile, options.dxc_words)
        head = repr(whole).encode("utf-8", "backslashreplace")
        return head + b"\n" + self.source.text

    def load(self, cache: ContentCache) -> None:
        """Look for the module in the cache, first as the batch's compiler would make it."""
        for compiler in (self.batch, *self.compilers):
            module = None if compiler is None else cache.load(self.key(compiler))
            if module is not None:
                self.finish(module, compiler)
                return
