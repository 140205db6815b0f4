"""Objects kept between runs of a prepared scenario have bounds and never show in results."""

import gc
import time
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy
import pytest

from scenario_runner import Runner
from scenario_runner.errors import FenceTimeoutError, FileError, ScenarioRunnerError, UsageError
from scenario_runner.plan.plan import Plan
from scenario_runner.run.result import Collector
from scenario_runner.vulkan import pipeline
from tests.gpu.ml_scenes import VGF, bindings, random
from tests.left_out import VGF_LIBRARY, needs
from tests.scenes import Scene, error_of, glsl

ONE = "layout(binding = 0) buffer A { uint a[]; };\n"
TWO = f"{ONE}layout(binding = 1) buffer B {{ uint b[]; }};\n"
IMAGE = "layout(binding = 2, rgba8) uniform writeonly image2D image;\n"
PUSH = f"{TWO}layout(push_constant) uniform P {{ uint factor; }} p;\n"
X = numpy.arange(4, dtype="u4") * 10


@pytest.fixture(params=[False, True], ids=["in place", "staged"])
def own(request: pytest.FixtureRequest, shader_cache: Path) -> Iterator[Runner]:
    """A Runner that has run nothing before; it leaves nothing."""
    with Runner(timeout_s=60, staging=request.param) as runner:
        yield runner
    assert not any(runner.live_objects.values())


@pytest.fixture
def frames(scene: Scene) -> Path:
    """Add x times the factor to y, which starts at zero, in two frames. The first frame is captured."""
    scene.shader("add", glsl("uint i = gl_WorkGroupID.x; b[i] += a[i] * p.factor;", PUSH), push_constants_size=4)
    scene.buffer("x", X, dst=None).buffer("y", size=16, dst=None).raw_data("factor", numpy.uint32(1))
    scene.dispatch("add", ["x", "y"], [4], push_data_ref="factor").command("mark_boundary", resources=["y"], frame_id=3)
    return scene.dispatch("add", ["x", "y"], [4], push_data_ref="factor").write()


def collected(runner: Runner, path: Path) -> Collector:
    """Run a scenario into a collector for outputs and captures."""
    collectors: list[Collector] = []

    def collect(plan: Plan) -> Collector:
        collectors.append(Collector(plan))
        return collectors[-1]

    runner.run_into(path, collect)
    return collectors[0]


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


@needs(VGF_LIBRARY)
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
    """A run with a missing file fails, and the next run reads the file again."""
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
    """Objects of an abandoned device are made again after a timeout."""
    text = glsl("for (uint i = 0u; i < a[0] * 60000u; i++) a[3] = a[3] * 3u + i; a[2] = 1u;", ONE)
    scene.shader("long", text).buffer("x", numpy.uint32([0, 0, 7, 0]), dst=None)
    with Runner(timeout_s=60) as runner:
        prepared = runner.prepare(scene.dispatch("long", ["x"], [8192]).write())
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
    """Few runs and little memory are kept, and nothing of a scenario that runs once. `Prepared.close` and `release`
    free them."""
    for size in range(4, 64, 4):
        path = Scene(scene.folder).buffer("x", size=size, dst=None).write("small.json")
        for _ in range(3):
            own.run(path)
        prepared = own.prepare(path)
        assert not prepared.run()["x"].any()
        kept = own.live_objects["buffer"]
        prepared.run()
        assert own.live_objects["buffer"] == min(kept + 1, 8)
    prepared.close()
    assert own.live_objects["buffer"] == 7
    large = own.prepare(Scene(scene.folder).buffer("x", size=65 << 20, dst=None).write("large.json"))
    for _ in range(3):
        assert not large.run()["x"].any()
    assert own.live_objects["buffer"] == 0
    for free in (prepared.close, own.release, own.close, prepared.close):
        for _ in range(2):
            assert prepared.run()["x"].tolist() == [0] * 60
        assert own.live_objects["buffer"] == 1
        free()
        assert own.live_objects["buffer"] == 0


def test_scenarios_of_a_suite_share_objects(own: Runner, tmp_path: Path) -> None:
    """Scenarios with equal shaders and sizes run with the same buffers, whatever content and commands they have."""
    add = glsl("uint i = gl_WorkGroupID.x; b[i] += a[i] * p.factor;", PUSH)
    for step in range(24):
        count, factor, dispatches = 4 + step % 2, step + 2, 1 + step // 2 % 3
        if step == 13:
            count = 40_000  # needs a larger staging buffer
        x, y = numpy.arange(count, dtype="u4") + step, numpy.full(count, step, "u4")
        scene = Scene(tmp_path / str(step))
        scene.raw_data("factor", numpy.uint32(factor)).buffer("x", x, dst=None)
        scene.buffer("y", y) if step % 4 < 2 else scene.buffer("y", size=y.nbytes)
        scene.shader("add", add, push_constants_size=4)
        for _ in range(dispatches):
            scene.dispatch("add", ["x", "y"], [count], push_data_ref="factor")
        collector = collected(own, scene.write())
        expected = (y if step % 4 < 2 else 0) + dispatches * factor * x
        assert numpy.frombuffer(collector.data["y"], "u4").tolist() == expected.tolist(), step
        assert own.live_objects["buffer"] <= 10  # three sizes, with and without content
    own.release()
    assert own.live_objects["buffer"] == 0


def test_captures_and_outputs_take_turns(own: Runner, scene: Scene) -> None:
    """Each frame and the outputs read back other resources, with and without layouts, run after run."""
    increase = glsl(
        "b[gl_WorkGroupID.x] = a[gl_WorkGroupID.x] + 1u; imageStore(image, ivec2(0), vec4(1.0));", f"{TWO}{IMAGE}"
    )
    scene.shader("increase", increase).buffer("x", X).buffer("y", size=16).image("image", "R8G8B8A8_UNORM", size=(1, 1))
    for captured in (["x", "y"], ["image"], ["x", "y"]):
        scene.dispatch("increase", ["x", "y", "image"], [4]).command("mark_boundary", resources=captured)
    path = scene.write()
    for step in range(3):
        scene.npy("x.npy", X + step)
        collector = collected(own, path)
        first, second, third = collector.frames
        for arrays in (first, third):
            assert (arrays.array("x", "u4") == X + step).all()
            assert (arrays.array("y", "u4") == X + step + 1).all()
        assert (second["image"] == 255).all()
        assert numpy.frombuffer(collector.data["y"], "u4").tolist() == (X + step + 1).tolist()
        assert numpy.frombuffer(collector.data["x"], "u4").tolist() == (X + step).tolist()


def test_arrays_of_a_run_are_let_go(own: Runner, frames: Path) -> None:
    """Inputs and results do not outlive their run: a kept run has no content."""
    prepared = own.prepare(frames, outputs=["y"])
    references = []
    for step in range(3):
        x = X + step
        result = prepared.run({"x": x})
        assert (result.array("y", "u4") == 2 * x).all()
        references += [weakref.ref(x), weakref.ref(result)]
        del x, result
    gc.collect()
    assert own.live_objects["buffer"] == 2
    assert [reference() for reference in references] == [None] * 6


def test_inputs_of_another_size_fail_as_ever(own: Runner, scene: Scene) -> None:
    """Inputs of another size are refused with the message of a first run, and the next run is right."""
    double = glsl("a[gl_WorkGroupID.x] *= 2u;", ONE)
    path = scene.shader("double", double).buffer("x", X, dst=None).dispatch("double", ["x"], [4]).write()
    expected = error_of(ScenarioRunnerError, own.run, path, {"x": X[:3]})
    prepared = own.prepare(path)
    for _ in range(3):
        assert (prepared.run({"x": X}).array("x", "u4") == 2 * X).all()
        assert str(error_of(ScenarioRunnerError, prepared.run, {"x": X[:3]})) == str(expected)


def test_content_comes_and_goes(own: Runner, scene: Scene) -> None:
    """A buffer that is zero at first takes content in some runs, from threads that take turns."""
    add = glsl("a[gl_WorkGroupID.x] += 1u;", ONE)
    path = scene.shader("add", add).buffer("x", size=16, dst=None).dispatch("add", ["x"], [4]).write()
    prepared = own.prepare(path)

    def run(step: int) -> Any:
        return prepared.run({"x": X + step} if step % 3 else {}).array("x", "u4").tolist()

    with ThreadPoolExecutor(2) as pool:
        for step in range(12):
            assert pool.submit(run, step).result() == list((X + step if step % 3 else 0 * X) + 1)


def test_threads_at_a_time(own: Runner, scene: Scene) -> None:
    """A run is refused while another thread runs something, and neither result is damaged."""
    scene.shader("long", glsl("for (uint i = 0u; i < a[0] * 60000u; i++) a[3] = a[3] * 3u + i;", ONE))
    scene.shader("add", glsl("a[gl_WorkGroupID.x] += 1u;", ONE)).buffer("x", X + 1, dst=None)
    long = own.prepare(scene.dispatch("long", ["x"], [40]).write("long.json"))
    scene.commands.clear()
    short = own.prepare(scene.dispatch("add", ["x"], [4]).write("short.json"))
    refused: list[str] = []

    def until_it_runs(prepared: Any) -> Any:
        while True:
            try:
                return prepared.run().array("x", "u4").tolist()
            except UsageError as error:
                refused.append(error.problems[0].message)
                time.sleep(0.01)

    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(until_it_runs, long)
        while not other.done():
            assert until_it_runs(short) == (X + 2).tolist()
        assert other.result()[:3] == (X + 1).tolist()[:3]
    assert set(refused) == {"another thread is running a scenario on this Runner"}


EXAMPLES = [
    "algorithms/histogram",
    "basics/push_constants",
    "drawing/two_attachments",
    "frames/boundaries",
    "images/barriers",
    "images/level_writes",
    "images/mip_levels",
    "images/shared_with_buffer",
    "memory/aliased_buffers",
    "ml/image_to_graph",
]


@pytest.mark.parametrize("example", EXAMPLES)
def test_examples(runner: Runner, checkout: Path, example: str) -> None:
    """Each run of an example, with any content, equals a run that keeps nothing."""
    compare_runs(runner, runner, checkout / "scenarios" / example / "scenario.json")


def compare_runs(runner: Runner, fresh: Runner, path: Path) -> None:
    """Compare runs of a prepared scenario on ``runner`` with `Runner.run` on ``fresh``."""
    prepared = runner.prepare(path)
    expected: dict[int, dict[str, bytes]] = {}
    for step in (0, 1, 0, 2, 1, 2, 0):  # two runs before anything is kept
        inputs = {uid: moved(resource, step) for uid, resource in prepared.plan.resources.items() if step}
        inputs = {uid: array for uid, array in inputs.items() if array is not None}
        if step not in expected:
            expected[step] = contents(fresh.run(path, inputs, write_files=False))
        assert contents(prepared.run(inputs, write_files=False)) == expected[step], step
    prepared.close()


def contents(result: Any) -> dict[str, bytes]:
    """Return the bytes of all results, and those of frames under their numbers."""
    parts = [("", result), *((f"{number} ", frame) for number, frame in enumerate(result.frames))]
    return {f"{name}{uid}": part.array(uid).tobytes() for name, part in parts for uid in part}


def moved(resource: Any, step: int) -> Any:
    """Return the content of a resource with elements moved by ``step``, or None for a resource without content."""
    if resource.source is None or resource.group is not None:
        return None
    if resource.kind == "image" and resource.source_levels != 1:
        return None
    descr, shape = resource.npy or resource.array_type(resource.parts[0])
    data = bytearray(resource.source.size_bytes)
    resource.source.read_into(memoryview(data))
    if resource.kind == "buffer" and len(data) % 4 == 0:
        descr, shape = "u4", (-1,)
    return numpy.roll(numpy.frombuffer(data, descr).reshape(shape), step)


def test_depth_ranges_of_another_scenario(own: Runner, scene: Scene) -> None:
    """An extension that changes how depths are clamped is on only while a scenario names it."""
    scene.shader("one", glsl("a[0] = 1;", ONE)).shader("two", glsl("a[0] = 2;", ONE)).buffer("a", size=4)
    one, two = (scene.dispatch(name, ["a"], [1]).write(f"{name}.json") for name in ("one", "two"))
    extension = "VK_EXT_depth_range_unrestricted"
    assert extension in own.physical_device.extensions, "this test needs a device with the extension"
    pipelines = []
    for names, path in (((), one), ((extension,), one), ((extension,), two), ((), one), ((), two)):
        own.also_enabled = names
        own.run(path)
        pipelines.append(own.live_objects["pipeline"])
    assert pipelines == [1, 1, 2, 1, 2]


def test_a_device_opened_again_suits_later_shaders(own: Runner, tmp_path: Path) -> None:
    """The second shader that needs a feature opens the device again; the third shader finds a device with all features.

    Pipelines of the earlier device are gone, and those of the present device are kept.
    """
    pipelines = []
    extensions = ("GL_EXT_shader_explicit_arithmetic_types", "GL_ARB_shader_clock")
    header = "".join(f"#extension {name} : require\n" for name in extensions) + ONE
    sums = ["a[0] + 7", "double(a[0] + 7)", "int64_t(a[0] + 7)", "int16_t(a[0] + 7)", "a[0] + 7 + clock2x32ARB().x * 0"]
    for number, sum in enumerate(sums):
        code = f"a[0] = uint({sum}) + {number};"
        scene = Scene(tmp_path / str(number)).shader("s", glsl(code, header)).buffer("a", size=4)
        result = own.run(scene.dispatch("s", ["a"], [1]).write())
        assert result["a"].view("u4") == 7 + number
        pipelines.append(own.live_objects["pipeline"])
    assert pipelines == [1, 1, 2, 3, 4]
