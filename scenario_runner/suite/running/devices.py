"""The devices that workers run on."""

from collections.abc import Sequence
from typing import Final

from scenario_runner.errors import ScenarioRunnerError
from scenario_runner.suite.running.options import Device
from scenario_runner.system_limits import processors
from scenario_runner.vulkan.device import Instance
from scenario_runner.vulkan.physical_device import choose

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


def chosen_devices(names: Sequence[str]) -> list[str]:
    """Choose devices by their names, each once; "all" are those of the fastest kind, "gpus" all that can run scenarios
    but for those of the CPU, unless there is nothing else. Raises NoDeviceError.

    A device is returned as its UUID, or as its index if several have that UUID."""
    devices = Instance().physical_devices
    words = {"all", "gpus"}.intersection(names)
    named = {choose(devices, name).index for name in names if name not in words}
    if words:
        fastest = choose(devices, None).type
        kinds = {fastest} if "gpus" not in words or fastest == "cpu" else {device.type for device in devices} - {"cpu"}
        named |= {device.index for device in devices if device.type in kinds and device.unusable_because() is None}
    uuids = [device.uuid for device in devices]
    unique = [device.uuid if uuids.count(device.uuid) == 1 else str(device.index) for device in devices]
    return [unique[index] for index in sorted(named)]
