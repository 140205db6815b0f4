"""Programs that this program starts. Each has a time limit and ends with the parent process."""

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from typing import Any

from scenario_runner.processes import system_limits
from scenario_runner.processes.signals import KILL, kill_when_closed, signal_name


class Program(subprocess.Popen[bytes]):
    """A program in a new process group.

    The group is killed after ``timeout_s`` seconds, when the ``with`` block ends, and when this process ends.
    So reads of the pipes need no time limit. Raises OSError if the program cannot be started, and LimitError if the
    system refuses a process or a thread.
    """

    def __init__(self, argv: Sequence[str], timeout_s: float, **options: Any) -> None:
        self._timeout_s = timeout_s
        self.timed_out = False
        alive, self._held = os.pipe()
        try:
            super().__init__(
                argv, start_new_session=True, pass_fds=() if sys.platform == "win32" else (alive,), **options
            )
        except BaseException as error:
            os.close(self._held)
            if isinstance(error, BlockingIOError):  # EAGAIN of fork()
                raise system_limits.refusal("process") from error
            raise
        else:
            if sys.platform == "linux":
                kill_when_closed(alive, -self.pid)
        finally:
            os.close(alive)
        self._timer = threading.Timer(timeout_s, self._time_out)
        self._timer.daemon = True
        try:
            system_limits.start(self._timer)
        except BaseException:
            self.end()
            raise

    def kill(self) -> None:
        """Kill the program with the process group."""
        with contextlib.suppress(OSError):
            if not hasattr(os, "killpg"):  # Windows
                super().kill()
            elif self.returncode is None:
                os.killpg(self.pid, KILL)

    def end(self) -> None:
        """Kill the program if it still runs, and close the pipes. A second call does nothing."""
        self._timer.cancel()
        self.kill()
        self.wait()
        for stream in (self.stdin, self.stdout, self.stderr):
            if stream is not None:
                with contextlib.suppress(OSError):  # unread input
                    stream.close()
        held, self._held = self._held, -1
        if held >= 0:
            os.close(held)

    def __exit__(self, *_: object) -> None:
        self.end()

    @property
    def failure(self) -> str:
        """The end of the program as a predicate, or "" if the program exited by itself."""
        if self.timed_out:
            return f"did not finish within {self._timeout_s:g} s"
        return f"was ended by {signal_name(-self.returncode)}" if self.returncode < 0 else ""

    def _time_out(self) -> None:
        self.timed_out = True
        self.kill()
