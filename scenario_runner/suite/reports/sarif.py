"""Findings as SARIF 2.1.0 (OASIS), for code review tools and editors, and the findings about items of suites."""

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final
from urllib.parse import quote

from scenario_runner.errors.codes import CODES
from scenario_runner.errors.diagnostic import Diagnostic
from scenario_runner.errors.text import Json
from scenario_runner.files.output import OutputFile
from scenario_runner.suite.outcomes import BAD, Outcome, Result
from scenario_runner.suite.reports.summary import SuiteInfo

_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"


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


def sarif(findings: Iterable[Diagnostic], version: str, incomplete: str = "") -> dict[str, object]:
    """Return findings as a SARIF run of this program ``version``. The rules are the codes that occur.

    ``incomplete`` is the reason why findings may be missing."""
    rules: dict[str, int] = {}
    results = [_result(finding, rules.setdefault(finding.code, len(rules))) for finding in findings]
    driver = {"name": "scenario-runner", "version": version, "rules": list(map(_rule, rules))}
    run: dict[str, Json] = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    if incomplete:
        notification = {"level": "error", "message": {"text": incomplete}}
        run["invocations"] = [{"executionSuccessful": False, "toolExecutionNotifications": [notification]}]
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def repository_path(path: str) -> str:
    """Return a path with "/", relative to the repository, or absolute for a file outside of it.

    The repository is $GITHUB_WORKSPACE, the nearest folder above the file with .git, or the current folder."""
    full = Path(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
    root = os.environ.get("GITHUB_WORKSPACE") or next(
        (folder for folder in full.parents if os.path.lexists(folder / ".git")), os.curdir
    )
    root = os.path.realpath(root)
    return (full.relative_to(root) if full.is_relative_to(root) else full).as_posix()


def _rule(name: str) -> dict[str, object]:
    code = CODES.get(name)
    if code is None:  # from a journal of another version
        return {"id": name}
    return {
        "id": name,
        "shortDescription": {"text": code.title},
        "fullDescription": {"text": code.meaning},
        "help": {"text": f"{code.fix} Source: {code.source}"},
        "defaultConfiguration": {"level": code.severity},
    }


def _result(finding: Diagnostic, rule: int) -> dict[str, object]:
    text = f"{finding.message}\n{finding.help}" if finding.help else finding.message
    result: dict[str, Json] = {"ruleId": finding.code, "ruleIndex": rule, "level": finding.severity}
    result["message"] = {"text": text}
    if finding.path is not None:
        path = repository_path(finding.path)
        physical: dict[str, object] = {"artifactLocation": {"uri": ("file://" if path[0] == "/" else "") + quote(path)}}
        if finding.line is not None:
            column = {} if finding.column is None else {"startColumn": finding.column}
            physical["region"] = {"startLine": finding.line, **column}
        place: dict[str, object] = {"physicalLocation": physical}
        if finding.pointer:
            place["logicalLocations"] = [{"fullyQualifiedName": finding.pointer, "kind": "value"}]
        result["locations"] = [place]
    return result
