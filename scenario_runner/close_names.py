"""What somebody may have meant by a name that does not exist: other names, other files.

Nothing here is imported before something is wrong.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from itertools import islice

_MOST_CHARACTERS = 100
_MOST_ENTRIES = 5000  # of a folder that is looked through


def close_names(name: str, candidates: Iterable[str], *, most: int = 3, cutoff: float = 0.6) -> list[str]:
    """The candidates most like ``name``, the nearest first; upper and lower case count the same."""
    from difflib import get_close_matches

    folded: dict[str, str] = {}
    for candidate in candidates:
        folded.setdefault(candidate.lower(), candidate)
    return [folded[each] for each in get_close_matches(name[:_MOST_CHARACTERS].lower(), folded, n=most, cutoff=cutoff)]


def did_you_mean(names: Iterable[str]) -> str:
    """`` (did you mean 'a' or 'b'?)``, nothing for no names."""
    shown = " or ".join(repr(name) for name in names)
    return f" (did you mean {shown}?)" if shown else ""


def close_files_help(path: str, error: Exception | None = None) -> str | None:
    """The help of an error about a file that does not exist: at most three files that do and may have been meant.

    None where there are none, or where ``error`` is not about a missing file.
    """
    if error is not None and not isinstance(error, (FileNotFoundError, NotADirectoryError)):
        return None
    try:
        found = [each for each in _close_files(path) if os.path.isfile(each)]
    except (OSError, ValueError):
        return None
    unique = list(dict.fromkeys(found))[:3]
    return f"did you mean {' or '.join(map(repr, unique))}?" if unique else None


def _close_files(path: str) -> Iterable[str]:
    """Paths like ``path``, the likeliest first; not all of them are files."""
    folder, name = os.path.split(path)
    missing: list[str] = []
    while folder and not os.path.isdir(folder):
        folder, part = os.path.split(folder)
        if not part:
            return
        missing.insert(0, part)
    entries = _entries(folder)
    if missing:
        for part in close_names(missing[0], entries):
            yield os.path.join(folder, part, *missing[1:], name)
        yield os.path.join(folder, name)
        return
    stem, extension = os.path.splitext(name)
    stems: dict[str, list[str]] = {}
    for entry in entries:
        stems.setdefault(os.path.splitext(entry)[0].lower(), []).append(entry)
    for close in close_names(stem, stems):
        for entry in sorted(stems[close], key=lambda entry: os.path.splitext(entry)[1].lower() != extension.lower()):
            yield os.path.join(folder, entry)
    for entry in entries:  # the right name in the wrong folder
        yield os.path.join(folder, entry, name)
    yield os.path.join(os.path.dirname(os.path.abspath(folder)), name)


def _entries(folder: str) -> list[str]:
    with os.scandir(folder or ".") as entries:
        return sorted(entry.name for entry in islice(entries, _MOST_ENTRIES))
