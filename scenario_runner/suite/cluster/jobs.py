"""What a host is told of an item: its files by their content, and what lists expect of it."""

from __future__ import annotations

import json
import os
from typing import Any, NamedTuple

from scenario_runner.streams import read_file
from scenario_runner.suite.hashes import files_of
from scenario_runner.suite.records import Item
from scenario_runner.suite.verdicts import Expected


class Job(NamedTuple):
    """An item for another host.

    ``files`` has what a run of it reads: absolute path on the host that started the suite → SHA-256 of the content.
    ``absolute`` are those paths of them that a file of the item spells as they are here.
    """

    item: Item
    expected: Expected
    files: dict[str, str]
    absolute: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        return self._asdict()

    @classmethod
    def of_json(cls, given: dict[str, Any]) -> Job:
        return cls(Item(*given["item"]), Expected(*given["expected"]), dict(given["files"]), tuple(given["absolute"]))


def job_of(item: Item, expected: Expected) -> Job:
    """The item with its files as they are now. Those that are missing here will be missing there."""
    files: dict[str, str] = {}
    absolute: list[str] = []
    folder = os.path.join(os.path.dirname(item.path), "")
    spelled = b"".join(_content(path) for path in (item.path, item.expectations) if path is not None)
    for path, hash in files_of(item):
        if not hash:
            continue
        # "a/../b" is b on another host, where no part of it is a link.
        plain = os.path.normpath(path)
        files[plain] = hash
        if not path.startswith(folder) or json.dumps(path).encode() in spelled:
            absolute.append(plain)
    return Job(item, expected, files, tuple(absolute))


def _content(path: str) -> bytes:
    try:
        return read_file(path)
    except OSError:
        return b""
