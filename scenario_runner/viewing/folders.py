"""Two folders of results: which files of one belong to which of the other."""

from __future__ import annotations

import os
from typing import NamedTuple

from scenario_runner.files.codec import all_codecs, is_known
from scenario_runner.files.source import file_error, reason_of


class FolderPairs(NamedTuple):
    """Paths of files relative to their folder, sorted: those in both, and those in one alone."""

    both: tuple[str, ...]
    only_one: tuple[str, ...]
    only_other: tuple[str, ...]


def folder_pairs(one: str, other: str) -> FolderPairs:
    """Pair the files of two folders that can be shown, and of all folders in them, by their relative paths.

    Hidden files and folders do not count. Raises FileError for a folder that cannot be read, or where both have none.
    """
    first, second = _files(one), _files(other)
    if not first and not second:
        known = ", ".join(codec.extension for codec in all_codecs())
        raise file_error(one, f"and {other!r} hold none of the files that can be compared: {known}")
    return FolderPairs(*(tuple(sorted(names)) for names in (first & second, first - second, second - first)))


def _files(folder: str) -> set[str]:
    def fail(error: OSError) -> None:
        raise file_error(error.filename or folder, f"cannot be opened: {reason_of(error)}") from error

    found = set()
    for place, folders, names in os.walk(folder, onerror=fail):
        folders[:] = [name for name in folders if name[:1] != "."]
        for name in names:
            if name[:1] != "." and is_known(name):
                found.add(os.path.relpath(os.path.join(place, name), folder))
    return found
