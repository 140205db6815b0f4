"""Signals: Ctrl-C, SIGTERM and SIGHUP interrupt the run, which then cleans up; children end with their parent.

This imports `_signal`, since `signal` takes a tenth of a small run to make an enum of every name.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

# The signals that interrupt a run, and their names.
INTERRUPTING: dict[int, str] = {
    getattr(_signal, name): name for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(_signal, name)
}
# The number of SIGKILL, also where there is none: Windows takes it for an exit code.
KILL = getattr(_signal, "SIGKILL", 9)
# A shell's exit status for a process that a signal ended.
EXIT_CODE_BASE = 128
# One Ctrl-C comes twice, from the terminal and from the process that waits for this one.
_SAME_SIGNAL_S = 0.25

# The latest interrupt: foreign code may make another exception of it, or none.
arrived: Interrupted | None = None
_last: tuple[int, float] = 0, 0.0
_held = 0


class Interrupted(KeyboardInterrupt):
    """A signal asked this process to end."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def handle(handler: Callable[[int, FrameType | None], None] | int) -> None:
    """Set the handler of all `INTERRUPTING` signals, except signals that were ignored at the start (nohup)."""
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
    """Let no signal that `interrupt` handles strike inside the block; it is raised at its end.

    Signals strike the main thread only, so that the block is an ordinary one in others.
    """
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
    """Let no signal strike any more: this process ends."""
    global _held
    _held += 1


def kill_when_closed(pipe: int, owner: int) -> None:
    """Have Linux kill the process ``owner``, or the group of processes ``-owner``, when the other end of a pipe is
    closed: the process that alone holds that end is gone then.

    ``pipe`` is the reading end, and must stay open in the killed process (fcntl(2): F_SETOWN, F_SETSIG, O_ASYNC)."""
    import fcntl

    fcntl.fcntl(pipe, fcntl.F_SETOWN, owner)
    fcntl.fcntl(pipe, fcntl.F_SETSIG, KILL)
    fcntl.fcntl(pipe, fcntl.F_SETFL, fcntl.fcntl(pipe, fcntl.F_GETFL) | os.O_ASYNC)


def signal_name(number: int) -> str:
    """Return the name of a signal, such as 'SIGSEGV', or of an exception of Windows."""
    from signal import Signals

    try:
        return Signals(number).name
    except ValueError:
        return f"signal {number}" if number < 0x100 else f"exception {number:#010x}"
