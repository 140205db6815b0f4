"""Everything that can be said of the expectations of an item without a device."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scenario_runner.errors import ScenarioRunnerError
from scenario_runner.suite.expectations.binding import bind
from scenario_runner.suite.expectations.outputs import expected_files, outputs_of_scenario
from scenario_runner.suite.expectations.reading import load

if TYPE_CHECKING:
    from scenario_runner.diagnostics import Diagnostic
    from scenario_runner.suite.records import Item


def check(item: Item) -> list[Diagnostic]:
    """All problems of the expectations of an item, in themselves and against its scenario; none where there are none.

    Headers of expected files are read. What is wrong with the scenario itself is not said: a run does.
    """
    try:
        expectations = load(item)
    except ScenarioRunnerError as error:
        return list(error.problems)
    if expectations.expects_failure:
        return []
    try:
        files = expected_files(expectations.expected_folder)
    except ScenarioRunnerError as error:
        return list(error.problems)
    given = expectations.check
    if not files and not given.outputs and not given.when:
        return []
    from scenario_runner.scenario import load as load_scenario

    try:
        outputs = outputs_of_scenario(load_scenario(item.path), given.repeat)
    except ScenarioRunnerError:
        return []
    from scenario_runner.suite.expectations.devices import merged

    problems: dict[tuple[str, str], Diagnostic] = {}
    checks = [(None, given), *((at, merged(given, each)) for at, each in enumerate(given.when))]
    for condition, check in checks:
        try:
            for bound in bind(expectations._replace(condition=condition), check, outputs, files).values():
                bound.close()
        except ScenarioRunnerError as error:
            for problem in error.problems:
                problems.setdefault((problem.code, problem.message), problem)
    return list(problems.values())
