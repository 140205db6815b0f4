"""Reading of files, streams and arrays. Every failure of a file is a `FileError` that begins with the path."""

from __future__ import annotations

import errno
import os
import stat
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple, TypeAlias, TypeGuard

from scenario_runner.errors import FileError, UsageError, file_error, read_error
from scenario_runner.errors.text import reason_of
from scenario_runner.files.sandbox import open_file

# The scenario of an item in a folder, and the expectations.
SCENARIO_FILE = "scenario.json"
CHECK_FILE = "check.json"
# Extensions of models, including frameworks' models, which must be lowered first.
MODEL_EXTENSIONS = (".vgf", ".pte", ".tosa", ".tflite", ".pt", ".pth", ".pt2")
LOWERING_HELP = "lower it with the VGF backend of ExecuTorch, and run the .pte file (docs/pytorch.md)"
_TFLITE_HELP = "tosa-converter-for-tflite converts it to TOSA, and scenario-runner convert to VGF (docs/pytorch.md)"
_VIEW_HELP = "scenario-runner view {path} shows it"
_SHADER_HELP = "scenario-runner init {path} writes a scenario for it"
NPY_SIGNATURE = b"\x93NUMPY"
PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
DDS_SIGNATURE = b"DDS "
VGF_SIGNATURE = b"VGF1"
SPIRV_SIGNATURES = (b"\x03\x02\x23\x07", b"\x07\x23\x02\x03")  # little endian, big endian
_SIGNATURES = (
    (
        (b"PK\3\4", b"\x80\2"),  # a zip archive, or a pickle of PyTorch before 1.6
        "a zip archive or pickle, such as a file of torch.save or torch.export.save",
        LOWERING_HELP,
    ),
    ((NPY_SIGNATURE,), "a NumPy file", _VIEW_HELP),
    ((PNG_SIGNATURE[:4],), "a PNG file", _VIEW_HELP),
    ((DDS_SIGNATURE,), "a DDS file", _VIEW_HELP),
    ((VGF_SIGNATURE,), "a VGF model", "scenario-runner vgf scenario {path} writes a scenario for it"),
    (SPIRV_SIGNATURES, "a SPIR-V module", _SHADER_HELP),
)
_SHADER_WORDS = {
    "an HLSL shader": (b"[numthreads(", b": register("),
    "a GLSL shader": (b"\n#version ", b"\nlayout(", b"\nvoid main("),
}
_START_BYTES = 1 << 16


def is_model(scenario: object) -> TypeGuard[str | os.PathLike[str]]:
    """Return whether a scenario is the path of a model, by the extension."""
    return isinstance(scenario, str | os.PathLike) and os.fspath(scenario).lower().endswith(MODEL_EXTENSIONS)


class ParameterizedFile(NamedTuple):
    """The path of a scenario file, with parameter values."""

    path: str
    parameters: Mapping[str, object]

    def __fspath__(self) -> str:
        return self.path


START_BYTES = 4 << 10
"""The bytes that reading a file's header takes from the file."""

_CHUNK_SIZE_BYTES = 64 << 20  # per system call, so that Ctrl-C is noticed several times a second
_CLOCK_STEP_NS = 20_000_000  # file system clocks move in steps of up to 10 ms
# Bytes that are copied at once if the system cannot reach mapped memory.
GUARDED_CHUNK_SIZE_BYTES = 1 << 20


class Identity(NamedTuple):
    """The identity of a file, which differs from other files and changes with the content.

    ``settled`` is false for a very recent change: the next change may have the same time, so that an equal identity
    does not prove equal content.
    """

    device: int
    inode: int
    size_bytes: int
    modified_ns: int
    changed_ns: int
    settled: bool

    def is_same_file(self, other: Identity) -> bool:
        """Return whether both identities have the same file, size and times."""
        return self[:5] == other[:5]


def file_identity(path: str) -> Identity | None:
    """Return the identity of the file at ``path``; None if there is no file."""
    try:
        return _identity(os.stat(path), time.time_ns())
    except (OSError, ValueError):
        return None


def _identity(status: os.stat_result, now_ns: int) -> Identity:
    last_ns = max(status.st_mtime_ns, status.st_ctime_ns)
    settled = not 0 <= now_ns - last_ns < _CLOCK_STEP_NS
    return Identity(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns, settled)


def read_start(
    source: SourceFile, size_bytes: int, signature: bytes, kind: str, damaged: Callable[[str, str], FileError]
) -> bytes:
    """Read the first bytes of a file and check the signature of its ``kind``, such as "a PNG file".

    A short file gives fewer bytes than ``size_bytes``. Raises the error that ``damaged`` makes of path and message.
    """
    start = source.read(size_bytes)
    if not start:
        raise damaged(source.path, f"is empty, expected {kind}")
    begin = start[: len(signature)]
    if begin != signature:
        if (other := recognized(start, source.path)) is not None:
            raise damaged(source.path, f"is {other[0]}, expected {kind}")
        raise damaged(source.path, f"is not {kind}: it begins with {begin!r}, expected {signature!r}")
    return start


class SourceFile:
    """A regular file open for reading; ``size_bytes`` is from the time of opening.

    Pipes, devices and folders are refused at once, without waiting for a pipe's writer. Reading has no position
    (``preadv``), so that threads may read the same file side by side. This object closes ``descriptor``. Raises
    `FileError`, and `SandboxError` for a file outside the sandbox.
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
        self._opened = status, time.time_ns()
        self._start = b""

    @property
    def identity(self) -> Identity:
        """The identity of the file when it was opened."""
        return _identity(*self._opened)

    def read_into(self, destination: memoryview, offset: int = 0) -> None:
        """Fill ``destination`` (writable, contiguous) with bytes from ``offset`` on, without a copy."""
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
        """Read ``size_bytes`` bytes from ``offset`` on, or fewer at the end. The size at opening counts.

        A read from the start keeps the first `START_BYTES` in memory, so later calls do not read them again.
        """
        count = max(0, min(size_bytes, self.size_bytes - offset))
        if offset + count <= len(self._start):
            return self._start[offset : offset + count]
        if count <= _CHUNK_SIZE_BYTES and hasattr(os, "pread"):  # Windows has none
            wanted = count if offset else max(count, min(START_BYTES, self.size_bytes))
            try:
                data = os.pread(self.descriptor, wanted, offset)
            except OSError as error:
                raise file_error(self.path, f"cannot be read: {reason_of(error)}") from error
            if not offset:
                self._start = data
            if len(data) >= count:
                return data[:count]
        buffer = bytearray(count)
        self.read_into(memoryview(buffer), offset)
        return bytes(buffer)

    def current_identity(self) -> Identity:
        """Read the identity of the file now."""
        return _identity(os.fstat(self.descriptor), time.time_ns())

    def close(self) -> None:
        """Close the file; may be called twice."""
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
        # a capture tool guards this memory: the tool's handler lets this process write there, but not the system
        return _copied(os.pread(self.descriptor, min(len(part), GUARDED_CHUNK_SIZE_BYTES), offset), part)


def _copied(data: bytes, part: memoryview) -> int:
    """Copy bytes to the start of a view. Return their number."""
    part[: len(data)] = data
    return len(data)


@contextmanager
def lease(file: SourceFile) -> Iterator[bool]:
    """Hold a read lease on an open file during the block. Yield whether the system granted it.

    The system refuses it for files of other users (except to root), for files that are open for writing, on some file
    systems, and outside Linux.
    """
    try:
        import fcntl
        import signal

        # The kernel announces waiting writers by a signal. The default signal SIGIO would end the process; SIGURG is
        # ignored.
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
"""Most bytes of a file that is read as a whole. Such files hold text, not data."""

MAX_SCENARIO_BYTES = 32 << 20
"""Most bytes of a scenario file. A command takes about 300 bytes; larger scenarios hold data that belong in files."""

_AT_ONCE_BYTES = 1 << 16
_WRITER_S = 5.0  # within this time a process must open a named pipe for writing


def is_stream(path: str) -> bool:
    """Return whether a path is standard input, a pipe or a device, which can be read once and has no folder."""
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
    """Read a file, a pipe or a device as a whole.

    Raises OSError, also for more than ``most_bytes`` and for a named pipe that no program writes. Raises ValueError
    for a path with a NUL character, and SandboxError.
    """
    descriptor = open_file(path)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or not status.st_size:  # files of /proc have the size 0
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
            waited = True  # the next read notices a writer that has written nothing
    raise _too_large(most_bytes)


def _too_large(most_bytes: int) -> OSError:
    return OSError(errno.EFBIG, f"it has more than {most_bytes >> 20} MiB")


def recognized(start: bytes | memoryview, path: str) -> tuple[str, str] | None:
    """Recognize a shader, an array, an image or a model by the first bytes of a file.

    Return the kind, such as "a PNG file", and a command or page for it. Return None for any other file.
    """
    start = bytes(start[:_START_BYTES])
    if start[4:8] == b"TFL3":
        return "a TFLite model", _TFLITE_HELP
    for signatures, kind, help in _SIGNATURES:
        if start.startswith(signatures):
            return kind, help.format(path=path)
    if not start.lstrip().startswith(b"{"):
        for kind, words in _SHADER_WORDS.items():
            if any(word in b"\n" + start for word in words):
                return kind, _SHADER_HELP.format(path=path)
    return None


ArrayLike: TypeAlias = Any
"""A caller's array: a NumPy array, an object with ``__array__`` or ``__dlpack__``, or a buffer of bytes."""

# Types of Vulkan that NumPy only has through ml_dtypes. Other float8 types use the same bits for other values.
_ML_TYPES = ("bfloat16", "float8_e4m3fn", "float8_e5m2")


def array_of(data: ArrayLike, name: str) -> ArrayLike:
    """Convert an object with ``__array__`` or ``__dlpack__`` to a NumPy array. Return other data unchanged.

    Tensors of PyTorch may require gradients, lie on a device, or have types that NumPy only has through ml_dtypes.
    Raises UsageError if the object refuses, as another library's tensor on a GPU may.
    """
    convert = next((protocol for protocol in ("__array__", "__dlpack__") if hasattr(data, protocol)), None)
    if convert is None:
        return data
    import numpy

    try:
        if hasattr(data, "detach"):
            data = data.detach().cpu()
            type_name = str(data.dtype).removeprefix("torch.")
            if type_name in _ML_TYPES:
                import ml_dtypes

                return data.float().numpy().astype(getattr(ml_dtypes, type_name))
        return numpy.asarray(data) if convert == "__array__" else numpy.from_dlpack(data)
    except Exception as error:  # of another library
        raise UsageError(f"input {name!r} is a {type(data).__name__} that gives no array: {error}") from error


def plain_bytes(data: ArrayLike, name: str) -> memoryview:
    """Return data as little-endian bytes in C order, if possible without a copy. Raises UsageError."""
    data = array_of(data, name)
    numpy = sys.modules.get("numpy")  # a caller with an array has imported NumPy
    if numpy is not None and isinstance(data, numpy.ndarray):
        if data.dtype.hasobject:
            raise UsageError(f"input {name!r} is an array of Python objects, expected numbers")
        if data.dtype.byteorder == ">" or (data.dtype.byteorder == "=" and sys.byteorder == "big"):
            data = data.astype(data.dtype.newbyteorder("<"))
        data = numpy.ascontiguousarray(data)
        return memoryview(data.reshape(-1).view(numpy.uint8)) if data.size else memoryview(b"")
    try:
        view = memoryview(data)
    except TypeError:
        raise UsageError(
            f"input {name!r} is a {type(data).__name__}, expected a NumPy array, an object with __array__ or"
            " __dlpack__ (tensors of PyTorch and JAX), or bytes"
        ) from None
    return view.cast("B") if view.c_contiguous and view.ndim == 1 else memoryview(view.tobytes())
