"""One compiler process: bounded in time, output and memory, and killed with everything it started."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass

from scenario_runner import progress, system_limits
from scenario_runner.shaders.module import MAX_FILE_BYTES
from scenario_runner.tied_process import kill_when_closed

MAX_OUTPUT_BYTES = 1 << 20
MAX_MEMORY_BYTES = 4 << 30


@dataclass(frozen=True, slots=True)
class Finished:
    """``output`` is standard output and error together. ``failure`` says why the process did not end by itself, or that
    it ended by a signal; ``""`` when it exited, with ``code``."""

    code: int
    output: str
    failure: str = ""


class Processes:
    """The processes that run now, so that an interrupted compilation can end them. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[bytes]] = set()
        self._awaited = 0
        self._before = ("", "")
        self.stopped = False

    @contextlib.contextmanager
    def noted(self, program: str) -> Iterator[None]:
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

    @contextlib.contextmanager
    def started(self, argv: list[str], folder: str | None) -> Iterator[subprocess.Popen[bytes]]:
        """Start one in a process group of its own; on the way out it and its group are dead.

        Raises OSError, and LimitError where the system has no process to give.
        """
        process, held = None, -1
        try:
            with self._lock:
                if self.stopped:
                    raise InterruptedError("the compilation was stopped")
                alive, held = os.pipe()
                try:
                    process = subprocess.Popen(
                        argv,
                        cwd=folder,
                        stdin=subprocess.DEVNULL,
                        stdout=subprocess.PIPE,
                        stderr=subprocess.STDOUT,
                        start_new_session=True,
                        pass_fds=() if sys.platform == "win32" else (alive,),
                    )
                    if sys.platform == "linux":
                        kill_when_closed(alive, -process.pid)
                except BlockingIOError as error:  # EAGAIN of fork()
                    raise system_limits.refusal("process") from error
                finally:
                    os.close(alive)
                self._running.add(process)
            _limit(process.pid)
            yield process
        finally:
            if process is not None:
                _kill(process)
                process.wait()
                with self._lock:
                    self._running.discard(process)
            if held >= 0:
                os.close(held)

    def stop(self) -> None:
        """Kill all, and start no more."""
        with self._lock:
            self.stopped = True
            for process in self._running:
                _kill(process)


def run_program(
    argv: list[str], *, folder: str | None, timeout_s: float, processes: Processes | None = None
) -> Finished:
    """Run ``argv`` in ``folder`` to its end, or kill it after ``timeout_s`` seconds.

    Raises OSError or LimitError when it cannot be started.
    """
    deadline = time.monotonic() + timeout_s
    chunks: list[bytes] = []
    failure = ""
    processes = processes or Processes()
    with processes.noted(argv[0]), processes.started(argv, folder) as process:
        stream = process.stdout
        assert stream is not None

        def drain() -> None:
            size = 0
            with contextlib.suppress(OSError, ValueError):
                while size <= MAX_OUTPUT_BYTES and (chunk := os.read(stream.fileno(), 1 << 16)):
                    chunks.append(chunk)
                    size += len(chunk)

        # A thread, because a pipe cannot be read with a time limit on every platform.
        reader = threading.Thread(target=drain, daemon=True)
        system_limits.start(reader)
        reader.join(timeout_s)
        if reader.is_alive():
            failure = f"did not finish within {timeout_s:g} s"
        elif sum(map(len, chunks)) > MAX_OUTPUT_BYTES:
            failure = f"wrote more than {MAX_OUTPUT_BYTES >> 20} MiB of messages"
        else:
            try:
                process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                failure = f"did not finish within {timeout_s:g} s"
        code = process.returncode
        if failure:
            _kill(process)
            reader.join(1.0)
        if not reader.is_alive():
            stream.close()
    if code is not None and code < 0 and not failure:
        with contextlib.suppress(ValueError):
            failure = f"was ended by {signal.Signals(-code).name}"
        failure = failure or f"was ended by signal {-code}"
    text = b"".join(chunks)[:MAX_OUTPUT_BYTES].decode("utf-8", "replace")
    return Finished(code if code is not None else -1, text, failure)


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
    if sys.platform != "linux":
        return
    import resource

    with contextlib.suppress(OSError, ValueError):
        resource.prlimit(pid, resource.RLIMIT_AS, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (MAX_FILE_BYTES, MAX_FILE_BYTES))
        resource.prlimit(pid, resource.RLIMIT_CORE, (0, 0))


def _kill(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(OSError):
        if sys.platform == "win32":
            process.kill()
        elif process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
