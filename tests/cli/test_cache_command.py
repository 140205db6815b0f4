"""``scenario-runner cache`` and the bounds of the user's cache folder."""

import json
import os
import time
from pathlib import Path

import numpy
import pytest

from scenario_runner.files.cache_folder import LIMIT_VARIABLE, enforce_limits, kept_files, limit_bytes
from tests.program import Ended, Program
from tests.scenes import Scene, glsl

DATA = "layout(set = 0, binding = 0) buffer Data { uint data[]; };"


@pytest.fixture
def own(tmp_path: Path) -> dict[str, str]:
    """A cache folder of the test's own."""
    return {"SCENARIO_RUNNER_CACHE": str(tmp_path / "own")}


def shown(ended: Ended) -> dict[str, int]:
    """The number of files of each kind."""
    assert ended.code == 0
    return {kind: each["files"] for kind, each in json.loads(ended.out)["kinds"].items()}


def test_show_and_clear(program: Program, scene: Scene, own: dict[str, str]) -> None:
    """`show` counts the entries of a run, `clear` removes some kinds or all, and the next run fills the folder
    again."""
    assert shown(program("cache", "show", "--json", env=own)) == dict.fromkeys(
        ("plans", "shaders", "checked", "pipelines", "contents"), 0
    )
    scene.shader("s", glsl("data[0] += 1;", DATA)).buffer("x", numpy.zeros(4, "uint32")).dispatch("s", ["x"])
    scene.write()
    assert program("scenario.json", "--pipeline-caching", "--quiet", env=own).code == 0
    counts = shown(program("cache", "show", "--json", env=own))
    assert counts.items() >= {"plans": 1, "pipelines": 1, "contents": 0}.items()
    assert counts["shaders"] >= 1  # and what compilers said of their versions is in "checked"
    table = program("cache", "show", env=own).out
    folder = own["SCENARIO_RUNNER_CACHE"]
    assert table.startswith(f"{folder}\n  plans ")
    size_bytes = sum(path.stat().st_size for path in Path(folder).glob("*/*.*"))
    described = json.loads(program("cache", "show", "--json", env=own).out)
    assert sum(each["size_bytes"] for each in described["kinds"].values()) == size_bytes

    ended = program("cache", "clear", "pipelines", "plans", env=own)
    assert (ended.code, ended.out.startswith(f"{folder}: removed 2 files, ")) == (0, True)
    assert shown(program("cache", "show", "--json", env=own)) == {**counts, "plans": 0, "pipelines": 0}
    assert program("cache", "clear", env=own).code == 0
    assert not any(shown(program("cache", "show", "--json", env=own)).values())
    assert program("scenario.json", "--quiet", env=own).code == 0
    assert shown(program("cache", "show", "--json", env=own))["plans"] == 1


def test_clear_leaves_other_files_alone(program: Program, own: dict[str, str]) -> None:
    """Files of other programs and targets of links stay."""
    folder = Path(own["SCENARIO_RUNNER_CACHE"]) / "plans"
    folder.mkdir(parents=True)
    elsewhere = folder.parent.parent / "elsewhere.entry"
    for path in (folder / "notes.txt", elsewhere, folder / "old.entry"):
        path.write_text("text")
    (folder / "link.entry").symlink_to(elsewhere)
    assert program("cache", "clear", env=own).code == 0
    assert [path.name for path in folder.iterdir()] == ["notes.txt"]
    assert elsewhere.exists()


def test_path(program: Program, own: dict[str, str]) -> None:
    """`path` prints the folder, also one that does not exist."""
    assert program("cache", "path", env=own) == (0, own["SCENARIO_RUNNER_CACHE"] + "\n", "")


def test_wrong_words(program: Program, own: dict[str, str]) -> None:
    """An unknown kind or command is refused with a close match."""
    ended = program("cache", "clear", "shader", env=own)
    assert (ended.code, "(did you mean 'shaders'?)" in ended.err) == (2, True)
    assert program("cache", "wipe", env=own).code == 2
    assert program("cache", env=own).code == 2


@pytest.mark.parametrize(
    "text, size", [("500", 500), ("3k", 3 << 10), ("500M", 500 << 20), ("2 GiB", 2 << 30), ("much", None), ("-1", None)]
)
def test_limit(monkeypatch: pytest.MonkeyPatch, text: str, size: int | None) -> None:
    """SCENARIO_RUNNER_CACHE_SIZE is a number of bytes with a unit."""
    monkeypatch.setenv(LIMIT_VARIABLE, text)
    assert limit_bytes() == size


def test_the_users_limit_is_one_for_all_kinds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SCENARIO_RUNNER_CACHE_SIZE bounds all kinds together: the least recently used files go first."""
    now = time.time()
    kinds = (("plans", ".entry", (5, 2)), ("pipelines", ".cache", (4, 1)), ("shaders", ".entry", (3,)))
    for kind, suffix, ages in kinds:
        (tmp_path / kind).mkdir()
        for age in ages:
            path = tmp_path / kind / f"{age}{suffix}"
            path.write_bytes(bytes(1000))
            os.utime(path, (now - 1000 * age,) * 2)
    enforce_limits(str(tmp_path), "plans")
    assert sum(len(kept_files(str(tmp_path), kind)) for kind in ("plans", "pipelines", "shaders")) == 5
    monkeypatch.setenv(LIMIT_VARIABLE, "4k")  # of which three quarters stay: three files
    enforce_limits(str(tmp_path), "plans")
    assert sorted(path.stem for path in tmp_path.rglob("*.*")) == ["1", "2", "3"]


def test_a_run_keeps_to_the_limit(program: Program, scene: Scene, own: dict[str, str]) -> None:
    """A run that keeps something removes older files first; a limit that is not a size is ignored with a warning."""
    folder = Path(own["SCENARIO_RUNNER_CACHE"]) / "pipelines"
    folder.parent.mkdir(mode=0o700)  # with umask 002 others could write to it: then the program does not use it
    folder.mkdir()
    old = folder / "old.cache"
    old.write_bytes(bytes(1 << 20))
    os.utime(old, (time.time() - 1e6,) * 2)
    scene.shader("s", glsl("data[0] += 1;", DATA)).buffer("x", numpy.zeros(4, "uint32")).dispatch("s", ["x"])
    scene.write()
    ended = program("scenario.json", env={**own, LIMIT_VARIABLE: "lots"}, exit_code=0)
    assert f"warning: {LIMIT_VARIABLE} is not a size such as 500M or 2G, and is ignored" in ended.err
    assert old.exists()
    scene.file("s.comp", glsl("data[0] += 2;", DATA))
    assert program("scenario.json", env={**own, LIMIT_VARIABLE: "512k"}).code == 0
    assert not old.exists()
    assert shown(program("cache", "show", "--json", env=own))["shaders"] >= 1
