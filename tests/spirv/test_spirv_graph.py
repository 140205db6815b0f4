"""Tensors of GL_ARM_tensors and graphs of SPV_ARM_graph; how the modules were made is in fixtures/README.md."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from scenario_runner.errors import SpirvError
from scenario_runner.spirv import Scalar, Tensor, read_module

FIXTURES = Path(__file__).parent / "fixtures"


def test_tensors_of_a_shader() -> None:
    """Tensor bindings have element type, rank and access; one that is only declared is not used."""
    module = read_module((FIXTURES / "tensor.spv").read_bytes())
    interface = module.entry_points[0].interface
    assert "TensorsARM" in module.capabilities
    assert "SPV_ARM_tensors" in module.extensions
    assert interface.local_size() == (4, 2, 1)
    assert [
        (item.set, item.binding, item.name, item.kind, str(item.tensor), item.used) for item in interface.bindings
    ] == [
        (0, 0, "source", "tensor", "tensor<int8, rank 4>", True),
        (0, 1, "target", "tensor", "tensor<int8, rank 4>", True),
        (1, 3, "both", "tensor", "tensor<float16, rank 2>", True),
        (1, 4, "unused", "tensor", "tensor<uint32, rank 1>", False),
    ]
    assert [(item.readable, item.writable, item.reads, item.writes) for item in interface.bindings] == [
        (True, False, True, False),
        (False, True, False, True),
        (True, True, True, True),
        (True, True, False, False),
    ]


def test_a_graph_with_two_outputs() -> None:
    """Inputs and outputs of a graph are told apart, each with its set, binding and shape."""
    module = read_module((FIXTURES / "graph_two_outputs.spv").read_bytes())
    assert {"GraphARM", "TensorsARM"} <= set(module.capabilities)
    assert (module.entry_points, module.graph_constants) == ((), ())
    (graph,) = module.graph_entry_points
    number = Tensor(Scalar("uint", 32), 4, (1, 8, 8, 4))
    truth = Tensor(Scalar("bool", 32), 4, (1, 8, 8, 4))
    assert graph.name == "graph_partition_0"
    assert [(item.set, item.binding, item.tensor) for item in graph.inputs] == [(0, 0, number), (0, 1, number)]
    assert [(item.set, item.binding, item.tensor) for item in graph.outputs] == [(0, 2, number), (0, 3, truth)]
    assert [item.name for item in graph.outputs] == ["graph_partition_0_res_0", "graph_partition_0_res_1"]


def test_a_graph_constant() -> None:
    """The weights that stay outside the module are a graph constant with its id and tensor type."""
    module = read_module((FIXTURES / "graph_constant.spv").read_bytes())
    assert [(item.id, str(item.tensor)) for item in module.graph_constants] == [(0, "tensor<2x3x3x4xfloat32>")]
    assert [str(item.tensor) for item in module.graph_entry_points[0].outputs] == ["tensor<1x8x8x2xfloat32>"]


@pytest.mark.parametrize(
    "opcode, word, value, message",
    [
        (4182, 1, 20, "the graph entry point 'graph_partition_0' names the graph 20, which does not exist"),
        (
            4190,
            2,
            9,
            "the graph entry point 'graph_partition_0' has 4 interface variables, "
            "its graph type has 4 inputs and outputs, 9 of them inputs",
        ),
        (4163, 3, 7, "the tensor type 2 has the rank 1, but 4 dimensions in its shape"),
        (4163, 2, 5, "the tensor type 2 has elements of the type uint32[4], not scalars"),
    ],
)
def test_graphs_that_contradict_themselves_are_refused(opcode: int, word: int, value: int, message: str) -> None:
    """A graph that names what is not there has its sentence."""
    data = (FIXTURES / "graph_two_outputs.spv").read_bytes()
    words = list(struct.unpack(f"<{len(data) // 4}I", data))
    at = 5
    while words[at] & 0xFFFF != opcode:
        at += words[at] >> 16
    words[at + word] = value
    with pytest.raises(SpirvError) as caught:
        read_module(struct.pack(f"<{len(words)}I", *words))
    assert str(caught.value) == message
