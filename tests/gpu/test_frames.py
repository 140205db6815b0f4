"""Frame boundaries: what they capture, and when."""

from __future__ import annotations

from pathlib import Path

import numpy
import pytest

from scenario_runner import Runner
from scenario_runner.errors import UsageError
from tests.scenes import Scene, glsl

ONE = "layout(set = 0, binding = 0) buffer A { uint a[]; };\n"


def counting(scene: Scene) -> Scene:
    """Three frames that each add 1 to every element of x, the last two captured, and a command after them."""
    scene.shader("add", glsl("a[gl_WorkGroupID.x] += 1u;", ONE))
    scene.buffer("x", numpy.array([0, 10, 20, 30], numpy.uint32)).buffer("other", size=5)
    scene.dispatch("add", ["x"], [4]).command("mark_boundary", resources=[], frame_id=5)
    scene.dispatch("add", ["x"], [4]).command("mark_boundary", resources=["x", "other"], frame_id=6)
    scene.dispatch("add", ["x"], [4]).command("frame_boundary", resources=["x"])
    return scene.dispatch("add", ["x"], [4])


def test_captures_show_their_own_time(scene: Scene, runner: Runner) -> None:
    """A capture holds what the resource held at its boundary: what later frames write is not in it."""
    result = runner.run(counting(scene).write())
    assert [(frame.frame_id, frame.iteration, sorted(frame)) for frame in result.frames] == [
        (5, 0, []),
        (6, 0, ["other", "x"]),
        (2, 0, ["x"]),
    ]
    start = numpy.array([0, 10, 20, 30])
    assert (result.frames[1].array("x", "u4") == start + 2).all()
    assert (result.frames[2].array("x", "u4") == start + 3).all()
    assert (result.array("x", "u4") == start + 4).all()
    assert result.frames[1]["other"].tolist() == [0] * 5


@pytest.mark.parametrize("keep_state", [False, True])
def test_every_iteration_has_its_frames(scene: Scene, runner: Runner, keep_state: bool) -> None:
    """Repeating captures every iteration, with the inputs restored or not."""
    result = runner.run(counting(scene).write(), repeat=3, keep_state=keep_state)
    assert [frame.iteration for frame in result.frames] == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    firsts = [int(frame.array("x", "u4")[0]) for frame in result.frames if "x" in frame]
    assert firsts == ([2, 3, 6, 7, 10, 11] if keep_state else [2, 3] * 3)


def test_capture_folders(scene: Scene, runner: Runner, tmp_path: Path) -> None:
    """capture_dir gets one folder per frame, numbered where frames share an id, and per iteration when repeating."""
    scene.shader("add", glsl("a[gl_WorkGroupID.x] += 1u;", ONE)).buffer("x", size=4)
    for frame_id in (3, 3, 4):
        scene.dispatch("add", ["x"]).command("mark_boundary", resources=["x"], frame_id=frame_id)
    path = scene.write()
    runner.run_to_files(path, capture_dir=tmp_path / "once")
    runner.run_to_files(path, capture_dir=tmp_path / "twice", repeat=2)
    values = {
        str(file.relative_to(tmp_path)): int(numpy.load(file).view("u4")[0])
        for folder in ("once", "twice")
        for file in (tmp_path / folder).rglob("*.npy")
    }
    frames = {"frame_3/x.npy": 1, "frame_3_2/x.npy": 2, "frame_4/x.npy": 3}
    assert values == {f"once/{name}": value for name, value in frames.items()} | {
        f"twice/iteration_{iteration}/{name}": value for name, value in frames.items() for iteration in (0, 1)
    }


def test_uids_that_make_the_same_file_name(scene: Scene, runner: Runner, tmp_path: Path) -> None:
    """Resources whose uids differ only in what file names cannot hold are captured in files of their own."""
    scene.buffer("a/b", numpy.array([1], numpy.uint8), dst=None, src=None)
    scene.resources.clear()
    for number, uid in enumerate(("a/b", "a_b", "a:b", "..", "A")):
        name = scene.npy(f"in{number}.npy", numpy.array([number], numpy.uint8))
        scene.resource("buffer", uid=uid, size=1, src=name, shader_access="readwrite")
    scene.command("mark_boundary", resources=["a/b", "a_b", "a:b", "..", "A"])
    runner.run_to_files(scene.write(), capture_dir=tmp_path / "captured")
    files = sorted((tmp_path / "captured" / "frame_0").iterdir())
    assert sorted(int(numpy.load(file)[0]) for file in files) == [0, 1, 2, 3, 4]
    assert sorted(path.name for path in (tmp_path / "captured").iterdir()) == ["frame_0", "manifest.json"]


def test_captures_are_skipped_without_a_folder(scene: Scene, runner: Runner) -> None:
    """Without capture_dir a run for its files writes no captures, and its outputs are the same."""
    runner.run_to_files(counting(scene).write())
    assert scene.output("x", "u4").tolist() == [4, 14, 24, 34]
    assert sorted(path.name for path in scene.folder.glob("*.npy")) == ["other.out.npy", "x.npy", "x.out.npy"]


def test_only_boundaries(scene: Scene, runner: Runner) -> None:
    """Boundaries without any work between them capture the inputs."""
    scene.buffer("x", numpy.array([7], numpy.uint32))
    scene.command("mark_boundary", resources=["x"]).command("mark_boundary", resources=["x", "x"])
    result = runner.run(scene.write())
    assert [frame.array("x", "u4").tolist() for frame in result.frames] == [[7], [7]]


def test_no_commands(scene: Scene, runner: Runner) -> None:
    """A scenario without commands stores its inputs."""
    scene.buffer("x", numpy.array([7, 8], numpy.uint16)).buffer("zeros", size=3)
    result = runner.run(scene.write())
    assert result.array("x", "u2").tolist() == [7, 8]
    assert scene.output("x", "u2").tolist() == [7, 8]
    assert scene.output("zeros").tolist() == [0, 0, 0]


def test_inputs_given_in_code(scene: Scene, runner: Runner) -> None:
    """Arrays given for a run are inputs of every iteration; fewer than one is an error; a dry run has no results."""
    path = counting(scene).write()
    given = numpy.array([100, 200, 300, 400], numpy.uint32)
    assert (runner.run(path, {"x": given}, repeat=3).array("x", "u4") == given + 4).all()
    for repeat in (0, -1):
        with pytest.raises(UsageError, match=f"scenario.json: repeat is {repeat}, expected 1 or more$"):
            runner.run(path, repeat=repeat)
    assert dict(runner.run(path, dry_run=True)) == {}
