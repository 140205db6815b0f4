"""A worker: a process that runs items one after the other on one device, and may die of any of them.

It is forked by the pool, which sends items, at most one ahead, and gets outcomes. These are lines of JSON over a stream
socket, since a driver may have damaged the memory of a worker: what it sends is checked, and read in a way that cannot
harm::

    [number, id, path, expectations]    ["ready", physical device]
                                        ["limit", seconds, who set it]      where they are not those of the options
                                        ["used", names, manifest]           what the next workers may begin with
                                        ["done", outcome, why the process ends now]
                                        ["devices", what to ask for to get each]            instead of "ready"
                                        ["failed", whether for good, code, message, help]   likewise
"""

from __future__ import annotations

import errno
import json
import os
import resource
import socket
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any, Final

from scenario_runner import progress
from scenario_runner.doctor.manifests import DRIVER_OVERRIDES, drivers
from scenario_runner.errors import (
    INTERNAL_ERROR_EXIT_CODE,
    DeviceError,
    DeviceLostError,
    FenceTimeoutError,
    LimitError,
    NoDeviceError,
    OutOfMemoryError,
    ScenarioRunnerError,
)
from scenario_runner.runner import Runner
from scenario_runner.suite.records import BAD, Item, Outcome
from scenario_runner.suite.running.options import WorkerOptions
from scenario_runner.vulkan.device import Instance
from scenario_runner.vulkan.loader import known_types
from scenario_runner.vulkan.physical_device import choose


class Runners:
    """Gives the Runner of a worker to its task.

    Life cycle: made with the worker; the device is opened when it is first needed and stays open; closed by the end of
    the process.
    """

    def __init__(
        self,
        arguments: Mapping[str, Any],
        timeout_s: float,
        timeout_origin: str = "",
        announce: Callable[[float, str], None] = lambda seconds, origin: None,
    ) -> None:
        """``arguments`` are those of `Runner`. ``announce`` is told of a limit that is not ``timeout_s``."""
        self._arguments = arguments
        self._default = timeout_s, timeout_origin
        self._announce = announce
        self.limit = self._default
        """The time limit of the item that runs now in seconds, and who set it."""
        self._runners: dict[bool, Runner] = {}

    def runner(self, timeout_s: float | None = None, origin: str = "", *, robustness: bool | None = None) -> Runner:
        """The Runner for the item that runs now, which may take ``timeout_s`` as ``origin`` says (None: the default),
        with robust access to buffers and images (None: as the arguments say)."""
        self.limit = self._default if timeout_s is None else (timeout_s, origin)
        if self.limit != self._default:
            self._announce(*self.limit)
        robust = bool(self._arguments.get("robustness") if robustness is None else robustness)
        runner = self._runners.get(robust)
        if runner is None:
            runner = self._runners[robust] = Runner(**{**self._arguments, "robustness": robust})
        runner.timeout_s = self.limit[0]
        return runner

    def close(self) -> None:
        """Close the devices that are open, where the process goes on without them."""
        for runner in self._runners.values():
            runner.close()


DeviceRequest = str | tuple[str, ...] | None
"""A device by its index or UUID, several as the user names them, or None for the default one."""

# After one of these the device, its driver or the process cannot be relied upon.
_SPOILED: Final = frozenset(
    error.exit_code for error in (DeviceError, OutOfMemoryError, FenceTimeoutError, DeviceLostError, LimitError)
)
_SHARED: Final = ("libLLVM", "libvulkan", "libVkLayer_MESA")
_MOST_TEXT_BYTES: Final = 16 << 10
_STANDARD_ERROR: Final = 2
_MEASURE_EVERY: Final = 64  # items between two measurements of the process


def main(
    options: WorkerOptions, connection: socket.socket, output: int, notes: int, device: DeviceRequest, driver: str
) -> int:
    """Serve the pool until it closes the socket, or resolve a request for several devices.

    ``output`` and ``notes`` are memory files for standard output and standard error, and for `progress`. ``driver`` is
    the manifest of the only driver to open, or empty. Returns the exit code of the process."""
    most_bytes = resource.getrlimit(resource.RLIMIT_CORE)[1]
    resource.setrlimit(resource.RLIMIT_CORE, (most_bytes if options.core_dumps else 0, most_bytes))
    for standard in (1, 2):
        os.dup2(output, standard)
    progress.share(notes)
    if driver:
        os.environ.update(dict.fromkeys(DRIVER_OVERRIDES, driver))

    def send(*values: Any) -> None:
        connection.sendall(json.dumps(values).encode() + b"\n")

    with suppress(ConnectionError):
        try:
            if isinstance(device, tuple):
                send("devices", chosen(device))
                return 0
            worker = _Worker(options, device, driver, send)
        except ScenarioRunnerError as error:
            first = error.problems[0]
            send("failed", isinstance(error, NoDeviceError), first.code, first.message, first.help)
            return error.exit_code
        with connection.makefile("rb") as lines:
            worker.serve(lines)
    return 0


def end_of(descriptor: int) -> str:
    """Read the last 16 KiB of a memory file as text."""
    size = os.fstat(descriptor).st_size
    return os.pread(descriptor, _MOST_TEXT_BYTES, max(0, size - _MOST_TEXT_BYTES)).decode("utf-8", "replace")


def chosen(names: Sequence[str]) -> list[str]:
    """Choose devices by their names, each once; "all" are those of the fastest kind. Raises NoDeviceError.

    A device is returned as its UUID, or as its index if several have that UUID."""
    devices = Instance().physical_devices
    chosen_devices = []
    for name in names:
        if name == "all":
            kind = choose(devices, None).type
            chosen_devices += [
                device for device in devices if device.type == kind and device.unusable_because() is None
            ]
        else:
            chosen_devices.append(choose(devices, name))
    uuids = [device.uuid for device in devices]
    return [
        device.uuid if uuids.count(device.uuid) == 1 else str(device.index)
        for device in sorted(set(chosen_devices), key=lambda device: device.index)
    ]


class _Worker:
    """Life cycle: made with the driver started, or a ScenarioRunnerError; then it serves."""

    def __init__(self, options: WorkerOptions, device: str | None, driver: str, send: Callable[..., None]) -> None:
        self._options = options
        self._driver = driver
        self._send = send
        self._runners = Runners(
            {**options.runner, "device": device},
            options.timeout_s,
            options.timeout_origin,
            lambda seconds, origin: send("limit", seconds, origin),
        )
        module, _, name = options.task.partition(":")
        self._task: Callable[[Item, Runners, Any], Outcome] = getattr(import_module(module), name)
        self._count = 0
        self._known = len(sys.modules) + len(known_types)
        physical = self._runners.runner().physical_device
        self._tell_used()
        send("ready", {name: getattr(physical, name) for name in ("uuid", "name", "driver", "type")})
        self._bytes, self._files = 0, _open_files()

    def serve(self, lines: Iterable[bytes]) -> None:
        for line in lines:
            number, *item = json.loads(line)
            if os.fstat(_STANDARD_ERROR).st_size:
                os.ftruncate(_STANDARD_ERROR, 0)  # that of the item before
            progress.started(number)
            outcome = self._outcome(Item(*item))
            if outcome.status in BAD and not outcome.output:
                outcome = outcome._replace(output=end_of(_STANDARD_ERROR))
            end = self._end(outcome)
            if not end and self._count & (self._count - 1) == 0:  # 1, 2, 4, 8…
                self._tell_used()
            self._send("done", outcome.as_json(), end)
            if end:
                return

    def _outcome(self, item: Item) -> Outcome:
        started = time.perf_counter()
        try:
            outcome = self._task(item, self._runners, self._options.task_options)
            if outcome.status == "Fail":
                _open_files()  # raises OSError where no file handle is left, which is why it failed
            return outcome
        except Exception as error:
            code = INTERNAL_ERROR_EXIT_CODE
            if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
                code = LimitError.exit_code
                reason = (
                    f"the process that ran it has run out of file handles while {progress.work()[0] or 'reading it'}"
                )
            else:
                reason = f"an error of this program: {type(error).__name__}: {error}"
            return Outcome("Crash", time.perf_counter() - started, reason, code, stack=traceback.format_exc())

    def _tell_used(self) -> None:
        """Send what the next workers can preload, and the manifest of the only driver that they need to open."""
        count = len(sys.modules) + len(known_types)
        new: list[str] = []
        if count > self._known:  # else no name is read, which would copy its page from the pool
            new = [*(name for name in sys.modules if name.startswith("scenario_runner.")), *known_types]
            self._known = count
        driver = self._driver
        if not driver:  # else the pool has loaded the libraries
            driver = _manifest_of(self._runners.runner().physical_device.library)
            new += _shared_libraries()
        if new or driver != self._driver:
            self._send("used", new, driver)
            self._driver = driver

    def _end(self, outcome: Outcome) -> str:
        """Return why this process must not run another item: it may be "spoiled", or has "grown"; empty if it may."""
        self._count += 1
        if outcome.exit_code in _SPOILED or outcome.status in ("Crash", "Timeout"):
            return "spoiled"
        if self._count >= self._options.most_items:
            return "grown"
        if self._count % _MEASURE_EVERY == 1 or outcome.status == "Fail":
            with open("/proc/self/statm", "rb") as file:
                used_bytes = int(file.read().split()[1]) * resource.getpagesize()
            self._bytes = self._bytes or used_bytes
            if used_bytes - self._bytes > self._options.most_bytes:
                return "grown"
            if _open_files() - self._files > self._options.most_files:
                return "grown"
        return ""


def _manifest_of(library: str | None) -> str:
    """Return the manifest of the driver with this library. It is empty if a layer is in front of the driver, if the
    driver's commands are in another library than the one that the loader opens, or if several manifests name it."""
    paths = [
        manifest.path
        for manifest in drivers(os.environ)
        if library and manifest.library and not manifest.problem and _is_same(library, manifest.library)
    ]
    return paths[0] if len(paths) == 1 else ""


def _is_same(library: str, named: str) -> bool:
    if os.path.isabs(named):
        return os.path.realpath(library) == os.path.realpath(named)
    return os.path.basename(library) == named


def _open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def _shared_libraries() -> set[str]:
    """List the libraries of the driver that the pool may preload, by their paths: those of Mesa, which start no thread
    before an instance is created. Of others that is unknown."""
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as file:
        paths = {line.rstrip("\n").split(maxsplit=5)[-1] for line in file if ".so" in line}
    return {path for path in paths if os.path.basename(path).startswith(_SHARED) and path.isprintable()}
