"""Findings about items of suites, at files and lines, and the SARIF file that reports them."""

import json
from collections.abc import Iterable, Iterator

from scenario_runner.errors.diagnostic import Diagnostic
from scenario_runner.errors.sarif_log import sarif
from scenario_runner.errors.text import Json
from scenario_runner.files.output import OutputFile
from scenario_runner.suite.outcomes import BAD, Outcome, Result
from scenario_runner.suite.reports.summary import SuiteInfo


def findings_of(result: Result) -> Iterator[Diagnostic]:
    """Yield findings about a failure, a Flake or a Warn.

    Wrong outputs and unexpected errors have the lines of their expectations. Without them, the errors of the run are
    the findings, or a finding about the scenario.
    """
    item, last = result.item, result.last
    if not result.is_bad and result.verdict not in ("Flake", "Warn"):
        return
    if last is not None and last.status == "Pass":
        last = next((attempt for attempt in reversed(result.attempts) if attempt.status in BAD), last)
    outcome = last or Outcome("Missing")
    finding = Diagnostic("SR-ITEM-001", "error" if result.is_bad else "warning", None, result.verdict, path=item.path)
    expected = finding._replace(path=item.expectations or item.path)
    outputs = [output for output in outcome.outputs if output.status != "Pass"]
    errors = [problem for problem in outcome.diagnostics if problem.get("severity") == "error"]
    for output in outputs:
        message, line = f"{output.name}: {output.message}", outcome.lines.get(output.name)
        yield (finding if line is None else expected)._replace(message=message, line=line)
    if "" in outcome.lines:
        yield expected._replace(message=outcome.reason, line=outcome.lines[""])
    elif not outputs and errors:
        for error in errors:
            fields: dict[str, Json] = {name: error.get(name) for name in Diagnostic._fields}
            yield Diagnostic(**{**fields, "severity": finding.severity, "path": fields["path"] or item.path})
    elif not outputs:
        yield finding._replace(message=outcome.reason or "the baseline expects a failure")


def write_sarif(path: str, results: Iterable[Result], info: SuiteInfo) -> list[str]:
    """Write a file, and return the path. The file appears only when it is complete. Raises FileError."""
    findings = (
        finding._replace(message=f"{result.verdict} {result.item.id}: {finding.message}")
        for result in results
        for finding in findings_of(result)
    )
    write_file(path, findings, info.version, info.incomplete)
    return [path]


def write_file(path: str, findings: Iterable[Diagnostic], version: str, incomplete: str = "") -> None:
    """Write a log. The file appears only when it is complete. Raises FileError."""
    with OutputFile(path) as file:
        file.write(json.dumps(sarif(findings, version, incomplete), indent=2).encode() + b"\n")
