"""Runs the real program in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

COMMAND = [sys.executable, "-m", "scenario_runner"]


class Ended(NamedTuple):
    """How a process ended."""

    code: int
    out: str
    err: str


Program = Callable[..., Ended]


def python_path(checkout: Path) -> str:
    """PYTHONPATH for a child that runs the program of ``checkout``, with what this process was given."""
    return os.pathsep.join(filter(None, [str(checkout), os.environ.get("PYTHONPATH")]))


def run_program(
    checkout: Path,
    folder: Path,
    *arguments: str | Path,
    env: dict[str, str] | None = None,
    stdin: str = "",
    timeout_s: float = 300,
    launcher: Sequence[str] = (),
) -> Ended:
    """Run the program of ``checkout`` in ``folder``, through ``launcher``; it must never show a traceback."""
    done = subprocess.run(
        [*launcher, *COMMAND, *map(str, arguments)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": python_path(checkout), **(env or {})},
        input=stdin,
        capture_output=True,
        text=True,
        errors="surrogateescape",
        timeout=timeout_s,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return Ended(done.returncode, done.stdout, done.stderr)
