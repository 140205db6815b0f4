"""Every code of the table has one input that raises it, and no other code has one."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

from scenario_runner.codes import CODES
from tests.codes.case import Case
from tests.program import Program
from tests.scenes import Scene

MODULES = sorted(path.stem for path in Path(__file__).parent.glob("*_inputs.py"))
TABLES = [import_module(f"tests.codes.{name}").INPUTS for name in MODULES]
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
