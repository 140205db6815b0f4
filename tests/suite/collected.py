"""Problems of suites, collected for the tests that look at them."""

from scenario_runner.errors.diagnostic import Diagnostic
from scenario_runner.suite.problems import SuiteProblems


class Collected(SuiteProblems):
    """Problems that are kept; ``shown`` has them as "CODE text"."""

    def __init__(self) -> None:
        self.diagnostics: list[Diagnostic] = []
        super().__init__(self.diagnostics.append)

    @property
    def shown(self) -> list[str]:
        return [f"{each.code} {each}" for each in self.diagnostics]
