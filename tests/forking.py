"""Processes of the program that start at once: they are forked from one that has imported what the program imports.

Starting Python and importing takes several times as long as most calls of the program that tests make. A forked process
has arguments, streams, a folder and an environment of its own, like any other, and runs `console` from its beginning.
What a start of Python reads from its surroundings is that of the process it is forked from: `can_fork` says whether a
call is such that this makes no difference.

The processes of a call are forked from it in turn, as it has one thread and no driver.
"""

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
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryFile
from types import ModuleType

# What Python and the libraries that are loaded by then have read already.
_READ_AT_START = ("PYTHON", "LD_", "LC_", "LANG", "TZ", "MALLOC_", "GLIBC_", "OMP_", "OPENBLAS_")
_MESSAGE_BYTES = 1 << 17
_PIPE_BYTES = 1 << 16  # what a pipe takes before somebody reads
# Parts that a run of the program does not import, that start threads, or whose packages set up logging.
_LEFT_OUT = (
    "scenario_runner.__main__",
    "scenario_runner.suite.cluster",
    "scenario_runner.suite.pytest_plugin",
    "scenario_runner.tosa.harness",
    "scenario_runner.tosa.layer_rules",
)


class Forks:
    """Life cycle: the first call starts the process that is forked; it ends with this one."""

    def __init__(self) -> None:
        self._environment = dict(os.environ)  # of the process that is forked
        self._lock = threading.Lock()  # one call at a time
        self._control: socket.socket | None = None

    def can_fork(self, env: Mapping[str, str], stdin: str) -> bool:
        """Whether a forked process would be like one that is started with ``env`` and is given ``stdin``."""
        return _read_at_start(env) == _read_at_start(self._environment) and len(stdin.encode()) < _PIPE_BYTES

    def run(
        self,
        arguments: list[str],
        folder: Path,
        env: Mapping[str, str],
        stdin: str,
        timeout_s: float,
        *,
        merged: bool = False,
        python: bool = False,
    ) -> tuple[int, bytes, bytes]:
        """Exit code (minus the signal's number), standard output and standard error of one call; `can_fork` holds.

        With ``merged``, standard output has both. With ``python``, Python runs the first argument instead of
        the program. Raises subprocess.TimeoutExpired, and ends the process, after ``timeout_s`` seconds.
        """
        with self._lock, TemporaryFile() as out, TemporaryFile() as err:
            control = self._started()
            given, writing = os.pipe()
            os.write(writing, stdin.encode())
            os.close(writing)
            request = pickle.dumps((arguments, str(folder), dict(env), _umask(), python))
            socket.send_fds(control, [request], [given, out.fileno(), (out if merged else err).fileno()])
            os.close(given)
            process = self._answer(control)
            ready, _, _ = select.select([control], [], [], timeout_s)
            if not ready:
                os.kill(process, signal.SIGKILL)
            status = self._answer(control)
            if not ready:
                raise subprocess.TimeoutExpired(arguments, timeout_s)
            out.seek(0)
            err.seek(0)
            return os.waitstatus_to_exitcode(status), out.read(), err.read()

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


def _begin(arguments: list[str], folder: str, env: Mapping[str, str]) -> None:
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(env)
    sys.argv = arguments


def serve(control: socket.socket) -> bool:
    """Fork for each request, one after the other. Ends when nobody asks any more.

    Returns in the forked process: whether the request is for Python, not for the program.
    """
    while True:
        request, streams, _, _ = socket.recv_fds(control, _MESSAGE_BYTES, 3)
        if not request:
            os._exit(0)
        process = os.fork()
        if not process:
            control.close()
            arguments, folder, env, mask, is_python = pickle.loads(request)
            for number, stream in enumerate(streams):
                os.dup2(stream, number)
                os.close(stream)
            os.umask(mask)
            _begin([sys.argv[0], *arguments], folder, env)
            sys.path[0] = folder
            return bool(is_python)
        for stream in streams:
            os.close(stream)
        control.send(b"%d" % process)
        control.send(b"%d" % os.waitpid(process, 0)[1])


def run_python(code: str) -> None:
    """Execute code like ``python -c``."""
    sys.argv[:2] = ["-c"]
    main = sys.modules["__main__"] = ModuleType("__main__")
    exec(code, main.__dict__)


if __name__ == "__main__":
    import scenario_runner
    from scenario_runner.__main__ import console

    for module in pkgutil.walk_packages(scenario_runner.__path__, "scenario_runner."):
        if not module.name.startswith(_LEFT_OUT):
            import_module(module.name)
    gc.freeze()  # a search for garbage in a forked process would copy the pages of all that was imported
    try:
        runs_python = serve(socket.socket(fileno=int(sys.argv[1])))
    except KeyboardInterrupt:
        os._exit(130)
    if runs_python:
        run_python(sys.argv[1])
    else:
        console()
