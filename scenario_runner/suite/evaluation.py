"""An item's run in this process, with comparisons as results come from the device.

::

    load ──▶ plan ──▶ bind expectations to outputs ──▶ run ──▶ check each output ──▶ Outcome

Errors in expectations end the item before anything runs. Only failed outputs get files.
"""

import hashlib
import math
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import suppress
from contextvars import copy_context
from fractions import Fraction
from typing import Final

import numpy

from scenario_runner.compare.metrics import pairs_of, verdict
from scenario_runner.compare.tosa_rules import judge
from scenario_runner.compare.wrong_elements import BITWISE, Mismatch, Rule, compare
from scenario_runner.errors import (
    DeviceError,
    ExpectationError,
    FenceTimeoutError,
    FileError,
    MissingToolError,
    ScenarioRunnerError,
    UnsupportedError,
)
from scenario_runner.errors.text import close_names, counted, did_you_mean, distinct, share_of
from scenario_runner.files.elements import Array
from scenario_runner.files.sandbox import around, check_path
from scenario_runner.plan.plan import FramePlan, Plan
from scenario_runner.run.capture_files import FrameFolders
from scenario_runner.run.output_files import OutputFiles, Receive, Sink
from scenario_runner.runner import Runner
from scenario_runner.suite.discovery import SUITE_FILE
from scenario_runner.suite.expectations.format import METRICS, Needs
from scenario_runner.suite.expectations.outputs import outputs_of_plan, scenario_of
from scenario_runner.suite.expectations.reading import Expectations, load
from scenario_runner.suite.expectations.validation import Bound, bind
from scenario_runner.suite.outcomes import BAD, EvaluationOptions, Item, Outcome, OutputCheck, Status
from scenario_runner.suite.worker_task import Runners
from scenario_runner.vulkan._generated.extension_names import DEVICE_EXTENSIONS
from scenario_runner.vulkan.capabilities import lacks_capability, lacks_feature
from scenario_runner.vulkan.physical_device import PhysicalDevice

_MOST_PRINTED: Final = 1000


def lacking(needs: Needs, physical: PhysicalDevice) -> Iterator[str]:
    """Yield the needs that a device lacks, in words."""
    for name in needs.capabilities:
        missing = lacks_capability(physical, name)
        if missing:
            yield f"the capability {name}: {missing}"
    yield from (f"the feature {name}" for name in needs.features if lacks_feature(physical, name))
    for name in needs.extensions:
        if name not in physical.extensions:
            is_known = name in DEVICE_EXTENSIONS  # an unknown extension may be newer than this program
            close = () if is_known else close_names(name, DEVICE_EXTENSIONS, most=1, cutoff=0.8)
            yield f"the extension {name}{did_you_mean(close)}"


class Refused(Exception):  # noqa: N818  (control flow of an item's run)
    """The end of an item before the run, with a status and a reason."""


class ItemRun(Sink, ABC):
    """A run of an item. `compare` gets each output with an expectation, and the bytes.

    ``with_misfits`` leaves expectations that do not fit an output to `compare`.
    """

    with_misfits = False

    def __init__(self, item: Item, expectations: Expectations, runners: Runners) -> None:
        self.item = item
        self.expectations = expectations
        self.runners = runners
        self.runner = self._chosen_runner()

    def execute(self) -> Plan:
        """Run the scenario. Raises `Refused` if the item cannot run here, and the errors of `Runner.run_into`."""
        if self.expectations.written.when:
            self.expectations = self.expectations.for_device(self.runner.physical_device)
            self._chosen_runner()  # sets the time limit for this device
        check = self.expectations.check
        if check.not_supported is not None:
            raise Refused("NotSupported", check.not_supported)
        if check.convert is not None:
            with around(self.item.path):
                self._convert(self.expectations.path_to(check.convert))
        with around(self.item.path):
            scenario = scenario_of(self.item, self.expectations)
        return self.runner.run_into(scenario, self._sink, repeat=check.repeat, keep_state=check.keep_state)

    def _convert(self, model: str) -> None:
        """Convert a model, since an error of the conversion is expected. Raises ExpectationError without the model."""
        check_path(model)
        if not os.path.isfile(model):
            raise ExpectationError(self.expectations.problem("SR-EXPECT-007", "/convert", f"{model}: is no file"))
        from scenario_runner.tosa.conversion import convert  # takes a fifth of a worker's start, for few items

        convert(model)

    @abstractmethod
    def compare(self, bound: Bound, actual: memoryview) -> None:
        """Take a complete output."""

    def _chosen_runner(self) -> Runner:
        robustness = self.expectations.check.robustness or None
        return self.runners.runner(*self.expectations.timeout, robustness=robustness)

    def _sink(self, plan: Plan) -> Sink:
        """Check needs, and bind expectations to outputs, before anything runs."""
        check = self.expectations.check
        if check.needs is not None:
            self._refuse(check.needs, plan)
        if self.expectations.expects_failure:
            OutputFiles(plan).check()  # the expected error may be about the names of files
        self._bounds = bind(self.expectations, outputs_of_plan(plan, check.repeat), with_misfits=self.with_misfits)
        self._plan, self._frames = plan, FrameFolders(check.repeat)
        self.captures = any(bound.output.is_frame for bound in self._bounds.values())
        return self

    def frame(self, iteration: int, frame: FramePlan) -> Receive:
        """Open the receiver for a frame's captures."""
        return self._receiver(f"{self._frames.name(iteration, frame.frame_id) if frame.captures else ''}/")

    def outputs(self) -> Receive:
        """Open the receiver for outputs."""
        return self._receiver("")

    def _receiver(self, folder: str) -> Receive:
        """Return a receiver that joins pieces of resources. Names of outputs begin with ``folder``."""
        held = bytearray()

        def receive(uid: str, view: memoryview) -> None:
            nonlocal held
            bound = self._bounds.get(folder + uid)
            if bound is None:
                return
            size = self._plan.resources[uid].size_bytes
            if view.nbytes < size:  # most resources come in a single piece
                held += view
                if len(held) < size:
                    return
                view, held = memoryview(held), bytearray()
            self.compare(bound, view.cast("B")[: bound.output.size_bytes] if size else memoryview(b""))

        return receive

    def _refuse(self, needs: Needs, plan: Plan) -> None:
        """Raise `Refused` if the device lacks needs, or if no shader declares a needed capability."""
        declared = plan.requirements.capabilities.keys() | plan.requirements.graph_capabilities.keys()
        for name in needs.capabilities:
            if name not in declared and not self._allows_more(needs):
                raise Refused("Fail", f"'needs' names the capability {name}, which no shader declares")
        lacks = ", ".join(lacking(needs, self.runner.physical_device))
        if lacks:
            raise Refused("NotSupported", f"{self.runner.physical_device.name!r} lacks {lacks}")
        if needs.at_least:
            self.runner.also_enabled = (*needs.features, *needs.extensions)

    def _allows_more(self, needs: Needs) -> bool:
        """Return whether the item may need more than ``needs``: the needs of a whole suite are such a minimum."""
        return needs.at_least or "needs" in self.expectations.defaults


def error_codes(error: ScenarioRunnerError) -> list[str]:
    """Return the sorted codes of all errors in a run."""
    return sorted({problem.code for problem in error.problems if problem.severity == "error"})


def run_item(item: Item, runners: Runners, options: EvaluationOptions | None = None) -> Outcome:
    """Run an item and compare the results. A ScenarioRunnerError becomes an outcome."""
    start = time.perf_counter()
    try:
        expectations = load(item)
    except ScenarioRunnerError as error:
        outcome = of_error(error)
    else:
        evaluation = _Evaluation(item, expectations, runners, options or EvaluationOptions())
        evaluation.runner.printed.clear()  # text of the item before
        outcome = evaluation.outcome()
        if outcome.status in BAD:
            outcome = outcome._replace(printed=tuple(map(str, evaluation.runner.printed[:_MOST_PRINTED])))
        start += evaluation.evidence_s  # the time to write files does not count
    return outcome._replace(seconds=time.perf_counter() - start)


def of_error(error: ScenarioRunnerError, status: Status | None = None, reason: str = "") -> Outcome:
    """Make an item's outcome from an error. The default status depends on the error type."""
    if status is None:
        status = "NotSupported" if isinstance(error, UnsupportedError) else "Missing"
        status = "MissingTool" if isinstance(error, MissingToolError) else status
    more = f" (and {len(error.problems) - 1} more)" if len(error.problems) > 1 else ""
    diagnostics = tuple(problem.as_json() for problem in error.problems)
    return Outcome(status, 0.0, reason or f"{error.problems[0]}{more}", error.exit_code, diagnostics)


class _Evaluation(ItemRun):
    """A run of an item that gives an outcome."""

    def __init__(self, item: Item, expectations: Expectations, runners: Runners, options: EvaluationOptions) -> None:
        super().__init__(item, expectations, runners)
        self._options = options
        self._checks: list[OutputCheck] = []
        self._lines: dict[str, int] = {}
        self._context = copy_context()
        self._evidence_bytes = 0
        self.evidence_s = 0.0

    def outcome(self) -> Outcome:
        """Run the item, and return the outcome without the time."""
        outcome = self._run()
        reason = self.expectations.check.expected_fail
        if reason is None or self.expectations.expects_failure or outcome.status not in ("Pass", "Warn", "Fail"):
            return outcome
        found = f" ({outcome.reason})" if outcome.reason else ""
        return outcome._replace(expected_fail=reason, reason=f"expected to fail: {reason}{found}")

    def _run(self) -> Outcome:
        try:
            return self._ended(self.execute())
        except Refused as refused:
            status, reason = refused.args
            return Outcome(status, reason=reason)
        except ScenarioRunnerError as error:
            if isinstance(error, DeviceError):
                with suppress(ScenarioRunnerError):  # errors about closing matter less
                    self.runner.close()
            return self._failed(error)

    def _failed(self, error: ScenarioRunnerError) -> Outcome:
        """Make the outcome of a run from an error."""
        check = self.expectations.check
        if isinstance(error, MissingToolError) and error.problems[0].code not in (check.codes or ()):
            return of_error(error, "MissingTool")
        if isinstance(error, ExpectationError) or not os.path.isfile(self.item.path):
            return of_error(error, "Missing")
        if self.expectations.expects_failure:
            return self._as_expected(error)
        if isinstance(error, UnsupportedError):
            needs = check.needs
            is_ml = needs is not None and any(name.startswith("VK_ARM_") for name in needs.extensions)
            if needs is None or is_ml or self._allows_more(needs):
                return of_error(error, "NotSupported")
            reason = f"the device meets 'needs', but the run ended with: {error.problems[0]}"
            return of_error(error, "Fail", reason)
        if isinstance(error, FenceTimeoutError):
            return of_error(error, "Timeout", f"{error.problems[0]} ({self.runners.limit[1]})")
        return of_error(error, "Fail")

    def _as_expected(self, error: ScenarioRunnerError) -> Outcome:
        """Make the outcome of an expected error, by exit code and codes."""
        check = self.expectations.check
        if check.exit_code not in (None, error.exit_code):
            reason = f"the run ended with {error.exit_code}, expected {check.exit_code}: {error.problems[0]}"
            return self._unexpected(of_error(error, "Fail", reason), "exit_code")
        codes = error_codes(error)
        if check.codes is not None and set(codes) != set(check.codes):
            expected_codes = ", ".join(sorted(set(check.codes)))
            reason = f"the run ended with the codes {', '.join(codes)}, expected {expected_codes}: {error.problems[0]}"
            return self._unexpected(of_error(error, "Fail", reason), "codes")
        return of_error(error, "Pass")._replace(reason="")

    def _unexpected(self, outcome: Outcome, key: str) -> Outcome:
        """Add the line of the key that expects another error."""
        self._add_line("", f"/{key}")
        return outcome._replace(lines=self._lines)

    def _add_line(self, name: str, pointer: str) -> None:
        """Note the line of a broken expectation, if it has a line."""
        line = self.expectations.problem(ExpectationError.code, pointer, "").line
        if line is not None:
            self._lines[name] = line

    def _ended(self, plan: Plan) -> Outcome:
        """Make the outcome of a run without an error."""
        warnings = tuple(warning.as_json() for warning in plan.warnings)
        if self.expectations.expects_failure:
            check = self.expectations.check
            codes = ", ".join(check.codes or ("an error",))
            expected_end = codes if check.exit_code is None else f"the exit code {check.exit_code}"
            reason = f"the run ended without an error, expected {expected_end}"
            key = "codes" if check.exit_code is None else "exit_code"
            return self._unexpected(Outcome("Fail", reason=reason, diagnostics=warnings), key)
        outputs = tuple(self._checks)
        bad = [check for check in outputs if check.status != "Pass"]
        bad.sort(key=lambda check: check.status)  # Fail first
        if not bad:
            return Outcome("Pass", diagnostics=warnings, outputs=outputs)
        more = f" (and {counted(len(bad) - 1, 'more output')})" if len(bad) > 1 else ""
        reason = f"{bad[0].name}: {bad[0].message}{more}"
        return Outcome(bad[0].status, reason=reason, diagnostics=warnings, outputs=outputs, lines=self._lines)

    def compare(self, bound: Bound, actual: memoryview) -> None:
        """Check an output, and write files if the check fails."""
        check = check_output(bound, actual)
        if check.status != "Pass":
            self._add_line(check.name, self.expectations.pointer_to(check.name))
        if self._options.results_folder is not None:
            start = time.perf_counter()
            # this context has no sandbox: a scenario does not decide where evidence is written
            check = self._context.run(self._with_evidence, check, bound, actual, self._options.results_folder)
            self.evidence_s += time.perf_counter() - start
        self._checks.append(check)

    def _with_evidence(self, check: OutputCheck, bound: Bound, actual: memoryview, folder: str) -> OutputCheck:
        """Replace an earlier run's files about an output, and return the check with the new files."""
        from scenario_runner.suite.evidence import remove_evidence, write_evidence

        remove_evidence(bound, folder, self.item.id)
        if check.status == "Pass":
            return check
        room = self._options.evidence_bytes_max - self._evidence_bytes
        try:
            files = write_evidence(bound, actual, folder, self.item.id, room)
        except FileError as error:
            return check._replace(message=f"{check.message} (files about it could not be written: {error})")
        self._evidence_bytes += sum(os.path.getsize(os.path.join(folder, path)) for path in files.values())
        if not any(what.startswith("actual") and path[-4:] != ".png" for what, path in files.items()):
            left_out = f"content left out: more than --max-evidence {self._options.evidence_bytes_max >> 20} MiB"
            check = check._replace(message=f"{check.message} ({left_out})")
        return check._replace(files=files)


# Keys about single elements, even beside metrics. There, `nan` selects the elements for metrics.
_ELEMENT_KEYS = frozenset({*Rule._fields, "allowed_count", "allowed_share"} - {"nan"})


def check_output(bound: Bound, actual: memoryview) -> OutputCheck:
    """Compare the bytes of an output with the expectation. Raises FileError if expected content is unreadable."""
    expected, name = bound.expected, bound.output.name
    if expected.unchecked:
        return OutputCheck(name, "Pass")
    if expected.sha256 is not None:
        digest = hashlib.sha256(actual).hexdigest()
        if digest in expected.sha256:
            return OutputCheck(name, "Pass")
        count = len(expected.sha256)
        accepted = "the expected one" if count == 1 else f"one of the {count} expected ones"
        return OutputCheck(name, "Fail", f"the content has the SHA-256 {digest}, not {accepted}")
    if expected.tosa is not None:
        (plane,) = bound.planes
        array = numpy.frombuffer(actual, bound.element.dtype).reshape(plane.shape)
        judgement = judge(array, bound.tosa_rule())
        return OutputCheck(name, "Pass" if judgement.passed else "Fail", judgement.message, worst=judgement.worst)
    assert bound.source is not None
    ignored = bound.ignored()
    metrics: dict[str, float] = {}
    failures: list[tuple[str, str]] = []  # statuses and their reasons
    worst: tuple[tuple[str, str, str], ...] = ()
    if expected.metrics is None or expected.model_fields_set & _ELEMENT_KEYS:
        mismatch = compare(actual, bound.source, bound.compared_planes, bound.rule, ignored)
        allowed = expected.allowed_count or 0
        if expected.allowed_share is not None:
            # 0.29 of 100 elements must be 29 elements: as a binary fraction, 0.29 is less
            allowed = math.floor(Fraction(repr(expected.allowed_share)) * (mismatch.total - mismatch.ignored))
        if allowed:
            metrics["wrong_elements"] = float(mismatch.wrong)
        if mismatch.wrong > allowed:
            failures.append(("Fail", _sentence(bound, mismatch, allowed)))
            worst = mismatch.worst
    if expected.metrics is not None:
        failures += _failed_metrics(bound, actual, ignored, metrics)
    if not failures:
        return OutputCheck(name, "Pass", "", metrics)
    if not worst:  # only metrics have failed
        worst = compare(actual, bound.source, bound.planes, Rule(), ignored).worst
    is_failure = any(status == "Fail" for status, _ in failures)
    message = "; ".join(reason for _, reason in failures)
    return OutputCheck(name, "Fail" if is_failure else "Warn", message, metrics, worst)


def _sentence(bound: Bound, mismatch: Mismatch, allowed: int) -> str:
    """Return a sentence about an output's wrong elements."""
    count = mismatch.total - mismatch.ignored
    noun = "compared element" if mismatch.ignored else "element"
    text = f"{share_of(mismatch.wrong, count, noun)} wrong"
    if allowed:
        key = "allowed_count" if bound.expected.allowed_share is None else "allowed_share"
        text += f", {allowed} may be{_origin(bound, key)}"
    if not mismatch.worst:
        return text
    index, expected, got = mismatch.worst[0]
    if bound.rule == BITWISE:
        return f"{text} at {index}: {got}, expected {expected}"
    error, _ = distinct(mismatch.error, bound.rule.atol)
    names = [name for name in Rule._fields if name in bound.expected.model_fields_set]
    bounds = ", ".join(f"{name} {getattr(bound.expected, name)}{_origin(bound, name)}" for name in names)
    text += f", the greatest error is {error} at {index}: {got}, expected {expected}"
    return f"{text}; allowed: {bounds}" if bounds else text


def _origin(bound: Bound, key: str) -> str:
    """Return where a key was set, in parentheses: in an entry of 'when' or in suite.json; otherwise ""."""
    own = bound.expectations.check.outputs.get(bound.output.name)
    if own is None or key not in own.model_fields_set:
        return f" ({SUITE_FILE})"
    pointer = bound.expectations.pointer_to(bound.output.name, f"/{key}")
    return f" (when[{bound.expectations.condition}])" if pointer.startswith("/when/") else ""


def _failed_metrics(
    bound: Bound, actual: memoryview, ignored: Array | None, metrics: dict[str, float]
) -> Iterator[tuple[str, str]]:
    """Yield status and reason of each metric beyond a bound. Add all values to ``metrics``."""
    pairs = pairs_of(bound.planes, actual, bound.expected_bytes(), ignored, bound.expected.nan == "any")
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
