"""Graphs for tensors of any size, made into graphs for those that there are."""

from __future__ import annotations

from collections import Counter

import pytest

from scenario_runner.errors import ScenarioError
from scenario_runner.graphs import read_vgf
from scenario_runner.graphs.module import FixedGraph, GraphModule
from scenario_runner.graphs.tosa import Shape
from tests.graphs.graph_words import EXT_INST, FIXTURES, TENSOR, Graph


def code_of(name: str) -> bytes:
    """The module of a model."""
    code = read_vgf(FIXTURES / name).modules[0].code
    assert isinstance(code, bytes)
    return code


def fixed(name: str, *inputs: Shape) -> FixedGraph:
    """The graph of a model for inputs of these shapes at bindings 0, 1, ..."""
    graph = GraphModule(code_of(name), name)
    assert graph.is_open
    (entry,) = graph.module.graph_entry_points
    return graph.fixed(entry, {(0, number): shape for number, shape in enumerate(inputs)})


def test_every_type_gets_its_shape() -> None:
    """Nothing is left open, the interface has the shapes of what is bound, and operators keep their order."""
    graph = fixed("any_size.vgf", (1, 8, 6, 4))
    assert graph.outputs == {(0, 1): (1, 8, 3, 4)}  # half as high and wide, twice one above the other
    assert graph.code is not None
    closed = GraphModule(graph.code, "fixed")
    assert not closed.is_open
    (entry,) = closed.module.graph_entry_points
    assert [each.tensor.shape for each in (*entry.inputs, *entry.outputs)] == [(1, 8, 6, 4), (1, 8, 3, 4)]
    before = [each[4:] for each in Graph(code_of("any_size.vgf")).of(EXT_INST)]
    assert [each[4:] for each in Graph(graph.code).of(EXT_INST)] == before


@pytest.mark.parametrize("shape", [(2, 4, 8), (1, 2, 16)])
def test_an_operator_with_two_results(shape: Shape) -> None:
    """Structures are given shapes as well; a type that the module has further down moves to where it is needed."""
    graph = fixed("any_parts.vgf", shape, (2, 4, 8), (2, 4, 8))
    half = (*shape[:2], shape[2] // 2 + 1)
    assert sorted(graph.outputs.values()) == sorted([half, half, (2, 4, 8)])
    assert graph.code is not None
    closed = GraphModule(graph.code, "fixed")
    assert not closed.is_open
    (entry,) = closed.module.graph_entry_points
    assert entry.inputs[0].tensor.shape == shape
    found = {each[1]: each for each in Graph(graph.code).of(TENSOR)}
    types = Counter((each[2], shape_of(graph.code, each)) for each in found.values() if len(each) > 4)
    assert max(types.values()) == 1  # SPIR-V wants types to be unique


def shape_of(code: bytes, tensor: list[int]) -> Shape:
    """The sizes that a tensor type says."""
    graph = Graph(code)
    return tuple(graph.defining(size)[3] for size in graph.defining(tensor[4])[3:])


def test_an_input_that_is_not_known() -> None:
    """Without the input's shape there is no module to be had, and it is said why."""
    graph = fixed("any_size.vgf")
    assert graph.code is None
    assert graph.outputs == {(0, 1): (-1, -1, -1, 4)}
    assert graph.unknown.startswith("the id ")


def test_an_input_that_does_not_fit() -> None:
    """A picture of another number of channels is refused by the operator that it reaches."""
    with pytest.raises(ScenarioError) as caught:
        fixed("any_size.vgf", (1, 8, 6, 3))
    assert ": the operator CONV2D with the result " in str(caught.value)
    assert str(caught.value).endswith(
        "has different numbers of channels in input and weight: 3 and 4, expected the same"
    )
