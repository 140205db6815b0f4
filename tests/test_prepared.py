"""A scenario that is planned once and runs with other inputs: the results are those of planning anew each time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy
import pytest

from scenario_runner import Runner, ScenarioRunnerError, from_dict
from scenario_runner.plan import resolve
from tests.gpu.ml_scenes import MODELS
from tests.scenes import Scene, glsl

TWO = "layout(binding = 0) buffer A { float a[]; };\nlayout(binding = 1) buffer B { float b[]; };\n"
SCALE = glsl(
    "uint i = gl_WorkGroupID.x; b[i] = a[i] * p.factor;", TWO + "layout(push_constant) uniform P { float factor; } p;\n"
)
INVERT = glsl(
    "ivec2 at = ivec2(gl_WorkGroupID.xy); imageStore(image, at, vec4(1.0) - imageLoad(image, at));",
    "layout(binding = 0, rgba8) uniform image2D image;\n",
)
MODEL = MODELS / "classifier"


@pytest.fixture(scope="module")
def runner(shader_cache: Path) -> Any:
    with Runner(timeout_s=60) as runner:
        yield runner


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """One entry for each scenario that is planned from now on."""
    found: list[object] = []
    planned = resolve.resolve

    def counted(*arguments: Any, **options: Any) -> Any:
        found.append(arguments)
        return planned(*arguments, **options)

    monkeypatch.setattr(resolve, "resolve", counted)
    return found


def scale() -> Any:
    def dispatch(factor: str, *uids: str) -> dict[str, Any]:
        bindings = [{"set": 0, "id": number, "resource_ref": uid} for number, uid in enumerate(uids)]
        return {
            "dispatch_compute": {
                "shader_ref": "scale",
                "bindings": bindings,
                "rangeND": [4],
                "push_data_ref": factor,
            }
        }

    return from_dict(
        {
            "resources": [
                {"shader": {"uid": "scale", "source": SCALE, "push_constants_size": 4}},
                {"buffer": {"uid": "x", "data": numpy.float32([1, 2, 3, 4]), "shader_access": "readonly"}},
                *({"buffer": {"uid": uid, "size": 16, "shader_access": "readwrite"}} for uid in ("y", "z")),
                *({"raw_data": {"uid": uid, "data": numpy.float32(1)}} for uid in ("first", "second")),
            ],
            "commands": [dispatch("first", "x", "y"), dispatch("second", "y", "z"), dispatch("first", "z", "y")],
        }
    )


def test_a_sweep_over_push_constants(runner: Runner, plans: list[object]) -> None:
    """Push constants change from run to run, each for its own dispatches, without a new plan."""
    prepared = runner.prepare(scale())
    x = numpy.float32([1, 2, 3, 4])
    for first, second in ((2, 3), (5, 7), (0.5, 4)):
        result = prepared.run({"first": numpy.float32(first), "second": numpy.float32(second)})
        assert (result.array("z", "f4") == x * first * second).all()
        assert (result.array("y", "f4") == x * first * second * first).all()
    assert (prepared.run({"second": numpy.float32(3)}).array("z", "f4") == x * 3).all()
    assert (prepared.run().array("y", "f4") == x).all()  # inputs hold for one run
    assert len(plans) == 1


def test_inputs_change_without_a_new_plan(runner: Runner, plans: list[object]) -> None:
    """Buffers take other arrays; those given to ``prepare`` stay where a run does not replace them."""
    base = numpy.float32([10, 20, 30, 40])
    prepared = runner.prepare(scale(), {"x": base}, outputs="z")
    for step in range(3):
        assert (prepared.run({"x": base + step}).array("z", "f4") == base + step).all()
    assert (prepared.run({"first": numpy.float32(2)}).array("z", "f4") == base * 2).all()
    assert list(prepared.run()) == ["z"]
    assert len(plans) == 1
    assert repr(prepared) == "<Prepared <scenario>, outputs: 'z'>"


def test_images_change_without_a_new_plan(runner: Runner, plans: list[object]) -> None:
    """Images take other texels."""
    first, second = (numpy.random.default_rng(seed).integers(0, 256, (3, 5, 4)).astype("u1") for seed in (1, 2))
    image = {"uid": "image", "format": "VK_FORMAT_R8G8B8A8_UNORM", "dims": [1, 5, 3, 1], "shader_access": "readwrite"}
    bindings = [{"set": 0, "id": 0, "resource_ref": "image"}]
    prepared = runner.prepare(
        {
            "resources": [{"shader": {"uid": "invert", "source": INVERT}}, {"image": {**image, "data": first}}],
            "commands": [{"dispatch_compute": {"shader_ref": "invert", "bindings": bindings, "rangeND": [5, 3]}}],
        }
    )
    assert (prepared.run()["image"] == 255 - first).all()
    assert (prepared.run({"image": second})["image"] == 255 - second).all()
    assert len(plans) == 1


def test_tensors_change_without_a_new_plan(runner: Runner, plans: list[object]) -> None:
    """A model takes other tensors."""
    picture = numpy.load(MODEL / "picture.npy")
    prepared = runner.prepare(MODEL / "model.vgf", {"picture": numpy.zeros_like(picture)})
    zeros = prepared.run()["probabilities"].copy()
    found = prepared.run({"picture": picture})["probabilities"]
    numpy.testing.assert_allclose(found, numpy.load(MODEL / "expected" / "probabilities.npy"), rtol=1e-3, atol=1e-6)
    assert not numpy.allclose(zeros, found)
    assert len(plans) == 1


@pytest.mark.parametrize(
    "inputs",
    [
        {"x": numpy.zeros(5, "f4")},
        {"first": numpy.zeros(2, "f4")},
        {"q": b""},
        {"scale": b""},
        {"x": [1, 2]},
        {"first": "text"},
    ],
)
def test_what_does_not_fit_is_the_error_of_a_run(runner: Runner, inputs: dict[str, Any]) -> None:
    """Inputs of a wrong name, kind or size raise what Runner.run raises, and the next run is right."""
    with pytest.raises(ScenarioRunnerError) as expected:
        runner.run(scale(), inputs)
    prepared = runner.prepare(scale())
    with pytest.raises(ScenarioRunnerError) as found:
        prepared.run(inputs)
    assert (type(found.value), str(found.value)) == (type(expected.value), str(expected.value))
    assert prepared.run().array("y", "f4").tolist() == [1, 2, 3, 4]


def test_shared_memory_is_planned_anew(runner: Runner, scene: Scene) -> None:
    """What fills memory that resources share is checked as in any run."""
    group = {"id": "both"}
    scene.buffer("x", numpy.arange(4, dtype="u1"), memory_group=group).buffer("y", size=4, memory_group=group)
    prepared = runner.prepare(scene.write())
    assert prepared.run({"x": b"abcd"}, write_files=False)["y"].tobytes() == b"abcd"
    assert prepared.run(write_files=False)["y"].tolist() == [0, 1, 2, 3]


def test_files_are_written_by_each_run(runner: Runner, scene: Scene) -> None:
    """A prepared scenario writes its files where it was prepared for, with what the run gave."""
    path = scene.buffer("x", numpy.arange(4, dtype="u1")).write()
    prepared = runner.prepare(path, output_dir=scene.folder / "out")
    prepared.run({"x": b"abcd"}, write_files=False)
    assert not (scene.folder / "out").exists()
    prepared.run({"x": b"abcd"})
    assert numpy.load(scene.folder / "out" / "x.out.npy").tobytes() == b"abcd"


def test_a_prepared_scenario_outlives_its_device(runner: Runner) -> None:
    """After ``close`` it runs on the device that is opened anew."""
    prepared = runner.prepare(scale())
    prepared.run()
    runner.close()
    assert prepared.run().array("y", "f4").tolist() == [1, 2, 3, 4]
