"""A run that takes long, in a process of its own, to be sent signals."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

from tests.program import COMMAND, Ended, process_state, wait_until
from tests.scenes import ADD, Scene, glsl

# Endless loops are cut short by software drivers, so: many workgroups of a long one. All results matter.
SLOW = glsl(
    """
  uint x = gl_GlobalInvocationID.x + 1u;
  for (uint i = 0; i < 20000u; i++) for (uint j = 0; j < 20000u; j++) { x ^= x << 13; x ^= x >> 17; x ^= x << 5; }
  a[gl_GlobalInvocationID.x % 64u] = x;
""",
    "layout(binding = 0) buffer B { uint a[]; };\n",
    local_size=64,
)
_LONGEST_S = 30


def slow_scenario(scene: Scene) -> Path:
    """A scenario that would run for minutes, with a quick frame before."""
    scene.shader("slow", SLOW).shader("add", ADD).buffer("x", size=256)
    scene.dispatch("add", ["x"], [4]).command("mark_boundary", resources=["x"], frame_id=1)
    return scene.dispatch("slow", ["x"], [20000]).write()


def usual_signals(ignored: signal.Signals | None = None) -> None:
    """In a process that starts: the signals as a shell leaves them, whatever the tests were started with."""
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN if number == ignored else signal.SIG_DFL)


def children(process_id: int) -> list[int]:
    """The processes that a process has started."""
    return list(map(int, Path(f"/proc/{process_id}/task/{process_id}/children").read_text().split()))


class LongRun:
    """The program with a slow scenario and ``more`` files, once its long frame runs; ``child`` is the process that runs
    it, a worker where there are more files."""

    def __init__(
        self,
        path: Path,
        capture: Path,
        *more: str | Path,
        ignored: signal.Signals | None = None,
        terminal: int | None = None,
        **options: Any,
    ) -> None:
        def set_up() -> None:
            if terminal is not None:
                os.login_tty(os.dup(terminal))
            usual_signals(ignored)

        self.process = subprocess.Popen(
            [*COMMAND, str(path), *map(str, more), "--capture-dir", str(capture)],
            # One thread of the software driver: what it computes until it is ended is for nothing.
            env={**os.environ, "LP_NUM_THREADS": "1"},
            text=True,
            preexec_fn=set_up,
            stdout=None if terminal is not None else subprocess.PIPE,
            stderr=None if terminal is not None else subprocess.PIPE,
            **options,
        )
        wait_until(lambda: (capture / "frame_1" / "x.npy").exists() or self.process.poll() is not None, "first frame")
        assert self.process.poll() is None, self.process.communicate()
        time.sleep(0.3)  # now the slow frame runs
        self.child = self.process.pid
        if more:
            (pool,) = children(self.child)
            (self.child,) = children(pool)

    def __enter__(self) -> LongRun:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate(timeout=_LONGEST_S)

    def ended(self) -> Ended:
        """How it ended; the child is gone then."""
        out, err = self.process.communicate(timeout=_LONGEST_S)
        wait_until(lambda: not process_state(self.child), "the child ends")
        return Ended(self.process.returncode, out, err)
