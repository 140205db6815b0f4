"""Problems of suites, collected for the tests that look at them."""

from collections.abc import Sequence
from pathlib import Path

from scenario_runner.errors.diagnostic import Diagnostic
from scenario_runner.suite.discovery import Discovery
from scenario_runner.suite.outcomes import SuiteProblems


class Collected(SuiteProblems):
    """Problems that are kept; ``shown`` has them as "CODE text"."""

    def __init__(self) -> None:
        self.diagnostics: list[Diagnostic] = []
        super().__init__(self.diagnostics.append)

    @property
    def shown(self) -> list[str]:
        return [f"{each.code} {each}" for each in self.diagnostics]


def found(folder: Path, *paths: str, problems: Sequence[str] = ()) -> list[str]:
    """Return the items below paths, after a check of the reported problems."""
    reported = Collected()
    ids = [item.id for item in Discovery(str(folder), reported).items([str(folder / path) for path in paths])]
    assert reported.shown == list(problems)
    return ids
