"""Suites on clusters of real workers of Dask, with real scenarios and the real program."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy

from tests.crash import crash_shader
from tests.program import COMMAND, Program
from tests.scenes import Scene, glsl
from tests.suite.cluster.hosts import Cluster, cluster_of

DATA = "layout(binding = 0) buffer B { uint a[]; };\n"
INCLUDING = (
    '#version 450\n#include "add.glsl"\nlayout(binding = 0) buffer B { uint a[]; };\nvoid main() { a[0] += ADDED; }'
)
SOME_TIME = 200  # work groups of WAIT that take long enough to be interrupted: lavapipe ends a loop after 65,536 rounds
WAIT = glsl("for (uint i = 0u; i < a[0] * 6000000u; i++) a[3] = a[3] * 3u + i;", DATA)


def scenario(folder: Path, shader: str, expected: int | None = None, groups: int = 1) -> Path:
    """A scenario that gives four numbers, of which the first one is expected."""
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
        [*COMMAND, "test", "suite", "--cluster", cluster.address, "--results", "r", "--jobs", "1"],
        cwd=folder,
        stdout=-1,
        stderr=-1,
        text=True,
    )


def test_a_suite_on_two_hosts(cluster: Cluster, program: Program, tmp_path: Path, device_name: str) -> None:
    """Hosts are sent what scenarios read, from folders above the suite too, and send back results, the files about a
    failure and paths as they are here. What a host has is not sent again."""
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
    assert "9 results of the run before taken over" in again.out


def test_a_host_that_is_killed(program: Program, tmp_path: Path, shader_cache: Path) -> None:
    """The worker of Dask that is killed in the middle costs nothing but time: each item has one result, and passes."""
    for number in range(24):  # more than the first shards have
        scenario(tmp_path / "suite" / f"{number:02}", WAIT, groups=SOME_TIME)
        output = {"unchecked": True}
        (tmp_path / "suite" / f"{number:02}" / "check.json").write_text(json.dumps({"outputs": {"a": output}}))
    hosts = tmp_path / "hosts"
    hosts.mkdir()
    journal = tmp_path / "r" / "journal.jsonl"
    with cluster_of(2, hosts) as cluster, started(tmp_path, cluster) as process:
        while not journal.exists() or journal.read_text().count("\n") < 2:
            assert process.poll() is None
            time.sleep(0.02)
        os.kill(cluster.processes[0], signal.SIGKILL)
        out, err = process.communicate(timeout=120)
    assert process.returncode == 0, (out, err)
    assert "is lost" in err
    found = results(tmp_path / "r")
    assert len(found) == 24
    assert {each["verdict"] for each in found.values()} == {"Pass"}


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
    """Ctrl-C ends what runs on the hosts, and keeps the results that there are."""
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
    """After the first failure the shards that run end, and what they have not begun with has no result."""
    scenario(tmp_path / "suite" / "0", INCLUDING.replace('#include "add.glsl"', "#define ADDED 1"), 7)
    for number in range(1, 8):
        endless(tmp_path / "suite" / str(number))
    options = ("--results", "r", "--jobs", "1", "--fail-fast", "--timeout", "1")
    ended = program("test", "suite", "--cluster", cluster.address, *options)
    assert ended.code == 1, ended
    assert 0 < len(results(tmp_path / "r")) < 8
