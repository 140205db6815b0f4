"""The devices that workers run on, and how many workers suit each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from scenario_runner.errors import DeviceError, DriverCrashError, ScenarioRunnerError
from scenario_runner.system_limits import processors

# While one worker of a GPU waits for it, another prepares its work. More bring nothing, and take memory of the device.
_JOBS_OF_GPU: Final = 2
# A driver that has crashed so often while it was started, and was never started in between, will do so again.
_MOST_FAILURES: Final = 3


class Device(NamedTuple):
    """A device that items run on. ``workers`` is how many it has; ``given_up`` says why it gets no further items."""

    uuid: str
    name: str
    driver: str
    type: str
    workers: int
    given_up: str = ""


class UsedDevice:
    """Life cycle: known by what was ``asked`` for (an index, a UUID, or None for the one that a run would take); found
    when its first worker is ready; given up when none can be started, or none be ended."""

    def __init__(self, asked: str | tuple[str, ...] | None, jobs: int) -> None:
        """Several that are asked for are none that items run on: its worker tells which devices these are."""
        self.asked = asked
        self.uuid = self.name = self.driver = self.type = ""
        self.given_up = ""
        self.error: ScenarioRunnerError | None = None
        self.workers = 0
        """How many there are now, with those that are not ready yet."""
        self.starting = 0
        """How many are not ready yet."""
        self._jobs = jobs
        self._failures = 0
        self._manifest: str | None = None  # of its driver; empty where it is not to be used

    @property
    def wanted(self) -> int:
        """How many workers it is to have now: those of a GPU start one after the other, since its driver's start takes
        a lock of the whole system for long, and the first ones do the work meanwhile."""
        if self.given_up:
            return 0
        return self._jobs if self.type == "cpu" else min(self._jobs or 1, self.workers - self.starting + 1)

    def found(self, described: Mapping[str, str]) -> None:
        """A worker has started."""
        self.uuid, self.name = described["uuid"], described["name"]
        self.driver, self.type = described["driver"], described["type"]
        self._failures = 0
        self._jobs = self._jobs or (processors() if self.type == "cpu" else min(_JOBS_OF_GPU, processors()))

    def driver_found(self, manifest: str) -> None:
        """A worker has found out which manifest is that of its driver."""
        # An index counts the devices of all drivers.
        if self._manifest is None and not (isinstance(self.asked, str) and self.asked.isdecimal()):
            self._manifest = manifest

    def to_ask(self) -> tuple[str | tuple[str, ...] | None, str]:
        """What a worker asks for: the device, and the manifest of the only driver to open, or nothing."""
        return (self.uuid, self._manifest) if self._manifest else (self.asked, "")

    def failed(self, error: ScenarioRunnerError, driver: str, *, for_good: bool = False) -> None:
        """A worker could not be started that was to open this driver alone, or any where it is empty."""
        if driver:  # perhaps the device is not found that way
            self._manifest = ""
            return
        self._failures += 1
        if for_good or self._failures >= _MOST_FAILURES:
            first = error.problems[0]
            again = f", {self._failures} times in a row" if self._failures > 1 else ""
            self.give_up(first.message + again, type(error)([first._replace(message=first.message + again)]))

    def give_up(self, reason: str, error: ScenarioRunnerError | None = None) -> None:
        self.given_up = self.given_up or reason
        self.error = self.error or error

    def as_record(self) -> Device:
        return Device(self.uuid, self.name, self.driver, self.type, self.workers, self.given_up)

    def __str__(self) -> str:
        return f"the device {self.name!r}" if self.name else "the device"


def start_error(how: str, what: str) -> DeviceError:
    """The error for a worker that ended (``how``) before it was ready."""
    return DriverCrashError(
        f"a process that was to run scenarios {how} while {what or 'starting'}",
        help="'scenario-runner doctor' shows which drivers are found, and starts each; --device chooses another device",
    )
