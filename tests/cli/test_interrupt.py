"""Ctrl-C, time limits, and outputs that cannot be written."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from pathlib import Path

import numpy
import pytest

from tests.program import COMMAND, Program, python_path
from tests.scenes import Scene, glsl

# Endless loops are cut short by software drivers, so: many workgroups of a long one. All results matter.
SLOW = glsl(
    """
  uint x = gl_GlobalInvocationID.x + 1u;
  for (uint i = 0; i < 20000u; i++) for (uint j = 0; j < 20000u; j++) { x ^= x << 13; x ^= x >> 17; x ^= x << 5; }
  a[gl_GlobalInvocationID.x % 64u] = x;
""",
    "layout(binding = 0) buffer B { uint a[]; };\n",
    local_size=64,
)
ADD = glsl("a[gl_WorkGroupID.x] += 1u;", "layout(binding = 0) buffer B { uint a[]; };\n")


@pytest.fixture
def slow(scene: Scene) -> Path:
    """A scenario that would run for minutes, with a quick frame before."""
    scene.shader("slow", SLOW).shader("add", ADD).buffer("x", size=256)
    scene.dispatch("add", ["x"], [4]).command("mark_boundary", resources=["x"], frame_id=1)
    return scene.dispatch("slow", ["x"], [20000]).write()


def test_time_limit(program: Program, scene: Scene, slow: Path) -> None:
    """Work that does not finish within --timeout ends with exit code 10, and nothing is written."""
    ended = program(slow, "--timeout", "0.5")
    assert (ended.code, ended.out) == (10, "")
    assert re.fullmatch(
        rf"error: {re.escape(str(slow))}:\d+:\d+: /commands: the work of frame 1 did not finish within 0\.5 s\n"
        r"  help: give more time with --timeout, or look for an endless loop in the shaders\n",
        ended.err,
    )
    assert not list(scene.folder.glob("*.out.npy"))
    assert scene.leftovers() == []


def test_the_next_file_runs_after_a_time_limit(program: Program, scene: Scene, slow: Path) -> None:
    """A scenario that does not finish does not keep the next one from running, on a device of its own."""
    other = Scene(scene.folder / "other")
    other.folder.mkdir()
    quick = other.shader("add", ADD).buffer("y", size=16).dispatch("add", ["y"], [4]).write()
    ended = program(slow, quick, "--timeout", "3")
    assert ended.code == 10
    assert other.output("y", "u4").tolist() == [1, 1, 1, 1]


def interrupted(checkout: Path, path: Path, capture: Path, times: int) -> tuple[int, str]:
    """Start a run, press Ctrl-C once its first frame is there, and again if asked; how it ended."""
    process = subprocess.Popen(
        [*COMMAND, str(path), "--capture-dir", str(capture)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": python_path(checkout)},
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # whatever we were started with
    )
    deadline = time.monotonic() + 300
    while not (capture / "frame_1" / "x.npy").exists():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.01)
    time.sleep(0.3)  # now the slow frame runs
    for _ in range(times):
        process.send_signal(signal.SIGINT)
        time.sleep(0.2)
    out, err = process.communicate(timeout=120)
    assert out == ""
    return process.returncode, err


@pytest.mark.parametrize("times", [1, 2])
def test_interrupt(checkout: Path, scene: Scene, slow: Path, shader_cache: Path, tmp_path: Path, times: int) -> None:
    """Ctrl-C during a long shader ends the run before it is done, with exit code 130 and nothing half-written."""
    code, err = interrupted(checkout, slow, tmp_path / "captured", times)
    assert (code, err) == (130, "interrupted\n")
    assert not list(scene.folder.glob("*.out.npy"))
    assert scene.leftovers() == []


def test_missing_folders_are_created(program: Program, scene: Scene) -> None:
    """Folders of a dst that do not exist are created."""
    scene.shader("add", ADD).buffer("x", size=16, dst="new/folders/x.npy").dispatch("add", ["x"], [4]).write()
    assert program("scenario.json").code == 0
    assert numpy.load(scene.folder / "new" / "folders" / "x.npy").view("u4").tolist() == [1, 1, 1, 1]


@pytest.mark.parametrize(
    "destination, message",
    [
        ("folder", "is a folder, expected the name of a file to write"),
        ("file/x.npy", "cannot be created: not a directory"),
        ("/proc/nothing/x.npy", "cannot be created: no such file or directory"),
        ("/dev/null", "is a pipe, a device or a socket, expected the name of a file to write"),
        ("n" * 300, "cannot be created: file name too long"),
    ],
)
def test_output_that_cannot_be_written(program: Program, scene: Scene, destination: str, message: str) -> None:
    """An output that cannot be written ends with exit code 4, and no other output is left in its place."""
    (scene.folder / "folder").mkdir()
    scene.file("file", "")
    scene.shader("add", ADD).buffer("first", size=16).buffer("x", size=16, dst=destination).buffer("last", size=16)
    scene.dispatch("add", ["x"], [4]).write()
    ended = program("scenario.json")
    assert (ended.code, ended.out) == (4, "")
    assert ended.err == f"error: {scene.folder / destination}: {message}\n"
    assert not list(scene.folder.glob("*.out.npy"))
    assert scene.leftovers() == []


def test_unusable_destination_is_noticed_before_the_work(program: Program, scene: Scene) -> None:
    """A dry run, which writes nothing, already refuses a destination that no file can be written to."""
    (scene.folder / "folder").mkdir()
    path = scene.shader("add", ADD).buffer("x", size=16, dst="folder").dispatch("add", ["x"], [4]).write()
    ended = program(path, "--dry-run")
    assert (ended.code, ended.out) == (4, "")
    assert ended.err == f"error: {scene.folder}/folder: is a folder, expected the name of a file to write\n"


def test_old_output_survives_a_failure(program: Program, scene: Scene) -> None:
    """The output of an earlier run stays whole when a later run fails."""
    scene.shader("add", ADD).buffer("x", size=16).buffer("y", size=16, dst="folder")
    (scene.folder / "folder").mkdir()
    path = scene.dispatch("add", ["x"], [4]).write()
    old = scene.file("x.out.npy", b"old content")
    assert program(path).code == 4
    assert old.read_bytes() == b"old content"
    assert scene.leftovers() == []
