"""Functions that a worker of Dask calls on its host: keep files, lay them out for items, and have shards run.

Files are kept in the user's cache folder, named by the SHA-256 of their content. They are sent once, appear when they
are complete, and are copied (never linked) to where a scenario finds them, so that a run cannot change them.

A file /a/b of the host that started the suite stands at SCRATCH/a/b here, so that relative paths mean the same. SCRATCH
is removed from all paths in results.

Workers of Dask may have no children by multiprocessing, so the supervisor of a shard is a process of its own. Arguments
of the functions are JSON.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from tempfile import TemporaryFile
from typing import IO, Any, Final, NamedTuple

from scenario_runner import __version__
from scenario_runner.content_cache import bound, default_cache_dir, distrust
from scenario_runner.diagnostics import Diagnostic
from scenario_runner.errors import ScenarioRunnerError, error_of
from scenario_runner.files.source import reason_of
from scenario_runner.suite.cluster.jobs import Job
from scenario_runner.suite.hashes import file_hash, program_hash
from scenario_runner.suite.records import Item

KIND: Final = "contents"
HOST_CANNOT_KEEP_FILES: Final = "SR-CLUSTER-008"
_SUFFIX: Final = ".content"
_MOST_FILES: Final = 100_000
_MOST_BYTES: Final = 8 << 30


class Piece(NamedTuple):
    """Part of a file with this hash: its bytes from ``offset`` on. ``is_last``: the file ends with it."""

    hash: str
    offset: int
    data: bytes
    is_last: bool


class ContentStore:
    """The store of this user on this host. Its errors are those of SR-CLUSTER-008."""

    def __init__(self) -> None:
        self._root = default_cache_dir()
        self._folder = os.path.join(self._root, KIND)
        # Several workers, of one host or of hosts with one home folder, may be sent the same file at the same time.
        self._receiver = f"{socket.gethostname()}-{os.getpid()}"
        try:
            for folder in (self._root, self._folder):
                os.makedirs(folder, mode=0o700, exist_ok=True)
                if reason := distrust(os.stat(folder)):
                    raise _error(folder, reason)
        except OSError as error:
            raise _error(self._folder, reason_of(error)) from error

    def path(self, hash: str) -> str:
        """Where the file with this hash is, if it is there."""
        return os.path.join(self._folder, f"{hash}{_SUFFIX}")

    def missing(self, hashes: Iterable[str]) -> list[str]:
        """Those that are not here. The others count as used now, so that they stay."""
        lacks = []
        for hash in hashes:
            try:
                os.utime(self.path(hash))
            except OSError:
                lacks.append(hash)
        return lacks

    def receive(self, pieces: Iterable[Piece]) -> None:
        """Add pieces, which come in their order. A file whose content does not have its hash is dropped."""
        for piece in pieces:
            temporary = os.path.join(self._folder, f"{piece.hash}.{self._receiver}.tmp")
            try:
                with open(temporary, "r+b" if piece.offset else "wb", opener=_private) as file:
                    file.seek(piece.offset)
                    file.write(piece.data)
                    file.truncate()
                if piece.is_last:
                    self._complete(piece.hash, temporary)
            except OSError as error:
                raise _error(temporary, reason_of(error)) from error

    def _complete(self, hash: str, temporary: str) -> None:
        with open(temporary, "rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if found == hash:
            os.replace(temporary, self.path(hash))
        else:
            os.unlink(temporary)

    def evict(self) -> None:
        """Drop what was used longest ago where there is too much. Not while a shard is being laid out."""
        bound(self._root, KIND, _MOST_FILES, _MOST_BYTES)


def _error(path: str, reason: str) -> ScenarioRunnerError:
    message = f"files of suites cannot be kept there: {reason}"
    return error_of([Diagnostic(HOST_CANNOT_KEEP_FILES, "error", None, message, None, path)])


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


class Layout:
    """Life cycle: items are placed, run, and `clear` removes their files."""

    def __init__(self, store: ContentStore, folder: str) -> None:
        """``folder`` need not exist; its path must occur nowhere else in what a run says."""
        self._store = store
        self._folder = folder
        self._placed: dict[str, str] = {}

    def place(self, job: Job) -> Item:
        """Copy the files of an item to where its scenario finds them; the item as it is here.

        Raises ScenarioRunnerError where a file cannot be had, with the code HOST_CANNOT_KEEP_FILES where that is so
        because of this host.
        """
        for path in job.absolute:
            if file_hash(path) != job.files[path]:
                raise _refusal(
                    "SR-CLUSTER-005",
                    job.item.path,
                    f"{path!r} is an absolute path, and this host has no such file with the same content",
                )
        for path, hash in job.files.items():
            if self._placed.get(path) == hash:
                continue
            target = self.here(path)
            try:
                os.makedirs(os.path.dirname(target), exist_ok=True)
                shutil.copyfile(self._store.path(hash), target)
            except FileNotFoundError:
                message = "it changed while the suite ran, so that this host has not got it"
                raise _refusal("SR-CLUSTER-006", path, message) from None
            except OSError as error:
                raise _refusal(HOST_CANNOT_KEEP_FILES, path, f"it cannot be copied: {reason_of(error)}") from error
            self._placed[path] = hash
        item = job.item
        expectations = None if item.expectations is None else self.here(item.expectations)
        if expectations is None or item.expectations in job.files:
            return Item(item.id, self.here(item.path), expectations)
        raise _refusal("SR-CLUSTER-006", item.expectations or "", "the expectations cannot be read")

    def here(self, path: str) -> str:
        """Where a file of the other host is on this one."""
        return self._folder + os.path.abspath(path)

    def there(self, said: Any) -> Any:
        """JSON with all paths as they are on the other host."""
        if isinstance(said, str):
            return said.replace(self._folder, "")
        if isinstance(said, dict):
            return {self.there(key): self.there(value) for key, value in said.items()}
        if isinstance(said, list | tuple):
            return [self.there(each) for each in said]
        return said

    def clear(self) -> None:
        """Remove the files."""
        shutil.rmtree(self._folder, ignore_errors=True)
        self._placed.clear()


def _refusal(code: str, path: str, message: str) -> ScenarioRunnerError:
    help = "name files relative to the scenario" if code == "SR-CLUSTER-005" else None
    return error_of([Diagnostic(code, "error", None, message, help, path)])


_LAST_BYTES: Final = 2000
_TOGETHER_S: Final = 0.03


class _Supervisor(NamedTuple):
    process: subprocess.Popen[bytes]
    orders: IO[bytes]
    answers: IO[bytes]
    said: IO[bytes]  # what it writes to standard error


_supervisors: dict[str, _Supervisor] = {}
_ended: set[str] = set()


def describe() -> dict[str, str]:
    """This host, and the program on it."""

    return {"host": socket.gethostname(), "version": __version__, "program": program_hash({}), "pid": str(os.getpid())}


def missing(hashes: Sequence[str]) -> list[str]:
    """Those files that are not here."""
    return ContentStore().missing(hashes)


def receive(pieces: Sequence[Piece]) -> None:
    """Keep files."""
    ContentStore().receive(pieces)


def read(path: str, offset: int, most_bytes: int) -> bytes:
    """A part of a file about a failure."""
    with open(path, "rb") as file:
        file.seek(offset)
        return file.read(most_bytes)


def remove(paths: Sequence[str]) -> None:
    """Remove files about failures that have been read."""
    for path in paths:
        with suppress(OSError):
            os.unlink(path)


def run_shard(session: str, order: str, shard: str, topic: str) -> None:
    """Run a shard, and say what comes of it in lines under a topic; the last line says that it has ended, and with
    ``failure`` what the supervisor has written to standard error where it ended before its time.

    This is the task that Dask knows of. It must not be run twice at a time in one process. It returns nothing: where
    Dask fails to fetch what a task returned it runs it again.
    """
    from distributed import get_worker

    if session in _ended:
        return
    supervisor = _supervisors.get(session)
    if supervisor is None or supervisor.process.poll() is not None:
        supervisor = _supervisors[session] = _start(order)
    worker = get_worker()
    with suppress(OSError):  # it has ended; what it said is below
        _tell(supervisor, shard)
    for lines in _together(supervisor.answers.fileno()):
        worker.log_event(topic, lines.decode())
        if lines.rpartition(b"\n")[2].startswith(b'{"end"'):
            return
    code = supervisor.process.wait()
    _supervisors.pop(session, None)
    failure = _last_words(supervisor.said) or f"it ended with {code}"
    worker.log_event(topic, json.dumps({"end": [], "devices": [], "failure": failure}))


def _together(pipe: int) -> Iterator[bytes]:
    """The lines that come through a pipe, those of a moment at once: to send one costs as much as a small item."""
    rest = b""
    while data := os.read(pipe, 1 << 20):
        lines, newline, rest = (rest + data).rpartition(b"\n")
        if newline:
            yield lines
        time.sleep(_TOGETHER_S)


def _start(order: str) -> _Supervisor:

    said = TemporaryFile()  # noqa: SIM115  (for as long as the process)
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "scenario_runner.suite.cluster.shard"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=said,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)},
        process_group=0,  # Ctrl-C is for whoever started the suite
    )
    assert process.stdin is not None
    assert process.stdout is not None
    supervisor = _Supervisor(process, process.stdin, process.stdout, said)
    _tell(supervisor, order)
    return supervisor


def _tell(supervisor: _Supervisor, line: str) -> None:
    supervisor.orders.write(f"{line}\n".encode())
    supervisor.orders.flush()


def _last_words(said: IO[bytes]) -> str:
    with said:
        said.seek(0)
        return said.read()[-_LAST_BYTES:].decode(errors="replace").strip()


def stop(session: str) -> None:
    """Begin no further item of the shard that runs."""
    supervisor = _supervisors.get(session)
    if supervisor is not None and supervisor.process.poll() is None:
        supervisor.process.send_signal(signal.SIGTERM)


def end(session: str) -> None:
    """End the supervisor of a suite, and what it runs. It gets no further shard."""
    _ended.add(session)
    supervisor = _supervisors.pop(session, None)
    if supervisor is not None:
        with suppress(OSError):
            supervisor.orders.close()
