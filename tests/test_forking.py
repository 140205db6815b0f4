"""A forked process of the program is like one that is started."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.program import FORKS, Program, python_path
from tests.scenes import Scene, glsl

TIME = re.compile(r"[\d.]+ ms")
ADD = glsl("a[gl_WorkGroupID.x] += 1u;", "layout(binding = 0) buffer B { uint a[]; };\n")


@pytest.mark.parametrize(
    "arguments, stdin",
    [
        (["--version"], ""),
        (["scenario.json"], ""),
        (["scenario.json", "missing.json"], ""),
        (["validate", "scenario.json", "--format", "json"], ""),
        (["validate", "scenario.json", "--no-such-option"], ""),
        (["missing.json"], ""),
        (["scenario.json", "--pause-on-exit"], "\n"),
        (["validate", "/dev/stdin"], '{"commands": [], "resources": [], "é": 1}'),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_the_same_as_when_started(program: Program, scene: Scene, arguments: list[str], stdin: str) -> None:
    """Exit code and both outputs are the same, whatever the call ends with."""
    scene.shader("add", ADD).buffer("x", size=16).dispatch("add", ["x"], [4]).write()
    ends = [program(*arguments, stdin=stdin, launcher=launcher) for launcher in ([], ["env"])]
    forked, started = [(ended.code, *(TIME.sub("", text) for text in ended[1:])) for ended in ends]
    assert forked == started


def test_folder_and_environment(program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It runs in the folder of the call, with variables of this process and of the call, and without the last one's."""
    cache = {"SCENARIO_RUNNER_CACHE": str(tmp_path / "cache")}
    assert program("cache", "path", env=cache).out == f"{tmp_path}/cache\n"
    monkeypatch.setenv("SCENARIO_RUNNER_CACHE", "elsewhere")
    assert program("cache", "path").out != f"{tmp_path}/cache\n"
    assert program("validate", "missing.json").err.startswith("error: missing.json: ")


def test_what_a_start_reads_needs_a_start(checkout: Path) -> None:
    """Another locale, or a setting of the interpreter, is nothing that a forked process would notice."""
    usual = {**os.environ, "PYTHONPATH": python_path(checkout)}
    assert FORKS.can_fork({**usual, "VK_INSTANCE_LAYERS": "x"}, "")
    assert not FORKS.can_fork({**usual, "LC_ALL": "C.other"}, "")
    assert not FORKS.can_fork({**usual, "PYTHONIOENCODING": "ascii"}, "")
    assert not FORKS.can_fork(usual, "x" * (1 << 16))


def test_a_call_that_hangs_is_ended(program: Program, tmp_path: Path) -> None:
    """After its time, and the next call is answered."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(subprocess.TimeoutExpired):
        program("validate", "/dev/stdin", "pipe", timeout_s=0.5, env={"SCENARIO_RUNNER_X": "1"})
    assert program("--version").code == 0
