"""What a worker of Dask does on a host: it keeps files, and has shards run by a supervisor that it starts.

Workers of Dask may have no children by multiprocessing, so that the supervisor is a process of its own. These functions
are called over the network; the arguments of the shards are JSON.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import IO, Final, NamedTuple

from scenario_runner.suite.cluster.contents import ContentStore, Piece

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
    from scenario_runner import __version__
    from scenario_runner.suite.hashes import program_hash

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
    from tempfile import TemporaryFile

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
