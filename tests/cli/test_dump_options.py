"""--dump-after, --dump-dir and --dump-all: the command line, and runs that fail."""

import json
import os
import re
import resource
import shutil
import signal
import subprocess
import time
from pathlib import Path

import numpy
import pytest

from scenario_runner.run.dump_files import DumpEntry, GrowingIndex, read_index
from tests.cli.long_run import slow_scenario
from tests.program import COMMAND, Program, wait_until
from tests.scenes import Scene, glsl

ONE = "layout(set = 0, binding = 0) buffer A { uint a[]; };\n"


def adding(scene: Scene) -> Scene:
    """A dispatch that changes x, and one that changes a larger buffer."""
    scene.shader("add", glsl("a[gl_WorkGroupID.x] += 1u;", ONE))
    scene.buffer("x", numpy.array([1, 2], "u4")).buffer("large", size=1 << 20, dst=None)
    scene.dispatch("add", ["x"], [2]).dispatch("add", ["large"], [4]).dispatch("add", ["x"], [2])
    scene.write()
    return scene


def test_what_is_asked_for(scene: Scene, program: Program, tmp_path: Path) -> None:
    """--dump-after takes a command, a range, or a resource after a command, and may be repeated."""
    adding(scene)
    after = ["--dump-after", "0", "--dump-after=1:x", "--dump-after", "1-2"]
    program("scenario.json", *after, "--dump-dir", "dump", exit_code=0)
    files = json.loads((tmp_path / "dump" / "index.json").read_text())["files"]
    assert [(each["command"], each["resource"]) for each in files] == [(0, "x"), (1, "x"), (2, "x"), (2, "large")]
    values = [numpy.load(tmp_path / "dump" / each["file"]).view("u4")[:2].tolist() for each in files]
    assert values == [[2, 3], [2, 3], [3, 4], [1, 1]]


EXPECTED = "expected COMMAND or COMMAND:RESOURCE"
LARG = "no resource has the uid 'larg' (did you mean 'large'?)"


@pytest.mark.parametrize(
    "arguments, message",
    [
        ("--dump-after 0", "--dump-after needs --dump-dir"),
        ("--dump-dir d", "--dump-dir needs --dump-after"),
        ("--dump-all d --dump-after 0 --dump-dir d", "--dump-after and --dump-all contradict each other"),
        ("other.json --output=o --folder-each --dump-all d", "--dump-all takes the files of one scenario"),
        ("--dump-all=d --capture-frame=0", "--capture-frame and --dump-all contradict each other"),
        ("--dump-after=0 --dump-dir=d --gfxr f", "--gfxr and --dump-dir contradict each other"),
        ("--dump-all=d --shader-instrumentation=f", "--shader-instrumentation and --dump-all contradict each other"),
        ("--dump-after x --dump-dir d", f"argument --dump-after: 'x': {EXPECTED}"),
        ("--dump-after -1 --dump-dir d", ""),
        ("--dump-after 0: --dump-dir d", f"argument --dump-after: '0:': {EXPECTED}"),
        ("--dump-after 2-1 --dump-dir d", f"argument --dump-after: '2-1': {EXPECTED}"),
        ("--dump-after 3 --dump-dir d", "scenario.json: --dump-after: the scenario has no command 3"),
        ("--dump-after 0:larg --dump-dir d", f"scenario.json: --dump-after: {LARG}"),
    ],
)
def test_wrong_options(scene: Scene, program: Program, tmp_path: Path, arguments: str, message: str) -> None:
    """A wrong value is a usage error, and no file is written."""
    adding(scene)
    shutil.copy(tmp_path / "scenario.json", tmp_path / "other.json")
    ended = program.fail(2, "scenario.json", *arguments.split())
    assert ended.err.startswith(f"error: {message}"), ended.err
    assert not (tmp_path / "d").exists()
    assert not (tmp_path / "x.out.npy").exists()


@pytest.mark.skipif(shutil.which("prlimit") is None, reason="prlimit bounds the size of files")
def test_a_file_that_cannot_be_written(scene: Scene, program: Program, tmp_path: Path) -> None:
    """Complete files stay and are listed; a file without room is removed, and so are the outputs."""
    adding(scene)
    after = ["--dump-after", "0", "--dump-after", "1", "--dump-after", "2"]
    ended = program("scenario.json", *after, "--dump-dir", "dump", launcher=["prlimit", "--fsize=300000"])
    if ended.code in (9, -signal.SIGBUS):
        pytest.skip("the memory of this driver is files, which the limit concerns as well")
    assert (ended.code, ended.out) == (4, "")
    place = r"error: scenario\.json:\d+:\d+: /resources/2/buffer: "
    assert re.match(rf"{place}dump/1_dispatch_compute/large\.npy: cannot be given", ended.err)
    index = json.loads((tmp_path / "dump" / "index.json").read_text())
    assert index["complete"] is False
    assert [each["file"] for each in index["files"]] == ["0_dispatch_compute/x.npy"]
    assert numpy.load(tmp_path / "dump" / "0_dispatch_compute" / "x.npy").view("u4").tolist() == [2, 3]
    there = sorted(str(path.relative_to(tmp_path / "dump")) for path in (tmp_path / "dump").rglob("*"))
    assert there == ["0_dispatch_compute", "0_dispatch_compute/x.npy", "index.json"]
    assert not (tmp_path / "x.out.npy").exists()
    ended = program("diff", "dump", "dump")
    assert (ended.code, ended.out.splitlines()[0]) == (0, "dump is not complete: the run failed")


def test_a_process_that_is_killed(scene: Scene, shader_cache: Path, tmp_path: Path) -> None:
    """The index grows during the run, so that a crash or a kill leaves a list of the complete files."""
    path, dump = slow_scenario(scene), tmp_path / "dump"
    with subprocess.Popen([*COMMAND, str(path), "--dump-all", str(dump)]) as process:
        wait_until(lambda: (dump / "0_dispatch_compute" / "x.npy").exists(), "the first command")
        time.sleep(0.3)  # now the slow one runs
        process.kill()
    index = read_index(str(dump))
    assert not index.complete
    assert [(each.command, each.resource) for each in index.entries] == [(None, "x"), (0, "x")]


def test_an_index_without_room(tmp_path: Path) -> None:
    """A growing index stays whole on a full disk. Without room for its beginning, no file is left."""
    path = tmp_path / "index.json"
    index = GrowingIndex(str(path), {"scenario": "s", "device": None, "commands": []})
    entry = dict.fromkeys(DumpEntry._fields) | {"iteration": 0, "resource": "x", "file": "x.npy", "sha256": ""}
    index.add([entry])
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 100, before[1]))
    try:
        index.add([entry | {"resource": name} for name in "abcdef"])
        GrowingIndex(str(tmp_path / "long"), {"scenario": "s" * 1000, "device": None, "commands": []}).close()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    index.add([entry | {"resource": "later"}])
    assert [each.resource for each in read_index(str(tmp_path)).entries] == ["x"]
    assert not (tmp_path / "long").exists()


def test_folders_that_cannot_be_written_to(scene: Scene, program: Program, tmp_path: Path) -> None:
    """A folder that cannot be written to is an error before the run."""
    adding(scene)
    (tmp_path / "file").write_text("")
    ended = program.fail(4, "scenario.json", "--dump-all", "file/dump")
    assert "file/dump/index.json: cannot be created: not a directory" in ended.err
    assert not (tmp_path / "x.out.npy").exists()
    if os.geteuid():  # everything can be written to by root
        (tmp_path / "closed").mkdir(mode=0o500)
        ended = program.fail(4, "scenario.json", "--dump-all", "closed")
        assert "closed: cannot be written to: permission denied" in ended.err


def test_the_sandbox_allows_the_folder(scene: Scene, program: Program, tmp_path: Path) -> None:
    """The folder of a dump is one that the caller named."""
    adding(scene)
    outside = tmp_path.parent / f"{tmp_path.name} outside"
    assert program("scenario.json", "--sandbox", "--dump-all", outside).code == 0
    assert (outside / "index.json").exists()
