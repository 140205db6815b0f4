"""The files of --capture-dir: formats, the list of them, and what is left after a failure."""

from __future__ import annotations

import hashlib
import json
import re
import signal
from pathlib import Path
from typing import Any

import numpy
import pytest

from scenario_runner import Runner
from scenario_runner.errors import FileError
from scenario_runner.files.dds import DdsReader
from scenario_runner.run import capture_files
from tests.program import Program
from tests.scenes import Scene, glsl

ONE = "layout(set = 0, binding = 0) buffer A { uint a[]; };\n"


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
    """An image is captured as .npy, as .dds with its format, and as .png where that is exact; the list says what each
    file is."""
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
    with pytest.raises(FileError, match=r"manifest\.json: is not a list of captures, which would replace it"):
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
    """What is in the way of a frame's file is found before the run, in any frame and iteration."""
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
    """What goes wrong while a frame is written ends the run with one error; the frames before stay, no output appears
    and nothing half-written is left."""
    path = adding(scene, 6).write()
    folder = scene.folder / "captured"
    (folder / "frame_3" / "x.npy").mkdir(parents=True)
    monkeypatch.setattr("scenario_runner.run.capture_files.check_captures", nothing_in_the_way)
    with pytest.raises(
        FileError, match=r"scenario\.json:\d+:\d+: /resources/1/buffer: .*x\.npy: is a folder"
    ) as caught:
        runner.run_to_files(path, capture_dir=folder)
    assert caught.value.exit_code == 4
    assert [entry["file"] for entry in manifest(folder)] == [f"frame_{number}/x.npy" for number in range(3)]
    assert scene.leftovers() == []
    assert not (scene.folder / "x.out.npy").exists()


def test_one_of_several_files_that_cannot_be_written(
    scene: Scene, runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where an image is written in several formats and one of them cannot be, none of its files is left."""
    keys = {"dims": [1, 4, 4, 1], "format": "VK_FORMAT_R8G8B8A8_UNORM", "shader_access": "readwrite"}
    scene.resource("image", uid="picture", **keys).command("mark_boundary", resources=["picture"])
    (scene.folder / "captured/frame_0/picture.png").mkdir(parents=True)
    monkeypatch.setattr("scenario_runner.run.capture_files.check_captures", nothing_in_the_way)
    with pytest.raises(FileError, match=r"picture\.png: is a folder"):
        runner.run_to_files(scene.write(), capture_dir=scene.folder / "captured")
    assert [path.name for path in (scene.folder / "captured/frame_0").iterdir()] == ["picture.png"]


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
    """The check before the run; what comes into the way meanwhile is found when it is written."""


def test_full_disk(scene: Scene, program: Program) -> None:
    """Where the room ends in a frame, that frame is removed and those before stay."""
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
    ended = program("scenario.json", "--capture-dir", "taken")
    assert ended.code == 4
    assert ended.err.count("error: ") == 1
    assert not (scene.folder / "x.out.npy").exists()


def test_memory_is_bounded(scene: Scene, runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    """No more than the allowed number of bytes waits to be written, however many frames there are."""
    monkeypatch.setattr(capture_files, "_MOST_CHUNKS", 1)
    waiting: list[int] = []
    most = []
    put, write = capture_files.CaptureFiles.put, capture_files.CaptureFiles.write

    def put_counted(self: capture_files.CaptureFiles, job: Any) -> None:
        waiting.append(len(job.args[-1]) if job.func.__name__ == "write_counted" else 0)
        most.append(sum(waiting))
        put(self, job)

    def write_counted(self: capture_files.CaptureFiles, files: Any, uid: str, piece: bytearray) -> None:
        write(self, files, uid, piece)
        waiting.append(-len(piece))

    monkeypatch.setattr(capture_files.CaptureFiles, "put", put_counted)
    monkeypatch.setattr(capture_files.CaptureFiles, "write", write_counted)
    path = adding(scene, 6, 5 << 20).write()  # 20 MiB each, in chunks whose size depends on the device
    runner.run_to_files(path, capture_dir=scene.folder / "captured")
    assert len(most) >= 12
    assert 0 < max(most) <= 16 << 20
    assert len(manifest(scene.folder / "captured")) == 6


def test_duplicate_frame_ids(scene: Scene, program: Program) -> None:
    """Two frames with one id are a warning that names the folder of the second one, and an error with --strict."""
    scene.buffer("x", numpy.zeros(4, numpy.uint32))
    scene.command("mark_boundary", resources=["x"], frame_id=1).command("mark_boundary", resources=["x"]).write()
    ended = program("scenario.json", "--capture-dir", "captured")
    assert ended.code == 0
    assert "/commands/1/mark_boundary: the frame id 1 is that of /commands/0/mark_boundary as well" in ended.err
    assert "'frame_1_2'" in ended.err
    assert (scene.folder / "captured" / "frame_1_2" / "x.npy").is_file()
    assert program("scenario.json", "--strict").code == 3
