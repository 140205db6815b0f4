"""Records of a suite about an item: the item, the outcome of a run, and the verdict. Standard library only.

::

    Item ──a worker runs and compares──▶ Outcome ──attempts, lists──▶ Result ──▶ journal, reports

Outcomes travel between processes as JSON, and results into the journal (`as_json`; `journal` reads it again).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple

from scenario_runner.errors.text import Json

_NOTHING: Final[Mapping[str, Json]] = {}

Status = Literal["Pass", "Warn", "Fail", "NotSupported", "MissingTool", "Skip", "Crash", "Timeout", "Missing"]
"""The status of one run of an item. Missing: it could not be run, since its file or its expectations cannot be used.
MissingTool: this machine lacks a tool for it (`MissingToolError`)."""

NOT_RUN: Final = frozenset({"NotSupported", "MissingTool", "Skip"})
"""The statuses of items of which nothing ran, and that are no failures."""

BAD: Final = frozenset({"Fail", "Crash", "Timeout", "Missing"})
"""The statuses that are failures, unless a list says that they are expected."""


def is_bad(verdict: str) -> bool:
    """Return whether a verdict is a failure that nothing expects."""
    return verdict in BAD or verdict.startswith("UnexpectedImprovement")


class Item(NamedTuple):
    """A scenario, or a model, with expectations.

    ``id`` names it in lists and reports: the path of the scenario with "/" between its parts, relative to the root of
    the suite where it lies below it. ``path`` is the absolute path of the scenario, and ``expectations`` that of the
    file with its expectations, or None where the scenario has them, or has none. ``defaults`` are the files
    ``suite.json`` of its folder and of those above, the nearest first. ``parameters`` are the values of one combination
    by name; then the id ends with ``variant``, them in brackets: ``[4-true]``.
    """

    id: str
    path: str
    expectations: str | None = None
    defaults: tuple[str, ...] = ()
    parameters: Mapping[str, Json] = _NOTHING
    variant: str = ""


class OutputCheck(NamedTuple):
    """The result of comparing one output, or one captured frame of it.

    ``name`` is the uid of the resource, or "frame/uid" for a captured frame. ``message`` says in one sentence what is
    wrong, empty where nothing is. ``metrics`` has the measured errors by name. ``worst`` lists the elements with the
    greatest errors: their index, and the expected and the actual value as text. ``files`` are paths relative to the
    folder of the results, by what they show: "expected", "actual", "error" (pictures or arrays).
    """

    name: str
    status: Literal["Pass", "Warn", "Fail"]
    message: str = ""
    metrics: Mapping[str, float] = _NOTHING
    worst: tuple[tuple[str, str, str], ...] = ()
    files: Mapping[str, str] = _NOTHING


class Outcome(NamedTuple):
    """The outcome of one run of an item.

    ``reason`` says in one sentence why the status is not Pass. ``exit_code`` is what ``scenario-runner run`` would have
    ended with (see `errors`). ``diagnostics`` are those of the run, as `Diagnostic.as_json` gives them. ``stack`` is
    the native stack of a worker that crashed, or the traceback of an error of this program; ``python_stack`` the Python
    stack of a worker that crashed or was killed, which has frames of this program alone; ``output`` the end of what its
    process wrote to standard error; ``before`` the last of the ``before_count`` items that the same process had run
    before it, most recent last; ``printed`` what shaders printed first in a run that failed. ``lines`` has the lines of
    expectations that do not hold, in the file that has them: by output, and that of an expected error by "". ``crash``
    tells crashes apart: the exit code of the worker, negative for a signal, and the kind of its work (`progress`); or
    the exit code of an error of this program, and the error.
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

    def as_json(self) -> dict[str, object]:
        """Only what differs from the defaults, so that the line of an item that passed is short."""
        fields = {
            name: value for name, value in self._asdict().items() if value != self._field_defaults.get(name, None)
        }
        if self.outputs:
            fields["outputs"] = [output._asdict() for output in self.outputs]
        return fields

    @classmethod
    def of_json(cls, fields: dict[str, Json]) -> Outcome:
        outputs = tuple(
            OutputCheck(**{**output, "worst": tuple(map(tuple, output["worst"]))})
            for output in fields.get("outputs", ())
        )
        lists = {name: tuple(value) for name, value in fields.items() if isinstance(value, list)}
        return cls(**{**fields, **lists, "outputs": outputs})


class Hashes(NamedTuple):
    """Hashes of what a result depends on (SHA-256, hexadecimal; "" where unknown): when one of them changes, it is
    void."""

    scenario: str = ""
    inputs: str = ""
    expectations: str = ""
    program: str = ""


class Result(NamedTuple):
    """The verdict on an item.

    ``verdict`` is the status of the last attempt, or what lists and repeated attempts make of it: "Flake",
    "KnownFlake", "ExpectedFail", "UnexpectedImprovement(Pass)". ``attempts`` has every run, in order; it is empty for
    an item that was skipped. ``device`` is the UUID of the physical device, ``driver`` its driver's name and version,
    ``host`` the name of the machine where it was another one than that which started the suite.
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
        """Return whether it is unexpected and a failure."""
        return is_bad(self.verdict)

    @property
    def last(self) -> Outcome | None:
        return self.attempts[-1] if self.attempts else None

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
    """``results_folder`` gets files about outputs that fail, below the id of the item; None: none are written. Those of
    one item have no more than ``evidence_bytes_max`` bytes together."""

    results_folder: str | None = None
    evidence_bytes_max: int = 64 << 20
