"""Files that get their names together, once all of them are complete; or none of them does.

The files lie complete under temporary names beside their targets before the first one is renamed. What can still go
wrong then is put right again: the old files are kept until the last new one has its name. Only a process that is killed
between two renames leaves some files new and others old; a marker file beside them tells.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable
from contextlib import suppress
from types import TracebackType

from scenario_runner.files.output import OutputFile, remove_folders
from scenario_runner.files.source import file_error, reason_of

MARKER_PREFIX = ".scenario-runner-incomplete-"


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
        self._files: list[OutputFile] = []
        self._made_folders: list[str] = []

    def create(self, path: str | os.PathLike[str], size_bytes: int = 0) -> OutputFile:
        """A file of this set; nothing of it stays open once it is complete. Raises FileError."""
        file = OutputFile(path, size_bytes, complete=self._files.append)
        self._made_folders += file.made_folders
        file.made_folders = []
        return file

    def __enter__(self) -> OutputSet:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        files, self._files = self._files, []
        published = False
        try:
            if kind is None:
                _publish(files)
                published = True
        finally:
            if not published:
                for file in files:
                    file.discard()
                remove_folders(self._made_folders)


def _publish(files: list[OutputFile]) -> None:
    for file in files:
        file.check()  # a folder may have taken the place of one meanwhile
    marker = marker_path(file.target for file in files)
    if marker is None:
        for file in files:
            file.rename()
        return
    _write_marker(marker, files)
    begun: list[OutputFile] = []
    try:
        for file in files:
            begun.append(file)
            file.keep_old()
            file.rename()
    except BaseException:
        still_new = [file for file in reversed(begun) if not file.put_back_old()]
        if not still_new:
            _remove(marker)
        raise
    _remove(marker)
    for file in files:
        file.drop_old()


def _write_marker(path: str, files: list[OutputFile]) -> None:
    names = "".join(f"{file.target}\n" for file in files)
    try:
        with open(path, "wb") as marker:
            marker.write(b"These files are being replaced together:\n" + os.fsencode(names))
    except OSError as error:
        _remove(path)
        raise file_error(path, f"cannot be written: {reason_of(error)}", code="SR-FILE-015") from error


def _remove(path: str) -> None:
    with suppress(OSError):
        os.unlink(path)
