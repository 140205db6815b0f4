"""Findings in a GitHub Actions job: annotations at files and lines, and a table in the job summary.

Both follow GitHub's "Workflow commands for GitHub Actions". GitHub reads annotations from standard error too. So
standard output keeps the form that scripts expect.
"""

from __future__ import annotations

import os
import re
import sys
from collections import Counter
from types import TracebackType
from typing import Final

from scenario_runner.cli.console import write
from scenario_runner.errors import ScenarioRunnerError
from scenario_runner.errors.codes import CODES
from scenario_runner.errors.diagnostic import Diagnostic
from scenario_runner.errors.text import one_line, reason_of, visible
from scenario_runner.suite.reports.sarif import repository_path

_KINDS: Final = {"error": "error", "warning": "warning", "note": "notice"}
_ANNOTATIONS_MAX: Final = 10  # of a kind, in a step
_SUMMARY_BYTES_MAX: Final = 1 << 20  # of a step
_END_BYTES: Final = 4096  # of the summary, for the last lines
_TEXT_MAX: Final = 4000


class Annotations:
    """A context around a command. `add` prints a finding at once, so that a crash loses none.

    GitHub shows a limited number of annotations. On exit, the context counts the rest and adds ``result`` to the
    summary. An error that leaves the context is a finding.
    """

    def __init__(self, command: str) -> None:
        self._heading = f"### scenario-runner {command}\n\n"
        self.result = ""
        self._counts: Counter[str] = Counter()  # by kind
        self._held: dict[str, str] = {}  # the last annotation of each kind, or "and N more"
        self._known: set[tuple[str | int | None, ...]] = set()
        self._table = "| | place | finding |\n|---|---|---|\n"
        self._left_out = 0  # rows of the table
        self._summary = os.environ.get("GITHUB_STEP_SUMMARY", "")

    def add(self, finding: Diagnostic, *, path: str | None = None, title: str = "") -> None:
        """Show a finding once. A finding without a file belongs to ``path``."""
        path = finding.path or path
        item = title if finding.code == "SR-ITEM-001" else ""  # other findings are about shared files
        key = path, finding.line, finding.column, finding.message, item
        if key in self._known:
            return
        self._known.add(key)
        kind = _KINDS[finding.severity]
        title = title or " ".join([finding.code, *([CODES[finding.code].title] if finding.code in CODES else [])])
        text = finding.message + (f"\nhelp: {finding.help}" if finding.help else "")
        fields = {"file": None if path is None else repository_path(path), "line": finding.line, "col": finding.column}
        self._annotate(kind, text, **fields, title=one_line(title, 255))
        place = "" if path is None else f"{fields['file']}" + (f":{finding.line}" if finding.line else "")
        row = f"| {kind} | {_cell(place)} | **{_cell(title)}**: {_cell(finding.message)} |\n"
        if self._write(self._heading + self._table + row, _SUMMARY_BYTES_MAX - _END_BYTES):
            self._heading = self._table = ""
        else:
            self._left_out += 1

    def _annotate(self, kind: str, text: str, **fields: str | int | None) -> None:
        values = (f"{name}={_property(str(value))}" for name, value in fields.items() if value is not None)
        line = f"::{kind} {','.join(values)}::{_data(visible(text[:_TEXT_MAX]))}"
        self._counts[kind] += 1
        if self._counts[kind] < _ANNOTATIONS_MAX:
            _print(line)
        else:
            self._held.setdefault(kind, line)

    def __enter__(self) -> Annotations:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if isinstance(error, ScenarioRunnerError):
            for problem in error.problems:
                self.add(problem)
        for name, line in self._held.items():
            more = self._counts[name] - _ANNOTATIONS_MAX + 1
            _print(line if more == 1 else f"::{name}::and {more} more: see the log")
        if self._left_out:
            self._write(f"\nand {self._left_out} more\n")
        if self.result:
            self._write(f"{self._heading}\n{_cell(self.result)}\n")

    def _write(self, text: str, bytes_max: int = _SUMMARY_BYTES_MAX) -> bool:
        """Append to the summary. Return false if there is none, or if the text does not fit."""
        if not self._summary:
            return False
        data = text.encode(errors="replace")
        try:
            with open(self._summary, "ab") as file:
                if file.tell() + len(data) <= bytes_max:
                    file.write(data)
                    return True
        except (OSError, ValueError) as error:
            message = f"GITHUB_STEP_SUMMARY: {self._summary}: cannot be written: {reason_of(error)}"
            write("warning", message, "there is no summary; the results are the same")
            self._summary = ""
        return False


def _print(line: str) -> None:
    if sys.stderr is not None:
        getattr(sys.stderr, "write_styled", sys.stderr.write)(f"{line}\n")
        sys.stderr.flush()


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _cell(text: str) -> str:
    """Put a text on one line, and escape Markdown and HTML."""
    return re.sub(r"[^\w .,:;/='\"()-]|_", lambda match: f"&#{ord(match[0])};", one_line(text))
