"""Run items in separate processes: the pool's interface."""

import atexit
import socket
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import count
from multiprocessing.connection import Connection
from typing import Any, Final, Generic, NamedTuple, Self, TypeVar

from scenario_runner.errors import DriverCrashError, ScenarioRunnerError, UnsupportedError
from scenario_runner.processes import pool
from scenario_runner.processes.isolated_process import join, start, start_method
from scenario_runner.processes.jobs import Began, Device, Done, Event, Job, Note, Returned, WorkerOptions
from scenario_runner.processes.signals import signal_name
from scenario_runner.processes.system_limits import refusal

_END_S: Final = 3.0

Item = TypeVar("Item")


class Ended(NamedTuple):
    """An item with the outcomes of all attempts, and the last attempt's device.

    ``left`` tells why no device is left for another attempt.
    """

    item: Any
    hint: Any
    outcomes: tuple[Any, ...]
    device: Device
    left: str = ""


class PoolProcess:
    """The process of the pool, which imports ``modules`` while the user prepares the options."""

    def __init__(self, *modules: str) -> None:
        """Start the process. Raises LimitError if the system refuses it."""
        try:
            ours, theirs = socket.socketpair()
            with theirs:
                method = start_method()
                self.process = start(method, pool.main, theirs, ours if method == "fork" else None, modules)
        except OSError as error:
            raise refusal("process") from error
        self.control = Connection(ours.detach())
        atexit.register(self.close)  # multiprocessing would wait for the pool

    def close(self) -> None:
        """End the process with all workers. A second call does nothing."""
        if self.control.closed:
            return
        atexit.unregister(self.close)
        with suppress(OSError):
            self.control.send(None)
        self.control.close()
        join(self.process, _END_S)
        if self.process.exitcode is None:
            self.process.kill()
            self.process.join()

    def error(self) -> DriverCrashError:
        """Wait for the end of the process, and make the error about it."""
        self.process.join()
        code = self.process.exitcode or 0
        how = f"was ended by {signal_name(-code)}" if code < 0 else f"ended with exit code {code}"
        help = "memory that has run out is the usual cause; a suite with --results goes on with --resume"
        return DriverCrashError(f"the process that workers are forked from {how}", help=help)


class Workers(Generic[Item]):
    """The user's side of a worker pool, for a single thread and a ``with`` block.

    Life cycle: created, which starts the pool unless there is one; items run; closed, which ends the pool and all
    workers.
    """

    def __init__(
        self,
        options: WorkerOptions,
        *,
        on_start: Callable[[Item, int], object] = lambda item, worker: None,
        on_note: Callable[[str], object] = lambda text: None,
        pool: PoolProcess | None = None,
    ) -> None:
        """Start the pool, or use ``pool``.

        ``on_start`` receives each item that a worker begins, and the worker's number. ``on_note`` receives
        sentences about devices that are given up, and about workers that ended between items.

        Raises LimitError if the system refuses a process, and UnsupportedError for core dumps outside Linux.
        """
        if options.core_dumps and sys.platform != "linux":
            raise UnsupportedError("--core-dumps needs Linux")
        self._on_start = on_start
        self._on_note = on_note
        self._running: dict[int, tuple[Item, object]] = {}
        self._numbers = count(1)
        self._is_stopping = self._is_now = False
        self._devices: tuple[Device, ...] = ()
        self._room = 1 + max(1, options.jobs)
        self._pool = pool or PoolProcess()
        self._tell(options)

    def listen(self, on_start: Callable[[Item, int], object], on_note: Callable[[str], object]) -> None:
        """Replace both functions."""
        self._on_start, self._on_note = on_start, on_note

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def devices(self) -> tuple[Device, ...]:
        """The devices that a worker has opened, or that are given up."""
        return tuple(device for device in self._devices if device.uuid or device.given_up)

    def run_items(self, items: Iterable[tuple[Item, object]]) -> Iterator[Ended]:
        """Run items, each with a hint for the policy. Yield an item as soon as the policy wants no further attempt.

        The pool holds few more items than there are workers. After a crash, a timeout or a lost device, the next
        attempt has a process that has run nothing before. When no device is left, the other items end without an
        attempt. Raises NoDeviceError, DriverCrashError and other errors of the driver if no device is usable at all.
        """
        queue = iter(items)
        self._is_stopping = self._is_now = False
        ended: list[Ended] = []
        try:
            while True:
                jobs: list[Job] = []
                while not self._is_stopping and len(self._running) < self._room and (pair := next(queue, None)):
                    jobs.append(Job(next(self._numbers), *pair))
                    self._running[jobs[-1].number] = pair
                    if not self._devices:  # the pool starts, and the iterator may take long to find the next item
                        self._tell(jobs)
                        jobs = []
                if jobs:
                    self._tell(jobs)
                if self._is_stopping:  # the pool may have received items since the last such message
                    self._tell(self._is_now)
                yield from ended  # while the workers run
                if not self._running:
                    return
                ended = [one for event in self._events() if (one := self._take(event)) is not None]
        finally:
            if self._running:
                self._tell(True)
                self._running.clear()

    def find_devices(self) -> frozenset[tuple[str, str]]:
        """Return the UUIDs and drivers of the usable devices. Raises the same errors as `run_items`."""
        while len(self.devices) < max(1, len(self._devices)):
            for event in self._events():
                self._take(event)
        return frozenset((device.uuid, device.driver) for device in self._devices if device.uuid)

    def stop(self, *, now: bool = False) -> None:
        """End `run_items` after the current items, or ``now`` without their outcomes.

        Signal handlers may call this.
        """
        self._is_stopping, self._is_now = True, now or self._is_now
        self._tell(self._is_now)

    def close(self) -> None:
        """End all workers, and the items that they run. A second call does nothing."""
        self._pool.close()

    def _tell(self, message: WorkerOptions | list[Job] | bool) -> None:
        with suppress(OSError):  # the pool is gone, which `_events` handles
            self._pool.control.send(message)

    def _events(self) -> list[Event]:
        """Receive the next list of events. Raises DriverCrashError if the pool itself has ended."""
        try:
            self._room, events = self._pool.control.recv()
        except (EOFError, ConnectionError):
            raise self._pool.error() from None
        return list(events)

    def _take(self, event: Event) -> Ended | None:
        """Handle an event, and return an item that has ended. An abandoned run may have left events about its items."""
        match event:
            case Began(number, place):
                if number in self._running:
                    self._on_start(self._running[number][0], place)
            case Done(number, outcomes, device, left):
                if pair := self._running.pop(number, None):
                    return Ended(*pair, outcomes, device, left)
            case Returned(number):
                self._running.pop(number, None)
            case Note(text):
                self._on_note(text)
            case ScenarioRunnerError():
                raise event
            case devices:
                self._devices = devices
        return None
