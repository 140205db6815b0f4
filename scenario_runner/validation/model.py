"""The result of a validation: findings with their places, as JSON or as SARIF 2.1.0."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple
from urllib.parse import quote

from scenario_runner.codes import CODES, Code
from scenario_runner.diagnostics import Diagnostic, Severity

SCHEMA = 1
"""Version of the JSON that `as_json` gives; a key that changes its meaning raises it."""


class Validation(NamedTuple):
    """One file's findings, in the order of the file. ``exit_code`` is that of the error a run would end with, or 0.

    ``resources`` and ``commands`` count the entries, 0 where the file could not be read as a scenario.
    """

    file: str
    findings: tuple[Diagnostic, ...]
    resources: int
    commands: int
    exit_code: int

    def count(self, severity: Severity) -> int:
        """Count the findings of this severity."""
        return sum(finding.severity == severity for finding in self.findings)

    def as_json(self) -> dict[str, Any]:
        """The validation as a JSON object."""
        return {
            "file": self.file,
            "valid": not self.exit_code,
            "exit_code": self.exit_code,
            "resources": self.resources,
            "commands": self.commands,
            "counts": {
                "error": self.count("error"),
                "warning": self.count("warning"),
                "note": self.count("note"),
            },
            "findings": [finding.as_json() for finding in self.findings],
        }


_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def sarif(validations: Sequence[Validation], version: str) -> dict[str, Any]:
    """One run of this ``version`` of the program with the findings of several files; rules are the codes that occur."""
    used = sorted({finding.code for each in validations for finding in each.findings})
    rules = [_rule(CODES[code]) for code in used]
    indices = {code: index for index, code in enumerate(used)}
    return {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": {"name": "scenario-runner", "version": version, "rules": rules}},
                "columnKind": "unicodeCodePoints",
                "results": [
                    _result(finding, each.file, indices[finding.code])
                    for each in validations
                    for finding in each.findings
                ],
            }
        ],
    }


def _rule(code: Code) -> dict[str, Any]:
    return {
        "id": code.code,
        "shortDescription": {"text": code.title},
        "fullDescription": {"text": code.meaning},
        "help": {"text": f"{code.fix} Source: {code.source}"},
        "defaultConfiguration": {"level": code.severity},
    }


def _result(finding: Diagnostic, file: str, rule: int) -> dict[str, Any]:
    place: dict[str, Any] = {"physicalLocation": {"artifactLocation": {"uri": _uri(finding.path or file)}}}
    if finding.line is not None:
        region = {"startLine": finding.line}
        if finding.column is not None:
            region["startColumn"] = finding.column
        place["physicalLocation"]["region"] = region
    if finding.pointer:
        place["logicalLocations"] = [{"fullyQualifiedName": finding.pointer, "kind": "value"}]
    text = f"{finding.message}\n{finding.help}" if finding.help else finding.message
    return {
        "ruleId": finding.code,
        "ruleIndex": rule,
        "level": finding.severity,
        "message": {"text": text},
        "locations": [place],
    }


def _uri(path: str) -> str:
    """A path as a URI reference: relative ones stay relative."""
    plain = path.replace("\\", "/")
    return f"file://{quote(plain)}" if plain.startswith("/") else quote(plain)
