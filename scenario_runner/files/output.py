"""Files that are written: they appear under their names complete, or not at all, one by one or several together.

Files of one set lie complete under temporary names beside their targets before the first one is renamed. What can
still go wrong then is put right again: the old files are kept until the last new one has its name, and signals wait.
Only a process that is killed between two renames leaves some files new and others old; a marker file beside them tells.
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
_CHUNK_SIZE_BYTES = 64 << 20  # one system call of this size still lets Ctrl-C through several times a second
MARKER_PREFIX = ".scenario-runner-incomplete-"


@contextmanager
def _reported(path: str, done: str = "written") -> Iterator[None]:
    """Raise the system's errors as `FileError`: the file at ``path`` cannot be ``done``."""
    try:
        yield
    except (OSError, ValueError) as error:
        raise _unwritable(path, f"cannot be {done}: {reason_of(error)}") from error


def check_destination(path: str) -> None:
    """Refuse what no file can take the place of: `FileError` for a folder, a pipe, a device, a name below a file, or
    one that is too long.

    Nothing is touched, so this can be asked before the work whose result goes there.
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
    """Raise OSError where the file and the folders above it that do not exist cannot get these names."""
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
    """A new file beside ``path`` that takes its place when the ``with`` block ends well, and is removed otherwise.

    Missing parent folders are created. A symbolic link is followed, so that the link stays and its target is replaced.
    An existing target must be a regular file. Every failure (no room, no permission, ...) is a `FileError`.

    ``size_bytes``, where it is known, reserves the room at once: a full disk is noticed before anything is written, and
    ext4 then need not flush the data when the name of an older file is taken over (0.05 s instead of 0.1 to 0.6 s for
    256 MiB).

    A file of ``files`` keeps its temporary name until the set gets its names.
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
        """Append all bytes of ``data`` (any contiguous buffer); the data is not copied on the way to the system."""
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
        # memory that a capture tool guards: its handler lets us read it, but not the system
        return os.write(self._descriptor, bytes(part[:GUARDED_CHUNK_SIZE_BYTES]))

    def commit(self) -> None:
        """Give the file its name, or hand it over. Nothing can be written afterwards."""
        descriptor, self._descriptor = self._descriptor, -1
        try:
            with _reported(self.path):
                try:
                    if self.written_bytes < self._reserved_bytes:
                        os.ftruncate(descriptor, self.written_bytes)
                finally:
                    os.close(descriptor)  # network file systems report a full disk only here
                self._set.complete.append(self)
                if self._is_alone:
                    self._set.publish()
        except BaseException:
            self.discard()
            raise

    def discard(self) -> None:
        """Remove what was written, if it was not committed; may be called twice."""
        descriptor, self._descriptor = self._descriptor, -1
        with suppress(OSError):
            if descriptor >= 0:
                os.close(descriptor)
        temporary.remove(self._temporary)
        if self._is_alone:
            self._set.discard()

    def rename(self) -> None:
        """Give the complete file its name. Raises FileError."""
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
                # somebody else made it meanwhile; what is not a folder is refused with the next name
                temporary.keep(self._set.folders.pop())

    def _reserve(self, size_bytes: int) -> None:
        if size_bytes <= 0 or not hasattr(os, "posix_fallocate"):
            return
        try:
            room = os.fstatvfs(self._descriptor)
            free_bytes = room.f_bavail * room.f_frsize
            if 0 < free_bytes < size_bytes:  # asking would first take all that is left, from everybody
                message = f"cannot be given {size_bytes} bytes: only {free_bytes} bytes are free"
                raise _unwritable(self.path, message)
            os.posix_fallocate(self._descriptor, 0, size_bytes)
            self._reserved_bytes = size_bytes
        except (OSError, OverflowError) as error:
            if isinstance(error, OSError) and error.errno in (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS):
                return  # this file system cannot reserve; writing will tell
            reason = reason_of(error) if isinstance(error, OSError) else "no file can be so large"
            raise _unwritable(self.path, f"cannot be given {size_bytes} bytes: {reason}") from error


CreateOutput: TypeAlias = Callable[[str | os.PathLike[str], int], OutputFile]
"""Makes the file at a path; the number is its size in bytes where that is known, otherwise 0."""


def marker_path(targets: Iterable[str]) -> str | None:
    """The marker that is there while these files get their names, None where there are fewer than two.

    It lies in the folder of the first file, in the order of names. Others may write other files into that folder
    meanwhile, so its name follows from those of all files.
    """
    targets = list(targets)
    if len(targets) < 2:
        return None
    files = sorted(map(os.path.realpath, targets))
    folder = os.path.dirname(files[0])
    names = "\0".join(os.path.relpath(file, folder) for file in files)
    return os.path.join(folder, f"{MARKER_PREFIX}{zlib.crc32(os.fsencode(names)):08x}")


class OutputSet:
    """A context manager: files that `create` made get their names when its block ends well.

    Otherwise they are removed, and so are the folders that were made for them. Raises FileError.
    """

    def __init__(self) -> None:
        self.complete: list[OutputFile] = []
        self.folders: list[str] = []

    def create(self, path: str | os.PathLike[str], size_bytes: int = 0) -> OutputFile:
        """A file of this set; nothing of it stays open once it is complete. Raises FileError."""
        return OutputFile(path, size_bytes, files=self)

    def publish(self) -> None:
        """Give all files their names; none has it after a failure. Raises FileError."""
        try:
            with signals.deferred():
                _publish(self.complete)
                for folder in self.folders:
                    temporary.keep(folder)
                self.complete, self.folders = [], []
        finally:
            self.discard()

    def discard(self) -> None:
        """Remove what has no name yet, and the folders made for it."""
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
        check_destination(file.target)  # a folder may have taken the place of one meanwhile
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
                os.unlink(marker)  # of a killed process, or a link that somebody planted
            with open(marker, "xb") as text:
                names = "".join(f"{file.target}\n" for file in files)
                text.write(b"These files are being replaced together:\n" + os.fsencode(names))
        for file in files:
            begun.append((file, _second_name(file.target)))
            file.rename()
    except FileError:
        for _, old in begun[-1:]:  # the one that could not be renamed
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
    """Another name for a file that is about to be replaced: None where there is none, "" where it can have no other."""
    name = temporary.file_name(os.path.dirname(path))
    try:
        os.link(path, name)
    except OSError as error:  # no hard links here, or not of files of others
        temporary.keep(name)
        return None if isinstance(error, FileNotFoundError) else ""
    return name


def _put_back(path: str, old: str | None) -> bool:
    """Put the file that had the name back, or nothing; False where the new one stays, as the old one was not kept."""
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
