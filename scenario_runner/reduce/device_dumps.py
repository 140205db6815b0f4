"""A scenario's run on a device, with all data that the commands change, in a process that may crash."""

import os
from collections.abc import Mapping
from typing import Final, NamedTuple

from scenario_runner.errors import DeviceError, FenceTimeoutError, ScenarioRunnerError, ValidationLayerError, error_of
from scenario_runner.errors.diagnostic import Diagnostic
from scenario_runner.errors.text import one_line
from scenario_runner.files.input import ParameterizedFile
from scenario_runner.processes.jobs import Device
from scenario_runner.run.dump_files import INDEX, DumpIndex, DumpRequest, read_index
from scenario_runner.suite.combinations import scenario_path
from scenario_runner.suite.evaluation import of_error
from scenario_runner.suite.outcomes import Item, Outcome
from scenario_runner.suite.suite_workers import SuiteWork, SuiteWorkers, suite_options
from scenario_runner.suite.worker_task import Runners

_TASK: Final = f"{__name__}:dump_item"


class DeviceDump(NamedTuple):
    """A run on a device, and the resources that it dumped before it ended or failed."""

    device: Device
    outcome: Outcome
    dumped: DumpIndex

    @property
    def name(self) -> str:
        """The device in messages: the user's index or name for it, and the device's own name."""
        return one_line(f"device {self.device.choice} ({self.device.name})")


def dump_on(device: str, scenario: str | ParameterizedFile, folder: str, arguments: Mapping[str, object]) -> DeviceDump:
    """Run a scenario on a device and dump everything after each command into ``folder``. No output is written.

    ``arguments`` are keyword arguments of Runner. A crash, a hang or another driver error is an outcome. Raises
    NoDeviceError, and the errors of a scenario that cannot run on this device.
    """
    runner = {name: value for name, value in arguments.items() if name not in ("device", "timeout_s")}
    limit = arguments["timeout_s"]
    work = SuiteWork(_TASK, folder, runner)
    options = suite_options(work, devices=(device,), jobs=1, timeout_s=limit, timeout_origin="--timeout")
    path, parameters = os.fspath(scenario), getattr(scenario, "parameters", {})
    with SuiteWorkers(options) as workers:
        outcome = workers.run_one(Item(path, os.path.abspath(path), parameters=parameters)).attempts[-1]
        about = workers.devices[0]._replace(choice=device)
    has_index = os.path.exists(os.path.join(folder, INDEX))
    dump = DeviceDump(about, outcome, read_index(folder) if has_index else DumpIndex(folder, False, (), ()))
    if outcome.status not in ("Pass", "Fail", "Crash", "Timeout"):
        raise error_of(Diagnostic(**problem) for problem in outcome.diagnostics)
    return dump


def dump_item(item: Item, runners: Runners, folder: str) -> Outcome:
    """Run an item with dumps (the task of a worker)."""
    try:
        runners.runner().run_to_files(scenario_path(item), dump=DumpRequest(folder, everything=True), write_files=False)
    except (DeviceError, ValidationLayerError) as error:
        return of_error(error, "Timeout" if isinstance(error, FenceTimeoutError) else "Fail")
    except ScenarioRunnerError as error:
        return of_error(error)
    return Outcome("Pass")
