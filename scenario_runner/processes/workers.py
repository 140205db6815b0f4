"""Run items in separate processes: the interface of the pool."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import count
from multiprocessing.connection import Connection
from tempfile import TemporaryFile
from typing import Any, Final

from scenario_runner.errors import DriverCrashError, UnsupportedError
from scenario_runner.processes.jobs import Device, Job, WorkerOptions
from scenario_runner.processes.programs import signal_name
from scenario_runner.processes.spawned_process import spawn
from scenario_runner.processes.system_limits import refusal
from scenario_runner.suite.outcomes import Item, Result
from scenario_runner.suite.verdicts import UNLISTED, Expected

_END_S: Final = 3.0


class Workers:
    """Runs items in workers; use it in a ``with`` block, from one thread.

    Life cycle: starts the pool, a process (`pool.main`), which starts a worker for each device and more for items; they
    stay for the items of a later `run`; `close` ends all of them.
    """

    def __init__(
        self,
        options: WorkerOptions | None = None,
        *,
        on_start: Callable[[Item, int], object] = lambda item, worker: None,
        on_note: Callable[[str], object] = lambda text: None,
    ) -> None:
        """``on_start`` receives each item that a worker begins with, and the number of the worker. ``on_note`` receives
        notes about devices that are given up, and about workers that ended between items.

        Raises LimitError if the system refuses a process, and UnsupportedError for core dumps outside of Linux."""
        if options is not None and options.core_dumps and sys.platform != "linux":
            raise UnsupportedError("--core-dumps needs Linux")
        self._options = options or WorkerOptions()
        self._on_start = on_start
        self._on_note = on_note
        self._running: dict[int, Item] = {}
        self._numbers = count(1)
        self._is_stopping = self._is_now = False
        self._devices: tuple[Device, ...] = ()
        self._room = 1
        try:
            self._errors = TemporaryFile()  # noqa: SIM115 - closed by `close`
            ours, theirs = socket.socketpair()
            with theirs:
                self._pool, pipe = spawn(
                    "scenario_runner.processes.pool:main",
                    connection=theirs,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=self._errors,
                    env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},  # threads do not survive a fork
                    process_group=0,  # Ctrl-C is for this process, which ends the workers in its own way
                    creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),  # likewise on Windows
                )
            os.close(pipe)
        except OSError as error:
            raise refusal("process") from error
        self._control = Connection(ours.detach())
        self._tell(self._options)

    def listen(self, on_start: Callable[[Item, int], object], on_note: Callable[[str], object]) -> None:
        """Replace the functions that were given at the start."""
        self._on_start, self._on_note = on_start, on_note

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def devices(self) -> tuple[Device, ...]:
        """The devices that are in use, as far as they are known."""
        return tuple(device for device in self._devices if device.uuid or device.given_up)

    def run(
        self, items: Iterable[Item], expected: Callable[[str], Expected] = lambda name: UNLISTED
    ) -> Iterator[Result]:
        """Run items, and yield the result of each as soon as the rules want no further attempt. Few more items are
        taken than there are workers. After an attempt that may have damaged its process, such as a crash or a timeout,
        the next one happens in a process that has run nothing before.

        ``expected`` returns the entry in the lists of an item by its id. When no device is left, the other items are
        Missing. Raises NoDeviceError, DriverCrashError and other errors of the driver if no device could be used from
        the start.
        """
        queue = iter(items)
        self._is_stopping = self._is_now = False
        results: list[Result] = []
        try:
            while True:
                jobs: list[Job] = []
                while not self._is_stopping and len(self._running) < self._room and (item := next(queue, None)):
                    jobs.append(Job(next(self._numbers), item, expected(item.id)))
                    self._running[jobs[-1].number] = item
                if jobs:
                    self._tell("run", jobs)
                if self._is_stopping:  # the pool may have received items since
                    self._tell("stop", self._is_now)
                yield from results  # while the workers run
                if not self._running:
                    return
                results = [result for event in self._events() if (result := self._take(event)) is not None]
        finally:
            if self._running:
                self._tell("stop", True)
                self._running.clear()

    def find_devices(self) -> frozenset[tuple[str, str]]:
        """Return the UUIDs and drivers of the usable devices. The errors are those of `run`."""
        while len(self.devices) < max(1, len(self._devices)):
            for event in self._events():
                self._take(event)
        return frozenset((device.uuid, device.driver) for device in self._devices if device.uuid)

    def run_one(self, item: Item, expected: Expected = UNLISTED) -> Result:
        """Run one item. The errors are those of `run`."""
        (result,) = self.run((item,), lambda name: expected)
        return result

    def stop(self, *, now: bool = False) -> None:
        """End `run` after the current items, or kill these ``now`` without results. A signal handler may call this."""
        self._is_stopping, self._is_now = True, now or self._is_now
        self._tell("stop", self._is_now)

    def close(self) -> None:
        """End all workers and the items that they run. Does nothing the second time."""
        if self._control.closed:
            return
        self._control.close()
        try:
            self._pool.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._pool.kill()
            self._pool.wait()
        self._errors.close()

    def _tell(self, *message: Any) -> None:
        with suppress(OSError):  # the pool is gone, which `_events` handles
            self._control.send(message)

    def _events(self) -> list[Any]:
        """Receive the next list of events. Raises DriverCrashError if the pool has ended, which no worker should
        cause."""
        try:
            self._room, events = self._control.recv()
        except (EOFError, ConnectionError):
            code = self._pool.wait()
            self._errors.seek(0)
            why = self._errors.read(1 << 16).decode("utf-8", "replace").strip().rpartition("\n")[2]
            how = f"was ended by {signal_name(-code)}" if code < 0 else f"ended with exit code {code}"
            text = f"the process that workers are forked from {how}" + (f": {why}" if why else "")
            help = "memory that has run out is the usual cause; a suite with --results goes on with --resume"
            raise DriverCrashError(text, help=help) from None
        return list(events)

    def _take(self, event: Any) -> Result | None:
        """Handle an event, and return the result that has come with it, if any."""
        match event:
            case "began", number, place:
                if number in self._running:
                    self._on_start(self._running[number], place)
            case "done", number, Result() as result:
                if self._running.pop(number, None):  # else it is of a run that was abandoned
                    return result
            case "back", number:
                self._running.pop(number, None)
            case "devices", devices:
                self._devices = devices
            case "note", text:
                self._on_note(text)
            case "error", error:
                raise error
        return None
