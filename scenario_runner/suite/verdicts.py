"""Verdicts: what lists and repeated attempts make of statuses, and the tables of deqp-runner that list them."""

import os
import re
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple, get_args

from scenario_runner.errors.text import counted
from scenario_runner.files.output import OutputFile
from scenario_runner.suite.outcomes import BAD, NOT_RUN, Status, is_bad

STATUSES: Final[tuple[str, ...]] = get_args(Status)

_IMPROVED: Final = re.compile(r"UnexpectedImprovement(?:\((\w+)\))?")


class Expected(NamedTuple):
    """An item's entry in the lists: the status that a baseline expects, if any, and whether it is a known flake."""

    status: str | None = None
    is_flake: bool = False


UNLISTED: Final = Expected()


def expected_status(word: str) -> str | None:
    """The status that a word of a baseline expects, or "KnownFlake"; None for one that says nothing about the next run.

    A baseline may be the failures.csv of a run, so that verdicts stand in it. Raises ValueError for other words.
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
    """Return whether a word is one that `Rules.verdict` gives."""
    improved = _IMPROVED.fullmatch(word)
    return (improved[1] if improved else word) in STATUSES or word in ("Flake", "KnownFlake", "ExpectedFail")


def not_run(verdicts: Iterable[str], count: int, reason: str) -> str:
    """A sentence where none of the items is supported, with what the first one needs; else nothing."""
    if {*verdicts, "Skip"} != {"NotSupported", "Skip"}:
        return ""
    return f"none of {counted(count, 'item')} could run: {reason}"


def judged(status: str, expected: str | None) -> str:
    """The verdict on one run with a status, where a baseline expects ``expected``."""
    if expected is None or status == "MissingTool":
        return status
    if listed(status) == listed(expected):
        return "ExpectedFail" if status in BAD else status
    if expected not in BAD:
        return status
    if status not in BAD or (status == "Fail" and expected in ("Crash", "Timeout")):
        return f"UnexpectedImprovement({listed(status)})"
    return status


def listed(verdict: str) -> str:
    """A verdict as deqp-runner's files spell it, which have one word for what did not run."""
    return "Skip" if verdict in NOT_RUN else verdict


RESULTS_NAME: Final = "results.csv"
FAILURES_NAME: Final = "failures.csv"


class Row(NamedTuple):
    """An item in the tables."""

    verdict: str
    seconds: float


def write_tables(folder: str, rows: Mapping[str, Row]) -> None:
    """Write both into a folder: ``test,status,seconds`` of all items, and ``test,status`` of those whose verdict is a
    failure that nothing expects. The latter is a baseline for the next run. Raises FileError."""
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
    """A name as a column, quoted where a reader would take it for something else."""
    if name.startswith("#") or name != name.strip() or any(letter in name for letter in ',"'):
        return '"' + name.replace('"', '""') + '"'
    return name
