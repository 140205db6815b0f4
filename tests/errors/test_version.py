"""The version: that of the commit of a checkout, as setuptools-scm computes it, and of an installed package."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PRINT = "import scenario_runner.errors.version as version; print(version.__version__, version.revision())"


@pytest.fixture
def copy(checkout: Path, tmp_path: Path) -> Path:
    """The package and what its build needs, without git."""
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(checkout / name, tmp_path)
    shutil.copytree(checkout / "scenario_runner", tmp_path / "scenario_runner")
    return tmp_path


def commit(folder: Path, name: str) -> None:
    (folder / name).touch()
    identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run(["git", "add", "-A"], cwd=folder, check=True)
    subprocess.run(["git", *identity, "commit", "-q", "-m", name], cwd=folder, check=True)


def printed(folder: Path, program: str) -> list[str]:
    command = [sys.executable, "-c", program]
    environment = os.environ | ({"GIT_DIR": str(folder / "other.git")} if program == PRINT else {})  # as in a hook
    ended = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    return ended.stdout.split()


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_the_version_of_a_commit(copy: Path) -> None:
    """Without a tag, at one and after one, the version is that of setuptools-scm."""
    (copy / ".gitignore").write_text("__pycache__\n")
    subprocess.run(["git", "init", "-q"], cwd=copy, check=True)
    computed = "import setuptools_scm; print(setuptools_scm.get_version(fallback_version='0.0'))"
    for name, tag, beginning in (("a", None, "0.1.dev1+g"), ("b", "v1.2.3", "1.2.3"), ("c", None, "1.2.4.dev1+g")):
        commit(copy, name)
        if tag:
            subprocess.run(["git", "tag", tag], cwd=copy, check=True)
        (theirs,), (ours, revision) = printed(copy, computed), printed(copy, PRINT)
        assert ours.startswith(beginning)
        assert theirs.startswith(ours)  # it has more digits of the commit
        assert not revision.endswith("-dirty")
    (copy / "README.md").write_text("changed")
    assert printed(copy, PRINT)[1].endswith("-dirty")
