"""The files of the user's cache folder: how many there are of each kind, how large, and which go first.

Nothing here is imported by a run that finds everything in the caches.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Collection, Iterable
from typing import NamedTuple

from scenario_runner import log

KINDS = {"plans": ".entry", "shaders": ".entry", "checked": ".entry", "pipelines": ".cache", "contents": ".content"}
"""The folder of each kind, and how the names of its files end."""

LIMIT_VARIABLE = "SCENARIO_RUNNER_CACHE_SIZE"
_SIZE = re.compile(r"(\d{1,15})\s*([kmgt]?)(?:i?b)?", re.IGNORECASE)
_SHIFTS = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}
_STALE_TEMPORARY_S = 3600


class KeptFile(NamedTuple):
    """One file; ``used_s`` is when it was written or last used, to a day (seconds since 1970)."""

    used_s: float
    size_bytes: int
    path: str


def kept_files(root: str, kind: str) -> list[KeptFile]:
    """The files of a kind below ``root``; none where the folder cannot be read. Temporary files of processes that ended
    an hour ago or longer are removed."""
    found = []
    now = time.time()
    try:
        with os.scandir(os.path.join(root, kind)) as scan:
            for item in scan:
                try:
                    status = item.stat(follow_symlinks=False)
                    if item.name.endswith(KINDS[kind]):
                        found.append(KeptFile(status.st_mtime, status.st_size, item.path))
                    elif item.name.endswith(".tmp") and now - status.st_mtime > _STALE_TEMPORARY_S:
                        os.unlink(item.path)
                except FileNotFoundError:
                    pass  # another process removes files as well
    except OSError:
        pass
    return found


def bound(root: str, kind: str, most_files: int, most_bytes: int) -> None:
    """Remove the files of a kind that were used longest ago where there are too many, and those of all kinds where the
    user's limit is exceeded. Called after writing."""
    shrink(kept_files(root, kind), most_files, most_bytes)
    limit = limit_bytes()
    if limit is None:
        if os.environ.get(LIMIT_VARIABLE):
            log.warning(__name__, "%s is not a size such as 500M or 2G, and is ignored", LIMIT_VARIABLE)
    else:
        shrink([file for each in KINDS for file in kept_files(root, each)], None, limit)


def shrink(files: Iterable[KeptFile], most_files: int | None, most_bytes: int) -> None:
    """Remove the files used longest ago, down to three quarters, where these are exceeded."""
    files = sorted(files)
    left, total = len(files), sum(file.size_bytes for file in files)
    if most_files is None:
        most_files = left
    if left <= most_files and total <= most_bytes:
        return
    fewest = most_files * 3 // 4 if left > most_files else left
    smallest = most_bytes * 3 // 4 if total > most_bytes else total
    for file in files:
        if left <= fewest and total <= smallest:
            break
        remove([file])
        left -= 1
        total -= file.size_bytes


def remove(files: Collection[KeptFile]) -> list[str]:
    """Remove files; returns what could not be removed, and why."""
    problems = []
    for file in files:
        try:
            os.unlink(file.path)
        except FileNotFoundError:
            pass
        except OSError as error:
            problems.append(f"{file.path}: {error.strerror}")
    return problems


def limit_bytes() -> int | None:
    """SCENARIO_RUNNER_CACHE_SIZE, such as 500M or 2G; None where it is not set, or is not a size."""
    text = os.environ.get(LIMIT_VARIABLE, "").strip()
    match = _SIZE.fullmatch(text)
    return int(match[1]) << _SHIFTS[match[2].lower()] if match else None
