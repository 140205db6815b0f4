"""A worker as the pool sees it, and the inside of the worker's process.

The pool keeps the process, the given items, the deadline and the end. The worker runs items in turn on a single device.
Any item may crash the worker.

The pool sends pickled lists of numbers and items. A second socket has a permit for each item, which the worker reads
before it runs the item. To take an item back, the pool reads the permit first and sends `SKIP`. The worker sends lines
of JSON. The pool checks these lines, since a driver may damage the worker's memory::

    ["ready", Device]                                       after the start
    ["devices", requests]                                   after the start for several devices; the worker ends
    ["failed", is for good, code, message, help]            after a failed start; the worker ends
    ["limit", seconds, origin]                              for an item with another time limit
    ["used", names]                                         for the next workers to preload
    ["done", outcome, State, seconds]                       after an item
"""

import json
import os
import pickle
import socket
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from importlib import import_module
from typing import Any, Final, Literal

from scenario_runner.errors import DriverCrashError, FenceTimeoutError, NoDeviceError, ScenarioRunnerError
from scenario_runner.processes import progress, temporary
from scenario_runner.processes.isolated_process import Crash, IsolatedProcess, core_pattern, native_stack, open_file
from scenario_runner.processes.jobs import ENDING, DeviceRequest, Job, State, Task, UsedDevice, WorkerOptions
from scenario_runner.processes.signals import KILL, signal_name

if sys.platform == "linux":
    import resource

OUTPUT, PROGRESS, FAULTS, NAMES = "output", "progress", "faults", "names"
"""The files in the folder of a worker: standard output and error, `progress`, Python stacks, and temporary files."""

GO, SKIP = b"\1", b"\0"
"""The permits for an item to run, and for an item that another worker gets."""

_MEASURE_EVERY: Final = 64  # items between two measurements of the process
_MOST_TEXT_BYTES: Final = 16 << 10
_STANDARD_ERROR: Final = 2
_WITH_PATHS: Final = ("SCENARIO_RUNNER_", "VK_")  # environment variables


def resolve(task: str) -> type[Task]:
    """Import a task's class."""
    module, _, name = task.partition(":")
    found: type[Task] = getattr(import_module(module), name)
    return found


def serve_pool(
    connection: socket.socket, permits: socket.socket, folder: str, options: WorkerOptions, device: DeviceRequest
) -> int:
    """Serve the pool until the socket is closed, or list several devices. Return the exit code."""
    if sys.platform == "linux":
        most_bytes = resource.getrlimit(resource.RLIMIT_CORE)[1]
        resource.setrlimit(resource.RLIMIT_CORE, (most_bytes if options.core_dumps else 0, most_bytes))
    if not options.shows_output:
        output = open_file(os.path.join(folder, OUTPUT))
        for standard in (1, 2):
            os.dup2(output, standard)
    progress.share(open_file(os.path.join(folder, PROGRESS)))
    temporary.list_in(open_file(os.path.join(folder, NAMES)))
    if options.core_dumps and options.jobs != 1 and not core_pattern().is_of_process:
        _enter(folder)

    def send(*values: object) -> None:
        connection.sendall(json.dumps(values).encode() + b"\n")

    with suppress(ConnectionError):
        task = resolve(options.task)
        try:
            if isinstance(device, tuple):
                send("devices", task.devices(device))
                return 0
            _Server(options, task(options, device, partial(send, "limit")), send).serve(connection, permits)
        except ScenarioRunnerError as error:
            first = error.problems[0]
            send("failed", isinstance(error, NoDeviceError), first.code, first.message, first.help)
            return error.exit_code
    return 0


def _enter(folder: str) -> None:
    """Change the current folder. Paths in environment variables stay valid."""
    for name in filter(lambda name: name.startswith(_WITH_PATHS), os.environ):
        paths = os.environ[name].split(os.pathsep)
        os.environ[name] = os.pathsep.join(os.path.abspath(path) if os.path.exists(path) else path for path in paths)
    os.chdir(folder)


def end_of(path: str | int) -> str:
    """Read the last 16 KiB of a file as text."""
    with suppress(FileNotFoundError), open(path, "rb", closefd=isinstance(path, str)) as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - _MOST_TEXT_BYTES))
        return file.read(_MOST_TEXT_BYTES).decode("utf-8", "replace")
    return ""


def own_output() -> str:
    """Read the end of this worker's standard output and error."""
    return end_of(_STANDARD_ERROR)


class _Server:
    def __init__(self, options: WorkerOptions, task: Task, send: Callable[..., None]) -> None:
        self._options, self._task, self._send = options, task, send
        self._count = 0
        self._tell_used()
        send("ready", task.about)
        self._bytes, self._files = 0, open_files()

    def serve(self, connection: socket.socket, permits: socket.socket) -> None:
        with connection.makefile("rb") as messages, suppress(EOFError):
            while True:
                for number, item in pickle.load(messages):
                    if permits.recv(1) == GO and not self._run(number, item):
                        return

    def _run(self, number: int, item: object) -> bool:
        """Run an item. Return false if the process must end."""
        if not self._options.shows_output and os.fstat(_STANDARD_ERROR).st_size:
            os.ftruncate(_STANDARD_ERROR, 0)  # drops text of the item before
        temporary.forget_listed()
        progress.started(number)
        started = time.perf_counter()
        outcome, state = self._task.run(item)
        seconds = time.perf_counter() - started
        state = self._state(state)
        is_last = state in ENDING
        if not is_last and self._count & (self._count - 1) == 0:  # 1, 2, 4, 8…
            self._tell_used()
        self._send("done", outcome, state, seconds)
        return not is_last

    def _tell_used(self) -> None:
        if names := self._task.used():
            self._send("used", names)

    def _state(self, state: State) -> State:
        """Return the worker's state after an item: "grown" if this process should be replaced.

        A process is replaced after enough items, or once it uses too much memory or too many files. Only some items
        are followed by a measurement of memory and files.
        """
        self._count += 1
        if self._count >= self._options.most_items:
            return "grown" if state != "spoiled" else state
        if state == "failed" or (state == "good" and self._count % _MEASURE_EVERY == 1):
            used_bytes = _used_bytes()
            self._bytes = self._bytes or used_bytes
            is_large = used_bytes - self._bytes > self._options.most_bytes
            if is_large or open_files() - self._files > self._options.most_files:
                return "grown"
        return state


def _used_bytes() -> int:
    with suppress(FileNotFoundError), open("/proc/self/statm", "rb") as file:
        return int(file.read().split()[1]) * resource.getpagesize()
    return 0  # unknown on this system


def open_files() -> int:
    """Count the open files of this process. Raises OSError if no file handle is left."""
    with suppress(FileNotFoundError):
        return len(os.listdir("/proc/self/fd"))
    return 0


_MOST_BEFORE: Final = 50
_MOST_OUTPUT_BYTES: Final = 64 << 20
_QUICK_S: Final = 0.1  # after a shorter item, a worker gets another item in advance
_ADVANCE_S: Final = 0.05  # of work in advance, in more than one item
_MOST_IN_ADVANCE: Final = 64
_LEAST_S: Final = 1e-6
_OPENING_S: Final = 0.25  # of a device, by the first item
_NO_WAIT: Final = getattr(socket, "MSG_DONTWAIT", 0)  # Windows cannot take items back, and gives none in advance
_HELP_WHEN_KILLED: Final = "memory that has run out is the usual cause: run fewer at a time with --jobs"
_HELP_WHEN_HUNG: Final = "give more time with --timeout, or use another driver: --device chooses another device"
_HELP_AT_START: Final = (
    "'scenario-runner doctor' shows which drivers are found, and starts each; --device chooses another device"
)


class WorkerProcess:
    """Life cycle: "starting" until it is ready; "idle" or "busy"; "hanging" after a request for the Python stack;
    "killed"; closed after the end. The state must change before ``deadline``.
    """

    def __init__(
        self, options: WorkerOptions, method: str, place: int, device: UsedDevice, close_inherited: Callable[[], None]
    ) -> None:
        """Start the process. Raises OSError.

        ``place`` is a number that no other worker has. ``close_inherited`` closes the pool's connections in a fork.
        """
        self.place = place
        self.device = device
        self.state: Literal["starting", "idle", "busy", "hanging", "killed"] = "starting"
        self.deadline = time.monotonic() + options.start_timeout_s
        self.queue: deque[Job] = deque()
        """The current item, and items in advance."""
        self.count = 0
        self.advance = 0
        """How many items to have in advance, by the duration of the items before."""
        self._item_s = 0.0
        self.why = ""
        """The reason of a kill, as a predicate."""
        self.overdue = ""
        """The reason of a kill after the time limit, as a predicate."""
        self.before: deque[object] = deque(maxlen=_MOST_BEFORE)
        self._options = options
        self._started = 0.0
        self._limit_s: float | None = None
        self._changes = -1
        self._received = b""
        with ExitStack() as stack:
            self._folder = stack.enter_context(temporary.temporary_folder())
            self.connection, theirs = (stack.enter_context(end) for end in socket.socketpair())
            self._permits, self._unused_permits = (stack.enter_context(end) for end in socket.socketpair())
            arguments = (theirs, self._unused_permits, self._folder, options, device.request)
            close = () if method == "spawn" else (close_inherited, self.connection.close, self._permits.close)
            self.process = IsolatedProcess(method, self._path(FAULTS), _begin, close, *arguments)
            stack.callback(self.process.close)
            theirs.close()
            self._open = stack.pop_all()
        self.connection.setblocking(False)

    def _path(self, name: str) -> str:
        return os.path.join(self._folder, name)

    def give(self, jobs: Sequence[Job]) -> None:
        """Send items, which run after the current item. Raises OSError if the process has ended."""
        data = pickle.dumps([(job.number, job.item) for job in jobs])
        sent = self.connection.send(data)
        if sent < len(data):  # the socket is full until the process reads
            self.connection.setblocking(True)
            self.connection.sendall(data[sent:])
            self.connection.setblocking(False)
        self._permits.sendall(GO * len(jobs))
        self.queue += jobs

    def take_back(self) -> list[Job]:
        """Return the items that the process has not begun, except the current item."""
        if len(self.queue) < 2:
            return []
        permits = b""
        with suppress(BlockingIOError):
            permits = self._unused_permits.recv(1 << 16, _NO_WAIT)
        count = min(permits.count(GO), len(self.queue) - 1)  # the current item may not have begun
        self._permits.sendall(permits[: len(permits) - count] + SKIP * count)
        return [self.queue.pop() for _ in range(count)][::-1]

    def begin(self) -> None:
        """Note that the first item of the queue runs now."""
        self.state = "busy"
        self._started = time.monotonic()
        self.limit(self._options.timeout_s, self._options.timeout_origin)

    @property
    def reserve_s(self) -> float:
        """The expected duration of the items in advance."""
        return self._item_s * (len(self.queue) - 1)

    @property
    def has_opened(self) -> bool:
        """Return whether the first item has ended, or has run for so long that the device must be open."""
        return self.count > 0 or (self.state == "busy" and time.monotonic() - self._started > _OPENING_S)

    @property
    def is_slow(self) -> bool:
        """Return whether the current item takes longer than items in advance may take."""
        return time.monotonic() - self._started > _ADVANCE_S

    def measure(self, seconds: float, *, is_good: bool) -> None:
        """Note the duration of an item, which decides how many items to have in advance. Raises ValueError for NaN."""
        self._item_s = max(seconds, (seconds + self._item_s) / 2, _LEAST_S)
        self.advance = 0
        # a failed item may run again before all others
        if is_good and self._item_s < _QUICK_S and _NO_WAIT:
            self.advance = max(1, min(_MOST_IN_ADVANCE, int(_ADVANCE_S / self._item_s)))

    def done(self) -> Job:
        """Remove the current item, which has ended."""
        job = self.queue.popleft()
        self.device.failures = 0
        self.count += 1
        self.before.append(job.item)
        return job

    def limit(self, seconds: float | None, origin: str) -> None:
        """Set the time limit of the current item."""
        self._limit_s = seconds
        if seconds is None:
            self.deadline = float("inf")
            return
        took = f"had done nothing for {seconds:g} s" if self._options.if_quiet else f"took more than {seconds:g} s"
        self.overdue = f"{took} ({origin})"
        self.deadline = self._started + progress.ended_after_s(seconds)

    def look(self) -> None:
        """Extend the deadline after progress, and discard overlong output."""
        if self._options.if_quiet and self.state == "busy" and self._limit_s is not None:
            changes = progress.read(self._path(PROGRESS)).changes
            if changes != self._changes:
                self._changes = changes
                self.deadline = time.monotonic() + progress.ended_after_s(self._limit_s)
        with suppress(FileNotFoundError):
            path = self._path(OUTPUT)
            if os.path.getsize(path) > _MOST_OUTPUT_BYTES:
                os.truncate(path, 0)

    def received(self) -> list[object]:
        """Receive complete messages.

        Raises BlockingIOError if no data waits, EOFError if the worker has closed the connection, and ValueError for
        invalid JSON.
        """
        try:
            data = self.connection.recv(1 << 16)
        except ConnectionResetError:
            data = b""
        if not data:
            raise EOFError
        *lines, self._received = (self._received + data).split(b"\n")
        try:
            return [json.loads(line.decode()) for line in lines]
        except ValueError as error:
            raise ValueError(f"{lines[0][:40]!r}") from error

    @property
    def has_begun(self) -> bool:
        """Return whether the process has begun the first item of the queue."""
        return bool(self.queue) and progress.read(self._path(PROGRESS)).started == self.queue[0].number

    @property
    def end(self) -> str:
        """The predicate that tells how the process ended, or why it was killed."""
        if self.why:
            return f"was killed, since it {self.why},"
        code = self.process.code or 0
        return f"was ended by {signal_name(-code)}" if code < 0 else f"ended by itself with exit code {code}"

    def crash(self) -> Crash:
        """Describe how the process ended during an item."""
        timed_out = self.state == "hanging"
        was_killed = not self.why and self.process.code == -KILL
        notes = progress.read(self._path(PROGRESS))
        return Crash(
            self.end,
            notes.what,
            notes.pointer,
            notes.kind,
            FenceTimeoutError if timed_out else DriverCrashError,
            _HELP_WHEN_HUNG if timed_out and self._options.if_quiet else _HELP_WHEN_KILLED if was_killed else "",
            self.process.code or 0,
            time.monotonic() - self._started,
            self.process.stack,
            native_stack(self.process.id, self._folder) if self._options.core_dumps and not self.why else "",
            end_of(self._path(OUTPUT)),
            tuple(self.before),
            self.count,
        )

    def start_error(self) -> DriverCrashError:
        """Make the error about a worker that ended before the first item."""
        work = progress.read(self._path(PROGRESS)).what or "starting"
        return DriverCrashError(f"a worker process {self.end} while {work}", help=_HELP_AT_START)

    def close_inherited(self) -> None:
        """Release this worker's descriptors in another worker, a fork of the pool."""
        self.connection.close()
        self._permits.close()
        self._unused_permits.close()
        self.process.close()

    def close(self) -> None:
        """Remove the temporary files of an ended or abandoned process, and release the descriptors."""
        temporary.remove_listed(self._path(NAMES))
        self._open.close()


def _begin(closes: Iterable[Callable[[], None]], *arguments: Any) -> int:
    for close in closes:
        close()
    return serve_pool(*arguments)
