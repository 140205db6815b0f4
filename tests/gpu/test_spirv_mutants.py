"""SPIR-V with random changes that validation lets pass: the driver survives it."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from scenario_runner.validation import validate_file
from tests.program import Program
from tests.spirv.mutants import as_spirv, mutated, our_verdict

LAST_CODE = 11  # of errors.py; 1 would be a defect of ours, and a signal is negative
SCENARIOS = (
    "algorithms/prefix_sum",
    "basics/specialization_constants",
    "basics/uniform_buffer",
    "images/mip_levels",
    "shader_features/subgroup_basic",
)


def died(scenario: Path, folder: Path, program: Program, count: int) -> list[tuple[int, int, str]]:
    """Run the first ``count`` mutants that pass: seed, exit code and last words of each that ended with neither a
    result nor an error of ours."""
    modules = as_spirv(scenario, folder)
    bad, runs, seed = [], 0, 0
    while runs < count:
        seed += 1
        dice = random.Random(seed)
        name = dice.choice(sorted(modules))
        code = mutated(modules[name], dice)
        if our_verdict(code):
            continue
        (folder / name).write_bytes(code)
        if validate_file(folder / "scenario.json").exit_code == 0:
            runs += 1
            # with a limit, because a changed shader may never end
            ended = program(folder / "scenario.json", "--timeout", "5", timeout_s=120)
            if not (ended.code == 0 or 2 <= ended.code <= LAST_CODE):
                bad.append((seed, ended.code, ended.err[-300:]))
        (folder / name).write_bytes(modules[name])
    return bad


@pytest.mark.parametrize("name", SCENARIOS)
def test_mutants_that_pass(name: str, checkout: Path, tmp_path: Path, program: Program) -> None:
    """A few of each, always the same ones."""
    assert died(checkout / "scenarios" / name / "scenario.json", tmp_path / "mutants", program, 4) == []


@pytest.mark.heavy
def test_many_mutants_that_pass(checkout: Path, tmp_path: Path, program: Program) -> None:
    """Thirty of every scenario without tensors and graphs."""
    bad = []
    for scenario in sorted((checkout / "scenarios").glob("*/*/scenario.json")):
        if scenario.parent.parent.name != "ml":
            bad += died(scenario, tmp_path / scenario.parent.name, program, 30)
    assert bad == []
