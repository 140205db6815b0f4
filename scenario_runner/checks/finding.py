"""What a rule finds: a code, how bad it is, where, and what to do."""

from typing import Final, Literal, NamedTuple

from scenario_runner.errors import FileError, Problem, ScenarioError, ScenarioRunnerError, ShaderError, UnsupportedError

Severity = Literal["error", "warning", "note"]


class Finding(NamedTuple):
    """One thing that a rule has to say.

    ``code`` is a key of `codes.CODES`. With an "error" the scenario cannot run; a "warning" is probably not meant; a
    "note" is for who wants to know. ``pointer`` is a JSON pointer into the scenario.
    """

    code: str
    severity: Severity
    pointer: str
    message: str
    help: str | None = None

    def problem(self) -> Problem:
        """The same for an exception, without a place in the file."""
        return Problem(self.message, pointer=self.pointer, help=self.help, code=self.code)


def error(code: str, pointer: str, message: str, help: str | None = None) -> Finding:
    """A finding that stops a run."""
    return Finding(code, "error", pointer, message, help)


def warning(code: str, pointer: str, message: str, help: str | None = None) -> Finding:
    """A finding that a run logs."""
    return Finding(code, "warning", pointer, message, help)


_CLASSES: Final[dict[str, type[ScenarioRunnerError]]] = {
    "SR-BIND-007": UnsupportedError,
    "SR-BIND-008": UnsupportedError,
    "SR-FLOW-007": UnsupportedError,
    "SR-IMAGE-005": UnsupportedError,
    "SR-PUSH-004": UnsupportedError,
    "SR-LIMIT": UnsupportedError,
    "SR-FEATURE": UnsupportedError,
    "SR-SHADER": ShaderError,
    "SR-STAGE": ShaderError,
    "SR-SPEC": ShaderError,
    "SR-LAYOUT": ShaderError,
    "SR-FILE": FileError,
}


def error_class(code: str) -> type[ScenarioRunnerError]:
    """The class (and so the exit code) of the error that an "error" of this code ends a run with."""
    return _CLASSES.get(code) or _CLASSES.get(code.rpartition("-")[0], ScenarioError)
