"""The process that waits for the one that runs scenarios, and explains its end if a driver crashes.

A driver that crashes takes its process with it. So several files run in a child process, forked before anything is
imported or started, or spawned where the system cannot fork. When it crashes, the next child reports the scenario and
continues with the rest. The child dies with its parent. With --timeout and --isolate, or --printf, a child that hangs
is killed. One file runs without a parent, which would take a twentieth of the time of a small run, since memory is
copied after a fork; a shell beside it reports its crash.
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

from scenario_runner.cli import COMMANDS
from scenario_runner.errors import FenceTimeoutError
from scenario_runner.errors.text import one_line
from scenario_runner.files.input import is_model
from scenario_runner.processes import progress, signals
from scenario_runner.processes.temporary import temporary_folder

if TYPE_CHECKING:
    from scenario_runner.processes.crash import Crash
    from scenario_runner.processes.isolated_process import IsolatedProcess
    from scenario_runner.processes.spawned_process import SpawnedProcess

# Options whose argument is a file to write, whatever its name.
_WRITING = frozenset({"--shader-instrumentation", "--profiling-dump-path", "--perf-counters-dump-path", "--trace"})
_RUNNING = ("run", "compare-layers")
_WITHOUT_DRIVER = frozenset({"-h", "--help", "-v", "--version"})
_ISOLATING = frozenset({"--isolate", "--watch", "--core-dumps"})

_STACK_S = 0.2  # for a Python stack to be written
_END_S = 10.0
_NOTES = "progress"
_LOOK_S = 0.02  # between two looks at a child that may hang

# $1 is the file (or nothing), standard input a pipe that brings a line when the run ends by itself, $2 the descriptor
# of the file of `progress`, $3 that of the file of `faulthandler`, which names the signal.
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
"""In a child that continues after a crash: that crash."""
is_supervised = False
"""True in a child: another one takes its place when it crashes or hangs."""


def supervised(main: Callable[[], int]) -> int:
    """Return the result of ``main``, in a child as well. Several files run in a child. A single one runs here, and is
    watched if it may load a driver."""
    argv = sys.argv[1:]
    driver = argv and (argv[0] in _RUNNING or argv[0] not in COMMANDS) and _WITHOUT_DRIVER.isdisjoint(argv)
    files = files_of(argv) if driver else []
    if files and "--core-dumps" in argv and sys.platform == "linux":
        import resource

        most_bytes = resource.getrlimit(resource.RLIMIT_CORE)[1]
        resource.setrlimit(resource.RLIMIT_CORE, (most_bytes, most_bytes))
    # an older layer that gets what shaders print waits for them where neither --timeout nor Ctrl-C reaches it
    is_isolated = any(argument in _ISOLATING or argument.startswith("--printf") for argument in argv)
    if (len(files) > 1 or (files and is_isolated)) and "--no-isolate" not in argv and not is_supervised:
        from scenario_runner.processes.isolated_process import FORKS

        if not FORKS:
            with temporary_folder() as folder:
                with open(os.path.join(folder, _NOTES), "w+b") as notes:
                    progress.share(notes.fileno())
                return _Supervisor(is_isolated, folder).run(main)
        if _has_one_thread():
            progress.share()
            return _Supervisor(is_isolated).run(main)
    signals.handle(signals.interrupt)
    if not driver:
        return main()
    told = _start_watcher(files[0] if len(files) == 1 else "")
    try:
        return main()
    finally:
        with suppress(OSError):  # there is no shell, or Ctrl-C has ended it
            os.write(told, b"\n")


def _start_watcher(file: str) -> int:
    """Start a shell that reports the work of this process when a driver crashes, and names ``file``.

    The run still ends by the signal. A handler in the process itself cannot do this: faulthandler writes only its own
    lines, and Python code in a crashed process may wait forever for a lock that the driver held. Returns the pipe that
    takes a line when the run has ended by itself, or -1 if there is no shell, or no Linux.
    """
    try:
        notes, faults = (os.memfd_create("scenario-runner", 0) for _ in range(2))  # 0: the shell inherits them
        read, told = os.pipe()
        progress.share(notes)
        os.posix_spawn(
            "/bin/sh",
            ["sh", "-c", _SCRIPT, "sh", one_line(file), str(notes), str(faults)],
            {},
            file_actions=[(os.POSIX_SPAWN_DUP2, read, 0), (os.POSIX_SPAWN_CLOSE, 1)],
        )
    except (AttributeError, OSError):
        return -1
    os.close(read)
    faulthandler.enable(faults, all_threads=False)
    return told


def files_of(argv: Sequence[str]) -> list[str]:
    """List the arguments that seem to be files to run. They are parsed later: a word behind an option may be its
    value."""
    words = argv[1:] if argv[0] in _RUNNING else argv
    return [
        word
        for before, word in zip(("", *words), words, strict=False)
        if word[:1] != "-"
        and before not in _WRITING
        and (before[:1] != "-" or before == "--scenario" or word.lower().endswith(".json") or is_model(word))
    ]


def resume(folder: str, argv: list[str], before: Crash | None) -> None:
    """Take over, in a child that was spawned, the state of the parent, which has files in ``folder``."""
    global crash, is_supervised
    sys.argv, crash, is_supervised = argv, before, True
    with open(os.path.join(folder, _NOTES), "r+b") as notes:
        progress.share(notes.fileno())


def _has_one_thread() -> bool:
    """Return whether this process can fork: with several threads a child would lack those of a tool that was loaded."""
    try:
        return len(os.listdir("/proc/self/task")) == 1
    except OSError:
        return False


class _Supervisor:
    """Life cycle: sets signal handlers, forks a child and waits for its end; after a crash it forks another one."""

    def __init__(self, ends_hanging: bool, folder: str = "") -> None:
        """With ``ends_hanging`` a child that sets `progress.LIMIT_MS` is killed after so long without progress. Where
        processes are not forked but spawned, they share files in ``folder``."""
        self._ends_hanging = ends_hanging
        self._folder = folder
        self._child: IsolatedProcess | SpawnedProcess | None = None
        self._signal = 0

    def run(self, main: Callable[[], int]) -> int:
        """Return the exit code of the call; in the child the result of ``main``."""
        if hasattr(_signal, "SIGCHLD"):
            _signal.signal(_signal.SIGCHLD, _signal.SIG_DFL)  # where it is ignored, the child could not be waited for
        signals.handle(self._pass_on)
        global crash
        while not self._signal:  # one comes while there is no child
            before = progress.numbers[progress.ENDED]
            child = self._spawn() if self._folder else self._fork()
            if child is None:
                return main()
            hung_s = self._wait(child)
            code = child.code or 0
            if code >= 0:
                return code
            number = self._signal or -code
            if number in signals.INTERRUPTING:
                return signals.EXIT_CODE_BASE + number
            from scenario_runner.processes.crash import crash_of_child, native_stack

            child_crash = crash_of_child(number, hung_s, child.stack)
            if "--core-dumps" in sys.argv and not hung_s:
                child_crash = child_crash._replace(native_stack=native_stack(child.id))
            child.close()
            progress.ended(child_crash.kind.exit_code)
            if crash is not None and before >= (progress.numbers[progress.TOTAL] or len(sys.argv)):
                return progress.numbers[progress.CODE]  # it only had to report the crash before
            crash = child_crash
        return signals.EXIT_CODE_BASE + self._signal

    def _fork(self) -> IsolatedProcess | None:
        """Fork; None in the child, and if the system refuses a process. Signals are blocked until they can be passed
        on."""
        from scenario_runner.processes.isolated_process import IsolatedProcess

        global is_supervised
        before = _signal.pthread_sigmask(_signal.SIG_BLOCK, signals.INTERRUPTING)
        try:
            with suppress(OSError):
                child = IsolatedProcess()
                if child.id:
                    self._child = child
                    return child
                is_supervised = True
            signals.handle(signals.interrupt)
            return None
        finally:
            _signal.pthread_sigmask(_signal.SIG_SETMASK, before)

    def _spawn(self) -> SpawnedProcess | None:
        """Start an interpreter for the child, and pass on a signal that has come meanwhile; None if the system refuses
        a process."""
        from scenario_runner.processes.spawned_process import SpawnedProcess

        try:
            self._child = child = SpawnedProcess(self._folder, "scenario_runner.__main__:resume", sys.argv, crash)
        except OSError:
            signals.handle(signals.interrupt)
            return None
        if self._signal:
            child.signal(self._signal)
        return child

    def _wait(self, child: IsolatedProcess | SpawnedProcess) -> float:
        """Wait for the end of the child. Return the seconds after which it was killed because it hung, else 0.

        Raises FenceTimeoutError if it does not end: its driver holds it in the kernel."""
        seen, since = -1, 0.0
        while not child.wait(_LOOK_S if self._ends_hanging else None):
            now, limit_s = time.monotonic(), progress.numbers[progress.LIMIT_MS] / 1e3
            changes = progress.numbers[progress.CHANGES]
            if changes != seen:
                seen, since = changes, now
            elif limit_s and now - since > progress.ended_after_s(limit_s):
                child.ask_for_stack()
                time.sleep(_STACK_S)
                child.kill()
                if child.wait(_END_S):
                    return limit_s
                raise FenceTimeoutError(
                    f"the process that ran the scenarios has not ended {_END_S:g} s after it was killed"
                    f" while {progress.work()[0] or 'starting'}: the driver holds it in the kernel",
                    help="the system must be started again, or the device be reset",
                )
        return 0.0

    def _pass_on(self, number: int, frame: FrameType | None) -> None:
        self._signal = number
        if self._child:
            self._child.signal(number)
