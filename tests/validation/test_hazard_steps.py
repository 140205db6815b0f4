"""What commands do to memory, as the rules about barriers see it."""

from __future__ import annotations

import json
import shutil
from itertools import pairwise
from pathlib import Path

import pytest

from scenario_runner.checks.hazards import Step, Work, find_hazards
from scenario_runner.plan.resolve import examine
from scenario_runner.scenario import load
from scenario_runner.validation.hazard_steps import steps_of


def model(checkout: Path, folder: Path, name: str) -> Path:
    """The scenario of one of the test models, copied into ``folder``."""
    for path in (checkout / "tests" / "vgf" / "models" / name).iterdir():
        shutil.copy(path, folder / path.name)
    return folder / "scenario.json"


def run_twice(path: Path, *, src_stage: list[str]) -> Path:
    """The scenario with its graph run twice, without an implicit barrier and with an explicit one between."""
    scenario = json.loads(path.read_text(encoding="utf-8"))
    (command,) = scenario["commands"]
    (dispatch,) = command.values()
    dispatch["implicit_barrier"] = False
    words = {"src_access": "memory_write", "dst_access": "memory_read", "src_stage": src_stage, "dst_stage": ["all"]}
    scenario["resources"].append({"memory_barrier": {"uid": "between", **words}})
    scenario["commands"] = [command, {"dispatch_barrier": {"memory_barrier_refs": ["between"]}}, command]
    path.write_text(json.dumps(scenario), encoding="utf-8")
    return path


def steps(path: Path) -> list[Step]:
    """The steps of a scenario without mistakes."""
    scenario = load(path)
    examination = examine(scenario)
    assert not examination.problems.errors
    return list(steps_of(scenario, examination))


def test_segments_run_where_they_run(checkout: Path, tmp_path: Path) -> None:
    """Each segment of a model is a step of its own, at the stage of graphs or of compute shaders.

    The model has convolutions with a shader after each of the first two; the second shader's result is an output.
    """
    works = [step for step in steps(model(checkout, tmp_path, "mixed")) if isinstance(step, Work)]
    assert len(works) == 5
    uses = {(use.resource, use.stage, use.reads, use.writes) for step in works for use in step.uses}
    assert {use for use in uses if not use[0].startswith("graph:")} == {
        ("picture", "graph", True, False),
        ("features", "compute", False, True),
        ("features", "graph", True, False),
        ("scores", "graph", False, True),
    }
    assert all(step.barrier_after for step in works)
    for before, after in pairwise(works):  # each segment reads what the one before it writes
        assert {use.memory for use in before.uses if use.writes} & {use.memory for use in after.uses if use.reads}


@pytest.mark.parametrize(
    "name, src_stage, expected",
    [
        ("classifier", ["graph"], []),
        ("classifier", ["all"], []),
        ("classifier", ["compute"], ["SR-HAZARD-004"]),
        # the barriers between the segments of the second run come before it writes again
        ("mixed", ["compute"], []),
    ],
)
def test_a_graph_is_of_the_stage_of_graphs(
    checkout: Path, tmp_path: Path, name: str, src_stage: list[str], expected: list[str]
) -> None:
    """A graph without an implicit barrier needs one from the stage of graphs; its segments are in order anyway."""
    path = run_twice(model(checkout, tmp_path, name), src_stage=src_stage)
    assert [finding.code for finding in find_hazards(steps(path))] == expected
