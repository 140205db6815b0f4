"""Suites on several hosts: shards, files that are sent, and results."""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import pytest

from scenario_runner.errors import FileError
from scenario_runner.suite.cluster_host import Layout, check_store, kept_path, missing, receive, sent_item
from scenario_runner.suite.outcomes import Item, Outcome
from scenario_runner.suite.verdicts_and_retries import Expected
from tests.crash import crash_shader
from tests.program import COMMAND, Program
from tests.scenes import Scene, error_of, glsl
from tests.suite.cluster.hosts import Cluster

DATA = "layout(binding = 0) buffer B { uint a[]; };\n"
INCLUDING = (
    '#version 450\n#include "add.glsl"\nlayout(binding = 0) buffer B { uint a[]; };\nvoid main() { a[0] += ADDED; }'
)
SOME_TIME = 50  # work groups of WAIT that take long enough to be interrupted
WAIT = glsl("for (uint i = 0u; i < a[0] * 60000u; i++) a[3] = a[3] * 3u + i;", DATA)


def scenario(folder: Path, shader: str, expected: int | None = None, groups: int = 1) -> Path:
    """Write a scenario with four numbers and an expectation for the first."""
    folder.mkdir(parents=True, exist_ok=True)
    scene = (
        Scene(folder).shader("x", shader).buffer("a", numpy.full(4, 1, numpy.uint32)).dispatch("x", ["a"], (groups, 1))
    )
    if expected is not None:
        output = {"dtype": "uint32", "values": [expected, 1, 1, 1]}
        (folder / "check.json").write_text(json.dumps({"outputs": {"a": output}}))
    return scene.write()


def endless(folder: Path) -> None:
    """Write a scenario that would run for days."""
    Scene(folder).shader("x", WAIT).buffer("a", numpy.full(4, 1, numpy.uint32)).dispatch(
        "x", ["a"], (65535,) * 2
    ).write()


def results(folder: Path) -> dict[str, dict[str, Any]]:
    """The results of a journal by the names of the items. Each has one."""
    lines = [json.loads(line) for line in (folder / "journal.jsonl").read_text().splitlines()]
    lines = [line for line in lines if "item" in line]
    assert len({line["item"]["id"] for line in lines}) == len(lines)
    return {line["item"]["id"]: line for line in lines}


def started(folder: Path, cluster: Cluster) -> subprocess.Popen[str]:
    """The suite of a folder, which runs on a cluster."""
    return subprocess.Popen(
        [*COMMAND, "test", "suite", "--cluster", cluster.address, "--results", "r", "--jobs", "1", "--timeout", "600"],
        cwd=folder,
        stdout=-1,
        stderr=-1,
        text=True,
    )


def test_a_suite_on_two_hosts(cluster: Cluster, program: Program, tmp_path: Path, device_name: str) -> None:
    """Hosts receive the files of scenarios, also from folders above the suite, and return results with local paths.
    A host receives no file twice."""
    suite = tmp_path / "suite"
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "add.glsl").write_text("#define ADDED 4\n")
    for number in range(6):
        shader = INCLUDING.replace("add.glsl", "../../include/add.glsl")
        scenario(suite / f"good-{number:02}", shader, 5)
    scenario(suite / "wrong", INCLUDING.replace("add.glsl", "../../include/add.glsl"), 6)
    scenario(suite / "broken", "no shader", 5)
    scenario(suite / "crash", crash_shader(device_name), 5)
    ended = program("test", "suite", "--cluster", cluster.address, "--results", "r", "--jobs", "1", "--timeout", "60")
    assert ended.code == 1, ended
    found = results(tmp_path / "r")
    verdicts = {Path(name).parent.name: each["verdict"] for name, each in found.items()}
    assert verdicts.pop("wrong") == verdicts.pop("broken") == "Fail"
    assert verdicts.pop("crash") == "Crash"
    assert set(verdicts.values()) == {"Pass"}
    assert len(verdicts) == 6
    assert all(each["host"] and each["device"] and each["driver"] for each in found.values())
    (output,) = found["suite/wrong/scenario.json"]["attempts"][-1]["outputs"]
    assert numpy.load(tmp_path / "r" / output["files"]["actual"]).view("u4").tolist() == [5, 1, 1, 1]
    assert f"{suite}/broken/x.comp" in json.dumps(found["suite/broken/scenario.json"]["attempts"])
    assert str(cluster.folder) not in json.dumps(found)
    assert len(found["suite/crash/scenario.json"]["attempts"]) == 2
    assert any(cluster.kept())
    again = program("test", "suite", "--cluster", cluster.address, "--results", "r", "--resume", "--quiet")
    assert "9 results kept from the run before" in again.out


def supervisors(cluster: Cluster) -> list[int]:
    """The processes that run items on the hosts of a cluster."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            is_ours = b"PYTHONSAFEPATH=1" in (folder / "environ").read_bytes()  # those of Dask have no such variable
            if is_ours and os.readlink(folder / "cwd") == str(cluster.folder):
                found.append(int(folder.name))
        except OSError:
            pass  # it has ended
    return found


def until(holds: Callable[[], object]) -> None:
    """Wait for something that must happen."""
    for _ in range(1200):
        if holds():
            return
        time.sleep(0.05)
    raise AssertionError("it did not happen")


def test_ctrl_c(cluster: Cluster, tmp_path: Path, shader_cache: Path) -> None:
    """Ctrl-C ends the running items on all hosts, and keeps the finished results."""
    until(lambda: not supervisors(cluster))
    scenario(tmp_path / "suite" / "1", INCLUDING.replace('#include "add.glsl"', "#define ADDED 1"), 2)
    endless(tmp_path / "suite" / "2")
    journal = tmp_path / "r" / "journal.jsonl"
    with started(tmp_path, cluster) as process:
        until(lambda: journal.exists() and '"Pass"' in journal.read_text())
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130, (out, err)
    assert "suite interrupted: 0 of 1 item unexpected" in out
    assert "Traceback" not in err
    until(lambda: not supervisors(cluster))


def test_fail_fast(cluster: Cluster, program: Program, tmp_path: Path) -> None:
    """After the first failure running shards end, and their remaining items have no result."""
    scenario(tmp_path / "suite" / "0", INCLUDING.replace('#include "add.glsl"', "#define ADDED 1"), 7)
    for number in range(1, 8):
        endless(tmp_path / "suite" / str(number))
    options = ("--results", "r", "--jobs", "1", "--fail-fast", "--timeout", "0.3")
    program("test", "suite", "--cluster", cluster.address, *options, exit_code=1)
    assert 0 < len(results(tmp_path / "r")) < 8


def test_a_host_that_is_killed(cluster: Cluster, tmp_path: Path, shader_cache: Path) -> None:
    """The worker of Dask that is killed in the middle costs nothing but time: each item has one result, and passes."""
    for number in range(12):  # more than the first shards have
        scenario(tmp_path / "suite" / f"{number:02}", WAIT, groups=SOME_TIME)
        output = {"unchecked": True}
        (tmp_path / "suite" / f"{number:02}" / "check.json").write_text(json.dumps({"outputs": {"a": output}}))
    journal = tmp_path / "r" / "journal.jsonl"
    with started(tmp_path, cluster) as process:
        while not journal.exists() or journal.read_text().count("\n") < 2:
            assert process.poll() is None
            time.sleep(0.02)
        os.kill(cluster.processes[0], signal.SIGKILL)
        out, err = process.communicate(timeout=600)
    assert process.returncode == 0, (out, err)
    assert "is lost" in err
    found = results(tmp_path / "r")
    assert len(found) == 12
    assert {each["verdict"] for each in found.values()} == {"Pass"}


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache of its own."""
    monkeypatch.setenv("SCENARIO_RUNNER_CACHE", str(tmp_path / "cache"))
    check_store()


def hash_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def test_the_files_of_an_item(tmp_path: Path, store: None) -> None:
    """Sources, includes, expectations and expected files are laid out under their paths, without the folders above."""
    origin = tmp_path / "origin"
    scene = Scene(origin / "suite")
    scene.file("../one/one.glsl", '#include "deep.glsl"')
    scene.file("../one/deep.glsl", "")
    scene.file("two/two.glsl", "")
    scene.shader("x", "#include <one.glsl>\n#include <two.glsl>", include_dirs=["../one"], build_options="-Itwo -g")
    scene.buffer("a", numpy.zeros(4, numpy.uint8), dst="out/a.npy")
    scene.file("expected/a.npy", "expected")
    scene.file("check.json", "{}")
    item = Item("suite/scenario.json", str(scene.write()), str(origin / "suite" / "check.json"))
    sent = sent_item(item, Expected())
    assert sent.absolute == ()
    contents = {path: Path(path).read_bytes() for path in sent.files}
    names = {str(Path(path).relative_to(origin)) for path in contents}
    inside = {"scenario.json", "check.json", "x.comp", "a.npy", "expected/a.npy", "two/two.glsl"}
    assert names == {f"suite/{name}" for name in inside} | {"one/one.glsl", "one/deep.glsl"}
    assert missing(sent.files.values())
    receive({hash: contents[path] for path, hash in sent.files.items()})
    shutil.rmtree(origin)
    layout = Layout(str(tmp_path / "scratch"))
    placed = layout.place(sent)
    assert placed.path == f"{tmp_path}/scratch{item.path}"
    assert {path: Path(layout.here(path)).read_bytes() for path in contents} == contents
    said = Outcome("Fail", reason=f"{placed.expectations}: wrong", diagnostics=({"path": placed.path},))
    there = Outcome("Fail", reason=f"{item.expectations}: wrong", diagnostics=({"path": item.path},))
    assert layout.there(said) == there
    layout.clear()
    assert not (tmp_path / "scratch").exists()


def test_a_file_that_changed_is_not_kept(store: None) -> None:
    """A file is kept only if its content has the hash that was asked for."""
    receive({hash_of(b"x"): b"y", hash_of(b"z"): b"z"})
    assert missing([hash_of(b"x"), hash_of(b"z")]) == [hash_of(b"x")]
    assert Path(kept_path(hash_of(b"z"))).read_bytes() == b"z"


def test_absolute_paths_that_the_host_has(tmp_path: Path, store: None) -> None:
    """A file that is named by an absolute path is taken from there, where it is the same."""
    scene = Scene(tmp_path / "suite")
    data = scene.file("../data.npy", "data")
    item = Item("a", str(scene.resource("raw_data", uid="data", src=str(data.resolve())).write()))
    sent = sent_item(item, Expected())
    assert sent.absolute == (str(data.resolve()),)
    receive({hash: Path(path).read_bytes() for path, hash in sent.files.items()})
    assert Layout(str(tmp_path / "scratch")).place(sent).id == "a"


@pytest.mark.parametrize(
    "is_absolute, code, message",
    [
        (True, "SR-CLUSTER-005", "is an absolute path, and this host has no file there with the same content"),
        (False, "SR-CLUSTER-006", "the file changed while the suite ran, and did not reach this host"),
    ],
)
def test_files_that_the_host_lacks(tmp_path: Path, store: None, is_absolute: bool, code: str, message: str) -> None:
    """A file that changed after its hash was sent is refused, with the scenario that names it or its own path."""
    scene = Scene(tmp_path / "suite")
    data = scene.file("data.npy", "data")
    scene.resource("raw_data", uid="data", src=str(data) if is_absolute else "data.npy")
    item = Item("a", str(scene.write()))
    sent = sent_item(item, Expected())
    receive({hash: Path(path).read_bytes() for path, hash in sent.files.items() if path != str(data)})
    data.write_text("changed")
    (problem,) = error_of(FileError, Layout(str(tmp_path / "scratch")).place, sent).problems
    assert (problem.code, problem.path) == (code, item.path if is_absolute else str(data))
    assert problem.message.endswith(message)


def test_a_cache_that_is_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A host that cannot make the folder of kept files says so before it is sent any."""
    cache = tmp_path / "cache"
    cache.write_text("no folder")
    monkeypatch.setenv("SCENARIO_RUNNER_CACHE", str(cache))
    (problem,) = error_of(FileError, missing, [hash_of(b"x")]).problems
    assert (problem.code, problem.path) == ("SR-CLUSTER-008", str(cache))
