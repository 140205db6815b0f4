"""Records of a suite: items, outcomes of attempts, and results. The suite's lists decide about retries
(`RetryRules`) and verdicts.

::

    Item ──a worker runs and compares──▶ Outcome ──attempts, lists──▶ Result ──▶ journal, reports

Workers send outcomes as JSON, and the journal keeps results as JSON (`as_json`). deqp-runner reads the verdict tables.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal, NamedTuple, get_args

from scenario_runner.errors.text import Json, counted
from scenario_runner.files.output import OutputFile

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


STATUSES: Final[tuple[str, ...]] = get_args(Status)

_IMPROVED: Final = re.compile(r"UnexpectedImprovement(?:\((\w+)\))?")


class Expected(NamedTuple):
    """The entries for an item in the lists: the status in a baseline, if any, and whether the item is a known flake."""

    status: str | None = None
    is_flake: bool = False


UNLISTED: Final = Expected()


def expected_status(word: str) -> str | None:
    """Return the status that a word of a baseline expects, "KnownFlake", or None for the word "Flake".

    A baseline may be the failures.csv of a run, which has verdicts. Raises ValueError for other words.
    """
    improved = _IMPROVED.fullmatch(word)
    if improved:
        word = improved[1] or "Pass"
    if word == "Flake":
        return None
    if word == "ExpectedFail":
        return "Fail"
    if word not in STATUSES and word != "KnownFlake":
        raise ValueError(word)
    return word


def is_verdict(word: str) -> bool:
    """Return whether `RetryRules.verdict` can give a word."""
    improved = _IMPROVED.fullmatch(word)
    return (improved[1] if improved else word) in STATUSES or word in ("Flake", "KnownFlake", "ExpectedFail")


def not_run(verdicts: Iterable[str], count: int, reason: str) -> str:
    """Return a sentence if no item is supported, with the reason of the first item; else ""."""
    if {*verdicts, "Skip"} != {"NotSupported", "Skip"}:
        return ""
    return f"none of {counted(count, 'item')} could run: {reason}"


def judged(status: str, expected: str | None) -> str:
    """Return the verdict on an attempt, by the status that a baseline expects."""
    if expected is None or status == "MissingTool":
        return status
    if listed(status) == listed(expected):
        return "ExpectedFail" if status in BAD else status
    if expected not in BAD:
        return status
    if status not in BAD or (status == "Fail" and expected in ("Crash", "Timeout")):
        return f"UnexpectedImprovement({listed(status)})"
    return status


def judged_outcome(outcome: Outcome, expected: Expected) -> str:
    """Return the verdict on an attempt. An entry in a baseline comes before the item's own ``expected_fail``."""
    own = "Fail" if outcome.expected_fail else None
    return judged(outcome.status, own if expected.status is None else expected.status)


class RetryRules(NamedTuple):
    """The number of attempts for an item: ``repeat`` good attempts, and ``retries`` more after an unexpected status."""

    retries: int = 1
    repeat: int = 1

    def again(self, expected: Expected, attempts: Sequence[Outcome]) -> bool:
        """Return whether an item with these attempts, at least one, runs once more."""
        first = self._first_bad(expected, attempts)
        if first is None:
            return len(attempts) < self.repeat and attempts[-1].status not in NOT_RUN
        if expected.is_flake or attempts[first].status == "Missing":
            return False  # the verdict is known, or the next attempt would find the same files
        return attempts[-1].status == attempts[first].status and len(attempts) - 1 - first < self.retries

    def replayed(self, expected: Expected, attempts: tuple[Outcome, ...]) -> tuple[Outcome, ...] | None:
        """Return the earlier attempts that these rules need, or None if there are too few."""
        ends = (count for count in range(1, len(attempts) + 1) if not self.again(expected, attempts[:count]))
        return next((attempts[:count] for count in ends), None)

    def verdict(self, expected: Expected, attempts: Sequence[Outcome]) -> str:
        """Return the verdict on an item with these attempts, at least one.

        After an unexpected status, another status makes the item a flake, which is not a failure.
        """
        first = self._first_bad(expected, attempts)
        if first is None:
            return judged_outcome(attempts[-1], expected)
        if expected.is_flake:
            return "KnownFlake"
        # Missing shows nothing: the crash may have left no device for the next attempt.
        if any(attempt.status not in (attempts[first].status, "Missing") for attempt in attempts[first:]):
            return "Flake"
        return judged_outcome(attempts[-1], expected)

    def result(self, item: Item, expected: Expected, *attempts: Outcome) -> Result:
        """Make the result of an item with these attempts."""
        return Result(item, self.verdict(expected, attempts), attempts)

    def _first_bad(self, expected: Expected, attempts: Sequence[Outcome]) -> int | None:
        for number, attempt in enumerate(attempts):
            if is_bad(judged_outcome(attempt, expected)):
                return number
        return None


def listed(verdict: str) -> str:
    """Spell a verdict like deqp-runner, which says "Skip" for all items that did not run."""
    return "Skip" if verdict in NOT_RUN else verdict


RESULTS_NAME: Final = "results.csv"
FAILURES_NAME: Final = "failures.csv"


class Row(NamedTuple):
    """The columns of an item in the tables."""

    verdict: str
    seconds: float


def write_tables(folder: str, rows: Mapping[str, Row]) -> None:
    """Write results.csv (``test,status,seconds`` of all items) and failures.csv (``test,status`` of failed items).

    The second file can be a baseline for the next run. Raises FileError.
    """
    results, failures = [], []
    for id in sorted(rows):
        verdict, seconds = rows[id]
        line = f"{_field(id)},{listed(verdict)}"
        results.append(f"{line},{seconds:.6f}\n")
        if is_bad(verdict):
            failures.append(f"{line}\n")
    for name, lines in ((RESULTS_NAME, results), (FAILURES_NAME, failures)):
        with OutputFile(os.path.join(folder, name)) as file:
            file.write("".join(lines).encode())


def _field(name: str) -> str:
    """Format a name as a column, with quotes if a reader would misunderstand it."""
    if name.startswith("#") or name != name.strip() or any(letter in name for letter in ',"'):
        return '"' + name.replace('"', '""') + '"'
    return name
