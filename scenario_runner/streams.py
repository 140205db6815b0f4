"""Files that are read whole, with a bound; and paths that lead to no file: standard input, pipes, devices."""

from __future__ import annotations

import errno
import os
import stat

MAX_BYTES = 64 << 20
"""Most bytes of a file that is read whole: text, not data."""

MAX_SCENARIO_BYTES = 32 << 20
"""Largest scenario file. A command takes about 300 bytes; what is larger than this is data and belongs in files."""

_AT_ONCE_BYTES = 1 << 16
_WRITER_S = 5.0  # in which a process must open a named pipe for writing
_OPEN_FLAGS = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)


def is_stream(path: str) -> bool:
    """Return whether a path is that of standard input, a pipe or a device: read once, and in no folder of its own."""
    if _is_descriptor(path):
        return True
    try:
        return not stat.S_ISREG(os.stat(path).st_mode)
    except (OSError, ValueError):
        return False


def _is_descriptor(path: str) -> bool:
    folder, name = os.path.split(path)
    return path == "/dev/stdin" or (
        name.isdecimal() and folder.startswith(("/dev/", "/proc/")) and folder.endswith("/fd")
    )


def read_file(path: str, most_bytes: int = MAX_BYTES) -> bytes:
    """All of a file, a pipe or a device.

    Raises OSError, also for more than ``most_bytes`` and for a named pipe that no process opens for writing, and
    ValueError for a path with a NUL character.
    """
    descriptor = os.open(path, _OPEN_FLAGS)  # which does not wait for the other end of a pipe
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or not status.st_size:  # those of /proc have no size
            may_lack_writer = stat.S_ISFIFO(status.st_mode) and not _is_descriptor(path)
            return _read_stream(descriptor, most_bytes, may_lack_writer=may_lack_writer)
        if status.st_size > most_bytes:
            raise _too_large(most_bytes)
        return os.read(descriptor, status.st_size)
    finally:
        os.close(descriptor)


def _read_stream(descriptor: int, most_bytes: int, *, may_lack_writer: bool) -> bytes:
    import select

    ready = select.poll()
    ready.register(descriptor, select.POLLIN)
    data = bytearray()
    waited = False
    while len(data) <= most_bytes:
        try:
            piece = os.read(descriptor, _AT_ONCE_BYTES)
        except BlockingIOError:  # there is a writer
            ready.poll()
            continue
        if piece:
            data += piece
        elif data or not may_lack_writer:
            return bytes(data)
        elif waited:
            raise OSError(errno.ENXIO, f"no process has opened the pipe for writing within {_WRITER_S:g} s")
        elif ready.poll(_WRITER_S * 1000):
            may_lack_writer = False
        else:
            waited = True  # a writer that has written nothing is noticed by reading
    raise _too_large(most_bytes)


def _too_large(most_bytes: int) -> OSError:
    return OSError(errno.EFBIG, f"it has more than {most_bytes >> 20} MiB")
