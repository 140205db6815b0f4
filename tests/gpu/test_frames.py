"""Frame boundaries: contents and times of captures, the files of --capture-dir, and files after a failure."""

import hashlib
import json
import re
import signal
from pathlib import Path
from typing import Any

import numpy
import pytest

from scenario_runner import Runner
from scenario_runner.errors import FileError, UsageError
from scenario_runner.files.dds import DdsReader
from tests.program import Program
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
    """A capture holds the content at its boundary, without the writes of later frames."""
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
    """Resources whose uids give the same file name get files of their own."""
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


def manifest(folder: Path) -> list[dict[str, Any]]:
    """The entries of the list, each of a file that is there and has that content."""
    entries: list[dict[str, Any]] = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["files"]
    for entry in entries:
        content = (folder / entry["file"]).read_bytes()
        assert (hashlib.sha256(content).hexdigest(), len(content)) == (entry["sha256"], entry["size_bytes"])
    return entries


def adding(scene: Scene, frames: int, count: int = 4) -> Scene:
    """Frames that each add 1 to x and capture it."""
    scene.shader("add", glsl("a[gl_GlobalInvocationID.x] += 1u;", ONE, local_size=1))
    scene.buffer("x", numpy.zeros(count, numpy.uint32))
    for _ in range(frames):
        scene.dispatch("add", ["x"], [4]).command("mark_boundary", resources=["x"])
    return scene


def test_images_keep_their_format(scene: Scene, runner: Runner) -> None:
    """An image is captured as .npy, as .dds with its format, and as .png where that is exact; the list describes each
    file."""
    texels = numpy.arange(4 * 4 * 4, dtype=numpy.uint8).reshape(4, 4, 4)
    common = {"dims": [1, 4, 4, 1], "shader_access": "readwrite"}
    scene.resource("image", uid="color", format="VK_FORMAT_R8G8B8A8_SRGB", src=scene.npy("c.npy", texels), **common)
    halves = texels.astype(numpy.float16)
    scene.resource(
        "image", uid="light", format="VK_FORMAT_R16G16B16A16_SFLOAT", src=scene.npy("l.npy", halves), **common
    )
    scene.command("mark_boundary", resources=["color", "light"], frame_id=5)
    runner.run_to_files(scene.write(), capture_dir=scene.folder / "captured")
    folder = scene.folder / "captured" / "frame_5"
    assert sorted(path.name for path in folder.iterdir()) == [
        "color.dds", "color.npy", "color.png", "light.dds", "light.npy",
    ]  # fmt: skip
    for name, expected in (("color", texels), ("light", halves)):
        assert (numpy.load(folder / f"{name}.npy").reshape(4, 4, 4) == expected).all()
    with DdsReader(folder / "color.dds") as stored:
        assert stored.header.format.name == "VK_FORMAT_R8G8B8A8_SRGB"
        content = bytearray(64)
        stored.read_into(memoryview(content))
    assert bytes(content) == texels.tobytes()
    entries = manifest(scene.folder / "captured")
    described = [(e["frame_id"], e["resource"], e["kind"], e["format"], e["shape"], e["file"]) for e in entries]
    assert (5, "color", "image", "VK_FORMAT_R8G8B8A8_SRGB", [4, 4], "frame_5/color.png") in described
    assert (5, "light", "image", "VK_FORMAT_R16G16B16A16_SFLOAT", [4, 4], "frame_5/light.dds") in described
    assert len(described) == 5


def test_the_list_covers_the_folder(scene: Scene, runner: Runner) -> None:
    """Later runs into the folder replace the entries of their own files and keep the others."""
    path = adding(scene, 3).write()
    folder = scene.folder / "captured"
    runner.run_to_files(path, capture_dir=folder)
    runner.run_to_files(path, capture_dir=folder, repeat=2)
    assert len(manifest(folder)) == 3 + 6
    (folder / "frame_1" / "x.npy").unlink()
    runner.run_to_files(path, capture_dir=folder, repeat=2)
    files = [entry["file"] for entry in manifest(folder)]
    assert files[:2] == ["frame_0/x.npy", "frame_2/x.npy"]
    assert [entry["iteration"] for entry in manifest(folder)[2:]] == [0, 0, 0, 1, 1, 1]


@pytest.mark.parametrize("content", ["[{", "{}", '{"version": 1, "files": []}'])
def test_a_list_of_somebody_else(scene: Scene, runner: Runner, content: str) -> None:
    """A manifest.json that is no list of captures is not replaced; the error comes before the run."""
    scene.file("captured/manifest.json", content)
    with pytest.raises(FileError, match=r"manifest\.json: is not a list of captures, and a run would replace it"):
        runner.run_to_files(adding(scene, 1).write(), capture_dir=scene.folder / "captured")
    assert (scene.folder / "captured/manifest.json").read_text(encoding="utf-8") == content
    assert sorted(path.name for path in (scene.folder / "captured").iterdir()) == ["manifest.json"]


def test_complete_frames_stay(scene: Scene, program: Program, fault_layer: dict[str, str]) -> None:
    """When a later frame fails, the files of the frames before are there, listed, and nothing else is."""
    adding(scene, 4).write()
    for at in ("5", "4"):
        failing = {**fault_layer, "FAULT_CALL": "vkQueueSubmit", "FAULT_AT": at, "FAULT_RESULT": "-4"}
        ended = program("scenario.json", "--capture-dir", f"captured{at}", env=failing)
        folder = scene.folder / f"captured{at}"
        if ended.code == 11:
            break
    assert ended.code == 11
    entries = manifest(folder)
    assert 0 < len(entries) < 4
    for number, entry in enumerate(entries):
        assert (numpy.load(folder / entry["file"]).view("u4") == number + 1).all()
    assert scene.leftovers() == []
    assert sorted(path.name for path in folder.glob("frame_*")) == [f"frame_{n}" for n in range(len(entries))]


def test_a_file_that_could_never_be_written(scene: Scene, program: Program) -> None:
    """An obstacle to the file of any frame or iteration is found before the run."""
    adding(scene, 3).write()
    for place, repeat in (("frame_2/x.npy", 1), ("iteration_1/frame_0/x.npy", 2)):
        (scene.folder / "captured" / place).mkdir(parents=True)
        done = program("scenario.json", "--capture-dir", "captured", "--repeat", str(repeat))
        error = rf"error: scenario\.json:\d+:\d+: /resources/1/buffer: captured/{place}: is a folder, expected .*\n"
        assert (done.code, done.out) == (4, "")
        assert re.fullmatch(error, done.err)
        assert not (scene.folder / "captured/manifest.json").exists()
        assert not (scene.folder / "x.out.npy").exists()


def test_a_file_that_cannot_be_written(scene: Scene, runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    """A failed write of a frame ends the run with one error. Earlier frames stay, no output appears, and no
    half-written file is left."""
    path = adding(scene, 6).write()
    folder = scene.folder / "captured"
    (folder / "frame_3" / "x.npy").mkdir(parents=True)
    monkeypatch.setattr("scenario_runner.run.capture_files.CaptureFiles.check", nothing_in_the_way)
    with pytest.raises(
        FileError, match=r"scenario\.json:\d+:\d+: /resources/1/buffer: .*x\.npy: is a folder"
    ) as caught:
        runner.run_to_files(path, capture_dir=folder)
    assert caught.value.exit_code == 4
    assert [entry["file"] for entry in manifest(folder)] == [f"frame_{number}/x.npy" for number in range(3)]
    assert scene.leftovers() == []
    assert not (scene.folder / "x.out.npy").exists()


def test_long_names(scene: Scene, runner: Runner) -> None:
    """A uid that is longer than a file name may be is cut in the names of files, and whole in the list."""
    first, second = "ä" * 300, "ä" * 301
    scene.buffer(first, size=4, dst=None).buffer(second, size=4, dst=None)
    scene.command("mark_boundary", resources=[first, second])
    runner.run_to_files(scene.write(), capture_dir=scene.folder / "captured")
    entries = manifest(scene.folder / "captured")
    assert [entry["resource"] for entry in entries] == [first, second]
    assert [Path(entry["file"]).name for entry in entries] == ["ä" * 100 + ".npy", "ä" * 100 + "~2.npy"]


def nothing_in_the_way(*_: object) -> None:
    """The check passes before the run, and an obstacle that appears later is found at the write."""


def test_full_disk(scene: Scene, program: Program) -> None:
    """A frame that meets a full disk is removed, and earlier frames stay."""
    adding(scene, 3, 4 << 20).write()  # 16 MiB each
    limit = ("bash", "-c", 'ulimit -f 20480; exec "$@"', "-")
    assert program("scenario.json", "--capture-dir", "captured", launcher=limit).code == 0
    scene.buffer("y", size=40 << 20, dst=None)
    scene.command("mark_boundary", resources=["x", "y"]).write()
    ended = program("scenario.json", "--capture-dir", "other", launcher=limit)
    if ended.code in (9, -signal.SIGBUS):
        pytest.skip("the memory of this driver is files, which the limit concerns as well")
    assert ended.code == 4
    assert re.match(
        r"error: scenario\.json:\d+:\d+: /resources/2/buffer: other/frame_3/y\.npy: cannot be given", ended.err
    )
    folder = scene.folder / "other"
    assert [entry["file"] for entry in manifest(folder)] == [f"frame_{number}/x.npy" for number in range(3)]
    assert sorted(path.name for path in folder.iterdir()) == ["frame_0", "frame_1", "frame_2", "manifest.json"]
    assert scene.leftovers() == []


def test_a_folder_that_cannot_be_written_to(scene: Scene, program: Program) -> None:
    """A capture folder that cannot be made is refused before anything runs."""
    adding(scene, 1).write()
    scene.file("taken", "a file")
    ended = program("scenario.json", "--capture-dir", "taken", exit_code=4)
    assert ended.err.count("error: ") == 1
    assert not (scene.folder / "x.out.npy").exists()


def test_one_of_several_files_that_cannot_be_written(
    scene: Scene, runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failure in one of several formats removes all files of the image."""
    keys = {"dims": [1, 4, 4, 1], "format": "VK_FORMAT_R8G8B8A8_UNORM", "shader_access": "readwrite"}
    scene.resource("image", uid="picture", **keys).command("mark_boundary", resources=["picture"])
    (scene.folder / "captured/frame_0/picture.png").mkdir(parents=True)
    monkeypatch.setattr("scenario_runner.run.capture_files.CaptureFiles.check", nothing_in_the_way)
    with pytest.raises(FileError, match=r"picture\.png: is a folder"):
        runner.run_to_files(scene.write(), capture_dir=scene.folder / "captured")
    assert [path.name for path in (scene.folder / "captured/frame_0").iterdir()] == ["picture.png"]
