"""Processes that end with the one that started them, whatever ends that. Standard library only."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # `signal` takes milliseconds to import
import os


def kill_when_closed(pipe: int, owner: int) -> None:
    """Have Linux kill the process ``owner``, or the group of processes ``-owner``, when the other end of a pipe is
    closed: the process that alone holds that end is gone then.

    ``pipe`` is its reading end, which must stay open in what is killed (fcntl(2): F_SETOWN, F_SETSIG, O_ASYNC)."""
    import fcntl

    fcntl.fcntl(pipe, fcntl.F_SETOWN, owner)
    fcntl.fcntl(pipe, fcntl.F_SETSIG, _signal.SIGKILL)
    fcntl.fcntl(pipe, fcntl.F_SETFL, fcntl.fcntl(pipe, fcntl.F_GETFL) | os.O_ASYNC)
