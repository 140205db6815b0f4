"""Runs pytest with the plugin in a folder of scenarios, in a process of its own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.program import Ended, python_path

PLUGIN = "scenario_runner.suite.pytest_plugin"
TIMEOUT_S = 300

RunPytest = Callable[..., Ended]


@pytest.fixture
def run_pytest(shader_cache: Path, checkout: Path, tmp_path: Path) -> RunPytest:
    """Run pytest in the test's folder, with this plugin and xdist alone, whichever are installed."""

    def run(*arguments: str, env: dict[str, str] | None = None) -> Ended:
        command = [sys.executable, "-m", "pytest", "-p", PLUGIN, "-p", "xdist", *arguments]
        done = subprocess.run(
            command,
            cwd=tmp_path,
            env={
                **os.environ,
                "PYTHONPATH": python_path(checkout),
                "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
                "PYTEST_ADDOPTS": "",
                "COLUMNS": "200",
                **(env or {}),
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        return Ended(done.returncode, done.stdout, done.stderr)

    return run


def write_scenario(path: Path, *, data: int = 0, expected: list[int] | None = None, **expect: Any) -> None:
    """A scenario whose output is four bytes of ``data``, with expectations; by default they are right."""
    path.parent.mkdir(parents=True, exist_ok=True)
    output = {"values": [data] * 4 if expected is None else expected, "dtype": "uint8"}
    commands: list[Any] = []
    buffer = {"uid": "data", "size": 4, "shader_access": "readwrite", "dst": f"{path.stem}.out.npy"}
    scenario = {
        "expect": {"outputs": {"data": output}, **expect},
        "resources": [{"buffer": buffer}],
        "commands": commands,
    }
    path.write_text(json.dumps(scenario))


def outcomes(out: str) -> dict[str, str]:
    """What pytest -rA says of each test that was not skipped, by node id."""
    return {name: word for word, name in re.findall(r"^(PASSED|FAILED|XFAIL|XPASS|ERROR) (\S+?)(?= |$)", out, re.M)}
