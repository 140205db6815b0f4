"""The shader compilers of this machine, with versions, and the cache of modules.

A compiler's version is remembered by path, modification time and size, so that a warm run starts no process to ask.
"""

from __future__ import annotations

import os
import stat
import sys
import time
from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

from scenario_runner.content_cache import ContentCache
from scenario_runner.errors import CompilerNotFoundError
from scenario_runner.shaders.compilers import COMPILERS, DXC_VARIABLE, GLSLANG_VARIABLE, Compiler, numbers, on_path

MAX_ENTRIES = 4096
MAX_TOTAL_BYTES = 256 << 20


class ShaderCache(ContentCache):
    """Compiled modules, in the user's cache folder or under ``root``."""

    def __init__(self, root: str | None = None) -> None:
        super().__init__(root, "shaders", max_entries=MAX_ENTRIES, max_total_bytes=MAX_TOTAL_BYTES)


_PROBE_TIMEOUT_S = 10.0
_FLAVOURS = {kind.flavour: kind for kind in COMPILERS}
_MOST_PROBES_BYTES = 1 << 20
_PROBES = "compilers-1.tsv"
# A file may change again within the same step of the clock that its times are taken from.
_SETTLED_NS = 1_000_000_000
_NAMING = tuple(dict.fromkeys(kind.variable for kind in COMPILERS))
_VARIABLES = ("PATH", "HOME", "XDG_DATA_HOME")  # where compilers are searched for

# How long what was found is used without another look: a suite asks for each of its scenarios.
_LOOKED_AT_EVERY_S = 0.1


class _Search(NamedTuple):
    """What a search has found, and the files and folders, with their inodes and times, that it depends on; ``at_s`` is
    when these were looked at, as time.monotonic tells it."""

    found: list[Compiler]
    places: list[tuple[str, tuple[int, int] | None]]
    at_s: float


_searches: dict[tuple[str | None, ...], _Search] = {}  # the last one of each kind, by what was asked for


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
    cache = ShaderCache(cache_dir) if use_cache else None
    if compiler or any(map(os.environ.get, _NAMING)):
        return _search(compiler, language, cache)[0]
    asked = (language, cache_dir, *map(os.environ.get, _VARIABLES), *sys.path)
    known, now_s = _searches.get(asked), time.monotonic()
    if known is not None and now_s - known.at_s < _LOOKED_AT_EVERY_S:
        return list(known.found)
    if known is not None and all(_state(place) == state for place, state in known.places):
        _searches[asked] = known._replace(at_s=now_s)
    else:
        found, looked_at = _search(compiler, language, cache)
        known = _Search(found, [(place, _state(place)) for place in looked_at], now_s)
        newest_ns = max((state[1] for _, state in known.places if state is not None), default=0)
        if time.time_ns() - newest_ns > _SETTLED_NS:
            _searches[asked] = known
    return list(known.found)


def _state(path: str) -> tuple[int, int] | None:
    """What tells whether a file has changed, or a folder has other files; None where there is nothing."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    return status.st_ino, status.st_ctime_ns


def _search(
    compiler: str | None, language: str | None, cache: ShaderCache | None
) -> tuple[list[Compiler], Iterable[str]]:
    """The compilers, and the files and folders that were looked at."""
    memory = _Memory(cache)
    found: list[Compiler] = []
    looked_at: dict[str, None] = {}
    for variable in dict.fromkeys(kind.variable for kind in COMPILERS):
        kinds = [kind for kind in COMPILERS if kind.variable == variable]
        if language is not None and (found or not any(language in kind.languages for kind in kinds)):
            continue
        named, by = os.environ.get(variable), variable
        if compiler and variable == GLSLANG_VARIABLE:
            named, by = compiler, "--glslang"
        if named:
            usable = list(_probed(memory, [_named(named, by)], by))
            if variable == DXC_VARIABLE and not isinstance(usable[0], tuple(kinds)):
                raise _unknown(named, by, "it is not a dxc")
        else:
            paths = dict.fromkeys(path for kind in kinds for path in kind.candidates())
            looked_at.update(dict.fromkeys(map(os.path.dirname, paths)))
            looked_at.update(dict.fromkeys(filter(os.path.exists, paths)))
            usable = [one for one in _probed(memory, paths, None) if isinstance(one, tuple(kinds))]
            if variable == GLSLANG_VARIABLE:  # of one kind the newest first
                usable.sort(key=lambda one: numbers(one.version), reverse=True)
            usable.sort(key=lambda one: kinds.index(type(one)))
        found += usable
    memory.save()
    return [one for one in found if language is None or language in one.languages], looked_at


def names(compilers: Iterable[Compiler]) -> str:
    """Compilers in a message: their paths and versions."""
    return " or ".join(f"{one.path} ({one.version})" for one in compilers)


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


def _probed(memory: _Memory, paths: Iterable[str], named_by: str | None) -> Iterator[Compiler]:
    """The compilers among the files ``paths``, asking those that the memory does not know."""

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
            yield _FLAVOURS[flavour](path, version, identity)
        elif named_by:
            raise _unknown(path, named_by, said or "--version says nothing known")


def _unknown(path: str, named_by: str, said: str) -> CompilerNotFoundError:
    return CompilerNotFoundError(
        f"{path!r} (named by {named_by}) is not a shader compiler known here: {said}",
        help=f"expected {_fitting(named_by)}",
    )


def _fitting(named_by: str) -> str:
    return (
        "dxc or libdxcompiler.so"
        if named_by == DXC_VARIABLE
        else "glslangValidator, glslang, or Arm's or Google's glslc"
    )


def _ask(path: str) -> tuple[tuple[str, str], str]:
    """(flavour, version) and what went wrong. The flavour is ``""`` when nothing was learned, ``"other"`` for an answer
    that no known compiler gives."""
    from scenario_runner.shaders.processes import make_runnable, run_program

    answers: dict[tuple[str, ...], str] = {}
    for kind in COMPILERS:
        question = kind.question(path)
        if question is None:
            continue
        if tuple(question) not in answers:
            try:
                make_runnable(question[0])
                done = run_program(question, folder=None, timeout_s=_PROBE_TIMEOUT_S)
            except OSError as error:
                return ("", ""), f"it cannot be started: {(error.strerror or str(error)).lower()}"
            if done.failure:
                return ("", ""), f"--version {done.failure}"
            answers[tuple(question)] = done.output
        version = kind.version_in(answers[tuple(question)])
        if version is not None:
            return (kind.flavour, version), ""
    said = " ".join(answers.values()).strip()[:80]
    return ("other", ""), f"--version says {said!r}"


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
