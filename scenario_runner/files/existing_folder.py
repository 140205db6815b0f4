"""A folder that the user named for files of a run, and that must exist."""

from __future__ import annotations

import os

from scenario_runner.errors import FileError, MissingFileError


def check_existing_folder(path: str) -> None:
    """Raise MissingFileError or FileError for what is not a folder that files can be written to."""
    if not os.path.exists(path):
        raise MissingFileError(f"{path}: no such folder", help="make the folder first")
    if not os.path.isdir(path):
        raise FileError(f"{path}: is not a folder")
    if not os.access(path, os.W_OK | os.X_OK):
        raise FileError(f"{path}: no file can be written to this folder: permission denied")
