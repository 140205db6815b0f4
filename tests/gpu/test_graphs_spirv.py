"""Graphs from SPIR-V modules, with constants from the scenario."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

from scenario_runner import Runner
from scenario_runner.errors import ScenarioError, ShaderError, SpirvError
from tests.gpu.ml_scenes import SPIRV, bindings, random, tensor
from tests.graphs.graph_words import Graph
from tests.scenes import Scene


def convolution(scene: Scene, constants: tuple[str, ...] = ("w",), **keys: Any) -> Scene:
    """A 3 x 3 convolution of 4 channels to 2, padded by 1, whose weights are graph constant 0; the bias is 1 and 2."""
    tensor(scene, "x", random((1, 8, 8, 4)))
    tensor(scene, "y", dims=keys.pop("dims", [1, 8, 8, 2]))
    scene.module("graph", (SPIRV / "graph_constant.spv").read_bytes(), **keys)
    weights = scene.npy("w.npy", random((2, 3, 3, 4), seed=2))
    scene.resource("graph_constant", uid="w", dims=[2, 3, 3, 4], format="VK_FORMAT_R32_SFLOAT", src=weights)
    weights = scene.npy("w2.npy", random((2, 3, 3, 3), seed=2))
    scene.resource("graph_constant", uid="w2", dims=[2, 3, 3, 3], format="VK_FORMAT_R32_SFLOAT", src=weights)
    return scene.command(
        "dispatch_spirv_graph", graph_ref="graph", bindings=bindings(["x", "y"]), graph_constants=list(constants)
    )


@pytest.mark.parametrize("keys", [{}, {"entry": "graph_partition_0"}, {"dims": [-1, -1, -1, -1]}])
def test_a_graph_with_a_constant(ml: Runner, scene: Scene, keys: dict[str, Any]) -> None:
    """A convolution equals NumPy's; the entry point and the output's shape may be left to the module."""
    convolution(scene, **keys)
    ml.run_to_files(scene.write())
    x, w = random((1, 8, 8, 4)).astype("f8"), random((2, 3, 3, 4), seed=2).astype("f8")
    padded = numpy.pad(x[0], ((1, 1), (1, 1), (0, 0)))
    windows = numpy.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(0, 1))  # row, column, channel, i, j
    expected = numpy.einsum("rcdij,oijd->rco", windows, w) + numpy.array([1.0, 2.0])
    assert numpy.abs(numpy.load(scene.folder / "y.out.npy")[0] - expected).max() < 1e-5


def problem(scene: Scene, kind: type[Exception] = ScenarioError) -> str:
    """The message of the error that planning the scenario ends with."""
    return str(scene.refusal(Runner().plan, kind))


@pytest.mark.parametrize(
    "constants, message",
    [
        ((), "graph 'graph': the graph constant 0, which is tensor<2x3x3x4xfloat32>, is missing"),
        (("w", "w2"), "graph 'graph': the graph has no constant 1; its constants are: 0"),
        (
            ("w2",),
            "graph 'graph': the graph constant 0 is tensor<2x3x3x4xfloat32>; what is given for it has the shape"
            " [2, 3, 3, 3]",
        ),
    ],
)
def test_constants_must_be_those_of_the_graph(scene: Scene, constants: tuple[str, ...], message: str) -> None:
    """One missing, one too many, one of another shape."""
    assert problem(convolution(scene, constants)).endswith(
        f"/commands/0/dispatch_spirv_graph/graph_constants: {message}"
    )


def test_an_entry_point_that_is_not_there(scene: Scene) -> None:
    """The message lists those that are."""
    assert problem(convolution(scene, entry="main"), ShaderError).endswith(
        "shader 'graph' has no graph entry point 'main'; its graph entry points are: 'graph_partition_0'"
    )


def test_a_tensor_of_another_shape(scene: Scene) -> None:
    """The graph's own declaration decides."""
    assert problem(convolution(scene, dims=[1, 8, 8, 3])).endswith(
        "graph 'graph': the graph's output 'graph_partition_0_res_0' at set 0, binding 1 is"
        " tensor<1x8x8x2xfloat32>; tensor 'y' has the shape [1, 8, 8, 3]"
    )


def test_a_missing_binding(scene: Scene) -> None:
    """Every input and output must be bound."""
    convolution(scene)
    scene.commands[0]["dispatch_spirv_graph"]["bindings"].pop()
    assert problem(scene).endswith(
        "graph 'graph': nothing is bound to the graph's output 'graph_partition_0_res_0' at set 0, binding 1,"
        " which is tensor<1x8x8x2xfloat32>"
    )


def test_a_binding_that_the_graph_has_not(scene: Scene) -> None:
    """The message says what there is."""
    convolution(scene)
    scene.commands[0]["dispatch_spirv_graph"]["bindings"][1]["id"] = 5
    assert "graph 'graph' has nothing at set 0, binding 5; it has: set 0, binding 0, set 0, binding 1" in problem(scene)


def test_a_variable_that_is_named_twice(scene: Scene) -> None:
    """The emulation layers would end the process over an interface that has one tensor in two places."""
    convolution(scene)
    module = Graph((SPIRV / "graph_constant.spv").read_bytes())
    (entry,) = module.of(4182)
    entry[-1] = entry[-2]
    scene.file("graph.spv", module.bytes())
    assert problem(scene, SpirvError).endswith(
        f"the graph entry point 'graph_partition_0' names the interface variable {entry[-2]} twice"
    )
