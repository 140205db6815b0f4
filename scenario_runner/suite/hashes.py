"""What a result depends on, as hashes: the files of an item, this program, and how it was called."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from scenario_runner.scenario.declared_files import declared_files
from scenario_runner.suite.expectations.places import expected_folder
from scenario_runner.suite.records import Hashes, Item

_MOST_KEPT: Final = 20_000
_MISSING: Final = "missing"
# Files that expectations name; in JSON a quote inside of a string is escaped, so that these can only be keys.
_EXPECTED: Final = re.compile(rb'"(?:file|mask)"\s*:\s*("(?:[^"\\]|\\.)+")')
_INCLUDE_DIRS: Final = re.compile(rb'"include_dirs"\s*:\s*(\[[^\]]*\])')
_INCLUDE: Final = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*["<]([^">\n]+)[">]', re.MULTILINE)
_NO_SOURCES: Final = (".npy", ".dds", ".png", ".spv", ".vgf")
_MOST_SOURCE_BYTES: Final = 1 << 20


def program_hash(options: Mapping[str, Any]) -> str:
    """SHA-256 over the source of this program and the options that change what a run does."""
    package = Path(__file__).resolve().parents[1]
    hash = hashlib.sha256(json.dumps(options, sort_keys=True, default=str).encode())
    for path in sorted(package.rglob("*.py")):
        hash.update(f"{path.relative_to(package).as_posix()}\n".encode())
        hash.update(path.read_bytes())
    return hash.hexdigest()


class Hasher:
    """The hashes of items. The content of a file is read once while its size and its times stay the same.

    What a scenario depends on is the files that it names as sources, and those that shader sources include; what its
    expectations depend on is the files that they name, and those in the folder ``expected``.
    """

    def __init__(self, program: str) -> None:
        self._program = program

    def hashes(self, item: Item) -> Hashes:
        """Those of an item as its files are now. A file that cannot be read counts as one that is missing."""
        text, check = _content(item.path), _content(item.expectations)
        scenario = _MISSING if text is None else _digest(text)
        inputs = _of_files(_inputs(item.path, text or b""))
        expected = _of_files(_expected(item.path, (text or b"") + (check or b"")))
        return Hashes(scenario, inputs, _digest((check or b"") + expected.encode()), self._program)


def file_hash(path: str) -> str:
    """SHA-256 of a file's content; what is no file, or cannot be read, is missing."""
    try:
        status = os.stat(path)
        return _hash_of(path, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    except (OSError, ValueError):
        return _MISSING


def _inputs(path: str, text: bytes) -> Iterator[str]:
    folder = os.path.dirname(path)
    sources = declared_files(text.decode("utf-8", "replace"), folder).reads
    dirs = [os.path.join(folder, each) for found in _INCLUDE_DIRS.findall(text) for each in _strings(found)]
    known: set[str] = set()
    waiting = list(sources)
    while waiting:
        source = waiting.pop()
        if source in known:
            continue
        known.add(source)
        yield source
        if not source.endswith(_NO_SOURCES):
            for name in _includes(source):
                found = (os.path.join(each, name) for each in (os.path.dirname(source), *dirs))
                waiting += [each for each in found if os.path.isfile(each)][:1]


def _expected(path: str, texts: bytes) -> Iterator[str]:
    folder = os.path.dirname(path)
    for found in _EXPECTED.findall(texts):
        yield from (os.path.join(folder, each) for each in _strings(b"[" + found + b"]"))
    for parent, folders, names in os.walk(expected_folder(path)):
        folders.sort()
        yield from (os.path.join(parent, name) for name in sorted(names))


def _strings(array: bytes) -> list[str]:
    try:
        return [each for each in json.loads(array) if isinstance(each, str) and "\0" not in each]
    except ValueError:
        return []


def _includes(path: str) -> tuple[str, ...]:
    try:
        status = os.stat(path)
        if status.st_size > _MOST_SOURCE_BYTES:
            return ()
        return _includes_of(path, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    except (OSError, ValueError):
        return ()


def _content(path: str | None) -> bytes | None:
    try:
        return None if path is None else Path(path).read_bytes()
    except (OSError, ValueError):
        return None


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _of_files(paths: Iterator[str]) -> str:
    """One hash of the contents of files, in their order."""
    return _digest("\n".join(file_hash(path) for path in paths).encode())


@lru_cache(_MOST_KEPT)
def _hash_of(path: str, size_bytes: int, modified_ns: int, changed_ns: int) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@lru_cache(_MOST_KEPT)
def _includes_of(path: str, size_bytes: int, modified_ns: int, changed_ns: int) -> tuple[str, ...]:
    return tuple(found.decode("utf-8", "replace") for found in _INCLUDE.findall(Path(path).read_bytes()))
