"""The wheel that pip builds from this checkout: its files, with the mark that a type checker looks for."""

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.program import Program


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
    """It passes, as it does from the wheel alone (tools/try_package); with a PATH or a --root it is refused."""
    ended = program("test", "--demo", "--verbose")
    assert (ended.code, ended.err) == (0, "")
    names = {line.split()[1] for line in ended.out.splitlines() if line.startswith("Pass ")}
    assert names == {"double.json", "picture.json", "refused.json", "sine.json"}
    for other in (["scenarios/basics"], ["--root", "scenarios"]):
        ended = program("test", "--demo", *other)
        assert ended.code == 2
        assert ended.err.startswith("error: --demo is a suite of its own, and PATH or --root names another\n")


def test_an_editable_install_is_a_path(checkout: Path, tmp_path: Path) -> None:
    """It has no import hook, which each start would pay for."""
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
