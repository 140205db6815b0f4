"""The index of a dump: its name, what marks it, and reading it."""

from __future__ import annotations

import json
import os
from typing import Any, NamedTuple

from scenario_runner.close_names import close_files_help
from scenario_runner.errors import FileError
from scenario_runner.files.source import file_error, reason_of

INDEX = "index.json"
MARK = "scenario-runner dump"
VERSION = 1


class DumpEntry(NamedTuple):
    """One file of a dump; ``command`` is None for the start of the run.

    ``element`` is what shaders see in a buffer. An image in several files has ``mip`` and, with depth and stencil, an
    ``aspect``; one in a single file has ``mips`` levels in it.
    """

    iteration: int
    command: int | None
    segment: int | None
    resource: str
    mip: int | None
    aspect: str | None
    command_kind: str | None
    pointer: str | None
    format: str | None
    element: str | None
    mips: int | None
    file: str
    sha256: str

    @property
    def key(self) -> tuple[Any, ...]:
        """What is the same in another dump of the scenario."""
        return self[:6]


class DumpIndex(NamedTuple):
    """A dump: ``commands`` are the kinds of the scenario's commands, ``complete`` tells that its run did not fail."""

    folder: str
    complete: bool
    commands: tuple[str, ...]
    entries: tuple[DumpEntry, ...]


_TYPES: dict[str, tuple[type, ...]] = {
    "iteration": (int,),
    "command": (int, type(None)),
    "segment": (int, type(None)),
    "resource": (str,),
    "mip": (int, type(None)),
    "aspect": (str, type(None)),
    "command_kind": (str, type(None)),
    "pointer": (str, type(None)),
    "format": (str, type(None)),
    "element": (str, type(None)),
    "mips": (int, type(None)),
    "file": (str,),
    "sha256": (str,),
}


def is_index(path: str) -> bool:
    """Whether a file is the index of a dump, of any version."""
    try:
        return _read(path).get("kind") == MARK
    except FileError:
        return False


def read_index(folder: str) -> DumpIndex:
    """The index of the dump in a folder. Raises FileError for a folder without one, and for one that is damaged."""
    path = os.path.join(folder, INDEX)
    found = _read(path)
    if found.get("kind") != MARK:
        raise file_error(path, "is not the index of a dump", help="--dump-all DIR writes one")
    if found.get("version") != VERSION:
        raise file_error(path, f"has the version {found.get('version')!r:.40}, expected {VERSION}")
    commands, files = found.get("commands"), found.get("files")
    if not isinstance(commands, list) or not isinstance(files, list) or not all(isinstance(c, str) for c in commands):
        raise file_error(path, "is damaged: it has no lists of commands and files")
    entries = tuple(_entry(path, number, each) for number, each in enumerate(files))
    if len({entry.key for entry in entries}) != len(entries):
        raise file_error(path, "is damaged: it lists a resource twice after one command")
    return DumpIndex(folder, found.get("complete") is True, tuple(commands), entries)


def _read(path: str) -> dict[str, Any]:
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
    except OSError as error:
        raise file_error(path, f"cannot be read: {reason_of(error)}", help=close_files_help(path, error)) from error
    except (ValueError, RecursionError) as error:
        raise file_error(path, f"is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise file_error(path, "is not the index of a dump", help="--dump-all DIR writes one")
    return found


def _entry(path: str, number: int, found: Any) -> DumpEntry:
    if not isinstance(found, dict):
        raise file_error(path, f"is damaged: files/{number} is not an object")
    for name, types in _TYPES.items():
        if not isinstance(found.get(name), types) or isinstance(found.get(name), bool):
            raise file_error(path, f"is damaged: files/{number}/{name} is {found.get(name)!r:.40}")
    name = os.path.normpath(found["file"])
    if os.path.isabs(name) or name.split(os.sep)[0] == os.pardir:
        raise file_error(path, f"is damaged: files/{number}/file leads out of the folder")
    return DumpEntry(**{field: found[field] for field in DumpEntry._fields})
