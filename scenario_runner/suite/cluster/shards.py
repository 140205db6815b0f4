"""Which items are run next, by whichever host is free, and what becomes of those that a lost host had."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from scenario_runner.suite.cluster.jobs import Job, job_of
from scenario_runner.suite.records import Item
from scenario_runner.suite.verdicts import Expected

MOST_LOSSES: Final = 3
"""An item that so many hosts were lost with is not run again."""

_MOST_ITEMS: Final = 50
_FIRST_ITEMS: Final = 10
_SHARD_S: Final = 4.0  # as long a shard is to take, as far as the one before it tells


def next_size(size: int, seconds: float) -> int:
    """How many items the shard after one of ``size`` has, which took ``seconds``; 0 and 0 before the first."""
    if not size:
        return _FIRST_ITEMS
    return max(1, min(_MOST_ITEMS, round(size * min(4.0, _SHARD_S / max(seconds, 0.001)))))


class Shards:
    """Takes few more items from ``items`` than are run."""

    def __init__(self, items: Iterable[Item], expected: Callable[[str], Expected]) -> None:
        self._items = iter(items)
        self._expected = expected
        self._ahead: deque[Item] = deque()
        self._losses: Counter[str] = Counter()

    def has_more(self) -> bool:
        """Whether there is an item that nobody runs; one may be taken to find out."""
        if not self._ahead:
            item = next(self._items, None)
            if item is None:
                return False
            self._ahead.append(item)
        return True

    def take(self, size: int) -> list[Job]:
        """The next shard, of at most ``size`` items. An item that a lost host had is one alone: it may be what has
        ended that host."""
        jobs: list[Job] = []
        while len(jobs) < size and self.has_more():
            if self._losses[self._ahead[0].id]:
                if jobs:
                    break
                size = 1
            item = self._ahead.popleft()
            jobs.append(job_of(item, self._expected(item.id)))
        return jobs

    def back(self, jobs: Iterable[Job]) -> None:
        """Items that did not run."""
        self._ahead.extendleft(job.item for job in reversed(list(jobs)))

    def lost(self, jobs: Iterable[Job]) -> list[Item]:
        """Items whose host is gone, or the process that ran them. Those that it has happened to too often do not run
        again, and are returned."""
        jobs = list(jobs)
        self._losses.update(job.item.id for job in jobs)
        given_up = [job.item for job in jobs if self._losses[job.item.id] >= MOST_LOSSES]
        self.back(job for job in jobs if self._losses[job.item.id] < MOST_LOSSES)
        return given_up

    def rest(self) -> Iterator[Item]:
        """All items that are left."""
        while self.has_more():
            yield self._ahead.popleft()
