"""An item's run in this process, with comparisons as results come from the device.

::

    load ──▶ plan ──▶ bind expectations to outputs ──▶ run ──▶ check each output ──▶ Outcome

Errors in expectations end the item before anything runs. Only failed outputs get files.
"""

import os
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import suppress
from contextvars import copy_context
from typing import Final

from scenario_runner.errors import (
    DeviceError,
    ExpectationError,
    FenceTimeoutError,
    FileError,
    MissingToolError,
    ScenarioRunnerError,
    UnsupportedError,
)
from scenario_runner.errors.diagnostic import Diagnostic
from scenario_runner.errors.text import close_names, counted, did_you_mean, listed
from scenario_runner.files.sandbox import around, check_path
from scenario_runner.plan.plan import FramePlan, Plan
from scenario_runner.run.capture_files import FrameFolders
from scenario_runner.run.output_files import OutputFiles, Receive, Sink
from scenario_runner.runner import Runner
from scenario_runner.suite.expectations.format import Needs
from scenario_runner.suite.expectations.outputs import outputs_of_plan, scenario_of
from scenario_runner.suite.expectations.reading import Expectations, load
from scenario_runner.suite.expectations.rules import Bound, check_rules
from scenario_runner.suite.expectations.validation import bind
from scenario_runner.suite.outcomes import BAD, EvaluationOptions, Item, Outcome, OutputCheck, Status
from scenario_runner.suite.worker_task import Runners
from scenario_runner.vulkan._generated.extensions import DEVICE_EXTENSIONS
from scenario_runner.vulkan.capabilities import lacks_capability, lacks_feature
from scenario_runner.vulkan.physical_device import PhysicalDevice

_MOST_PRINTED: Final = 1000
_MOST_NAMED: Final = 20  # outputs in a message


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
    """A run of an item. `compare` gets each output with rules, and the bytes.

    ``with_misfits`` leaves rules that do not fit an output to `compare`. Outputs that must be equal are held until all
    outputs have come.
    """

    with_misfits = False
    requires_expectations = False

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
        plan = self.runner.run_into(scenario, self._sink, repeat=check.repeat, keep_state=check.keep_state)
        for name, content in self._held.items():
            self.compare([bound.with_contents(self._held) for bound in self._bounds[name]], memoryview(content))
        return plan

    def _convert(self, model: str) -> None:
        """Convert a model. The expectations say which error the converter should report.

        Raises ExpectationError if the model is not a file.
        """
        check_path(model)
        if not os.path.isfile(model):
            raise ExpectationError(self.expectations.problem("SR-EXPECT-007", "/convert", f"{model}: is not a file"))
        from scenario_runner.tosa.conversion import convert  # takes a fifth of a worker's start, for few items

        convert(model)

    @abstractmethod
    def compare(self, bounds: Sequence[Bound], actual: memoryview) -> None:
        """Compare a complete output with its rules; ``bounds`` is not empty."""

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
        outputs = outputs_of_plan(plan, check.repeat)
        self._bounds = bind(self.expectations, outputs, with_misfits=self.with_misfits)
        self.is_uncompared = bool(outputs) and not self._bounds and not self.expectations.expects_failure
        if self.is_uncompared and self.requires_expectations:
            message = f"no expectation is compared with the outputs: {listed(list(outputs)[:_MOST_NAMED])}"
            help = "write a check.json, or let --update write files"
            raise ExpectationError(Diagnostic("SR-EXPECT-005", "error", None, message, help, path=self.item.path))
        self._plan, self._frames = plan, FrameFolders(check.repeat)
        rules = (bound for bounds in self._bounds.values() for bound in bounds)
        pairs = [(bound.output.name, bound.expected.equals) for bound in rules if bound.expected.equals is not None]
        self._equal = {name for pair in pairs for name in pair}
        self._held: dict[str, bytes] = {}
        self.captures = any(bounds[0].output.is_frame for bounds in self._bounds.values())
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
            name = folder + uid
            bounds = self._bounds.get(name)
            if bounds is None:
                return
            size = self._plan.resources[uid].size_bytes
            if view.nbytes < size:  # most resources come in a single piece
                held += view
                if len(held) < size:
                    return
                view, held = memoryview(held), bytearray()
            content = view.cast("B")[: bounds[0].output.size_bytes] if size else memoryview(b"")
            if name in self._equal:
                self._held[name] = bytes(content)
            else:
                self.compare(bounds, content)

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
        """Return whether ``needs`` is a minimum: with ``at_least``, or from the defaults of a suite."""
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
        self.requires_expectations = options.require_expectations
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
            return Outcome("Pass", diagnostics=warnings, outputs=outputs, is_uncompared=self.is_uncompared)
        more = f" (and {counted(len(bad) - 1, 'more output')})" if len(bad) > 1 else ""
        reason = f"{bad[0].name}: {bad[0].message}{more}"
        return Outcome(bad[0].status, reason=reason, diagnostics=warnings, outputs=outputs, lines=self._lines)

    def compare(self, bounds: Sequence[Bound], actual: memoryview) -> None:
        """Check an output, and write files if the check fails."""
        check, bound = check_rules(bounds, actual)
        if check.status != "Pass":
            self._add_line(check.name, bound.pointer())
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
