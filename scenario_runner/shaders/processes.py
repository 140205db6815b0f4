"""Processes of compilers and validators: bounded in time, output and memory, killed with all that they started."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from scenario_runner import progress, system_limits
from scenario_runner.program import Program

if sys.platform == "linux":
    import resource

MAX_FILE_BYTES = 64 << 20


MAX_OUTPUT_BYTES = 1 << 20
MAX_MEMORY_BYTES = 4 << 30


class Finished(NamedTuple):
    """``output`` is standard output and error together. ``failure`` says why the process did not end by itself, or that
    it ended by a signal; ``""`` when it exited, with ``code``."""

    code: int
    output: str
    failure: str = ""


class Processes:
    """The processes that run now, so that an interrupted compilation can end them. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: set[Program] = set()
        self._awaited = 0
        self._before = ("", "")
        self.stopped = False

    def run(self, argv: list[str], *, folder: str | None, timeout_s: float) -> Finished:
        """Run ``argv`` in ``folder`` to its end, or kill it after ``timeout_s`` seconds.

        Raises OSError or LimitError when it cannot be started.
        """
        output = bytearray()
        failure = ""
        with self._noted(argv[0]):
            with self._lock:
                if self.stopped:
                    raise InterruptedError("the compilation was stopped")
                program = Program(
                    argv,
                    timeout_s,
                    cwd=folder,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                )
                self._running.add(program)
            try:
                _limit(program.pid)
                assert program.stdout is not None
                while chunk := os.read(program.stdout.fileno(), 1 << 16):
                    output += chunk
                    if len(output) > MAX_OUTPUT_BYTES:
                        failure = f"wrote more than {MAX_OUTPUT_BYTES >> 20} MiB of messages"
                        program.kill()
                        break
                code = program.wait()
            finally:
                program.end()
                with self._lock:
                    self._running.discard(program)
        return Finished(code, output[:MAX_OUTPUT_BYTES].decode("utf-8", "replace"), failure or program.failure)

    @contextlib.contextmanager
    def _noted(self, program: str) -> Iterator[None]:
        """Note in `progress` that this program is waited for, and when none is any more what was noted before."""
        with self._lock:
            if not self._awaited:
                self._before = progress.work()
            self._awaited += 1
            progress.doing(f"{progress.COMPILING} {program!r}")
        try:
            yield
        finally:
            with self._lock:
                self._awaited -= 1
                if not self._awaited:
                    progress.doing(*self._before)

    def stop(self) -> None:
        """Kill all, and start no more."""
        with self._lock:
            self.stopped = True
            for program in self._running:
                program.kill()


def make_runnable(path: str) -> None:
    """Set the run bit that an installer did not. Raises PermissionError saying how to, when we may not."""
    if os.access(path, os.X_OK):
        return
    try:
        os.chmod(path, os.stat(path).st_mode | 0o111)
    except OSError:
        raise PermissionError(1, f"it is not executable: chmod +x {path}") from None


def _limit(pid: int) -> None:
    """Bound the memory and the files of a child: a shader must not be able to fill either."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, ValueError):
            resource.prlimit(pid, resource.RLIMIT_AS, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (MAX_FILE_BYTES, MAX_FILE_BYTES))
            resource.prlimit(pid, resource.RLIMIT_CORE, (0, 0))


def work_off(tasks: Sequence[Callable[[str], None]], prefix: str, count: int, processes: Processes) -> None:
    """Do the tasks in ``count`` threads, each with the name of a folder that it may make. Ends all ``processes`` when
    Ctrl-C comes."""
    waiting = deque(enumerate(tasks))
    crashes: list[Exception] = []

    def work() -> None:
        while not processes.stopped:
            try:
                index, task = waiting.popleft()
            except IndexError:
                return
            try:
                task(f"{prefix}-{index}")
            except Exception as error:  # a defect of ours, to be seen by the caller's thread
                crashes.append(error)

    threads = [threading.Thread(target=work, daemon=True) for _ in range(min(count, len(tasks)))]
    try:
        for thread in threads:
            system_limits.start(thread)
        for thread in threads:
            while thread.is_alive():
                thread.join(0.2)  # with a limit: a signal to another thread does not wake this one
    except BaseException:
        processes.stop()
        for thread in threads:
            if thread.ident is not None:
                thread.join(5.0)
        raise
    if crashes:
        raise crashes[0]
