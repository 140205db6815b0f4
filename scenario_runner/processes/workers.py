"""Run items in separate processes: the interface of the pool."""

import atexit
import socket
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import count
from multiprocessing.connection import Connection
from typing import Any, Final, Generic, NamedTuple, Self, TypeVar

from scenario_runner.errors import DriverCrashError, UnsupportedError
from scenario_runner.processes import pool
from scenario_runner.processes.isolated_process import start, start_method
from scenario_runner.processes.jobs import Device, Job, WorkerOptions
from scenario_runner.processes.signals import signal_name
from scenario_runner.processes.system_limits import refusal

_END_S: Final = 3.0

Item = TypeVar("Item")


class Ended(NamedTuple):
    """An item with the outcomes of its attempts, and the device that it ran on last. If no device is left for another
    attempt, ``left`` says why."""

    item: Any
    hint: Any
    outcomes: tuple[Any, ...]
    device: Device
    left: str = ""


class Workers(Generic[Item]):
    """Runs items in workers; use it in a ``with`` block, from one thread.

    Life cycle: starts the pool, a process (`pool.main`), which starts a worker for each device and more for items; they
    stay for later items; `close` ends all of them.
    """

    def __init__(
        self,
        options: WorkerOptions,
        *,
        on_start: Callable[[Item, int], object] = lambda item, worker: None,
        on_note: Callable[[str], object] = lambda text: None,
    ) -> None:
        """``on_start`` receives each item that a worker begins with, and the number of the worker. ``on_note`` receives
        notes about devices that are given up, and about workers that ended between items.

        Raises LimitError if the system refuses a process, and UnsupportedError for core dumps outside of Linux."""
        if options.core_dumps and sys.platform != "linux":
            raise UnsupportedError("--core-dumps needs Linux")
        self._on_start = on_start
        self._on_note = on_note
        self._running: dict[int, tuple[Item, object]] = {}
        self._numbers = count(1)
        self._is_stopping = self._is_now = False
        self._devices: tuple[Device, ...] = ()
        self._room = 1
        try:
            ours, theirs = socket.socketpair()
            with theirs:
                method = start_method()
                self._pool = start(method, pool.main, theirs, ours if method == "fork" else None)
        except OSError as error:
            raise refusal("process") from error
        self._control = Connection(ours.detach())
        atexit.register(self.close)  # multiprocessing would wait for the pool
        self._tell(options)

    def listen(self, on_start: Callable[[Item, int], object], on_note: Callable[[str], object]) -> None:
        """Replace the functions that were given at the start."""
        self._on_start, self._on_note = on_start, on_note

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def devices(self) -> tuple[Device, ...]:
        """The devices that are in use, as far as they are known."""
        return tuple(device for device in self._devices if device.uuid or device.given_up)

    def run_items(self, items: Iterable[tuple[Item, object]]) -> Iterator[Ended]:
        """Run items, each with a hint for the policy, and yield each as soon as the policy wants no further attempt.

        Few more items are taken than there are workers. After an attempt that may have damaged its process, such as a
        crash or a timeout, the next one happens in a process that has run nothing before. When no device is left, the
        other items end without an attempt. Raises NoDeviceError, DriverCrashError and other errors of the driver if no
        device could be used from the start.
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
                if jobs:
                    self._tell("run", jobs)
                if self._is_stopping:  # the pool may have received items since
                    self._tell("stop", self._is_now)
                yield from ended  # while the workers run
                if not self._running:
                    return
                ended = [one for event in self._events() if (one := self._take(event)) is not None]
        finally:
            if self._running:
                self._tell("stop", True)
                self._running.clear()

    def find_devices(self) -> frozenset[tuple[str, str]]:
        """Return the UUIDs and drivers of the usable devices. The errors are those of `run_items`."""
        while len(self.devices) < max(1, len(self._devices)):
            for event in self._events():
                self._take(event)
        return frozenset((device.uuid, device.driver) for device in self._devices if device.uuid)

    def stop(self, *, now: bool = False) -> None:
        """End `run_items` after the current items, or kill these ``now`` without outcomes. A signal handler may call
        this."""
        self._is_stopping, self._is_now = True, now or self._is_now
        self._tell("stop", self._is_now)

    def close(self) -> None:
        """End all workers and the items that they run. Does nothing the second time."""
        if self._control.closed:
            return
        atexit.unregister(self.close)
        self._tell("end")
        self._control.close()
        self._pool.join(_END_S)
        if self._pool.exitcode is None:
            self._pool.kill()
            self._pool.join()

    def _tell(self, *message: object) -> None:
        with suppress(OSError):  # the pool is gone, which `_events` handles
            self._control.send(message)

    def _events(self) -> list[object]:
        """Receive the next list of events. Raises DriverCrashError if the pool has ended, which no worker should
        cause."""
        try:
            self._room, events = self._control.recv()
        except (EOFError, ConnectionError):
            self._pool.join()
            code = self._pool.exitcode or 0
            how = f"was ended by {signal_name(-code)}" if code < 0 else f"ended with exit code {code}"
            help = "memory that has run out is the usual cause; a suite with --results goes on with --resume"
            raise DriverCrashError(f"the process that workers are forked from {how}", help=help) from None
        return list(events)

    def _take(self, event: Any) -> Ended | None:
        """Handle an event, and return the item that has ended with it, if any."""
        match event:
            case "began", number, place:
                if number in self._running:
                    self._on_start(self._running[number][0], place)
            case "done", number, outcomes, device, left:
                if pair := self._running.pop(number, None):  # else it is of a run that was abandoned
                    return Ended(*pair, outcomes, device, left)
            case "back", number:
                self._running.pop(number, None)
            case "devices", devices:
                self._devices = devices
            case "note", text:
                self._on_note(text)
            case "error", error:
                raise error
        return None
