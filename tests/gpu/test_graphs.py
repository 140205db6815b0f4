"""VGF models: whole models against NumPy, their shaders, and dispatches that share pipelines."""

from __future__ import annotations

import json
from typing import Any

import numpy
import pytest

from scenario_runner import Runner, load
from tests.gpu.ml_scenes import VGF, bindings, random, tensor
from tests.scenes import Scene

SCALE = """#version 450
layout(local_size_x = 16) in;
layout(constant_id = 3) const float bias = 100.0;
layout(set = 0, binding = 0) readonly buffer A { float a[]; };
layout(set = 0, binding = 1) writeonly buffer Y { float y[]; };
layout(push_constant) uniform P { float scale; } p;
void main() {
    uint i = gl_GlobalInvocationID.x;
    y[i] = a[i] * p.scale + bias;
}
"""


def model(scene: Scene, name: str, places: dict[int, str], **keys: Any) -> Scene:
    """A graph from a fixture, dispatched once."""
    command = {
        key: keys.pop(key) for key in ("push_constants", "shader_substitutions", "implicit_barrier") if key in keys
    }
    scene.resource("graph", uid="graph", src=str(VGF / f"{name}.vgf"), **keys)
    return scene.command("dispatch_graph", graph_ref="graph", bindings=bindings(places), **command)


def ends(scene: Scene) -> tuple[Any, Any]:
    """The model that adds and subtracts left and right, which this returns."""
    left, right = random((4, 16)), random((4, 16), seed=2)
    tensor(tensor(scene, "left", left), "right", right)
    tensor(tensor(scene, "sum", dims=[4, 16]), "difference", dims=[4, 16])
    model(scene, "ends", {0: "left", 1: "right", 2: "sum", 3: "difference"})
    return left, right


@pytest.mark.parametrize("kind", ["tensor", "buffer"])
def test_one_input_is_seen_as_tensor_and_as_buffer(ml: Runner, scene: Scene, kind: str) -> None:
    """A graph reads x as a tensor, a shader the same memory as a buffer, and x may be given as either: (x + y)² + x / 2
    + y. Each iteration starts from the files, the tensors between the segments included."""
    x, y = random((4, 16)), random((4, 16), seed=2)
    if kind == "tensor":
        tensor(scene, "x", x)
    else:
        scene.buffer("x", x)
    tensor(tensor(scene, "y", y), "z", dims=[4, 16])
    path = model(scene, "mixed", {0: "x", 1: "y", 4: "z"}).write()
    ml.run_to_files(path)
    total = x + y
    z = numpy.load(scene.folder / "z.out.npy")
    assert numpy.allclose(z, total * total + x / 2 + y, rtol=0, atol=1e-6)
    assert (ml.run(path, repeat=3)["z"] == z).all()


def test_an_output_that_is_an_input_is_one_resource(ml: Runner, scene: Scene) -> None:
    """A model that returns its input as it is binds one tensor to both."""
    left, right = ends(scene)
    ml.run_to_files(scene.write())
    assert (numpy.load(scene.folder / "sum.out.npy") == left + right).all()
    assert (numpy.load(scene.folder / "difference.out.npy") == left - right).all()
    assert (numpy.load(scene.folder / "left.out.npy") == left).all()


@pytest.mark.parametrize("where", ["resource", "command"])
def test_a_placeholder_runs_a_substitute(ml: Runner, scene: Scene, where: str) -> None:
    """Substitution on the graph or on the command, with push constants and specialization constants by target."""
    x = random((4, 16))
    tensor(scene, "x", x)
    scene.buffer("shaded", size=256)
    tensor(scene, "sum", dims=[4, 16])
    scene.shader("scale", SCALE, push_constants_size=4).raw_data("factor", numpy.array([2.5], "f4"))
    model(
        scene,
        "placeholder",
        {0: "x", 2: "shaded", 3: "sum"},
        push_constants=[{"push_data_ref": "factor", "shader_target": "graph_partition_1"}],
        specialization_constants_map=[
            {"shader_target": "graph_partition_1", "specialization_constants": [{"id": 3, "value": 0.25}]}
        ],
    )
    substitution = [{"shader_ref": "scale", "target": "graph_partition_1"}]
    (scene.resources[-1]["graph"] if where == "resource" else scene.commands[-1]["dispatch_graph"])[
        "shader_substitutions"
    ] = substitution
    ml.run_to_files(scene.write())
    shaded = (x + x) * numpy.float32(2.5) + numpy.float32(0.25)
    assert numpy.allclose(scene.output("shaded", "f4").reshape(4, 16), shaded, rtol=0, atol=1e-6)
    assert numpy.allclose(numpy.load(scene.folder / "sum.out.npy"), shaded + x, rtol=0, atol=1e-6)


def test_images_go_through_a_model(ml: Runner, scene: Scene) -> None:
    """A shader of a model samples an image and stores its mirror image."""
    picture = random((1, 4, 8, 4))
    image = {"dims": [1, 8, 4, 1], "format": "VK_FORMAT_R32G32B32A32_SFLOAT"}
    scene.resource("image", uid="picture", shader_access="image_read", src=scene.npy("picture.npy", picture), **image)
    scene.resource("image", uid="mirrored", shader_access="writeonly", dst="mirrored.dds", **image)
    model(scene, "image", {0: "picture", 1: "mirrored"})
    result = ml.run(scene.write())
    assert (result["mirrored"] == picture[0, :, ::-1]).all()


def test_shapes_come_from_the_model(ml: Runner, scene: Scene) -> None:
    """A tensor with dimensions of 0 or less takes the shape of the port that it is bound to."""
    left, right = random((4, 16)), random((4, 16), seed=2)
    tensor(tensor(scene, "left", left, dims=[-1, -1]), "right", right)
    tensor(tensor(scene, "sum", dims=[0]), "difference", dims=[-1, 0])
    model(scene, "ends", {0: "left", 1: "right", 2: "sum", 3: "difference"})
    ml.run_to_files(scene.write())
    assert (numpy.load(scene.folder / "sum.out.npy") == left + right).all()


def test_a_model_of_dynamic_shapes(ml: Runner, scene: Scene) -> None:
    """A model compiled for any number of rows runs with the rows that are there."""
    x = random((3, 16))
    tensor(tensor(scene, "x", x, dims=[-1, 16]), "y", dims=[3, 16])
    model(scene, "dynamic", {0: "x", 1: "y"})
    result = ml.run(scene.write())
    assert (result["y"] == x + x).all()
    assert result.warnings == ()


def test_dispatches_share_one_pipeline(ml: Runner, scene: Scene) -> None:
    """A hundred dispatches of one model make one pipeline and one session, and all of them count."""
    x = random((4, 16))
    tensor(tensor(scene, "a", x), "b", x)
    tensor(tensor(scene, "c", dims=[4, 16]), "d", dims=[4, 16])
    scene.resource("graph", uid="graph", src=str(VGF / "ends.vgf"))
    for _ in range(50):  # a = b + c turn by turn, without barriers of the scenario's own to order them
        scene.command("dispatch_graph", graph_ref="graph", bindings=bindings({0: "a", 1: "b", 2: "c", 3: "d"}))
        scene.command("dispatch_graph", graph_ref="graph", bindings=bindings({0: "c", 1: "b", 2: "a", 3: "d"}))
    plan = ml.plan(scene.write())
    assert len(plan.graph_pipelines) == 1
    ml.run_to_files(scene.write())
    assert numpy.allclose(numpy.load(scene.folder / "a.out.npy"), x * numpy.float32(101), rtol=1e-5)


def test_a_second_run_finds_its_pipelines(ml: Runner, scene: Scene) -> None:
    """Running a model again in one process makes no new pipeline."""
    ends(scene)
    path = scene.write()
    ml.run(path)
    before = ml.live_objects["graph pipeline"]
    ml.run(path)
    assert ml.live_objects["graph pipeline"] == before


def test_a_model_given_in_code(ml: Runner, scene: Scene) -> None:
    """The bytes of a VGF file do instead of its path."""
    from scenario_runner import Scenario
    from scenario_runner.scenario import Graph

    left, right = ends(scene)
    loaded = load(scene.write())
    graph = Graph(uid="graph", data=(VGF / "ends.vgf").read_bytes())
    resources = [graph if each.uid == "graph" else each for each in loaded.resources]
    result = ml.run(Scenario(resources, loaded.commands, base_dir=str(scene.folder)))
    assert (result["sum"] == left + right).all()


def test_a_template_runs_as_it_is(ml: Runner, scene: Scene) -> None:
    """The scenario that the template makes for a model runs once its inputs are there."""
    from scenario_runner.graphs import read_vgf
    from scenario_runner.graphs.scenario_template import scenario_for

    path = VGF / "conv.vgf"
    template = scenario_for(read_vgf(path), str(path))
    scene.npy("x.npy", random((1, 8, 8, 2)))
    ml.run_to_files(scene.file("scenario.json", json.dumps(template)))
    assert numpy.load(scene.folder / "y.npy").shape == (1, 8, 8, 4)
