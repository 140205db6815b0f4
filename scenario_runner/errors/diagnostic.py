"""`Diagnostic`: an error, a warning or a note about a place in a file."""

from collections.abc import Iterable
from typing import Literal, NamedTuple

from scenario_runner.errors.text import Json, one_line

Severity = Literal["error", "warning", "note"]


class Diagnostic(NamedTuple):
    """A finding about a place in a file.

    ``code`` is the stable name of the kind of finding, such as 'SR-BIND-003'. ``scenario-runner explain`` describes it,
    and `errors.error_class` gives the error class and exit code. An "error" stops a run. A "warning" means a
    probable mistake. A "note" only informs. ``pointer`` is a JSON pointer (RFC 6901) into the file ``path``, or into
    the scenario. ``line`` and ``column`` count from 1. Unknown parts are ``None``. ``help`` advises the user, on a line
    after the message.
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
        """Return the diagnostic as a JSON object."""
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
    """Make a diagnostic that stops a run, at a place in the scenario."""
    return Diagnostic(code, "error", pointer, message, help)


def warning(code: str, pointer: str, message: str, help: str | None = None) -> Diagnostic:
    """Make a diagnostic that a run logs, at a place in the scenario."""
    return Diagnostic(code, "warning", pointer, message, help)


def note(code: str, pointer: str, message: str, help: str | None = None) -> Diagnostic:
    """Make a diagnostic that only informs, at a place in the scenario."""
    return Diagnostic(code, "note", pointer, message, help)


def warnings_as_errors(findings: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Return the findings with errors in the place of warnings, for --strict."""
    return [finding._replace(severity="error") if finding.severity == "warning" else finding for finding in findings]


def escape(key: str) -> str:
    """Escape a key for a JSON pointer (RFC 6901)."""
    return key.replace("~", "~0").replace("/", "~1")
