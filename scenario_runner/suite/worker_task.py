"""The work of a worker for a suite: it runs items on the device that it keeps open, and gives their outcomes."""

import ctypes
import errno
import os
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from importlib import import_module
from typing import Any, Final

from scenario_runner.errors import (
    INTERNAL_ERROR_EXIT_CODE,
    DeviceError,
    DeviceLostError,
    FenceTimeoutError,
    LimitError,
    OutOfMemoryError,
)
from scenario_runner.errors.version import program_version
from scenario_runner.files.sandbox import distrusting
from scenario_runner.processes import progress
from scenario_runner.processes.jobs import Device, State, WorkerOptions
from scenario_runner.processes.worker import open_files, own_output
from scenario_runner.run.device_session import chosen_devices
from scenario_runner.runner import Runner
from scenario_runner.suite.outcomes import BAD, Item, Outcome
from scenario_runner.suite.suite_workers import SuiteWork
from scenario_runner.vulkan.layers import layer_warning
from scenario_runner.vulkan.structs import prepare
from scenario_runner.vulkan.vulkan_loader import known_types


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

    def sandbox(self, paths: Sequence[str]) -> AbstractContextManager[None]:
        """Return the sandbox of the scenarios, where the arguments ask for one."""
        return distrusting(paths) if self._arguments.get("sandbox") else nullcontext()

    def close(self) -> None:
        """Close the devices that are open, where the process goes on without them."""
        for runner in self._runners.values():
            runner.close()


# After one of these the device, its driver or the process cannot be relied upon.
_SPOILED: Final = frozenset(
    error.exit_code for error in (DeviceError, OutOfMemoryError, FenceTimeoutError, DeviceLostError, LimitError)
)
_SHARED: Final = ("libLLVM", "libvulkan", "libVkLayer_MESA")


class SuiteTask:
    """The `Task` of suites. Life cycle: made with the driver started, or a ScenarioRunnerError; then it runs items."""

    def __init__(self, options: WorkerOptions, device: str | None, announce: Callable[[float, str], None]) -> None:
        work: SuiteWork = options.task_options
        arguments = {**work.runner, "device": device}
        self._runners = Runners(arguments, options.timeout_s or 0.0, options.timeout_origin, announce)
        module, _, name = work.function.partition(":")
        self._function: Callable[[Item, Runners, Any], Outcome] = getattr(import_module(module), name)
        self._options = work.options
        self._known = len(sys.modules) + len(known_types)
        physical = self._runners.runner().physical_device
        self.about = Device(physical.uuid, physical.name, physical.driver, physical.type, warning=layer_warning())

    def run(self, item: Item) -> tuple[dict[str, object], State]:
        """Run an item."""
        outcome = self._outcome(item)
        if outcome.status in BAD and not outcome.output:
            outcome = outcome._replace(output=own_output())
        state: State = "failed" if outcome.status in BAD else "good"
        if outcome.exit_code in _SPOILED or outcome.status in ("Crash", "Timeout"):
            state = "spoiled"
        return outcome.as_json(), state

    def _outcome(self, item: Item) -> Outcome:
        started = time.perf_counter()
        try:
            with self._runners.sandbox([item.path]):
                outcome = self._function(item, self._runners, self._options)
            if outcome.status == "Fail":
                open_files()  # raises OSError where no file handle is left, which is why it failed
            return outcome
        except Exception as error:
            code, reason = INTERNAL_ERROR_EXIT_CODE, f"an error of this program: {type(error).__name__}: {error}"
            if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
                what = progress.work()[0] or "reading it"
                code, reason = LimitError.exit_code, f"the process that ran it has run out of file handles while {what}"
            crash, stack = (code, type(error).__name__), traceback.format_exc()
            return Outcome("Crash", time.perf_counter() - started, reason, code, stack=stack, crash=crash)

    def used(self) -> list[str]:
        """Name the modules, types of Vulkan and libraries of this process, if there are more than before."""
        count = len(sys.modules) + len(known_types)
        if count == self._known:  # else no name is read, which would copy its page from the pool
            return []
        self._known = count
        modules = [name for name in sys.modules if name.startswith("scenario_runner.")]
        return [*modules, *known_types, *_shared_libraries()]

    @staticmethod
    def preload(task_options: SuiteWork, names: Sequence[str]) -> None:
        """Load what workers need; none of it starts a thread."""
        import_module(task_options.function.partition(":")[0])
        program_version()  # cached for all workers
        for name in names:
            with suppress(ImportError, OSError):
                if name.startswith("/"):
                    ctypes.CDLL(name)
                elif name.startswith("scenario_runner."):
                    import_module(name)
                else:
                    prepare(name)

    @staticmethod
    def devices(names: Sequence[str]) -> list[str]:
        """Choose devices by their names. Raises NoDeviceError."""
        return chosen_devices(names)


def _shared_libraries() -> set[str]:
    """List the libraries of the driver that the pool may preload, by their paths: those of Mesa, which start no thread
    before an instance is created. Of others that is unknown."""
    with suppress(FileNotFoundError), open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as file:
        paths = {line.rstrip("\n").split(maxsplit=5)[-1] for line in file if ".so" in line}
        return {path for path in paths if os.path.basename(path).startswith(_SHARED) and path.isprintable()}
    return set()
