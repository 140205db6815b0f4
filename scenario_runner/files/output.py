"""Output files, which appear complete or not at all, alone or as a set.

All files of a set are complete under temporary names beside their targets before the first file is renamed. Old files
are kept until the last rename, so that a failure can restore them, and signals wait. Only a process that is killed
between two renames leaves a mixture of new and old files. Then a marker file remains beside them.
"""

from __future__ import annotations

import errno
import os
import stat
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import TypeAlias

from scenario_runner.errors import FileError, file_error
from scenario_runner.errors.text import reason_of
from scenario_runner.files.input import GUARDED_CHUNK_SIZE_BYTES
from scenario_runner.files.sandbox import check_opened, check_path
from scenario_runner.processes import signals, temporary

_unwritable = partial(file_error, code="SR-FILE-015")
_CHUNK_SIZE_BYTES = 64 << 20  # per system call, so that Ctrl-C is noticed several times a second
MARKER_PREFIX = ".scenario-runner-incomplete-"


@contextmanager
def _reported(path: str, done: str = "written") -> Iterator[None]:
    """Turn errors of the system into a `FileError`: the file at ``path`` cannot be ``done``."""
    try:
        yield
    except (OSError, ValueError) as error:
        raise _unwritable(path, f"cannot be {done}: {reason_of(error)}") from error


def check_destination(path: str) -> None:
    """Raise `FileError` if no file can be written to a path: for a folder, a pipe, a device, or an impossible name.

    Nothing is touched, so that callers can check before they begin their work.
    """
    check_path(path)
    with _reported(path, "created"):
        try:
            mode = os.stat(path).st_mode
        except FileNotFoundError:
            _check_new_names(os.path.realpath(path))
            return
    if not stat.S_ISREG(mode):
        kind = "a folder" if stat.S_ISDIR(mode) else "a pipe, a device or a socket"
        raise _unwritable(path, f"is {kind}, expected the name of a file to write")


def _check_new_names(path: str) -> None:
    """Raise OSError if a parent is not a folder, or if the name of a new file or folder is too long."""
    folder, name = os.path.split(path)
    names = [name]
    while not os.path.lexists(folder):
        folder, name = os.path.split(folder)
        names.append(name)
    if not os.path.isdir(folder):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
    if hasattr(os, "pathconf"):
        longest = os.pathconf(folder, "PC_NAME_MAX")
        if any(len(os.fsencode(each)) > longest for each in names):
            raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))


class OutputFile:
    """A new file beside ``path``, which replaces ``path`` if the ``with`` block succeeds and is removed otherwise.

    Missing parent folders are created. A symbolic link stays, and the target is replaced. An existing target must be a
    regular file. Every failure, such as a full disk or a missing permission, is a `FileError`.

    A known ``size_bytes`` reserves the room at once. So a full disk is noticed early, and ext4 does not flush the
    data when the file replaces an older one (0.05 s instead of 0.1 to 0.6 s for 256 MiB).

    A file in the set ``files`` keeps the temporary name until the set is published.
    """

    def __init__(self, path: str | os.PathLike[str], size_bytes: int = 0, *, files: OutputSet | None = None) -> None:
        self.path = os.fspath(path)
        self._is_alone = files is None
        self._set = OutputSet() if files is None else files
        self._descriptor = -1
        self._temporary = ""
        self._reserved_bytes = 0
        self.written_bytes = 0
        try:
            with _reported(self.path, "created"):
                self.target = os.path.realpath(self.path)
                folder = os.path.dirname(self.target)
                check_destination(self.path)
                self._make_folders(folder)
                temporary.remove_stale(folder)
                self._temporary, self._descriptor = temporary.create_file(folder)
                check_opened(self._temporary, self._descriptor, self.target)
            self._reserve(size_bytes)
        except BaseException:
            self.discard()
            raise

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Append all bytes of ``data``, any contiguous buffer, without a copy."""
        view = memoryview(data)
        if not view.nbytes:
            return  # an array with an empty axis cannot be cast
        view = view.cast("B")
        done = 0
        with _reported(self.path):
            while done < len(view):
                done += self._write_some(view[done : done + _CHUNK_SIZE_BYTES])
        self.written_bytes += done

    def _write_some(self, part: memoryview) -> int:
        try:
            return os.write(self._descriptor, part)
        except OSError as error:
            if error.errno != errno.EFAULT:
                raise
        # a capture tool guards this memory: the tool's handler lets this process read it, but not the system
        return os.write(self._descriptor, bytes(part[:GUARDED_CHUNK_SIZE_BYTES]))

    def commit(self) -> None:
        """Complete the file. A single file gets the final name; a file in a set is published later."""
        descriptor, self._descriptor = self._descriptor, -1
        try:
            with _reported(self.path):
                try:
                    if self.written_bytes < self._reserved_bytes:
                        os.ftruncate(descriptor, self.written_bytes)
                finally:
                    os.close(descriptor)  # a network file system may report a full disk only here
                self._set.complete.append(self)
                if self._is_alone:
                    self._set.publish()
        except BaseException:
            self.discard()
            raise

    def discard(self) -> None:
        """Remove a file that was not committed; may be called twice."""
        descriptor, self._descriptor = self._descriptor, -1
        with suppress(OSError):
            if descriptor >= 0:
                os.close(descriptor)
        temporary.remove(self._temporary)
        if self._is_alone:
            self._set.discard()

    def rename(self) -> None:
        """Give the complete file the final name. Raises FileError."""
        with _reported(self.path):
            os.replace(self._temporary, self.target)
        temporary.keep(self._temporary)

    def __enter__(self) -> OutputFile:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.commit()
        else:
            self.discard()

    def _make_folders(self, folder: str) -> None:
        missing = []
        while not os.path.isdir(folder):
            missing.append(folder)
            folder = os.path.dirname(folder)
        for each in reversed(missing):
            self._set.folders.append(each)
            temporary.note(each, os.rmdir)
            try:
                os.mkdir(each)
            except FileExistsError:
                # another process made it meanwhile; if it is no folder, the next name fails
                temporary.keep(self._set.folders.pop())

    def _reserve(self, size_bytes: int) -> None:
        if size_bytes <= 0 or not hasattr(os, "posix_fallocate"):
            return
        try:
            room = os.fstatvfs(self._descriptor)
            free_bytes = room.f_bavail * room.f_frsize
            if 0 < free_bytes < size_bytes:  # the request itself would first take all free room
                message = f"cannot be given {size_bytes} bytes: only {free_bytes} bytes are free"
                raise _unwritable(self.path, message)
            os.posix_fallocate(self._descriptor, 0, size_bytes)
            self._reserved_bytes = size_bytes
        except (OSError, OverflowError) as error:
            if isinstance(error, OSError) and error.errno in (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS):
                return  # this file system cannot reserve room
            reason = reason_of(error) if isinstance(error, OSError) else "no file can be so large"
            raise _unwritable(self.path, f"cannot be given {size_bytes} bytes: {reason}") from error


CreateOutput: TypeAlias = Callable[[str | os.PathLike[str], int], OutputFile]
"""Creates the file at a path; the number is the size in bytes, or 0 if it is unknown."""


def marker_path(targets: Iterable[str]) -> str | None:
    """Return the path of the marker that exists while these files are renamed; None for fewer than two files.

    The marker lies in the folder of the first file by name. The marker's name follows from all file names, since other
    processes may write other sets into the same folder.
    """
    targets = list(targets)
    if len(targets) < 2:
        return None
    files = sorted(map(os.path.realpath, targets))
    folder = os.path.dirname(files[0])
    names = "\0".join(os.path.relpath(file, folder) for file in files)
    return os.path.join(folder, f"{MARKER_PREFIX}{zlib.crc32(os.fsencode(names)):08x}")


class OutputSet:
    """A set of output files; a context manager. All files get their names if the block succeeds.

    Otherwise the files and their new folders are removed. Raises FileError.
    """

    def __init__(self) -> None:
        self.complete: list[OutputFile] = []
        self.folders: list[str] = []

    def create(self, path: str | os.PathLike[str], size_bytes: int = 0) -> OutputFile:
        """Create a file of this set. Raises FileError."""
        return OutputFile(path, size_bytes, files=self)

    def publish(self) -> None:
        """Give all files their names, or none after a failure. Raises FileError."""
        try:
            with signals.deferred():
                _publish(self.complete)
                for folder in self.folders:
                    temporary.keep(folder)
                self.complete, self.folders = [], []
        finally:
            self.discard()

    def discard(self) -> None:
        """Remove files without a final name, and the folders made for them."""
        while self.complete:
            self.complete.pop().discard()
        while self.folders:
            temporary.remove(self.folders.pop())

    def __enter__(self) -> OutputSet:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.publish()
        else:
            self.discard()


def _publish(files: list[OutputFile]) -> None:
    for file in files:
        check_destination(file.target)  # another process may have made a folder there
    marker = marker_path(file.target for file in files)
    if marker is None:
        for file in files:
            file.rename()
        return
    begun: list[tuple[OutputFile, str | None]] = []
    temporary.note(marker)
    try:
        with _reported(marker):
            with suppress(FileNotFoundError):
                os.unlink(marker)  # left by a killed process, or a planted link
            with open(marker, "xb") as text:
                names = "".join(f"{file.target}\n" for file in files)
                text.write(b"These files are being replaced together:\n" + os.fsencode(names))
        for file in files:
            begun.append((file, _second_name(file.target)))
            file.rename()
    except FileError:
        for _, old in begun[-1:]:  # this file could not be renamed
            temporary.remove(old or "")
        put_back = [_put_back(file.target, old) for file, old in reversed(begun[:-1])]
        if not all(put_back):
            temporary.keep(marker)
        temporary.remove(marker)
        raise
    temporary.remove(marker)
    for _, old in begun:
        temporary.remove(old or "")


def _second_name(path: str) -> str | None:
    """Link a file that is about to be replaced to a second name.

    Return the name, None if there is no file, or "" if the file can have no second name.
    """
    name = temporary.file_name(os.path.dirname(path))
    try:
        os.link(path, name)
    except OSError as error:  # for example no hard links on this file system, or to files of other users
        temporary.keep(name)
        return None if isinstance(error, FileNotFoundError) else ""
    return name


def _put_back(path: str, old: str | None) -> bool:
    """Restore the old file, or remove the new file if there was no old file. Return False if the new file must stay."""
    try:
        if old is None:
            os.unlink(path)
        elif old:
            os.replace(old, path)
    except OSError:
        return False
    finally:
        temporary.keep(old or "")
    return old != ""
