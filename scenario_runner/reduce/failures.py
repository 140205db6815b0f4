"""Failures of a scenario, as they are told apart when it is made smaller, and ways to try whether one is still there.

Each try runs in a process that may crash: a worker of the pool, or the user's script.
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

from scenario_runner.errors import UsageError
from scenario_runner.errors.text import Json
from scenario_runner.plan.records import CompilerOptions
from scenario_runner.processes.jobs import WorkerOptions
from scenario_runner.processes.programs import Program
from scenario_runner.suite.discovery import expected_folder, item_of
from scenario_runner.suite.outcomes import Item, Outcome
from scenario_runner.suite.suite_workers import SuiteWorkers
from scenario_runner.suite.update import update_item
from scenario_runner.suite.worker_task import Runners
from scenario_runner.validation import Options, validate_file

RUNS: Final = 2
"""Runs of a scenario that all have to fail, of one that fails each time."""
FLAKY_RUNS: Final = 4
"""Runs of a scenario of which one has to fail, of one that fails sometimes."""
_VUID: Final = re.compile(r"\b(?:VUID|UNASSIGNED|SYNC-HAZARD)-[\w-]+")


class Failure(NamedTuple):
    """A failure: the ``status`` of the run and a sentence about it.

    ``crash`` is that of the outcome, ``kinds`` are the kinds of the commands that ran then (empty if none did),
    ``codes`` those of errors, VUIDs of the validation layer before ours. ``output`` is the first wrong one, and
    ``content`` tells what it held.
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
        """Return whether the expectations are wrong in themselves."""
        return any(code.startswith("SR-EXPECT-") for code in self.codes)

    def is_like(self, first: Failure) -> bool:
        """Return whether it is the failure that a scenario had ``first``."""
        if self.status != first.status or self.crash != first.crash or self.output != first.output:
            return False
        if first.kinds and not first.kinds & self.kinds:
            return False
        return first.content in ((), self.content) and (not first.codes or first.codes[0] in self.codes)


def failure_of(outcome: Outcome, tree: Mapping[str, Json], code: str | None) -> Failure | None:
    """The failure that a run of the scenario ``tree`` ended with; None if it did not fail. With a ``code``, or a VUID,
    it is a message with that, whatever its severity."""
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
    """A problem without its file, which is a temporary one."""
    return ": ".join(filter(None, (problem["pointer"], problem["message"])))


class Trial(AbstractContextManager["Trial"]):
    """A way to try whether a scenario fails. Life cycle: made; `first` once; `try_once` as often as needed; closed.

    ``has_expectations`` tells whether those of the scenario count, and ``says`` what the last run ended with."""

    has_expectations = True

    def __init__(self, options: WorkerOptions, code: str | None = None) -> None:
        """``code`` is that of the message that counts as the failure."""
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
        """Run the whole scenario twice, and return how it fails. Sets ``is_flaky`` if it does not fail in the same way
        each time. Raises errors of the driver if nothing can run."""
        failures = [self._run(path, tree) for _ in range(RUNS)]
        failing = [failure for failure in failures if failure is not None]
        if not failing:
            return None
        first = failing[0]
        if any(failure.content != first.content for failure in failing):
            first = first._replace(content=())  # other numbers each time
        self.is_flaky = len(failing) < RUNS or not all(failure.is_like(first) for failure in failing)
        return first

    def try_once(self, path: str, tree: Mapping[str, Json], first: Failure) -> Failure | None:
        """Run a smaller scenario; its failure, if it fails like the ``first`` one. A crash has to show in a new process
        too, as the one before may have been damaged by other tries. One run tells a hang."""
        last = None
        runs = 1 if first.status == "Timeout" else RUNS  # which ended its process, and took long
        for _ in range(FLAKY_RUNS if self.is_flaky else runs):
            failure = self._run(path, tree)
            is_like = failure is not None and failure.is_like(first)
            last = failure if is_like else last
            if is_like is self.is_flaky:
                break
        return last if self.is_flaky or is_like else None

    def complete(self, path: str, tree: Mapping[str, object]) -> None:
        """Write what belongs beside a scenario, so that it fails elsewhere."""

    def _run(self, path: str, tree: Mapping[str, object]) -> Failure | None:
        if self._code is not None:  # which may be a warning, or of a rule that runs do not check
            findings = validate_file(path, Options(self.compiler, hazards=True)).findings
            messages = tuple(problem.as_json() for problem in findings)
            failure = failure_of(Outcome("Pass", diagnostics=messages), tree, self._code)
            if failure is not None:
                return failure
        outcome = self._workers.run_one(item_of(path, os.path.basename(path))).attempts[-1]
        self.says = f"{outcome.status}: {outcome.reason}".removesuffix(": ")
        failure = failure_of(outcome, tree, self._code)
        place = os.path.join(os.path.dirname(path), "")  # a temporary one
        return failure and failure._replace(text=failure.text.replace(place, ""))


_TASK: Final = f"{__name__}:expect_item"


def expect_item(item: Item, runners: Runners, _: None) -> Outcome:
    """Expect the results of an item, with the types that `diff` takes for buffers (the task of a worker)."""
    return update_item(item, runners, write=True, with_types=True)


class DevicesTrial(Trial):
    """Tries whether the results on two devices differ: those of the first one are expected of the second."""

    has_expectations = False

    def __init__(self, options: WorkerOptions, devices: Sequence[str]) -> None:
        super().__init__(options._replace(devices=(devices[1],)))
        work = options.task_options._replace(function=_TASK, options=None)
        writing = options._replace(devices=(devices[0],), task_options=work)
        self._expecting = self._stack.enter_context(SuiteWorkers(writing))

    def complete(self, path: str, tree: Mapping[str, object]) -> None:
        self._run(path, tree)  # others were tried since

    def _run(self, path: str, tree: Mapping[str, object]) -> Failure | None:
        shutil.rmtree(expected_folder(path), ignore_errors=True)
        outcome = self._expecting.run_one(item_of(path, os.path.basename(path))).attempts[-1]
        if outcome.status != "Pass":
            self.says = f"{outcome.status} on the first device: {outcome.reason}"
            return None
        failure = super()._run(path, tree)
        return failure._replace(content=()) if failure is not None and failure.output else None


class ScriptTrial(Trial):
    """Tries whether a script ends with exit code 0 for a scenario, whose path is its last argument."""

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
