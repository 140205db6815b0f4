"""Options for running items in workers, and the records that the pool and its user exchange."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from scenario_runner.errors import ScenarioRunnerError
from scenario_runner.processes.system_limits import processors
from scenario_runner.suite.outcomes import Item, Outcome
from scenario_runner.suite.retries import Rules
from scenario_runner.suite.verdicts import Expected

_NOTHING: Final[Mapping[str, Any]] = {}


class WorkerOptions(NamedTuple):
    """The devices, the number of workers, and the work of each of them.

    ``devices`` are indexes, UUIDs or (parts of) names, "all" of the fastest kind, or "gpus": all but those of the CPU,
    unless there is nothing else. Without any it is the one that a run would take.
    ``jobs`` is the number of workers for each device, 0 for as many as suit it. ``timeout_s`` bounds each run of an
    item that has no limit of its own, and ``timeout_origin`` says in messages who set it; a worker waits so long for
    the device, and is killed when it takes longer (`progress.ended_after_s`). ``start_timeout_s`` bounds the start of a
    worker, its driver included. ``rules`` decide whether an item runs again.

    ``runner`` has arguments of `Runner` by name, without device and timeout. ``task`` is the function that a worker
    calls, as "module:name", with the item, the worker's `Runners` and ``task_options``, which must be picklable; it
    returns an `Outcome`.

    A worker is replaced after ``most_items`` items, or when it has grown by ``most_bytes`` of memory or ``most_files``
    open files since its first item. A worker that has not ended ``kill_wait_s`` after it was killed cannot be ended:
    its device is given up. With ``core_dumps`` the kernel writes core files of workers that crash.
    """

    devices: tuple[str, ...] = ()
    jobs: int = 0
    timeout_s: float = 60.0
    timeout_origin: str = "the default of --timeout"
    start_timeout_s: float = 60.0
    rules: Rules = Rules(retries=0)
    runner: Mapping[str, Any] = _NOTHING
    task: str = "scenario_runner.suite.evaluation:run_item"
    task_options: Any = None
    most_items: int = 50_000
    most_bytes: int = 1 << 30
    most_files: int = 128
    kill_wait_s: float = 30.0
    core_dumps: bool = False


class Job(NamedTuple):
    """An item to run, with its attempts so far. With ``needs_new_process`` it runs in a process that has run nothing
    before."""

    number: int
    item: Item
    expected: Expected
    attempts: tuple[Outcome, ...] = ()
    needs_new_process: bool = False


class Device(NamedTuple):
    """A device that items run on; the fields about it are empty until a worker has opened it. ``given_up`` says why it
    gets no further items. ``choice`` is the index, UUID or name that it was chosen by."""

    uuid: str = ""
    name: str = ""
    driver: str = ""
    type: str = ""
    given_up: str = ""
    choice: str = ""


# The devices that workers run on.

DeviceRequest = str | tuple[str, ...] | None
"""A device by its index or UUID, several as the user names them, or None for the default one."""

# While one worker of a GPU waits for it, another prepares its work. More bring nothing, and take memory of the device.
_JOBS_OF_GPU: Final = 2
_MOST_FAILURES: Final = 3  # of workers of a device that do not come to run an item, in a row


class UsedDevice:
    """Life cycle: known by the ``request`` of the user; opened by its first worker; given up when no worker can be
    started or ended."""

    def __init__(self, request: DeviceRequest, jobs: int) -> None:
        """A request for several devices is only a query: its worker lists them and runs no items."""
        self.request = request
        self.about = Device(choice=request if isinstance(request, str) else "")
        self.error: ScenarioRunnerError | None = None
        """The reason for which it is given up."""
        self.jobs = jobs
        self.spares = 0
        self.failures = 0

    @property
    def given_up(self) -> str:
        return "" if self.error is None else self.error.problems[0].message

    def opened(self, about: Device) -> None:
        """Note the device that a worker has opened."""
        self.about = about._replace(choice=self.about.choice)
        self.jobs = self.jobs or (processors() if about.type == "cpu" else min(_JOBS_OF_GPU, processors()))

    def most_workers(self, ready: int) -> int:
        """Return the number of workers to have now, of which ``ready`` have started.

        Those of a GPU start one after the other: its driver's start holds a lock of the whole system for long, and the
        first ones work meanwhile. After a crash there is one more, which is ready when another one ends."""
        if self.error is not None:
            return 0
        most = (self.jobs or 1) + self.spares
        return most if self.about.type == "cpu" else min(most, ready + 1)

    def failed(self, error: ScenarioRunnerError, *, for_good: bool = False) -> None:
        """Count a worker that could not be started."""
        self.failures += 1
        if self.error is None and (for_good or self.failures >= _MOST_FAILURES):
            first = error.problems[0]
            again = f", {self.failures} times in a row" if self.failures > 1 else ""
            self.error = type(error)([first._replace(message=first.message + again)])

    def __str__(self) -> str:
        return f"the device {self.about.name!r}" if self.about.name else "the device"
