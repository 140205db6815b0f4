"""Collecting what is wrong, so that one look at a scenario reports all of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scenario_runner.checks.finding import Finding, error_class
from scenario_runner.errors import Problem, ScenarioRunnerError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from scenario_runner.scenario import Scenario


class Problems:
    """Errors and warnings about one scenario, each with its place in the file."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self.errors: list[tuple[type[ScenarioRunnerError], Problem]] = []
        self.warnings: list[Problem] = []
        # Errors that count only where there is no other: those of a program that knows less of the scenario than we.
        self.otherwise: list[tuple[type[ScenarioRunnerError], Problem]] = []

    def error(
        self,
        kind: type[ScenarioRunnerError],
        pointer: str,
        message: str,
        help: str | None = None,
        code: str | None = None,
    ) -> None:
        """Note something that makes the scenario impossible to run."""
        self.errors.append((kind, self._scenario.problem(pointer, message, help, code or kind.code)))

    def warn(self, pointer: str, message: str, help: str | None = None, *, code: str | None) -> None:
        """Note something that is probably not meant."""
        self.warnings.append(self._scenario.problem(pointer, message, help, code))

    def report(self, findings: Iterable[Finding]) -> bool:
        """Note what rules found, and tell whether none of it is an error; notes are left out."""
        good = True
        for code, severity, pointer, message, help in findings:
            if severity == "error":
                self.error(error_class(code), pointer, message, help, code)
                good = False
            elif severity == "warning":
                self.warn(pointer, message, help, code=code)
        return good

    def add_otherwise(self, error: ScenarioRunnerError, pointer: str) -> None:
        """Note an error that counts only where there is no other."""
        for problem in error.problems:
            placed = self._scenario.problem(pointer, problem.message, problem.help, problem.code)
            self.otherwise.append((type(error), placed))

    def add_error(self, error: ScenarioRunnerError, pointer: str) -> None:
        """Note an error from below; ``pointer`` is where the scenario names what failed."""
        for problem in error.problems:
            place, message = problem.pointer or pointer, problem.message
            if problem.path is not None:  # a place in a file of its own
                place, message = pointer, str(problem)
            self.error(type(error), place, message, problem.help, problem.code)

    def raise_if_any(self) -> None:
        """Raise all errors noted so far as one; its class (and exit code) is that of the first."""
        errors = self.errors or self.otherwise
        if errors:
            raise errors[0][0]([problem for _, problem in errors])
