"""``scenario_runner.test``: a suite from Python."""

import io
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from typing import NamedTuple

from scenario_runner.cli.arguments import parse
from scenario_runner.cli.suites.test import run_suite, settle
from scenario_runner.processes.temporary import temporary_folder
from scenario_runner.suite.outcomes import Result


class SuiteResult(NamedTuple):
    """The end of a suite: the exit code of ``scenario-runner test``, results by name, and the printed lines."""

    exit_code: int
    results: Mapping[str, Result]
    output: str

    @property
    def passed(self) -> bool:
        """True if nothing is unexpected."""
        return self.exit_code == 0


def test(*paths: str, **options: str | int | float | bool) -> SuiteResult:
    """Run scenarios with expectations, isolated from each other, without printing.

    ``paths`` are scenarios, models and folders; the default is the current folder. ``options`` are long options of
    ``scenario-runner test``: ``test("suite", jobs=4, junit="report.xml")``. Raises UsageError for wrong options.
    """
    given = {f"--{name.replace('_', '-')}": value for name, value in options.items() if value is not False}
    words = [option if value is True else f"{option}={value}" for option, value in given.items()]
    parsed = parse(["test", *paths, *words])
    settle(parsed)
    results: dict[str, Result] = {}
    with temporary_folder() as folder, redirect_stdout(io.StringIO()) as text, redirect_stderr(text):
        code = run_suite(parsed, parsed.results or folder, None, lambda merged, *_: results.update(merged.results))
    return SuiteResult(code, results, text.getvalue())
