"""The README's two commands in a fresh checkout, for real: downloads packages, takes about a minute."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.heavy

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
