"""Options that running a model shares with running a scenario."""

from __future__ import annotations

import pytest

from tests.gpu.ml_scenes import VGF
from tests.program import Program


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "soon"])
@pytest.mark.parametrize("file", ["model.vgf", "scenario.json"])
def test_time_limit_is_a_positive_number(program: Program, file: str, seconds: str) -> None:
    """A time limit that can never be kept is refused for a model as for a scenario, before anything is read."""
    ended = program(file, f"--timeout={seconds}")
    assert (ended.code, ended.out) == (2, "")
    assert f"argument --timeout: invalid number of seconds value: '{seconds}'" in ended.err


@pytest.mark.parametrize("command", [["bench"], ["validate"], ["run", "--quiet"]])
def test_a_model_where_a_scenario_is_expected(program: Program, command: list[str]) -> None:
    """Commands that take scenarios say what can be done with a model."""
    ended = program(*command, VGF / "conv.vgf")
    assert ended.code == 3
    assert "the file is a model, expected a scenario" in ended.err
    assert "help: scenario-runner vgf scenario makes a scenario of a model" in ended.err
