"""The process that waits for the one which runs scenarios, and explains how it ended if a driver crashed in it.

A driver that crashes takes its process with it. So what may load a driver runs in a child process, forked before
anything is imported or started, which costs a third of a millisecond. When it crashes, the next child says which
scenario did that and goes on with those that are left. The child dies with its parent, whatever ends that.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # see signals.py
import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from scenario_runner import progress
from scenario_runner.cli import COMMANDS, signals

if TYPE_CHECKING:
    from types import FrameType

    from scenario_runner.cli.crash import Crash

_WITHOUT_DRIVER = frozenset({"-h", "--help", "-v", "--version"})

crash: Crash | None = None
"""In a child that goes on after a crash: that crash."""


def supervised(main: Callable[[], int]) -> int:
    """What ``main`` returns: run here, or in a child where it may load a driver. Returns in the child as well."""
    if not _may_load_a_driver(sys.argv[1:]) or not _can_fork():
        signals.handle(signals.interrupt)
        return main()
    progress.share()
    return _Supervisor().run(main)


def _may_load_a_driver(argv: Sequence[str]) -> bool:
    return bool(argv) and (argv[0] == "run" or argv[0] not in COMMANDS) and _WITHOUT_DRIVER.isdisjoint(argv)


def _can_fork() -> bool:
    """Whether this process has but one thread: those of a tool that was loaded into it would be missing in a child."""
    try:
        return len(os.listdir("/proc/self/task")) == 1
    except OSError:
        return False


class _Supervisor:
    """Life cycle: handlers are set and a child is forked; its end is awaited; after a crash there is another child."""

    def __init__(self) -> None:
        self._child = 0
        self._asked = 0
        self._parent = os.getpid()
        self._alive, self._held = os.pipe()

    def run(self, main: Callable[[], int]) -> int:
        """The exit code of the call; in the child what ``main`` returns."""
        _signal.signal(_signal.SIGCHLD, _signal.SIG_DFL)  # where it is ignored, nobody could wait for the child
        signals.handle(self._pass_on)
        global crash
        while True:
            before = progress.number(progress.ENDED)
            if self._asked:  # while there was no child
                return signals.EXIT_CODE_BASE + self._asked
            if not self._fork():
                return main()
            _, status = os.waitpid(self._child, 0)
            if os.WIFEXITED(status):
                return os.WEXITSTATUS(status)
            number = self._asked or os.WTERMSIG(status)
            if number in signals.INTERRUPTING:
                return signals.EXIT_CODE_BASE + number
            from scenario_runner.cli.crash import Crash
            from scenario_runner.errors import DriverCrashError

            found = Crash.by(number)
            progress.ended(DriverCrashError.exit_code)
            if crash is not None and before >= (progress.number(progress.TOTAL) or len(sys.argv)):
                return progress.number(progress.CODE)  # it had nothing left to do but to say what had happened
            crash = found

    def _fork(self) -> int:
        """Fork; false in the child, and where there are no more processes to be had. No signal comes in between, when
        it could not be passed on."""
        before = _signal.pthread_sigmask(_signal.SIG_BLOCK, signals.INTERRUPTING)
        try:
            try:
                self._child = os.fork()
            except OSError:
                signals.handle(signals.interrupt)
                return 0
            if not self._child:
                signals.handle(signals.interrupt)
                self._die_with_parent()
        finally:
            _signal.pthread_sigmask(_signal.SIG_SETMASK, before)
        return self._child

    def _pass_on(self, number: int, frame: FrameType | None) -> None:
        self._asked = number
        try:
            if self._child:
                os.kill(self._child, number)
        except ProcessLookupError:
            pass  # it has ended

    def _die_with_parent(self) -> None:
        """Have the system kill this process when the parent is gone: the parent alone holds the other end of a pipe."""
        import fcntl

        os.close(self._held)
        if not hasattr(fcntl, "F_SETSIG"):
            return
        fcntl.fcntl(self._alive, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(self._alive, fcntl.F_SETSIG, _signal.SIGKILL)
        fcntl.fcntl(self._alive, fcntl.F_SETFL, fcntl.fcntl(self._alive, fcntl.F_GETFL) | os.O_ASYNC)
        if os.getppid() != self._parent:  # it ended before
            os.kill(os.getpid(), _signal.SIGKILL)
