"""A scenario on one device with all that its commands change, in a process that may crash."""

import os
from typing import Final, NamedTuple

from scenario_runner.diagnostics import Diagnostic
from scenario_runner.errors import DeviceError, FenceTimeoutError, ScenarioRunnerError, ValidationLayerError, error_of
from scenario_runner.run.dump_files import DumpRequest
from scenario_runner.run.dump_index import INDEX, DumpIndex, read_index
from scenario_runner.suite.evaluation import of_error
from scenario_runner.suite.records import Item, Outcome
from scenario_runner.suite.running.options import Device, WorkerOptions
from scenario_runner.suite.running.worker import Runners
from scenario_runner.suite.running.workers import Workers
from scenario_runner.text import one_line

_TASK: Final = f"{__name__}:dump_item"


class DeviceDump(NamedTuple):
    """A run on a device and what it dumped, until it failed where it did."""

    device: Device
    outcome: Outcome
    dumped: DumpIndex

    @property
    def name(self) -> str:
        """The device in messages: its index or name as it was given, and its own name."""
        return one_line(f"device {self.device.choice} ({self.device.name})")


def dump_on(device: str, path: str, folder: str, timeout_s: float) -> DeviceDump:
    """Run a scenario on a device and dump everything after each command into ``folder``; its outputs are not written.

    Raises the errors of a scenario that cannot run, whatever the device, or that the device does not support, and
    NoDeviceError; a crash, a hang and other errors of the driver are outcomes.
    """
    options = WorkerOptions((device,), 1, timeout_s, "--timeout", task=_TASK, task_options=folder)
    with Workers(options) as workers:
        outcome = workers.run_one(Item(path, os.path.abspath(path))).attempts[-1]
        about = workers.devices[0]._replace(choice=device)
    has_index = os.path.exists(os.path.join(folder, INDEX))
    dump = DeviceDump(about, outcome, read_index(folder) if has_index else DumpIndex(folder, False, (), ()))
    if outcome.status not in ("Pass", "Fail", "Crash", "Timeout"):
        raise error_of(Diagnostic(**problem) for problem in outcome.diagnostics)
    return dump


def dump_item(item: Item, runners: Runners, folder: str) -> Outcome:
    """Run an item with dumps (the task of a worker)."""
    try:
        runners.runner().run_to_files(item.path, dump=DumpRequest(folder, everything=True), write_files=False)
    except (DeviceError, ValidationLayerError) as error:
        return of_error(error, "Timeout" if isinstance(error, FenceTimeoutError) else "Fail")
    except ScenarioRunnerError as error:
        return of_error(error)
    return Outcome("Pass")
