"""An interpreter that may crash or hang, where `isolated_process` cannot fork: macOS and Windows."""

import faulthandler
import os
import pickle
import subprocess
import sys
import threading
from contextlib import ExitStack, suppress
from importlib import import_module
from socket import socket
from typing import Any, BinaryIO, Final

from scenario_runner.processes.signals import KILL

_MOST_STACK_BYTES: Final = 16 << 10
_APPENDED: Final = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)
_FAULTS: Final = "faults"
# Ctrl-C ends the process without a traceback until the function that it calls handles signals.
_CODE: Final = """\
import _signal, os, sys
_signal.signal(_signal.SIGINT, _signal.SIG_DFL)
sys.path[:] = {}
from scenario_runner.processes.spawned_process import begin
os._exit(begin({}))
"""


class SpawnedProcess:
    """An interpreter that may crash or hang, with the members of `IsolatedProcess`. It ends when this process does."""

    end = None

    def __init__(
        self,
        folder: str,
        function: str,
        *arguments: Any,
        connection: socket | None = None,
        leads_group: bool = False,
    ) -> None:
        """``function`` is called as in `spawn`. Its Python stack is kept in a file in ``folder``. Raises OSError."""
        self._leads_group = leads_group and hasattr(os, "killpg")
        self._faults = os.path.join(folder, _FAULTS)
        with open(self._faults, "wb"):
            pass
        group = {"process_group": 0} if self._leads_group else {}
        self._process, self._held = spawn(
            "scenario_runner.processes.spawned_process:begin_isolated",
            *(self._faults, self._leads_group, function, folder, *arguments),
            connection=connection,
            **group,
        )
        self.id = self._process.pid

    @property
    def code(self) -> int | None:
        """Its exit code; an exception of Windows is negative, as a signal is."""
        code = self._process.returncode
        return -code if code is not None and code >= 0xC0000000 else code

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait for the end of the process; false if it has not ended in time."""
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return False
        if self._leads_group:
            self.kill()
        return True

    def signal(self, number: int) -> None:
        """Send a signal, where the system has such."""
        with suppress(OSError, ValueError):
            self._process.send_signal(number)

    def kill(self) -> None:
        """Kill the process, or its whole group."""
        with suppress(OSError):
            if self._leads_group:
                os.killpg(self.id, KILL)
            else:
                self._process.kill()

    def ask_for_stack(self) -> None:
        """Have the process write its Python stack, which takes a moment."""
        with suppress(OSError):
            os.write(self._held, b"\n")

    @property
    def stack(self) -> str:
        """The Python stack that the process wrote when it crashed or was told to."""
        with open(self._faults, encoding="utf-8", errors="replace") as file:
            return file.read(_MOST_STACK_BYTES)

    def close(self) -> None:
        """Release the pipe; the process has ended, or is abandoned."""
        os.close(self._held)


def spawn(
    function: str, *arguments: Any, connection: socket | None = None, **options: Any
) -> tuple[subprocess.Popen[bytes], int]:
    """Start an interpreter that calls ``function`` ("module:name") with the reading end of a pipe, the connection and
    the arguments, which are pickled; its result is the exit code.

    ``options`` are those of Popen. Returns the process and the writing end of the pipe. Raises OSError."""
    read, write = os.pipe()
    number = read
    if sys.platform == "win32":
        import msvcrt

        number = msvcrt.get_osfhandle(read)
        os.set_handle_inheritable(number, True)
        options["startupinfo"] = subprocess.STARTUPINFO(lpAttributeList={"handle_list": [number]})
    else:
        options["pass_fds"] = [read] if connection is None else [read, connection.fileno()]
    code = _CODE.format([os.path.abspath(entry) for entry in sys.path], number)
    with ExitStack() as stack:
        stack.callback(os.close, write)
        with open(read, "rb"):
            process = subprocess.Popen([sys.executable, "-P", "-c", code], **options)
        shared: Any = None if connection is None else connection.fileno()
        if sys.platform == "win32":
            shared = None if connection is None else connection.share(process.pid)
        with suppress(BrokenPipeError):  # it has ended, which its user notices
            os.write(write, pickle.dumps((function, shared, arguments)))
        stack.pop_all()
    return process, write


def begin(number: int) -> Any:
    """Do in a new interpreter what `spawn` was asked for."""
    if sys.platform == "win32":
        import msvcrt

        number = msvcrt.open_osfhandle(number, os.O_RDONLY)
    os.set_inheritable(number, False)
    pipe = open(number, "rb")  # noqa: SIM115 - closed by who is called
    function, shared, arguments = pickle.load(pipe)
    connection = None
    if shared is not None:
        if sys.platform == "win32":
            connection = socket.fromshare(shared)
        else:
            connection = socket(fileno=shared)
            connection.set_inheritable(False)
    return _call(function, pipe, connection, *arguments)


def begin_isolated(
    pipe: BinaryIO, connection: socket | None, faults: str, leads_group: bool, function: str, *arguments: Any
) -> Any:
    """Do in a new interpreter what `SpawnedProcess` was asked for."""
    descriptor = open_file(faults)
    faulthandler.enable(descriptor, all_threads=True)

    def watch() -> None:
        while pipe.read(1):
            faulthandler.dump_traceback(descriptor, all_threads=True)
        if leads_group:
            with suppress(OSError):
                os.killpg(os.getpid(), KILL)
        os.kill(os.getpid(), KILL)

    threading.Thread(target=watch, daemon=True).start()
    return _call(function, connection, *arguments)


def _call(function: str, *arguments: Any) -> Any:
    module, _, name = function.partition(":")
    return getattr(import_module(module), name)(*arguments)


def open_file(path: str) -> int:
    """Open a file that another process has open too: what is written is appended."""
    return os.open(path, _APPENDED, 0o600)
