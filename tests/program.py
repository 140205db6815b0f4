"""Runs the real program in a process of its own."""

import io
import os
import shutil
import subprocess
import sys
import termios
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from tests.forking import Forks

COMMAND = [sys.executable, "-m", "scenario_runner"]


class Ended(NamedTuple):
    """How a process ended."""

    code: int
    out: str
    err: str


Program = Callable[..., Ended]


def old_glslang(folder: Path) -> Path:
    """Make a glslangValidator that says it is too old for tensors, and is the installed one in all else."""
    installed, program = shutil.which("glslangValidator"), folder / "glslangValidator"
    answer = '[ "$1" != --version ] || { echo "Glslang Version: 11:15.3.0"; exit; }'
    program.write_text(f'#!/bin/sh\n{answer}\nexec {installed} "$@"\n')
    program.chmod(0o755)
    return program


def python_path(folder: Path) -> str:
    """PYTHONPATH with ``folder`` before what this process was given."""
    return os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")]))


os.environ["PYTHONPATH"] = python_path(Path(__file__).resolve().parents[1])  # for children in every folder
FORKS = Forks()


def run_program(
    folder: Path,
    *arguments: str | Path,
    env: dict[str, str] | None = None,
    stdin: str = "",
    timeout_s: float = 300,
    launcher: Sequence[str] = (),
) -> Ended:
    """Run the program in ``folder``, through ``launcher``; it must never show a traceback."""
    environment = {**os.environ, **(env or {})}
    words = [str(word) for word in arguments]
    if not launcher and FORKS.can_fork(environment, stdin):
        code, out, err = FORKS.run(words, folder, environment, stdin, timeout_s)
    else:
        done = subprocess.run(
            [*launcher, *COMMAND, *words],
            cwd=folder,
            env=environment,
            input=stdin.encode(),
            capture_output=True,
            timeout=timeout_s,
        )
        code, out, err = done.returncode, done.stdout, done.stderr
    ended = Ended(code, *(io.TextIOWrapper(io.BytesIO(text), errors="surrogateescape").read() for text in (out, err)))
    assert "Traceback" not in ended.err, ended.err
    return ended


def run_python(code: str, *arguments: str | Path, env: dict[str, str] | None = None) -> str:
    """Run Python code in a forked process; it must succeed. Returns what it printed."""
    words = [code, *map(str, arguments)]
    exit_code, out, err = FORKS.run(words, Path.cwd(), {**os.environ, **(env or {})}, "", 120, python=True)
    assert exit_code == 0, err.decode()
    return out.decode()


def on_terminal(folder: Path, *arguments: str, columns: int = 80, env: dict[str, str] | None = None) -> tuple[int, str]:
    """Run the program on a terminal of 40 lines; returns its exit code and all that it printed."""
    ours, theirs = os.openpty()
    termios.tcsetwinsize(theirs, (40, columns))
    inherited = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS", "LINES")}
    environment = {**inherited, "PYTHONUTF8": "1", "TERM": "xterm-256color", "COLORTERM": "truecolor", **(env or {})}
    streams = {"stdin": theirs, "stdout": theirs, "stderr": theirs}
    with subprocess.Popen([*COMMAND, *arguments], cwd=folder, env=environment, **streams) as process:
        os.close(theirs)
        printed = all_of(ours)
    return process.returncode, printed.decode()


def all_of(terminal: int) -> bytes:
    """Read what is written to a terminal until nobody has it open, and close it."""
    printed = b""
    with suppress(OSError):  # everybody has closed it
        while part := os.read(terminal, 1 << 16):
            printed += part
    os.close(terminal)
    return printed
