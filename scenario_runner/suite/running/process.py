"""A worker as the supervisor sees it: what it was given, what it writes, and how it ended."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections import deque
from contextlib import ExitStack, suppress
from typing import Final, Literal

from scenario_runner import progress
from scenario_runner.diagnostics import Diagnostic
from scenario_runner.errors import DriverCrashError, FenceTimeoutError
from scenario_runner.run.crash import Crash, crash_problem, signal_name
from scenario_runner.suite.records import BAD, Item, Outcome
from scenario_runner.suite.running.channel import Channel
from scenario_runner.suite.running.devices import UsedDevice
from scenario_runner.suite.running.forks import Forks
from scenario_runner.suite.running.options import WorkerOptions

_MOST_BEFORE: Final = 50
_MOST_MESSAGES_BYTES: Final = 16 << 10
_MOST_STACK_BYTES: Final = 16 << 10
_PIECE_BYTES: Final = 1 << 16
_OUT_OF_MEMORY: Final = "the kernel ended a process meanwhile since memory had run out: run fewer at a time with --jobs"

State = Literal["starting", "idle", "busy", "hanging", "killed", "leaving"]
"""What it does. hanging: its time is over, and it has been asked for its Python stack; killed: SIGKILL has been sent;
leaving: it has been told to end, or has said that it does."""


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
        self.item: Item | None = None
        """What it runs."""
        self.ran = Item("", "")
        """What it runs or has run last."""
        self.attempts: tuple[Outcome, ...] = ()
        self.count = 0
        self.why = ""  # it was killed, as a sentence about it goes on
        self.timed_out = False
        self.start_failed = False
        self.closed = False  # its end of the connection
        self.overdue = ""
        """The reason to kill it when its item takes too long, which goes on as ``why``."""
        self._before: deque[str] = deque(maxlen=_MOST_BEFORE)
        self._started = 0.0
        self._run = 0
        self._said = b""
        with ExitStack() as sent, ExitStack() as kept:
            ours, theirs = (kept.enter_context(each) for each in socket.socketpair())
            sent.enter_context(theirs)
            self.messages, written = os.pipe()
            kept.callback(os.close, self.messages)
            sent.callback(os.close, written)
            self._progress, self._faults = (os.memfd_create(name) for name in ("progress", "faults"))
            kept.callback(os.close, self._progress)
            kept.callback(os.close, self._faults)
            asked, self.driver = device.to_ask()
            forks.fork(number, asked, self.driver, (theirs.fileno(), written, self._progress, self._faults))
            self._open = kept.pop_all()
        ours.setblocking(False)
        os.set_blocking(self.messages, False)
        self.channel = Channel(ours)

    def run(self, item: Item, attempts: tuple[Outcome, ...], number: int, options: WorkerOptions) -> None:
        """Hand over an item, with the attempts that it had before. Raises OSError where the process has gone."""
        self._said = b""
        self.channel.send(number, *item)
        self.item = self.ran = item
        self.attempts, self._run = attempts, number
        self._started = time.monotonic()
        self.state = "busy"
        self.limit(options.timeout_s, options.timeout_origin)

    def limit(self, seconds: float, origin: str) -> None:
        """Set the time limit of the item that runs."""
        self.overdue = f"took more than {seconds:g} s ({origin})"
        self.deadline = self._started + progress.ended_after_s(seconds)

    def done(self, outcome: Outcome) -> Outcome:
        """The item has ended, with this outcome: the same with what is known of the process."""
        assert self.item is not None
        self.listen()
        if outcome.status in BAD:
            outcome = outcome._replace(
                before=tuple(self._before), before_count=self.count, output=outcome.output or self.said
            )
        self.count += 1
        self._before.append(self.item.id)
        self.item = None
        return outcome

    @property
    def has_begun(self) -> bool:
        """Whether the process has begun with the item that it was given last."""
        return progress.kept(self._progress)[0] == self._run

    @property
    def has_stack(self) -> bool:
        """Whether it has written a Python stack."""
        return os.fstat(self._faults).st_size > 0

    @property
    def said(self) -> str:
        """The end of what it has written to standard output and standard error since its last item began."""
        return self._said.decode("utf-8", "replace")

    def listen(self) -> bool:
        """Take in what it has written; false when nobody will write more."""
        with suppress(BlockingIOError):
            while piece := os.read(self.messages, _PIECE_BYTES):
                self._said = (self._said + piece)[-_MOST_MESSAGES_BYTES:]
            return False
        return True

    def how(self, status: int) -> str:
        """How the process ended, from the status of os.waitpid; that of one that was killed does not matter."""
        if self.why:
            return f"was killed, since it {self.why},"
        if os.WIFSIGNALED(status):
            return f"was ended by {signal_name(os.WTERMSIG(status))}"
        return f"ended by itself with exit code {os.waitstatus_to_exitcode(status)}"

    def ended(self, status: int = 0, kills: int = 0, stack: str = "") -> Outcome:
        """The outcome of the item that the process was running when it ended. ``kills``: `counted_kills` before;
        ``stack``: the native one, where it is known."""
        number = os.WTERMSIG(status) if os.WIFSIGNALED(status) and not self.why else 0
        help = _OUT_OF_MEMORY if number == signal.SIGKILL and counted_kills() > kills else ""
        return self._outcome(Crash(number, 0, *self.work(), stack), self.how(status), help)

    def work(self) -> tuple[str, str]:
        """What it was doing, and the JSON pointer of what it was doing that for."""
        _, what, pointer = progress.kept(self._progress)
        return what, pointer

    def _outcome(self, crash: Crash, end: str, help: str = "") -> Outcome:
        assert self.item is not None
        kind = FenceTimeoutError if self.timed_out else DriverCrashError
        problem = crash_problem(crash, self.item.path, end, kind.code, help)
        outcome = Outcome(
            "Timeout" if self.timed_out else "Crash",
            time.monotonic() - self._started,
            _reason(problem),
            kind.exit_code,
            (problem.as_json(),),
            stack=crash.stack,
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
