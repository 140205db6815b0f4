"""Running the program as doctor, and shared libraries that misbehave when they are opened."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.layers import shared_library

# Functions that the dynamic linker calls when it opens the library.
_WHEN_OPENED = "__attribute__((constructor)) static void opened(void)"
_HANGS, _CRASHES = "{ for (;;) pause(); }", "{ *(volatile int *)0x7F0000 = 0; }"


def write_library(folder: Path, *, hangs: bool) -> Path:
    """Build a library that waits for ever when it is opened, or else writes where nothing is."""
    source = folder / "broken.c"
    source.write_text(f"#include <unistd.h>\n{_WHEN_OPENED} {_HANGS if hangs else _CRASHES}\n", encoding="utf-8")
    return shared_library(source, folder)


def doctor(*arguments: str, python: str = sys.executable, **environment: str) -> subprocess.CompletedProcess[str]:
    return program_of(python, "doctor", *arguments, **environment)


def program_of(python: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [python, "-P", "-W", "error", "-m", "scenario_runner", *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(entry or os.getcwd() for entry in sys.path), **environment},
        check=False,
    )


def report_of(*arguments: str, code: int = 1, python: str = sys.executable, **environment: str) -> dict[str, Any]:
    done = doctor("--json", *arguments, python=python, **environment)
    assert (done.returncode, done.stderr) == (code, "")
    report: dict[str, Any] = json.loads(done.stdout)
    assert report["ready"] is (code == 0)
    return report
