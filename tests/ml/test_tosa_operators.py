"""Operators of TOSA: the shapes that they make, against NumPy and windows that are counted one by one; operators as a
converter writes them, and damaged ones."""

import random
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

import numpy
import pytest

from scenario_runner.errors import SpirvError
from scenario_runner.ml.graph_module import GraphBody, GraphModule
from scenario_runner.ml.tosa_operators import OPERATORS, UNKNOWN, Shape, result_shapes
from scenario_runner.ml.vgf_file import read_vgf
from scenario_runner.shaders.spirv import read_module
from tests.left_out import VGF_LIBRARY, needs
from tests.ml.graph_words import EXT_INST, FIXTURES, TENSOR, Graph, mutated


def shapes(
    name: str,
    inputs: Mapping[str, Shape],
    attributes: Mapping[str, tuple[int, ...]] | None = None,
    constants: Mapping[str, tuple[int, ...]] | None = None,
) -> Any:
    """Return the shapes of an operator's results, or the only shape."""
    found = result_shapes(name, list(inputs.values()), {**(attributes or {}), **(constants or {})})
    return found[0] if len(found) == 1 else found


def windows(size: int, before: int, after: int, kernel: int, stride: int, dilation: int) -> int:
    """In how many places a kernel fits, counted."""
    places = range(0, before + size + after, stride)
    return sum(start + (kernel - 1) * dilation < before + size + after for start in places)


@pytest.mark.parametrize(
    "size, pad, kernel, stride, dilation",
    list(product((8, 9), (0, 2), (1, 3), (1, 2, 3), (1, 2))),
)
def test_convolutions_and_pools(size: int, pad: int, kernel: int, stride: int, dilation: int) -> None:
    """A convolution's and a pool's result has as many elements as there are windows."""
    expected = windows(size, pad, 1, kernel, stride, dilation)
    attributes = {"pad": (pad, 1, 1, 1), "stride": (stride, 1), "dilation": (dilation, 1)}
    inputs = {"input": (2, size, 8, 3), "weight": (4, kernel, 3, 3), "bias": (4,)}
    assert shapes("CONV2D", inputs, attributes) == (2, expected, 8, 4)
    inputs = {"input": (2, size, 8, 3), "weight": (kernel, 3, 3, 5), "bias": (1,)}
    assert shapes("DEPTHWISE_CONV2D", inputs, attributes) == (2, expected, 8, 15)
    inputs = {"input": (2, size, 6, 8, 3), "weight": (4, kernel, 2, 3, 3), "bias": (4,)}
    attributes = {"pad": (pad, 1, 0, 0, 1, 1), "stride": (stride, 2, 1), "dilation": (dilation, 1, 1)}
    assert shapes("CONV3D", inputs, attributes) == (2, expected, 3, 8, 4)
    attributes = {"kernel": (kernel, 2), "pad": (pad, 1, 0, 0), "stride": (stride, 2)}
    for name in ("AVG_POOL2D", "MAX_POOL2D"):
        expected = windows(size, pad, 1, kernel, stride, 1)
        assert shapes(name, {"input": (2, size, 8, 3)}, attributes) == (2, expected, 4, 3)


@pytest.mark.parametrize("stride, kernel, pad", list(product((1, 2, 3), (1, 3), (0, 2))))
def test_a_transposed_convolution(stride: int, kernel: int, pad: int) -> None:
    """The result covers every element that some input element reaches, plus the padding."""
    reached = {start * stride + offset for start in range(5) for offset in range(kernel)}
    attributes = {"out_pad": (pad, 0, 0, 0), "stride": (stride, 1)}
    inputs = {"input": (1, 5, 4, 3), "weight": (2, kernel, 3, 3), "bias": (2,)}
    assert shapes("TRANSPOSE_CONV2D", inputs, attributes) == (1, max(reached) + 1 + pad, 6, 2)


X = numpy.zeros((2, 3, 4))


@pytest.mark.parametrize(
    "name, inputs, more, expected",
    [
        ("ARGMAX", {"input": X.shape}, {"axis": (1,)}, X.argmax(1).shape),
        ("ARGMAX", {"input": (7,)}, {"axis": (0,)}, (1,)),
        ("REDUCE_SUM", {"input": X.shape}, {"axis": (2,)}, X.sum(2, keepdims=True).shape),
        ("TRANSPOSE", {"input1": X.shape}, {"perms": (2, 0, 1)}, X.transpose(2, 0, 1).shape),
        ("CONCAT", {"a": X.shape, "b": (2, 5, 4)}, {"axis": (1,)}, numpy.hstack([X, numpy.zeros((2, 5, 4))]).shape),
        ("MATMUL", {"a": X.shape, "b": (2, 4, 9)}, {}, (X @ numpy.zeros((2, 4, 9))).shape),
        ("ADD", {"input1": X.shape, "input2": (1, 3, 1)}, {}, (X + numpy.zeros((1, 3, 1))).shape),
        ("ADD", {"input1": (2, 1, 4), "input2": (1, 3, 1)}, {}, X.shape),
        ("SELECT", {"condition": (1, 1, 4), "on_true": (1, 3, 1), "on_false": (2, 1, 1)}, {}, X.shape),
        ("RFFT2D", {"input_real": (2, 4, 8)}, {}, (numpy.fft.rfft2(numpy.zeros((2, 4, 8))).shape,) * 2),
        ("GATHER", {"values": (2, 5, 4), "indices": (2, 3)}, {}, (2, 3, 4)),
        ("SCATTER", {"values_in": (2, 5, 4), "indices": (2, 3), "input": (2, 3, 4)}, {}, (2, 5, 4)),
    ],
)
def test_as_numpy_does(name: str, inputs: dict[str, Shape], more: dict[str, tuple[int, ...]], expected: Shape) -> None:
    """Operators that NumPy has as well make the same shapes."""
    assert shapes(name, inputs, more) == expected


@pytest.mark.parametrize(
    "name, constants, expected",
    [
        ("PAD", {"padding": (1, 0, 0, 2, 3, 0)}, numpy.pad(X, ((1, 0), (0, 2), (3, 0))).shape),
        ("RESHAPE", {"shape": (6, 4)}, (6, 4)),
        ("RESHAPE", {"shape": (6, -1)}, X.reshape(6, -1).shape),
        ("SLICE", {"start": (1, 0, 2), "size": (1, 3, 2)}, X[1:2, 0:3, 2:4].shape),
        ("TILE", {"multiples": (1, 2, 3)}, numpy.tile(X, (1, 2, 3)).shape),
    ],
)
def test_with_shapes_as_operands(name: str, constants: dict[str, tuple[int, ...]], expected: Shape) -> None:
    """Operators with a shape as operand give NumPy's shape."""
    assert shapes(name, {"input1": X.shape}, {}, constants) == expected


def test_a_resize() -> None:
    """Twice the size with the corners in their places leaves out the last half step; a border adds it."""
    constants = {"scale": (4, 2, 2, 1), "offset": (0, 0), "border": (0, 1)}
    assert shapes("RESIZE", {"input": (1, 4, 5, 3)}, {}, constants) == (1, 7, 10, 3)


@pytest.mark.parametrize(
    "name, inputs, attributes, constants, expected",
    [
        ("ADD", {"input1": (UNKNOWN, 4), "input2": (3, UNKNOWN)}, {}, {}, (3, 4)),
        ("ADD", {"input1": (UNKNOWN, 1), "input2": (1, UNKNOWN)}, {}, {}, (UNKNOWN, UNKNOWN)),
        ("CONCAT", {"a": (UNKNOWN, 3), "b": (2, UNKNOWN)}, {"axis": (1,)}, {}, (2, UNKNOWN)),
        ("PAD", {"input1": (UNKNOWN, 3)}, {}, {"padding": (1, 1, 1, 1)}, (UNKNOWN, 5)),
        ("RESHAPE", {"input1": (UNKNOWN, 3)}, {}, {"shape": (-1, 9)}, (UNKNOWN, 9)),
        ("MATMUL", {"a": (2, UNKNOWN, 4), "b": (UNKNOWN, UNKNOWN, 9)}, {}, {}, (2, UNKNOWN, 9)),
        (
            "MAX_POOL2D", {"input": (UNKNOWN, UNKNOWN, 8, 3)},
            {"kernel": (2, 2), "pad": (0, 0, 0, 0), "stride": (2, 2)}, {}, (UNKNOWN, UNKNOWN, 4, 3),
        ),
    ],
)  # fmt: skip
def test_sizes_that_are_not_known(
    name: str, inputs: dict[str, Shape], attributes: Any, constants: Any, expected: Shape
) -> None:
    """Sizes that do not depend on an unknown size are known."""
    assert shapes(name, inputs, attributes, constants) == expected


@pytest.mark.parametrize(
    "name, inputs, message",
    [
        ("ADD", {"input1": (2, 3), "input2": (3,)}, "has inputs of 2 and 1 dimensions, expected the same number"),
        (
            "ADD",
            {"input1": (2, UNKNOWN), "input2": (3, 1)},
            r"has inputs of the shapes \[2, \?\] and \[3, 1\] with sizes neither equal nor 1",
        ),
        (
            "MATMUL",
            {"a": (1, 2, 3), "b": (1, 4, 3)},
            r"has inputs of the shapes \[1, 2, 3\] and \[1, 4, 3\] with different sizes in one dimension: 3 and 4,",
        ),
    ],
)
def test_inputs_that_do_not_fit(name: str, inputs: dict[str, Shape], message: str) -> None:
    """Inputs that contradict the operator's rule have a message."""
    with pytest.raises(ValueError, match=message):
        shapes(name, inputs)


def test_a_size_below_one() -> None:
    """No operator makes a tensor of that; the size would not fit into a module."""
    with pytest.raises(ValueError, match=r"makes a tensor of \[0, 3\], but sizes must be 1 or more"):
        shapes("PAD", {"input1": (2, 3)}, constants={"padding": (-2, 0, 0, 0)})


TYPE_POINTER, VARIABLE = 32, 59  # opcodes
TESTS = Path(__file__).resolve().parents[1]
CODE = (FIXTURES / "operators.spv").read_bytes()
SMALL = [path.read_bytes() for path in sorted((TESTS / "shaders" / "spirv" / "fixtures").glob("graph*.spv"))]


def infer(code: bytes) -> GraphBody:
    """Read a module and infer the shapes in its graph from the shapes that its inputs declare."""
    module = read_module(code, name="graph.spv")
    (entry,) = module.graph_entry_points
    (graph,) = module.source.graphs
    return GraphBody(module, graph, [each.tensor.shape for each in entry.inputs])


def test_every_operator_that_a_converter_writes_is_read() -> None:
    """One graph with all 66 operators as the converter writes them: the inferred shapes are the declared."""
    assert {each[4] for each in Graph(CODE).of(EXT_INST)} == set(range(len(OPERATORS)))
    assert len(OPERATORS) == 66
    assert infer(CODE).open_values == []
    assert GraphModule(CODE, "graph.spv").unbuildable == ("", "")


def open_graph() -> Graph:
    """A module that was compiled for tensors of any size."""
    code = read_vgf(FIXTURES / "dynamic.vgf").modules[0].code
    assert isinstance(code, bytes)
    return Graph(code)


def fixed(graph: Graph) -> bytes:
    """The module with known sizes of all inputs."""
    module = GraphModule(graph.bytes(), "graph.spv")
    (entry,) = module.module.graph_entry_points
    code = module.fixed(entry, {(each.set, each.binding): (1, 4) for each in entry.inputs}).code
    assert code is not None
    return code


@needs(VGF_LIBRARY)
def test_a_type_that_two_types_become_is_defined_once() -> None:
    """Two equal pointer types become one type once sizes are known, defined before the first use and once."""
    graph = open_graph()
    (pointer,) = graph.of(TYPE_POINTER)
    place, second = graph.instructions.index(pointer), graph.head[3]
    graph.head[3] += 1
    graph.instructions.insert(place, [TYPE_POINTER, second, *pointer[2:]])
    _, output = graph.of(VARIABLE)
    output[1] = second
    changed = Graph(fixed(graph))
    types = [each[1] for each in changed.of(TYPE_POINTER)]
    assert len(set(types)) == len(types)
    assert {each[1] for each in changed.of(VARIABLE)} <= set(types)


@pytest.mark.parametrize("name", ["ARGMAX", "MUL"])
def test_an_operand_too_many(name: str) -> None:
    """Only a concatenation takes any number of inputs."""
    graph = Graph(CODE)
    operands = graph.operator(name)
    operands.append(operands[-1])
    with pytest.raises(SpirvError, match=f"the operator {name} with the result .* has operands that it cannot have"):
        infer(graph.bytes())


@needs(VGF_LIBRARY)
def test_a_value_of_an_unknown_type() -> None:
    """A value with a type from an unknown instruction stays unchanged in a model of open shapes."""
    graph = open_graph()
    operator = graph.of(EXT_INST)[-1]
    operator[1] = graph.head[3]
    graph.head[3] += 1
    graph.instructions.insert(graph.instructions.index(graph.of(TENSOR)[0]), [6789, operator[1]])
    assert fixed(graph)


@pytest.mark.parametrize("code", SMALL, ids=range(len(SMALL)))
def test_a_damaged_graph_is_read_or_refused(code: bytes) -> None:
    """Reading a changed graph ends well or with an error of this program."""
    refused = []
    for seed in range(500):
        changed = mutated(code, random.Random(seed))
        try:
            infer(changed)
            GraphModule(changed, "graph.spv")
        except SpirvError as error:
            refused.append(str(error))
    assert refused
    assert [text for text in refused if not text.startswith("graph.spv: ")] == []
