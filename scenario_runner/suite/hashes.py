"""What a result depends on, as hashes: the files of an item, this program, and how it was called."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from scenario_runner.scenario.declared_files import declared_files
from scenario_runner.suite.records import Hashes, Item

_MOST_KEPT: Final = 20_000
_MISSING: Final = "missing"


def program_hash(options: Mapping[str, Any]) -> str:
    """SHA-256 over the source of this program and the options that change what a run does."""
    package = Path(__file__).resolve().parents[1]
    hash = hashlib.sha256(json.dumps(options, sort_keys=True, default=str).encode())
    for path in sorted(package.rglob("*.py")):
        hash.update(f"{path.relative_to(package).as_posix()}\n".encode())
        hash.update(path.read_bytes())
    return hash.hexdigest()


class Hasher:
    """The hashes of items. The content of a file is read once while its size and its times stay the same."""

    def __init__(self, program: str) -> None:
        self._program = program

    def hashes(self, item: Item) -> Hashes:
        """Those of an item as its files are now. A file that cannot be read counts as one that is missing."""
        try:
            with open(item.path, "rb") as file:
                text = file.read()
        except (OSError, ValueError):
            return Hashes(_MISSING, "", self._expectations(item), self._program)
        inputs = hashlib.sha256()
        named = declared_files(text.decode("utf-8", "replace"), os.path.dirname(item.path))
        for path in named.reads:
            inputs.update(f"{file_hash(path)}\n".encode())
        return Hashes(hashlib.sha256(text).hexdigest(), inputs.hexdigest(), self._expectations(item), self._program)

    def _expectations(self, item: Item) -> str:
        return "" if item.expectations is None else file_hash(item.expectations)


def file_hash(path: str) -> str:
    """SHA-256 of a file's content; that of a folder, such as one of includes, or of no file, says just that."""
    try:
        status = os.stat(path)
        return _hash_of(path, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    except (OSError, ValueError):
        return _MISSING


@lru_cache(_MOST_KEPT)
def _hash_of(path: str, size_bytes: int, modified_ns: int, changed_ns: int) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
