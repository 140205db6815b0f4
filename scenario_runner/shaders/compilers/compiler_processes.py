"""Shader compilers and checkers as processes, with limits on time, memory and output."""

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from scenario_runner.processes import progress, system_limits
from scenario_runner.processes.programs import Program

if sys.platform == "linux":
    import resource

MAX_FILE_BYTES = 64 << 20
MAX_OUTPUT_BYTES = 1 << 20
MAX_MEMORY_BYTES = 4 << 30


class ProgramResult(NamedTuple):
    """The end of a program that exited with ``code``.

    ``output`` is standard output and error together. ``failure`` tells how the program was ended; it is empty for a
    program that exited by itself.
    """

    code: int
    output: str
    failure: str = ""


class Processes:
    """Compilers that run now, which an interrupted compilation can end. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: set[Program] = set()
        self._awaited = 0
        self._before = ("", "", "")
        self.stopped = False

    def run(self, argv: list[str], *, folder: str | None, timeout_s: float) -> ProgramResult:
        """Run a program in a folder to the end, or kill it after ``timeout_s`` seconds.

        Raises OSError or LimitError if it cannot be started.
        """
        _make_runnable(argv[0])
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
        return ProgramResult(code, output[:MAX_OUTPUT_BYTES].decode("utf-8", "replace"), failure or program.failure)

    @contextlib.contextmanager
    def _noted(self, program: str) -> Iterator[None]:
        """Note in `progress` which program this process waits for. Restore the earlier note after the last program."""
        with self._lock:
            if not self._awaited:
                self._before = progress.work()
            self._awaited += 1
            progress.set_work(f"{progress.COMPILING} {program!r}", kind=progress.COMPILING)
        try:
            yield
        finally:
            with self._lock:
                self._awaited -= 1
                if not self._awaited:
                    progress.set_work(*self._before)

    def stop(self) -> None:
        """Kill all programs, and start no more."""
        with self._lock:
            self.stopped = True
            for program in self._running:
                program.kill()


def _make_runnable(path: str) -> None:
    """Set the run bit that an installer has left out. Raises PermissionError with the command if that is refused."""
    if os.access(path, os.X_OK):
        return
    try:
        os.chmod(path, os.stat(path).st_mode | 0o111)
    except OSError:
        raise PermissionError(1, f"it is not executable: chmod +x {path}") from None


def _limit(pid: int) -> None:
    """Bound the memory and the files of a process: no shader may fill the machine."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, ValueError):
            resource.prlimit(pid, resource.RLIMIT_AS, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (MAX_FILE_BYTES, MAX_FILE_BYTES))
            resource.prlimit(pid, resource.RLIMIT_CORE, (0, 0))


def work_off(tasks: Sequence[Callable[[str], None]], prefix: str, count: int, processes: Processes) -> None:
    """Do the tasks in ``count`` threads. Each task gets the name of a folder that it may make.

    Ctrl-C ends all ``processes``.
    """
    from concurrent.futures import ThreadPoolExecutor, wait  # with logging, for the few that compile

    pool = ThreadPoolExecutor(count)
    try:
        futures = [pool.submit(task, f"{prefix}-{index}") for index, task in enumerate(tasks)]
        while wait(futures, 0.2).not_done:
            pass  # with a limit: a signal to another thread does not wake this one
    except BaseException as error:
        processes.stop()
        pool.shutdown(cancel_futures=True)
        if isinstance(error, RuntimeError):  # a thread that could not be started
            raise system_limits.refusal("thread") from error
        raise
    pool.shutdown()
    for future in futures:
        future.result()  # raises defects of this program
