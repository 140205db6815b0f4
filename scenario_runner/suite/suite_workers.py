"""Workers for items of suites, and the outcomes of crashed items."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from scenario_runner.errors import FenceTimeoutError
from scenario_runner.errors.diagnostic import Diagnostic
from scenario_runner.files.input import read_file
from scenario_runner.files.json_text import places_of
from scenario_runner.processes.isolated_process import Crash
from scenario_runner.processes.jobs import WorkerOptions
from scenario_runner.processes.workers import Workers
from scenario_runner.suite.outcomes import BAD, Item, Outcome, Result
from scenario_runner.suite.verdicts_and_retries import STATUSES, UNLISTED, Expected, RetryRules

_NOTHING: Final[Mapping[str, object]] = {}
_TASK: Final = "scenario_runner.suite.worker_task:SuiteTask"


class SuiteWork(NamedTuple):
    """The work for each item of a suite.

    ``function`` names a function as "module:name". The function gets the item, the `Runners` of the worker and
    ``options``, and returns an `Outcome`. ``runner`` has arguments of `Runner`, but no device or timeout.
    """

    function: str = "scenario_runner.suite.evaluation:run_item"
    options: Any = None
    runner: Mapping[str, object] = _NOTHING


ONCE: Final = RetryRules(retries=0)
_WORK: Final = SuiteWork()


def suite_options(work: SuiteWork = _WORK, rules: RetryRules = ONCE, **others: Any) -> WorkerOptions:
    """Make the options of workers for items of suites. ``others`` are fields of `WorkerOptions`."""
    return WorkerOptions(_TASK, SuitePolicy(rules), work, **others)


def rules_of(options: WorkerOptions) -> RetryRules:
    """Return the rules in options from `suite_options`."""
    assert isinstance(options.policy, SuitePolicy)
    return options.policy.rules


class SuitePolicy(NamedTuple):
    """The `Policy` of a suite. ``rules`` decide whether an item runs again."""

    rules: RetryRules

    def outcome(self, fields: dict[str, object], before: Sequence[Item], before_count: int) -> Outcome:
        """Read an outcome from JSON. Raises ValueError, TypeError or LookupError for other JSON."""
        if fields["status"] not in STATUSES:
            raise ValueError(fields["status"])
        outcome = Outcome.of_json(fields)
        return _after(outcome, before, before_count) if outcome.status in BAD else outcome

    def crashed(self, item: Item, crash: Crash) -> Outcome:
        """Make the outcome of an item from the crash of its process."""
        error = crash.error(item.path)
        problem = placed(error.problems[0])
        outcome = Outcome(
            "Timeout" if isinstance(error, FenceTimeoutError) else "Crash",
            crash.seconds,
            f"{problem.pointer}: {problem.message}" if problem.pointer else problem.message,
            error.exit_code,
            (problem.as_json(),),
            stack=crash.native_stack,
            output=crash.output,
            python_stack=crash.stack,
            crash=(crash.code, crash.work),
        )
        return _after(outcome, crash.before, crash.before_count)

    def again(self, expected: Expected, attempts: Sequence[Outcome]) -> bool:
        """Return whether an item with these attempts runs once more."""
        return self.rules.again(expected, attempts)


def _after(outcome: Outcome, before: Iterable[Any], before_count: int) -> Outcome:
    return outcome._replace(before=tuple(item.id for item in before), before_count=before_count)


def placed(problem: Diagnostic) -> Diagnostic:
    """Add the line and column of the JSON pointer to a problem in a scenario.

    The crashed process has checked the file. The modules for another check would cost too much time here.
    """
    path, pointer = problem.path or "", problem.pointer
    if pointer is None or not os.path.isfile(path):
        return problem._replace(pointer=None)
    try:
        text = read_file(path).decode("utf-8-sig")
        json.loads(text)  # the file may have changed, and `Places` need valid JSON
        return places_of(text).placed(problem, path)
    except (OSError, ValueError, RecursionError, LookupError):
        return problem._replace(pointer=None)


class SuiteWorkers(Workers[Item]):
    """Workers for items of a suite, for one thread and a ``with`` block."""

    def __init__(self, options: WorkerOptions, **listeners: Any) -> None:
        """Start the pool like `Workers`. The options come from `suite_options`."""
        super().__init__(options, **listeners)
        self._rules = rules_of(options)

    def run(
        self, items: Iterable[Item], expected: Callable[[str], Expected] = lambda name: UNLISTED
    ) -> Iterator[Result]:
        """Run items like `run_items`, and yield results. Without a device, the other items are Missing.

        ``expected`` looks up the entries for the id of an item.
        """
        for ended in self.run_items((item, expected(item.id)) for item in items):
            outcomes = ended.outcomes
            if ended.left:
                outcomes = (*outcomes, Outcome("Missing", reason=ended.left))
            result = self._rules.result(ended.item, ended.hint, *outcomes)
            yield result._replace(device=ended.device.uuid, driver=ended.device.driver)

    def run_one(self, item: Item, expected: Expected = UNLISTED) -> Result:
        """Run an item. Raises the same errors as `run_items`."""
        (result,) = self.run((item,), lambda name: expected)
        return result
