"""Keeping mapped files out of memory while a driver reads them.

A driver copies the constants of a graph from the mapped file into memory of its own. Pages that it has read stay
resident, so that a model of 500 MB would count twice. Dropping them costs nothing: they stay in the system's cache of
the file, and one that is read again comes back from there. Measured with the workload `graph-constants`, a file of
477 MiB: 618 MiB at most with this, 1094 MiB without it, in the same time.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from scenario_runner import system_limits

# Below this much, the thread costs more than it saves.
_WORTHWHILE_BYTES = 64 << 20
# How much a driver reads in the meantime: about 10 MB.
_INTERVAL_S = 0.002


@contextmanager
def read_once(views: Iterable[memoryview]) -> Iterator[None]:
    """Drop pages of the files that ``views`` are mapped from, again and again until the block ends."""
    views = list(views)
    mappings = _mappings(views) if sum(view.nbytes for view in views) >= _WORTHWHILE_BYTES else []
    if not mappings:
        yield
        return
    done = threading.Event()

    def drop() -> None:
        while not done.wait(_INTERVAL_S):
            _drop(mappings)

    thread = threading.Thread(target=drop, name="drop-read-pages", daemon=True)
    system_limits.start(thread)
    try:
        yield
    finally:
        done.set()
        thread.join()
        _drop(mappings)


def _mappings(views: Iterable[memoryview]) -> list[Any]:
    """The mmap objects under the views, where the system can drop pages of them."""
    import mmap

    if not hasattr(mmap, "MADV_DONTNEED"):
        return []
    found: dict[int, Any] = {id(view.obj): view.obj for view in views if isinstance(view.obj, mmap.mmap)}
    return list(found.values())


def _drop(mappings: Iterable[Any]) -> None:
    import mmap

    for mapping in mappings:
        mapping.madvise(mmap.MADV_DONTNEED)
