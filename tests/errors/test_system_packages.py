"""The table of system packages, and the version of the program."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from scenario_runner.errors import installation
from scenario_runner.errors.installation import families, family_here, install_here, package_names, system_command


@pytest.mark.parametrize("part", families()["elsewhere"])
@pytest.mark.parametrize("family", [*sorted(families().keys() - {"elsewhere"}), None])
def test_every_part_can_be_installed_everywhere(
    family: str | None, part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each family has packages for each part, and a command with them; any other system gets words."""
    monkeypatch.setattr(installation, "family_here", lambda: family)
    said = install_here(part)
    if family is None:
        assert said.startswith("install ")
        return
    names = package_names(family, [part])
    assert names
    assert said.endswith(f"{families()[family]['install']} {' '.join(names)}")
    assert system_command(family, names, superuser=True, root=tmp_path).startswith(
        families()[family]["update"] or families()[family]["install"]
    )


@pytest.mark.parametrize("family", ["debian", "fedora", "arch", "macos"])
def test_the_page_about_platforms_has_these_packages(family: str) -> None:
    """docs/platforms.md has the commands that doctor shows."""
    parts = ("loader", "driver", "glslang", "spirv_tools", "validation")
    command = f"{families()[family]['install']} {' '.join(package_names(family, parts))}"
    page = Path(__file__).resolve().parents[2] / "docs" / "platforms.md"
    assert f"| `{command}` |" in page.read_text(encoding="utf-8")


def test_sudo_is_for_users(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command for this machine has sudo where this user needs it."""
    monkeypatch.setattr(installation, "family_here", lambda: "fedora")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert install_here("loader", "driver") == "dnf install vulkan-loader mesa-vulkan-drivers"
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert install_here("loader", "driver") == "sudo dnf install vulkan-loader mesa-vulkan-drivers"


@pytest.mark.parametrize(
    "os_release, family",
    [
        ('PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nID=debian\n', "debian"),
        ('ID=linuxmint\nID_LIKE="ubuntu debian"\n', "debian"),
        ('ID="rocky"\nID_LIKE="rhel centos fedora"\n', "fedora"),
        ("ID=manjaro\nID_LIKE=arch\n", "arch"),
        ("ID=alpine\n", "alpine"),
        ("garbage\x00\n=\n", None),
        ("", None),
    ],
)
def test_the_distribution_is_read_from_os_release(tmp_path: Path, os_release: str, family: str | None) -> None:
    """os-release's ID, or else ID_LIKE, says which family's packages apply."""
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/os-release").write_text(os_release)
    assert family_here(tmp_path, "linux") == family
    assert family_here(tmp_path, "darwin") == "macos"


PRINT = "from scenario_runner.errors import installation as here; print(here.__version__, here.revision())"


@pytest.fixture
def copy(checkout: Path, tmp_path: Path) -> Path:
    """Copy the package and its build files, without git."""
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
    """The version equals setuptools-scm's for a commit without a tag, with a tag and after a tag."""
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
