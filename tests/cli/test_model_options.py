"""Options that running a model shares with running a scenario."""

from __future__ import annotations

import pytest

from tests.program import Program


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "soon"])
@pytest.mark.parametrize("file", ["model.vgf", "scenario.json"])
def test_time_limit_is_a_positive_number(program: Program, file: str, seconds: str) -> None:
    """A time limit that can never be kept is refused for a model as for a scenario, before anything is read."""
    ended = program(file, f"--timeout={seconds}")
    assert (ended.code, ended.out) == (2, "")
    assert f"argument --timeout: '{seconds}': expected a number of seconds above 0" in ended.err
