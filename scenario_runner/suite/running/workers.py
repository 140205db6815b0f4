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
from typing import Any, Final

from scenario_runner.errors import DriverCrashError, UnsupportedError
from scenario_runner.program import signal_name
from scenario_runner.run.crash import native_stack
from scenario_runner.suite.records import Item, Outcome
from scenario_runner.suite.running.options import Again, Device, Finished, OnStart, WorkerOptions
from scenario_runner.system_limits import refusal

_MOST_POOLS: Final = 3
_END_S: Final = 3.0
# The pool uses the import path of this process, and ends without the interpreter's tear-down.
_CODE: Final = """\
import os, sys
sys.path[:] = {}
from scenario_runner.suite.running.pool import main
main({})
os._exit(0)
"""


class Workers:
    """Runs items in workers; use it in a ``with`` block, from one thread.

    Life cycle: starts the pool, a process (`pool.main`), which starts a worker for each device and more for items; they
    stay for the items of a later `run`; `close` ends all of them.
    """

    def __init__(
        self,
        options: WorkerOptions | None = None,
        *,
        on_start: OnStart | None = None,
        on_note: Callable[[str], None] | None = None,
    ) -> None:
        """``on_note`` receives notes about devices that are given up, and about workers that ended between items.

        Raises UnsupportedError if the system cannot isolate, LimitError if it refuses a process."""
        if not hasattr(os, "memfd_create"):
            raise UnsupportedError(
                "running scenarios in processes of their own needs Linux", help="run them with --no-isolate"
            )
        self._options = options or WorkerOptions()
        self._on_start = on_start
        self._on_note = on_note
        self._running: dict[int, tuple[Item, tuple[Outcome, ...], str]] = {}
        self._new: list[tuple[int, Item, str, bool]] = []
        self._numbers = count(1)
        self._is_stopping = self._is_now = False
        self._pools = 0
        self._start_pool()

    def _start_pool(self) -> None:
        self._pools += 1
        self._devices: tuple[Device, ...] = ()
        self._received = 0
        self._room = 1
        try:
            self._errors = os.memfd_create("scenario-runner")
            ours, theirs = socket.socketpair()
            paths = [os.path.abspath(entry) for entry in sys.path]
            with theirs:
                self._pool = subprocess.Popen(
                    [sys.executable, "-P", "-c", _CODE.format(paths, theirs.fileno())],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=self._errors,
                    env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},  # threads do not survive a fork
                    pass_fds=[theirs.fileno()],
                    process_group=0,  # Ctrl-C is for this process, which ends the workers in its own way
                )
        except OSError as error:
            raise refusal("process") from error
        self._control = Connection(ours.detach())
        self._tell(self._options)

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def devices(self) -> tuple[Device, ...]:
        """The devices that are in use, as far as they are known."""
        return tuple(device for device in self._devices if device.uuid or device.given_up)

    def run(self, items: Iterable[Item], again: Again | None = None) -> Iterator[Finished]:
        """Run items, and yield each as soon as it needs no further attempt. Few more are taken than there are workers.

        ``again`` decides whether an item runs once more after its attempts so far. After a crash, a timeout or a loss
        of the device that happens in a process that has run nothing before.

        When no device is left, the other items are Missing. Raises NoDeviceError, DriverCrashError and other errors of
        the driver if no device could be used from the start.
        """
        queue = iter(items)
        self._is_stopping = self._is_now = False
        finished: list[Finished] = []
        try:
            while True:
                while not self._is_stopping and len(self._running) < self._room and (item := next(queue, None)):
                    self._add(item, (), "any")
                self._tell("run", self._received, self._new)
                self._new = []
                if self._is_stopping:  # the pool may have received items since
                    self._tell("stop", self._is_now)
                yield from finished  # while the workers run
                if not self._running:
                    return
                finished = [ended for event in self._events() if (ended := self._take(event, again)) is not None]
        finally:
            if self._running:
                self._tell("stop", True)
                self._running.clear()
                self._new = []

    def find_devices(self) -> frozenset[tuple[str, str]]:
        """Return the UUIDs and drivers of the usable devices. The errors are those of `run`."""
        while len(self.devices) < max(1, len(self._devices)):
            for event in self._events():
                self._take(event, None)
        return frozenset((device.uuid, device.driver) for device in self._devices if device.uuid)

    def run_one(self, item: Item, again: Again | None = None) -> Finished:
        """Run one item. The errors are those of `run`."""
        (finished,) = self.run((item,), again)
        return finished

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
        os.close(self._errors)

    def _add(self, item: Item, attempts: tuple[Outcome, ...], where: str) -> None:
        number = next(self._numbers)
        self._running[number] = item, attempts, where
        self._new.append((number, item, where, bool(attempts)))

    def _tell(self, *message: Any) -> None:
        with suppress(OSError):  # the pool is gone, which `_events` handles
            self._control.send(message)

    def _events(self) -> list[Any]:
        """Receive the next list of events."""
        try:
            self._received, self._room, events = self._control.recv()
        except (EOFError, ConnectionError):
            self._pool_ended()
            return []
        return list(events)

    def _take(self, event: Any, again: Again | None) -> Finished | None:
        """Handle an event, and return the item that has ended with it, if any."""
        match event:
            case "began", number, place:
                if self._on_start is not None and number in self._running:
                    self._on_start(self._running[number][0], place)
            case "done", number, outcome, where, device, driver, crashed:
                if number not in self._running:  # of a run that was abandoned
                    return None
                item, attempts, _ = self._running.pop(number)
                if crashed and self._options.core_dumps:
                    outcome = outcome._replace(stack=native_stack(crashed))
                attempts = (*attempts, outcome)
                if not where or self._is_stopping or again is None or not again(item, attempts):
                    return Finished(item, attempts, device, driver)
                self._add(item, attempts, where)
            case "back", number:
                self._running.pop(number, None)
            case "devices", devices:
                self._devices = devices
            case "note", text:
                if self._on_note is not None:
                    self._on_note(text)
            case "error", error:
                raise error
        return None

    def _pool_ended(self) -> None:
        """Start another pool, and send it the unfinished items."""
        self._pool.wait()
        code = self._pool.returncode
        why = os.pread(self._errors, 1 << 16, 0).decode("utf-8", "replace").strip().rpartition("\n")[2]
        how = f"was ended by {signal_name(-code)}" if code < 0 else f"ended with exit code {code}"
        text = f"the process that workers are forked from {how}" + (f": {why}" if why else "")
        self.close()
        if self._pools == _MOST_POOLS:
            raise DriverCrashError(text)
        if self._on_note is not None:
            self._on_note(text)
        self._start_pool()
        if self._is_stopping:
            self._running.clear()
        self._new = [(number, item, where, bool(done)) for number, (item, done, where) in self._running.items()]
