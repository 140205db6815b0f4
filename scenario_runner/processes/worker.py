"""The inside of a worker, which runs items in turn on a single device. Any item may crash the worker.

The pool sends pickled lists of numbers and items. A second socket has a permit for each item, which the worker reads
before it runs the item. To take an item back, the pool reads the permit first and sends `SKIP`. The worker sends lines
of JSON. The pool checks these lines, since a driver may damage the worker's memory::

    ["ready", Device]                                       after the start
    ["devices", requests]                                   after the start for several devices; the worker ends
    ["failed", is for good, code, message, help]            after a failed start; the worker ends
    ["limit", seconds, origin]                              for an item with another time limit
    ["used", names]                                         for the next workers to preload
    ["done", outcome, State, seconds]                       after an item
"""

import json
import os
import pickle
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from importlib import import_module
from socket import socket
from typing import Final

from scenario_runner.errors import NoDeviceError, ScenarioRunnerError
from scenario_runner.processes import progress, temporary
from scenario_runner.processes.crash import core_pattern
from scenario_runner.processes.isolated_process import open_file
from scenario_runner.processes.jobs import ENDING, DeviceRequest, State, Task, WorkerOptions

if sys.platform == "linux":
    import resource

OUTPUT, PROGRESS, FAULTS, NAMES = "output", "progress", "faults", "names"
"""The files in the folder of a worker: standard output and error, `progress`, Python stacks, and temporary files."""

GO, SKIP = b"\1", b"\0"
"""The permits for an item to run, and for an item that another worker gets."""

_MEASURE_EVERY: Final = 64  # items between two measurements of the process
_MOST_TEXT_BYTES: Final = 16 << 10
_STANDARD_ERROR: Final = 2
_WITH_PATHS: Final = ("SCENARIO_RUNNER_", "VK_")  # environment variables


def resolve(task: str) -> type[Task]:
    """Import a task's class."""
    module, _, name = task.partition(":")
    found: type[Task] = getattr(import_module(module), name)
    return found


def main(connection: socket, permits: socket, folder: str, options: WorkerOptions, device: DeviceRequest) -> int:
    """Serve the pool until the socket is closed, or list several devices. Return the exit code."""
    if sys.platform == "linux":
        most_bytes = resource.getrlimit(resource.RLIMIT_CORE)[1]
        resource.setrlimit(resource.RLIMIT_CORE, (most_bytes if options.core_dumps else 0, most_bytes))
    if not options.shows_output:
        output = open_file(os.path.join(folder, OUTPUT))
        for standard in (1, 2):
            os.dup2(output, standard)
    progress.share(open_file(os.path.join(folder, PROGRESS)))
    temporary.list_in(open_file(os.path.join(folder, NAMES)))
    if options.core_dumps and options.jobs != 1 and not core_pattern().is_of_process:
        _enter(folder)

    def send(*values: object) -> None:
        connection.sendall(json.dumps(values).encode() + b"\n")

    with suppress(ConnectionError):
        task = resolve(options.task)
        try:
            if isinstance(device, tuple):
                send("devices", task.devices(device))
                return 0
            _Server(options, task(options, device, partial(send, "limit")), send).serve(connection, permits)
        except ScenarioRunnerError as error:
            first = error.problems[0]
            send("failed", isinstance(error, NoDeviceError), first.code, first.message, first.help)
            return error.exit_code
    return 0


def _enter(folder: str) -> None:
    """Change the current folder. Paths in environment variables stay valid."""
    for name in filter(lambda name: name.startswith(_WITH_PATHS), os.environ):
        paths = os.environ[name].split(os.pathsep)
        os.environ[name] = os.pathsep.join(os.path.abspath(path) if os.path.exists(path) else path for path in paths)
    os.chdir(folder)


def end_of(path: str | int) -> str:
    """Read the last 16 KiB of a file as text."""
    with suppress(FileNotFoundError), open(path, "rb", closefd=isinstance(path, str)) as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - _MOST_TEXT_BYTES))
        return file.read(_MOST_TEXT_BYTES).decode("utf-8", "replace")
    return ""


def own_output() -> str:
    """Read the end of this worker's standard output and error."""
    return end_of(_STANDARD_ERROR)


class _Server:
    def __init__(self, options: WorkerOptions, task: Task, send: Callable[..., None]) -> None:
        self._options, self._task, self._send = options, task, send
        self._count = 0
        self._tell_used()
        send("ready", task.about)
        self._bytes, self._files = 0, open_files()

    def serve(self, connection: socket, permits: socket) -> None:
        with connection.makefile("rb") as messages, suppress(EOFError):
            while True:
                for number, item in pickle.load(messages):
                    if permits.recv(1) == GO and not self._run(number, item):
                        return

    def _run(self, number: int, item: object) -> bool:
        """Run an item. Return false if the process must end."""
        if not self._options.shows_output and os.fstat(_STANDARD_ERROR).st_size:
            os.ftruncate(_STANDARD_ERROR, 0)  # drops text of the item before
        temporary.forget_listed()
        progress.started(number)
        started = time.perf_counter()
        outcome, state = self._task.run(item)
        seconds = time.perf_counter() - started
        state = self._state(state)
        is_last = state in ENDING
        if not is_last and self._count & (self._count - 1) == 0:  # 1, 2, 4, 8…
            self._tell_used()
        self._send("done", outcome, state, seconds)
        return not is_last

    def _tell_used(self) -> None:
        if names := self._task.used():
            self._send("used", names)

    def _state(self, state: State) -> State:
        """Measure this process now and then, and return the state after an item."""
        self._count += 1
        if self._count >= self._options.most_items:
            return "grown" if state != "spoiled" else state
        if state == "failed" or (state == "good" and self._count % _MEASURE_EVERY == 1):
            used_bytes = _used_bytes()
            self._bytes = self._bytes or used_bytes
            is_large = used_bytes - self._bytes > self._options.most_bytes
            if is_large or open_files() - self._files > self._options.most_files:
                return "grown"
        return state


def _used_bytes() -> int:
    with suppress(FileNotFoundError), open("/proc/self/statm", "rb") as file:
        return int(file.read().split()[1]) * resource.getpagesize()
    return 0  # unknown on this system


def open_files() -> int:
    """Count the open files of this process. Raises OSError if no file handle is left."""
    with suppress(FileNotFoundError):
        return len(os.listdir("/proc/self/fd"))
    return 0
