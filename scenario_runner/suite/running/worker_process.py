"""Devices, and the worker processes on them, as the pool sees them."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import time
import traceback
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any, Final, Literal

from scenario_runner import progress
from scenario_runner.errors import DriverCrashError, FenceTimeoutError, ScenarioRunnerError
from scenario_runner.program import signal_name
from scenario_runner.run.crash import Crash, crash_problem
from scenario_runner.run.isolated_process import IsolatedProcess
from scenario_runner.suite.records import BAD, Outcome
from scenario_runner.suite.running import worker
from scenario_runner.suite.running.options import Job, WorkerOptions
from scenario_runner.system_limits import processors

# While one worker of a GPU waits for it, another prepares its work. More bring nothing, and take memory of the device.
_JOBS_OF_GPU: Final = 2
_MOST_FAILURES: Final = 3  # of workers of a device that do not come to run an item, in a row
_MOST_BEFORE: Final = 50
_MOST_OUTPUT_BYTES: Final = 64 << 20
_QUICK_S: Final = 0.1  # a worker whose last item took less gets the next one ahead
_HELP_WHEN_KILLED: Final = "memory that has run out is the usual cause: run fewer at a time with --jobs"
_HELP_AT_START: Final = (
    "'scenario-runner doctor' shows which drivers are found, and starts each; --device chooses another device"
)


class UsedDevice:
    """Life cycle: known by the ``request`` of the user; opened by its first worker; given up when no worker can be
    started or ended."""

    def __init__(self, request: worker.DeviceRequest, jobs: int) -> None:
        """A request for several devices is only a query: its worker lists them and runs no items."""
        self.request = request
        self.uuid = self.name = self.driver = self.type = ""
        self.given_up = ""
        self.error: ScenarioRunnerError | None = None
        self.jobs = jobs
        self.spares = 0
        self.failures = 0
        self._manifest: str | None = None  # of its driver; empty where it is not to be used

    def opened(self, described: Mapping[str, str]) -> None:
        """Note the device that a worker has opened."""
        self.uuid, self.name = described["uuid"], described["name"]
        self.driver, self.type = described["driver"], described["type"]
        self.jobs = self.jobs or (processors() if self.type == "cpu" else min(_JOBS_OF_GPU, processors()))

    def use_manifest(self, manifest: str) -> None:
        """Have later workers open only the driver of this manifest; empty if it is unknown."""
        # An index counts the devices of all drivers.
        if manifest and self._manifest is None and not (isinstance(self.request, str) and self.request.isdecimal()):
            self._manifest = manifest

    def wanted(self, ready: int) -> int:
        """Return the number of workers to have now, of which ``ready`` have started.

        Those of a GPU start one after the other: its driver's start holds a lock of the whole system for long, and the
        first ones work meanwhile. After a crash there is one more, which is ready when another one ends."""
        if self.given_up:
            return 0
        most = (self.jobs or 1) + self.spares
        return most if self.type == "cpu" else min(most, ready + 1)

    def to_open(self) -> tuple[worker.DeviceRequest, str]:
        """Return the request of the next worker, and the manifest of the only driver that it opens, or nothing."""
        return (self.uuid, self._manifest) if self._manifest else (self.request, "")

    def failed(self, error: ScenarioRunnerError, driver: str, *, for_good: bool = False) -> None:
        """Count a worker that could not be started, and that was to open only this driver, if one is named."""
        if driver:  # the device may not be found that way
            self._manifest = ""
            return
        self.failures += 1
        if for_good or self.failures >= _MOST_FAILURES:
            first = error.problems[0]
            again = f", {self.failures} times in a row" if self.failures > 1 else ""
            self.given_up = self.given_up or first.message + again
            self.error = type(error)([first._replace(message=first.message + again)])

    def __str__(self) -> str:
        return f"the device {self.name!r}" if self.name else "the device"


class WorkerProcess:
    """Life cycle: forked; "starting" until it is ready; "idle" or "busy"; "hanging" when it has been asked for its
    Python stack; "killed". `close` it when it has ended. ``deadline`` is when something must have happened."""

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
        self.is_last = False
        """It is not to go on after its item."""
        self.why = ""
        """Why it was killed, as a sentence about it goes on."""
        self.overdue = ""
        """The same when its item takes too long."""
        self._received = b""
        with ExitStack() as stack:
            self.connection, theirs = (stack.enter_context(end) for end in socket.socketpair())
            self._output, self._progress = files = [os.memfd_create(name) for name in ("output", "progress")]
            for file in files:
                stack.callback(os.close, file)
            fcntl.fcntl(self._output, fcntl.F_SETFL, os.O_APPEND)
            request, self.driver = device.to_open()
            self.process = IsolatedProcess(leads_group=True)
            if not self.process.id:
                try:
                    close_inherited()
                    self.connection.close()
                    os._exit(worker.main(options, theirs, self._output, self._progress, request, self.driver))
                except BaseException:
                    traceback.print_exc()
                finally:
                    os._exit(1)
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
        """Receive the complete messages, if any. Raises EOFError, or ValueError for a line that is no JSON."""
        while b"\n" not in self._received:
            try:
                data = self.connection.recv(1 << 16)
            except BlockingIOError:
                return []
            except ConnectionResetError:
                data = b""
            if not data:
                raise EOFError
            self._received += data
        *lines, self._received = self._received.split(b"\n")
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

    def crashed(self) -> Outcome:
        """The outcome of the item that the process was running when it ended."""
        timed_out = self.state == "hanging"
        kind = FenceTimeoutError if timed_out else DriverCrashError
        number = 0 if self.why else max(0, -(self.process.code or 0))
        help = _HELP_WHEN_KILLED if number == signal.SIGKILL else ""
        crash = Crash(number, 0, *progress.read(self._progress)[1:])
        problem = crash_problem(crash, self.queue[0].item.path, self.end, kind.code, help)
        return Outcome(
            "Timeout" if timed_out else "Crash",
            time.monotonic() - self.started,
            f"{problem.pointer}: {problem.message}" if problem.pointer else problem.message,
            kind.exit_code,
            (problem.as_json(),),
            output=worker.end_of(self._output),
            python_stack=self.process.stack,
        )

    def start_error(self) -> DriverCrashError:
        """The error for a worker that ended before it ran an item."""
        work = progress.read(self._progress)[1] or "starting"
        return DriverCrashError(f"a process that was to run scenarios {self.end} while {work}", help=_HELP_AT_START)

    def close(self) -> None:
        """Release the descriptors; the process has ended, or is abandoned."""
        self._open.close()
