"""Run one item in this process, compare its results as they come from the device, and give its outcome.

::

    load ──▶ plan ──▶ bind expectations to outputs ──▶ run ──▶ check each output ──▶ Outcome

Errors in expectations end it before anything runs. Files are written only about outputs that fail.
"""

from __future__ import annotations

import hashlib
import math
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from contextvars import copy_context
from fractions import Fraction

from scenario_runner.errors import (
    DeviceError,
    ExpectationError,
    FenceTimeoutError,
    FileError,
    MissingToolError,
    ScenarioRunnerError,
    UnsupportedError,
)
from scenario_runner.plan.plan import Plan
from scenario_runner.run.output_files import FileWriter
from scenario_runner.runner import Runner
from scenario_runner.suite.expectations.devices import refusal
from scenario_runner.suite.expectations.outputs import ResultsSink, outputs_of_plan
from scenario_runner.suite.expectations.reading import Expectations, load
from scenario_runner.suite.expectations.validation import Bound, bind
from scenario_runner.suite.records import EvaluationOptions, Item, Outcome, OutputCheck, Status
from scenario_runner.suite.running.worker import Runners
from scenario_runner.suite.tolerance.elements import Mismatch, Rule, compare
from scenario_runner.suite.tolerance.metrics import METRICS, pairs_of, verdict
from scenario_runner.text import counted, distinct
from scenario_runner.viewing.content import Array

_DEFAULT = EvaluationOptions()


class _Refused(Exception):  # noqa: N818  (control flow inside this module)
    """The item ends before it runs, with this status and reason."""


def run_item(item: Item, runners: Runners, options: EvaluationOptions | None = None) -> Outcome:
    """Run an item and compare what it gives. Errors of ours become outcomes; others are raised."""
    start = time.perf_counter()
    try:
        expectations = load(item)
    except ScenarioRunnerError as error:
        outcome = _of_error(error, "MissingTool" if isinstance(error, MissingToolError) else "Missing")
    else:
        evaluation = _Evaluation(item, expectations, runners, options or _DEFAULT)
        outcome = evaluation.run()
        start += evaluation.evidence_s  # which is no time of the item
    return outcome._replace(seconds=time.perf_counter() - start)


def _of_error(error: ScenarioRunnerError, status: Status, reason: str = "") -> Outcome:
    diagnostics = tuple(problem.as_json() for problem in error.problems)
    more = f" (and {len(error.problems) - 1} more)" if len(error.problems) > 1 else ""
    reason = reason or f"{error.problems[0]}{more}"
    return Outcome(status, reason=reason, exit_code=error.exit_code, diagnostics=diagnostics)


class _Evaluation:
    """One run of one item."""

    def __init__(self, item: Item, expectations: Expectations, runners: Runners, options: EvaluationOptions) -> None:
        self._item = item
        self._expectations = expectations
        self._runners = runners
        self._options = options
        self._bound: dict[str, Bound] = {}
        self._checks: list[OutputCheck] = []
        self._context = copy_context()
        self._evidence_bytes = 0
        self.evidence_s = 0.0

    def run(self) -> Outcome:
        """The outcome, without its time."""
        check = self._expectations.check
        runner = self._runner = self._chosen_runner()
        try:
            if check.when:
                self._expectations = self._expectations.for_device(runner.physical_device)
                self._chosen_runner()  # with the time limit on this device
            plan = runner.run_into(self._item.path, self._sink, repeat=check.repeat, keep_state=check.keep_state)
        except _Refused as refused:
            status, reason = refused.args
            return Outcome(status, reason=reason)
        except ScenarioRunnerError as error:
            if isinstance(error, DeviceError):
                with suppress(ScenarioRunnerError):  # what it says about being closed matters less
                    runner.close()
            return self._failed(error)
        return self._ended(plan)

    def _chosen_runner(self) -> Runner:
        robustness = self._expectations.check.robustness or None
        return self._runners.runner(*self._expectations.timeout, robustness=robustness)

    def _sink(self, plan: Plan) -> ResultsSink:
        """Before anything runs: refuse what cannot run here, and bring expectations and outputs together."""
        check = self._expectations.check
        refused = refusal(check, plan, self._runner.physical_device)
        if refused is not None:
            raise _Refused(*refused)
        if self._expectations.expects_failure:
            FileWriter(plan).check()  # as the run would whose exit code is expected
        else:
            self._bound = bind(self._expectations, outputs_of_plan(plan, check.repeat))
        return ResultsSink(plan, check.repeat, self._take, (bound.output for bound in self._bound.values()))

    def _failed(self, error: ScenarioRunnerError) -> Outcome:
        """The outcome of a run that ended with an error."""
        check = self._expectations.check
        if isinstance(error, MissingToolError) and error.problems[0].code not in (check.codes or ()):
            return _of_error(error, "MissingTool")
        if isinstance(error, ExpectationError) or not os.path.isfile(self._item.path):
            return _of_error(error, "Missing")
        if self._expectations.expects_failure:
            return self._as_expected(error)
        if isinstance(error, UnsupportedError):
            if check.needs is None or any(name.startswith("VK_ARM_") for name in check.needs.extensions):
                return _of_error(error, "NotSupported")
            reason = f"the device has all that 'needs' names, and yet: {error.problems[0]}"
            return _of_error(error, "Fail", reason)
        if isinstance(error, FenceTimeoutError):
            return _of_error(error, "Timeout", f"{error.problems[0]} ({self._runners.limit[1]})")
        return _of_error(error, "Fail")

    def _as_expected(self, error: ScenarioRunnerError) -> Outcome:
        """The outcome where an error is expected: its exit code, and the codes of its errors where they are given."""
        check = self._expectations.check
        if check.exit_code not in (None, error.exit_code):
            reason = f"the run ended with {error.exit_code}, expected {check.exit_code}: {error.problems[0]}"
            return _of_error(error, "Fail", reason)
        codes = {problem.code for problem in error.problems if problem.severity == "error"}
        if check.codes is not None and codes != set(check.codes):
            actual_codes, expected_codes = (", ".join(sorted(names)) for names in (codes, set(check.codes)))
            reason = f"the run ended with the codes {actual_codes}, expected {expected_codes}: {error.problems[0]}"
            return _of_error(error, "Fail", reason)
        return _of_error(error, "Pass")._replace(reason="")

    def _ended(self, plan: Plan) -> Outcome:
        """The outcome of a run that ended well."""
        warnings = tuple(warning.as_json() for warning in plan.warnings)
        if self._expectations.expects_failure:
            code = self._expectations.check.exit_code
            expected_end = ", ".join(self._expectations.check.codes or ()) if code is None else f"the exit code {code}"
            reason = f"the run ended well, expected {expected_end}"
            return Outcome("Fail", reason=reason, diagnostics=warnings)
        bad = [check for check in self._checks if check.status != "Pass"]
        if not bad:
            return Outcome("Pass", diagnostics=warnings, outputs=tuple(self._checks))
        failed = [diagnostic for diagnostic in bad if diagnostic.status == "Fail"]
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
        check = check_output(bound, actual)
        if self._options.results_folder is not None:
            start = time.perf_counter()
            # a sandbox is one for scenarios, not for what is written about them
            check = self._context.run(self._with_evidence, check, bound, actual, self._options.results_folder)
            self.evidence_s += time.perf_counter() - start
        self._checks.append(check)

    def _with_evidence(self, check: OutputCheck, bound: Bound, actual: memoryview, folder: str) -> OutputCheck:
        """Write files about an output that is wrong, in place of those of an earlier run."""
        from scenario_runner.suite.evidence import remove_evidence, write_evidence

        remove_evidence(bound, folder, self._item.id)
        if check.status == "Pass":
            return check
        room = self._options.evidence_bytes_max - self._evidence_bytes
        try:
            files = write_evidence(bound, actual, folder, self._item.id, room)
        except FileError as error:
            return check._replace(message=f"{check.message} (no files about it: {error})")
        self._evidence_bytes += sum(os.path.getsize(os.path.join(folder, path)) for path in files.values())
        if not any(what.startswith("actual") and path[-4:] != ".png" for what, path in files.items()):
            left_out = f"its content is not kept: more than --max-evidence {self._options.evidence_bytes_max >> 20} MiB"
            check = check._replace(message=f"{check.message} ({left_out})")
        return check._replace(files=files)


# With metrics, what elements must be one by one; `nan` then tells which NaN the metrics leave out.
_ELEMENT_KEYS = frozenset({*Rule._fields, "allowed_count", "allowed_share"} - {"nan"})


def check_output(bound: Bound, actual: memoryview) -> OutputCheck:
    """Compare the bytes of an output with what it must hold. Raises FileError where that cannot be read any more."""
    expected, name = bound.expected, bound.output.name
    if expected.unchecked:
        return OutputCheck(name, "Pass")
    if expected.sha256 is not None:
        digest = hashlib.sha256(actual).hexdigest()
        if digest in expected.sha256:
            return OutputCheck(name, "Pass")
        count = len(expected.sha256)
        accepted = "the one that is" if count == 1 else f"one of the {count} that are"
        return OutputCheck(name, "Fail", f"the content has the SHA-256 {digest}, not {accepted} expected")
    assert bound.source is not None
    ignored = bound.ignored()
    metrics: dict[str, float] = {}
    failures: list[tuple[str, str]] = []  # statuses and their reasons
    worst: tuple[tuple[str, str, str], ...] = ()
    if expected.metrics is None or expected.model_fields_set & _ELEMENT_KEYS:
        mismatch = compare(actual, bound.source, bound.compared_planes, bound.rule, ignored)
        allowed = _allowed(bound, mismatch)
        if allowed:
            metrics["wrong_elements"] = float(mismatch.wrong)
        if mismatch.wrong > allowed:
            failures.append(("Fail", _sentence(bound, mismatch, allowed)))
            worst = mismatch.worst
    if expected.metrics is not None:
        failures += _failed_metrics(bound, actual, ignored, metrics)
    if not failures:
        return OutputCheck(name, "Pass", "", metrics)
    if not worst:  # a metric is what is wrong
        worst = compare(actual, bound.source, bound.planes, Rule(), ignored).worst
    is_failure = any(status == "Fail" for status, _ in failures)
    message = "; ".join(reason for _, reason in failures)
    return OutputCheck(name, "Fail" if is_failure else "Warn", message, metrics, worst)


def _allowed(bound: Bound, mismatch: Mismatch) -> int:
    """The number of elements that may be wrong."""
    expected = bound.expected
    if expected.allowed_share is not None:
        # of the decimal number that was written: 0.29 of 100 elements are 29, in binary less
        return math.floor(Fraction(repr(expected.allowed_share)) * (mismatch.total - mismatch.ignored))
    return expected.allowed_count or 0


def _sentence(bound: Bound, mismatch: Mismatch, allowed: int) -> str:
    """The sentence about the wrong elements of an output."""
    count = mismatch.total - mismatch.ignored
    which = (" that counts" if count == 1 else " that count") if mismatch.ignored else ""
    text = f"{mismatch.wrong} of {counted(count, 'element')}{which} ({100 * mismatch.wrong / count:.3g} %) are wrong"
    if allowed:
        key = "allowed_count" if bound.expected.allowed_share is None else "allowed_share"
        text += f", {allowed} may be{_origin(bound, key)}"
    if not mismatch.worst:
        return text
    index, expected, got = mismatch.worst[0]
    if bound.rule.is_bitwise:
        return f"{text} at {index}: {got}, expected {expected}"
    error, _ = distinct(mismatch.error, bound.rule.atol)
    return f"{text}, the greatest error is {error} at {index}: {got}, expected {expected}{_allowed_error(bound)}"


def _allowed_error(bound: Bound) -> str:
    """The bounds in force, with the entries of 'when' that have set them."""
    names = [name for name in Rule._fields if name in bound.expected.model_fields_set]
    bounds = ", ".join(f"{name} {getattr(bound.expected, name)}{_origin(bound, name)}" for name in names)
    return f"; allowed: {bounds}" if bounds else ""


def _origin(bound: Bound, key: str) -> str:
    entry = bound.expectations.origins(bound.output.name).get(key)
    return f" ({entry})" if entry else ""


def _failed_metrics(
    bound: Bound, actual: memoryview, ignored: Array | None, metrics: dict[str, float]
) -> Iterator[tuple[str, str]]:
    """The status and the reason of the metrics that are out of their bounds; the values of all go into ``metrics``."""
    pairs = pairs_of(bound.planes, actual, bound.expected_bytes(), ignored, without_nan=bound.expected.nan == "any")
    for name, metric in METRICS.items():
        bounds = getattr(bound.expected.metrics, name)
        if bounds is None:
            continue
        try:
            value = metric.value(pairs)
        except ValueError as error:
            status, message = "Fail", f"{name} cannot be computed: {error}"
        else:
            status, message = verdict(metric, bounds, value)
            if math.isfinite(value):  # JSON has no other numbers
                metrics[name] = value
        if status != "Pass":
            yield status, message + _origin(bound, "metrics")
