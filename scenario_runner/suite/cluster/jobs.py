"""Items as hosts get them, and their order: what a free host runs next, what becomes of a lost host's."""

from __future__ import annotations

import json
import os
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from scenario_runner.streams import read_file
from scenario_runner.suite.hashes import files_of
from scenario_runner.suite.records import Item
from scenario_runner.suite.verdicts import Expected, Rules


class Order(NamedTuple):
    """How a host runs items; see `running.options.WorkerOptions`. ``evidence``: files about failures are wanted."""

    session: str
    devices: tuple[str, ...]
    jobs: int
    timeout_s: float
    timeout_origin: str
    runner: Mapping[str, Any]
    rules: Rules
    evidence: bool

    @classmethod
    def of_json(cls, given: Any) -> Order:
        order = cls(*given)
        return order._replace(devices=tuple(order.devices), rules=Rules(*order.rules))


class Job(NamedTuple):
    """An item for another host.

    ``files`` has what a run of it reads: absolute path on the host that started the suite → SHA-256 of the content.
    ``absolute`` are those paths of them that a file of the item spells as they are here.
    """

    item: Item
    expected: Expected
    files: dict[str, str]
    absolute: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        return self._asdict()

    @classmethod
    def of_json(cls, given: dict[str, Any]) -> Job:
        return cls(Item(*given["item"]), Expected(*given["expected"]), dict(given["files"]), tuple(given["absolute"]))


def job_of(item: Item, expected: Expected) -> Job:
    """The item with its files as they are now. Those that are missing here will be missing there."""
    files: dict[str, str] = {}
    absolute: list[str] = []
    folder = os.path.join(os.path.dirname(item.path), "")
    spelled = b"".join(_content(path) for path in (item.path, item.expectations) if path is not None)
    for path, hash in files_of(item):
        if not hash:
            continue
        # "a/../b" is b on another host, where no part of it is a link.
        plain = os.path.normpath(path)
        files[plain] = hash
        if not path.startswith(folder) or json.dumps(path).encode() in spelled:
            absolute.append(plain)
    return Job(item, expected, files, tuple(absolute))


def _content(path: str) -> bytes:
    try:
        return read_file(path)
    except OSError:
        return b""


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
