"""Keeping a file from being changed while it is mapped.

A file that is cut short while it is mapped ends the process by SIGBUS, and one that is overwritten changes under the
reader. A read lease (Linux, fcntl(2)) makes whoever wants to open the file for writing wait until it is given back, at
most for /proc/sys/fs/lease-break-time (45 s).
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scenario_runner.files.source import SourceFile


@contextmanager
def lease(file: SourceFile) -> Iterator[bool]:
    """Hold a read lease on an open file as long as the block runs; gives whether the system granted it.

    It does not on the files of other users (except to root), on files that are open for writing, on some file systems,
    and outside of Linux.
    """
    try:
        import fcntl

        # The kernel announces waiting writers by a signal. The usual one, SIGIO, would end the process; this one is
        # ignored by default.
        fcntl.fcntl(file.descriptor, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(file.descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except (ImportError, AttributeError, OSError):
        yield False
        return
    try:
        yield True
    finally:
        with suppress(OSError):
            fcntl.fcntl(file.descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
