"""A worker: a process that runs items one after the other on one device, and may die of any of them.

It is forked by the pool, or spawned where the system cannot fork. The pool sends items, at most one ahead, and gets
outcomes. These are lines of JSON over a stream socket, since a driver may have damaged the memory of a worker: what it
sends is checked, and read in a way that cannot harm::

    [number, *item]                     ["ready", physical device]
                                        ["limit", seconds, who set it]      where they are not those of the options
                                        ["used", names]                     what the next workers may begin with
                                        ["done", outcome, why the process ends now]
                                        ["devices", what to ask for to get each]            instead of "ready"
                                        ["failed", whether for good, code, message, help]   likewise
"""

import errno
import json
import os
import socket
import sys
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack, suppress
from functools import partial
from importlib import import_module
from typing import Any, Final, Literal

from scenario_runner.errors import (
    INTERNAL_ERROR_EXIT_CODE,
    DeviceError,
    DeviceLostError,
    DriverCrashError,
    FenceTimeoutError,
    LimitError,
    NoDeviceError,
    OutOfMemoryError,
    ScenarioRunnerError,
)
from scenario_runner.processes import progress
from scenario_runner.processes.crash import Crash, native_stack
from scenario_runner.processes.isolated_process import FORKS, IsolatedProcess
from scenario_runner.processes.jobs import DeviceRequest, Job, UsedDevice, WorkerOptions
from scenario_runner.processes.programs import signal_name
from scenario_runner.processes.signals import KILL
from scenario_runner.processes.spawned_process import SpawnedProcess, open_file
from scenario_runner.processes.temporary import temporary_folder
from scenario_runner.run.opened_device import chosen_devices
from scenario_runner.runner import Runner
from scenario_runner.suite.outcomes import BAD, Item, Outcome
from scenario_runner.vulkan.vulkan_loader import known_types

if sys.platform == "linux":
    import fcntl
    import resource


class Runners:
    """Gives the Runner of a worker to its task.

    Life cycle: made with the worker; the device is opened when it is first needed and stays open; closed by the end of
    the process.
    """

    def __init__(
        self,
        arguments: Mapping[str, Any],
        timeout_s: float,
        timeout_origin: str = "",
        announce: Callable[[float, str], None] = lambda seconds, origin: None,
    ) -> None:
        """``arguments`` are those of `Runner`. ``announce`` is told of a limit that is not ``timeout_s``."""
        self._arguments = arguments
        self._default = timeout_s, timeout_origin
        self._announce = announce
        self.limit = self._default
        """The time limit of the item that runs now in seconds, and who set it."""
        self._runners: dict[bool, Runner] = {}

    def runner(self, timeout_s: float | None = None, origin: str = "", *, robustness: bool | None = None) -> Runner:
        """The Runner for the item that runs now, which may take ``timeout_s`` as ``origin`` says (None: the default),
        with robust access to buffers and images (None: as the arguments say)."""
        self.limit = self._default if timeout_s is None else (timeout_s, origin)
        if self.limit != self._default:
            self._announce(*self.limit)
        robust = bool(self._arguments.get("robustness") if robustness is None else robustness)
        runner = self._runners.get(robust)
        if runner is None:
            runner = self._runners[robust] = Runner(**{**self._arguments, "robustness": robust})
        runner.timeout_s = self.limit[0]
        return runner

    def close(self) -> None:
        """Close the devices that are open, where the process goes on without them."""
        for runner in self._runners.values():
            runner.close()


# After one of these the device, its driver or the process cannot be relied upon.
_SPOILED: Final = frozenset(
    error.exit_code for error in (DeviceError, OutOfMemoryError, FenceTimeoutError, DeviceLostError, LimitError)
)
_FILES: Final = "output", "progress"
_SHARED: Final = ("libLLVM", "libvulkan", "libVkLayer_MESA")
_MOST_TEXT_BYTES: Final = 16 << 10
_STANDARD_ERROR: Final = 2
_MEASURE_EVERY: Final = 64  # items between two measurements of the process


def _main(options: WorkerOptions, connection: socket.socket, output: int, notes: int, device: DeviceRequest) -> int:
    """Serve the pool until it closes the socket, or resolve a request for several devices.

    ``output`` and ``notes`` are memory files for standard output and standard error, and for `progress`. Returns the
    exit code of the process."""
    if sys.platform == "linux":
        most_bytes = resource.getrlimit(resource.RLIMIT_CORE)[1]
        resource.setrlimit(resource.RLIMIT_CORE, (most_bytes if options.core_dumps else 0, most_bytes))
    for standard in (1, 2):
        os.dup2(output, standard)
    progress.share(notes)

    def send(*values: Any) -> None:
        connection.sendall(json.dumps(values).encode() + b"\n")

    with suppress(ConnectionError):
        try:
            if isinstance(device, tuple):
                send("devices", chosen_devices(device))
                return 0
            worker = _Server(options, device, send)
        except ScenarioRunnerError as error:
            first = error.problems[0]
            send("failed", isinstance(error, NoDeviceError), first.code, first.message, first.help)
            return error.exit_code
        with connection.makefile("rb") as lines:
            worker.serve(lines)
    return 0


def main(connection: socket.socket, folder: str, options: WorkerOptions, device: DeviceRequest) -> int:
    """Serve the pool in a process that was spawned, with its files in ``folder``."""
    output, notes = (open_file(os.path.join(folder, name)) for name in _FILES)
    return _main(options, connection, output, notes, device)


def _end_of(descriptor: int) -> str:
    """Read the last 16 KiB of a memory file as text."""
    size = os.fstat(descriptor).st_size
    os.lseek(descriptor, max(0, size - _MOST_TEXT_BYTES), os.SEEK_SET)
    return os.read(descriptor, _MOST_TEXT_BYTES).decode("utf-8", "replace")


class _Server:
    """The inside of a worker. Life cycle: made with the driver started, or a ScenarioRunnerError; then it serves."""

    def __init__(self, options: WorkerOptions, device: str | None, send: Callable[..., None]) -> None:
        self._options = options
        self._send = send
        self._runners = Runners(
            {**options.runner, "device": device},
            options.timeout_s,
            options.timeout_origin,
            partial(send, "limit"),
        )
        module, _, name = options.task.partition(":")
        self._task: Callable[[Item, Runners, Any], Outcome] = getattr(import_module(module), name)
        self._count = 0
        self._known = len(sys.modules) + len(known_types)
        physical = self._runners.runner().physical_device
        self._tell_used()
        send("ready", {name: getattr(physical, name) for name in ("uuid", "name", "driver", "type")})
        self._bytes, self._files = 0, _open_files()

    def serve(self, lines: Iterable[bytes]) -> None:
        for line in lines:
            number, *fields = json.loads(line)
            if os.fstat(_STANDARD_ERROR).st_size:
                os.ftruncate(_STANDARD_ERROR, 0)  # that of the item before
            progress.started(number)
            outcome = self._outcome(Item(*fields))
            if outcome.status in BAD and not outcome.output:
                outcome = outcome._replace(output=_end_of(_STANDARD_ERROR))
            end = self._end(outcome)
            if not end and self._count & (self._count - 1) == 0:  # 1, 2, 4, 8…
                self._tell_used()
            self._send("done", outcome.as_json(), end)
            if end:
                return

    def _outcome(self, item: Item) -> Outcome:
        started = time.perf_counter()
        try:
            outcome = self._task(item, self._runners, self._options.task_options)
            if outcome.status == "Fail":
                _open_files()  # raises OSError where no file handle is left, which is why it failed
            return outcome
        except Exception as error:
            code, reason = INTERNAL_ERROR_EXIT_CODE, f"an error of this program: {type(error).__name__}: {error}"
            if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
                what = progress.work()[0] or "reading it"
                code, reason = LimitError.exit_code, f"the process that ran it has run out of file handles while {what}"
            crash, stack = (code, type(error).__name__), traceback.format_exc()
            return Outcome("Crash", time.perf_counter() - started, reason, code, stack=stack, crash=crash)

    def _tell_used(self) -> None:
        """Send the names of what the next workers can preload."""
        count = len(sys.modules) + len(known_types)
        if FORKS and count > self._known:  # else no name is read, which would copy its page from the pool
            self._known = count
            modules = [name for name in sys.modules if name.startswith("scenario_runner.")]
            self._send("used", [*modules, *known_types, *_shared_libraries()])

    def _end(self, outcome: Outcome) -> str:
        """Return why this process must not run another item: it may be "spoiled", or has "grown"; empty if it may."""
        self._count += 1
        if outcome.exit_code in _SPOILED or outcome.status in ("Crash", "Timeout"):
            return "spoiled"
        if self._count >= self._options.most_items:
            return "grown"
        if self._count % _MEASURE_EVERY == 1 or outcome.status == "Fail":
            used_bytes = _used_bytes()
            self._bytes = self._bytes or used_bytes
            if used_bytes - self._bytes > self._options.most_bytes:
                return "grown"
            if _open_files() - self._files > self._options.most_files:
                return "grown"
        return ""


def _used_bytes() -> int:
    with suppress(FileNotFoundError), open("/proc/self/statm", "rb") as file:
        return int(file.read().split()[1]) * resource.getpagesize()
    return 0  # unknown on this system, as the next


def _open_files() -> int:
    with suppress(FileNotFoundError):
        return len(os.listdir("/proc/self/fd"))
    return 0


def _shared_libraries() -> set[str]:
    """List the libraries of the driver that the pool may preload, by their paths: those of Mesa, which start no thread
    before an instance is created. Of others that is unknown."""
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as file:
        paths = {line.rstrip("\n").split(maxsplit=5)[-1] for line in file if ".so" in line}
    return {path for path in paths if os.path.basename(path).startswith(_SHARED) and path.isprintable()}


_MOST_BEFORE: Final = 50
_MOST_OUTPUT_BYTES: Final = 64 << 20
_QUICK_S: Final = 0.1  # a worker whose last item took less gets the next one ahead
_HELP_WHEN_KILLED: Final = "memory that has run out is the usual cause: run fewer at a time with --jobs"
_HELP_AT_START: Final = (
    "'scenario-runner doctor' shows which drivers are found, and starts each; --device chooses another device"
)


class WorkerProcess:
    """A worker as the pool sees it; ``deadline`` is when something must have happened.

    Life cycle: forked; "starting" until it is ready; "idle" or "busy"; "hanging" when it has been asked for its Python
    stack; "killed"; closed when it has ended."""

    def __init__(
        self, options: WorkerOptions, place: int, device: UsedDevice, close_inherited: Callable[[], None]
    ) -> None:
        """``place`` is the lowest number that no other worker has; ``close_inherited`` closes what the fork must not
        have. Raises OSError."""
        self.place = place
        self.device = device
        self.state: Literal["starting", "idle", "busy", "hanging", "killed"] = "starting"
        self.deadline = time.monotonic() + options.start_timeout_s
        self.queue: deque[Job] = deque()
        """The item that it runs, and the one that was handed out ahead."""
        self.before: deque[str] = deque(maxlen=_MOST_BEFORE)
        self.count = 0
        self.started = 0.0
        self.is_quick = False
        self.is_last = False  # it ends after its item, since it has another one that must not run
        self.why = ""
        """Why it was killed, as a sentence about it goes on."""
        self.overdue = ""
        """The same when its item takes too long."""
        self._received = b""
        with ExitStack() as stack:
            self.connection, theirs = (stack.enter_context(end) for end in socket.socketpair())
            self.process: IsolatedProcess | SpawnedProcess
            folder = "" if FORKS else stack.enter_context(temporary_folder())
            self._output, self._progress = files = [
                os.memfd_create(name) if FORKS else open_file(os.path.join(folder, name)) for name in _FILES
            ]
            for file in files:
                stack.callback(os.close, file)
            if FORKS:
                fcntl.fcntl(self._output, fcntl.F_SETFL, os.O_APPEND)
                self.process = IsolatedProcess(leads_group=True)
                if not self.process.id:
                    try:
                        close_inherited()
                        self.connection.close()
                        os._exit(_main(options, theirs, self._output, self._progress, device.request))
                    except BaseException:
                        traceback.print_exc()
                    finally:
                        os._exit(1)
            else:
                task = folder, f"{__name__}:main", options, device.request
                self.process = SpawnedProcess(*task, connection=theirs, leads_group=True)
            theirs.close()
            stack.callback(self.process.close)
            self._open = stack.pop_all()
        self.connection.setblocking(False)

    def give(self, job: Job) -> None:
        """Hand over an item, to be run after what it runs now. Raises OSError where the process has gone."""
        self.connection.sendall(json.dumps([job.number, *job.item]).encode() + b"\n")
        self.queue.append(job)

    def begin(self, options: WorkerOptions) -> None:
        """Note that the first item of the queue runs now."""
        self.state = "busy"
        self.started = time.monotonic()
        self.limit(options.timeout_s, options.timeout_origin)

    def done(self, outcome: Outcome) -> tuple[Job, Outcome]:
        """Remove the first item of the queue, which has this outcome, and add to that what the process ran before."""
        if outcome.status in BAD:
            outcome = outcome._replace(before=tuple(self.before), before_count=self.count)
        job = self.queue.popleft()
        self.device.failures = 0
        # an item that fails may be repeated, which nothing is to be queued before
        self.is_quick = outcome.status not in BAD and time.monotonic() - self.started < _QUICK_S
        self.count += 1
        self.before.append(job.item.id)
        return job, outcome

    def limit(self, seconds: float, origin: str) -> None:
        """Set the time limit of the item that runs."""
        self.overdue = f"took more than {seconds:g} s ({origin})"
        self.deadline = self.started + progress.ended_after_s(seconds)

    def received(self) -> list[Any]:
        """Receive messages, of which the last may stay incomplete. Raises EOFError, BlockingIOError if there is nothing
        to receive, and ValueError for a line that is no JSON."""
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
        """Return whether the process has begun with the first item of the queue."""
        return bool(self.queue) and progress.read(self._progress)[0] == self.queue[0].number

    def bound_output(self) -> None:
        """Discard the standard output and standard error of the process when they grow too large."""
        if os.fstat(self._output).st_size > _MOST_OUTPUT_BYTES:
            os.ftruncate(self._output, 0)

    @property
    def end(self) -> str:
        """The end of the process as a predicate, or the reason for which it was killed."""
        if self.why:
            return f"was killed, since it {self.why},"
        code = self.process.code or 0
        return f"was ended by {signal_name(-code)}" if code < 0 else f"ended by itself with exit code {code}"

    def crashed(self, options: WorkerOptions) -> Outcome:
        """The outcome of the item that the process was running when it ended."""
        timed_out = self.state == "hanging"
        was_killed = not self.why and self.process.code == -KILL
        _, what, pointer, work = progress.read(self._progress)
        kind = FenceTimeoutError if timed_out else DriverCrashError
        help = _HELP_WHEN_KILLED if was_killed else ""
        error = Crash(self.end, what, pointer, work, kind, help).error(self.queue[0].item.path)
        problem = error.problems[0]
        return Outcome(
            "Timeout" if timed_out else "Crash",
            time.monotonic() - self.started,
            f"{problem.pointer}: {problem.message}" if problem.pointer else problem.message,
            error.exit_code,
            (problem.as_json(),),
            stack=native_stack(self.process.id) if options.core_dumps and not self.why else "",
            output=_end_of(self._output),
            python_stack=self.process.stack,
            crash=(self.process.code or 0, work),
        )

    def start_error(self) -> DriverCrashError:
        """The error for a worker that ended before it ran an item."""
        work = progress.read(self._progress)[1] or "starting"
        return DriverCrashError(f"a process that was to run scenarios {self.end} while {work}", help=_HELP_AT_START)

    def close(self) -> None:
        """Release the descriptors; the process has ended, or is abandoned."""
        self._open.close()
