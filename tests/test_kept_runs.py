"""What is kept from one run of a prepared scenario to the next never shows in results, and has bounds."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy
import pytest

from scenario_runner import Runner
from scenario_runner.errors import FenceTimeoutError, FileError, ScenarioRunnerError, UsageError
from scenario_runner.vulkan import pipeline
from tests.gpu.ml_scenes import VGF, bindings, random
from tests.scenes import Scene, glsl

ONE = "layout(binding = 0) buffer A { uint a[]; };\n"
TWO = f"{ONE}layout(binding = 1) buffer B {{ uint b[]; }};\n"
PUSH = f"{TWO}layout(push_constant) uniform P {{ uint factor; }} p;\n"
PUSHED = f"{ONE}layout(push_constant) uniform P {{ uint term; }} p;\n"
X = numpy.arange(4, dtype="u4") * 10


@pytest.fixture(params=[False, True], ids=["in place", "staged"])
def own(request: pytest.FixtureRequest, shader_cache: Path) -> Iterator[Runner]:
    """A Runner that has run nothing before; it leaves nothing."""
    with Runner(timeout_s=60, staging=request.param) as runner:
        yield runner
    assert not any(runner.live_objects.values())


@pytest.fixture
def frames(scene: Scene) -> Path:
    """y, zero at first, gets x times the factor in each of two frames, of which the first is captured."""
    scene.shader("add", glsl("uint i = gl_WorkGroupID.x; b[i] += a[i] * p.factor;", PUSH), push_constants_size=4)
    scene.buffer("x", X, dst=None).buffer("y", size=16, dst=None).raw_data("factor", numpy.uint32(1))
    scene.dispatch("add", ["x", "y"], [4], push_data_ref="factor").command("mark_boundary", resources=["y"], frame_id=3)
    return scene.dispatch("add", ["x", "y"], [4], push_data_ref="factor").write()


def test_each_run_begins_anew(own: Runner, frames: Path) -> None:
    """Content, inputs, push constants, captures and options of one run do not reach the next one."""
    prepared = own.prepare(frames, outputs=["y"])
    for step in range(2, 6):
        for inputs, options, expected in (
            ({}, {}, 2 * X),
            ({"x": X + step}, {}, 2 * (X + step)),
            ({"factor": numpy.uint32(step)}, {}, 2 * step * X),
            ({}, {"repeat": 3, "keep_state": True}, 6 * X),
            ({}, {"repeat": 2}, 2 * X),
            ({}, {"timings": True}, 2 * X),
        ):
            inputs = dict[str, Any](inputs)
            result = prepared.run(inputs, **dict[str, Any](options))
            assert (result.array("y", "u4") == expected).all(), (step, inputs, options)
            assert [frame.frame_id for frame in result.frames] == [3] * int(options.get("repeat", 1))
            assert (result.frames[0].array("y", "u4") * 2 == (expected if len(result.frames) < 3 else 2 * X)).all()
            assert (result.timings is not None) == ("timings" in options)
        assert not prepared.run(dry_run=True)


def test_an_image_begins_in_its_layout(own: Runner, scene: Scene) -> None:
    """Images that barriers move and that have no content are as in a first run."""
    invert = "ivec2 at = ivec2(gl_WorkGroupID.xy); imageStore(image, at, vec4(1.0) - imageLoad(image, at));"
    scene.shader("invert", glsl(invert, "layout(binding = 0, rgba8) uniform image2D image;\n"))
    texels = random((3, 5, 4), "u1")
    scene.image("full", "R8G8B8A8_UNORM", texels).image("empty", "R8G8B8A8_UNORM", size=(5, 3))
    prepared = own.prepare(scene.dispatch("invert", ["full"], [5, 3]).dispatch("invert", ["empty"], [5, 3]).write())
    for seed in range(4):
        result = prepared.run()
        assert (result["full"] == 255 - texels).all()
        assert (result["empty"] == 255).all()
        other = random((3, 5, 4), "u1", seed)
        assert (prepared.run({"empty": other})["empty"] == 255 - other).all()


def test_two_scenarios_share_a_model(own: Runner, scene: Scene) -> None:
    """Runs of one model with resources of their own alternate: z = (x + y)² + x / 2 + y."""
    prepared = []
    for end in ("1", "2"):
        other = Scene(scene.folder).tensor(f"x{end}", random((4, 16))).tensor(f"y{end}", random((4, 16), seed=2))
        other.tensor(f"z{end}", dims=[4, 16]).resource("graph", uid="graph", src=str(VGF / "mixed.vgf"))
        places = bindings({0: f"x{end}", 1: f"y{end}", 4: f"z{end}"})
        path = other.command("dispatch_graph", graph_ref="graph", bindings=places).write(f"{end}.json")
        prepared.append((end, own.prepare(path)))
    for seed in range(3, 9):
        for end, scenario in prepared:
            x, y = random((4, 16), seed=seed), random((4, 16), seed=seed + 20)
            result = scenario.run({f"x{end}": x, f"y{end}": y}, write_files=False)
            numpy.testing.assert_allclose(result[f"z{end}"], (x + y) ** 2 + x / 2 + y, rtol=1e-5, atol=1e-6)


def test_a_run_that_fails_leaves_nothing(own: Runner, scene: Scene) -> None:
    """A file that is missing fails its run; the next ones read what it holds then."""
    double = glsl("a[gl_WorkGroupID.x] *= 2u;", ONE)
    path = scene.shader("double", double).buffer("x", X, dst=None).dispatch("double", ["x"], [4]).write()
    prepared = own.prepare(path)
    for step in range(3):
        scene.npy("x.npy", X + step)
        for _ in range(2):
            assert (prepared.run().array("x", "u4") == 2 * (X + step)).all()
        (scene.folder / "x.npy").unlink()
        with pytest.raises(FileError, match=r"x\.npy"):
            prepared.run()
        assert own.live_objects["buffer"] == 0


def test_after_a_timeout_the_device_is_another_one(scene: Scene, shader_cache: Path) -> None:
    """What was kept on a device that is given up is made anew."""
    text = glsl("for (uint i = 0u; i < a[0] * 60000u; i++) a[3] = a[3] * 3u + i; a[2] = 1u;", ONE)
    scene.shader("long", text).buffer("x", numpy.uint32([0, 0, 7, 0]), dst=None)
    with Runner(timeout_s=60) as runner:
        prepared = runner.prepare(scene.dispatch("long", ["x"], [64]).write())
        for _ in range(3):
            assert prepared.run().array("x", "u4").tolist() == [0, 0, 1, 0]
        runner.timeout_s = 0.1
        with pytest.raises(FenceTimeoutError):
            prepared.run({"x": numpy.uint32([2000, 0, 7, 0])})
        runner.timeout_s = 60
        for _ in range(3):
            assert prepared.run().array("x", "u4").tolist() == [0, 0, 1, 0]
    assert not any(runner.live_objects.values())


def test_pipelines_that_were_destroyed_are_made_anew(
    own: Runner, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Recorded commands do not outlive the pipelines that they use."""
    monkeypatch.setattr(pipeline, "MAX_KEPT_PIPELINES", 1)
    prepared = []
    for factor in (2, 3, 5):
        other = Scene(scene.folder).shader(f"times{factor}", glsl(f"a[gl_WorkGroupID.x] *= {factor}u;", ONE))
        path = other.buffer("x", X, dst=None).dispatch(f"times{factor}", ["x"], [4]).write(f"{factor}.json")
        prepared.append((factor, own.prepare(path)))
    for _ in range(3):
        for factor, scenario in prepared:
            for _ in range(3):
                assert (scenario.run().array("x", "u4") == factor * X).all()
            assert own.live_objects["pipeline"] == 1


def test_what_is_kept_has_bounds(own: Runner, scene: Scene) -> None:
    """Few runs and little memory are kept, none of a scenario that runs once, and `release` frees them."""
    for size in range(4, 64, 4):
        prepared = own.prepare(Scene(scene.folder).buffer("x", size=size, dst=None).write("small.json"))
        assert not prepared.run()["x"].any()
        kept = own.live_objects["buffer"]
        prepared.run()
        assert own.live_objects["buffer"] == min(kept + 1, 8)
    large = own.prepare(Scene(scene.folder).buffer("x", size=65 << 20, dst=None).write("large.json"))
    for _ in range(3):
        assert not large.run()["x"].any()
    assert own.live_objects["buffer"] == 0
    prepared.run()
    assert own.live_objects["buffer"] == 1
    own.release()
    assert not any(own.live_objects.values())
    assert prepared.run()["x"].tolist() == [0] * 60


def test_a_scenario_that_runs_again_is_the_one_on_disk(own: Runner, scene: Scene) -> None:
    """`Runner.run` sees other content, another shader, text, model, folder and other arguments of its own."""

    def write(factor: int, start: Any) -> Path:
        text = glsl(f"a[gl_WorkGroupID.x] = a[gl_WorkGroupID.x] * {factor}u + p.term;", PUSHED)
        scene.resources, scene.commands = [], []
        scene.shader("scale", text, push_constants_size=4).buffer("x", start, dst=None)
        scene.raw_data("term", numpy.uint32(factor + 1)).buffer("y", numpy.uint32([1]), dst=None)
        return scene.dispatch("scale", ["x"], [len(start)], push_data_ref="term").write()

    for factor, start in ((2, X), (2, X + 1), (3, X), (3, numpy.append(X, 5).astype("u4")), (2, X)):
        path = write(factor, start)
        for step in range(3):
            assert (own.run(path).array("x", "u4") == start * factor + factor + 1).all()
            other = start + step + 7
            result = own.run(str(path), {"x": other}, outputs="x")
            assert list(result) == ["x"]
            assert (result.array("x", "u4") == other * factor + factor + 1).all()
            assert own.run(path, {"term": numpy.uint32(step)}).array("x", "u4").tolist() == list(start * factor + step)
            assert sorted(own.run(path, outputs=["y"])) == ["y"]
    (scene.folder / "x.npy").unlink()
    with pytest.raises(FileError, match=r"x\.npy"):
        own.run(path)
    assert (own.run(path, {"x": X}).array("x", "u4") == X * 2 + 3).all()


def test_a_model_that_runs_again_is_the_one_on_disk(own: Runner, scene: Scene) -> None:
    """Other inputs, other shapes, missing inputs and another file are those of a first run."""
    model = scene.folder / "model.vgf"
    for name in ("ends", "mixed", "ends"):
        model.write_bytes((VGF / f"{name}.vgf").read_bytes())
        for seed in range(4):
            x, y = random((4, 16), seed=seed), random((4, 16), seed=seed + 20)
            result = own.run(model, x, y)
            expected = {"ends": [("sum", x + y), ("difference", x - y)], "mixed": [("z", (x + y) ** 2 + x / 2 + y)]}
            for uid, values in expected[name]:
                numpy.testing.assert_allclose(result[uid], values, rtol=1e-5, atol=1e-6)
            with pytest.raises(UsageError, match="no array is given for the input"):
                own.run(model, x)
            with pytest.raises(ScenarioRunnerError, match="shape"):
                own.run(model, x[:2], y)


def test_each_run_warns(own: Runner, scene: Scene, caplog: pytest.LogCaptureFixture) -> None:
    """Warnings about a scenario are in the result of each run, and logged by each."""
    path = scene.buffer("x", X, dst=None, unknown=1).write()
    for count in range(1, 4):
        assert len(own.run(path).warnings) == 1
        assert len(caplog.records) == count
