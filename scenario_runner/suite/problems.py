"""Problems of a suite, not of an item. Problems are shown at once, and stop nothing."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NoReturn

from scenario_runner.errors import ScenarioRunnerError, error_of
from scenario_runner.errors.diagnostic import Diagnostic, Severity


class SuiteProblems:
    """Life cycle: problems are `found` and shown; at the end, ``exit_code`` belongs to the first error, or is 0.

    With ``strict``, the first problem or warning is raised instead. A `together` block raises its problems at the end.
    """

    def __init__(self, show: Callable[[Diagnostic], None], *, strict: bool = False) -> None:
        self._show = show
        self._strict = strict
        self.exit_code = 0
        self._held: list[Diagnostic] | None = None

    @contextmanager
    def together(self) -> Iterator[None]:
        """Collect errors in a block, and raise them as a single error at the end."""
        self._held = []
        with self.holding():
            yield
        held, self._held = self._held, None
        if held:
            raise error_of(held)

    @contextmanager
    def holding(self) -> Iterator[None]:
        """Collect an error in a part of a `together` block, so that the code after the part runs."""
        try:
            yield
        except ScenarioRunnerError as error:
            if self._held is None:
                raise
            self._held += error.problems

    def found(
        self,
        code: str,
        path: str | None,
        message: str,
        help: str | None = None,
        *,
        line: int | None = None,
        severity: Severity = "error",
    ) -> None:
        """Show a problem. Raises the error of its code with ``strict``."""
        problem = Diagnostic(code, severity, None, message, help, path, line)
        if self._strict:
            if self._held is None:
                raise error_of([problem])
            self._held.append(problem)
            return
        if severity == "error":
            self.exit_code = self.exit_code or error_of([problem]).exit_code
        self._show(problem)

    def show_all(self, problems: Sequence[Diagnostic]) -> None:
        """Show problems of items that cannot run. Raises all of them with ``strict``."""
        if self._strict and problems:
            raise error_of(problems)
        for problem in problems:
            self._show(problem)

    def failed(self, error: ScenarioRunnerError) -> None:
        """Show the problems of an error that ended a part of the suite. The suite goes on."""
        self.exit_code = self.exit_code or error.exit_code
        for problem in error.problems:
            self._show(problem)


def refuse(code: str, path: str | None, message: str, help: str | None = None, line: int | None = None) -> NoReturn:
    """Raise the error of a code at a place."""
    raise error_of([Diagnostic(code, "error", None, message, help, path, line)])
