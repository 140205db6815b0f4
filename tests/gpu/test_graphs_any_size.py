"""Models compiled for tensors of any size: shapes follow from the inputs, from graph to graph, or are asked for."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy
import pytest

from scenario_runner import Runner
from scenario_runner.errors import OutOfMemoryError, UnsupportedError
from scenario_runner.graphs import read_vgf
from tests.gpu.ml_scenes import VGF, bindings, random, tensor
from tests.scenes import Scene

MODELS = Path(__file__).resolve().parents[1] / "graphs" / "fixtures"
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


@pytest.mark.parametrize("dims", [OPEN, [0], [1, 8, 3, 4], [1, -1, 0, 4]])
def test_a_model_of_several_operators(ml: Runner, any_size: Scene, dims: list[int]) -> None:
    """What lies between operators gets the size that follows from the input, and the output what it needs."""
    x = random((1, 8, 6, 4))
    tensor(tensor(any_size, "x", x), "y", dims=dims)
    dispatch(any_size, "any", "x", "y")
    ml.run_to_files(any_size.write())
    y = numpy.load(any_size.folder / "y.out.npy")
    assert y.shape == (1, 8, 3, 4)
    assert numpy.abs(y - pooled(x)).max() < 1e-5


def test_two_sizes_in_one_run(ml: Runner, any_size: Scene) -> None:
    """One model runs at two sizes, and the output of the second is the input of the first."""
    x = random((1, 16, 8, 4))
    tensor(tensor(tensor(any_size, "x", x), "y", dims=OPEN), "z", dims=OPEN)
    dispatch(dispatch(any_size, "any", "x", "y"), "any", "y", "z")
    assert len(ml.plan(any_size.write()).graph_pipelines) == 2
    ml.run_to_files(any_size.write())
    z = numpy.load(any_size.folder / "z.out.npy")
    assert z.shape == (1, 16, 2, 4)
    assert numpy.abs(z - pooled(pooled(x).astype("f4"))).max() < 1e-4


def test_an_operator_with_two_results(ml: Runner, scene: Scene) -> None:
    """The transform of a plane of any size equals NumPy's in both of its parts."""
    x, a = random((3, 4, 16)), random((2, 4, 8), seed=2)
    tensor(tensor(tensor(scene, "x", x), "a", a), "b", a)
    for uid in ("real", "imaginary", "sum"):
        tensor(scene, uid, dims=[-1, -1, -1])
    scene.resource("graph", uid="parts", src=str(MODELS / "any_parts.vgf"))
    dispatch(scene, "parts", "x", "a", "b", "real", "imaginary", "sum")
    ml.run_to_files(scene.write())
    expected = numpy.fft.rfft2(x.astype("f8"))
    found = [numpy.load(scene.folder / f"{uid}.out.npy") for uid in ("real", "imaginary", "sum")]
    assert numpy.abs(found[0] - expected.real).max() < 1e-4
    assert numpy.abs(found[1] - expected.imag).max() < 1e-4
    assert (found[2] == a + a).all()


def test_from_a_spirv_module(ml: Runner, scene: Scene) -> None:
    """A module without a file around it is given the shapes as well."""
    module = read_vgf(VGF / "dynamic.vgf").modules[0]
    assert isinstance(module.code, bytes)
    x = random((5, 16))
    tensor(tensor(scene, "x", x), "y", dims=[0, 0]).module("graph", module.code)
    scene.command("dispatch_spirv_graph", graph_ref="graph", bindings=bindings(["x", "y"]))
    ml.run_to_files(scene.write())
    assert (numpy.load(scene.folder / "y.out.npy") == x + x).all()


@pytest.mark.parametrize(
    "x, y, message",
    [
        ([1, 8, 6, 4], [1, 9, 3, 4], r"of graph 'any' has the shape \[1, 8, 3, 4\]; tensor 'y' has \[1, 9, 3, 4\]$"),
        (
            [1, 8, 6, 4],
            [-1, 9, -1, 4],
            r"tensor 'y' has the shape \[-1, 9, -1, 4\], but the graph of /commands/0/dispatch_graph makes"
            r" \[1, 8, 3, 4\] of it",
        ),
        (
            [1, 1, 6, 4],
            OPEN,
            r"/bindings: .*the operator MAX_POOL2D with the result .*has a kernel of 2 in height, more than the 1"
            r" elements with 0 and 0 of padding",
        ),
        (
            None,
            OPEN,
            r"^(?!.*'y').*tensor 'x' has the shape \[-1, -1, -1, -1\], and no graph of the scenario says what its",
        ),
    ],
    ids=["another shape", "a size that contradicts", "inputs that do not fit the operators", "no shape of the input"],
)
def test_shapes_that_do_not_fit(any_size: Scene, x: list[int] | None, y: list[int], message: str) -> None:
    """The message has the shape that the model makes, the operator that cannot, or the input that is the cause."""
    tensor(tensor(any_size, "x", None if x is None else random(x), **({} if x else {"dims": OPEN})), "y", dims=y)
    assert re.search(message, str(dispatch(any_size, "any", "x", "y").refusal(Runner().plan)))


def test_a_value_between_operators_that_is_too_large(ml: Runner, scene: Scene) -> None:
    """8 GiB between two operators are refused before the emulation layers try, by what the device cannot have of it:
    a tensor of so many elements, or one allocation of that size."""
    scene.resource("graph", uid="wide", src=str(MODELS / "wide.vgf"))
    tensor(tensor(scene, "x", random((1, 1))), "y", dims=[1, 1])
    with pytest.raises((UnsupportedError, OutOfMemoryError)) as caught:
        ml.run(dispatch(scene, "wide", "x", "y").write())
    text = str(caught.value)
    if isinstance(caught.value, OutOfMemoryError):
        assert "the session of segment 'graph_segment_0' of graph 'wide' needs 8.0 GiB" in text
        return
    assert "segment 'graph_segment_0' of graph 'wide': the result " in text
    assert " of the operator TILE has 2147483648 elements (shape [65536, 32768]); maxTensorElements of " in text
