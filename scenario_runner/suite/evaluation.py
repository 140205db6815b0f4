"""One item: run in this process, its results compared as they come from the device, and its outcome.

::

    load ──▶ plan ──▶ bind expectations to outputs ──▶ run ──▶ check each output ──▶ Outcome

Whatever is wrong with expectations ends it before anything runs. No file is written but about outputs that fail.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from contextvars import copy_context
from typing import TYPE_CHECKING, Protocol

from scenario_runner.errors import (
    DeviceError,
    ExpectationError,
    FenceTimeoutError,
    FileError,
    MissingToolError,
    ScenarioRunnerError,
    UnsupportedError,
)
from scenario_runner.suite.checking import check_output
from scenario_runner.suite.evaluation_options import EvaluationOptions
from scenario_runner.suite.expectations.binding import Bound, bind
from scenario_runner.suite.expectations.devices import Device, for_device, matching, refusal
from scenario_runner.suite.expectations.outputs import expects_frames, outputs_of_plan
from scenario_runner.suite.expectations.reading import Expectations, load
from scenario_runner.suite.records import Outcome, OutputCheck, Status
from scenario_runner.suite.results_sink import ResultsSink

if TYPE_CHECKING:
    from scenario_runner.plan.model.plan import Plan
    from scenario_runner.runner import Runner
    from scenario_runner.suite.expectations.model import Check
    from scenario_runner.suite.records import Item

    class Runners(Protocol):
        """Gives the open Runner for an item; see `suite.running.runners`."""

        limit: tuple[float, str]

        def runner(
            self, timeout_s: float | None = None, origin: str = "", *, robustness: bool | None = None
        ) -> Runner: ...


_DEFAULT = EvaluationOptions()


class _Refused(Exception):  # noqa: N818  (control flow inside this module)
    """The item ends before it runs, with this status and reason."""

    def __init__(self, status: Status, reason: str) -> None:
        self.status = status
        self.reason = reason


def run_item(item: Item, runners: Runners, options: EvaluationOptions | None = None) -> Outcome:
    """Run an item and compare what it gives. Errors of ours become outcomes; others are raised."""
    start = time.perf_counter()
    try:
        expectations = load(item)
    except ScenarioRunnerError as error:
        outcome = _of_error(error, "MissingTool" if isinstance(error, MissingToolError) else "Missing")
    else:
        evaluation = _Evaluation(item, expectations, options or _DEFAULT)
        outcome = evaluation.run(runners)
        start += evaluation.evidence_s  # which is no time of the item
    return outcome._replace(seconds=time.perf_counter() - start)


def _of_error(error: ScenarioRunnerError, status: Status, reason: str = "") -> Outcome:
    diagnostics = tuple(problem.as_json() for problem in error.problems)
    more = f" (and {len(error.problems) - 1} more)" if len(error.problems) > 1 else ""
    reason = reason or f"{error.problems[0]}{more}"
    return Outcome(status, reason=reason, exit_code=error.exit_code, diagnostics=diagnostics)


class _Evaluation:
    """One run of one item."""

    def __init__(self, item: Item, expectations: Expectations, options: EvaluationOptions) -> None:
        self._item = item
        self._expectations = expectations
        self._options = options
        self._check: Check = expectations.check
        self._bound: dict[str, Bound] = {}
        self._checks: list[OutputCheck] = []
        self._context = copy_context()
        self._evidence_bytes = 0
        self.evidence_s = 0.0

    def run(self, runners: Runners) -> Outcome:
        """The outcome, without its time."""
        check = self._check
        runner = runners.runner(*self._expectations.timeout, robustness=check.robustness or None)
        try:
            if check.when:
                device = Device.of(runner.physical_device)
                self._check = check = for_device(check, device)
                self._expectations = self._expectations._replace(condition=matching(self._expectations.check, device))
                runner = runners.runner(*self._expectations.timeout, robustness=check.robustness or None)

            def receive(plan: Plan) -> ResultsSink:
                self._begin(plan, runner)
                return ResultsSink(plan, check.repeat, self._take, captures=expects_frames(plan, self._bound))

            plan = runner.run_into(self._item.path, receive, repeat=check.repeat, keep_state=check.keep_state)
        except _Refused as refused:
            return Outcome(refused.status, reason=refused.reason)
        except ScenarioRunnerError as error:
            if isinstance(error, DeviceError):
                with suppress(ScenarioRunnerError):  # what it says about being closed matters less
                    runner.close()
            return self._failed(error, runners)
        finally:
            for bound in self._bound.values():
                bound.close()
        return self._ended(plan)

    def _begin(self, plan: Plan, runner: Runner) -> None:
        """Before anything runs: refuse what cannot run here, and bring expectations and outputs together."""
        refused = refusal(self._check, plan, runner.physical_device)
        if refused is not None:
            raise _Refused(*refused)
        if self._expectations.expects_failure:
            from scenario_runner.run.output_files import FileWriter

            FileWriter(plan).check()  # as the run would whose exit code is expected
            return
        self._bound = bind(self._expectations, self._check, outputs_of_plan(plan, self._check.repeat))

    def _failed(self, error: ScenarioRunnerError, runners: Runners) -> Outcome:
        """The outcome of a run that ended with an error."""
        expectations = self._expectations
        if isinstance(error, MissingToolError) and error.problems[0].code not in (self._check.codes or ()):
            return _of_error(error, "MissingTool")
        if isinstance(error, ExpectationError) or not os.path.isfile(self._item.path):
            return _of_error(error, "Missing")
        if expectations.expects_failure:
            return self._as_expected(error)
        if isinstance(error, UnsupportedError):
            needs = self._check.needs
            if needs is None or any(name.startswith("VK_ARM_") for name in needs.extensions):
                return _of_error(error, "NotSupported")
            reason = f"the device has all that 'needs' names, and yet: {error.problems[0]}"
            return _of_error(error, "Fail", reason)
        if isinstance(error, FenceTimeoutError):
            return _of_error(error, "Timeout", f"{error.problems[0]} ({runners.limit[1]})")
        return _of_error(error, "Fail")

    def _as_expected(self, error: ScenarioRunnerError) -> Outcome:
        """The outcome where an error is expected: its exit code, and the codes of its errors where they are given."""
        check = self._check
        if check.exit_code not in (None, error.exit_code):
            reason = f"the run ended with {error.exit_code}, expected {check.exit_code}: {error.problems[0]}"
            return _of_error(error, "Fail", reason)
        codes = {problem.code for problem in error.problems if problem.severity == "error"}
        if check.codes is not None and codes != set(check.codes):
            found, wanted = (", ".join(sorted(each)) for each in (codes, set(check.codes)))
            reason = f"the run ended with the codes {found}, expected {wanted}: {error.problems[0]}"
            return _of_error(error, "Fail", reason)
        return _of_error(error, "Pass")._replace(reason="")

    def _ended(self, plan: Plan) -> Outcome:
        """The outcome of a run that ended well."""
        warnings = tuple(warning.as_json() for warning in plan.warnings)
        if self._expectations.expects_failure:
            code = self._check.exit_code
            wanted = ", ".join(self._check.codes or ()) if code is None else f"the exit code {code}"
            reason = f"the run ended well, expected {wanted}"
            return Outcome("Fail", reason=reason, diagnostics=warnings)
        bad = [each for each in self._checks if each.status != "Pass"]
        if not bad:
            return Outcome("Pass", diagnostics=warnings, outputs=tuple(self._checks))
        failed = [each for each in bad if each.status == "Fail"]
        first = (failed or bad)[0]
        more = f" (and {len(bad) - 1} more outputs)" if len(bad) > 2 else " (and 1 more output)" if len(bad) > 1 else ""
        reason = f"{first.name}: {first.message}{more}"
        status: Status = "Fail" if failed else "Warn"
        return Outcome(status, reason=reason, diagnostics=warnings, outputs=tuple(self._checks))

    def _take(self, name: str, view: memoryview) -> None:
        """Compare one complete output, if anything is expected of it."""
        bound = self._bound.get(name)
        if bound is None:
            return
        actual = view[: bound.output.size_bytes]
        found = check_output(bound, actual)
        if self._options.results_folder is not None:
            start = time.perf_counter()
            # a sandbox is one for scenarios, not for what is written about them
            found = self._context.run(self._with_evidence, found, bound, actual, self._options.results_folder)
            self.evidence_s += time.perf_counter() - start
        self._checks.append(found)

    def _with_evidence(self, found: OutputCheck, bound: Bound, actual: memoryview, folder: str) -> OutputCheck:
        """Write files about an output that is wrong, in place of those of an earlier run."""
        from scenario_runner.suite.evidence import remove_evidence, write_evidence

        remove_evidence(bound, folder, self._item.id)
        if found.status == "Pass":
            return found
        room = self._options.evidence_bytes_max - self._evidence_bytes
        try:
            files = write_evidence(bound, actual, folder, self._item.id, room)
        except FileError as error:
            return found._replace(message=f"{found.message} (no files about it: {error})")
        self._evidence_bytes += sum(os.path.getsize(os.path.join(folder, path)) for path in files.values())
        if not any(what.startswith("actual") and path[-4:] != ".png" for what, path in files.items()):
            left_out = f"its content is not kept: more than --max-evidence {self._options.evidence_bytes_max >> 20} MiB"
            found = found._replace(message=f"{found.message} ({left_out})")
        return found._replace(files=files)
