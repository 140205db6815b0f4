"""A small process that starts programs and measures them.

The kernel's peak of a program includes the parent process's memory. So a child that only runs this file
starts the programs. It imports only the standard library and holds about ten megabytes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import IO, cast


@dataclass(frozen=True)
class Usage:
    """The time and memory of a program's run."""

    wall_s: float
    cpu_s: float
    peak_bytes: int
    exit_code: int
    output: str

    @property
    def ok(self) -> bool:
        return self.exit_code == 0


class Launcher:
    """A child process that runs programs in turn; a context manager."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(
        self, command: Sequence[str], *, environment: Mapping[str, str], folder: str, timeout_s: float, log: str
    ) -> Usage:
        """Run ``command`` in ``folder`` with output to the file ``log``.

        After ``timeout_s`` the program is killed and has a negative exit code.
        """
        request = [list(command), dict(environment), folder, timeout_s, log]
        into, out = cast("IO[str]", self._process.stdin), cast("IO[str]", self._process.stdout)
        into.write(json.dumps(request) + "\n")
        into.flush()
        answer = out.readline()
        if not answer:
            raise RuntimeError(f"the process that starts programs ended while running {command}")
        wall_s, cpu_s, peak_bytes, exit_code = json.loads(answer)
        with open(log, encoding="utf-8", errors="replace") as file:
            return Usage(wall_s, cpu_s, peak_bytes, exit_code, file.read())

    def close(self) -> None:
        cast("IO[str]", self._process.stdin).close()
        self._process.wait(timeout=30)
        cast("IO[str]", self._process.stdout).close()

    def __enter__(self) -> Launcher:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def measure(command: list[str], environment: dict[str, str], folder: str, timeout_s: float, log: str) -> list[float]:
    """Measure wall and processor time in s, peak resident memory in bytes, and exit code (negative: a signal)."""
    with open(log, "wb") as output:
        started = time.perf_counter()
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
        )
        timer = threading.Timer(timeout_s, process.kill)
        timer.daemon = True
        timer.start()
        _, status, resources = os.wait4(process.pid, 0)
        wall_s = time.perf_counter() - started
        timer.cancel()
    process.returncode = os.waitstatus_to_exitcode(status)
    unit = 1 if sys.platform == "darwin" else 1024
    cpu_s = resources.ru_utime + resources.ru_stime
    return [wall_s, cpu_s, resources.ru_maxrss * unit, process.returncode]


def serve() -> None:
    for line in sys.stdin:
        print(json.dumps(measure(*json.loads(line))), flush=True)


if __name__ == "__main__":
    serve()
