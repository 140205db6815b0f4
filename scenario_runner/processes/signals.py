"""Signals. Ctrl-C, SIGTERM and SIGHUP interrupt a run, which then cleans up. Children end with the parent.

The module `signal` makes enums of all names, which takes a tenth of a small run. `_signal` has only numbers.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

# Signals that interrupt a run, with names.
INTERRUPTING: dict[int, str] = {
    getattr(_signal, name): name for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(_signal, name)
}
# The number of SIGKILL. Windows has no such signal, and takes the number for an exit code.
KILL = getattr(_signal, "SIGKILL", 9)
# A shell's exit code for a process ended by a signal is this plus the signal number.
EXIT_CODE_BASE = 128
# One Ctrl-C may come twice: from the terminal, and from a process that waits for this process.
_SAME_SIGNAL_S = 0.25

# The latest interrupt. Other code may replace or drop the exception.
arrived: Interrupted | None = None
_last: tuple[int, float] = 0, 0.0
_held = 0


class Interrupted(KeyboardInterrupt):
    """A signal asked this process to end."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def handle(handler: Callable[[int, FrameType | None], None] | int) -> None:
    """Set the handler for all `INTERRUPTING` signals, except ignored ones (nohup)."""
    for number in INTERRUPTING:
        if _signal.getsignal(number) != _signal.SIG_IGN:
            _signal.signal(number, handler)


def interrupt(number: int, frame: FrameType | None) -> None:
    """Raise `Interrupted`, now or at the end of a `deferred` block."""
    global _last, arrived
    now = time.monotonic()
    before, _last = _last, (number, now)
    if number != before[0] or now - before[1] > _SAME_SIGNAL_S:
        arrived = Interrupted(number)
        if not _held:
            raise arrived


@contextmanager
def deferred() -> Iterator[None]:
    """Defer `Interrupted` to the end of a block. Other threads than the main thread receive no signals."""
    global _held
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = arrived
    _held += 1
    try:
        yield
    finally:
        _held -= 1
    if arrived is not None and arrived is not before:
        raise arrived


def exit_code() -> int:
    """Return the exit code of this process, which was interrupted."""
    return EXIT_CODE_BASE + (arrived.number if arrived is not None else int(_signal.SIGINT))


def hold() -> None:
    """Ignore all further interrupts, since this process ends."""
    global _held
    _held += 1


def kill_when_closed(pipe: int, owner: int) -> None:
    """Let Linux kill a process, or a process group ``-owner``, when the other end of a pipe is closed.

    Only one process holds the other end, so the pipe closes when the process ends. ``pipe`` is the reading end,
    and must stay open in the killed process (fcntl(2): F_SETOWN, F_SETSIG, O_ASYNC).
    """
    import fcntl

    fcntl.fcntl(pipe, fcntl.F_SETOWN, owner)
    fcntl.fcntl(pipe, fcntl.F_SETSIG, KILL)
    fcntl.fcntl(pipe, fcntl.F_SETFL, fcntl.fcntl(pipe, fcntl.F_GETFL) | os.O_ASYNC)


def signal_name(number: int) -> str:
    """Return the name of a signal, such as 'SIGSEGV', or of a Windows exception."""
    from signal import Signals

    try:
        return Signals(number).name
    except ValueError:
        return f"signal {number}" if number < 0x100 else f"exception {number:#010x}"
