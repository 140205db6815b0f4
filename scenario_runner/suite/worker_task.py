"""The task of a worker for a suite: items run on a device that stays open, and give outcomes."""

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
from scenario_runner.errors.installation import program_version
from scenario_runner.files.sandbox import distrusting
from scenario_runner.processes import progress
from scenario_runner.processes.jobs import Device, State, WorkerOptions
from scenario_runner.processes.worker_process import open_files, own_output
from scenario_runner.run.device_session import choose_devices
from scenario_runner.runner import Runner
from scenario_runner.suite.outcomes import BAD, Item, Outcome
from scenario_runner.suite.suite_workers import SuiteWork
from scenario_runner.vulkan.layers import layer_warning
from scenario_runner.vulkan.vulkan_api import known_types, prepare


class Runners:
    """The Runners of a worker, with and without robust access. Each opens the device once, and keeps it open."""

    def __init__(
        self,
        arguments: Mapping[str, Any],
        timeout_s: float,
        timeout_origin: str = "",
        announce: Callable[[float, str], None] = lambda seconds, origin: None,
    ) -> None:
        """Keep arguments for `Runner`. ``announce`` is called for a time limit other than ``timeout_s``."""
        self._arguments = arguments
        self._default = timeout_s, timeout_origin
        self._announce = announce
        self.limit = self._default
        """The time limit of the current item in seconds, and who set it."""
        self._runners: dict[bool, Runner] = {}

    def runner(self, timeout_s: float | None = None, origin: str = "", *, robustness: bool | None = None) -> Runner:
        """Return the Runner for the current item.

        ``origin`` names who set ``timeout_s``. None stands for the default time limit, and for the ``robustness`` among
        the arguments.
        """
        self.limit = self._default if timeout_s is None else (timeout_s, origin)
        if self.limit != self._default:
            self._announce(*self.limit)
        robust = bool(self._arguments.get("robustness") if robustness is None else robustness)
        runner = self._runners.get(robust)
        if runner is None:
            runner = self._runners[robust] = Runner(**{**self._arguments, "robustness": robust})
        runner.timeout_s = self.limit[0]
        runner.also_enabled = ()
        return runner

    def sandbox(self, paths: Sequence[str]) -> AbstractContextManager[None]:
        """Return the sandbox of scenarios, or nothing if the arguments do not ask for a sandbox."""
        return distrusting(paths) if self._arguments.get("sandbox") else nullcontext()

    def close(self) -> None:
        """Close all devices. A worker ends without this call."""
        for runner in self._runners.values():
            runner.close()


# After one of these errors, the device, the driver or the process may be damaged.
_SPOILED: Final = frozenset(
    error.exit_code for error in (DeviceError, OutOfMemoryError, FenceTimeoutError, DeviceLostError, LimitError)
)
_SHARED: Final = ("libLLVM", "libvulkan", "libVkLayer_MESA")


class SuiteTask:
    """The `Task` of suites. Life cycle: created, which starts the driver or raises ScenarioRunnerError; runs items."""

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
        # the suite may end after a missing tool: this process gets no items in advance
        state: State = "failed" if outcome.status in (*BAD, "MissingTool") else "good"
        if outcome.exit_code in _SPOILED or outcome.status in ("Crash", "Timeout"):
            state = "spoiled"
        return outcome.as_json(), state

    def _outcome(self, item: Item) -> Outcome:
        started = time.perf_counter()
        try:
            with self._runners.sandbox([item.path]):
                outcome = self._function(item, self._runners, self._options)
            if outcome.status == "Fail":
                open_files()  # raises OSError if the item failed because no file handle was left
            return outcome
        except Exception as error:
            seconds, name = time.perf_counter() - started, type(error).__name__
            if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
                what = progress.work()[0] or "reading it"
                reason = f"the process has run out of file handles while {what}"
                # no stack: Python would open source files
                return Outcome("Crash", seconds, reason, LimitError.exit_code, crash=(LimitError.exit_code, name))
            reason = f"an error of this program: {name}: {error}"
            code, stack = INTERNAL_ERROR_EXIT_CODE, traceback.format_exc()
            return Outcome("Crash", seconds, reason, code, stack=stack, crash=(code, name))

    def used(self) -> list[str]:
        """Name the modules, Vulkan types and libraries of this process, if there are more than before."""
        count = len(sys.modules) + len(known_types)
        if count == self._known:  # reading names would copy memory pages from the pool
            return []
        self._known = count
        modules = [name for name in sys.modules if name.startswith("scenario_runner.")]
        return [*modules, *known_types, *_shared_libraries()]

    @staticmethod
    def preload(task_options: SuiteWork, names: Sequence[str]) -> None:
        """Load modules and libraries that start no thread."""
        import_module(task_options.function.partition(":")[0])
        program_version()  # read once for all workers
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
        return choose_devices(names)


def _shared_libraries() -> set[str]:
    """Return the paths of driver libraries that the pool may preload.

    Mesa starts no thread before an instance is created. Nothing is known about other drivers.
    """
    with suppress(FileNotFoundError), open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as file:
        paths = {line.rstrip("\n").split(maxsplit=5)[-1] for line in file if ".so" in line}
        return {path for path in paths if os.path.basename(path).startswith(_SHARED) and path.isprintable()}
    return set()
