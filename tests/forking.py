"""Processes of the program that start at once: they are forked from one that has imported what the program imports.

Starting Python and importing takes several times as long as most calls of the program that tests make. A forked process
has arguments, streams, a folder and an environment of its own, like any other, and runs `console` from its beginning.
What a start of Python reads from its surroundings is that of the process it is forked from: `can_fork` says whether a
call is such that this makes no difference.

Half of the processor time of a suite of one item is the start of the interpreter that its workers are forked from. A
call that may have workers has a few `_Spare`s for it: forks from before the call began, which become these processes.
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
import time
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryFile
from typing import ClassVar

# What Python and the libraries that are loaded by then have read already.
_READ_AT_START = ("PYTHON", "LD_", "LC_", "LANG", "TZ", "MALLOC_", "GLIBC_", "OMP_", "OPENBLAS_")
_MESSAGE_BYTES = 1 << 17
_WATCHER_S = 2.0
_PIPE_BYTES = 1 << 16  # what a pipe takes before somebody reads
# Parts that a run of the program does not import, that start threads, or whose packages set up logging.
_LEFT_OUT = (
    "scenario_runner.__main__",
    "scenario_runner.suite.cluster",
    "scenario_runner.suite.pytest_plugin",
    "scenario_runner.tosa.harness",
)
_WITH_WORKERS = frozenset({"diff", "reduce", "test"})  # commands
_SPARES = 3  # a call that compares two devices starts as many interpreters
_MOST_DESCRIPTORS = 8


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
    ) -> tuple[int, bytes, bytes]:
        """Exit code (minus the signal's number), standard output and standard error of one call; `can_fork` holds.

        With ``merged``, standard output has both. Raises subprocess.TimeoutExpired, and ends the process, after
        ``timeout_s`` seconds.
        """
        with self._lock, TemporaryFile() as out, TemporaryFile() as err:
            control = self._started()
            given, writing = os.pipe()
            os.write(writing, stdin.encode())
            os.close(writing)
            request = pickle.dumps((arguments, str(folder), dict(env), _umask()))
            socket.send_fds(control, [request], [given, out.fileno(), (out if merged else err).fileno()])
            os.close(given)
            process = self._answer(control)
            ready, _, _ = select.select([control], [], [], timeout_s)
            if not ready:
                os.kill(process, signal.SIGKILL)
            status = self._answer(control)
            if not ready:
                raise subprocess.TimeoutExpired(arguments, timeout_s)
            until = time.monotonic() + _WATCHER_S
            while os.WIFSIGNALED(status) and not os.fstat(err.fileno()).st_size and time.monotonic() < until:
                time.sleep(0.01)  # the shell beside a run of one file says what was being done
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


class _Spare:
    """A fork of this process that waits for the code of the one interpreter that it stands for. It ends with this
    process if there is none."""

    def __init__(self) -> None:
        self.code = ""  # in the fork, once it is to run
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._process = os.fork()
        with theirs:
            if not self._process:
                for spare in (self, *_Popen.spares):
                    spare._control.close()
                self._become(theirs)

    def run(self, code: str, env: Mapping[str, str], streams: Sequence[int], numbers: Sequence[int]) -> int:
        """Run code with these standard streams, and with the descriptors of these numbers; returns the process."""
        request = pickle.dumps((code, dict(env), os.getcwd(), numbers))
        with self._control:
            socket.send_fds(self._control, [request], [*streams, *numbers])
        return self._process

    def _become(self, control: socket.socket) -> None:
        request, received, _, _ = socket.recv_fds(control, _MESSAGE_BYTES, _MOST_DESCRIPTORS)
        if not request:
            os._exit(0)
        control.close()  # its number may be one of those below
        self.code, env, folder, numbers = pickle.loads(request)
        free = max(*received, *numbers) + 1
        for number, descriptor in enumerate(received, free):
            os.dup2(descriptor, number)
            os.close(descriptor)
        for number, descriptor in zip((*range(3), *numbers), range(free, free + len(received)), strict=True):
            os.dup2(descriptor, number)
            os.close(descriptor)
        _begin(["-c"], folder, env)


class _Popen(subprocess.Popen):
    """Like Popen, but the first interpreters that are to run code are spares."""

    spares: ClassVar[list[_Spare]] = []

    def _execute_child(self, args, executable, preexec_fn, close_fds, pass_fds, cwd, env, *others):
        (*_, read, p2cwrite, c2pread, out, errread, err), group = others[:9], others[-1]
        if not self.spares or args[:3] != [sys.executable, "-P", "-c"]:
            super()._execute_child(args, executable, preexec_fn, close_fds, pass_fds, cwd, env, *others)
            return
        streams = [number if number >= 0 else stream for stream, number in enumerate((read, out, err))]
        self.pid = self.spares.pop().run(args[3], os.environ if env is None else env, streams, pass_fds)
        self._child_created = True
        if group is not None and group >= 0:
            os.setpgid(self.pid, group)
        self._close_pipe_fds(read, p2cwrite, c2pread, out, errread, err)


def _begin(arguments: list[str], folder: str, env: Mapping[str, str]) -> None:
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(env)
    sys.argv = arguments


def serve(control: socket.socket) -> str | None:
    """Fork for each request, one after the other. Ends when nobody asks any more.

    Returns in the forked process; the code to run in one that is no call of the program."""
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
            _begin([sys.argv[0], *arguments], folder, env)
            sys.path[0] = folder
            if not _WITH_WORKERS.isdisjoint(arguments[:1]):
                for _ in range(_SPARES):
                    spare = _Spare()
                    if spare.code:
                        return spare.code
                    _Popen.spares.append(spare)
                subprocess.Popen = _Popen
            return None
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
        code = serve(socket.socket(fileno=int(sys.argv[1])))
    except KeyboardInterrupt:
        os._exit(130)
    if code is None:
        console()
    else:
        exec(code, {"__name__": "__main__"})
