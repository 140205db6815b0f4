"""What this machine lacks for items of a suite, in one sentence for all of them."""

from __future__ import annotations

from scenario_runner.diagnostics import Diagnostic
from scenario_runner.errors import MissingToolError
from scenario_runner.suite.records import Result
from scenario_runner.visible import counted

_MOST_SHOWN = 5


class MissingTools:
    """Life cycle: each result is added; then `error` says what is lacking, if anything is."""

    def __init__(self) -> None:
        self.count = 0
        self._lacks: dict[str, str] = {}  # the message of the first item, by what is to be done

    def add(self, result: Result) -> None:
        """Note a result, if its item could not run for want of a tool."""
        if result.verdict == "MissingTool" and result.last is not None:
            self.count += 1
            problem = result.last.diagnostics[0]
            self._lacks.setdefault(problem.get("help") or "", problem["message"])

    @property
    def ended(self) -> str:
        """How the suite ended, for its last line; "" where nothing is lacking."""
        return "incomplete" if self.count else ""

    def messages(self) -> list[str]:
        """The sentence for reports, if there is something to say."""
        error = self.error()
        return [] if error is None else [error.problems[0].message]

    def error(self) -> MissingToolError | None:
        """The error for the suite as a whole."""
        if not self.count:
            return None
        lacks = list(self._lacks.values())[:_MOST_SHOWN]
        message = f"{counted(self.count, 'item')} did not run, as this machine lacks a tool: {'; '.join(lacks)}"
        advice = "; ".join([*filter(None, list(self._lacks)[:_MOST_SHOWN]), "'scenario-runner doctor' shows all"])
        return MissingToolError(Diagnostic(MissingToolError.code, "error", None, message, advice))
