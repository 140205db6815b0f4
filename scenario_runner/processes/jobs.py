"""Options, jobs and devices of workers, and the two parts that the user of a pool brings: a task and a policy.

Items, outcomes and hints are opaque here; only the policy and the task look into them.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, Literal, NamedTuple, Protocol

from scenario_runner.errors import ScenarioRunnerError
from scenario_runner.errors.text import Json
from scenario_runner.processes.crash import Crash
from scenario_runner.processes.system_limits import processors

DeviceRequest = str | tuple[str, ...] | None
"""A device by its index or UUID, several as the user names them, or None for the default one."""

State = Literal["good", "failed", "spoiled", "grown"]
"""The state of a process after an item."""

ENDING: Final = frozenset({"spoiled", "grown"})
"""The states after which a process runs nothing more."""


TIMEOUT_S: Final = 60.0


class Task(Protocol):
    """The work of a worker, which makes one."""

    def __init__(self, options: "WorkerOptions", device: str | None, announce: Callable[[float, str], None]) -> None:
        """Open the device. A task calls ``announce`` for an item with a time limit of its own, with the seconds and the
        name of whoever set it. Raises ScenarioRunnerError."""

    @property
    def about(self) -> "Device":
        """The device."""

    def run(self, item: object) -> tuple[dict[str, object], State]:
        """Run an item; the outcome as JSON."""

    def used(self) -> list[str]:
        """Name modules and the like that the next workers can begin with, or nothing new."""

    @staticmethod
    def preload(task_options: object, names: Sequence[str]) -> None:
        """Load modules for all workers, and names from `used`, into the process that forks them. Must not start a
        thread."""

    @staticmethod
    def devices(names: Sequence[str]) -> list[str]:
        """Find the device requests that several names stand for. Raises NoDeviceError."""


class Policy(Protocol):
    """Answers of the user to the pool's questions about items. It must be picklable."""

    def outcome(self, fields: dict[str, Json], before: Sequence[Any], before_count: int) -> Any:
        """Make an outcome of the JSON from a task. The process had run ``before_count`` items before; ``before`` are
        the last ones. Raises ValueError and its like for other JSON: the process may have damaged its memory."""

    def crashed(self, item: Any, crash: Crash) -> object:
        """Make the outcome of an item that ended its process."""

    def again(self, hint: Any, attempts: Sequence[Any]) -> bool:
        """Return whether an item with these outcomes, at least one, runs once more."""


class WorkerOptions(NamedTuple):
    """The devices, the number of workers, and the work of each of them.

    ``task`` names the class of the `Task` as "module:name"; ``task_options`` are for it alone, and picklable.
    ``devices`` are indexes, UUIDs or words that the task resolves; without any it is the default device. ``jobs`` is
    the number of workers for each device, 0 for as many as suit it.

    ``timeout_s`` bounds each run of an item that has no limit of its own, and ``timeout_origin`` says in messages who
    set it; a worker is killed when it takes longer (`progress.ended_after_s`), or, ``if_quiet``, when it has made no
    progress for so long. ``start_timeout_s`` bounds the start of a worker.

    A worker is replaced after ``most_items`` items, or when it has grown by ``most_bytes`` of memory or ``most_files``
    open files since its first item. A worker that has not ended ``kill_wait_s`` after it was killed cannot be ended:
    its device is given up. With ``core_dumps`` the kernel writes core files of workers that crash. With
    ``shows_output`` workers write to the standard output and error of the user.
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


# While one worker of a GPU waits for it, another prepares its work. More bring nothing, and take memory of the device.
_JOBS_OF_GPU: Final = 2
_MOST_FAILURES: Final = 3  # of workers of a device that do not come to run an item, in a row


class UsedDevice:
    """Life cycle: known by the ``request`` of the user; opened by its first worker; given up when no worker can be
    started or ended."""

    def __init__(self, request: DeviceRequest, jobs: int) -> None:
        """Keep the request. If it names several devices, the first worker only lists them, and runs no items."""
        self.request = request
        self.about = Device(choice=request if isinstance(request, str) else "")
        self.is_known = False  # a worker has opened it
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
        self.is_known = True
        self.about = about._replace(choice=self.about.choice)
        self.jobs = self.jobs or (processors() if about.type == "cpu" else min(_JOBS_OF_GPU, processors()))

    def most_workers(self, ready: int) -> int:
        """Return the number of workers to have now; ``ready`` ones have started.

        Workers of a GPU start one after the other: the start of a driver holds a lock of the whole system for long, and
        the first workers are useful meanwhile. After a crash there is a spare worker."""
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
