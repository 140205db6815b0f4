"""A system that gives no more threads or processes: one error that names the limit that was met."""

import os
import re
from pathlib import Path

import numpy
import pytest

from tests.program import Program
from tests.scenes import Scene, glsl

# A thread's stack is as large as this limit; one that is larger than the address space is never had.
STACK_BYTES, ADDRESS_SPACE_BYTES = 8 << 30, 4 << 30
# RLIMIT_NPROC does not bind root: another real user id, and none of the capabilities that overrule the limit.
ANOTHER_USER = ("setpriv", "--ruid", "65534", "--bounding-set", "-sys_resource,-sys_admin")


def few_processes(most: int) -> tuple[str, ...]:
    return (*(ANOTHER_USER if os.getuid() == 0 else ()), "prlimit", f"--nproc={most}")


@pytest.fixture
def small(scene: Scene) -> Scene:
    scene.shader("add", glsl("a[gl_WorkGroupID.x] += 1u;", "layout(binding = 0) buffer A { uint a[]; };"))
    scene.buffer("x", numpy.arange(4, dtype=numpy.uint32)).dispatch("add", ["x"], [4]).write()
    return scene


LAUNCHERS = {
    "ulimit -u": (
        lambda: few_processes(1),
        r"processes and threads of this user \(ulimit -u\): [1-9]\d* of 1 in use, 1 more asked for",
    ),
    "ulimit -v": (
        lambda: ("prlimit", f"--stack={STACK_BYTES}", f"--as={ADDRESS_SPACE_BYTES}"),
        rf"bytes of address space \(ulimit -v\): \d+ of {ADDRESS_SPACE_BYTES} in use, {STACK_BYTES} more asked for",
    ),
}


@pytest.mark.parametrize("limit", LAUNCHERS)
def test_a_thread_that_cannot_be_started(program: Program, small: Scene, limit: str) -> None:
    """The first thread that the system refuses ends the run with exit code 15, the limit, and what to do."""
    launcher, named = LAUNCHERS[limit]
    ended = program("scenario.json", launcher=launcher())
    assert (ended.code, ended.out) == (15, "")
    expected = rf"error: the system refuses to start another thread \({named}\)\n  help: raise the limit, or end .*\n"
    assert re.fullmatch(expected, ended.err)
    assert not list(small.folder.glob("*.out.npy"))
    assert small.leftovers() == []


@pytest.mark.parametrize("limit", LAUNCHERS)
def test_a_compiler_that_cannot_be_started(program: Program, small: Scene, limit: str, tmp_path: Path) -> None:
    """A command that needs no driver and compiles a shader says the same."""
    launcher, named = LAUNCHERS[limit]
    cache = {"SCENARIO_RUNNER_CACHE": str(tmp_path / "empty")}
    ended = program("validate", "scenario.json", launcher=launcher(), env=cache)
    assert (ended.code, ended.out) == (15, "")
    place = r"error: scenario\.json:\d+:\d+: /resources/0/shader: shader 'add': "
    assert re.match(rf"{place}the system refuses to start another (thread|process) \({named}\)\n  help: ", ended.err)


def test_a_suite_without_file_handles(program: Program, small: Scene) -> None:
    """The limit of open files is named, and not those of processes, which are far from theirs."""
    ended = program("test", "scenario.json", launcher=("prlimit", "--nofile=10"))
    assert ended.code == 15
    named = r"open files \(ulimit -n\): \d+ of 10 in use, 6 more asked for"
    assert re.search(rf"^error: the system refuses to start another process \({named}\)$", ended.err, re.M)


def test_doctor_reports_a_thread_that_cannot_be_started(program: Program, scene: Scene) -> None:
    """The report of what else is there stays."""
    launcher, named = LAUNCHERS["ulimit -v"]
    ended = program("doctor", launcher=launcher())
    assert ended.code == 1
    assert re.search(rf"could not be started: the system refuses to start another thread \({named}\)", ended.out)
