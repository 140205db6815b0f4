"""Files of killed runs are removed by later runs, and files of others stay."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from scenario_runner.files.output import OutputFile
from scenario_runner.processes.temporary import owner, remove_stale
from tests.cli.long_run import usual_signals
from tests.program import COMMAND, Program, process_state, run_python, wait_until
from tests.scenes import ADD, Scene, glsl

DAY_S = 24 * 3600
HOLD = """
import sys, time
from scenario_runner.files.output import OutputFile
file = OutputFile(sys.argv[1])
file.write(b"half")
print("ready", flush=True)
time.sleep(60)
"""


def given(code: str, path: Path) -> subprocess.Popen[str]:
    """A fresh process that runs Python code, with a path as its argument."""
    return subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE, text=True)


def holding(path: Path) -> subprocess.Popen[str]:
    """Another process that has begun to write a file."""
    process = given(HOLD, path)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def write(path: Path) -> None:
    """Write a file in another process."""
    code = "import sys; from scenario_runner.files.output import OutputFile\nwith OutputFile(sys.argv[1]): pass"
    run_python(code, path)


def hidden(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name.startswith(".new-"))


def test_files_of_killed_processes(tmp_path: Path) -> None:
    """A temporary file stays as long as its process runs, and goes with the next file written after its end."""
    with holding(tmp_path / "a.npy") as process:
        (half,) = hidden(tmp_path)
        write(tmp_path / "b.npy")
        assert hidden(tmp_path) == [half]
        process.kill()
        process.wait()
        write(tmp_path / "c.npy")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b.npy", "c.npy"]


def test_process_ids_are_used_again(tmp_path: Path) -> None:
    """A file of an earlier process with the id of one that runs now is removed: their start times differ."""
    host, process_id, start = owner().split("-")
    mine, earlier = (tmp_path / f".new-{host}-{process_id}-{when}-x.tmp" for when in (start, int(start) - 1))
    mine.touch()
    earlier.touch()
    remove_stale(str(tmp_path))
    assert list(tmp_path.iterdir()) == [mine]


@pytest.mark.parametrize("age_s, stays", [(0, True), (DAY_S - 600, True), (DAY_S + 600, False)])
def test_other_hosts(tmp_path: Path, age_s: int, stays: bool) -> None:
    """Files of processes on another machine or in a container stay for a day."""
    path = tmp_path / ".new-00112233-1-5-abc.tmp"
    path.touch()
    os.utime(path, (time.time() - age_s,) * 2)
    remove_stale(str(tmp_path))
    assert path.exists() is stays


def test_names_of_others_stay(tmp_path: Path) -> None:
    """A file with another name stays, however old it is."""
    names = [".new-1.tmp", ".new-a-b-c-d.tmp", ".new-0-1-2-3.txt", ".new-0-1-2.tmp", "new-0-1-2-3.tmp"]
    for name in names:
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (0, 0))
    remove_stale(str(tmp_path))
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names)


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    """A symbolic link with such a name is removed, and its target stays."""
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").touch()
    host, process_id, start = owner().split("-")
    (tmp_path / f".new-{host}-{process_id}-{int(start) - 1}-x.tmp").symlink_to(kept)
    remove_stale(str(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]
    assert (kept / "file").exists()


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")  # threads of pytest's own workers
def test_a_fork_is_a_process_of_its_own(tmp_path: Path) -> None:
    """A process that was forked after a file was written names its own files after itself."""
    with OutputFile(tmp_path / "a"):
        pass
    before = owner()
    read, write_end = os.pipe()
    child = os.fork()
    if not child:
        os.write(write_end, owner().encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(read, 100).decode().split("-")[1] == str(child)
    assert owner() == before
    os.close(read)
    os.close(write_end)


# What the preprocessor of GLSL takes long to expand, so that a compiler can be caught at work.
LONG_TO_COMPILE = "#define A0 x = x * 3u + 1u;\n" + "".join(
    f"#define A{n} {' '.join([f'A{n - 1}'] * 8)}\n" for n in range(1, 7)
)


@pytest.fixture
def compiling(scene: Scene) -> Iterator[subprocess.Popen[bytes]]:
    """A run that compiles its shader, with ``temporary`` beside the scenario for temporary files."""
    temporary = scene.folder / "temporary"
    temporary.mkdir()
    slow = glsl("uint x = a[0]; A6 a[0] = x;", LONG_TO_COMPILE + "layout(binding = 0) buffer B { uint a[]; };\n")
    path = scene.shader("slow", slow).buffer("x", size=16).dispatch("slow", ["x"], [1]).write()
    environment = {**os.environ, **_places(scene)}
    with subprocess.Popen(
        [*COMMAND, str(path)], env=environment, stderr=subprocess.PIPE, preexec_fn=usual_signals
    ) as process:
        wait_until(lambda: list(temporary.glob("scenario-runner-*/*")), "the compiler runs")
        yield process
        process.kill()


def _places(scene: Scene) -> dict[str, str]:
    return {"TMPDIR": str(scene.folder / "temporary"), "SCENARIO_RUNNER_CACHE": str(scene.folder / "cache")}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_interrupted_compilation(compiling: subprocess.Popen[bytes], scene: Scene, number: signal.Signals) -> None:
    """A signal during a compilation ends it soon, and its folder is removed."""
    compiling.send_signal(number)
    compiling.communicate(timeout=30)
    assert compiling.returncode == 128 + number
    assert list((scene.folder / "temporary").iterdir()) == []


def test_folder_of_a_killed_compilation(compiling: subprocess.Popen[bytes], program: Program, scene: Scene) -> None:
    """The folder of a compilation that was killed is removed by the next one."""
    compiling.kill()
    (left,) = (scene.folder / "temporary").iterdir()
    other = Scene(scene.folder / "other")
    other.folder.mkdir()
    quick = other.shader("add", ADD).buffer("y", size=16).dispatch("add", ["y"], [4]).write()
    wait_until(lambda: not process_state(int(left.name.split("-")[3])), "its process is gone")
    assert program(quick, env=_places(scene)).code == 0
    assert list((scene.folder / "temporary").iterdir()) == []
