"""Operands that TOSA lets a model compute (EXT-DYNAMIC) and the emulation layers look up among its constants."""

import re
from pathlib import Path

import numpy
import pytest

from tests.left_out import VGF_LIBRARY, needs
from tests.ml.make_fixtures import POOL, Graph, tensor
from tests.program import Ended, Program

pytestmark = needs(VGF_LIBRARY)

NO_PADDING = "pad = array<i64: 0, 0, 0, 0>, stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>"
RESCALE = (
    "scale32 = true, rounding_mode = SINGLE_ROUND, per_channel = false, input_unsigned = false, output_unsigned = false"
)
ZERO_POINTS = {"input_zp": ("f32", 0), "weight_zp": ("f32", 0)}

# inputs, operands of one element by name (type, value), result, attributes; PAD's padding is always a constant
OPERATORS = {
    "mul": ([((2, 3), "i32")] * 2, {"shift": ("i8", 0)}, ((2, 3), "i32"), ""),
    "negate": ([((2, 3), "i8")], {"input1_zp": ("i8", 0), "output_zp": ("i8", 0)}, ((2, 3), "i8"), ""),
    "matmul": ([((1, 2, 3), "i8"), ((1, 3, 4), "i8")], {"a_zp": ("i8", 0), "b_zp": ("i8", 0)}, ((1, 2, 4), "i32"), ""),
    "conv2d": (
        [((1, 4, 4, 2), "f32"), ((3, 2, 2, 2), "f32"), ((3,), "f32")],
        ZERO_POINTS,
        ((1, 3, 3, 3), "f32"),
        f"acc_type = f32, {NO_PADDING}",
    ),
    "avg_pool2d": (
        [((1, 4, 4, 2), "f32")],
        {"input_zp": ("f32", 0), "output_zp": ("f32", 0)},
        ((1, 2, 2, 2), "f32"),
        f"acc_type = f32, {POOL}",
    ),
    "pad": ([((2, 3), "f32")], {"padding": ("", 0), "pad_const": ("f32", 0)}, ((3, 5), "f32"), ""),
    "rescale": (
        [((4,), "i8")],
        {"multiplier": ("i32", 1 << 30), "shift": ("i8", 30), "input_zp": ("i8", 0), "output_zp": ("i8", 0)},
        ((4,), "i8"),
        RESCALE,
    ),
}


TYPES = {"f32": "f4", "i8": "i1", "i32": "i4"}


def run(program: Program, folder: Path, name: str, computed: str) -> Ended:
    """Convert a model of one operator of which one operand is an input, and run it on ones and that operand."""
    inputs, operands, (shape, kind), attributes = OPERATORS[name]
    graph = Graph()
    values = [graph.input(*each) for each in inputs]
    arrays = [numpy.ones(sizes, TYPES[element]) for sizes, element in inputs]
    for operand, (element, value) in operands.items():
        if operand == computed:
            values.append(graph.input((1,), element))
            arrays.append(numpy.full(1, value, TYPES[element]))
        else:
            values.append(graph.const(1, element, value) if element else graph.shape(1, 0, 0, 2))
    graph.add(name, values, tensor(shape, kind), attributes)
    (folder / "model.mlir").write_text(graph.text())
    assert program("convert", "model.mlir", "--output", "model.vgf").code == 0
    given = []
    for number, array in enumerate(arrays):
        numpy.save(folder / f"{number}.npy", array)
        given += ["--input", f"a{number}={number}.npy"]
    return program("run", "model.vgf", *given)


@pytest.mark.parametrize(
    "name, operand",
    [(name, each) for name, row in OPERATORS.items() for each, (element, _) in row[1].items() if element],
)
def test_an_operand_that_is_an_input(program: Program, tmp_path: Path, name: str, operand: str) -> None:
    """What the layers cannot build is refused in one sentence before the driver aborts; the others run."""
    code, _, err = run(program, tmp_path, name, operand)
    if operand in ("multiplier", "shift") and name == "rescale":
        assert (code, err) == (0, "")
        assert numpy.load(tmp_path / "r0.npy").tolist() == [1, 1, 1, 1]
        return
    assert code == 6
    assert re.match(
        rf"error: model\.vgf: .*: the operator {name.upper()} with the id \d+ takes {operand} from an input, not from a"
        r" constant; the ML emulation layers, .* end the process over such an operand\n",
        err,
    )
    assert f"help: make {operand} a constant of the model" in err
    assert not (tmp_path / "r0.npy").exists()
