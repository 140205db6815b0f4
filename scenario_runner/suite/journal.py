"""The journal of a suite: JSON lines, written as results arrive.

The first line is a `Header`, the last one an `End`, each other line a `Result`; a suite that was resumed has written
another header before its own results. Of several results of an item the last one counts. Each line is one write at the
end of the file, so that whatever kills the process leaves whole lines, but for the last one.
"""

from __future__ import annotations

import errno
import fcntl
import json
import mmap
import os
import time
from collections.abc import Mapping
from socket import gethostname
from typing import Any, Final, Literal, NamedTuple

from scenario_runner import __version__
from scenario_runner.files.source import reason_of
from scenario_runner.suite.problems import refuse
from scenario_runner.suite.records import Result
from scenario_runner.suite.reports.text import Repeat

VERSION: Final = 2
"""Version of the format; a reader refuses others."""
FILE_NAME: Final = "journal.jsonl"
PREVIOUS_NAME: Final = "journal.previous.jsonl"

_dumps: Final = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode


Ended = Literal["complete", "stopped", "interrupted", "stopped by an error"]


class Header(NamedTuple):
    """The header that the results after it have in common.

    ``program`` is the version of this program, ``program_hash`` that of `hashes.program_hash`, ``started`` the time in
    seconds since 1970. ``command`` is what the suite was called with, ``runner`` the options that change what a run
    does, and ``repeat`` tells how an item runs again. ``items`` is the number of items that are to have a
    result, None where it is not known yet. ``timeout_s`` is the time limit of items that have none of their own.
    """

    journal: int
    program: str
    program_hash: str
    host: str
    started: float
    command: tuple[str, ...] = ()
    runner: Mapping[str, Any] = {}
    repeat: Repeat = Repeat()
    items: int | None = None
    timeout_s: float = 60.0


class End(NamedTuple):
    """The end of the suite of the header before it; one that was killed has none.

    Only one that is ``complete`` has a result of every item. ``items`` is as in `Header`. ``devices`` are the names of
    the devices by their UUIDs.
    """

    end: Ended
    items: int | None = None
    devices: Mapping[str, str] = {}


def header(program_hash: str, **about: Any) -> Header:
    """The header of a suite that starts now, on this machine."""
    return Header(VERSION, __version__, program_hash, gethostname(), time.time(), **about)


class Journal:
    """A journal that is written. Life cycle: opened and locked, a header, results as they come, an end, closed.

    An older journal of the folder becomes ``journal.previous.jsonl``, unless the new results are added to it
    (``resume``). Raises FileError where another suite writes to it, or where the folder cannot be written to.
    """

    def __init__(self, folder: str, *, resume: bool = False) -> None:
        self.path = os.path.join(folder, FILE_NAME)
        self.is_lost = False  # removed or replaced while it was written
        self._descriptor = -1
        try:
            os.makedirs(folder, exist_ok=True)
            self._descriptor = _opened(self.path)
            size_bytes = os.fstat(self._descriptor).st_size
            if size_bytes and resume:
                self._end_last_line()
            elif size_bytes:
                self._begin_anew(os.path.join(folder, PREVIOUS_NAME))
        except OSError as error:
            self.close()
            refuse("SR-FILE-015", error.filename or self.path, f"the journal cannot be written: {reason_of(error)}")

    def begin(self, header: Header) -> None:
        """Write what the results that follow have in common."""
        self._write({**header._asdict(), "repeat": header.repeat._asdict()})

    def add(self, result: Result) -> None:
        """Write a result. It stays, whatever happens to this process."""
        self._write(result.as_json())

    def end(self, end: End) -> None:
        """Write how the suite ended, and with which devices."""
        self._write(end._asdict())

    def close(self) -> None:
        """Let other suites write to it; may be called twice."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _write(self, value: Mapping[str, Any]) -> None:
        # what is left in a text of bytes that were none stands in no JSON file
        line = _dumps(value).encode("utf-8", "replace") + b"\n"
        try:
            self._check_place()
            if os.write(self._descriptor, line) < len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            help = "the results in it stay: make room, or whatever else is missing, and go on with --resume"
            refuse("SR-FILE-015", self.path, f"the journal cannot be written: {reason_of(error)}", help)

    def _check_place(self) -> None:
        """Raise FileError where the journal is no longer at its path: what was written to it then would be lost."""
        try:
            self.is_lost = not os.path.samestat(os.stat(self.path), os.fstat(self._descriptor))
        except FileNotFoundError:
            self.is_lost = True
        if self.is_lost:
            message = "the journal was removed or replaced while the suite ran, or the folder of the results was"
            refuse("SR-FILE-015", self.path, message, "leave the folder alone while a suite runs, and run it again")

    def _end_last_line(self) -> None:
        """Remove what a killed process has left of a line."""
        with mmap.mmap(self._descriptor, 0, access=mmap.ACCESS_READ) as content:
            end = content.rfind(b"\n") + 1
        os.ftruncate(self._descriptor, end)

    def _begin_anew(self, previous: str) -> None:
        """Keep the journal of an earlier run under another name; nobody else can begin one meanwhile."""
        os.replace(self.path, previous)
        old, self._descriptor = self._descriptor, -1
        try:
            self._descriptor = _opened(self.path)
        finally:
            os.close(old)


def _opened(path: str) -> int:
    """A descriptor that holds the lock on the journal. Raises OSError, and FileError where it is in use.

    The lock is one of the process: workers that outlive it do not keep it. So this process must open the file nowhere
    else while it writes, since closing any of its descriptors would give the lock up.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
    is_ours = False
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        is_ours = os.path.samestat(os.fstat(descriptor), os.stat(path))
    except (BlockingIOError, PermissionError, FileNotFoundError):
        pass  # another suite has it, or has just moved it away
    except OSError:
        os.close(descriptor)
        raise
    if not is_ours:
        os.close(descriptor)
        help = "give each suite a --results folder of its own; 'scenario-runner report' merges their journals"
        refuse("SR-SUITE-010", path, "another suite writes to this journal", help)
    return descriptor
