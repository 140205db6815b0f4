"""`Diagnostic`: one thing that is wrong, probably not meant, or worth knowing, with its place."""

from collections.abc import Iterable
from typing import Literal, NamedTuple

from scenario_runner.errors.text import Json, one_line

Severity = Literal["error", "warning", "note"]


class Diagnostic(NamedTuple):
    """One thing that is wrong, and where.

    ``code`` is the stable name of this kind of problem, such as 'SR-BIND-003', which ``scenario-runner explain`` knows;
    `errors.error_class` gives the error, and so the exit code, that it ends a run with. With the severity "error" the
    scenario cannot run; a "warning" is probably not meant; a "note" is for information. ``pointer`` is a JSON pointer
    (RFC 6901) into the scenario, or into the file ``path``; ``line`` and ``column`` count from 1. Unknown parts are
    ``None``. ``help`` says what to do about it and is shown on a line of its own.
    """

    code: str
    severity: Severity
    pointer: str | None
    message: str
    help: str | None = None
    path: str | None = None
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        place = one_line(self.path or "")
        if self.line is not None:
            place += f":{self.line}" if self.column is None else f":{self.line}:{self.column}"
        parts = [part for part in (place, one_line(self.pointer or "")) if part]
        return ": ".join([*parts, self.message])

    def as_json(self) -> dict[str, Json]:
        """The diagnostic as a JSON object."""
        return {
            "code": self.code,
            "severity": self.severity,
            "message": self.message,
            "help": self.help,
            "path": self.path,
            "line": self.line,
            "column": self.column,
            "pointer": self.pointer,
        }


def error(code: str, pointer: str, message: str, help: str | None = None) -> Diagnostic:
    """Make a diagnostic that stops a run, at a place of the scenario."""
    return Diagnostic(code, "error", pointer, message, help)


def warning(code: str, pointer: str, message: str, help: str | None = None) -> Diagnostic:
    """Make a diagnostic that a run logs, at a place of the scenario."""
    return Diagnostic(code, "warning", pointer, message, help)


def note(code: str, pointer: str, message: str, help: str | None = None) -> Diagnostic:
    """Make a diagnostic that only informs, at a place of the scenario."""
    return Diagnostic(code, "note", pointer, message, help)


def warnings_as_errors(findings: Iterable[Diagnostic]) -> list[Diagnostic]:
    """The findings as --strict takes them."""
    return [finding._replace(severity="error") if finding.severity == "warning" else finding for finding in findings]


def escape(key: str) -> str:
    """A key as one step of a JSON pointer (RFC 6901)."""
    return key.replace("~", "~0").replace("/", "~1")
