"""JSON values over a stream socket between the supervisor and a worker, a line each.

A worker's memory may be damaged by its driver: what it sends is checked, and read in a way that cannot harm.
"""

from __future__ import annotations

import json
import os
import signal
import socket
from contextlib import suppress
from typing import Any, Final

MOST_BYTES: Final = 64 << 20
"""The longest line."""

STACK_SIGNAL: Final = signal.SIGUSR2
"""Lets a worker that hangs write its Python stack."""

_PIECE_BYTES: Final = 1 << 16
_MOST_TEXT_BYTES: Final = 16 << 10
_dumps: Final = json.JSONEncoder(separators=(",", ":")).encode
_loads: Final = json.JSONDecoder().raw_decode


class GarbageError(ValueError):
    """What was received is no line of JSON."""


class Channel:
    """One end. `receive` waits if the socket does."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self._rest = b""

    def send(self, *values: Any) -> None:
        """Send a list of values. Raises OSError."""
        self.connection.sendall(_dumps(values).encode() + b"\n")

    def receive(self) -> list[list[Any]]:
        """The lists that have arrived: none where the socket does not wait and nothing has.

        Raises EOFError when the other end is closed, GarbageError, and OSError.
        """
        while True:
            try:
                piece = self.connection.recv(_PIECE_BYTES)
            except BlockingIOError:
                return []
            if not piece:
                raise EOFError
            *lines, self._rest = (self._rest + piece if self._rest else piece).split(b"\n")
            if lines:
                return [_list(line) for line in lines]
            if len(self._rest) > MOST_BYTES:
                raise GarbageError(f"a line of more than {MOST_BYTES} bytes")

    def shut(self) -> None:
        """Let the other end find that nothing more comes."""
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)


def _list(line: bytes) -> list[Any]:
    try:
        value, _ = _loads(line.decode())
    except (ValueError, RecursionError) as error:
        raise GarbageError(f"{line[:40]!r}") from error
    if not isinstance(value, list) or not value:
        raise GarbageError(f"{line[:40]!r}")
    return value


def end_of(descriptor: int) -> str:
    """Read the last 16 KiB of a memory file as text."""
    size = os.fstat(descriptor).st_size
    return os.pread(descriptor, _MOST_TEXT_BYTES, max(0, size - _MOST_TEXT_BYTES)).decode("utf-8", "replace")
