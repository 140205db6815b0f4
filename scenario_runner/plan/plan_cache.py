"""Plans of earlier runs, so that a scenario that did not change is not parsed, checked and planned again.

A plan follows from the scenario's text and from what was read of the files it names. The text is the key; the rest,
the facts, is read again and compared: the headers of .npy files, the bytes of raw_data, the SPIR-V of every shader
(through the shader cache, which looks at sources, includes and compilers). If any of them differs, nothing of the old
plan is used. What this saves is the import of pydantic and of all that reads scenarios: more than half of a small run.
"""

from __future__ import annotations

import marshal
import os
import sys
import zlib
from collections.abc import Sequence
from typing import Any, NamedTuple

from scenario_runner import progress
from scenario_runner.content_cache import ContentCache, program_version
from scenario_runner.diagnostics import Diagnostic
from scenario_runner.errors import ScenarioRunnerError
from scenario_runner.files.source import SourceFile, file_identity
from scenario_runner.kinds import load
from scenario_runner.plan.model.plan import Plan
from scenario_runner.plan.sources import NpySource, decoded_image_value, encoded_image_value

_LARGEST_TEXT_BYTES = 16 << 20
_MOST_PLANS = 16384  # those of a suite must all fit: of one that is a little larger none would be found again
# To look for what must go is to look at each file of the folder, which takes as long as dozens of plans: for so many
# that are kept, or so many bytes, it is done about once, whichever process keeps them.
_KEPT_BETWEEN_LOOKS = 1024
_BYTES_BETWEEN_LOOKS = 16 << 20
_PLAIN = frozenset({int, str, bytes, bool, float, type(None)})
_RECORDS = "scenario_runner.plan.model."  # where the records of plans are


class Settings(NamedTuple):
    """What a plan depends on beside the scenario's text."""

    path: str
    output_dir: str | None
    compiler: str | None
    cache_dir: str | None
    sandbox: bool = False


class Facts(NamedTuple):
    """What was read of the files that a scenario names, beyond the headers that the plan's own sources carry.

    ``sources`` are (index of a shader's code in the plan, fields of the `CompileRequest`), ``binaries`` (index, path),
    each with the code itself where the plan does not have it; ``contents`` (path, fields of the header, bytes if they
    were read), ``models`` (path, fields of the `Identity`).
    """

    sources: tuple[tuple[int | bytes, tuple[Any, ...]], ...] = ()
    binaries: tuple[tuple[int | bytes, str], ...] = ()
    contents: tuple[tuple[str, tuple[Any, ...], bytes | None], ...] = ()
    models: tuple[tuple[str, tuple[int, ...]], ...] = ()


class _NotKeptError(Exception):
    """The plan holds something that only lives in this process."""


class _StaleError(Exception):
    """A file is not what it was."""


class PlanCache:
    """The kept plan of one scenario file under given settings.

    ``text`` is what `load` read: a plan that `store` is given must be made from it, not from a second reading.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._cache = ContentCache(settings.cache_dir, "plans", max_entries=_MOST_PLANS, max_total_bytes=256 << 20)
        self._key: bytes | None = None
        self.text: bytes | None = None

    def load(self) -> Plan | None:
        """The plan, if it was kept and every file is what it was; what is wrong shows when the plan is made anew."""
        key = self._made_key()
        kept = None if key is None else self._cache.load(key)
        if kept is None:
            return None
        try:
            facts, encoded = marshal.loads(kept)
            plan: Plan = _decoded(encoded)
            _compare(plan, Facts(*facts), self._settings)
        except Exception:
            return None  # stale, or an entry that is not ours: whatever it decodes to, the plan is made anew
        return plan

    def store(self, plan: Plan, facts: Facts) -> None:
        """Keep a plan; one with sources that only live in this process is not kept."""
        if self._key is None:
            return  # `load` saw no text worth keeping
        try:
            value = marshal.dumps((tuple(facts), _encoded(plan)))
        except _NotKeptError:
            return
        self._cache.store(self._key, value)
        chances = 1 + len(value) * _KEPT_BETWEEN_LOOKS // _BYTES_BETWEEN_LOOKS
        if zlib.crc32(self._key) % _KEPT_BETWEEN_LOOKS < chances:
            self._cache.evict()

    def _made_key(self) -> bytes | None:
        try:
            with SourceFile(self._settings.path) as file:
                if file.size_bytes > _LARGEST_TEXT_BYTES:
                    return None
                self.text = file.read(file.size_bytes)
            settings = repr((tuple(self._settings), os.getcwd(), sys.version, program_version())).encode()
        except (ScenarioRunnerError, OSError):
            return None  # loading the scenario says what is wrong
        self._key = settings + b"\0" + self.text
        return self._key


def _compiled(requests: Sequence[tuple[Any, ...]], settings: Settings) -> Sequence[bytes]:
    from scenario_runner.shaders import CompileRequest, compile_all

    wanted = [CompileRequest(*fields) for fields in requests]
    with progress.phase("compile", "shaders"):
        return compile_all(wanted, compiler=settings.compiler, cache_dir=settings.cache_dir)


def _compare(plan: Plan, facts: Facts, settings: Settings) -> None:
    """Raise _StaleError where a file differs from what the plan was made of (headers were compared on decoding)."""
    for path, identity in facts.models:
        if file_identity(path) != identity:
            raise _StaleError(path)
    for path, header, content in facts.contents:
        source = NpySource(path)
        if source.header != header:
            raise _StaleError(path)
        if content is not None:
            data = bytearray(source.size_bytes)
            source.read_into(memoryview(data))
            if data != content:
                raise _StaleError(path)
    codes = plan.shader_codes if facts.binaries or facts.sources else []
    for index, path in facts.binaries:
        with SourceFile(path) as file:
            if file.read(file.size_bytes) != (index if isinstance(index, bytes) else codes[index]):
                raise _StaleError(path)
    if facts.sources:
        compiled = _compiled([fields for _, fields in facts.sources], settings)
        for (index, _), code in zip(facts.sources, compiled, strict=True):
            if code != (index if isinstance(index, bytes) else codes[index]):
                raise _StaleError("a shader")


def _is_flat(value: Any) -> bool:
    return type(value) in _PLAIN or (type(value) is tuple and all(type(item) in _PLAIN for item in value))


def _encoded(value: Any) -> Any:
    """``value`` in types that marshal knows; tuples are marked with what they stand for."""
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is tuple:
        if all(type(item) in _PLAIN for item in value):
            return ("plain", value)
        first = type(value[0])
        if _is_record(first) and all(type(item) is first and all(map(_is_flat, item)) for item in value):
            return ("rows", _name(first), [tuple(item) for item in value])  # ten thousand dispatches, say
        return ("tuple", [_encoded(item) for item in value])
    if kind is dict:
        return ("dict", list(value), [_encoded(item) for item in value.values()])
    if kind is NpySource:
        return ("npy", value.path, tuple(value.header))
    if _is_record(kind):
        return ("record", _name(kind), [_encoded(item) for item in value])
    if kind is frozenset:
        return ("set", sorted(value))
    if kind.__name__ == "ConstantData" and value.part is not None and value.part.identity.settled:
        return ("constant", (value.part.path, tuple(value.part.identity), *value.part[2:]))
    if kind.__module__ in ("scenario_runner.formats", "scenario_runner.plan.sources"):
        encoded = encoded_image_value(value)
        if encoded is not None:
            return ("image value", encoded)
    raise _NotKeptError(kind)


def _decoded(value: Any) -> Any:
    if type(value) is not tuple:
        return value
    match value[0]:
        case "plain":
            return value[1]
        case "rows":
            return tuple(map(load(value[1])._make, value[2]))
        case "tuple":
            return tuple(map(_decoded, value[1]))
        case "dict":
            return dict(zip(value[1], map(_decoded, value[2]), strict=True))
        case "npy":
            source = NpySource(value[1])
            if tuple(source.header) != value[2]:
                raise _StaleError(value[1])
            return source
        case "set":
            return frozenset(value[1])
        case "constant":
            from scenario_runner.plan.model.commands import ConstantData, FilePart

            path, identity, start_bytes, size_bytes = value[1]
            found = file_identity(path)
            if found is None or found != identity:
                raise _StaleError(path)
            return ConstantData(FilePart(path, found, start_bytes, size_bytes))
        case "image value":
            decoded = decoded_image_value(value[1])
            if decoded is None:
                raise _StaleError(value[1])
            return decoded
        case _:
            return load(value[1])._make(map(_decoded, value[2]))


def _is_record(kind: Any) -> bool:
    return kind is Diagnostic or (kind.__module__.startswith(_RECORDS) and issubclass(kind, tuple))


def _name(kind: Any) -> str:
    """What stands for a record in the file, as in the registry of kinds."""
    return f"{kind.__module__.removeprefix('scenario_runner.')}:{kind.__name__}"
