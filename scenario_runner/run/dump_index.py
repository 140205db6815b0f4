"""The index of a dump: its name, what marks it, writing it and reading it."""

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, BinaryIO, NamedTuple, get_type_hints

from scenario_runner.files.source import file_error, read_file, reason_of
from scenario_runner.text import close_files_help

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
        """The key of the same file in another dump of the scenario."""
        return self[:6]


class DumpIndex(NamedTuple):
    """A dump: ``commands`` are the kinds of the scenario's commands, ``complete`` tells that its run did not fail."""

    folder: str
    complete: bool
    commands: tuple[str, ...]
    entries: tuple[DumpEntry, ...]


class GrowingIndex:
    """The index of a dump whose run goes on: whole after each `add`, so that it stays where the process is killed.

    It replaces no file. Files that it has no room for are left out.
    """

    def __init__(self, path: str, head: Mapping[str, Any]) -> None:
        before, self._tail = _around({**head, "complete": False})
        self._separator = b"\n"
        self._end = 0
        self._file: BinaryIO | None = None
        with suppress(OSError):
            self._file = open(path, "xb", buffering=0)  # noqa: SIM115
        self._append(before)

    def add(self, entries: Sequence[Mapping[str, Any]]) -> None:
        """List more files."""
        self._append(self._separator + _lines(entries))
        self._separator = b",\n"

    def _append(self, text: bytes) -> None:
        if self._file is None:
            return
        try:
            self._file.seek(self._end)
            if self._file.write(text + self._tail) == len(text + self._tail):
                self._end += len(text)
                return
        except OSError:
            pass
        with suppress(OSError):
            if self._end:  # what was there before has its room
                self._file.truncate(self._end)
                self._file.seek(self._end)
                self._file.write(self._tail)
            else:
                os.unlink(self._file.name)
        self.close()

    def close(self) -> None:
        """Leave it as it is."""
        if self._file is not None:
            self._file.close()
            self._file = None


def index_text(head: Mapping[str, Any], entries: Sequence[Mapping[str, Any]], *, complete: bool) -> bytes:
    """The whole index; ``head`` has what is there beside the files and `complete`."""
    before, tail = _around({**head, "complete": complete})
    return before + b"\n" + _lines(entries) + tail


def _around(head: Mapping[str, Any]) -> tuple[bytes, bytes]:
    """The text before and behind the lines of the files."""
    text = json.dumps({"kind": MARK, "version": VERSION, **head, "files": []}, indent=1)
    return text.removesuffix("]\n}").encode(), b"\n ]\n}\n"


def _lines(entries: Sequence[Mapping[str, Any]]) -> bytes:
    return ",\n".join(f"  {json.dumps(entry)}" for entry in entries).encode()


def read_index(folder: str) -> DumpIndex:
    """The index of the dump in a folder. Raises FileError for a folder without one, and for one that is damaged."""
    if os.path.isfile(folder):
        above, name = os.path.split(folder)
        help = f"give its folder: {above or os.curdir}" if name == INDEX else None
        raise file_error(folder, "is a file, expected the folder of a dump", help=help)
    path, how = os.path.join(folder, INDEX), "--dump-all DIR writes one"
    if os.path.isdir(folder) and not os.path.lexists(path):
        raise file_error(folder, f"has no {INDEX}, so that it is not a dump", help=how)
    try:
        index = json.loads(read_file(path))
    except OSError as error:
        raise file_error(path, f"cannot be read: {reason_of(error)}", help=close_files_help(path, error)) from error
    except (ValueError, RecursionError) as error:
        raise file_error(path, f"is not JSON: {error}") from error
    if not isinstance(index, dict) or index.get("kind") != MARK:
        raise file_error(path, "is not the index of a dump", help=how)
    if index.get("version") != VERSION:
        raise file_error(path, f"has the version {index.get('version')!r:.40}, expected {VERSION}")
    commands, files = index.get("commands"), index.get("files")
    if not isinstance(commands, list) or not isinstance(files, list) or not all(isinstance(c, str) for c in commands):
        raise file_error(path, "is damaged: it has no lists of commands and files")
    entries = tuple(_entry(path, number, file) for number, file in enumerate(files))
    if len({entry.key for entry in entries}) != len(entries):
        raise file_error(path, "is damaged: it lists a resource twice after one command")
    return DumpIndex(folder, index.get("complete") is True, tuple(commands), entries)


def _entry(path: str, number: int, content: Any) -> DumpEntry:
    if not isinstance(content, dict):
        raise file_error(path, f"is damaged: files/{number} is not an object")
    for name, kind in get_type_hints(DumpEntry).items():
        value = content.get(name)
        if not isinstance(value, kind) or isinstance(value, bool):
            raise file_error(path, f"is damaged: files/{number}/{name} is {value!r:.40}")
    name = os.path.normpath(content["file"])
    if os.path.isabs(name) or name.split(os.sep)[0] == os.pardir:
        raise file_error(path, f"is damaged: files/{number}/file leads out of the folder")
    return DumpEntry(**{field: content[field] for field in DumpEntry._fields})
