"""VGF models and SPIR-V graphs: whole models against NumPy, their shaders, dispatches that share pipelines, and models
compiled for tensors of any size."""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy
import pytest

from scenario_runner import Runner, load
from scenario_runner.errors import OutOfMemoryError, SpirvError, UnsupportedError, error_class
from scenario_runner.ml.vgf_file import read_vgf
from tests.gpu.ml_scenes import SPIRV, VGF, bindings, random
from tests.left_out import VGF_LIBRARY, needs
from tests.ml.graph_words import Graph
from tests.scenes import Scene
from tests.tables import cases

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
    scene.tensor("left", left).tensor("right", right)
    scene.tensor("sum", dims=[4, 16]).tensor("difference", dims=[4, 16])
    model(scene, "ends", {0: "left", 1: "right", 2: "sum", 3: "difference"})
    return left, right


@needs(VGF_LIBRARY)
@pytest.mark.parametrize("kind", ["tensor", "buffer"])
def test_one_input_is_seen_as_tensor_and_as_buffer(ml: Runner, scene: Scene, kind: str) -> None:
    """A graph reads x as a tensor, a shader the same memory as a buffer, and x may be given as either: (x + y)² + x / 2
    + y. Each iteration starts from the files, the tensors between the segments included."""
    x, y = random((4, 16)), random((4, 16), seed=2)
    if kind == "tensor":
        scene.tensor("x", x)
    else:
        scene.buffer("x", x)
    scene.tensor("y", y).tensor("z", dims=[4, 16])
    path = model(scene, "mixed", {0: "x", 1: "y", 4: "z"}).write()
    ml.run_to_files(path)
    total = x + y
    z = numpy.load(scene.folder / "z.out.npy")
    assert numpy.allclose(z, total * total + x / 2 + y, rtol=0, atol=1e-6)
    assert (ml.run(path, repeat=3)["z"] == z).all()


@needs(VGF_LIBRARY)
def test_an_output_that_is_an_input_is_one_resource(ml: Runner, scene: Scene) -> None:
    """A model that returns its input binds one tensor to both."""
    left, right = ends(scene)
    ml.run_to_files(scene.write())
    assert (numpy.load(scene.folder / "sum.out.npy") == left + right).all()
    assert (numpy.load(scene.folder / "difference.out.npy") == left - right).all()
    assert (numpy.load(scene.folder / "left.out.npy") == left).all()


@needs(VGF_LIBRARY)
@pytest.mark.parametrize("where", ["resource", "command"])
def test_a_placeholder_runs_a_substitute(ml: Runner, scene: Scene, where: str) -> None:
    """Substitution on the graph or on the command, with push constants and specialization constants by target."""
    x = random((4, 16))
    scene.tensor("x", x).buffer("shaded", size=256).tensor("sum", dims=[4, 16])
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


@needs(VGF_LIBRARY)
def test_images_go_through_a_model(ml: Runner, scene: Scene) -> None:
    """A shader of a model samples an image and stores its mirror image."""
    picture = random((1, 4, 8, 4))
    image = {"dims": [1, 8, 4, 1], "format": "VK_FORMAT_R32G32B32A32_SFLOAT"}
    scene.resource("image", uid="picture", shader_access="image_read", src=scene.npy("picture.npy", picture), **image)
    scene.resource("image", uid="mirrored", shader_access="writeonly", dst="mirrored.dds", **image)
    model(scene, "image", {0: "picture", 1: "mirrored"})
    result = ml.run(scene.write())
    assert (result["mirrored"] == picture[0, :, ::-1]).all()


@needs(VGF_LIBRARY)
def test_shapes_come_from_the_model(ml: Runner, scene: Scene) -> None:
    """A tensor with dimensions of 0 or less takes the shape of the port that it is bound to."""
    left, right = random((4, 16)), random((4, 16), seed=2)
    scene.tensor("left", left, dims=[-1, -1]).tensor("right", right)
    scene.tensor("sum", dims=[0]).tensor("difference", dims=[-1, 0])
    model(scene, "ends", {0: "left", 1: "right", 2: "sum", 3: "difference"})
    ml.run_to_files(scene.write())
    assert (numpy.load(scene.folder / "sum.out.npy") == left + right).all()


@needs(VGF_LIBRARY)
def test_a_model_of_dynamic_shapes(ml: Runner, scene: Scene) -> None:
    """A model compiled for any number of rows runs with the rows that are there."""
    x = random((3, 16))
    scene.tensor("x", x, dims=[-1, 16]).tensor("y", dims=[3, 16])
    model(scene, "dynamic", {0: "x", 1: "y"})
    result = ml.run(scene.write())
    assert (result["y"] == x + x).all()
    assert result.warnings == ()


@needs(VGF_LIBRARY)
def test_dispatches_share_one_pipeline(ml: Runner, scene: Scene) -> None:
    """A hundred dispatches of one model make one pipeline and one session, and all of them count."""
    x = random((4, 16))
    scene.tensor("a", x).tensor("b", x)
    scene.tensor("c", dims=[4, 16]).tensor("d", dims=[4, 16]).resource("graph", uid="graph", src=str(VGF / "ends.vgf"))
    for _ in range(50):  # a = b + c turn by turn, without barriers of the scenario's own to order them
        scene.command("dispatch_graph", graph_ref="graph", bindings=bindings({0: "a", 1: "b", 2: "c", 3: "d"}))
        scene.command("dispatch_graph", graph_ref="graph", bindings=bindings({0: "c", 1: "b", 2: "a", 3: "d"}))
    plan = ml.plan(scene.write())
    assert len(plan.graph_pipelines) == 1
    ml.run_to_files(scene.write())
    assert numpy.allclose(numpy.load(scene.folder / "a.out.npy"), x * numpy.float32(101), rtol=1e-5)


@needs(VGF_LIBRARY)
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


MODELS = Path(__file__).resolve().parents[1] / "ml" / "fixtures"
OPEN = [-1, -1, -1, -1]


def pooled(x: Any) -> Any:
    """The model any_size in NumPy: every 3 x 3 summed, halved, plus 1, clamped to 0 to 6, pooled, twice."""
    padded = numpy.pad(x.astype("f8"), ((0, 0), (1, 1), (1, 1), (0, 0)))
    sums = numpy.lib.stride_tricks.sliding_window_view(padded, (3, 3), (1, 2)).sum((3, 4, 5))
    y = numpy.repeat(numpy.clip(sums + 1, 0, 6)[..., None], 4, -1)
    n, h, w, c = y.shape
    y = y.reshape(n, h // 2, 2, w // 2, 2, c).max((2, 4))
    return numpy.concatenate([y, y], 1)


def dispatch(scene: Scene, uid: str, *uids: str) -> Scene:
    return scene.command("dispatch_graph", graph_ref=uid, bindings=bindings(uids))


@pytest.fixture
def any_size(scene: Scene) -> Scene:
    """The model as the graph ``any``."""
    return scene.resource("graph", uid="any", src=str(MODELS / "any_size.vgf"))


@needs(VGF_LIBRARY)
@pytest.mark.parametrize("dims", [OPEN, [0], [1, 8, 3, 4], [1, -1, 0, 4]])
def test_a_model_of_several_operators(ml: Runner, any_size: Scene, dims: list[int]) -> None:
    """Values between operators and the output get the sizes that follow from the input."""
    x = random((1, 8, 6, 4))
    any_size.tensor("x", x).tensor("y", dims=dims)
    dispatch(any_size, "any", "x", "y")
    ml.run_to_files(any_size.write())
    y = numpy.load(any_size.folder / "y.out.npy")
    assert y.shape == (1, 8, 3, 4)
    assert numpy.abs(y - pooled(x)).max() < 1e-5


@needs(VGF_LIBRARY)
def test_two_sizes_in_one_run(ml: Runner, any_size: Scene) -> None:
    """One model runs at two sizes, and the output of the second is the input of the first."""
    x = random((1, 16, 8, 4))
    any_size.tensor("x", x).tensor("y", dims=OPEN).tensor("z", dims=OPEN)
    dispatch(dispatch(any_size, "any", "x", "y"), "any", "y", "z")
    assert len(ml.plan(any_size.write()).graph_pipelines) == 2
    ml.run_to_files(any_size.write())
    z = numpy.load(any_size.folder / "z.out.npy")
    assert z.shape == (1, 16, 2, 4)
    assert numpy.abs(z - pooled(pooled(x).astype("f4"))).max() < 1e-4


@needs(VGF_LIBRARY)
def test_an_operator_with_two_results(ml: Runner, scene: Scene) -> None:
    """The transform of a plane of any size equals NumPy's in both of its parts."""
    x, a = random((3, 4, 16)), random((2, 4, 8), seed=2)
    scene.tensor("x", x).tensor("a", a).tensor("b", a)
    for uid in ("real", "imaginary", "sum"):
        scene.tensor(uid, dims=[-1, -1, -1])
    scene.resource("graph", uid="parts", src=str(MODELS / "any_parts.vgf"))
    dispatch(scene, "parts", "x", "a", "b", "real", "imaginary", "sum")
    ml.run_to_files(scene.write())
    expected = numpy.fft.rfft2(x.astype("f8"))
    found = [numpy.load(scene.folder / f"{uid}.out.npy") for uid in ("real", "imaginary", "sum")]
    assert numpy.abs(found[0] - expected.real).max() < 1e-4
    assert numpy.abs(found[1] - expected.imag).max() < 1e-4
    assert (found[2] == a + a).all()


@needs(VGF_LIBRARY)
def test_from_a_spirv_module(ml: Runner, scene: Scene) -> None:
    """A module without a file around it is given the shapes as well."""
    module = read_vgf(VGF / "dynamic.vgf").modules[0]
    assert isinstance(module.code, bytes)
    x = random((5, 16))
    scene.tensor("x", x).tensor("y", dims=[0, 0]).module("graph", module.code)
    scene.command("dispatch_spirv_graph", graph_ref="graph", bindings=bindings(["x", "y"]))
    ml.run_to_files(scene.write())
    assert (numpy.load(scene.folder / "y.out.npy") == x + x).all()


@needs(VGF_LIBRARY)
@pytest.mark.parametrize(
    "x, y, message",
    [
        (
            [1, 8, 6, 4],
            [1, 9, 3, 4],
            r"of graph 'any' has the shape \[1, 8, 3, 4\]; the bound tensor 'y' has \[1, 9, 3, 4\]$",
        ),
        (
            [1, 8, 6, 4],
            [-1, 9, -1, 4],
            r"tensor 'y' has the shape \[-1, 9, -1, 4\], but the graph of /commands/0/dispatch_graph makes"
            r" \[1, 8, 3, 4\] of it",
        ),
        (
            [1, 1, 6, 4],
            OPEN,
            r"/bindings: .*the operator MAX_POOL2D with the result .*has a kernel of 2 in height, but the padded"
            r" input has 0 \+ 1 \+ 0 elements",
        ),
        (
            None,
            OPEN,
            r"^(?!.*'y').*tensor 'x' has the shape \[-1, -1, -1, -1\], but no graph of the scenario defines the",
        ),
    ],
    ids=["another shape", "a size that contradicts", "inputs that do not fit the operators", "no shape of the input"],
)
def test_shapes_that_do_not_fit(any_size: Scene, x: list[int] | None, y: list[int], message: str) -> None:
    """The message has the shape that the model makes, the operator that cannot, or the input that is the cause."""
    any_size.tensor("x", None if x is None else random(x), **({} if x else {"dims": OPEN})).tensor("y", dims=y)
    problem = dispatch(any_size, "any", "x", "y").refusal(Runner().plan)
    assert re.search(message, str(problem))
    assert (problem.code == "SR-GRAPH-012") == ("the operator" in problem.message)


@needs(VGF_LIBRARY)
def test_a_value_between_operators_that_is_too_large(ml: Runner, scene: Scene) -> None:
    """8 GiB between two operators are refused before the emulation layers run: as too many elements for a tensor, or as
    too large an allocation."""
    scene.resource("graph", uid="wide", src=str(MODELS / "wide.vgf"))
    scene.tensor("x", random((1, 1))).tensor("y", dims=[1, 1])
    with pytest.raises((UnsupportedError, OutOfMemoryError)) as caught:
        ml.run(dispatch(scene, "wide", "x", "y").write())
    text = str(caught.value)
    if isinstance(caught.value, OutOfMemoryError):
        assert "the session of segment 'graph_segment_0' of graph 'wide' needs 8.0 GiB" in text
        return
    assert "segment 'graph_segment_0' of graph 'wide': the result " in text
    assert " of the operator TILE has 2147483648 elements (shape [65536, 32768]); maxTensorElements of " in text


def convolution(
    scene: Scene, constants: Sequence[str] = ("w",), bound: Mapping[str, str] | None = None, **keys: Any
) -> Scene:
    """Add a 3 x 3 convolution of 4 channels to 2, padded by 1, with weights in graph constant 0 and a bias of 1 and
    2."""
    scene.tensor("x", random((1, 8, 8, 4))).tensor("y", dims=keys.pop("dims", [1, 8, 8, 2]))
    scene.module("graph", (SPIRV / "graph_constant.spv").read_bytes(), **keys)
    weights = scene.npy("w.npy", random((2, 3, 3, 4), seed=2))
    scene.resource("graph_constant", uid="w", dims=[2, 3, 3, 4], format="VK_FORMAT_R32_SFLOAT", src=weights)
    weights = scene.npy("w2.npy", random((2, 3, 3, 3), seed=2))
    scene.resource("graph_constant", uid="w2", dims=[2, 3, 3, 3], format="VK_FORMAT_R32_SFLOAT", src=weights)
    places = bindings({int(number): uid for number, uid in (bound or {"0": "x", "1": "y"}).items()})
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


@pytest.mark.parametrize("keys, code, message", cases(__file__, "graphs.txt", "CONSTANTS"))
def test_what_does_not_fit_the_graph(scene: Scene, keys: str, code: str, message: str) -> None:
    """Constants, entry point, shapes and bindings must match the declarations of the graph, which the message lists."""
    problem = convolution(scene, **json.loads(keys)).refusal(Runner().plan, error_class(code))
    assert problem.code == code
    assert str(problem).endswith(message)


def test_a_variable_that_is_named_twice(scene: Scene) -> None:
    """The emulation layers would end the process over an interface that has one tensor in two places."""
    convolution(scene)
    module = Graph((SPIRV / "graph_constant.spv").read_bytes())
    (entry,) = module.of(4182)
    entry[-1] = entry[-2]
    scene.file("graph.spv", module.bytes())
    problem = scene.refusal(Runner().plan, SpirvError)
    assert problem.code == "SR-GRAPH-014"
    assert problem.message.endswith(
        f"the graph entry point 'graph_partition_0' names the interface variable {entry[-2]} twice"
    )
