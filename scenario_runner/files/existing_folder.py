"""A folder that the user named for files of a run: one that must exist, or one that is made where it is missing."""

from __future__ import annotations

import errno
import os

from scenario_runner.errors import FileError, MissingFileError
from scenario_runner.files.source import file_error, reason_of


def check_existing_folder(path: str) -> None:
    """Raise MissingFileError or FileError for what is not a folder that files can be written to."""
    if not os.path.exists(path):
        raise MissingFileError(f"{path}: no such folder", help="make the folder first")
    if not os.path.isdir(path):
        raise FileError(f"{path}: is not a folder")
    reason = _why_not_writable(path)
    if reason is not None:
        raise FileError(f"{path}: no file can be written to this folder: {reason}")


def check_folder_to_write(path: str) -> None:
    """Raise FileError for a folder that no file can be written to, or where it is missing, that cannot be made."""
    existing = os.path.realpath(path)
    while not os.path.lexists(existing):
        existing = os.path.dirname(existing)
    reason = _why_not_writable(existing)
    if reason is not None:
        raise file_error(path, f"cannot be written to: {reason}", code="SR-FILE-015")


def _why_not_writable(folder: str) -> str | None:
    """What the system has against a new file in a folder, None for nothing."""
    if os.access(folder, os.W_OK | os.X_OK):
        return None
    read_only = hasattr(os, "statvfs") and os.statvfs(folder).f_flag & os.ST_RDONLY
    code = errno.EROFS if read_only else errno.EACCES
    return reason_of(OSError(code, os.strerror(code)))
