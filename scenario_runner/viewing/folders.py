"""Two folders of results: which files of one belong to which of the other."""

from __future__ import annotations

import os
from typing import NamedTuple

from scenario_runner.files.image_file import EXTENSIONS
from scenario_runner.files.source import file_error, reason_of


class FolderPairs(NamedTuple):
    """Paths of files relative to their folder, sorted: those in both, and those in one alone."""

    both: tuple[str, ...]
    only_one: tuple[str, ...]
    only_other: tuple[str, ...]


def folder_pairs(one: str, other: str) -> FolderPairs:
    """Pair the .npy, .dds and .png files of two folders, and of all folders in them, by their relative paths.

    Hidden files and folders do not count. Raises FileError for a folder that cannot be read, or where both have none.
    """
    first, second = _files(one), _files(other)
    if not first and not second:
        raise file_error(one, f"and {other!r} hold none of the files that can be compared: {', '.join(EXTENSIONS)}")
    return FolderPairs(*(tuple(sorted(names)) for names in (first & second, first - second, second - first)))


def _files(folder: str) -> set[str]:
    def fail(error: OSError) -> None:
        raise file_error(error.filename or folder, f"cannot be opened: {reason_of(error)}") from error

    found = set()
    for place, folders, names in os.walk(folder, onerror=fail):
        folders[:] = [name for name in folders if name[:1] != "."]
        for name in names:
            if name[:1] != "." and os.path.splitext(name)[1].lower() in EXTENSIONS:
                found.add(os.path.relpath(os.path.join(place, name), folder))
    return found
