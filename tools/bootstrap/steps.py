"""Long steps of the set-up. Each step prints a line to stderr first, and after a failure the end of the output."""

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

LINES_SHOWN = 15


class SetUpError(Exception):
    """The set-up cannot go on. The message has the reason and advice."""


def say(text: str) -> None:
    for line in text.splitlines():
        print(f"scenario-runner: {line}", file=sys.stderr, flush=True)


def step(title: str, command: Sequence[str], *, folder: Path, environ: Mapping[str, str], advice: str) -> None:
    """Run `command` in `folder` without input. Raises `SetUpError` with the end of the output and `advice`."""
    say(title)
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            check=False,
        )
    except OSError as error:
        raise SetUpError(f"{command[0]} cannot be started: {error}\n{advice}") from error
    if done.returncode:
        end = "\n".join(f"  | {line}" for line in done.stdout.splitlines()[-LINES_SHOWN:])
        raise SetUpError(f"{title}: failed (exit status {done.returncode}). The end of its output:\n{end}\n{advice}")
