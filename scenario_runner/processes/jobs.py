"""Workers' options, jobs, events and devices, and the two parts that a pool's user provides: task and policy.

Only the policy and the task look into items, outcomes and hints.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final, Literal, NamedTuple, Protocol

from scenario_runner.errors import ScenarioRunnerError
from scenario_runner.errors.text import Json
from scenario_runner.processes.isolated_process import Crash
from scenario_runner.processes.system_limits import processors

DeviceRequest = str | tuple[str, ...] | None
"""A device by index or UUID, several devices by name, or None for the default device."""

State = Literal["good", "failed", "spoiled", "grown"]
"""A process's state after an item. A spoiled process may be damaged; a grown process has too much memory or files."""

ENDING: Final = frozenset({"spoiled", "grown"})
"""The states that end a process."""


TIMEOUT_S: Final = 60.0


class Task(Protocol):
    """A worker's work. Each worker makes a single task."""

    def __init__(self, options: "WorkerOptions", device: str | None, announce: Callable[[float, str], None]) -> None:
        """Open the device. Raises ScenarioRunnerError.

        For an item with another time limit, the task calls ``announce`` with the seconds and who set them.
        """

    @property
    def about(self) -> "Device":
        """The device."""

    def run(self, item: object) -> tuple[dict[str, object], State]:
        """Run an item, and return the outcome as JSON."""

    def used(self) -> list[str]:
        """Return new names, such as modules, that the next workers can preload."""

    @staticmethod
    def preload(task_options: object, names: Sequence[str]) -> None:
        """Load modules, and names from `used`, into the pool. Must not start a thread."""

    @staticmethod
    def devices(names: Sequence[str]) -> list[str]:
        """Resolve device names into a request for each device. Raises NoDeviceError."""


class Policy(Protocol):
    """The user's decisions about items and attempts. A policy must be picklable."""

    def outcome(self, fields: dict[str, Json], before: Sequence[Any], before_count: int) -> Any:
        """Make an outcome from a task's JSON.

        The process had run ``before_count`` items before; ``before`` has the last of them. Raises ValueError,
        TypeError or LookupError for other JSON, since a worker may have damaged memory.
        """

    def crashed(self, item: Any, crash: Crash) -> object:
        """Make an item's outcome from a crash."""

    def again(self, hint: Any, attempts: Sequence[Any]) -> bool:
        """Return whether an item with these outcomes (never empty) runs again."""


class WorkerOptions(NamedTuple):
    """A pool's options: devices, the number of workers, and their work.

    ``task`` names the `Task` class as "module:name". ``task_options`` are picklable options for the task.
    ``devices`` are indexes, UUIDs or words that the task resolves; without any, the default device is used. ``jobs`` is
    the number of workers for each device; 0 chooses a number for the device.

    ``timeout_s`` is the default time limit of an attempt, and ``timeout_origin`` names who set it. The pool kills a
    worker after this time (`progress.ended_after_s`), or with ``if_quiet`` after this time without progress.
    ``start_timeout_s`` is the time limit for a worker's start.

    The pool replaces a worker after ``most_items`` items, or after a growth by ``most_bytes`` of memory or
    ``most_files`` open files. If a killed worker does not end within ``kill_wait_s``, the device is given up. With
    ``core_dumps``, the kernel writes core files of crashed workers. With ``shows_output``, workers write to the user's
    standard output and error.
    """

    task: str
    policy: Policy
    task_options: Any = None
    devices: tuple[str, ...] = ()
    jobs: int = 0
    timeout_s: float | None = TIMEOUT_S
    timeout_origin: str = "the default of --timeout"
    if_quiet: bool = False
    start_timeout_s: float = 60.0
    most_items: int = 50_000
    most_bytes: int = 1 << 30
    most_files: int = 128
    kill_wait_s: float = 30.0
    core_dumps: bool = False
    shows_output: bool = False


class Job(NamedTuple):
    """An item to run, with the outcomes of earlier attempts. ``hint`` is for the policy.

    With ``needs_new_process`` the item needs a process that has run nothing before.
    """

    number: int
    item: object
    hint: object
    attempts: tuple[object, ...] = ()
    needs_new_process: bool = False


class WaitingJobs:
    """The jobs that no worker has. ``fresh`` jobs have no attempt yet."""

    def __init__(self) -> None:
        self.fresh: deque[Job] = deque()
        self._repeated: deque[Job] = deque()

    def __len__(self) -> int:
        return len(self.fresh) + len(self._repeated)

    def take(self, *, by_new_process: bool) -> Job | None:
        """Remove the next job for a process; repeated jobs come first."""
        for job in self._repeated:
            if by_new_process or not job.needs_new_process:
                self._repeated.remove(job)
                return job
        return self.fresh.popleft() if self.fresh else None

    def put_back(self, jobs: Sequence[Job]) -> None:
        """Add jobs before the other jobs."""
        for job in reversed(jobs):
            (self._repeated if job.attempts else self.fresh).appendleft(job)

    def take_all(self) -> list[Job]:
        """Remove all jobs."""
        jobs = [*self._repeated, *self.fresh]
        self._repeated.clear()
        self.fresh.clear()
        return jobs

    @property
    def need_new_processes(self) -> bool:
        """Return whether every repeated job needs a process that has run nothing before."""
        return all(job.needs_new_process for job in self._repeated)


class Began(NamedTuple):
    """An event of the pool: a worker, numbered by ``place``, runs an item."""

    number: int
    place: int


class Done(NamedTuple):
    """An event of the pool: an item has ended on a device. ``left`` tells why no device is left for another attempt."""

    number: int
    outcomes: tuple[object, ...]
    device: "Device"
    left: str = ""


class Returned(NamedTuple):
    """An event of the pool: an item will not run."""

    number: int


class Note(NamedTuple):
    """An event of the pool: a sentence for the user."""

    text: str


class Device(NamedTuple):
    """A device that items run on. The first four fields are empty until a worker has opened the device.

    ``given_up`` says why it gets no further items. ``choice`` is the index, UUID or name that the user gave.
    ``warning`` is a sentence for the user.
    """

    uuid: str = ""
    name: str = ""
    driver: str = ""
    type: str = ""
    given_up: str = ""
    choice: str = ""
    warning: str = ""


Event = Began | Done | Returned | Note | tuple[Device, ...] | ScenarioRunnerError
"""A message of the pool: the devices in use, or the error for a pool without any usable device, besides the above."""


# While one worker waits for the GPU, another prepares work. Further workers only take device memory.
_JOBS_OF_GPU: Final = 2
_MOST_FAILURES: Final = 3  # failed worker starts in a row


class UsedDevice:
    """A device of a pool. Life cycle: requested; opened by the first worker; perhaps given up.

    The pool gives a device up if workers cannot start, or if a killed worker does not end.
    """

    def __init__(self, request: DeviceRequest, jobs: int) -> None:
        """Keep the request. If it names several devices, the first worker only lists them, and runs no items."""
        self.request = request
        self.about = Device(choice=request if isinstance(request, str) else "")
        self.is_known = False  # a worker has opened the device
        self.error: ScenarioRunnerError | None = None
        """The reason why the device is given up."""
        self.jobs = jobs
        self.spares = 0
        self.failures = 0

    @property
    def given_up(self) -> str:
        return "" if self.error is None else self.error.problems[0].message

    def opened(self, about: Device) -> None:
        """Note the properties of a device that a worker has opened."""
        self.is_known = True
        self.about = about._replace(choice=self.about.choice)
        self.jobs = self.jobs or (processors() if about.type == "cpu" else min(_JOBS_OF_GPU, processors()))

    def most_workers(self, opened: int) -> int:
        """Return the number of workers to have now. ``opened`` workers have opened the device.

        A GPU's workers start in turn: a driver that starts or opens a device holds a system-wide lock for long. If
        all workers waited for it at once, none would be useful meanwhile. After a crash there is a spare worker.
        """
        if self.error is not None:
            return 0
        most = (self.jobs or 1) + self.spares
        return most if self.about.type == "cpu" else min(most, opened + 1)

    def failed(self, error: ScenarioRunnerError, *, for_good: bool = False) -> None:
        """Count a worker that has failed to start, and give the device up after too many."""
        self.failures += 1
        if self.error is None and (for_good or self.failures >= _MOST_FAILURES):
            first = error.problems[0]
            again = f", {self.failures} times in a row" if self.failures > 1 else ""
            self.error = type(error)([first._replace(message=first.message + again)])

    def __str__(self) -> str:
        return f"the device {self.about.name!r}" if self.about.name else "the device"
