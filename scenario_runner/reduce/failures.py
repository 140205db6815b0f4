"""Runs of a scenario in processes that may crash: trials for `reduce`, and dumps of all data for `diff`.

A trial tells whether a smaller scenario still fails alike. The process is a worker of the pool, or the user's script.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from functools import cached_property
from typing import Final, NamedTuple

from scenario_runner.errors import (
    DeviceError,
    FenceTimeoutError,
    ScenarioRunnerError,
    UsageError,
    ValidationLayerError,
    error_of,
)
from scenario_runner.errors.diagnostic import Diagnostic
from scenario_runner.errors.text import Json, one_line
from scenario_runner.files.input import ParameterizedFile
from scenario_runner.plan.records import CompilerOptions
from scenario_runner.processes.jobs import Device, WorkerOptions
from scenario_runner.processes.programs import Program
from scenario_runner.run.dump_files import INDEX, DumpIndex, DumpRequest, read_index
from scenario_runner.suite.combinations import scenario_path
from scenario_runner.suite.discovery import expected_folder, item_of
from scenario_runner.suite.evaluation import of_error
from scenario_runner.suite.outcomes import Item, Outcome
from scenario_runner.suite.suite_workers import SuiteWork, SuiteWorkers, suite_options
from scenario_runner.suite.update import update_item
from scenario_runner.suite.worker_task import Runners
from scenario_runner.validation import Options, validate_file

RUNS: Final = 2
"""Runs for a failure that shows each time: all must fail."""
FLAKY_RUNS: Final = 4
"""Runs for a failure that shows sometimes: at least one run must fail."""
_VUID: Final = re.compile(r"\b(?:VUID|UNASSIGNED|SYNC-HAZARD)-[\w-]+")


class Failure(NamedTuple):
    """A failure: the ``status`` of the run, and a sentence about it.

    A crash has the outcome's ``crash`` and the ``kinds`` of the running commands. An error has ``codes``:
    VUIDs of the validation layer, then codes of this program. A wrong result has the first wrong ``output``, and
    ``content`` describes the wrong values.
    """

    status: str
    text: str = ""
    crash: tuple[int, str] | tuple[()] = ()
    kinds: frozenset[str] = frozenset()
    codes: tuple[str, ...] = ()
    output: str = ""
    content: tuple[object, ...] = ()

    @property
    def is_of_expectations(self) -> bool:
        """Return whether the expectations themselves are wrong."""
        return any(code.startswith("SR-EXPECT-") for code in self.codes)

    def is_like(self, first: Failure) -> bool:
        """Return whether this failure repeats the scenario's ``first`` failure."""
        if self.status != first.status or self.crash != first.crash or self.output != first.output:
            return False
        if first.kinds and not first.kinds & self.kinds:
            return False
        return first.content in ((), self.content) and (not first.codes or first.codes[0] in self.codes)


def failure_of(outcome: Outcome, tree: Mapping[str, Json], code: str | None) -> Failure | None:
    """Return the failure in a run's outcome; None if the run succeeded. ``tree`` is the scenario.

    With a ``code`` or VUID, the failure is a message with this code, of any severity.
    """
    messages = outcome.diagnostics
    codes = [name for problem in messages for name in (*_VUID.findall(problem["message"]), problem["code"])]
    if code is not None:
        said = (problem["message"] for problem in messages if code == problem["code"] or code in problem["message"])
        return next((Failure("Message", f"{code}: {message}", codes=(code,)) for message in said), None)
    text = outcome.reason if outcome.outputs or not messages else _sentence(messages[0])
    failure = Failure(outcome.status, text)
    if outcome.status == "Timeout":
        return failure
    if outcome.status == "Crash":
        pointer = (messages[0]["pointer"] or "") if messages else ""
        at = int(pointer.split("/")[2]) if pointer.startswith("/commands/") else None
        commands = tree["commands"] if pointer.startswith("/commands") else []
        commands = commands if at is None else commands[at : at + 1]
        return failure._replace(crash=outcome.crash, kinds=frozenset(kind for command in commands for kind in command))
    wrong = next((check for check in outcome.outputs if check.status == "Fail"), None)
    if wrong is not None:
        return failure._replace(output=wrong.name, content=(wrong.message, *wrong.worst))
    is_error = outcome.status in ("Fail", "NotSupported", "Missing") and codes
    return failure._replace(codes=tuple(codes)) if is_error else None


def _sentence(problem: Mapping[str, Json]) -> str:
    """Format a problem without the path of the file, which is temporary."""
    return ": ".join(filter(None, (problem["pointer"], problem["message"])))


class Trial(AbstractContextManager["Trial"]):
    """Runs of a scenario by a suite's worker. Call `first` once, `try_once` as often as needed, then close the trial.

    ``has_expectations`` tells whether the scenario's expectations count. ``says`` describes the end of the last run.
    """

    has_expectations = True

    def __init__(self, options: WorkerOptions, code: str | None = None) -> None:
        """With a ``code``, only a message with this code counts as the failure."""
        self._options, self._code = options, code
        runner = options.task_options.runner
        self.compiler = CompilerOptions(runner["compiler"], runner["cache_dir"], runner["use_cache"])
        self._stack = ExitStack()
        self.is_flaky = False
        self.says = ""

    @cached_property
    def _workers(self) -> SuiteWorkers:
        return self._stack.enter_context(SuiteWorkers(self._options))

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def first(self, path: str, tree: Mapping[str, object]) -> Failure | None:
        """Run the whole scenario twice and return the failure. Raises errors of a driver that runs nothing.

        ``is_flaky`` becomes true if the runs do not fail alike.
        """
        failures = [self._run(path, tree) for _ in range(RUNS)]
        failing = [failure for failure in failures if failure is not None]
        if not failing:
            return None
        first = failing[0]
        if any(failure.content != first.content for failure in failing):
            first = first._replace(content=())  # the numbers differ each time
        self.is_flaky = len(failing) < RUNS or not all(failure.is_like(first) for failure in failing)
        return first

    def try_once(self, path: str, tree: Mapping[str, Json], first: Failure) -> Failure | None:
        """Run a smaller scenario. Return the failure if it repeats the ``first`` failure, else None.

        A crash must show in a new process too, since earlier runs may have damaged the process. For a hang a single
        run is enough: it ends the process, and takes long.
        """
        last = None
        runs = 1 if first.status == "Timeout" else RUNS
        for _ in range(FLAKY_RUNS if self.is_flaky else runs):
            failure = self._run(path, tree)
            is_like = failure is not None and failure.is_like(first)
            last = failure if is_like else last
            if is_like is self.is_flaky:
                break
        return last if self.is_flaky or is_like else None

    def complete(self, path: str, tree: Mapping[str, object]) -> None:
        """Write the files beside a scenario that let it fail elsewhere."""

    def _run(self, path: str, tree: Mapping[str, object]) -> Failure | None:
        if self._code is not None:  # it may be a warning, or from a rule that runs do not check
            findings = validate_file(path, Options(self.compiler, hazards=True)).findings
            messages = tuple(problem.as_json() for problem in findings)
            failure = failure_of(Outcome("Pass", diagnostics=messages), tree, self._code)
            if failure is not None:
                return failure
        outcome = self._workers.run_one(item_of(path, os.path.basename(path))).attempts[-1]
        self.says = f"{outcome.status}: {outcome.reason}".removesuffix(": ")
        failure = failure_of(outcome, tree, self._code)
        temporary_folder = os.path.join(os.path.dirname(path), "")
        return failure and failure._replace(text=failure.text.replace(temporary_folder, ""))


_EXPECT_TASK: Final = f"{__name__}:expect_item"


def expect_item(item: Item, runners: Runners, _: None) -> Outcome:
    """Run an item and store the results as expected ones, with the types that `diff` assumes for buffers.

    This is the task of a worker.
    """
    return update_item(item, runners, write=True, with_types=True)


class DevicesTrial(Trial):
    """Runs on two devices. The second device must give the first device's results."""

    has_expectations = False

    def __init__(self, options: WorkerOptions, devices: Sequence[str]) -> None:
        super().__init__(options._replace(devices=(devices[1],)))
        work = options.task_options._replace(function=_EXPECT_TASK, options=None)
        writing = options._replace(devices=(devices[0],), task_options=work)
        self._expecting = self._stack.enter_context(SuiteWorkers(writing))

    def complete(self, path: str, tree: Mapping[str, object]) -> None:
        self._run(path, tree)  # the folder holds the results of a later try

    def _run(self, path: str, tree: Mapping[str, object]) -> Failure | None:
        shutil.rmtree(expected_folder(path), ignore_errors=True)
        outcome = self._expecting.run_one(item_of(path, os.path.basename(path))).attempts[-1]
        if outcome.status != "Pass":
            self.says = f"{outcome.status} on the first device: {outcome.reason}"
            return None
        failure = super()._run(path, tree)
        return failure._replace(content=()) if failure is not None and failure.output else None


class ScriptTrial(Trial):
    """Runs of a script with the scenario's path as last argument. The exit code 0 says that the scenario fails."""

    has_expectations = False

    def __init__(self, options: WorkerOptions, command: Sequence[str]) -> None:
        super().__init__(options)
        name = command[0] if command else ""
        path = shutil.which(name) or shutil.which(os.path.abspath(name))
        if path is None and os.path.isfile(name):
            raise UsageError(f"--script {name}: is not executable", help=f"chmod +x {name}")
        if path is None:
            raise UsageError(f"--script {name!r}: there is no such program", help="name an executable file")
        self._command = [os.path.abspath(path), *command[1:]]

    def _run(self, path: str, tree: Mapping[str, object]) -> Failure | None:
        nothing = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        with Program(
            [*self._command, path], self._options.timeout_s or 0.0, cwd=os.path.dirname(path), **nothing
        ) as program:
            code = program.wait()
        self.says = f"the script {program.failure or f'ended with exit code {code}'}"
        return None if code else Failure("Script", self.says)


_DUMP_TASK: Final = f"{__name__}:dump_item"


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
    work = SuiteWork(_DUMP_TASK, folder, runner)
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
