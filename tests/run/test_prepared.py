"""Prepared scenarios, and the arrays of a result."""

from pathlib import Path
from typing import Any

import numpy
import pytest

from scenario_runner import Runner, ScenarioRunnerError, from_dict
from scenario_runner.run import result
from tests.gpu.ml_scenes import VGF, random
from tests.left_out import VGF_LIBRARY, needs
from tests.scenes import Scene, error_of, glsl

TWO = "layout(binding = 0) buffer A { float a[]; };\nlayout(binding = 1) buffer B { float b[]; };\n"
SCALE = glsl(
    "uint i = gl_WorkGroupID.x; b[i] = a[i] * p.factor;", TWO + "layout(push_constant) uniform P { float factor; } p;\n"
)
INVERT = glsl(
    "ivec2 at = ivec2(gl_WorkGroupID.xy); imageStore(image, at, vec4(1.0) - imageLoad(image, at));",
    "layout(binding = 0, rgba8) uniform image2D image;\n",
)


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """One entry for each scenario that is planned from now on."""
    found: list[object] = []
    planned = result.resolve

    def counted(*arguments: Any, **options: Any) -> Any:
        found.append(arguments)
        return planned(*arguments, **options)

    monkeypatch.setattr(result, "resolve", counted)
    return found


@pytest.fixture
def scale(scene: Scene) -> Path:
    """y is x times the first factor, z is y times the second, and y is z times the first."""
    scene.shader("scale", SCALE, push_constants_size=4).buffer("x", numpy.float32([1, 2, 3, 4]), dst=None)
    scene.buffer("y", size=16, dst=None).buffer("z", size=16, dst=None)
    scene.raw_data("first", numpy.float32(1)).raw_data("second", numpy.float32(1))
    for factor, *uids in (("first", "x", "y"), ("second", "y", "z"), ("first", "z", "y")):
        scene.dispatch("scale", uids, [4], push_data_ref=factor)
    return scene.write()


def test_a_sweep_over_push_constants(runner: Runner, scale: Path, plans: list[object]) -> None:
    """Push constants change from run to run, each for its own dispatches, without a new plan."""
    prepared = runner.prepare(scale)
    x = numpy.float32([1, 2, 3, 4])
    for first, second in ((2, 3), (5, 7), (0.5, 4)):
        result = prepared.run({"first": numpy.float32(first), "second": numpy.float32(second)})
        assert (result.array("z", "f4") == x * first * second).all()
        assert (result.array("y", "f4") == x * first * second * first).all()
    assert (prepared.run({"second": numpy.float32(3)}).array("z", "f4") == x * 3).all()
    assert (prepared.run().array("y", "f4") == x).all()  # inputs hold for one run
    assert len(plans) == 1


def test_inputs_change_without_a_new_plan(runner: Runner, scale: Path, plans: list[object]) -> None:
    """Buffers take other arrays; those given to ``prepare`` stay where a run does not replace them."""
    base = numpy.float32([10, 20, 30, 40])
    prepared = runner.prepare(scale, {"x": base}, outputs="z")
    for step in range(3):
        assert (prepared.run({"x": base + step}).array("z", "f4") == base + step).all()
    assert (prepared.run({"first": numpy.float32(2)}).array("z", "f4") == base * 2).all()
    assert list(prepared.run()) == ["z"]
    assert len(plans) == 1
    assert repr(prepared) == f"<Prepared {scale}, outputs: 'z'>"


def test_images_change_without_a_new_plan(runner: Runner, scene: Scene, plans: list[object]) -> None:
    """Images take other texels."""
    first, second = (numpy.random.default_rng(seed).integers(0, 256, (3, 5, 4)).astype("u1") for seed in (1, 2))
    scene.shader("invert", INVERT).image("image", "R8G8B8A8_UNORM", first)
    prepared = runner.prepare(scene.dispatch("invert", ["image"], [5, 3]).write())
    assert (prepared.run()["image"] == 255 - first).all()
    assert (prepared.run({"image": second})["image"] == 255 - second).all()
    assert len(plans) == 1


@needs(VGF_LIBRARY)
def test_tensors_change_without_a_new_plan(runner: Runner, plans: list[object]) -> None:
    """A model takes other tensors."""
    left, right = random((4, 16)), random((4, 16), seed=2)
    prepared = runner.prepare(VGF / "ends.vgf", {"left": numpy.zeros_like(left), "right": right})
    assert (prepared.run()["sum"] == right).all()
    found = prepared.run({"left": left})
    assert (found["sum"] == left + right).all()
    assert (found["difference"] == left - right).all()
    assert len(plans) == 1


@pytest.mark.parametrize("inputs", [{"x": numpy.zeros(5, "f4")}, {"q": b""}, {"x": [1, 2]}, {"first": "text"}])
def test_what_does_not_fit_is_the_error_of_a_run(runner: Runner, scale: Path, inputs: dict[str, Any]) -> None:
    """Wrong inputs raise the error of Runner.run, and the next run is right."""
    expected = error_of(ScenarioRunnerError, runner.run, scale, inputs)
    prepared = runner.prepare(scale)
    found = error_of(ScenarioRunnerError, prepared.run, inputs)
    assert (type(found), str(found)) == (type(expected), str(expected))
    assert prepared.run().array("y", "f4").tolist() == [1, 2, 3, 4]


def test_shared_memory_is_planned_anew(runner: Runner, scene: Scene) -> None:
    """Content for shared memory is checked as in any run."""
    group = {"id": "both"}
    scene.buffer("x", numpy.arange(4, dtype="u1"), memory_group=group).buffer("y", size=4, memory_group=group)
    prepared = runner.prepare(scene.write())
    assert prepared.run({"x": b"abcd"}, write_files=False)["y"].tobytes() == b"abcd"
    assert prepared.run(write_files=False)["y"].tolist() == [0, 1, 2, 3]


def test_files_are_written_by_each_run(runner: Runner, scene: Scene) -> None:
    """A prepared scenario writes the results of each run to the prepared paths."""
    path = scene.buffer("x", numpy.arange(4, dtype="u1")).write()
    prepared = runner.prepare(path, output_dir=scene.folder / "out")
    prepared.run({"x": b"abcd"}, write_files=False)
    assert not (scene.folder / "out").exists()
    prepared.run({"x": b"abcd"})
    assert numpy.load(scene.folder / "out" / "x.out.npy").tobytes() == b"abcd"


def test_a_prepared_scenario_outlives_its_device(runner: Runner, scale: Path) -> None:
    """After ``close`` it runs on the device that is opened anew."""
    prepared = runner.prepare(scale)
    prepared.run()
    runner.close()
    assert prepared.run().array("y", "f4").tolist() == [1, 2, 3, 4]


SQUARE = glsl(
    "b[gl_WorkGroupID.x] = a[gl_WorkGroupID.x] * a[gl_WorkGroupID.x];",
    "layout(binding = 0) buffer A { float a[]; };\nlayout(binding = 1) buffer B { float b[]; };\n",
)


def scenario() -> Any:
    bindings = [{"set": 0, "id": number, "resource_ref": uid} for number, uid in enumerate(("values", "squares"))]
    return from_dict(
        {
            "resources": [
                {"shader": {"uid": "square", "source": SQUARE}},
                {"buffer": {"uid": "values", "data": numpy.float32([1, 2, 3]), "shader_access": "readonly"}},
                {"buffer": {"uid": "squares", "size": 12, "shader_access": "writeonly"}},
                {
                    "image": {
                        "uid": "picture",
                        "format": "VK_FORMAT_R8G8B8A8_UNORM",
                        "dims": [1, 5, 2, 1],
                        "shader_access": "readwrite",
                    }
                },
            ],
            "commands": [
                {"dispatch_compute": {"shader_ref": "square", "bindings": bindings, "rangeND": [3]}},
                {"mark_boundary": {"resources": ["squares"], "frame_id": 7}},
            ],
        }
    )


def test_a_result_shows_what_it_holds(runner: Runner) -> None:
    """The repr of a result and of a frame lists each array with its kind, type and shape."""
    result = runner.run(scenario())
    assert repr(result).splitlines() == [
        "Result of <scenario>: 2 arrays, 1 frame",
        "  'squares'  buffer                float32  (3,)",
        "  'picture'  image R8G8B8A8_UNORM  uint8    (2, 5, 4)",
    ]
    assert repr(result.frames[0]).splitlines() == [
        "Frame 7 of iteration 0: 1 array",
        "  'squares'  buffer  float32  (3,)",
    ]
    assert repr(runner.run(from_dict({"resources": [], "commands": []}))) == "Result of <scenario>: 0 arrays"


def test_keys_are_completed_and_unknown_ones_explained(runner: Runner) -> None:
    """IPython is given the uids; an unknown one is a KeyError that lists them, with the closest one."""
    result = runner.run(scenario())
    assert result._ipython_key_completions_() == ["squares", "picture"]
    for look in (result.__getitem__, result.array, result.level):
        assert error_of(KeyError, look, "square_").args == (
            "'square_' does not exist (did you mean 'squares'?); there are: 'squares', 'picture'",
        )
        assert error_of(KeyError, look, "values").args[0].startswith("'values' was not read back (outputs=[...] does)")
    with pytest.raises(KeyError, match="1: expected the uid of a resource"):
        result[1]  # type: ignore[index]
    assert "values" not in result
    assert result.get("values") is None


@pytest.mark.parametrize("outputs", ["values", ["values"], {"values"}])
def test_one_output_is_a_name(runner: Runner, outputs: Any) -> None:
    """``outputs`` may be one uid: its letters are not names."""
    assert list(runner.run(scenario(), outputs=outputs)) == ["values"]
    assert [output.uid for output in runner.plan(scenario(), outputs=outputs).outputs] == ["values"]


def test_a_runner_shows_its_device() -> None:
    """The repr of a Runner names the device once one is chosen, and opens none itself."""
    with Runner() as runner:
        for _ in range(2):
            assert repr(runner) == "<Runner, no device opened>"
        name = runner.physical_device.name
        assert repr(runner) == f"<Runner on {name!r}>"
    assert repr(runner) == "<Runner, no device opened>"
