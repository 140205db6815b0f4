"""The pool: the process that starts, feeds, watches and ends workers.

The pool is a fork server. It has imported everything and opened nothing. The pool's user (`workers`) may have
threads and an open driver, and a fork survives neither. The fork server of multiprocessing ends when the system refuses
a process, and it cannot load the modules that earlier workers needed.

A worker may die, hang, send invalid data, or resist its start or its end. Then the current item fails, and the pool
starts another worker.

Messages are pickled. The user sends the `WorkerOptions` first, then lists of `Job`. ``True`` stops at once, ``False``
after the current items, and None is the end. The pool sends lists of `Event`, each with the number of items to have.
"""

import errno
import gc
import os
import selectors
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module
from itertools import count
from multiprocessing.connection import Connection
from operator import attrgetter, itemgetter
from socket import socket
from typing import Any, Final

from scenario_runner.errors import DriverCrashError, error_class
from scenario_runner.errors.diagnostic import Diagnostic
from scenario_runner.processes.isolated_process import start_method
from scenario_runner.processes.jobs import (
    ENDING,
    Began,
    Device,
    Done,
    Event,
    Job,
    Note,
    Returned,
    State,
    Task,
    UsedDevice,
    WaitingJobs,
    WorkerOptions,
)
from scenario_runner.processes.system_limits import refusal
from scenario_runner.processes.worker_process import WorkerProcess, resolve

_TICK_S: Final = 0.25  # between two looks at the deadlines
_LONGEST_REST_S: Final = 0.02  # outcomes gather meanwhile, and are handled together
_RETRY_S: Final = 1.0  # until the next fork after the system has refused a fork
_MOST_REFUSALS: Final = 10  # without any worker: killed processes may still be ending; they hold no file of the pool
_STACK_S: Final = 0.3  # for a hanging worker's Python stack
_CLOSED_S: Final = 5.0  # for a worker to end after closing the connection
_END_S: Final = 1.0  # for all workers, when this process ends

# Errors of messages from a worker with damaged memory.
_INVALID: Final = (AttributeError, LookupError, RecursionError, TypeError, ValueError)

_GARBAGE_THRESHOLD: Final = 50_000  # allocations between two collections: modules stay in use


def main(connection: socket, inherited: socket | None, modules: Sequence[str]) -> int:
    """Serve the user at the other end of a socket, and return the exit code.

    ``inherited`` is the user's end in a fork, which closes it. ``modules`` are imported before the options arrive.
    """
    if inherited is not None:
        inherited.close()
    method = start_method()
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # threads do not survive a fork
    control = Connection(connection.detach())
    gc.set_threshold(_GARBAGE_THRESHOLD)
    for module in modules:
        with suppress(ImportError):  # resolving the task raises it again
            import_module(module)
    with suppress(EOFError, ConnectionError):
        options: WorkerOptions = control.recv()
        task = resolve(options.task)
        task.preload(options.task_options, ())
        gc.freeze()  # a collection would write to memory that all workers share
        _Pool(control, options, task, method).serve()
    return 0


class _Pool:
    """Life cycle: created; `serve` until the user closes the connection; then all workers end."""

    def __init__(self, control: Connection, options: WorkerOptions, task: type[Task], method: str) -> None:
        self._options, self._task, self._method = options, task, method
        self._control = control
        self._devices = [UsedDevice(options.devices or None, options.jobs)]
        self._workers: list[WorkerProcess] = []
        self._waiting = WaitingJobs()
        self._continued: set[int] = set()  # SIGCONT, if it came since the last SIGTSTP
        self._events: list[Event] = []
        self._is_refused = False  # the user knows that no device can be used
        self._loaded: set[str] = set()
        self._is_stopping = False
        self._refusals, self._refused_until = 0, 0.0
        self._next_look = 0.0
        self._selector = selectors.DefaultSelector()
        self._selector.register(control, selectors.EVENT_READ, self._hear_user)
        if hasattr(signal, "SIGTSTP"):
            signal.signal(signal.SIGTSTP, lambda number, frame: self._suspend())
            signal.signal(signal.SIGCONT, lambda number, frame: self._continued.add(number))

    def serve(self) -> None:
        with suppress(EOFError, ConnectionError):
            while True:
                self._hand_out()
                if self._events:
                    self._control.send((self._room(), self._events))
                    self._events = []
                time.sleep(self._rest_s())
                ready = self._selector.select(_TICK_S)
                heard = time.monotonic()  # later messages wait for the next turn: gdb may take a minute
                for key, _ in ready:
                    if self._selector.get_map().get(key.fd) is key:  # a handler before it may have removed it
                        key.data()
                if heard >= self._next_look:
                    self._look(heard)
        for worker in self._workers:
            worker.process.kill()
        until = time.monotonic() + _END_S
        for worker in self._workers:
            worker.process.wait(max(0.0, until - time.monotonic()))
            worker.close()

    def close_inherited(self) -> None:
        """Close the pool's connections in a worker, which is a fork of the pool."""
        self._selector.close()
        self._control.close()
        for worker in self._workers:
            worker.close_inherited()

    # Messages of the user

    def _hear_user(self) -> None:
        message: list[Job] | bool | None = self._control.recv()
        if message is None:
            raise EOFError
        if isinstance(message, bool):
            self._stop(now=message)
        else:
            self._is_stopping = False
            self._waiting.fresh += message

    def _suspend(self) -> None:
        """Stop the workers and the pool until a shell continues the job. Time limits do not count this time."""
        began = time.monotonic()
        self._continued.clear()
        for worker in self._workers:
            worker.process.signal(signal.SIGSTOP)
        if not self._continued:  # else SIGCONT came first, and will not come again
            os.kill(os.getpid(), signal.SIGSTOP)
        for worker in self._workers:
            worker.deadline += time.monotonic() - began
            worker.process.signal(signal.SIGCONT)

    def _stop(self, *, now: bool) -> None:
        """End workers after their current items, or ``now``, without outcomes."""
        self._is_stopping = True
        for worker in self._workers:
            if not now:
                self._waiting.put_back(worker.take_back())
            elif worker.queue:
                self._kill(worker)
        self._events += [Returned(job.number) for job in self._waiting.take_all()]

    # The next work

    def _hand_out(self) -> None:
        """Give items to free workers, and start workers for the items that wait."""
        usable = [device for device in self._devices if device.error is None]
        if not usable:
            self._refuse()
            return
        if not self._waiting and self._in_state("idle"):  # idle workers can take items behind a slow item
            for worker in self._in_state("busy"):
                self._waiting.put_back(worker.take_back() if worker.is_slow else ())
        for idle in sorted(self._in_state("idle"), key=attrgetter("count"), reverse=True):
            if idle.device.jobs > len(self._in_state("busy", "hanging", device=idle.device)):
                job = self._waiting.take(by_new_process=not idle.count)
                if job is not None:
                    self._give(idle, [job])
        starting = len(self._in_state("starting"))
        unknown = sum(not candidate.is_known for candidate in usable)  # a worker opens each, before there are items
        missing = max(len(self._waiting), unknown) - starting
        while missing > 0 and (device := self._next_device()) is not None and self._start(device):
            missing -= 1
        used = [worker for worker in self._in_state("idle") if worker.count]
        if missing > 0 and device is None and not starting and used:
            self._kill(used[0])  # the waiting items need a new process
        if self._waiting.need_new_processes:
            self._give_in_advance()

    def _give_in_advance(self) -> None:
        """Give quick workers an equal share of the waiting items. Workers that start will need one item each.

        No item waits behind a repeated item, which may end the process again.
        """
        fresh, busy = self._waiting.fresh, self._in_state("busy")
        share = (len(fresh) - len(self._in_state("starting"))) // max(1, len(busy))
        for worker in busy:
            in_advance = len(worker.queue) - 1
            count = min(worker.advance - in_advance, share)
            if count > 0 and in_advance <= worker.advance // 2 and not (worker.is_slow or worker.queue[0].attempts):
                self._give(worker, [fresh.popleft() for _ in range(count)])

    def _in_state(self, *states: str, device: UsedDevice | None = None) -> list[WorkerProcess]:
        """Return the workers of a device, or of all devices, in some states."""
        return [worker for worker in self._workers if worker.state in states and device in (None, worker.device)]

    def _next_device(self) -> UsedDevice | None:
        """Choose the device that needs another worker most; None if no device does."""
        lacking = []
        for device in self._devices:
            workers = self._in_state("starting", "idle", "busy", "hanging", device=device)
            count = len(workers)
            limit = device.most_workers(sum(worker.has_opened for worker in workers))
            if count < limit:
                lacking.append((count / limit, device))
        return min(lacking, key=itemgetter(0))[1] if lacking else None

    def _give(self, worker: WorkerProcess, jobs: Sequence[Job]) -> None:
        try:
            worker.give(jobs)
        except OSError:  # the worker has ended: see `_ended`
            self._waiting.put_back(jobs)
            return
        if worker.state == "idle":
            self._begin(worker)

    def _begin(self, worker: WorkerProcess) -> None:
        worker.begin()
        self._events.append(Began(worker.queue[0].number, worker.place))

    def _start(self, device: UsedDevice) -> bool:
        """Start a worker. Return false if the system refuses a process, or did so a moment ago."""
        if time.monotonic() < self._refused_until:
            return False
        place = next(place for place in count(1) if all(worker.place != place for worker in self._workers))
        try:
            worker = WorkerProcess(self._options, self._method, place, device, self.close_inherited)
        except OSError as error:
            self._refused_until = time.monotonic() + _RETRY_S
            self._refusals += 1
            if not self._workers and (error.errno == errno.EMFILE or self._refusals >= _MOST_REFUSALS):
                self._events.append(refusal("process"))
            elif self._refusals == 1:
                why = error.strerror or str(error)
                text = f"the system refuses another process ({why}); going on with {len(self._workers)}"
                self._events.append(Note(text))
            return False
        self._workers.append(worker)
        self._selector.register(worker.connection, selectors.EVENT_READ, partial(self._hear, worker))
        if worker.process.end is not None:
            self._selector.register(worker.process.end, selectors.EVENT_READ, partial(self._ended, worker))
        return True

    def _refuse(self) -> None:
        """End the waiting items, since no device is left. If no device was ever usable, report the error."""
        if any(device.is_known for device in self._devices):
            why = "; ".join(device.given_up for device in self._devices)
            for job in self._waiting.take_all():
                self._events.append(Done(job.number, job.attempts, self._devices[0].about, why))
        elif self._devices[0].error is not None and (self._waiting or not self._is_refused):
            self._events.append(self._devices[0].error)
        self._waiting.take_all()
        self._is_refused = True

    # Messages to the user

    def _tell_devices(self) -> None:
        self._events.append(tuple(device.about._replace(given_up=device.given_up) for device in self._devices))

    def _room(self) -> int:
        """Return how many items to have here: one for each worker, and twice the items in advance."""
        workers = sum(device.jobs or 1 for device in self._devices if device.error is None)
        return max(1, workers + 2 * sum(worker.advance for worker in self._workers))

    def _rest_s(self) -> float:
        """Return how long the pool may wait. Each busy worker has items in advance for at least twice this time."""
        busy = self._in_state("busy")
        if len(busy) < sum(device.jobs or 1 for device in self._devices if device.error is None):
            return 0.0
        return min(_LONGEST_REST_S, min((worker.reserve_s for worker in busy), default=0.0) / 2)

    # Messages of workers

    def _hear(self, worker: WorkerProcess) -> None:
        try:
            self._take(worker)
        except EOFError:
            self._selector.unregister(worker.connection)
            if worker.process.wait(_CLOSED_S):
                if worker.process.end is None:
                    self._ended(worker)
            elif worker.state != "killed":
                self._kill(worker, "closed its connection")
        except _INVALID as error:
            if worker.state != "killed":
                self._kill(worker, f"sent an invalid message ({error})")

    def _take(self, worker: WorkerProcess) -> None:
        """Receive and handle messages of a worker. Raises EOFError, BlockingIOError, or `_INVALID`."""
        for message in worker.received():
            self._handle(worker, message)

    def _handle(self, worker: WorkerProcess, message: Any) -> None:
        device, state = worker.device, worker.state
        match message:
            case ["done", dict(fields), "good" | "failed" | "spoiled" | "grown" as after, float(seconds)]:
                outcome = self._options.policy.outcome(fields, worker.before, worker.count)
                if state == "busy":  # a late message of a hanging or killed worker does not count
                    worker.measure(seconds, is_good=after == "good")
                    self._done(worker, outcome, after)
            case ["limit", float() | int() as seconds, str(origin)]:
                if state == "busy":
                    worker.limit(seconds, origin)
            case ["used", list(names)]:
                self._load(names)
            case ["ready", list(described)] if state == "starting":
                self._refusals = 0
                about = Device(*described)
                if about.warning and all(about.warning != other.about.warning for other in self._devices):
                    self._events.append(Note(about.warning))
                device.opened(about)
                worker.state = "idle"
                self._tell_devices()
            case ["devices", list(requests)] if state == "starting":
                self._devices = [UsedDevice(request, self._options.jobs) for request in requests]
                self._kill(worker)
            case ["failed", bool(for_good), str(code), str(text), help] if state == "starting":
                device.failed(error_class(code)(Diagnostic(code, "error", None, text, help)), for_good=for_good)
                self._kill(worker)
            case _:
                raise ValueError(repr(message)[:40])

    def _load(self, names: list[str]) -> None:
        """Load modules that a worker has used."""
        new = [name for name in names if name not in self._loaded]
        self._loaded.update(new)
        if self._method == "fork":
            self._task.preload(self._options.task_options, new)
            gc.freeze()

    def _done(self, worker: WorkerProcess, outcome: object, state: State) -> None:
        self._finish(worker, outcome, state)
        if state in ENDING or worker.device.error is not None:
            self._kill(worker)
        elif worker.queue:
            self._begin(worker)
        else:
            worker.state = "idle"

    def _finish(self, worker: WorkerProcess, outcome: object, state: State) -> None:
        """End an attempt of a worker's item: run the item again, or report all outcomes."""
        job = worker.done()
        attempts = (*job.attempts, outcome)
        if not self._is_stopping and self._options.policy.again(job.hint, attempts):
            repeated = job._replace(attempts=attempts, needs_new_process=state == "spoiled")
            self._waiting.put_back([repeated])
        else:
            self._events.append(Done(job.number, attempts, worker.device.about))

    # The end of workers

    def _look(self, heard: float) -> None:
        """Handle the workers with a deadline before the time ``heard``."""
        self._next_look = time.monotonic() + _TICK_S
        for worker in list(self._workers):
            worker.look()
            if worker.process.end is None and worker.process.wait(0):
                self._ended(worker)
                continue
            if heard < worker.deadline or worker.state == "idle":
                continue
            if worker.state == "killed":
                self._cannot_end(worker)
            elif worker.state == "hanging":
                self._kill(worker, worker.overdue)
            elif worker.state == "busy":
                self._waiting.put_back(worker.take_back())
                worker.state = "hanging"
                worker.deadline = time.monotonic() + _STACK_S
                worker.process.ask_for_stack()
            else:
                self._kill(worker, f"was not ready after {self._options.start_timeout_s:g} s")

    def _kill(self, worker: WorkerProcess, why: str = "") -> None:
        """Kill a worker with the process group, and end the item at once: the process may take seconds to end.

        ``why`` is a predicate, such as "closed its connection". It is empty if the worker has done nothing wrong.
        """
        worker.process.kill()
        worker.deadline = time.monotonic() + self._options.kill_wait_s
        worker.why = why
        self._lose(worker, is_failure=bool(why))

    def _lose(self, worker: WorkerProcess, *, is_failure: bool) -> None:
        """End the item of an ended or killed worker. Other workers get the waiting item."""
        if is_failure and worker.has_begun:
            worker.device.spares = 1
            outcome = self._options.policy.crashed(worker.queue[0].item, worker.crash())
            self._finish(worker, outcome, "spoiled")
        elif is_failure and not worker.count:
            worker.device.failed(worker.start_error())
        elif is_failure and worker.state == "idle":
            self._events.append(Note(f"process {worker.place} on {worker.device} {worker.end} while it ran nothing"))
        self._waiting.put_back(worker.queue)
        worker.queue.clear()
        worker.state = "killed"
        if worker.device.error is not None:
            self._tell_devices()

    def _cannot_end(self, worker: WorkerProcess) -> None:
        device = worker.device
        if device.error is None:
            text = (
                f"process {worker.place} on {device} was killed {self._options.kill_wait_s:g} s ago and has not ended"
                " (its driver holds it in the kernel): no further scenario runs on this device"
            )
            device.error = DriverCrashError(text)
            self._events.append(Note(text))
            self._tell_devices()
        self._forget(worker)
        for other in self._in_state("starting", "idle", device=device):
            self._kill(other)

    def _ended(self, worker: WorkerProcess) -> None:
        """Handle a worker process that has ended."""
        with suppress(EOFError, BlockingIOError, *_INVALID):
            while True:  # messages from before the end
                self._take(worker)
        worker.process.wait()
        if worker.state != "killed":
            self._lose(worker, is_failure=True)
        self._forget(worker)

    def _forget(self, worker: WorkerProcess) -> None:
        self._workers.remove(worker)
        for source in (worker.connection, worker.process.end):
            if source is not None and source in self._selector.get_map():
                self._selector.unregister(source)
        worker.close()
