"""The plan cache: plans from earlier runs. Unchanged scenarios skip parsing, checks and planning.

A plan follows from the scenario's text, which is the cache key, and from facts about files: .npy headers, the bytes in
raw_data, and each shader's SPIR-V. The shader cache compares sources, includes and compilers. The plan cache reads the
facts again, and drops the plan if a fact differs. A small run saves more than half the time, above all by not importing
pydantic.
"""

from __future__ import annotations

import os
import sys
from _pickle import dumps, loads  # pickle itself would import re: 5 ms
from typing import NamedTuple

from scenario_runner.errors import ScenarioRunnerError
from scenario_runner.errors.installation import program_version
from scenario_runner.files.cache_folder import ContentCache
from scenario_runner.files.input import Identity, ParameterizedFile, SourceFile, file_identity
from scenario_runner.plan.plan import Plan
from scenario_runner.plan.records import CompilerOptions
from scenario_runner.plan.sources import NpySource, content_of
from scenario_runner.processes import progress
from scenario_runner.shaders.compile import compile_all
from scenario_runner.shaders.compilers.search import find_validator
from scenario_runner.shaders.source import CompileRequest

_LARGEST_TEXT_BYTES = 16 << 20


class Facts(NamedTuple):
    """Facts about a scenario's files, beyond the headers in the plan's own sources.

    ``sources`` pairs compile requests with the compiled modules, and ``binaries`` pairs paths with modules.
    ``contents`` pairs raw_data with their bytes if planning read them. ``models`` pairs paths with file identities.
    """

    sources: tuple[tuple[CompileRequest, bytes], ...]
    binaries: tuple[tuple[str, bytes], ...]
    contents: tuple[tuple[NpySource, bytes | None], ...]
    models: tuple[tuple[str, Identity], ...]


class PlanCache:
    """The stored plan for the scenario file ``path``; the plan depends on the other arguments, too.

    `load` reads ``text``. A plan for `store` must be made from this text, not from a second reading.
    """

    def __init__(
        self,
        path: str | ParameterizedFile,
        output_dir: str | None = None,
        compiler: CompilerOptions = CompilerOptions(),  # noqa: B008 - a tuple
        *,
        sandbox: bool = False,
    ) -> None:
        self._path = path
        self._compiler = compiler
        self._settings = (path, output_dir, *compiler, sandbox)
        self._cache = ContentCache(compiler.cache_dir, "plans")
        self._key: bytes | None = None
        self.text: bytes | None = None

    def load(self) -> Plan | None:
        """Return the stored plan if no file has changed, else None; planning again shows any errors."""
        key = self._made_key()
        kept = None if key is None else self._cache.load(key)
        if kept is None:
            return None
        try:
            plan, facts = loads(kept)  # fails if a source's file has changed
            return plan if _is_current(facts, self._compiler) else None
        except Exception:
            return None  # stale, or written by another program

    def store(self, plan: Plan, facts: Facts) -> None:
        """Store a plan, unless some sources exist only in this process."""
        if self._key is None:
            return  # `load` could not read the text, or the text is too large
        try:
            value = dumps((plan, facts))
        except TypeError:
            return
        self._cache.store(self._key, value)

    def _made_key(self) -> bytes | None:
        try:
            with SourceFile(self._path) as file:
                if file.size_bytes > _LARGEST_TEXT_BYTES:
                    return None
                self.text = file.read(file.size_bytes)
            checked_by = find_validator()
            settings = repr((self._settings, os.getcwd(), sys.version, program_version(), checked_by)).encode()
        except (ScenarioRunnerError, OSError):
            return None  # loading the scenario reports the error
        self._key = settings + b"\0" + self.text
        return self._key


def _is_current(facts: Facts, compiler: CompilerOptions) -> bool:
    """Return whether all files are unchanged since planning."""
    if any(file_identity(path) != identity for path, identity in facts.models):
        return False
    if any(content is not None and content_of(source) != content for source, content in facts.contents):
        return False
    for path, code in facts.binaries:
        with SourceFile(path) as file:
            if file.read(file.size_bytes) != code:
                return False
    if not facts.sources:
        return True
    requests, codes = zip(*facts.sources, strict=True)
    with progress.phase("compile", "shaders"):
        return compile_all(requests, compiler=compiler.compiler, cache_dir=compiler.cache_dir) == list(codes)
