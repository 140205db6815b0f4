"""Converted models run on a device and give the numbers of NumPy."""

from collections.abc import Callable, Iterator
from inspect import signature
from pathlib import Path
from typing import Any, NamedTuple

import numpy
import pytest

from scenario_runner import Runner, convert
from tests.left_out import VGF_LIBRARY, needs
from tests.tosa.models import BUFFER, GRID, TENSOR, add, attributes, constant, custom, function, reshape, shader

pytestmark = needs(VGF_LIBRARY)

Array = Any
RAMP = numpy.arange(64, dtype="f4").reshape(4, 16)


class Case(NamedTuple):
    """The operations of a model, its returned values, and its outputs as a function of its inputs."""

    body: list[str]
    returned: list[str]
    outputs: Callable[..., tuple[Array, ...]]

    @property
    def inputs(self) -> list[str]:
        """The names of the inputs."""
        return list(signature(self.outputs).parameters)

    @property
    def text(self) -> bytes:
        """The model."""
        return function(self.inputs, self.body, self.returned).encode()


CASES = {
    "a shader between graphs": Case(
        [add("%0", "%x", "%y"), shader("%1", ["%0"], [2, 1]), add("%2", "%1", "%y")],
        ["%2"],
        lambda x, y: (2 * (x + y) + 1 + y,),
    ),
    "tensors": Case(
        [
            add("%0", "%x", "%y"),
            shader("%1", ["%0", "%x"], [3, 2, 1], inputs=TENSOR, outputs=TENSOR),
            add("%2", "%1", "%y"),
        ],
        ["%2"],
        lambda x, y: (3 * (x + y) + 2 * x + 1 + y,),
    ),
    "operands of the only shader in another order": Case(
        [shader("%0", ["%y", "%x"], [1, 10, 0])], ["%0"], lambda x, y: (y + 10 * x,)
    ),
    "operands from everywhere in another order": Case(
        [
            add("%0", "%x", "%y"),
            shader("%1", ["%y", "%0", "%x"], [1, 10, 100, 0], inputs=TENSOR, outputs=TENSOR),
            add("%2", "%1", "%x"),
        ],
        ["%2"],
        lambda x, y: (y + 10 * (x + y) + 100 * x + x,),
    ),
    "a repeated operand": Case(
        [add("%0", "%x", "%y"), shader("%1", ["%0", "%x", "%0"], [1, 10, 100, 0])],
        ["%1"],
        lambda x, y: (101 * (x + y) + 10 * x,),
    ),
    "operands behind a repeated one": Case(
        [add("%0", "%x", "%y"), shader("%1", ["%0", "%0", "%y", "%x"], [1, 10, 100, 1000, 0], inputs=TENSOR)],
        ["%1"],
        lambda x, y: (11 * (x + y) + 100 * y + 1000 * x,),
    ),
    "one shader that is left when the model is simplified": Case(
        [add("%0", "%x", "%y"), shader("%1", ["%y", "%x", "%y"], [1, 10, 100, 0])],
        ["%1"],
        lambda x, y: (101 * y + 10 * x,),
    ),
    "a repeated argument of the only shader": Case(
        [shader("%1", ["%y", "%y", "%x"], [1, 10, 100, 0])], ["%1"], lambda x, y: (11 * y + 100 * x,)
    ),
    "operands that become equal when the model is simplified": Case(
        [
            *reshape("%0", "%x"),
            shader("%1", ["%x", "%0", "%x"], [1, 10, 100, 0], inputs=[TENSOR, BUFFER, TENSOR]),
            add("%2", "%1", "%x"),
        ],
        ["%2"],
        lambda x: (112 * x,),
    ),
    "unused arguments": Case(
        [add("%0", "%y", "%y"), shader("%1", ["%0"], [1, 1])], ["%1"], lambda x, y, z: (2 * y + 1,)
    ),
    "two shaders in a row": Case(
        [shader("%0", ["%x"], [2, 1]), shader("%1", ["%y", "%0"], [1, 10, 0], inputs=TENSOR)],
        ["%1"],
        lambda x, y: (y + 10 * (2 * x + 1),),
    ),
    "a constant and a shader": Case(
        [constant("%k", RAMP), shader("%0", ["%k", "%x"], [10, 1, 0])],
        ["%0"],
        lambda x: (10 * RAMP + x,),
    ),
    "a constant of few elements and a shader": Case(
        [
            '%k = "tosa.const"() {values = dense<[[3.0], [5.0], [7.0], [9.0]]> : tensor<4x1xf32>} '
            ": () -> tensor<4x1xf32>",
            f"%0 = tosa.add %x, %k : ({GRID}, tensor<4x1xf32>) -> {GRID}",
            constant("%one", numpy.full((4, 16), 0.5, "f4")),
            shader("%1", ["%one", "%0"], [10, 1, 0]),
        ],
        ["%1"],
        lambda x: (5 + x + numpy.float32([[3], [5], [7], [9]]),),
    ),
    "several results": Case(
        [shader("%0:2", ["%x", "%y"], [1, 0, 1], [0, 1, 2]), add("%1", "%0#0", "%0#1")],
        ["%1", "%0#0", "%0#1"],
        lambda x, y: (x + y + 3, x + 1, y + 2),
    ),
    "several results in another order": Case(
        [shader("%0:2", ["%x", "%y"], [1, 0, 1], [0, 1, 2]), shader("%1", ["%0#1", "%0"], [10, 1, 0])],
        ["%1", "%0#1", "%0#0"],
        lambda x, y: (10 * (y + 2) + x + 1, y + 2, x + 1),
    ),
    "several results in another order, and a graph": Case(
        [
            add("%z", "%x", "%y"),
            shader("%0:2", ["%x", "%z"], [1, 0, 1], [0, 1, 2], outputs=[BUFFER, TENSOR]),
            add("%1", "%0#1", "%0#1"),
            shader("%2:3", ["%0#1", "%1"], [0, 1, 0], [1, 0, 0], [5, 5, 0]),
            add("%3", "%2#2", "%2#0"),
        ],
        ["%3", "%0#0"],
        lambda x, y: (17 * (x + y + 2), x + 1),
    ),
    "results that nobody reads": Case(
        [
            shader("%0:3", ["%x"], [1, 1], [2, 2], [3, 3], outputs=[BUFFER, TENSOR, BUFFER]),
            shader("%dead", ["%x"], [9, 9]),
            add("%1", "%0#1", "%x"),
        ],
        ["%1"],
        lambda x: (3 * x + 2,),
    ),
    "a diamond": Case(
        [
            add("%0", "%x", "%x"),
            shader("%1", ["%0"], [1, 1]),
            shader("%2", ["%0"], [10, 0], inputs=TENSOR, outputs=TENSOR),
            add("%3", "%1", "%2"),
            shader("%4", ["%3", "%1"], [1, 100, 0]),
        ],
        ["%4", "%2"],
        lambda x: ((22 * x + 1) + 100 * (2 * x + 1), 20 * x),
    ),
    "a value as tensor and as buffer in one shader": Case(
        [
            add("%0", "%x", "%x"),
            shader("%1", ["%0", "%0"], [1, 10, 0], inputs=[TENSOR, BUFFER], outputs=TENSOR),
            add("%2", "%1", "%x"),
        ],
        ["%2"],
        lambda x: (23 * x,),
    ),
    "an input as tensor of a graph and as buffer of a shader": Case(
        [add("%0", "%x", "%x"), shader("%1", ["%x", "%0"], [1, 10, 0]), add("%2", "%1", "%x")],
        ["%2", "%1"],
        lambda x: (22 * x, 21 * x),
    ),
    "an input as buffer of a shader and as tensor of another": Case(
        [shader("%0", ["%x"], [2, 1]), shader("%1", ["%x", "%0"], [1, 1, 0], inputs=TENSOR)],
        ["%1"],
        lambda x: (3 * x + 1,),
    ),
    "an output as tensor that a shader wrote as buffer": Case(
        [shader("%0", ["%x"], [2, 1]), shader("%1", ["%0"], [3, 0], inputs=TENSOR)],
        ["%0", "%1"],
        lambda x: (2 * x + 1, 6 * x + 3),
    ),
    "an output that is an input, and one that is there twice": Case(
        [shader("%0", ["%x"], [2, 1], inputs=TENSOR), add("%1", "%0", "%x")],
        ["%1", "%1", "%x"],
        lambda x: (3 * x + 1, 3 * x + 1, x),
    ),
    "operations that no shader needs, behind one": Case(
        [shader("%0", ["%x"], [2, 1]), add("%1", "%y", "%y"), shader("%2", ["%1"], [1, 5]), add("%3", "%y", "%x")],
        ["%2", "%3", "%0"],
        lambda x, y: (2 * y + 5, x + y, 2 * x + 1),
    ),
    "a shader without operands": Case([shader("%0", [], [7]), add("%1", "%0", "%x")], ["%1"], lambda x: (x + 7,)),
}


@pytest.fixture(scope="module")
def runner() -> Iterator[Runner]:
    """One device for all cases."""
    with Runner() as runner:
        yield runner


def check_numbers(runner: Runner, path: Path, case: Case) -> None:
    """Run a converted model and compare its outputs."""
    generator = numpy.random.default_rng(3)
    given = {each: generator.integers(-9, 9, (4, 16)).astype("f4") for each in case.inputs}
    result = runner.run(path, dict(given), write_files=False)
    expected = case.outputs(*given.values())
    ports = {f"out{number}": each for number, each in enumerate(expected)}
    for name, array in ports.items():
        # a value that is returned twice has its first name, an argument its own
        others = [each for each in result if name not in result]
        assert any(numpy.array_equal(result[each].view("f4").reshape(4, 16), array) for each in others or [name]), name


@pytest.mark.parametrize("name", CASES)
def test_numbers(runner: Runner, shader_cache: Path, tmp_path: Path, name: str) -> None:
    """Every output equals NumPy's result for the inputs."""
    convert(CASES[name].text, tmp_path / "model.vgf", strict=True)
    check_numbers(runner, tmp_path / "model.vgf", CASES[name])


def test_a_value_of_rank_0(runner: Runner, shader_cache: Path, tmp_path: Path) -> None:
    """A buffer of a value without dimensions has one element."""
    code = "#version 450\nlayout(binding = 0) buffer A { float a; };\nlayout(binding = 1) buffer B { float b; };\n"
    given = attributes([BUFFER], [BUFFER], code + "void main() { b = 2.0 * a + 1.0; }")
    body = [custom("%0", ["%x"], given), custom("%1", ["%0"], given)]
    convert(function(["x"], body, ["%1"]).replace(GRID, "tensor<f32>").encode(), tmp_path / "model.vgf", strict=True)
    result = runner.run(tmp_path / "model.vgf", {"x": numpy.float32([5])}, write_files=False)
    assert result["out0"].view("f4").tolist() == [23]
