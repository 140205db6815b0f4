"""results.csv and failures.csv, as deqp-runner writes them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final, NamedTuple

from scenario_runner.files.output import OutputFile
from scenario_runner.suite.records import is_bad
from scenario_runner.suite.verdicts import listed

RESULTS_NAME: Final = "results.csv"
FAILURES_NAME: Final = "failures.csv"


class Row(NamedTuple):
    """What the tables say of an item."""

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
