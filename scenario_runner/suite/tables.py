"""results.csv and failures.csv, as deqp-runner writes them."""

from __future__ import annotations

import csv
import io
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
    results, failures = io.StringIO(), io.StringIO()
    all_rows, bad_rows = _writer(results), _writer(failures)
    for id in sorted(rows):
        verdict, seconds = rows[id]
        all_rows.writerow([id, listed(verdict), f"{seconds:.6f}"])
        if is_bad(verdict):
            bad_rows.writerow([id, listed(verdict)])
    for name, text in ((RESULTS_NAME, results), (FAILURES_NAME, failures)):
        with OutputFile(os.path.join(folder, name)) as file:
            file.write(text.getvalue().encode())


def _writer(text: io.StringIO) -> csv._writer:  # type: ignore[name-defined]
    return csv.writer(text, lineterminator="\n")
