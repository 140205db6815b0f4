"""Runs pytest with the plugin in a folder of scenarios, in a process of its own."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.program import Ended

PLUGIN = "scenario_runner.suite.pytest_plugin"
TIMEOUT_S = 300

RunPytest = Callable[..., Ended]

# Several runs of pytest in one process, each with the arguments of a line, and what each of them printed and returned.
_SEVERAL = """
import contextlib, io, json, sys, pytest
ended = []
for arguments in json.loads(sys.argv[1]):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = pytest.main(arguments)
    ended.append([int(code), out.getvalue(), err.getvalue()])
print(json.dumps(ended))
"""


@pytest.fixture
def environment(shader_cache: Path) -> dict[str, str]:
    """The environment of a process that runs pytest, without the plugins that are installed."""
    added = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": "", "COLUMNS": "200"}
    return {**os.environ, **added}


@pytest.fixture
def run_pytest(environment: dict[str, str], tmp_path: Path) -> RunPytest:
    """Run pytest in the test's folder, with this plugin and xdist alone, whichever are installed."""

    def run(*arguments: str, env: dict[str, str] | None = None) -> Ended:
        command = [sys.executable, "-m", "pytest", "-p", PLUGIN, "-p", "xdist", *arguments]
        return ended(command, tmp_path, {**environment, **(env or {})})

    return run


@pytest.fixture
def run_several(environment: dict[str, str], tmp_path: Path) -> Callable[[list[list[str]]], list[Ended]]:
    """Run pytest for each list of arguments, in one process; for runs in which no scenario is executed."""

    def run(runs: list[list[str]]) -> list[Ended]:
        arguments = json.dumps([["-p", PLUGIN, *each] for each in runs])
        done = ended([sys.executable, "-c", _SEVERAL, arguments], tmp_path, environment)
        return [Ended(*each) for each in json.loads(done.out)]

    return run


def ended(command: list[str], folder: Path, environment: dict[str, str]) -> Ended:
    """Run a command in a folder."""
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    return Ended(done.returncode, done.stdout, done.stderr)


def write_scenario(path: Path, *, data: int = 0, expected: list[int] | None = None, **expect: Any) -> None:
    """Write a scenario with an output of four bytes, and expectations that are right by default."""
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
    """Return the outcome of each test in pytest -rA that was not skipped, by node id."""
    return {
        name: word for word, name in re.findall(r"^(PASSED|FAILED|XFAIL|XPASS|ERROR) (\S.*?::\S+)(?= |$)", out, re.M)
    }
