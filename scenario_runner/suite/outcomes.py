"""Records of a suite: items, outcomes of attempts, results, and problems of the suite.

::

    Item ──a worker runs and compares──▶ Outcome ──attempts, lists──▶ Result ──▶ journal, reports

Workers send outcomes as JSON, and the journal keeps results as JSON (`as_json`).

`SuiteProblems` collects problems that belong to no item, such as a damaged list. It shows them at once, and the suite
goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final, Literal, NamedTuple, NoReturn

from scenario_runner.errors import ScenarioRunnerError, error_of
from scenario_runner.errors.diagnostic import Diagnostic, Severity
from scenario_runner.errors.text import Json

_NOTHING: Final[Mapping[str, Json]] = {}

Status = Literal["Pass", "Warn", "Fail", "NotSupported", "MissingTool", "Skip", "Crash", "Timeout", "Missing"]
"""An attempt's status. Missing: the scenario or the expectations are unusable. MissingTool: this machine lacks a
tool (`MissingToolError`)."""

NOT_RUN: Final = frozenset({"NotSupported", "MissingTool", "Skip"})
"""The statuses of items that did not run and did not fail."""

BAD: Final = frozenset({"Fail", "Crash", "Timeout", "Missing"})
"""The statuses of failures. A list may expect them."""


def is_bad(verdict: str) -> bool:
    """Return whether a verdict is an unexpected failure or an unexpected improvement."""
    return verdict in BAD or verdict.startswith("UnexpectedImprovement")


class Item(NamedTuple):
    """A scenario or a model with expectations.

    ``id`` is the name in lists and reports: the path of the scenario with "/", relative to the root of the suite if
    possible. ``path`` is absolute. ``expectations`` is the path of the file with expectations, or None without such a
    file. ``defaults`` lists the files ``suite.json`` of the folder and the folders above, the nearest first.
    ``parameters`` has a combination's values by name; ``variant``, such as ``[4-true]``, then ends the id.
    """

    id: str
    path: str
    expectations: str | None = None
    defaults: tuple[str, ...] = ()
    parameters: Mapping[str, Json] = _NOTHING
    variant: str = ""


class OutputCheck(NamedTuple):
    """The result of comparing an output, or an output's captured frame.

    ``name`` is the uid of the resource, or "frame/uid" for a captured frame. ``message`` is a sentence about the
    difference, empty for a Pass. ``metrics`` has measured errors by name, and ``allowed`` tells the bounds of single
    elements. ``worst`` lists index, expected value and actual value of the elements with the greatest errors. ``files``
    maps "expected", "actual" and "error" to pictures or arrays; paths are relative to the folder of results.
    """

    name: str
    status: Literal["Pass", "Warn", "Fail"]
    message: str = ""
    metrics: Mapping[str, float] = _NOTHING
    worst: tuple[tuple[str, str, str], ...] = ()
    files: Mapping[str, str] = _NOTHING
    allowed: str = ""


class Outcome(NamedTuple):
    """The outcome of an attempt to run an item.

    ``reason`` is a sentence about a status other than Pass. ``exit_code`` is the exit code of ``scenario-runner run``
    for the same scenario (see `errors`). ``diagnostics`` are JSON from `Diagnostic.as_json`. ``printed`` has the first
    lines that shaders printed in a failed run. ``lines`` has the lines of broken expectations by output; the key ""
    stands for an expected error. ``expected_fail`` is the reason why expectations let the item fail; it is empty for
    an item that did not reach a comparison. ``is_uncompared`` is true for a Pass with outputs and no expectations.

    ``stack`` is the native stack of a crashed worker, or the traceback of a defect. ``python_stack`` is the Python
    stack of a worker that crashed or was killed. ``output`` is the end of the worker's standard error. The worker had
    run ``before_count`` items before; ``before`` lists the last of them, the most recent last. ``crash`` tells crashes
    apart: the exit code of the worker (negative for a signal) and the kind of work, or the exit code and the type of a
    defect.
    """

    status: Status
    seconds: float = 0.0
    reason: str = ""
    exit_code: int = 0
    diagnostics: tuple[dict[str, Json], ...] = ()
    outputs: tuple[OutputCheck, ...] = ()
    stack: str = ""
    output: str = ""
    before: tuple[str, ...] = ()
    before_count: int = 0
    python_stack: str = ""
    printed: tuple[str, ...] = ()
    lines: Mapping[str, int] = _NOTHING
    crash: tuple[int, str] | tuple[()] = ()
    expected_fail: str = ""
    is_uncompared: bool = False

    def as_json(self) -> dict[str, object]:
        """Return the fields that differ from the defaults: most items pass, and have a short line."""
        fields = {
            name: value for name, value in self._asdict().items() if value != self._field_defaults.get(name, None)
        }
        if self.outputs:
            fields["outputs"] = [output._asdict() for output in self.outputs]
        return fields

    @classmethod
    def of_json(cls, fields: dict[str, Json]) -> Outcome:
        """Read an outcome from JSON."""
        outputs = tuple(
            OutputCheck(**{**output, "worst": tuple(map(tuple, output["worst"]))})
            for output in fields.get("outputs", ())
        )
        lists = {name: tuple(value) for name, value in fields.items() if isinstance(value, list)}
        return cls(**{**fields, **lists, "outputs": outputs})


class Hashes(NamedTuple):
    """Hashes of all files that decide a result (SHA-256 in hexadecimal, "" if unknown). A change voids the result."""

    scenario: str = ""
    inputs: str = ""
    expectations: str = ""
    program: str = ""


class Result(NamedTuple):
    """The verdict on an item.

    ``verdict`` is the status of the last attempt, unless lists or several attempts change it to "Flake", "KnownFlake",
    "ExpectedFail" or "UnexpectedImprovement(Pass)". A skipped item has no ``attempts``. ``device`` is the UUID of the
    physical device, ``driver`` the name and version of the driver. ``host`` is the name of another machine that ran
    the item.
    """

    item: Item
    verdict: str
    attempts: tuple[Outcome, ...] = ()
    device: str = ""
    driver: str = ""
    hashes: Hashes = Hashes()
    host: str = ""

    @property
    def is_bad(self) -> bool:
        """Return whether the verdict counts as a failure."""
        return is_bad(self.verdict)

    @property
    def last(self) -> Outcome | None:
        return self.attempts[-1] if self.attempts else None

    @property
    def is_uncompared(self) -> bool:
        """Return whether the item passed without a comparison of outputs."""
        return self.verdict == "Pass" and self.last is not None and self.last.is_uncompared

    @property
    def seconds(self) -> float:
        return sum(attempt.seconds for attempt in self.attempts)

    def as_json(self) -> dict[str, Json]:
        return {
            "item": self.item._asdict(),
            "verdict": self.verdict,
            "attempts": [attempt.as_json() for attempt in self.attempts],
            "device": self.device,
            "driver": self.driver,
            "hashes": self.hashes._asdict(),
            **({"host": self.host} if self.host else {}),
        }


class EvaluationOptions(NamedTuple):
    """Options of comparisons.

    ``results_folder`` gets files about failed outputs, in a folder for each item; None writes no files. All arrays of
    an item have at most ``evidence_bytes_max`` bytes. With ``require_expectations``, an item that has outputs and no
    expectations is Missing.
    """

    results_folder: str | None = None
    evidence_bytes_max: int = 64 << 20
    require_expectations: bool = False


class SuiteProblems:
    """Life cycle: problems are `found` and shown; at the end, ``exit_code`` belongs to the first error, or is 0.

    With ``strict``, the first problem or warning is raised instead. A `together` block raises its problems at the end.
    """

    def __init__(self, show: Callable[[Diagnostic], None], *, strict: bool = False) -> None:
        self._show = show
        self._strict = strict
        self.exit_code = 0
        self._held: list[Diagnostic] | None = None

    @contextmanager
    def together(self) -> Iterator[None]:
        """Collect errors in a block, and raise them as a single error at the end."""
        self._held = []
        with self.holding():
            yield
        held, self._held = self._held, None
        if held:
            raise error_of(held)

    @contextmanager
    def holding(self) -> Iterator[None]:
        """Collect an error in a part of a `together` block, so that the code after the part runs."""
        try:
            yield
        except ScenarioRunnerError as error:
            if self._held is None:
                raise
            self._held += error.problems

    def found(
        self,
        code: str,
        path: str | None,
        message: str,
        help: str | None = None,
        *,
        line: int | None = None,
        severity: Severity = "error",
    ) -> None:
        """Show a problem. Raises the error of its code with ``strict``."""
        problem = Diagnostic(code, severity, None, message, help, path, line)
        if self._strict:
            if self._held is None:
                raise error_of([problem])
            self._held.append(problem)
            return
        if severity == "error":
            self.exit_code = self.exit_code or error_of([problem]).exit_code
        self._show(problem)

    def show_all(self, problems: Sequence[Diagnostic]) -> None:
        """Show problems of items that cannot run. Raises all of them with ``strict``."""
        if self._strict and problems:
            raise error_of(problems)
        for problem in problems:
            self._show(problem)

    def failed(self, error: ScenarioRunnerError) -> None:
        """Show the problems of an error that ended a part of the suite. The suite goes on."""
        self.exit_code = self.exit_code or error.exit_code
        for problem in error.problems:
            self._show(problem)


def refuse(code: str, path: str | None, message: str, help: str | None = None, line: int | None = None) -> NoReturn:
    """Raise the error of a code at a place."""
    raise error_of([Diagnostic(code, "error", None, message, help, path, line)])
