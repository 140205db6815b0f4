"""Files and streams that are read. Each way in which reading can fail is a `FileError` that begins with the path."""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import NamedTuple

from scenario_runner.errors import FileError, file_error, read_error
from scenario_runner.errors.text import reason_of
from scenario_runner.files.sandbox import open_file

# Files that are models by their extension, also those of frameworks, which have to be lowered first.
MODEL_EXTENSIONS = (".vgf", ".pte", ".tosa", ".tflite", ".pt", ".pth", ".pt2")
LOWERING_HELP = "lower it with the VGF backend of ExecuTorch, and run the .pte file (docs/pytorch.md)"
_TFLITE_HELP = "tosa-converter-for-tflite converts it to TOSA, and scenario-runner convert to VGF (docs/pytorch.md)"


def is_model(scenario: object) -> bool:
    """Return whether a scenario is the path of a model, by its extension."""
    return isinstance(scenario, str | os.PathLike) and os.fspath(scenario).lower().endswith(MODEL_EXTENSIONS)


class ParameterizedFile(NamedTuple):
    """The path of a scenario file with the values of its parameters, in place of a path."""

    path: str
    parameters: Mapping[str, object]

    def __fspath__(self) -> str:
        return self.path


_CHUNK_SIZE_BYTES = 64 << 20  # one system call of this size still lets Ctrl-C through several times a second
_CLOCK_STEP_NS = 20_000_000  # file systems take times from a clock that moves in steps of up to 10 ms
# Bytes that go through memory of our own at once, where mapped memory is out of the system's reach.
GUARDED_CHUNK_SIZE_BYTES = 1 << 20


class Identity(NamedTuple):
    """Identity of a file: tells it from another one, and from itself after a change, without reading it.

    ``settled`` is false where the last change is so recent that the next one may have the same time: then an equal
    identity does not prove equal content.
    """

    device: int
    inode: int
    size_bytes: int
    modified_ns: int
    changed_ns: int
    settled: bool

    def is_same_file(self, other: Identity) -> bool:
        """Return whether nothing that these identities can tell differs."""
        return self[:5] == other[:5]


def file_identity(path: str) -> Identity | None:
    """The identity of the file at ``path``; None where there is none."""
    try:
        return _identity(os.stat(path))
    except (OSError, ValueError):
        return None


def _identity(status: os.stat_result) -> Identity:
    last_ns = max(status.st_mtime_ns, status.st_ctime_ns)
    settled = not 0 <= time.time_ns() - last_ns < _CLOCK_STEP_NS
    return Identity(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns, settled)


def read_start(
    source: SourceFile, size_bytes: int, signature: bytes, kind: str, damaged: Callable[[str, str], FileError]
) -> bytes:
    """Read the first bytes of a file of this kind, such as "a PNG file", and check its signature.

    They are fewer than ``size_bytes`` where the file is shorter. Raises what ``damaged`` makes of path and message.
    """
    start = source.read(size_bytes)
    if not start:
        raise damaged(source.path, f"is empty, expected {kind}")
    begin = start[: len(signature)]
    if begin != signature:
        raise damaged(source.path, f"is not {kind}: it begins with {begin!r}, expected {signature!r}")
    return start


class SourceFile:
    """A regular file open for reading; ``size_bytes`` is its size when it was opened, ``identity`` what it was then.

    ``descriptor`` stays this object's.

    Pipes, devices and folders are refused at once (opening does not wait for a pipe's writer). Reading is stateless
    (``preadv``), so that threads may read parts of one file side by side. Raises `FileError`, and `SandboxError` for
    what the sandbox forbids.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self.descriptor = -1
        try:
            self.descriptor = open_file(self.path)
            status = os.fstat(self.descriptor)
            if not stat.S_ISREG(status.st_mode):
                kind = "a folder" if stat.S_ISDIR(status.st_mode) else "a pipe, a device or a socket"
                raise file_error(self.path, f"is {kind}, expected a file")
        except BaseException as error:
            self.close()
            if not isinstance(error, OSError | ValueError):
                raise
            raise read_error(self.path, "cannot be opened", error) from error
        self.size_bytes = status.st_size
        self.identity = _identity(status)

    def read_into(self, destination: memoryview, offset: int = 0) -> None:
        """Fill ``destination`` (writable, contiguous) with the file's bytes from ``offset`` on, without a copy."""
        if not destination.nbytes:
            return  # an array with an empty axis cannot be cast
        view = destination.cast("B")
        done = 0
        while done < len(view):
            part = view[done : done + _CHUNK_SIZE_BYTES]
            try:
                count = self._read_some(part, offset + done)
            except OSError as error:
                raise file_error(self.path, f"cannot be read: {reason_of(error)}") from error
            if count == 0:
                raise file_error(
                    self.path,
                    f"ends after {offset + done} bytes, expected at least {offset + len(view)} bytes (truncated?)",
                )
            done += count

    def read(self, size_bytes: int, offset: int = 0) -> bytes:
        """At most ``size_bytes`` bytes from ``offset`` on; fewer only where the file ends (as it was when opened)."""
        count = max(0, min(size_bytes, self.size_bytes - offset))
        if count <= _CHUNK_SIZE_BYTES and hasattr(os, "pread"):  # else Windows
            try:
                data = os.pread(self.descriptor, count, offset)
            except OSError as error:
                raise file_error(self.path, f"cannot be read: {reason_of(error)}") from error
            if len(data) == count:
                return data
        buffer = bytearray(count)
        self.read_into(memoryview(buffer), offset)
        return bytes(buffer)

    def current_identity(self) -> Identity:
        """Read the identity of the file now."""
        return _identity(os.fstat(self.descriptor))

    def close(self) -> None:
        """Give the descriptor back; may be called twice."""
        descriptor, self.descriptor = self.descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def __enter__(self) -> SourceFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _read_some(self, part: memoryview, offset: int) -> int:
        if not hasattr(os, "preadv"):  # Windows
            os.lseek(self.descriptor, offset, os.SEEK_SET)
            return _copied(os.read(self.descriptor, len(part)), part)
        try:
            return os.preadv(self.descriptor, [part], offset)
        except OSError as error:
            if error.errno != errno.EFAULT:
                raise
        # memory that a capture tool guards: its handler lets us write there, but not the system
        return _copied(os.pread(self.descriptor, min(len(part), GUARDED_CHUNK_SIZE_BYTES), offset), part)


def _copied(data: bytes, part: memoryview) -> int:
    """Copy bytes to the start of a view; returns how many."""
    part[: len(data)] = data
    return len(data)


@contextmanager
def lease(file: SourceFile) -> Iterator[bool]:
    """Hold a read lease on an open file as long as the block runs; gives whether the system granted it.

    It does not on the files of other users (except to root), on files that are open for writing, on some file systems,
    and outside of Linux.
    """
    try:
        import fcntl
        import signal

        # The kernel announces waiting writers by a signal. The usual one, SIGIO, would end the process; this one is
        # ignored by default.
        fcntl.fcntl(file.descriptor, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(file.descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except (ImportError, AttributeError, OSError):
        yield False
        return
    try:
        yield True
    finally:
        with suppress(OSError):
            fcntl.fcntl(file.descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)


MAX_BYTES = 64 << 20
"""Most bytes of a file that is read whole: text, not data."""

MAX_SCENARIO_BYTES = 32 << 20
"""Largest scenario file. A command takes about 300 bytes; what is larger than this is data and belongs in files."""

_AT_ONCE_BYTES = 1 << 16
_WRITER_S = 5.0  # in which a process must open a named pipe for writing


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

    Raises OSError, also for more than ``most_bytes`` and for a named pipe that no process opens for writing,
    ValueError for a path with a NUL character, and SandboxError.
    """
    descriptor = open_file(path)
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


def framework_file(start: bytes | memoryview) -> tuple[str, str] | None:
    """Return which file of a framework begins with ``start``, and how it becomes a VGF file; None for other files."""
    start = bytes(start[:8])
    if start.startswith((b"PK\3\4", b"\x80\2")):  # a zip archive, or a pickle of PyTorch before 1.6
        return "a zip archive or pickle, such as a file of torch.save or torch.export.save", LOWERING_HELP
    return ("a TFLite model", _TFLITE_HELP) if start[4:] == b"TFL3" else None
