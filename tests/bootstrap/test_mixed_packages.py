"""Installations: the wheel, two packages of one name in one folder, and the commands of the README."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

from scenario_runner.errors import installation
from tests.program import Program

# Without this checkout, whose editable install would be found in place of a package without __init__.py.
START = """import os, sys
sys.path[1:] = [path for path in sys.path[1:] if not os.path.exists(os.path.join(path, "pyproject.toml"))]
from scenario_runner.__main__ import console
console()"""
ARMS_START = START.replace("__main__ import console", "cli import main as console")
ARMS = Path(sys.prefix) / installation.GLSLC_FOLDER / "scenario_runner"


def started(site: Path, *arguments: str, program: str = START) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, cwd=site, capture_output=True, text=True, timeout=120)


@pytest.fixture
def site(checkout: Path, tmp_path: Path) -> Path:
    """A folder of packages with this program's files and, in the same folder, Arm's."""
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(checkout / "scenario_runner", tmp_path / "scenario_runner", ignore=ignored)
    shutil.copy(ARMS / "cli.py", tmp_path / "scenario_runner")
    (tmp_path / "scenario_runner/binaries").symlink_to(ARMS / "binaries")
    # The wheel's extension module loads in CPython 3.12 alone; this stands in for it and has every name.
    (tmp_path / "scenario_runner_py.py").write_text("__all__ = []\ndef __getattr__(name): return None\n")
    return tmp_path


@pytest.mark.skipif(not installation.has_arm_wheels(), reason="Arm has no wheel for this machine")
def test_ours_installed_last(site: Path) -> None:
    """Every command of this program runs with a warning, and Arm's command imports this program."""
    ended = started(site, "--version")
    assert (ended.returncode, "version" in json.loads(ended.stdout)) == (0, True)
    assert ended.stderr == (
        f"warning: {site}/scenario_runner holds binaries/ and cli.py of ai_ml_sdk_scenario_runner, whose import "
        "package has the same name; Arm's command scenario_runner starts this program\n"
        "  help: pip uninstall ai_ml_sdk_scenario_runner, then install scenario-runner again with pip's "
        "--force-reinstall --no-deps; install Arm's package into an environment of its own\n"
    )
    ended = started(site, "--version", program=ARMS_START)
    assert "dependencies" in json.loads(ended.stdout)


@pytest.mark.skipif(not installation.has_arm_wheels(), reason="Arm has no wheel for this machine")
def test_arms_installed_last(site: Path) -> None:
    """The command line runs, with a warning that Python programs do not; doctor names both."""
    shutil.copy(ARMS / "__init__.py", site / "scenario_runner")
    ended = started(site, "doctor", "--json")
    problem = f"{site}/scenario_runner holds binaries/ and cli.py of ai_ml_sdk_scenario_runner, whose import package "
    problem += "has the same name; Arm's command scenario_runner starts this program, and 'import scenario_runner' "
    problem += "gives Arm's names, not Runner or load: __init__.py is Arm's"
    assert ended.stderr.startswith(f"warning: {problem}\n")
    report = json.loads(ended.stdout)
    assert report["mixed_packages"] == problem
    (finding,) = [finding for finding in report["findings"] if finding["id"] == "packages-mixed"]
    assert (finding["level"], finding["message"]) == ("warning", problem)


def test_arms_removed_after_it(site: Path) -> None:
    """pip has taken ``__init__.py`` along, which both packages had."""
    for name in ("__init__.py", "cli.py", "binaries"):
        (site / "scenario_runner" / name).unlink()
    ended = started(site, "--version")
    assert ended.returncode == 0
    assert ended.stderr.startswith(f"warning: {site}/scenario_runner lacks __init__.py, as after a removal of ")


@pytest.fixture(scope="module")
def wheel(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built as pip builds it, by the setuptools that is here."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    source.mkdir()
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(checkout / name, source)
    shutil.copytree(checkout / "scenario_runner", source / "scenario_runner")
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-build-isolation", "--no-deps", "-w", str(folder), "."]
    subprocess.run(command, cwd=source, stdin=subprocess.DEVNULL, check=True, timeout=120)
    (built,) = folder.glob("scenario_runner-*.whl")
    return built


def test_the_wheel_has_every_file_of_the_package(wheel: Path, checkout: Path) -> None:
    """Modules, generated ones too, and py.typed are in the wheel; nothing outside the package is."""
    files = {path for path in (checkout / "scenario_runner").rglob("*") if path.is_file()}
    ours = {path.relative_to(checkout).as_posix() for path in files if "__pycache__" not in path.parts}
    packed = zipfile.ZipFile(wheel).namelist()
    assert {name for name in packed if ".dist-info/" not in name} == ours
    assert "scenario_runner/py.typed" in ours


def test_the_demo(program: Program, shader_cache: Path) -> None:
    """The demo passes as from the wheel alone (tools/try_package), and refuses a PATH or a --root."""
    ended = program.succeed("test", "--demo", "--verbose")
    names = {line.split()[1] for line in ended.out.splitlines() if line.startswith("Pass ")}
    assert names == {"double.json", "picture.json", "refused.json", "sine.json"}
    for other in (["scenarios/basics"], ["--root", "scenarios"]):
        ended = program("test", "--demo", *other, exit_code=2)
        assert ended.err.startswith("error: --demo and PATH or --root name two suites\n")


def test_an_editable_install_is_a_path(checkout: Path, tmp_path: Path) -> None:
    """An editable install adds a path, and no import hook that would slow each start."""
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(checkout / name, tmp_path)
    (tmp_path / "scenario_runner").mkdir()
    (tmp_path / "scenario_runner/__init__.py").touch()
    build = "from setuptools import build_meta; build_meta.build_editable('.')"
    subprocess.run([sys.executable, "-c", build], cwd=tmp_path, capture_output=True, check=True, timeout=120)
    (built,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(built) as archive:
        (name,) = [name for name in archive.namelist() if ".dist-info/" not in name]
        assert (name.endswith(".pth"), archive.read(name).decode().strip()) == (True, str(tmp_path))


PARTS = ("scenario_runner", "tools", "pyproject.toml", "README.md")


@pytest.fixture
def fresh(tmp_path: Path, checkout: Path) -> Path:
    """A copy of the checkout without its environment, at a path that is awkward on purpose."""
    root = tmp_path / "a fresh [check] out"
    root.mkdir()
    for part in PARTS:
        if (checkout / part).is_dir():
            shutil.copytree(checkout / part, root / part, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(checkout / part, root / part)
    (tmp_path / "home").mkdir()
    return root


def start(root: Path, *command: str) -> subprocess.Popen[str]:
    """Start a command of the checkout as a user with an empty home, and with this machine's settings for downloads."""
    kept = {
        name: value for name, value in os.environ.items() if name.startswith("PIP_") or name.lower().endswith("_proxy")
    }
    return subprocess.Popen(
        [str(root / command[0]), *command[1:]],
        cwd=root.parent,
        env={"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(root.parent / "home"), **kept},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def finish(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=500)
    return process.returncode, out, err


@pytest.mark.heavy
def test_an_interrupted_set_up_is_done_again(fresh: Path) -> None:
    """After a set-up was killed while pip was at work, the next start makes the environment anew and succeeds."""
    process = start(fresh, "tools/run", "--help")
    packages = fresh / ".venv/lib"
    deadline = time.monotonic() + 300
    while not list(packages.glob("*/site-packages/numpy")):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    code, _, err = finish(start(fresh, "tools/run", "--help"))
    assert code == 0, err
    assert "making the environment" in err


@pytest.mark.heavy
def test_pip_and_doctor_make_a_complete_set_up(fresh: Path, checkout: Path) -> None:
    """After `pip install '.[ml]'` into an environment of one's own and `doctor --fix`, shaders with tensors run."""
    environment = fresh.parent / "environment"
    shutil.copytree(checkout / "scenarios/ml/tensor_shader", fresh.parent / "tensor_shader")
    (fresh / "python").symlink_to(sys.executable)
    for command in (
        (fresh / "python", "-m", "venv", environment),
        (environment / "bin/pip", "install", "-q", f"{fresh}[ml]"),
        (environment / "bin/scenario-runner", "doctor", "--fix"),
        (environment / "bin/scenario-runner", "tensor_shader/scenario.json"),
    ):
        code, out, err = finish(start(fresh, *map(str, command)))
        assert code == 0, out + err
    assert "tensor_shader/scenario.json: ok" in out
