"""What a validation gives: findings with their places in the file."""

from typing import Any, NamedTuple

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
        """How many findings are this severe."""
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
