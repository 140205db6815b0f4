"""Operators of graphs as a converter writes them, and damaged ones."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from scenario_runner.errors import SpirvError
from scenario_runner.graphs import read_vgf
from scenario_runner.graphs.module import GraphBody, GraphModule
from scenario_runner.graphs.tosa import OPERATORS
from scenario_runner.spirv import read_module
from tests.graphs.graph_words import EXT_INST, FIXTURES, Graph, mutated

TYPE_POINTER, VARIABLE = 32, 59  # opcodes
TESTS = Path(__file__).resolve().parents[1]
CODE = (FIXTURES / "operators.spv").read_bytes()
SMALL = [path.read_bytes() for path in sorted((TESTS / "spirv" / "fixtures").glob("graph*.spv"))]


def infer(code: bytes) -> GraphBody:
    """Read a module and infer the shapes in its graph from the shapes that its inputs declare."""
    module = read_module(code, name="graph.spv")
    (entry,) = module.graph_entry_points
    (graph,) = module.source.graphs
    body = GraphBody(module, graph, [each.tensor.shape for each in entry.inputs])
    body.read()
    return body


def test_every_operator_that_a_converter_writes_is_read() -> None:
    """One graph with all 66 operators in the types that the converter takes: the inferred shapes are the declared."""
    assert {each[4] for each in Graph(CODE).of(EXT_INST)} == set(range(len(OPERATORS)))
    assert len(OPERATORS) == 66
    assert infer(CODE).open_values == []
    assert GraphModule(CODE, "graph.spv").unbuildable == ("", "")


def test_a_type_that_two_types_become_is_defined_once() -> None:
    """Two equal pointer types, the second of which is used first, have one type in place of both once sizes are known:
    it is defined before what uses it, and nowhere else."""
    code = read_vgf(FIXTURES / "dynamic.vgf").modules[0].code
    assert isinstance(code, bytes)
    graph = Graph(code)
    (pointer,) = graph.of(TYPE_POINTER)
    place, second = graph.instructions.index(pointer), graph.head[3]
    graph.head[3] += 1
    graph.instructions.insert(place, [TYPE_POINTER, second, *pointer[2:]])
    _, output = graph.of(VARIABLE)
    output[1] = second
    module = GraphModule(graph.bytes(), "graph.spv")
    (entry,) = module.module.graph_entry_points
    fixed = module.fixed(entry, {(each.set, each.binding): (1, 4) for each in entry.inputs}).code
    assert fixed is not None
    types = [each[1] for each in Graph(fixed).of(TYPE_POINTER)]
    assert len(set(types)) == len(types)
    assert {each[1] for each in Graph(fixed).of(VARIABLE)} <= set(types)


@pytest.mark.parametrize("code", SMALL, ids=range(len(SMALL)))
def test_a_damaged_graph_is_read_or_refused(code: bytes) -> None:
    """Whatever is changed in a graph, reading it ends with an error of ours or without one."""
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
