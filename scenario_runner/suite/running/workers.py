"""The supervisor: which item runs next, where, and whether it runs once more.

One process, one thread; see `fleet` for the processes that run the items.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from typing import Final, NamedTuple

from scenario_runner.suite.records import Item, Outcome
from scenario_runner.suite.running.fleet import Fleet
from scenario_runner.suite.running.options import Again, Finished, OnStart, WorkerOptions
from scenario_runner.suite.running.process import Device, Given, UsedDevice, WorkerProcess

_MOST_BACK: Final = 3  # so often an item is given back that no worker had begun with
_AWAY_S: Final = 0.05  # as long may the caller take for an item without the workers' deadlines being moved


class _Job(NamedTuple):
    """An item to run, after the attempts that it had. ``fresh``: in a process that has run nothing before."""

    item: Item
    attempts: tuple[Outcome, ...] = ()
    fresh: bool = False


class Workers:
    """Runs items in workers; use it in a ``with`` block, from one thread.

    Life cycle: the zygote is started with it, and workers when there are items for them; they stay for the items of a
    later `run`; `close` ends all of them.
    """

    def __init__(
        self,
        options: WorkerOptions | None = None,
        *,
        on_start: OnStart | None = None,
        on_note: Callable[[str], None] | None = None,
    ) -> None:
        """``on_note`` is told of devices that are given up, and of workers that ended while they ran nothing.

        Raises UnsupportedError where the system cannot isolate, LimitError where it refuses a process."""
        options = options or WorkerOptions()
        self._jobs_of_device = options.jobs
        self._on_start = on_start
        self._on_note = on_note
        self._devices = [UsedDevice(options.devices or None, options.jobs)]
        self._waiting: deque[_Job] = deque()  # to run before what the iterator has
        self._queue: Iterator[Item] = iter(())
        self._finished: deque[Finished] = deque()
        self._backs: Counter[str] = Counter()
        self._again: Again | None = None
        self._stopping = False
        self._fleet = Fleet(options, self)

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def devices(self) -> tuple[Device, ...]:
        """The devices that are used, as far as they are known."""
        return tuple(each.as_record() for each in self._devices if each.uuid or each.given_up)

    def run(self, items: Iterable[Item], again: Again | None = None) -> Iterator[Finished]:
        """Run items, and give each as soon as it needs no further attempt. Few more are taken than there are workers.

        ``again`` tells whether an item runs once more after its attempts so far. After a crash, a timeout or a loss of
        the device it does so in a process that has run nothing before.

        When no device can be used any more, what is left is given as Missing. Raises NoDeviceError, DriverCrashError
        and other errors of the driver where no device could be used from the start.
        """
        self._again = again
        self._stopping = False
        self._queue = iter(items)
        try:
            while True:
                if self._stopping:
                    self._waiting.clear()
                else:
                    self._hand_out()
                yield from self._take_finished()
                if not self._waiting and not self._fleet.busy:
                    return
                if self._waiting and not self._fleet.workers and not any(each.wanted for each in self._devices):
                    yield from self._missing()
                    return
                self._fleet.wait()
        finally:
            self.stop(now=True)
            self._waiting.clear()
            self._finished.clear()
            self._backs.clear()
            self._queue = iter(())

    def find_devices(self) -> frozenset[tuple[str, str]]:
        """The UUIDs of the devices that can be used, and their drivers; a worker is started on each.

        The errors are those of `run`."""
        while unknown := [each for each in self._devices if not each.uuid and not each.given_up]:
            for device in unknown:
                if not device.workers:
                    self._fleet.start(device)
            self._fleet.wait()
        found = frozenset((each.uuid, each.driver) for each in self._devices if each.uuid)
        error = self._devices[0].error
        if not found and error is not None:
            raise error
        return found

    def run_one(self, item: Item, again: Again | None = None) -> Finished:
        """Run one item. The errors are those of `run`."""
        (finished,) = self.run((item,), again)
        return finished

    def stop(self, *, now: bool = False) -> None:
        """Have `run` end: no further item is started. Those that run end in their time, or are killed ``now`` and are
        not given. A handler of signals may call this."""
        self._stopping = True
        self._fleet.stop(now=now)

    def close(self) -> None:
        """End all workers; what they run is lost. Doing so again does nothing."""
        self.stop(now=True)
        self._fleet.close()

    def _take_finished(self) -> Iterator[Finished]:
        while self._finished:
            given = time.monotonic()
            yield self._finished.popleft()
            away = time.monotonic() - given
            if away > _AWAY_S:
                self._fleet.postpone(away)

    # What is to be done next

    def _hand_out(self) -> None:
        """Give items to the workers that have none, and start workers for the items that wait."""
        fleet = self._fleet
        for _ in range(len(fleet.idle)):
            worker = fleet.idle[0]
            job = self._job_for(worker)
            if job is None:
                fleet.idle.rotate(-1)
                continue
            if not fleet.run(worker, job.item, job.attempts):
                self._waiting.appendleft(job)
        missing = sum(max(0, each.wanted - each.workers) for each in self._devices)
        if missing:
            starting = fleet.starting
            ahead = max(0, starting + missing - len(self._waiting))
            self._waiting.extend(_Job(item) for item in islice(self._queue, ahead))
            for _ in range(min(missing, len(self._waiting) - starting)):
                device = min(
                    (each for each in self._devices if each.wanted), key=lambda each: each.workers / each.wanted
                )
                if not fleet.start(device):
                    break
        elif self._waiting and fleet.idle and not fleet.starting:
            fleet.leave(fleet.idle[0])  # what waits is for a worker that has run nothing before
        self._hand_out_ahead()

    def _hand_out_ahead(self) -> None:
        """Give quick workers a second item, so that they need not wait between two. What ran before has nothing behind
        it, since it may well end its process again; what waits for a worker that starts is left to that."""
        for worker in list(self._fleet.workers.values()):
            if worker.state != "busy" or not worker.is_quick or len(worker.given) != 1 or worker.given[0].attempts:
                continue
            if self._waiting and not self._fleet.starting and not self._waiting[0].attempts:
                job = self._waiting.popleft()
            elif (item := next(self._queue, None)) is not None:
                job = _Job(item)
            else:
                return
            if not self._fleet.run(worker, job.item, job.attempts):
                self._waiting.appendleft(job)

    def _job_for(self, worker: WorkerProcess) -> _Job | None:
        for index, job in enumerate(self._waiting):
            if not job.fresh or worker.count == 0:
                del self._waiting[index]
                return job
        item = next(self._queue, None)
        return None if item is None else _Job(item)

    def _missing(self) -> Iterator[Finished]:
        """What is left, when no device can be used any more. Raises the error why none could be from the start."""
        first = self._devices[0]
        if not any(each.uuid for each in self._devices) and first.error is not None:
            raise first.error
        reason = "; ".join(each.given_up for each in self._devices)
        for job in chain(self._waiting, map(_Job, self._queue)):
            yield Finished(job.item, (*job.attempts, Outcome("Missing", reason=reason)), first.uuid, first.driver)

    # What the fleet tells

    def began(self, worker: WorkerProcess) -> None:
        if self._on_start is not None:
            self._on_start(worker.given[0].item, worker.place)

    def outcome(self, worker: WorkerProcess, given: Given, outcome: Outcome, *, spoiled: bool) -> None:
        item, attempts, device = given.item, (*given.attempts, outcome), worker.device
        if not self._stopping and self._again is not None and self._again(item, attempts):
            self._waiting.appendleft(_Job(item, attempts, fresh=spoiled))
        else:
            self._finished.append(Finished(item, attempts, device.uuid, device.driver))

    def back(self, given: Given, *, is_next: bool) -> None:
        _, item, attempts = given
        self._backs[item.id] += is_next
        if self._backs[item.id] < _MOST_BACK:
            self._waiting.appendleft(_Job(item, attempts))
        else:
            reason = f"{_MOST_BACK} processes that were to run it ended before they began with it"
            self._finished.append(Finished(item, (*attempts, Outcome("Missing", reason=reason)), "", ""))

    def found(self, device: UsedDevice, devices: list[str]) -> None:
        self._devices = [UsedDevice(each, self._jobs_of_device) for each in devices]

    def note(self, text: str) -> None:
        if self._on_note is not None:
            self._on_note(text)
