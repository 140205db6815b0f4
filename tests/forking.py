"""Processes of the program that start at once: they are forked from one that has imported what the program imports.

Starting Python and importing takes several times as long as most calls of the program that tests make. A forked process
has arguments, streams, a folder and an environment of its own, like any other, and runs `console` from its beginning.
What a start of Python reads from its surroundings is that of the process it is forked from: `can_fork` says whether a
call is such that this makes no difference.
"""

from __future__ import annotations

import atexit
import gc
import os
import pickle
import pkgutil
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Collection, Mapping
from contextlib import ExitStack, suppress
from importlib import import_module
from io import FileIO
from pathlib import Path
from typing import TypeVar

_End = TypeVar("_End", FileIO, socket.socket)

# What Python and the libraries that are loaded by then have read already.
_READ_AT_START = ("PYTHON", "LD_", "LC_", "LANG", "TZ", "MALLOC_", "GLIBC_", "OMP_", "OPENBLAS_")
_MESSAGE_BYTES = 1 << 17
_PIPE_BYTES = 1 << 16  # what a pipe takes before somebody reads
# Parts that a run of the program does not import, or that start threads.
_LEFT_OUT = ("scenario_runner.__main__", "scenario_runner.suite.cluster", "scenario_runner.suite.pytest_plugin")


class Forks:
    """Life cycle: the first call starts the process that is forked; it ends with this one."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        """``environment``: of the process that is forked; the package and the tests can be imported with it."""
        self._environment = environment
        self._lock = threading.Lock()  # one call at a time
        self._control: socket.socket | None = None

    def can_fork(self, env: Mapping[str, str], stdin: str) -> bool:
        """Whether a forked process would be like one that is started with ``env`` and is given ``stdin``."""
        return _read_at_start(env) == _read_at_start(self._environment) and len(stdin.encode()) < _PIPE_BYTES

    def run(
        self, arguments: list[str], folder: Path, env: Mapping[str, str], stdin: str, timeout_s: float
    ) -> tuple[int, bytes, bytes]:
        """Exit code (minus the signal's number), standard output and standard error of one call; `can_fork` holds.

        Raises subprocess.TimeoutExpired, and ends the process, after ``timeout_s`` seconds.
        """
        with self._lock, ExitStack() as open_files:
            control = self._started()
            (their_in, our_in), (our_out, their_out), (our_err, their_err) = pipes = [_pipe() for _ in range(3)]
            for pipe in pipes:
                for end in pipe:
                    open_files.enter_context(end)
            ends = (their_in, their_out, their_err)
            request = pickle.dumps((arguments, str(folder), dict(env), _umask()))
            socket.send_fds(control, [request], [end.fileno() for end in ends])
            process = self._answer(control)
            for end in ends:
                end.close()
            with suppress(BrokenPipeError):  # it did not read it
                our_in.write(stdin.encode())
            our_in.close()
            deadline = time.monotonic() + timeout_s
            try:
                out, err = _read(our_out, our_err, deadline)
                _wait_for([control], deadline)
            except TimeoutError:
                os.kill(process, signal.SIGKILL)
                raise subprocess.TimeoutExpired(arguments, timeout_s) from None
            finally:
                status = self._answer(control)
            return os.waitstatus_to_exitcode(status), out, err

    def _started(self) -> socket.socket:
        if self._control is None:
            self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with theirs:
                self._process = subprocess.Popen(
                    [sys.executable, "-m", __name__, str(theirs.fileno())],
                    env=self._environment,
                    stdin=subprocess.PIPE,  # pipes as those of its children: Python keeps what it found out about them
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    pass_fds=[theirs.fileno()],
                )
            atexit.register(self._process.communicate)
            atexit.register(self._control.close)  # called first
        return self._control

    def _answer(self, control: socket.socket) -> int:
        answer = control.recv(_MESSAGE_BYTES)
        assert answer, self._process.communicate()
        return int(answer)


def _read_at_start(env: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in env.items() if name.startswith(_READ_AT_START)}


def _umask() -> int:
    os.umask(mask := os.umask(0))
    return mask


def _pipe() -> tuple[FileIO, FileIO]:
    """The end to read from and the end to write to."""
    reading, writing = os.pipe()
    return FileIO(reading), FileIO(writing, "w")


def _wait_for(ends: Collection[_End], deadline: float) -> list[_End]:
    """Those that have something to read. Raises TimeoutError."""
    ready, _, _ = select.select(ends, [], [], max(0.0, deadline - time.monotonic()))
    if not ready:
        raise TimeoutError
    return ready


def _read(out: FileIO, err: FileIO, deadline: float) -> tuple[bytes, bytes]:
    """What comes from two pipes until their end. Raises TimeoutError."""
    parts: dict[FileIO, list[bytes]] = {out: [], err: []}
    waiting = {out, err}
    while waiting:
        for end in _wait_for(waiting, deadline):
            part = end.read(_PIPE_BYTES)
            parts[end].append(part)
            if not part:
                waiting.remove(end)
    return b"".join(parts[out]), b"".join(parts[err])


def serve(control: socket.socket) -> None:
    """Fork for each request, one after the other. Returns in the forked process; ends when nobody asks any more."""
    while True:
        request, streams, _, _ = socket.recv_fds(control, _MESSAGE_BYTES, 3)
        if not request:
            os._exit(0)
        process = os.fork()
        if not process:
            control.close()
            arguments, folder, env, mask = pickle.loads(request)
            for number, stream in enumerate(streams):
                os.dup2(stream, number)
                os.close(stream)
            os.umask(mask)
            os.chdir(folder)
            os.environ.clear()
            os.environ.update(env)
            sys.argv = [sys.argv[0], *arguments]
            sys.path[0] = folder
            return
        for stream in streams:
            os.close(stream)
        control.send(b"%d" % process)
        control.send(b"%d" % os.waitpid(process, 0)[1])


if __name__ == "__main__":
    import scenario_runner
    from scenario_runner.__main__ import console

    for module in pkgutil.walk_packages(scenario_runner.__path__, "scenario_runner."):
        if not module.name.startswith(_LEFT_OUT):
            import_module(module.name)
    gc.freeze()  # a search for garbage in a forked process would copy the pages of all that was imported
    try:
        serve(socket.socket(fileno=int(sys.argv[1])))
    except KeyboardInterrupt:
        os._exit(130)
    console()
