"""The process that waits for the one which runs scenarios, and explains how it ended if a driver crashed in it.

A driver that crashes takes its process with it. So several files run in a child process, forked before anything is
imported or started. When it crashes, the next child says which scenario did that and goes on with those that are left.
The child dies with its parent, whatever ends that. With --isolate and --timeout a child that hangs is killed.
One file runs without a parent, which would take a twentieth of the time of a small run; a `Watcher` says what it was
doing when it crashes.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # see signals.py
import faulthandler
import os
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import FrameType
from typing import TYPE_CHECKING

from scenario_runner import progress, signals
from scenario_runner.cli import COMMANDS
from scenario_runner.errors import FenceTimeoutError
from scenario_runner.text import one_line

if TYPE_CHECKING:
    from scenario_runner.run.crash import Crash
    from scenario_runner.run.isolated_process import IsolatedProcess

# What follows these is a file that is written, whatever it is called.
_WRITING = frozenset({"--shader-instrumentation", "--profiling-dump-path", "--perf-counters-dump-path", "--trace"})
_WITHOUT_DRIVER = frozenset({"-h", "--help", "-v", "--version"})

_STACK_S = 0.2  # for a Python stack to be written
_END_S = 10.0
_LOOK_S = 0.02  # between two looks at a child that may hang

# $1 is the file (or nothing), standard input a pipe that brings a line when the run ends by itself, $2 the descriptor
# of what `progress` keeps, $3 that of what `faulthandler` says of the signal.
_SCRIPT = f"""
read -r line && exit
read -r fault </proc/self/fd/$3
case $fault in
*Segmentation*) name=SIGSEGV ;; *Abort*) name=SIGABRT ;; *Bus*) name=SIGBUS ;;
*Floating*) name=SIGFPE ;; *Illegal*) name=SIGILL ;; *) name=SIGKILL ;;
esac
tail -c +{progress.TEXT + 1} /proc/self/fd/$2 | tr '\\000' '\\n' | {{
  read -r what
  read -r pointer
  place="${{1:+$1: }}${{pointer:+$pointer: }}"
  echo "error: ${{place}}the process that ran it was ended by $name while ${{what:-starting}}" >&2
}}
"""

crash: Crash | None = None
"""In a child that goes on after a crash: that crash."""


def supervised(main: Callable[[], int]) -> int:
    """Return the result of ``main``: run in a child where there are several files, else here, and watched where it may
    load a driver. Returns in the child as well."""
    argv = sys.argv[1:]
    driver = argv and (argv[0] == "run" or argv[0] not in COMMANDS) and _WITHOUT_DRIVER.isdisjoint(argv)
    files = files_of(argv) if driver else []
    asked = "--isolate" in argv
    if (len(files) > 1 or (files and asked)) and "--no-isolate" not in argv and _can_fork():
        progress.share()
        return _Supervisor(asked).run(main)
    signals.handle(signals.interrupt)
    if not driver:
        return main()
    watcher = Watcher(files[0] if len(files) == 1 else "")
    try:
        return main()
    finally:
        watcher.ended()


class Watcher:
    """A shell that waits beside a run of one file, and says what was being done when a driver crashed.

    A parent process costs such a run a twentieth of its time: the memory that both have after a fork is copied piece by
    piece. A shell is started without that. It cannot change how the run ends, which is by the signal. A handler in the
    process itself cannot do this: faulthandler writes nothing but its own lines, and Python code that runs in a crashed
    process may wait forever for a lock that the driver held.

    Life cycle: started with the run; told that it has `ended`, or finds that its process is gone without that."""

    def __init__(self, file: str = "") -> None:
        """Nothing is watched where there is no shell, or no Linux."""
        self._held = -1
        try:
            kept, said = (os.memfd_create("scenario-runner", 0) for _ in range(2))  # 0: the shell inherits them
            read, held = os.pipe()
            progress.share(kept)
            os.posix_spawn(
                "/bin/sh",
                ["sh", "-c", _SCRIPT, "sh", one_line(file), str(kept), str(said)],
                {},
                file_actions=[(os.POSIX_SPAWN_DUP2, read, 0), (os.POSIX_SPAWN_CLOSE, 1)],
            )
        except (AttributeError, OSError):
            return
        os.close(read)
        self._held = held
        faulthandler.enable(said, all_threads=False)

    def ended(self) -> None:
        """The run has ended by itself."""
        try:
            if self._held >= 0:
                os.write(self._held, b"\n")
        except OSError:
            pass  # Ctrl-C ended the shell


def files_of(argv: Sequence[str]) -> list[str]:
    """List the arguments that seem to be files to run: the arguments are read later. What follows an option may be its
    value."""
    words = argv[1:] if argv[0] == "run" else argv
    return [
        word
        for before, word in zip(("", *words), words, strict=False)
        if word[:1] != "-"
        and before not in _WRITING
        and (before[:1] != "-" or before == "--scenario" or word.lower().endswith((".json", ".vgf", ".pte")))
    ]


def _can_fork() -> bool:
    """Return whether this process has but one thread: those of a tool that was loaded into it would be missing in a
    child."""
    try:
        return len(os.listdir("/proc/self/task")) == 1
    except OSError:
        return False


class _Supervisor:
    """Life cycle: handlers are set and a child is forked; its end is awaited; after a crash there is another child."""

    def __init__(self, ends_hanging: bool) -> None:
        """``ends_hanging``: a child that sets `progress.LIMIT_MS` is killed when it does nothing for so long."""
        self._ends_hanging = ends_hanging
        self._child: IsolatedProcess | None = None
        self._asked = 0

    def run(self, main: Callable[[], int]) -> int:
        """The exit code of the call; in the child what ``main`` returns."""
        _signal.signal(_signal.SIGCHLD, _signal.SIG_DFL)  # where it is ignored, the child could not be waited for
        signals.handle(self._pass_on)
        global crash
        while True:
            before = progress.number(progress.ENDED)
            if self._asked:  # while there was no child
                return signals.EXIT_CODE_BASE + self._asked
            child = self._fork()
            if child is None:
                return main()
            hung_s = self._wait(child)
            code = child.code or 0
            if code >= 0:
                return code
            number = self._asked or -code
            if number in signals.INTERRUPTING:
                return signals.EXIT_CODE_BASE + number
            from scenario_runner.run.crash import Crash

            child_crash = Crash.by(number, child.stack, hung_s)
            child.close()
            progress.ended(child_crash.kind.exit_code)
            if crash is not None and before >= (progress.number(progress.TOTAL) or len(sys.argv)):
                return progress.number(progress.CODE)  # it had nothing left to do but to say what had happened
            crash = child_crash

    def _fork(self) -> IsolatedProcess | None:
        """Fork; None in the child, and where there are no more processes to be had. No signal comes in between, when it
        could not be passed on."""
        from scenario_runner.run.isolated_process import IsolatedProcess

        before = _signal.pthread_sigmask(_signal.SIG_BLOCK, signals.INTERRUPTING)
        try:
            with suppress(OSError):
                child = IsolatedProcess()
                if child.id:
                    self._child = child
                    return child
            signals.handle(signals.interrupt)
            return None
        finally:
            _signal.pthread_sigmask(_signal.SIG_SETMASK, before)

    def _wait(self, child: IsolatedProcess) -> float:
        """Wait for the end of the child; the seconds after which it was killed, since it hung, or 0.

        Raises FenceTimeoutError where it does not end: its driver holds it in the kernel."""
        seen, since = -1, 0.0
        while not child.wait(_LOOK_S if self._ends_hanging else None):
            now, limit_s = time.monotonic(), progress.number(progress.LIMIT_MS) / 1e3
            changes = progress.number(progress.CHANGES)
            if changes != seen:
                seen, since = changes, now
            elif limit_s and now - since > progress.ended_after_s(limit_s):
                child.ask_for_stack()
                time.sleep(_STACK_S)
                child.signal(_signal.SIGKILL)
                if child.wait(_END_S):
                    return limit_s
                raise FenceTimeoutError(
                    f"the process that ran the scenarios has not ended {_END_S:g} s after it was killed"
                    f" while {progress.work()[0] or 'starting'}: the driver holds it in the kernel",
                    help="the system must be started again, or the device be reset",
                )
        return 0.0

    def _pass_on(self, number: int, frame: FrameType | None) -> None:
        self._asked = number
        if self._child:
            self._child.signal(number)
