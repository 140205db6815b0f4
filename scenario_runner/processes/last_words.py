"""A line about the current work when a driver crashes this process, which no other process watches."""

import os
import sys
from contextlib import suppress
from typing import Final

from scenario_runner.processes import progress

FATAL: Final = {11: "SIGSEGV", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE", 4: "SIGILL"}  # numbers of Linux
_LONGEST_S: Final = 1

_kept: list[object] = []


def announce_crashes(subject: str) -> None:
    """Write a line when this process crashes, with a file at its beginning. The signal still ends the process."""
    if sys.platform != "linux":
        return
    try:
        from ctypes import CDLL, CFUNCTYPE, c_int, c_void_p
    except ImportError:  # a Python that was built without libffi
        return
    libc = CDLL(None)
    set_handler = CFUNCTYPE(c_void_p, c_int, c_void_p)(("signal", libc))
    before: dict[int, object] = {}

    def crashed(number: int) -> None:
        libc.alarm(_LONGEST_S)  # the driver may hold a lock that Python needs
        set_handler(number, before[number])
        what, pointer, _ = progress.work()
        place = "".join(f"{part}: " for part in (subject, pointer) if part)
        line = f"error: {place}the process was ended by {FATAL[number]} while {what or 'starting'}\n"
        with suppress(OSError):
            os.write(2, line.encode(errors="backslashreplace"))
        os.kill(os.getpid(), number)

    progress.share()
    handler = CFUNCTYPE(None, c_int)(crashed)
    _kept.append(handler)  # the callback lives as long as this reference
    for number in FATAL:
        before[number] = set_handler(number, handler)
