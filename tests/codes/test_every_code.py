"""Every code of the table has one input that raises it, and no other code has one."""

from __future__ import annotations

from pathlib import Path

import pytest

from scenario_runner.codes import CODES
from tests.codes import (
    cluster_inputs,
    conversion_inputs,
    custom_inputs,
    device_inputs,
    drawing_inputs,
    expect_inputs,
    flow_inputs,
    graph_inputs,
    scenario_inputs,
    shader_inputs,
    suite_inputs,
)
from tests.codes.case import Case
from tests.program import Program
from tests.scenes import Scene

TABLES = [
    each.INPUTS
    for each in (
        scenario_inputs,
        shader_inputs,
        drawing_inputs,
        graph_inputs,
        flow_inputs,
        expect_inputs,
        custom_inputs,
        conversion_inputs,
        device_inputs,
        suite_inputs,
        cluster_inputs,
    )
]
INPUTS = {code: given for table in TABLES for code, given in table.items()}


def test_every_code_has_one_input() -> None:
    """The inputs are those of the codes in the table, each listed once."""
    assert set(INPUTS) == set(CODES)
    assert len(INPUTS) == sum(map(len, TABLES))


@pytest.mark.parametrize("code", INPUTS)
def test_the_input_raises_the_code(
    scene: Scene, program: Program, fault_layer: dict[str, str], shader_cache: Path, code: str
) -> None:
    """The code is among those that are found."""
    assert code in INPUTS[code](Case(scene, program, fault_layer))
