"""One line about the work of this process when a driver crashes it: no other process waits for its end."""

import os
import sys
from contextlib import suppress
from typing import Any, Final

from scenario_runner.processes import progress

FATAL: Final = {11: "SIGSEGV", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE", 4: "SIGILL"}  # numbers of Linux
_LONGEST_S: Final = 1

subject = ""
"""The file that the line begins with."""
_kept: list[Any] = []


def announce_crashes() -> None:
    """Have a crash of this process write one line. The process still ends by the signal."""
    if sys.platform != "linux":
        return
    import _signal  # type: ignore[import-not-found]  # see signals.py
    import ctypes

    libc = ctypes.CDLL(None)
    libc.signal.restype = ctypes.c_void_p
    libc.signal.argtypes = ctypes.c_int, ctypes.c_void_p
    before: dict[int, Any] = {}

    def crashed(number: int) -> None:
        _signal.alarm(_LONGEST_S)  # the driver may hold a lock that Python needs
        libc.signal(number, before[number])
        what, pointer, _ = progress.work()
        place = "".join(f"{part}: " for part in (subject, pointer) if part)
        line = f"error: {place}the process that ran it was ended by {FATAL[number]} while {what or 'starting'}\n"
        with suppress(OSError):
            os.write(2, line.encode(errors="backslashreplace"))
        os.kill(os.getpid(), number)

    progress.share()
    handler = ctypes.CFUNCTYPE(None, ctypes.c_int)(crashed)
    _kept.append(handler)  # callbacks live as long as this reference
    for number in FATAL:
        before[number] = libc.signal(number, ctypes.cast(handler, ctypes.c_void_p))
