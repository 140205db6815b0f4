"""The worker processes of all devices: start, watch and end them. Does not schedule items; `Workers` does.

Waits for sockets only. A worker that dies, hangs, sends invalid data, or cannot be started or ended fails its current
item and is replaced. With core dumps, gdb reads the native stack of a crash from the core file.
"""

from __future__ import annotations

import glob
import os
import re
import selectors
import shutil
import signal
import subprocess
import sys
import time
from collections import deque
from contextlib import suppress
from itertools import count
from typing import Any, Final, Protocol

from scenario_runner.diagnostics import Diagnostic
from scenario_runner.errors import error_class
from scenario_runner.files.source import reason_of
from scenario_runner.program import Program
from scenario_runner.suite.records import Item, Outcome
from scenario_runner.suite.running.channel import STACK_SIGNAL, GarbageError
from scenario_runner.suite.running.options import WorkerOptions
from scenario_runner.suite.running.process import Forks, Given, UsedDevice, WorkerProcess, counted_kills, start_error
from scenario_runner.system_limits import refusal

_MOST_FRAMES: Final = 40
_LIMIT_S: Final = 60.0
_HANDLER: Final = "<signal handler called>"
_FRAME: Final = re.compile(r"#\d+ ")
_INTERPRETER: Final = re.compile(r"(?: in |#\d+\s+)(?:_?Py|cfunction_|method_vectorcall|object_vacall)")


def native_stack(process: int) -> str:
    """The frames of the thread that crashed, down to the Python interpreter, and the path of the core file."""
    core, pattern = _core_of(process)
    if not core:
        return f"no core file was found; /proc/sys/kernel/core_pattern is {pattern!r}: see core(5)"
    gdb = shutil.which("gdb")
    lines = _frames(gdb, core) if gdb else ["gdb is not installed, which shows the stack"]
    return "\n".join([*lines, f"core file: {core}"])


def _core_of(process: int) -> tuple[str, str]:
    """The core file of a process, empty where there is none, and the system's pattern for such files."""
    try:
        with open("/proc/sys/kernel/core_pattern", encoding="utf-8") as file:
            pattern = file.read().strip()
        with open("/proc/sys/kernel/core_uses_pid", encoding="ascii") as file:
            has_suffix = file.read().strip() == "1" and "%p" not in pattern
    except OSError as error:
        return "", reason_of(error)
    if pattern.startswith("|"):
        return "", pattern
    name = re.sub("%(.)", lambda found: str(process) if found[1] == "p" else "*", glob.escape(pattern))
    found = glob.glob(os.path.abspath(name + (f".{process}" if has_suffix else "")))
    return max(found, key=os.path.getmtime, default=""), pattern


def _frames(gdb: str, core: str) -> list[str]:
    command = [gdb, "-batch", "-nx", "-ex", f"bt {_MOST_FRAMES}", sys.executable, core]
    with Program(
        command, _LIMIT_S, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as program:
        shown = program.communicate()[0].decode("utf-8", "replace")
    frames = [line for line in shown.splitlines() if _FRAME.match(line)]
    # gdb shows the first frame twice; those above the handler are of faulthandler
    start = next((at for at, line in enumerate(frames, 1) if line.endswith(_HANDLER)), 1)
    frames = frames[start:]
    end = next((at for at, line in enumerate(frames) if _INTERPRETER.search(line)), len(frames))
    return frames[:end] or [f"gdb {program.failure or 'shows no frame'}"]


_TICK_S: Final = 0.25  # between two looks at the deadlines
_STACK_TICK_S: Final = 0.02  # the same while a worker writes its Python stack
_STACK_S: Final = 1.0  # for the Python stack of a worker that hangs
_LEAVE_S: Final = 5.0  # for a worker that has been told to end
_CLOSED_S: Final = 5.0  # for a worker whose end of the connection is closed, to be known to have ended
_CLOSE_S: Final = 1.0  # for workers that had been killed before the fleet is closed
_AGAIN_S: Final = 1.0  # until the next try where the system refuses a process
_MOST_STARTING: Final = 64  # at a time: the socket to the zygote holds some hundred requests, and more would be lost
_MOST_REFUSALS: Final = 10  # while there is no worker: what was ended may need a while to be gone
_MOST_ZYGOTES: Final = 3


class Events(Protocol):
    """What a fleet tells whoever uses it."""

    def began(self, worker: WorkerProcess) -> None:
        """A worker runs the first of its items."""

    def outcome(self, worker: WorkerProcess, given: Given, outcome: Outcome, *, spoiled: bool) -> None:
        """An item of a worker has ended; ``spoiled``: so has the worker, since it may have been harmed."""

    def back(self, given: Given, *, is_next: bool) -> None:
        """A worker has ended that had not begun with this item, though it was the next one, or after another one."""

    def found(self, device: UsedDevice, devices: list[str]) -> None:
        """The devices that were asked for in ``device``."""

    def note(self, text: str) -> None:
        """Something to be said that concerns no item."""


class Fleet:
    """Life cycle: the zygote is started with it, workers by `start`; `wait` takes in what has happened; `close` ends
    all of them."""

    def __init__(self, options: WorkerOptions, events: Events) -> None:
        """Raises UnsupportedError where the system cannot do this, LimitError where it refuses a process."""
        self._options = options
        self._events = events
        self.workers: dict[int, WorkerProcess] = {}
        self.idle: deque[WorkerProcess] = deque()
        self._numbers, self._runs = count(1), count(1)
        self._next_tick = 0.0
        self._refused_until = 0.0
        self._refusals = 0
        self._loaded: dict[str, None] = {}
        self._kills = counted_kills()
        self._zygotes = 0
        self._closing = False
        self._selector = selectors.DefaultSelector()
        self._forks = self._fork_zygote()

    def _fork_zygote(self) -> Forks:
        self._zygotes += 1
        forks = Forks(self._options)
        if self._loaded:
            forks.load(self._loaded)
        self._selector.register(forks.control, selectors.EVENT_READ, (self._hear_zygote, None))
        return forks

    @property
    def starting(self) -> int:
        """How many workers are not ready yet."""
        return sum(each.state == "starting" for each in self.workers.values())

    @property
    def busy(self) -> bool:
        """Whether an item is being run."""
        return any(each.given for each in self.workers.values())

    def start(self, device: UsedDevice) -> bool:
        """Start a worker; false where so many are starting, or where the system refuses it for now.

        Raises LimitError where it goes on to refuse the only one."""
        if self.starting >= _MOST_STARTING or time.monotonic() < self._refused_until:
            return False
        used = {each.place for each in self.workers.values()}
        place = next(place for place in count(1) if place not in used)
        try:
            worker = WorkerProcess(self._forks, next(self._numbers), place, device, self._options.start_timeout_s)
        except OSError as error:
            return self._refused(error.strerror or str(error))
        self.workers[worker.number] = worker
        device.workers += 1
        device.starting += 1
        self._selector.register(worker.channel.connection, selectors.EVENT_READ, (self._hear, worker))
        return True

    def _refused(self, why: str) -> bool:
        self._refused_until = time.monotonic() + _AGAIN_S
        self._refusals += 1
        if not self.workers and self._refusals >= _MOST_REFUSALS:
            raise refusal("process")
        if self._refusals == 1:
            self._events.note(f"the system refuses another process ({why}); going on with {len(self.workers)}")
        return False

    def run(self, worker: WorkerProcess, item: Item, attempts: tuple[Outcome, ...]) -> bool:
        """Hand an item to a worker, to be run after what it runs; false where that has ended meanwhile."""
        try:
            worker.give(Given(next(self._runs), item, attempts))
        except OSError:
            if worker.state == "idle":
                self.leave(worker)
            return False
        if worker.state == "idle":
            self.idle.remove(worker)
            self._begin(worker)
        return True

    def _begin(self, worker: WorkerProcess) -> None:
        worker.begin(self._options)
        self._next_tick = min(self._next_tick, worker.deadline)
        self._events.began(worker)

    def stop(self, *, now: bool) -> None:
        """Have workers end after what they run, or ``now``, without an outcome, where they have a further item."""
        for each in list(self.workers.values()):
            if now and each.given:
                each.given.clear()
                self.kill(each, "was not needed any more")
            elif len(each.given) > 1:
                each.given.pop()
                each.is_last = True

    def leave(self, worker: WorkerProcess) -> None:
        """Have a worker end that runs nothing."""
        self._retire(worker)
        worker.channel.shut()

    def kill(self, worker: WorkerProcess, why: str) -> None:
        """End a worker that runs something, or that may not listen. ``why`` goes on after "the process that ran it".

        Its item has ended with this: the end of a process may take seconds, and nothing waits for it."""
        self._retire(worker)
        worker.why = worker.why or why
        self._set(worker, "killed", self._options.kill_wait_s)
        self._forks.signal(worker.number, signal.SIGKILL)
        if worker.given:
            self._events.outcome(worker, *worker.ended(), spoiled=True)
        self._give_back(worker)

    def _retire(self, worker: WorkerProcess) -> None:
        """Count it no more among those of its device."""
        if worker.state not in ("leaving", "killed"):
            worker.device.workers -= 1
            worker.device.starting -= worker.state == "starting"
            if worker.state == "idle":
                self.idle.remove(worker)
            self._set(worker, "leaving", _LEAVE_S)

    def _set(self, worker: WorkerProcess, state: Any, limit_s: float) -> None:
        worker.state = state
        worker.deadline = time.monotonic() + limit_s
        self._next_tick = min(self._next_tick, worker.deadline)

    def postpone(self, seconds: float) -> None:
        """Nobody has listened to the workers for so long: their time goes on from now."""
        for each in self.workers.values():
            each.deadline += seconds

    def wait(self) -> None:
        """Take in what has happened, after waiting for something to happen or for a deadline to pass."""
        for key, _ in self._selector.select(max(0.0, self._next_tick - time.monotonic())):
            handler, worker = key.data
            if worker is None or worker.number in self.workers:  # it may just have been forgotten
                handler(worker)
        now = time.monotonic()
        if now >= self._next_tick:
            self._next_tick = now + _TICK_S
            for each in list(self.workers.values()):
                each.bound_output()
                if each.state != "idle" or each.closed:
                    self._look_at(each, now)

    def _look_at(self, worker: WorkerProcess, now: float) -> None:
        """Do what is due when the deadline of a worker has passed."""
        late = now >= worker.deadline
        match worker.state:
            case "hanging":
                if late or worker.has_stack:
                    self.kill(worker, worker.overdue)
                else:
                    self._next_tick = min(self._next_tick, now + _STACK_TICK_S)
            case "busy" | "idle" | "starting" if late and worker.closed:
                self.kill(worker, "closed its connection")
            case "busy" if late:
                worker.timed_out = True
                self._forks.signal(worker.number, STACK_SIGNAL)
                self._set(worker, "hanging", _STACK_S)
                self._next_tick = now + _STACK_TICK_S
            case "starting" if late:
                self.kill(worker, f"was not ready after {self._options.start_timeout_s:g} s")
                worker.start_failed = True
            case "leaving" if late:
                self.kill(worker, "did not end by itself")
            case "killed" if late:
                self._cannot_end(worker)
        self._next_tick = min(self._next_tick, max(worker.deadline, now + _STACK_TICK_S))

    def _cannot_end(self, worker: WorkerProcess) -> None:
        device = worker.device
        reason = (
            f"process {worker.place} on {device} has not ended {self._options.kill_wait_s:g} s after it was killed"
            " (its driver holds it in the kernel): no further scenario runs on this device"
        )
        if not device.given_up:
            device.give_up(reason)
            self._events.note(reason)
        self._forget(worker)
        for each in list(self.workers.values()):
            if each.device is device and each.state in ("starting", "idle"):
                self.leave(each) if each.state == "idle" else self.kill(each, "was not needed any more")

    # What workers send

    def _hear(self, worker: WorkerProcess) -> None:
        try:
            for message in worker.channel.receive():
                self._take(worker, message)
        except (EOFError, ConnectionResetError):
            self._selector.unregister(worker.channel.connection)
            worker.closed = True  # the zygote is about to say how it has ended
            worker.deadline = min(worker.deadline, time.monotonic() + _CLOSED_S)
        except GarbageError as error:
            self._send_away(worker, error)

    def _take(self, worker: WorkerProcess, message: list[Any]) -> None:
        try:
            match message:
                case ["done", dict(outcome), "" | "spoiled" | "grown" as state]:
                    if worker.state == "busy":  # else its time is over
                        self._done(worker, Outcome.of_json(outcome), state)
                case ["limit", float() | int() as seconds, str(origin)]:
                    if worker.state == "busy":
                        worker.limit(seconds, origin)
                        self._next_tick = min(self._next_tick, worker.deadline)
                case ["ready", dict(described)] if worker.state == "starting":
                    self._refusals = 0
                    worker.device.found(described)
                    self._load(described["libraries"])
                    worker.device.starting -= 1
                    worker.state = "idle"
                    self.idle.append(worker)
                case ["used", list(names)]:
                    self._load(names)
                case ["driver", str(manifest)]:
                    worker.device.driver_found(manifest)
                case ["devices", list(found)] if worker.state == "starting":
                    self._retire(worker)
                    self._events.found(worker.device, found)
                case ["failed", bool(for_good), str(code), str(text), help] if worker.state == "starting":
                    self._retire(worker)
                    error = error_class(code)(Diagnostic(code, "error", None, text, help))
                    worker.device.failed(error, worker.driver, for_good=for_good)
                case _:
                    raise GarbageError(repr(message)[:40])
        except (KeyError, TypeError, ValueError) as error:
            self._send_away(worker, error)

    def _load(self, names: list[Any]) -> None:
        """Have the next workers begin with what one has needed."""
        new = [name for name in names if isinstance(name, str) and name not in self._loaded]
        self._loaded.update(dict.fromkeys(new))
        if new:
            self._forks.load(new)

    def _send_away(self, worker: WorkerProcess, error: Exception) -> None:
        if worker.state != "killed":
            self.kill(worker, f"sent something that is no result ({error})")

    def _done(self, worker: WorkerProcess, outcome: Outcome, state: str) -> None:
        given, outcome = worker.done(outcome)
        self._events.outcome(worker, given, outcome, spoiled=state == "spoiled")
        if state:  # it ends by itself
            self._retire(worker)
            self._give_back(worker)
        elif worker.is_last:
            self.kill(worker, "was not needed any more")
        elif worker.given:
            self._begin(worker)
        else:
            worker.state = "idle"
            self.idle.append(worker)
            if worker.device.given_up:
                self.leave(worker)

    def _give_back(self, worker: WorkerProcess, *, is_next: bool = False) -> None:
        """Give back what a worker does not run; the last item first, so that they keep their order."""
        while worker.given:
            given = worker.given.pop()
            self._events.back(given, is_next=is_next and not worker.given)

    # How workers end

    def _hear_zygote(self, _: None) -> None:
        try:
            for answer in self._forks.answers():
                match answer:
                    case ("ended", int(number), int(status), int(process)) if number in self.workers:
                        self._ended(self.workers[number], status, process)
                    case ("refused", int(number), str(why)) if number in self.workers:
                        worker = self.workers[number]
                        self._retire(worker)
                        self._forget(worker)
                        self._refused(why)
        except EOFError:
            self._zygote_ended()

    def _ended(self, worker: WorkerProcess, status: int, process: int) -> None:
        with suppress(EOFError, ConnectionResetError, GarbageError):
            while messages := worker.channel.receive():  # what it sent before its end
                for message in messages:
                    self._take(worker, message)
        how = worker.how(status)
        state, has_item = worker.state, bool(worker.given)
        self._retire(worker)
        if has_item and worker.has_begun:
            stack = self._native_stack(process) if self._options.core_dumps and os.WCOREDUMP(status) else ""
            self._events.outcome(worker, *worker.ended(status, self._kills, stack), spoiled=True)
        elif has_item:
            self._give_back(worker, is_next=True)
        elif state == "starting" or worker.start_failed:
            worker.device.failed(start_error(how, worker.work()[0]), worker.driver)
        elif state == "idle":
            self._events.note(f"process {worker.place} on {worker.device} {how} while it ran nothing")
        self._give_back(worker)
        self._forget(worker)

    def _native_stack(self, process: int) -> str:
        begun = time.monotonic()
        stack = native_stack(process)
        self.postpone(time.monotonic() - begun)
        return stack

    def _forget(self, worker: WorkerProcess) -> None:
        self.workers.pop(worker.number, None)
        if worker.channel.connection in self._selector.get_map():
            self._selector.unregister(worker.channel.connection)
        worker.close()

    def _zygote_ended(self) -> None:
        """Start another, and give all items back: with it, all workers have ended."""
        self._selector.unregister(self._forks.control)
        error = self._forks.end()
        self._forks.close()
        for each in list(self.workers.values()):
            self._give_back(each, is_next=True)
            self._retire(each)
            self._forget(each)
        if self._closing:
            return
        if self._zygotes >= _MOST_ZYGOTES:
            raise error
        self._events.note(str(error))
        self._forks = self._fork_zygote()

    def close(self) -> None:
        """End all workers; what they run is lost. Those that were killed before are hardly waited for. Doing so again
        does nothing."""
        late = {each.number for each in self.workers.values() if each.state == "killed"}
        for each in list(self.workers.values()):
            self.leave(each) if each.state == "idle" else self.kill(each, "was not needed any more")
        self._closing = True
        until = time.monotonic() + _CLOSE_S
        while any(number not in late or time.monotonic() < until for number in self.workers):
            self.wait()
        for each in list(self.workers.values()):
            self._forget(each)
        self._forks.close()
        self._selector.close()
