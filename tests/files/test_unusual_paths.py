"""Paths to pipes, endless devices and missing files, in every place that names a file."""

import errno
import os
import pickle
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

from scenario_runner import Runner, load
from scenario_runner.errors import FileError, MissingFileError, ScenarioRunnerError
from scenario_runner.files.dds import read_header as read_dds_header
from scenario_runner.files.npy import read_header
from scenario_runner.ml.vgf_file import read_vgf
from tests.program import COMMAND, Program
from tests.scenes import Scene, error_of, glsl

STORE = glsl("a[0] = 1u;", "layout(binding = 0) buffer B { uint a[]; };\n")


KINDS = ("buffer", "raw_data", "image", "tensor", "GLSL", "HLSL", "SPIR-V", "graph", "SPIR-V graph")


def add_resource(scene: Scene, kind: str, path: str) -> None:
    """Add a resource of this kind that reads ``path``, and a command that uses the resource."""
    if kind in ("GLSL", "HLSL", "SPIR-V"):
        scene.resource("shader", uid="s", src=path, type=kind).buffer("b", size=16).dispatch("s", ["b"])
    elif kind == "included":
        scene.shader("s", f'#version 450\n#include "{path}"\nvoid main() {{}}\n').dispatch("s", [])
    elif kind == "graph":
        scene.resource("graph", uid="g", src=path).command("dispatch_graph", graph_ref="g", bindings=[])
    elif kind == "SPIR-V graph":
        scene.resource("shader", uid="g", src=path, type="SPIR-V")
        scene.command("dispatch_spirv_graph", graph_ref="g", bindings=[])
    elif kind == "image":
        format = "VK_FORMAT_R8_UNORM"
        scene.resource("image", uid="i", dims=[1, 4, 4, 1], format=format, shader_access="readonly", src=path)
    elif kind == "tensor":
        scene.resource("tensor", uid="t", dims=[4], format="VK_FORMAT_R8_SINT", shader_access="readonly", src=path)
    elif kind == "raw_data":
        scene.resource("raw_data", uid="r", src=path)
    else:
        scene.resource("buffer", uid="b", size=16, shader_access="readonly", src=path)


@pytest.mark.parametrize("path", ["pipe.png", "/dev/zero"])
@pytest.mark.parametrize("kind", ["included", *KINDS])
def test_pipes_and_endless_devices(program: Program, scene: Scene, kind: str, path: str) -> None:
    """A pipe without a writer does not hang, and a device without an end does not fill memory: one clear error."""
    if not path.startswith("/"):
        os.mkfifo(scene.folder / path)
    add_resource(scene, kind, path)
    scene.write()
    for words in (["validate"], []):
        ended = program(*words, "scenario.json", timeout_s=30)
        assert ended.code == (5 if kind == "included" else 4)
        assert path in ended.err
        assert ended.err.count("error:") == 1


@pytest.mark.parametrize("words", [["shader", "show"], ["vgf", "show"], ["view"]])
def test_commands_that_show_files(program: Program, tmp_path: Path, words: list[str]) -> None:
    """Commands that show files refuse a pipe."""
    for name in ("pipe.spv", "pipe.comp", "pipe.npy"):
        os.mkfifo(tmp_path / name)
        ended = program(*words, name, timeout_s=30, exit_code=4)
        assert ended.err.startswith(f"error: {name}: ")


# Commands that read a file whole, with FILE for its path, and their exit code where that cannot be read.
READERS = [
    (["FILE"], 4),
    (["validate", "FILE"], 4),
    (["validate", "--against", "FILE", "scenario.json"], 4),
    (["test", "scenario.json", "--skips", "FILE"], 4),
    (["test", "scenario.json", "--baseline", "FILE"], 4),
    (["test", "@FILE"], 2),
    (["report", "FILE"], 4),
    (["bench", "--compare", "FILE", "FILE"], 4),
]


@pytest.mark.parametrize("kind", ["endless", "sparse"])
def test_files_without_an_end(program: Program, scene: Scene, kind: str) -> None:
    """A device without an end and a file of 4 TiB are one error each, soon."""
    path = scene.write().with_name("file")
    if kind == "endless":
        path.symlink_to("/dev/zero")
    else:
        path.touch()
        os.truncate(path, 4 << 40)
    for words, code in READERS:
        is_scenario = words[-1] == "FILE" and words[0] in ("FILE", "validate")
        words = [word.replace("FILE", str(path)) for word in words]
        assert str(path) in program(*words, timeout_s=120, exit_code=3 if is_scenario else code).err


def test_pipes_without_a_writer(scene: Scene, shader_cache: Path) -> None:
    """A pipe without a writer is an error of each command at once."""
    path = str(scene.write().with_name("file"))
    os.mkfifo(path)
    options: dict[str, Any] = {"cwd": scene.folder, "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    commands = [[*COMMAND, *(word.replace("FILE", path) for word in words)] for words, _ in READERS]
    running = [subprocess.Popen(command, text=True, **options) for command in commands]
    for process, (words, code) in zip(running, READERS, strict=True):
        with process:
            error = process.communicate(timeout=120)[1]
        assert process.returncode == code, (words, error)
        assert path in error


def test_pipes_that_deliver(scene: Scene, shader_cache: Path) -> None:
    """A scenario, a list and a report come from pipes as well, also where their writer takes its time."""
    scene.write()
    program = " ".join(map(shlex.quote, COMMAND))
    script = (
        f"{program} validate <(sleep 1; cat scenario.json)\n"
        "mkfifo named; (sleep 1; exec > named; sleep 1; cat scenario.json) & "
        f"{program} validate named; wait\n"
        f"{program} test --list @<(echo scenario.json)\n"
        f"{program} test --list scenario.json --skips <(echo other)\n"
    )
    done = subprocess.run(
        ["bash", "-c", script], cwd=scene.folder, capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout.count(": valid: ") == 2, done.stderr
    assert done.stdout.count("scenario.json") == 2, done.stderr


@pytest.mark.parametrize("key", ["src", "dst"])
def test_half_of_a_surrogate_pair(program: Program, scene: Scene, key: str) -> None:
    """A path with half of a surrogate pair is a clean error with its place; a byte that is not UTF-8 is right."""
    scene.resource("buffer", uid="b", size=16, shader_access="readwrite", **{key: "\ud800.npy"}).write()
    for words in (["validate"], []):
        ended = program(*words, "scenario.json", exit_code=3)
        assert ended.err.startswith("error: scenario.json:")
        assert f"/resources/0/buffer/{key}: the string contains half of a surrogate pair" in ended.err
    other = Scene(scene.folder)
    other.resource("buffer", uid="b", size=16, shader_access="readwrite", dst="\udcff.npy").write()
    assert program("scenario.json").code == 0
    assert b"\xff.npy" in os.listdir(os.fsencode(scene.folder))


def test_no_folder_for_temporary_files(program: Program, scene: Scene) -> None:
    """The error says that no temporary folder can be used."""
    scene.shader("s", STORE).buffer("b", size=16).dispatch("s", ["b"]).write()
    # Python tries a fixed list of folders after TMPDIR; none of them has room for a file where no file may be written.
    nothing_written = ("prlimit", "--fsize=0:0", "env", "--ignore-signal=XFSZ")
    ended = program("validate", "--no-cache", "scenario.json", launcher=nothing_written, exit_code=4)
    assert "no folder for temporary files can be used to compile shaders" in ended.err + ended.out
    assert "standard output" not in ended.err


@pytest.mark.parametrize(
    "keys, offset, unit",
    [
        ({"buffer": {"size": 16}}, 6, 4),
        ({"image": {"dims": [1, 4, 4, 1], "format": "VK_FORMAT_R8_UNORM"}}, 1, 4),
        ({"tensor": {"dims": [4], "format": "VK_FORMAT_R64_SINT"}}, 12, 8),
    ],
)
def test_offsets_that_no_device_takes(
    program: Program, scene: Scene, keys: dict[str, dict[str, object]], offset: int, unit: int
) -> None:
    """Members of memory groups that lie across items are refused without a device."""
    ((kind, body),) = keys.items()
    scene.resource(kind, uid="m", shader_access="readwrite", memory_group={"id": "g", "offset": offset}, **body).write()
    for words in (["validate"], []):
        ended = program(*words, "scenario.json", exit_code=3)
        assert f"/resources/0/{kind}/memory_group/offset: memory group 'g' places 'm' at offset {offset}" in ended.err
        assert f"which no device allows: expected a multiple of {unit}" in ended.err


@pytest.mark.parametrize("read", [load, read_header, read_dds_header, read_vgf])
def test_a_missing_file(read: Any, tmp_path: Path) -> None:
    """A missing file is an error with the path, also a Python FileNotFoundError, with the same message."""
    path = str(tmp_path / "none.json")
    error = error_of(MissingFileError, read, path)
    assert isinstance(error, FileError)
    assert (error.exit_code, error.filename, error.errno) == (4, path, errno.ENOENT)
    assert str(error).startswith(f"{path}: ")
    assert str(error).endswith("no such file or directory")
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.filename) == (MissingFileError, str(error), path)


def test_a_folder_is_not_missing(tmp_path: Path) -> None:
    """A folder in place of a file is another error than a missing file."""
    assert not isinstance(error_of(FileError, load, tmp_path), FileNotFoundError)


@pytest.mark.parametrize("kind", ["scenario", *KINDS])
def test_missing_files_of_a_run(kind: str, scene: Scene, shader_cache: Path) -> None:
    """Each file that a scenario names and that is not there is such an error of a run."""
    if kind != "scenario":
        add_resource(scene, kind, "none.npy")
    path = scene.folder / "none.json" if kind == "scenario" else scene.write()
    with Runner() as runner, pytest.raises(FileNotFoundError) as caught:
        runner.run(path)
    assert isinstance(caught.value, ScenarioRunnerError)
    assert "no such file or directory" in str(caught.value)
