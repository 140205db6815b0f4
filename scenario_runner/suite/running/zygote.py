"""The process that workers are forked from. It has imported everything and opened nothing.

It is a process of its own, and not the supervisor: that one may be a test runner with threads and an open driver, which
a fork does not survive. It has one thread, so that a fork of it is a whole process, and it waits for nothing but the
supervisor's requests and the ends of workers.

Requests and answers are pickled tuples, a message each, over a socket pair (SOCK_SEQPACKET). The first request has what
all workers need; then::

    ("fork", number, device, driver)            ("refused", number, why) where there is none
    ("signal", number, signal)
    ("load", names: see `_load`)
                                                ("ended", number, status as of os.waitpid, process id)

Whatever ends the supervisor ends the workers and what they have started, compilers for instance: this process reads the
end of the socket then, and the system kills a worker's process group when this process is gone.
"""

from __future__ import annotations

import ctypes
import gc
import os
import pickle
import selectors
import signal
import socket
from contextlib import suppress
from importlib import import_module
from typing import Final, NoReturn

from scenario_runner.content_cache import program_version
from scenario_runner.suite.running import worker
from scenario_runner.suite.running.options import WorkerOptions
from scenario_runner.vulkan.api.structs import prepare

MOST_BYTES: Final = 1 << 17
"""The size of a request or an answer."""

_FREED_SELDOM: Final = 50_000  # allocations between two searches for garbage: what was imported stays in use

# On the way of every run. What only some scenarios need is loaded when the first of them has run.
_IMPORTED: Final = (
    "numpy",
    "scenario_runner.runner",
    "scenario_runner.plan.plan_cache",
    "scenario_runner.vulkan.devices.device",
    "scenario_runner.vulkan.devices.instance",
    "scenario_runner.vulkan.devices.requirements",
    "scenario_runner.vulkan.execution.execute",
)


class Zygote:
    """Life cycle: made with its end of the socket pair; `serve` until the other end is closed."""

    def __init__(self, control: socket.socket, options: WorkerOptions) -> None:
        self._control = control
        self._options = options
        self._workers: dict[int, tuple[int, int]] = {}  # number → process id, the pipe that it lives with
        self._woken, self._wake = socket.socketpair()
        self._woken.setblocking(False)
        self._wake.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._control, selectors.EVENT_READ)
        self._selector.register(self._woken, selectors.EVENT_READ)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        signal.set_wakeup_fd(self._wake.fileno(), warn_on_full_buffer=False)

    def serve(self) -> None:
        while True:
            for key, _ in self._selector.select():
                if key.fileobj is self._woken:
                    self._woken.recv(MOST_BYTES)
                    self._collect()
                elif not self._request():
                    for process, _ in self._workers.values():
                        _signal_group(process, signal.SIGKILL)
                    return

    def _request(self) -> bool:
        """Carry out one request; false where there will be no more."""
        data, descriptors, _, _ = socket.recv_fds(self._control, MOST_BYTES, worker.DESCRIPTORS)
        if not data:
            return False
        match pickle.loads(data):
            case ("fork", int(number), device, str(driver)):
                try:
                    self._fork(number, device, driver, descriptors)
                finally:
                    for each in descriptors:
                        os.close(each)
            case ("signal", int(number), int(sent)) if number in self._workers:
                process, _ = self._workers[number]
                if sent == signal.SIGKILL:
                    _signal_group(process, sent)
                else:
                    os.kill(process, sent)
            case ("load", list(names)):
                for name in names:
                    _load(name)
                gc.freeze()
        return True

    def _fork(self, number: int, device: worker.Asked, driver: str, descriptors: list[int]) -> None:
        alive, held = os.pipe()
        try:
            process = os.fork()
        except OSError as error:
            os.close(alive)
            os.close(held)
            self._answer("refused", number, (error.strerror or str(error)).lower())
            return
        if not process:
            os.close(held)
            self._become(number, device, driver, descriptors, alive)
        os.close(alive)
        with suppress(OSError):
            os.setpgid(process, process)  # here as well: it may have to be killed before it has done so
        self._workers[number] = process, held

    def _become(self, number: int, device: worker.Asked, driver: str, descriptors: list[int], alive: int) -> NoReturn:
        """What the child of a fork does, to its end."""
        os.setpgid(0, 0)
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        self._selector.close()
        for each in (self._control, self._woken, self._wake):
            each.close()
        for _, held in self._workers.values():
            os.close(held)
        os._exit(worker.main(self._options, number, device, driver, descriptors, alive))

    def _collect(self) -> None:
        """Report the workers that have ended, and end what they have started."""
        numbers = {process: number for number, (process, _) in self._workers.items()}
        while True:
            try:
                ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            if ended is None:
                return
            _signal_group(ended.si_pid, signal.SIGKILL)  # while the number of the group cannot be another's
            _, status = os.waitpid(ended.si_pid, 0)
            if ended.si_pid in numbers:
                number = numbers[ended.si_pid]
                os.close(self._workers.pop(number)[1])
                self._answer("ended", number, status, ended.si_pid)

    def _answer(self, *answer: object) -> None:
        with suppress(OSError):  # the supervisor is gone, which `serve` is about to see
            self._control.send(pickle.dumps(answer))


def _signal_group(process: int, number: int) -> None:
    with suppress(OSError):
        os.killpg(process, number)


def _load(name: str) -> None:
    """Load what a worker has needed, so that the next ones need not: a module, a type of Vulkan, or by its path a
    library of the driver.

    It must be one that starts no thread."""
    if name.startswith("/"):
        with suppress(OSError):
            ctypes.CDLL(name)
    elif name.startswith("scenario_runner."):
        with suppress(ImportError):
            import_module(name)
    elif name.isascii() and name.isidentifier():
        prepare(name)


def main(descriptor: int) -> None:
    """Serve the supervisor at the other end of a socket."""
    control = socket.socket(fileno=descriptor)
    control.set_inheritable(False)
    options = pickle.loads(control.recv(MOST_BYTES))
    for name in (*_IMPORTED, options.task.partition(":")[0]):
        import_module(name)
    program_version()  # kept, for the plans of all workers
    gc.set_threshold(_FREED_SELDOM)
    gc.collect()
    gc.freeze()  # so that no search for garbage writes to memory that all workers share
    Zygote(control, options).serve()
