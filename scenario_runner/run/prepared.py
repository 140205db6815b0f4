"""A scenario that was planned once and can run many times."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextvars import copy_context
from typing import TYPE_CHECKING, Any

from scenario_runner import progress
from scenario_runner.errors import ScenarioRunnerError
from scenario_runner.run.given_scenario import give_places
from scenario_runner.run.inputs import Inputs, given_inputs
from scenario_runner.run.output_files import FileWriter
from scenario_runner.run.result import Collector, Result

if TYPE_CHECKING:
    from scenario_runner.plan.model.plan import Plan
    from scenario_runner.run.timings import Timings
    from scenario_runner.scenario import Scenario

    # Carries a plan out: plan, sinks, and the options of a run by name.
    Execute = Callable[..., None]


class Prepared:
    """A scenario with its plan, from `Runner.prepare`; usable as long as the Runner is.

    Shaders are compiled and files are looked at when it is made, and raw_data is read: what changes on disk later is
    not seen, except for the content of sources, which each run reads. Warnings about the scenario are logged once.
    """

    def __init__(
        self,
        scenario: Scenario,
        plan: Plan,
        plan_again: Callable[[Mapping[str, Any]], Plan],
        execute: Execute,
        by_uid: Callable[[Inputs], Mapping[str, Any]],
    ) -> None:
        """``plan_again`` gives the plan for inputs that change more than their content; ``by_uid`` their uids."""
        self._scenario = scenario
        self._plan = plan
        self._plan_again = plan_again
        self._execute = execute
        self._by_uid = by_uid
        self._warned = False
        self._context = copy_context()  # which has the Runner's sandbox, where there is one

    @property
    def plan(self) -> Plan:
        """What a run without inputs does."""
        return self._plan

    def run(
        self,
        inputs: Any = None,
        *more: Any,
        capture_dir: str | os.PathLike[str] | None = None,
        write_files: bool = True,
        repeat: int = 1,
        keep_state: bool = False,
        dry_run: bool = False,
        timings: bool | Timings = False,
    ) -> Result:
        """Run it, with ``inputs`` in place of those it was prepared with; they hold for this run alone.

        ``inputs`` are buffers, tensors, images and raw_data (push constants) by uid; those of a model may be given by
        position, name or binding number, as `Runner.run` takes them. ``timings`` may be the
        object that gets what the run takes. The other arguments, the result and the errors are those of `Runner.run`.
        """
        folder = None if capture_dir is None else os.fspath(capture_dir)
        options = {"repeat": repeat, "keep_state": keep_state, "dry_run": dry_run}
        measured: Timings | None = None
        if timings:
            from scenario_runner.run import timings as records

            measured = records.Timings() if timings is True else timings
        try:
            return self._context.run(
                self._run, self._by_uid(given_inputs(inputs, more)), folder, write_files, options, measured
            )
        except ScenarioRunnerError as error:
            give_places(error, self._scenario)
            error.at(path=self._scenario.path)
            raise

    def _run(
        self,
        inputs: Mapping[str, Any],
        capture_dir: str | None,
        write_files: bool,
        options: Mapping[str, Any],
        timings: Timings | None,
    ) -> Result:
        with progress.measuring(timings.clock if timings else None):
            result = self._measured(inputs, capture_dir, write_files, {**options, "timings": timings})
        result.timings = timings
        return result

    def _measured(
        self, inputs: Mapping[str, Any], capture_dir: str | None, write_files: bool, options: Mapping[str, Any]
    ) -> Result:
        plan = self._plan
        if inputs:
            from scenario_runner.plan.resources import with_inputs

            plan = with_inputs(plan, self._scenario, inputs) or self._plan_again(inputs)
        if self._warned and plan.warnings:
            plan = plan._replace(warnings=())
        collector = Collector(plan)
        repeat: int = options["repeat"]
        with FileWriter(plan, outputs=write_files, capture_dir=capture_dir, repeat=repeat) as writer:
            self._execute(plan, (collector, writer), **options)
        self._warned = True
        return collector.result()

    def __repr__(self) -> str:
        outputs = ", ".join(repr(output.uid) for output in self._plan.outputs) or "none"
        return f"<Prepared {self._plan.name}, outputs: {outputs}>"
