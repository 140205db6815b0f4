"""Programs that this one starts: each has a time limit and ends with the process that started it. Compilers and
checkers of shaders also have limits of memory and output."""

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from scenario_runner.processes import progress, system_limits
from scenario_runner.processes.signals import KILL, kill_when_closed, signal_name

if sys.platform == "linux":
    import resource

MAX_FILE_BYTES = 64 << 20
MAX_OUTPUT_BYTES = 1 << 20
MAX_MEMORY_BYTES = 4 << 30


class Program(subprocess.Popen[bytes]):
    """A program in a process group of its own, which is killed with all of it after ``timeout_s`` seconds, at the end
    of the ``with`` block, and when this process is gone.

    Its pipes can be read to their end without a time limit of their own. Raises OSError when it cannot be started, and
    LimitError where the system has no process or thread to give.
    """

    def __init__(self, argv: Sequence[str], timeout_s: float, **options: Any) -> None:
        self._timeout_s = timeout_s
        self.timed_out = False
        alive, self._held = os.pipe()
        try:
            super().__init__(
                argv, start_new_session=True, pass_fds=() if sys.platform == "win32" else (alive,), **options
            )
        except BaseException as error:
            os.close(self._held)
            if isinstance(error, BlockingIOError):  # EAGAIN of fork()
                raise system_limits.refusal("process") from error
            raise
        else:
            if sys.platform == "linux":
                kill_when_closed(alive, -self.pid)
        finally:
            os.close(alive)
        self._timer = threading.Timer(timeout_s, self._time_out)
        self._timer.daemon = True
        try:
            system_limits.start(self._timer)
        except BaseException:
            self.end()
            raise

    def kill(self) -> None:
        """Kill the program, and all that it has started in its group."""
        with contextlib.suppress(OSError):
            if not hasattr(os, "killpg"):  # Windows
                super().kill()
            elif self.returncode is None:
                os.killpg(self.pid, KILL)

    def end(self) -> None:
        """Kill it where it still runs, and close its pipes; doing so again does nothing."""
        self._timer.cancel()
        self.kill()
        self.wait()
        for stream in (self.stdin, self.stdout, self.stderr):
            if stream is not None:
                with contextlib.suppress(OSError):  # unread input
                    stream.close()
        held, self._held = self._held, -1
        if held >= 0:
            os.close(held)

    def __exit__(self, *_: object) -> None:
        self.end()

    @property
    def failure(self) -> str:
        """The way it ended when that was not by itself, as the end of a sentence; ``""`` when it exited."""
        if self.timed_out:
            return f"did not finish within {self._timeout_s:g} s"
        return f"was ended by {signal_name(-self.returncode)}" if self.returncode < 0 else ""

    def _time_out(self) -> None:
        self.timed_out = True
        self.kill()


class ProgramResult(NamedTuple):
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
        self._before = ("", "", "")
        self.stopped = False

    def run(self, argv: list[str], *, folder: str | None, timeout_s: float) -> ProgramResult:
        """Run ``argv`` in ``folder`` to its end, or kill it after ``timeout_s`` seconds.

        Raises OSError or LimitError when it cannot be started.
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
        """Note in `progress` that this program is waited for; after the last program, restore the earlier note."""
        with self._lock:
            if not self._awaited:
                self._before = progress.work()
            self._awaited += 1
            progress.doing(f"{progress.COMPILING} {program!r}", kind=progress.COMPILING)
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


def _make_runnable(path: str) -> None:
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
        future.result()  # raises a defect of ours
