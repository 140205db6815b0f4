"""Ctrl-C, SIGTERM and SIGHUP interrupt whatever runs, which then cleans up."""

from __future__ import annotations

# What the module `signal` is made of: that one makes an enum of every name, which takes a tenth of a small run.
import _signal  # type: ignore[import-not-found]
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

INTERRUPTING: tuple[int, ...] = tuple(
    getattr(_signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(_signal, name)
)
# A shell's exit status for a process that a signal ended.
EXIT_CODE_BASE = 128
# One Ctrl-C comes twice, from the terminal and from the process that waits for this one.
_SAME_SIGNAL_S = 0.25

_last: tuple[int, float] = 0, 0.0


class Interrupted(KeyboardInterrupt):
    """A signal asked this process to end."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def handle(handler: Callable[[int, FrameType | None], None]) -> None:
    """Have ``handler`` called for each of `INTERRUPTING`, but for those that whoever started us ignores (nohup)."""
    for number in INTERRUPTING:
        if _signal.getsignal(number) != _signal.SIG_IGN:
            _signal.signal(number, handler)


def interrupt(number: int, frame: FrameType | None) -> None:
    """The handler that raises `Interrupted`."""
    global _last
    now = time.monotonic()
    before, _last = _last, (number, now)
    if number != before[0] or now - before[1] > _SAME_SIGNAL_S:
        raise Interrupted(number)
