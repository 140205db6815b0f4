"""A fork of this process that may crash or hang."""

import faulthandler
import os
import select
import signal
from contextlib import ExitStack, suppress
from typing import Final

from scenario_runner.processes.signals import KILL, kill_when_closed

FORKS: Final = all(hasattr(os, name) for name in ("fork", "memfd_create", "pidfd_open"))
"""Linux has what `IsolatedProcess` needs; elsewhere, and in a Python that was built for an older C library, a
`SpawnedProcess` takes its place."""

_MOST_STACK_BYTES = 16 << 10
_STACK_SIGNAL = getattr(signal, "SIGUSR2", 0)


class IsolatedProcess:
    """Life cycle: forked; ended, which `wait` detects; `close`d. It dies with this process.

    ``id`` is 0 in the fork. ``end`` is a descriptor that becomes readable when the process has ended. ``code`` is its
    exit code then, or a signal as a negative number."""

    def __init__(self, *, leads_group: bool = False) -> None:
        """With ``leads_group`` all processes that it starts end with it. Raises OSError."""
        self._leads_group = leads_group
        self.code: int | None = None
        with ExitStack() as stack:
            alive, held = os.pipe()
            self._faults = os.memfd_create("faults")
            for descriptor in (held, self._faults):
                stack.callback(os.close, descriptor)
            self.id = os.fork()
            if self.id:
                os.close(alive)
                # a pipe would stay open in programs that the process has started, or be closed by a broken driver
                self.end = os.pidfd_open(self.id)
                stack.callback(os.close, self.end)
            self._open = stack.pop_all()
        if leads_group:
            with suppress(OSError):  # in both, since either may need it first
                os.setpgid(self.id, self.id)
        if not self.id:
            os.close(held)
            _die_with_parent(alive, -os.getpid() if leads_group else os.getpid())
            faulthandler.enable(self._faults, all_threads=True)
            faulthandler.register(_STACK_SIGNAL, self._faults, all_threads=True)

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait for the end of the process; false if it has not ended in time."""
        if self.code is None:
            poll = select.poll()
            poll.register(self.end, select.POLLIN)
            if not poll.poll(None if timeout_s is None else timeout_s * 1e3):
                return False
            if self._leads_group:
                self.kill()  # while the number of the group cannot be another's
            self.code = os.waitstatus_to_exitcode(os.waitpid(self.id, 0)[1])
        return True

    def signal(self, number: int) -> None:
        """Send a signal."""
        with suppress(OSError):
            if self.code is None:
                os.kill(self.id, number)

    def kill(self) -> None:
        """Kill the process, or its whole group."""
        if self._leads_group:
            with suppress(OSError):
                os.killpg(self.id, KILL)
        else:
            self.signal(KILL)

    def ask_for_stack(self) -> None:
        """Have the process write its Python stack, which takes a moment."""
        self.signal(_STACK_SIGNAL)

    @property
    def stack(self) -> str:
        """The Python stack that the process wrote when it crashed or was told to."""
        return os.pread(self._faults, _MOST_STACK_BYTES, 0).decode("utf-8", "replace")

    def close(self) -> None:
        """Release the descriptors; the process has ended, or is abandoned."""
        self._open.close()


def _die_with_parent(alive: int, owner: int) -> None:
    """Have the system kill this process when its parent is gone, which alone holds the other end of a pipe."""
    kill_when_closed(alive, owner)
    os.set_blocking(alive, False)
    with suppress(BlockingIOError):
        if not os.read(alive, 1):  # it ended before
            os.kill(owner, KILL)
