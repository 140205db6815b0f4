"""Runs the real program in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest


class Ended(NamedTuple):
    """How a process ended."""

    code: int
    out: str
    err: str


Program = Callable[..., Ended]


@pytest.fixture
def command() -> list[str]:
    """The start of a command line that runs the program."""
    return [sys.executable, "-m", "scenario_runner"]


@pytest.fixture
def program(command: list[str], shader_cache: Path, checkout: Path, tmp_path: Path) -> Program:
    """Run the program in the test's folder; it must never show a traceback."""

    def run(*arguments: str | Path, env: dict[str, str] | None = None, stdin: str = "", timeout_s: float = 60) -> Ended:
        paths = os.pathsep.join(filter(None, [str(checkout), os.environ.get("PYTHONPATH")]))
        done = subprocess.run(
            [*command, *map(str, arguments)],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": paths, **(env or {})},
            input=stdin,
            capture_output=True,
            text=True,
            errors="surrogateescape",
            timeout=timeout_s,
        )
        assert "Traceback" not in done.stderr, done.stderr
        return Ended(done.returncode, done.stdout, done.stderr)

    return run
