"""Systems without modules and functions of Linux, such as macOS: the program works there, in spawned processes."""

import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy
import pytest

from tests.left_out import TOSA_TOOLS, VGF_LIBRARY, needs
from tests.processes.conftest import Folder
from tests.program import wait_until

CHECKOUT = Path(__file__).resolve().parents[2]
SCENARIOS = CHECKOUT / "scenarios"
ADD = SCENARIOS / "basics" / "add"
IMPORT_ALL = """\
import importlib, pkgutil, scenario_runner
names = [module.name for module in pkgutil.walk_packages(scenario_runner.__path__, "scenario_runner.")]
left_out = ("__main__", "cluster_host", "cluster_workers")  # Dask itself looks at the system
print(len([importlib.import_module(name) for name in names if not name.endswith(left_out)]))
"""


@pytest.fixture(autouse=True)
def _other_system(monkeypatch: pytest.MonkeyPatch) -> None:
    """Children are on the other system; the loader has its name on this one."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(Path(__file__).with_name("other_system")), str(CHECKOUT))))
    monkeypatch.setenv("SCENARIO_RUNNER_VULKAN_LOADER", "libvulkan.so.1")


def called(*arguments: object, **options: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *(("-m", "scenario_runner") if arguments[0] != "-c" else ()), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, **options)  # type: ignore[call-overload, no-any-return]


@needs(TOSA_TOOLS)
def test_every_module_is_imported() -> None:
    """No module needs fcntl, resource, fork or /proc to be imported."""
    done = called("-c", IMPORT_ALL)
    assert (done.returncode, done.stderr) == (0, "")
    assert int(done.stdout) > 200


def test_validate_and_run(tmp_path: Path) -> None:
    """Scenarios are checked, and several files run, in a process of their own."""
    done = called("validate", ADD / "scenario.json")
    assert (done.returncode, done.stderr) == (0, "")
    files = [ADD / "scenario.json", SCENARIOS / "basics" / "push_constants" / "scenario.json"]
    done = called("run", *files, "--output", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert [line.partition(": ")[2][:3] for line in done.stdout.splitlines()] == ["ok:", "ok:"]
    (path,) = tmp_path.rglob("sum.npy")
    expected = numpy.load(ADD / "a.npy") + numpy.load(ADD / "b.npy")
    assert (numpy.load(path).view(expected.dtype) == expected).all()


def test_core_dumps() -> None:
    """Core dumps are refused, by runs and by suites."""
    for command in ("run", "test"):
        done = called(command, ADD / "scenario.json", "--core-dumps")
        assert (done.returncode, done.stderr) == (6, "error: --core-dumps needs Linux\n")


@needs(VGF_LIBRARY)
def test_convert(tmp_path: Path) -> None:
    """A model is converted."""
    model = SCENARIOS / "custom_shaders" / "image_model" / "model.mlir"
    done = called("convert", model, "--output", tmp_path / "model.vgf")
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "model.vgf").read_bytes()[:4] == b"VGF1"


@pytest.fixture
def items(
    tmp_path: Path,
    device_name: str,
    trouble_layer: dict[str, str],
    shader_cache: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Folder:
    """Make items that pass, fail, crash and wait for the driver forever, with shared compiled Python code."""
    monkeypatch.setenv("PYTHONPYCACHEPREFIX", str(shader_cache / "python"))
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    for name, value in trouble_layer.items():
        monkeypatch.setenv(name, value)
    folder = Folder(tmp_path, device_name)
    for name, value in (("good", 2), ("wrong", 3)):
        check = {"outputs": {"a": {"dtype": "uint32", "values": [value] * 4}}}
        Path(folder.good(name).path).with_name("check.json").write_text(json.dumps(check))
    folder.crashing()
    folder.troubled("sleeps")
    return folder


def verdicts(results: Path) -> dict[str, tuple[str, list[dict[str, Any]]]]:
    """The verdict and the attempts of items, by the first folder of their names."""
    lines = [json.loads(line) for line in (results / "journal.jsonl").read_text().splitlines()]
    return {
        line["item"]["id"].split("/")[0]: (line["verdict"], line["attempts"]) for line in lines if "verdict" in line
    }


def test_a_suite(items: Folder) -> None:
    """A crash and a driver that does not return cost their items alone; the Python stack tells where the driver was
    called."""
    results = items.path / "results"
    options = "--jobs", 1, "--timeout", 1, "--retries", 0, "--results", results
    done = called("test", ".", *options, cwd=items.path)
    assert (done.returncode, done.stderr) == (1, "")
    first = verdicts(results)
    expected = {"good": "Pass", "wrong": "Fail", "crash": "Crash", "sleeps": "Timeout"}
    assert {name: verdict for name, (verdict, _) in first.items()} == expected
    ((crash,), (sleeps,)) = first["crash"][1], first["sleeps"][1]
    what = "the process was ended by SIGSEGV while running this command (shader 'x')"
    assert crash["reason"] == f"/commands/0: {what}"
    assert "vulkan/device.py" in crash["python_stack"]
    assert "was killed, since it took more than 1 s (--timeout), while creating" in sleeps["reason"]
    assert "create_buffer" in sleeps["python_stack"]


@pytest.mark.heavy
def test_two_suites(items: Folder) -> None:
    """A crash is repeated in the second of two new processes, and the next run keeps the earlier journal."""
    options = "--jobs", 2, "--results", items.path / "results"
    for paths in (("good",), ("good", "crash")):
        done = called("test", *paths, *options, cwd=items.path)
        assert (done.returncode, done.stderr) == (int(len(paths) > 1), "")
    assert [attempt["status"] for attempt in verdicts(items.path / "results")["crash"][1]] == ["Crash", "Crash"]
    assert (items.path / "results" / "journal.previous.jsonl").exists()


@pytest.mark.heavy
def test_crashes_and_hangs_of_files(items: Folder) -> None:
    """Files after a crash still run, and --isolate ends a process that hangs."""
    paths = [f"{name}/scenario.json" for name in ("good", "crash", "wrong")]
    done = called("run", *paths, cwd=items.path)
    assert done.returncode == 12
    assert [line.partition(": ok:")[0] for line in done.stdout.splitlines()] == [paths[0], paths[2]]
    assert "/commands/0: the process was ended by SIGSEGV while" in done.stderr
    done = called("run", "sleeps/scenario.json", "--isolate", "--timeout", 1, cwd=items.path)
    assert (done.returncode, done.stdout) == (10, "")
    assert "was killed, since it had done nothing for 1 s (--timeout), while creating" in done.stderr


def processes_of(folder: Path) -> set[int]:
    """The processes with this folder in their environment."""
    found = set()
    for path in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if os.fsencode(folder) in path.read_bytes():
                found.add(int(path.parent.name))
    return found


@pytest.mark.heavy
def test_workers_end_with_the_program(items: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the program is killed, so is a worker that waits for the driver."""
    monkeypatch.setenv("TMPDIR", str(items.path))
    command = [sys.executable, "-m", "scenario_runner", "test", "sleeps", "--jobs", "1"]
    with subprocess.Popen(command, cwd=items.path) as program:
        wait_until(lambda: any(b"creating" in path.read_bytes() for path in items.path.glob("*/progress")))
        assert len(processes_of(items.path)) == 4  # with the one that multiprocessing starts beside spawned ones
        program.kill()
    wait_until(lambda: not processes_of(items.path))
