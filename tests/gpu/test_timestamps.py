"""Times of dispatches on the device: count, names and order."""

from array import array
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy

from scenario_runner import Runner
from scenario_runner.run.timings import DispatchTime, Timings
from tests.gpu.flow_scenes import add_pictures, flow, moved
from tests.gpu.fragment_scenes import draw, fragment, output, target, vertex
from tests.gpu.ml_scenes import mixed_model
from tests.left_out import VGF_LIBRARY, needs
from tests.scenes import Scene, glsl

ONE = "layout(set = 0, binding = 0) buffer A { uint a[]; };\n"
ADD = glsl("a[gl_WorkGroupID.x] += 1u;", ONE)


def adding(scene: Scene, dispatches: int, **keys: Any) -> Scene:
    scene.shader("add", ADD).buffer("x", numpy.zeros(4, "u4"))
    for _ in range(dispatches):
        scene.dispatch("add", ["x"], [4], **keys)
    return scene


def measured(runner: Runner, path: Path, **options: Any) -> Timings:
    timings = runner.run(path, write_files=False, timings=True, **options).timings
    assert timings is not None
    return timings


def follow_each_other(dispatches: list[DispatchTime]) -> None:
    """Check that every dispatch ends after its begin and before the begin of the next, and that times follow ticks."""
    for before, after in pairwise(dispatches):
        assert before.end_ticks <= after.begin_ticks
    for each in dispatches:
        assert each.ticks == each.end_ticks - each.begin_ticks
        assert each.ticks >= 0


def test_every_dispatch_of_every_iteration(scene: Scene, runner: Runner) -> None:
    """Each dispatch of each iteration has a time, in order, with the shader's uid."""
    scene = adding(scene, 2).command("mark_boundary", resources=[]).shader("twice", glsl("a[0] *= 2u;", ONE))
    scene.dispatch("twice", ["x"]).dispatch("add", ["x"], [4], implicit_barrier=False)
    timings = measured(runner, scene.write(), repeat=3)
    found = [(each.iteration, each.frame, each.command, each.type, each.name) for each in timings.dispatches]
    commands = [(0, 0, "add"), (0, 1, "add"), (1, 3, "twice"), (1, 4, "add")]
    assert found == [(n, frame, at, "ComputeDispatch", name) for n in range(3) for frame, at, name in commands]
    follow_each_other(timings.dispatches)
    assert any(each.ticks for each in timings.dispatches)
    assert [each.time_ns for each in timings.dispatches] == [
        each.ticks * timings.period_ns for each in timings.dispatches
    ]


def test_any_number_of_dispatches(scene: Scene, runner: Runner) -> None:
    """A frame may have more dispatches than earlier frames, whose command buffers are used again."""
    adding(scene, 2)
    for dispatches in (7, 3, 40):
        scene.command("mark_boundary", resources=[])
        for _ in range(dispatches):
            scene.dispatch("add", ["x"], [4])
    timings = measured(runner, scene.write(), repeat=2)
    assert len(timings.dispatches) == 2 * (2 + 7 + 3 + 40)
    follow_each_other(timings.dispatches)


def test_shaders_of_equal_content_keep_their_names(scene: Scene, runner: Runner) -> None:
    """Two shaders with the same SPIR-V share a pipeline, but each dispatch has the uid that its command names."""
    adding(scene, 1).shader("same", ADD).dispatch("same", ["x"], [4]).dispatch("add", ["x"], [4])
    path = scene.write()
    assert [each.name for each in measured(runner, path).dispatches] == ["add", "same", "add"]
    for _ in range(2):  # the second plan is that of the cache
        timings = Timings()
        runner.run_to_files(path, timings=timings)
        assert [each.name for each in timings.dispatches] == ["add", "same", "add"]


@needs(VGF_LIBRARY)
def test_segments_of_a_model(ml: Runner, scene: Scene) -> None:
    """A model has one time for each segment, compute and graph, named by the graph and the segment."""
    timings = Timings()
    ml.run_to_files(mixed_model(scene).write(), repeat=2, timings=timings)
    names = [(each.type, each.name) for each in timings.dispatches]
    once = names[: len(names) // 2]
    assert names == once * 2
    assert {kind for kind, _ in once} == {"DataGraphDispatch", "ComputeDispatch"}
    assert all(name.startswith("graph/") for _, name in once)
    assert len(set(once)) == len(once) > 2
    follow_each_other(timings.dispatches)
    graphs = [name for kind, name in once if kind == "DataGraphDispatch"]
    assert [name for name, _ in timings.session_memory] == graphs
    assert all(size >= 0 for _, size in timings.session_memory)


def test_drawings(scene: Scene, runner: Runner) -> None:
    """Draws have times of their own, by debug_name or the fragment shader's uid, with and without barriers."""
    vertex(scene)
    fragment(scene, "color = uint(p.x);", output("uint"))
    target(scene, "t", size=(8, 8))
    draw(scene, ["t"], implicit_barrier=False)
    draw(scene, ["t"], debug_name="second", implicit_barrier=False)
    draw(scene, ["t"])
    timings = measured(runner, scene.write())
    assert [(each.type, each.name) for each in timings.dispatches] == [
        ("GraphicsDispatch", "f"),
        ("GraphicsDispatch", "second"),
        ("GraphicsDispatch", "f"),
    ]
    follow_each_other(timings.dispatches)


def test_optical_flows(ml: Runner, scene: Scene) -> None:
    """Optical flows have times in every part of a frame, under the name of their command."""
    flow(add_pictures(scene, *moved((3, -2))))
    flow(scene, bound={"search_image": "template", "template_image": "search"})
    scene.shader("add", ADD).buffer("x", size=16).dispatch("add", ["x"], [4])
    timings = ml.run(scene.write(), outputs=["vectors"], timings=True, repeat=2, write_files=False).timings
    assert timings is not None
    assert [(each.iteration, each.type, each.name) for each in timings.dispatches] == [
        (iteration, *work)
        for iteration in range(2)
        for work in (("DataGraphDispatch", "dispatch_optical_flow"),) * 2 + (("ComputeDispatch", "add"),)
    ]
    follow_each_other(timings.dispatches)
    assert [name for name, _ in timings.session_memory] == ["dispatch_optical_flow"] * 2


def test_nothing_to_measure(scene: Scene, runner: Runner) -> None:
    """A scenario without dispatches has an empty list; so has a dry run."""
    assert measured(runner, adding(scene, 0).write()).dispatches == []
    timings = measured(runner, adding(Scene(scene.folder), 3).write(), dry_run=True)
    assert timings.dispatches == []
    assert {"plan", "create", "upload", "record"} <= timings.phases.keys()
    assert timings.phases.keys() & {"submit", "wait"} == set()


def test_a_prepared_scenario(scene: Scene, runner: Runner) -> None:
    """Each run of a prepared scenario has its own measurements."""
    prepared = runner.prepare(adding(scene, 2).write())
    first = prepared.run(write_files=False, timings=True).timings
    second = prepared.run(write_files=False, timings=True).timings
    assert first is not None
    assert second is not None
    assert len(first.dispatches) == len(second.dispatches) == 2
    assert first.dispatches[-1].end_ticks <= second.dispatches[0].begin_ticks
    assert "plan" not in second.phases
    assert prepared.run(write_files=False).timings is None


def test_a_counter_that_wraps_around() -> None:
    """The time between two timestamps is right when the counter passed the end of its valid bits in between."""
    timings = Timings()
    timings.valid_bits = 36
    assert timings.ticks_between((1 << 36) - 5, 10) == 15
    assert timings.ticks_between(7, 7) == 0
    timings.valid_bits = 64
    assert timings.ticks_between((1 << 64) - 1, 1) == 2
    assert timings.ticks_between(*array("Q", [5, 1 << 63])) == (1 << 63) - 5


def test_beside_labels_of_tools(scene: Scene, shader_cache: Path, validation: bool) -> None:
    """Labels for capture tools and timestamps are recorded side by side; nothing is measured twice."""
    with Runner(debug_labels=True, validation=validation) as labelled:
        timings = measured(labelled, adding(scene, 3).write(), repeat=2)
        assert [(each.iteration, each.command) for each in timings.dispatches] == [
            (n, at) for n in (0, 1) for at in range(3)
        ]
        follow_each_other(timings.dispatches)
