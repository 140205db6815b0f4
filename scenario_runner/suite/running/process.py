"""Workers and devices as the supervisor sees them, and requests to the process that workers are forked from."""

from __future__ import annotations

import fcntl
import os
import pickle
import signal
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from typing import Any, Final, Literal, NamedTuple

from scenario_runner import progress
from scenario_runner.diagnostics import Diagnostic
from scenario_runner.errors import (
    DeviceError,
    DriverCrashError,
    FenceTimeoutError,
    ScenarioRunnerError,
    UnsupportedError,
)
from scenario_runner.run.crash import Crash, crash_problem, signal_name
from scenario_runner.suite.records import BAD, Item, Outcome
from scenario_runner.suite.running.channel import Channel, end_of
from scenario_runner.suite.running.options import WorkerOptions
from scenario_runner.system_limits import processors, refusal

# While one worker of a GPU waits for it, another prepares its work. More bring nothing, and take memory of the device.
_JOBS_OF_GPU: Final = 2
# A driver that has crashed so often while it was started, and was never started in between, will do so again.
_MOST_FAILURES: Final = 3


class Device(NamedTuple):
    """A device that items run on. ``workers`` is how many it has; ``given_up`` says why it gets no further items."""

    uuid: str
    name: str
    driver: str
    type: str
    workers: int
    given_up: str = ""


class UsedDevice:
    """Life cycle: known by what was ``asked`` for (an index, a UUID, or None for the one that a run would take); found
    when its first worker is ready; given up when none can be started, or none be ended."""

    def __init__(self, asked: str | tuple[str, ...] | None, jobs: int) -> None:
        """Several that are asked for are none that items run on: its worker tells which devices these are."""
        self.asked = asked
        self.uuid = self.name = self.driver = self.type = ""
        self.given_up = ""
        self.error: ScenarioRunnerError | None = None
        self.workers = 0
        """How many there are now, with those that are not ready yet."""
        self.starting = 0
        """How many are not ready yet."""
        self._jobs = jobs
        self._failures = 0
        self._manifest: str | None = None  # of its driver; empty where it is not to be used

    @property
    def wanted(self) -> int:
        """How many workers it is to have now: those of a GPU start one after the other, since its driver's start takes
        a lock of the whole system for long, and the first ones do the work meanwhile."""
        if self.given_up:
            return 0
        return self._jobs if self.type == "cpu" else min(self._jobs or 1, self.workers - self.starting + 1)

    def found(self, described: Mapping[str, str]) -> None:
        """A worker has started."""
        self.uuid, self.name = described["uuid"], described["name"]
        self.driver, self.type = described["driver"], described["type"]
        self._failures = 0
        self._jobs = self._jobs or (processors() if self.type == "cpu" else min(_JOBS_OF_GPU, processors()))

    def driver_found(self, manifest: str) -> None:
        """A worker has found out which manifest is that of its driver."""
        # An index counts the devices of all drivers.
        if self._manifest is None and not (isinstance(self.asked, str) and self.asked.isdecimal()):
            self._manifest = manifest

    def to_ask(self) -> tuple[str | tuple[str, ...] | None, str]:
        """What a worker asks for: the device, and the manifest of the only driver to open, or nothing."""
        return (self.uuid, self._manifest) if self._manifest else (self.asked, "")

    def failed(self, error: ScenarioRunnerError, driver: str, *, for_good: bool = False) -> None:
        """A worker could not be started that was to open this driver alone, or any where it is empty."""
        if driver:  # perhaps the device is not found that way
            self._manifest = ""
            return
        self._failures += 1
        if for_good or self._failures >= _MOST_FAILURES:
            first = error.problems[0]
            again = f", {self._failures} times in a row" if self._failures > 1 else ""
            self.give_up(first.message + again, type(error)([first._replace(message=first.message + again)]))

    def give_up(self, reason: str, error: ScenarioRunnerError | None = None) -> None:
        self.given_up = self.given_up or reason
        self.error = self.error or error

    def as_record(self) -> Device:
        return Device(self.uuid, self.name, self.driver, self.type, self.workers, self.given_up)

    def __str__(self) -> str:
        return f"the device {self.name!r}" if self.name else "the device"


def start_error(how: str, what: str) -> DeviceError:
    """The error for a worker that ended (``how``) before it was ready."""
    return DriverCrashError(
        f"a process that was to run scenarios {how} while {what or 'starting'}",
        help="'scenario-runner doctor' shows which drivers are found, and starts each; --device chooses another device",
    )


_MOST_BYTES: Final = 1 << 17
_END_S: Final = 2.0
# The zygote imports from where this process does, whichever way it came to know of that.
_CODE: Final = "import sys; sys.path[:] = {}; from scenario_runner.suite.running.zygote import main; main({})"


class Forks:
    """Life cycle: starts the zygote, which imports what workers need while this process goes on; `close` ends it, and
    with it all workers."""

    def __init__(self, options: WorkerOptions) -> None:
        """Raises UnsupportedError where the system cannot do this, LimitError where it refuses a process."""
        if not hasattr(os, "memfd_create"):
            raise UnsupportedError(
                "running scenarios in processes of their own needs Linux",
                help="run them with --no-isolate",
            )
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._said = os.memfd_create("scenario-runner")
        paths = [os.path.abspath(entry) for entry in sys.path]
        # More threads than one would not outlive a fork.
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
        with theirs:
            try:
                self._process = subprocess.Popen(
                    [sys.executable, "-P", "-c", _CODE.format(paths, theirs.fileno())],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=self._said,
                    env=environment,
                    pass_fds=[theirs.fileno()],
                    process_group=0,  # Ctrl-C is for the supervisor, which ends the workers in its own way
                )
            except OSError as error:
                raise refusal("process") from error
        self.control.send(pickle.dumps(options))
        self.control.setblocking(False)

    def fork(self, number: int, device: Any, driver: str, descriptors: Sequence[int]) -> None:
        """Ask for the worker of this number. The descriptors are copied; the arguments are those of `worker.main`."""
        self._ask(("fork", number, device, driver), descriptors)

    def signal(self, number: int, sent: int) -> None:
        """Signal a worker, and with SIGKILL all that it has started."""
        self._ask(("signal", number, int(sent)))

    def load(self, names: Iterable[str]) -> None:
        """Have workers that are forked from now on begin with these modules, types, and libraries by their paths."""
        self._ask(("load", list(names)))

    def _ask(self, request: Any, descriptors: Sequence[int] = ()) -> None:
        with suppress(OSError):  # it is gone, which `answers` is about to say
            socket.send_fds(self.control, [pickle.dumps(request)], list(descriptors))

    def answers(self) -> Iterator[tuple[Any, ...]]:
        """What it has answered and told meanwhile. Raises EOFError when it is gone."""
        while True:
            try:
                data = self.control.recv(_MOST_BYTES)
            except BlockingIOError:
                return
            except ConnectionResetError:
                data = b""
            if not data:
                raise EOFError
            yield pickle.loads(data)

    def end(self) -> DriverCrashError:
        """The error that says how it ended by itself."""
        self._process.wait()
        code = self._process.returncode
        said = os.pread(self._said, _MOST_BYTES, max(0, os.fstat(self._said).st_size - _MOST_BYTES))
        why = said.decode("utf-8", "replace").strip().rpartition("\n")[2]
        how = f"was ended by {signal_name(-code)}" if code < 0 else f"ended with exit code {code}"
        return DriverCrashError(f"the process that workers are forked from {how}" + (f": {why}" if why else ""))

    def close(self) -> None:
        """End it and all workers; only it is waited for. Doing so again does nothing."""
        if self.control.fileno() < 0:
            return
        self.control.close()
        try:
            self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._said)


_MOST_BEFORE: Final = 50
_MOST_OUTPUT_BYTES: Final = 64 << 20
_MOST_STACK_BYTES: Final = 16 << 10
_QUICK_S: Final = 0.1
_OUT_OF_MEMORY: Final = "the kernel ended a process meanwhile since memory had run out: run fewer at a time with --jobs"

State = Literal["starting", "idle", "busy", "hanging", "killed", "leaving"]
"""What it does. hanging: its time is over, and it has been asked for its Python stack; killed: SIGKILL has been sent;
leaving: it has been told to end, or has said that it does."""


class Given(NamedTuple):
    """An item that a worker was given, with the attempts that it had before."""

    number: int
    item: Item
    attempts: tuple[Outcome, ...]


class WorkerProcess:
    """Life cycle: made before the process is forked; it is ready, runs items one after the other, and `close`d when it
    has ended. ``deadline`` is when something must have happened, as time.monotonic tells it."""

    def __init__(self, forks: Forks, number: int, place: int, device: UsedDevice, limit_s: float) -> None:
        """``place`` is what displays call it: the lowest number that no other worker has. ``limit_s`` bounds its start.

        Raises OSError."""
        self.number = number
        self.place = place
        self.device = device
        self.state: State = "starting"
        self.deadline = time.monotonic() + limit_s
        self.given: deque[Given] = deque()
        """What it runs, and the item that was handed out ahead."""
        self.count = 0
        self.is_quick = False
        """Its last item took so little time that the next one is to be handed out ahead."""
        self.is_last = False
        """It must not go on with what was handed out ahead, and is not told of that."""
        self.why = ""  # it was killed, as a sentence about it goes on
        self.timed_out = False
        self.start_failed = False
        self.closed = False  # its end of the connection
        self.overdue = ""
        """The reason to kill it when its item takes too long, which goes on as ``why``."""
        self._before: deque[str] = deque(maxlen=_MOST_BEFORE)
        self._started = 0.0
        with ExitStack() as sent, ExitStack() as kept:
            ours, theirs = (kept.enter_context(each) for each in socket.socketpair())
            sent.enter_context(theirs)
            files = [os.memfd_create(name) for name in ("output", "progress", "faults")]
            for each in files:
                kept.callback(os.close, each)
            self._output, self._progress, self._faults = files
            fcntl.fcntl(self._output, fcntl.F_SETFL, os.O_APPEND)
            asked, self.driver = device.to_ask()
            forks.fork(number, asked, self.driver, (theirs.fileno(), *files))
            self._open = kept.pop_all()
        ours.setblocking(False)
        self.channel = Channel(ours)

    def give(self, given: Given) -> None:
        """Hand over an item, to be run after what it runs now. Raises OSError where the process has gone."""
        self.channel.send(given.number, *given.item)
        self.given.append(given)

    def begin(self, options: WorkerOptions) -> None:
        """The first of the given items runs now."""
        self._started = time.monotonic()
        self.state = "busy"
        self.limit(options.timeout_s, options.timeout_origin)

    def limit(self, seconds: float, origin: str) -> None:
        """Set the time limit of the item that runs."""
        self.overdue = f"took more than {seconds:g} s ({origin})"
        self.deadline = self._started + progress.ended_after_s(seconds)

    def done(self, outcome: Outcome) -> tuple[Given, Outcome]:
        """The item has ended, with this outcome: the same with what is known of the process."""
        given = self.given.popleft()
        if outcome.status in BAD:
            outcome = outcome._replace(before=tuple(self._before), before_count=self.count)
        self.is_quick = time.monotonic() - self._started < _QUICK_S
        self.count += 1
        self._before.append(given.item.id)
        return given, outcome

    @property
    def has_begun(self) -> bool:
        """Whether the process has begun with the first of the given items."""
        return progress.kept(self._progress)[0] == self.given[0].number

    def bound_output(self) -> None:
        """Forget what it has written to standard output and standard error, where it is far too much."""
        if os.fstat(self._output).st_size > _MOST_OUTPUT_BYTES:
            os.ftruncate(self._output, 0)

    @property
    def has_stack(self) -> bool:
        """Whether it has written a Python stack."""
        return os.fstat(self._faults).st_size > 0

    def how(self, status: int) -> str:
        """How the process ended, from the status of os.waitpid; that of one that was killed does not matter."""
        if self.why:
            return f"was killed, since it {self.why},"
        if os.WIFSIGNALED(status):
            return f"was ended by {signal_name(os.WTERMSIG(status))}"
        return f"ended by itself with exit code {os.waitstatus_to_exitcode(status)}"

    def ended(self, status: int = 0, kills: int = 0, stack: str = "") -> tuple[Given, Outcome]:
        """The outcome of the item that the process was running when it ended. ``kills``: `counted_kills` before;
        ``stack``: the native one, where it is known."""
        number = os.WTERMSIG(status) if os.WIFSIGNALED(status) and not self.why else 0
        help = _OUT_OF_MEMORY if number == signal.SIGKILL and counted_kills() > kills else ""
        return self._outcome(Crash(number, 0, *self.work(), stack), self.how(status), help)

    def work(self) -> tuple[str, str]:
        """What it was doing, and the JSON pointer of what it was doing that for."""
        _, what, pointer = progress.kept(self._progress)
        return what, pointer

    def _outcome(self, crash: Crash, end: str, help: str = "") -> tuple[Given, Outcome]:
        kind = FenceTimeoutError if self.timed_out else DriverCrashError
        problem = crash_problem(crash, self.given[0].item.path, end, kind.code, help)
        outcome = Outcome(
            "Timeout" if self.timed_out else "Crash",
            time.monotonic() - self._started,
            _reason(problem),
            kind.exit_code,
            (problem.as_json(),),
            stack=crash.stack,
            output=end_of(self._output),
            python_stack=self._stack(),
        )
        return self.done(outcome)

    def _stack(self) -> str:
        return os.pread(self._faults, _MOST_STACK_BYTES, 0).decode("utf-8", "replace")

    def close(self) -> None:
        """Close all of it; the process has ended, or is left to itself."""
        self._open.close()


def _reason(problem: Diagnostic) -> str:
    return f"{problem.pointer}: {problem.message}" if problem.pointer else problem.message


def counted_kills() -> int:
    """How many processes the kernel has ended so far because memory had run out (proc_vmstat(5)), 0 where unknown."""
    with suppress(OSError, ValueError), open("/proc/vmstat", encoding="ascii") as file:
        for line in file:
            if line.startswith("oom_kill "):
                return int(line.split()[1])
    return 0
