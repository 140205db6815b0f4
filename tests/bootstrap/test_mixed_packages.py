"""Arm's package of the same name, installed into the folder of this one."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from scenario_runner.errors import installation

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
    """Every command runs, with a warning; what Arm's command imports is this program."""
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
