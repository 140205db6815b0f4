"""Plans of earlier runs, so that a scenario that did not change is not parsed, checked and planned again.

A plan follows from the scenario's text and from what was read of the files it names. The text is the key; the rest,
the facts, is read again and compared: the headers of .npy files, the bytes of raw_data, the SPIR-V of every shader
(through the shader cache, which looks at sources, includes and compilers). If any of them differs, nothing of the old
plan is used. What this saves is the import of pydantic and of all that reads scenarios: more than half of a small run.
"""

from __future__ import annotations

import os
import sys
import zlib
from _pickle import dumps, loads  # without the import of re that pickle itself takes: 5 ms
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from scenario_runner.errors import ScenarioRunnerError
from scenario_runner.errors.version import program_version
from scenario_runner.files.cache_folder import ContentCache
from scenario_runner.files.input import Identity, ParameterizedFile, SourceFile, file_identity
from scenario_runner.plan.plan import Plan
from scenario_runner.plan.records import CompilerOptions
from scenario_runner.plan.sources import ArraySource, NpySource, content_of
from scenario_runner.processes import progress
from scenario_runner.shaders.compile import compile_all
from scenario_runner.shaders.compilers.search import find_validator
from scenario_runner.shaders.source import CompileRequest

if TYPE_CHECKING:
    from scenario_runner.plan.commands import CommandContext
    from scenario_runner.scenario import Scenario, Shader

_LARGEST_TEXT_BYTES = 16 << 20
# To look for what must go is to look at each file of the folder, which takes as long as dozens of plans: for so many
# that are kept, or so many bytes, it is done about once, whichever process keeps them.
_KEPT_BETWEEN_LOOKS = 1024
_BYTES_BETWEEN_LOOKS = 16 << 20


class Facts(NamedTuple):
    """Facts that were read of the files that a scenario names, beyond the headers that the plan's own sources carry.

    ``sources`` are compilations with the module that each gave, ``binaries`` paths with their modules, ``contents`` the
    raw_data with their bytes if they were read, ``models`` paths with what each file was.
    """

    sources: tuple[tuple[CompileRequest, bytes], ...]
    binaries: tuple[tuple[str, bytes], ...]
    contents: tuple[tuple[NpySource, bytes | None], ...]
    models: tuple[tuple[str, Identity], ...]


def plan_of_file(
    path: str | ParameterizedFile, output_dir: str | None, compiler: CompilerOptions, *, sandbox: bool
) -> Plan:
    """The plan of a scenario file, the kept one where nothing changed since. Raises as `plan.resolve.resolve`."""
    cache = PlanCache(path, output_dir, compiler, sandbox=sandbox)
    plan = cache.load()
    if plan is not None:
        return plan
    from scenario_runner.scenario.loader import load, loads

    with progress.phase("parse", "scenario"):
        parameters = path.parameters if isinstance(path, ParameterizedFile) else None
        scenario = load(path) if cache.text is None else loads(cache.text, os.fspath(path), parameters=parameters)
    plan, facts = resolve_to_keep(scenario, output_dir=output_dir, compiler=compiler)
    if facts is not None:
        cache.store(plan, facts)
    return plan


def resolve_to_keep(
    scenario: Scenario,
    *,
    output_dir: str | None = None,
    compiler: CompilerOptions = CompilerOptions(),  # noqa: B008 - a tuple
) -> tuple[Plan, Facts | None]:
    """As `plan.resolve.resolve`, with the facts to keep beside the plan; None where the plan cannot be kept."""
    from scenario_runner.plan.resolve import resolve_with_context

    plan, context, shaders = resolve_with_context(scenario, {}, (), output_dir, compiler)
    return plan, _facts(context, shaders)


def _facts(context: CommandContext, shaders: Iterable[Shader]) -> Facts | None:
    """The facts of a plan, from what was read while it was made; None when the plan cannot be kept."""
    from scenario_runner.plan.shader_modules import compile_request

    scenario, loaded = context.scenario, context.shaders
    models = []
    for graph in () if context.graphs is None else context.graphs.graphs.values():
        if graph.identity is None or not graph.identity.settled:
            return None
        models.append((graph.path, graph.identity))
    sources, binaries = [], []
    for shader in shaders:
        code = loaded[shader.uid].code
        if shader.type != "SPIR-V":
            sources.append((compile_request(scenario, shader), code))
        elif isinstance(shader.src, str):  # what a model brings itself is as old as its file
            binaries.append((os.path.join(scenario.base_dir, shader.src), code))
    contents = []
    for uid, source in context.push_constants.sources.items():
        if isinstance(source, ArraySource):
            return None
        if isinstance(source, NpySource):  # an object in src is a part of the text
            contents.append((source, context.push_constants.read.get(uid)))
    return Facts(tuple(sources), tuple(binaries), tuple(contents), tuple(models))


class PlanCache:
    """The kept plan of the scenario file ``path``; the other arguments are what a plan depends on besides.

    ``text`` is what `load` read: a plan that `store` is given must be made from it, not from a second reading.
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
        """The plan, if it was kept and every file is what it was; what is wrong shows when the plan is made anew."""
        key = self._made_key()
        kept = None if key is None else self._cache.load(key)
        if kept is None:
            return None
        try:
            plan, facts = loads(kept)  # fails where a source of the plan is not what it was
            return plan if _is_current(facts, self._compiler) else None
        except Exception:
            return None  # stale, or an entry that is not ours: whatever it decodes to, the plan is made anew

    def store(self, plan: Plan, facts: Facts) -> None:
        """Keep a plan; one with sources that only live in this process is not kept."""
        if self._key is None:
            return  # `load` saw no text worth keeping
        try:
            value = dumps((plan, facts))
        except TypeError:
            return
        self._cache.store(self._key, value)
        chances = 1 + len(value) * _KEPT_BETWEEN_LOOKS // _BYTES_BETWEEN_LOOKS
        if zlib.crc32(self._key) % _KEPT_BETWEEN_LOOKS < chances:
            self._cache.evict()

    def _made_key(self) -> bytes | None:
        try:
            with SourceFile(self._path) as file:
                if file.size_bytes > _LARGEST_TEXT_BYTES:
                    return None
                self.text = file.read(file.size_bytes)
            checked_by = find_validator()
            settings = repr((self._settings, os.getcwd(), sys.version, program_version(), checked_by)).encode()
        except (ScenarioRunnerError, OSError):
            return None  # loading the scenario says what is wrong
        self._key = settings + b"\0" + self.text
        return self._key


def _is_current(facts: Facts, compiler: CompilerOptions) -> bool:
    """Return whether the files are what they were when the plan was made."""
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
