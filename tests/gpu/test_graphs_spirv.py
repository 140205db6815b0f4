"""Graphs from SPIR-V modules, with constants from the scenario."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy
import pytest

from scenario_runner import Runner
from scenario_runner.errors import ScenarioError, ShaderError, SpirvError
from tests.gpu.ml_scenes import SPIRV, bindings, random, tensor
from tests.graphs.graph_words import Graph
from tests.scenes import Scene


def convolution(
    scene: Scene, constants: tuple[str, ...] = ("w",), bound: Mapping[int, str] | None = None, **keys: Any
) -> Scene:
    """A 3 x 3 convolution of 4 channels to 2, padded by 1, whose weights are graph constant 0; the bias is 1 and 2."""
    tensor(scene, "x", random((1, 8, 8, 4)))
    tensor(scene, "y", dims=keys.pop("dims", [1, 8, 8, 2]))
    scene.module("graph", (SPIRV / "graph_constant.spv").read_bytes(), **keys)
    weights = scene.npy("w.npy", random((2, 3, 3, 4), seed=2))
    scene.resource("graph_constant", uid="w", dims=[2, 3, 3, 4], format="VK_FORMAT_R32_SFLOAT", src=weights)
    weights = scene.npy("w2.npy", random((2, 3, 3, 3), seed=2))
    scene.resource("graph_constant", uid="w2", dims=[2, 3, 3, 3], format="VK_FORMAT_R32_SFLOAT", src=weights)
    places = bindings(bound or ["x", "y"])
    return scene.command("dispatch_spirv_graph", graph_ref="graph", bindings=places, graph_constants=list(constants))


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


@pytest.mark.parametrize(
    "keys, kind, message",
    [
        (
            {"constants": ()},
            ScenarioError,
            "/commands/0/dispatch_spirv_graph/graph_constants: graph 'graph': the graph constant 0, which is"
            " tensor<2x3x3x4xfloat32>, is missing",
        ),
        (
            {"constants": ("w", "w2")},
            ScenarioError,
            "/commands/0/dispatch_spirv_graph/graph_constants: graph 'graph': the graph has no constant 1;"
            " its constants are: 0",
        ),
        (
            {"constants": ("w2",)},
            ScenarioError,
            "/commands/0/dispatch_spirv_graph/graph_constants: graph 'graph': the graph constant 0 is"
            " tensor<2x3x3x4xfloat32>; what is given for it has the shape [2, 3, 3, 3]",
        ),
        (
            {"entry": "main"},
            ShaderError,
            "shader 'graph' has no graph entry point 'main'; its graph entry points are: 'graph_partition_0'",
        ),
        (
            {"dims": [1, 8, 8, 3]},
            ScenarioError,
            "graph 'graph': the graph's output 'graph_partition_0_res_0' at set 0, binding 1 is"
            " tensor<1x8x8x2xfloat32>; tensor 'y' has the shape [1, 8, 8, 3]",
        ),
        (
            {"bound": {0: "x"}},
            ScenarioError,
            "graph 'graph': nothing is bound to the graph's output 'graph_partition_0_res_0' at set 0, binding 1,"
            " which is tensor<1x8x8x2xfloat32>",
        ),
        (
            {"bound": {0: "x", 5: "y"}},
            ScenarioError,
            "graph 'graph' has nothing at set 0, binding 5; it has: set 0, binding 0, set 0, binding 1",
        ),
    ],
)
def test_what_does_not_fit_the_graph(scene: Scene, keys: dict[str, Any], kind: type[Exception], message: str) -> None:
    """Constants (missing, one too many, of another shape), entry point, a tensor's shape, bindings: the graph's own
    declarations decide, and the message lists what there is."""
    assert str(convolution(scene, **keys).refusal(Runner().plan, kind)).endswith(message)


def test_a_variable_that_is_named_twice(scene: Scene) -> None:
    """The emulation layers would end the process over an interface that has one tensor in two places."""
    convolution(scene)
    module = Graph((SPIRV / "graph_constant.spv").read_bytes())
    (entry,) = module.of(4182)
    entry[-1] = entry[-2]
    scene.file("graph.spv", module.bytes())
    assert str(scene.refusal(Runner().plan, SpirvError)).endswith(
        f"the graph entry point 'graph_partition_0' names the interface variable {entry[-2]} twice"
    )
