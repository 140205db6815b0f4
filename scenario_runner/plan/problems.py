"""Collecting what is wrong, so that one look at a scenario reports all of it."""

from __future__ import annotations

from collections.abc import Iterable

from scenario_runner.diagnostics import Diagnostic
from scenario_runner.errors import ScenarioRunnerError, error_of
from scenario_runner.scenario import Scenario


class Problems:
    """Errors and warnings about one scenario, each with its place in the file."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self.errors: list[Diagnostic] = []
        self.warnings: list[Diagnostic] = []
        # Errors that count only where there is no other: those of a program that knows less of the scenario than we.
        self.otherwise: list[Diagnostic] = []

    def error(self, code: str, pointer: str, message: str, help: str | None = None) -> None:
        """Note something that makes the scenario impossible to run."""
        self.errors.append(self._scenario.placed(Diagnostic(code, "error", pointer, message, help)))

    def warn(self, code: str, pointer: str, message: str, help: str | None = None) -> None:
        """Note something that is probably not meant."""
        self.warnings.append(self._scenario.placed(Diagnostic(code, "warning", pointer, message, help)))

    def report(self, found: Iterable[Diagnostic]) -> bool:
        """Note what rules found, and tell whether none of it is an error; notes are left out."""
        good = True
        for each in found:
            if each.severity == "error":
                self.error(each.code, each.pointer or "", each.message, each.help)
                good = False
            elif each.severity == "warning":
                self.warn(each.code, each.pointer or "", each.message, each.help)
        return good

    def add_otherwise(self, error: ScenarioRunnerError, pointer: str) -> None:
        """Note an error that counts only where there is no other."""
        self.otherwise += [self._scenario.placed(each._replace(pointer=pointer)) for each in error.problems]

    def add_error(self, error: ScenarioRunnerError, pointer: str) -> None:
        """Note an error from below; ``pointer`` is where the scenario names what failed."""
        for each in error.problems:
            if each.path is None:
                self.error(each.code, each.pointer or pointer, each.message, each.help)
            else:  # a place in a file of its own
                self.error(each.code, pointer, str(each), each.help)

    def raise_if_any(self) -> None:
        """Raise all errors noted so far as one, each once; its class (and exit code) is that of the first."""
        errors = list(dict.fromkeys(self.errors or self.otherwise))
        if errors:
            raise error_of(errors)
