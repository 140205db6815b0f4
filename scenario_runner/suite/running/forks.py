"""The supervisor's side of the zygote: asking for workers, signalling them, hearing of their ends."""

from __future__ import annotations

import os
import pickle
import socket
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any, Final

from scenario_runner.errors import DriverCrashError, UnsupportedError
from scenario_runner.run.crash import signal_name
from scenario_runner.suite.running.options import WorkerOptions
from scenario_runner.system_limits import refusal

_MOST_BYTES: Final = 1 << 17
_END_S: Final = 2.0
# The zygote imports from where this process does, whichever way it came to know of that.
_CODE: Final = "import sys; sys.path[:] = {}; from scenario_runner.suite.running.zygote import main; main({})"


class Forks:
    """Life cycle: starts the zygote, which imports what workers need while this process goes on; `close` ends it, and
    with it all workers."""

    def __init__(self, options: WorkerOptions) -> None:
        """Raises UnsupportedError where the system cannot do this, LimitError where it refuses a process."""
        if not hasattr(os, "memfd_create"):
            raise UnsupportedError(
                "running scenarios in processes of their own needs Linux",
                help="run them with --no-isolate",
            )
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._said = os.memfd_create("scenario-runner")
        paths = [os.path.abspath(entry) for entry in sys.path]
        # More threads than one would not outlive a fork.
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
        with theirs:
            try:
                self._process = subprocess.Popen(
                    [sys.executable, "-P", "-c", _CODE.format(paths, theirs.fileno())],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=self._said,
                    env=environment,
                    pass_fds=[theirs.fileno()],
                    process_group=0,  # Ctrl-C is for the supervisor, which ends the workers in its own way
                )
            except OSError as error:
                raise refusal("process") from error
        self.control.send(pickle.dumps(options))
        self.control.setblocking(False)

    def fork(self, number: int, device: Any, driver: str, descriptors: Sequence[int]) -> None:
        """Ask for the worker of this number. The descriptors are copied; the arguments are those of `worker.main`."""
        self._ask(("fork", number, device, driver), descriptors)

    def signal(self, number: int, sent: int) -> None:
        """Signal a worker, and with SIGKILL all that it has started."""
        self._ask(("signal", number, int(sent)))

    def load(self, names: Iterable[str]) -> None:
        """Have workers that are forked from now on begin with these modules, types, and libraries by their paths."""
        self._ask(("load", list(names)))

    def _ask(self, request: Any, descriptors: Sequence[int] = ()) -> None:
        with suppress(OSError):  # it is gone, which `answers` is about to say
            socket.send_fds(self.control, [pickle.dumps(request)], list(descriptors))

    def answers(self) -> Iterator[tuple[Any, ...]]:
        """What it has answered and told meanwhile. Raises EOFError when it is gone."""
        while True:
            try:
                data = self.control.recv(_MOST_BYTES)
            except BlockingIOError:
                return
            except ConnectionResetError:
                data = b""
            if not data:
                raise EOFError
            yield pickle.loads(data)

    def end(self) -> DriverCrashError:
        """The error that says how it ended by itself."""
        self._process.wait()
        code = self._process.returncode
        said = os.pread(self._said, _MOST_BYTES, max(0, os.fstat(self._said).st_size - _MOST_BYTES))
        why = said.decode("utf-8", "replace").strip().rpartition("\n")[2]
        how = f"was ended by {signal_name(-code)}" if code < 0 else f"ended with exit code {code}"
        return DriverCrashError(f"the process that workers are forked from {how}" + (f": {why}" if why else ""))

    def close(self) -> None:
        """End it and all workers; only it is waited for. Doing so again does nothing."""
        if self.control.fileno() < 0:
            return
        self.control.close()
        try:
            self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._said)
