"""Runs the real program in a process of its own."""

import io
import os
import shutil
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from tests.forking import Forks

COMMAND = [sys.executable, "-m", "scenario_runner"]


class Ended(NamedTuple):
    """How a process ended."""

    code: int
    out: str
    err: str


def executable(path: Path, text: str) -> Path:
    """Write a program that runs as a file, such as a shell script, with the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
    return path


def files_in(folder: Path) -> dict[str, bytes]:
    """Return the content of each file below a folder, by the path from there."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def wait_until(condition: Callable[[], Any], reason: str = "") -> None:
    """Wait for a condition that becomes true soon."""
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, reason
        time.sleep(0.01)


def process_state(process_id: int) -> str:
    """Return the letter that Linux gives the state of a process, "" for a dead process or a zombie."""
    try:
        letter = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return ""
    return "" if letter in "ZX" else letter


def old_glslang(folder: Path) -> Path:
    """Make a glslangValidator that reports a version too old for tensors and otherwise runs the installed one."""
    installed = shutil.which("glslangValidator")
    answer = '[ "$1" != --version ] || { echo "Glslang Version: 11:15.3.0"; exit; }'
    return executable(folder / "glslangValidator", f'#!/bin/sh\n{answer}\nexec {installed} "$@"\n')


def python_path(folder: Path) -> str:
    """Return PYTHONPATH with ``folder`` first."""
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


class Program:
    """Runs the program in one folder, with the arguments of `run_program`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __call__(self, *arguments: str | Path, exit_code: int | None = None, **keys: Any) -> Ended:
        """Run a command, which must end with ``exit_code`` if this is given."""
        ended = run_program(self._folder, *arguments, **keys)
        assert exit_code in (None, ended.code), ended
        return ended

    def succeed(self, *arguments: str | Path, **keys: Any) -> Ended:
        """Run a command that must succeed and leave standard error empty."""
        ended = self(*arguments, **keys)
        assert (ended.code, ended.err) == (0, "")
        return ended

    def fail(self, exit_code: int, *arguments: str | Path, **keys: Any) -> Ended:
        """Run a command that must fail with this exit code and leave standard output empty."""
        ended = self(*arguments, **keys)
        assert (ended.code, ended.out) == (exit_code, "")
        return ended


def run_python(code: str, *arguments: str | Path, env: dict[str, str] | None = None) -> str:
    """Run Python code in a forked process, check that it succeeds, and return its output."""
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
    """Read a terminal until no process has it open, and close it."""
    printed = b""
    with suppress(OSError):  # everybody has closed it
        while part := os.read(terminal, 1 << 16):
            printed += part
    os.close(terminal)
    return printed
