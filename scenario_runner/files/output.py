"""A file that is written: it appears under its name complete, or not at all."""

from __future__ import annotations

import errno
import os
import stat
from types import TracebackType

from scenario_runner.files.source import GUARDED_CHUNK_SIZE_BYTES, file_error, reason_of
from scenario_runner.leftovers import owner, remove_leftovers

_CHUNK_SIZE_BYTES = 64 << 20  # one system call of this size still lets Ctrl-C through several times a second
_PREFIX, _SUFFIX = ".new-", ".tmp"
_OPEN_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


def check_destination(path: str) -> None:
    """Refuse what no file can take the place of: `FileError` for a folder, a pipe, a device, or a name below a file.

    Nothing is touched, so this can be asked before the work whose result goes there.
    """
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return
    except (OSError, ValueError) as error:
        raise file_error(path, f"cannot be created: {reason_of(error)}") from error
    if not stat.S_ISREG(mode):
        kind = "a folder" if stat.S_ISDIR(mode) else "a pipe, a device or a socket"
        raise file_error(path, f"is {kind}, expected the name of a file to write")


class OutputFile:
    """A new file beside ``path`` that takes its place when the ``with`` block ends well, and is removed otherwise.

    Missing parent folders are created. A symbolic link is followed, so that the link stays and its target is replaced.
    An existing target must be a regular file. Every failure (no room, no permission, ...) is a `FileError`.

    ``size_bytes``, where it is known, reserves the room at once: a full disk is noticed before anything is written, and
    ext4 then need not flush the data when the name of an older file is taken over (0.05 s instead of 0.1 to 0.6 s for
    256 MiB).
    """

    def __init__(self, path: str | os.PathLike[str], size_bytes: int = 0) -> None:
        self.path = os.fspath(path)
        self._descriptor = -1
        self._temporary = ""
        self._reserved_bytes = 0
        self._written_bytes = 0
        try:
            self._target = os.path.realpath(self.path)
            folder = os.path.dirname(self._target)
            check_destination(self.path)
            os.makedirs(folder, exist_ok=True)
            # A short name of its own: the target's name may already be as long as the file system allows.
            remove_leftovers(folder, _PREFIX, _SUFFIX)
            temporary = os.path.join(folder, f"{_PREFIX}{owner()}-{os.urandom(6).hex()}{_SUFFIX}")
            self._descriptor = os.open(temporary, _OPEN_FLAGS, 0o666)
            self._temporary = temporary
        except (OSError, ValueError) as error:
            raise file_error(self.path, f"cannot be created: {reason_of(error)}") from error
        try:
            self._reserve(size_bytes)
        except BaseException:
            self.discard()
            raise

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Append all bytes of ``data`` (any contiguous buffer); the data is not copied on the way to the system."""
        view = memoryview(data)
        if not view.nbytes:
            return  # an array with an empty axis cannot be cast
        view = view.cast("B")
        done = 0
        while done < len(view):
            try:
                done += self._write_some(view[done : done + _CHUNK_SIZE_BYTES])
            except OSError as error:
                raise file_error(self.path, f"cannot be written: {reason_of(error)}") from error
        self._written_bytes += done

    def _write_some(self, part: memoryview) -> int:
        try:
            return os.write(self._descriptor, part)
        except OSError as error:
            if error.errno != errno.EFAULT:
                raise
        # memory that a capture tool guards: its handler lets us read it, but not the system
        return os.write(self._descriptor, bytes(part[:GUARDED_CHUNK_SIZE_BYTES]))

    def commit(self) -> None:
        """Give the file its name. Nothing can be written afterwards."""
        descriptor, self._descriptor = self._descriptor, -1
        try:
            try:
                if self._written_bytes < self._reserved_bytes:
                    os.ftruncate(descriptor, self._written_bytes)
            finally:
                os.close(descriptor)  # network file systems report a full disk only here
            os.replace(self._temporary, self._target)
            self._temporary = ""
        except OSError as error:
            raise file_error(self.path, f"cannot be written: {reason_of(error)}") from error
        finally:
            self.discard()

    def discard(self) -> None:
        """Remove what was written, if it was not committed; may be called twice."""
        descriptor, self._descriptor = self._descriptor, -1
        temporary, self._temporary = self._temporary, ""
        try:
            if descriptor >= 0:
                os.close(descriptor)
        except OSError:
            pass  # the file goes away in the next line
        try:
            if temporary:
                os.unlink(temporary)
        except OSError:
            pass  # somebody else removed it, or the folder is gone

    def __enter__(self) -> OutputFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is None:
            self.commit()
        else:
            self.discard()

    def _reserve(self, size_bytes: int) -> None:
        if size_bytes <= 0 or not hasattr(os, "posix_fallocate"):
            return
        try:
            room = os.fstatvfs(self._descriptor)
            free_bytes = room.f_bavail * room.f_frsize
            if 0 < free_bytes < size_bytes:  # asking would first take all that is left, from everybody
                raise file_error(self.path, f"cannot be given {size_bytes} bytes: only {free_bytes} bytes are free")
            os.posix_fallocate(self._descriptor, 0, size_bytes)
            self._reserved_bytes = size_bytes
        except (OSError, OverflowError) as error:
            if isinstance(error, OSError) and error.errno in (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS):
                return  # this file system cannot reserve; writing will tell
            reason = reason_of(error) if isinstance(error, OSError) else "no file can be so large"
            raise file_error(self.path, f"cannot be given {size_bytes} bytes: {reason}") from error
