"""Converted models compute what the model says: run on a device, compared with NumPy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy
import pytest

from scenario_runner import Runner, convert
from tests.conversion.models import BUFFER, TENSOR, add, function, shader

Array = Any


class Case(NamedTuple):
    """A model, and its outputs as a function of its inputs."""

    text: str
    outputs: Callable[..., tuple[Array, ...]]
    inputs: tuple[str, ...] = ("x", "y")


CASES = {
    "shader between graphs": Case(
        function(["x", "y"], [add("%0", "%x", "%y"), shader("%1", ["%0"], [2, 1]), add("%2", "%1", "%y")], ["%2"]),
        lambda x, y: (2 * (x + y) + 1 + y,),
    ),
    "operands in another order, shader only": Case(
        function(["x", "y"], [shader("%0", ["%y", "%x"], [1, 10, 0])], ["%0"]),
        lambda x, y: (y + 10 * x,),
    ),
    "repeated operand": Case(
        function(["x", "y"], [add("%0", "%x", "%y"), shader("%1", ["%0", "%x", "%0"], [1, 10, 100, 0])], ["%1"]),
        lambda x, y: (101 * (x + y) + 10 * x,),
    ),
}


@pytest.fixture(scope="module")
def runner() -> Iterator[Runner]:
    """One device for all cases."""
    with Runner() as runner:
        yield runner


@pytest.mark.parametrize("name", CASES)
def test_numbers(runner: Runner, shader_cache: Path, tmp_path: Path, name: str) -> None:
    """Every output is what NumPy computes from the inputs."""
    case = CASES[name]
    convert(case.text.encode(), tmp_path / "model.vgf")
    generator = numpy.random.default_rng(3)
    given = {each: generator.integers(-9, 9, (4, 16)).astype("f4") for each in case.inputs}
    result = runner.run(tmp_path / "model.vgf", dict(given), write_files=False)
    for number, expected in enumerate(case.outputs(*given.values())):
        array = result[f"out{number}"].view("f4").reshape(4, 16)
        assert numpy.array_equal(array, expected), number


def test_tensors(runner: Runner, shader_cache: Path, tmp_path: Path) -> None:
    """Shaders see values as tensors."""
    text = function(["x"], [add("%0", "%x", "%x"), shader("%1", ["%0"], [3, 1], inputs=TENSOR, outputs=BUFFER)], ["%1"])
    convert(text.encode(), tmp_path / "model.vgf")
    x = numpy.arange(64, dtype="f4").reshape(4, 16)
    result = runner.run(tmp_path / "model.vgf", {"x": x}, write_files=False)
    assert numpy.array_equal(result["out0"].view("f4").reshape(4, 16), 6 * x + 1)
