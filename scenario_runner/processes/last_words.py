"""One line about the work of this process when a driver crashes it: no other process waits for its end."""

import os
import sys
from contextlib import suppress
from typing import Final

from scenario_runner.processes import progress

FATAL: Final = {11: "SIGSEGV", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE", 4: "SIGILL"}  # numbers of Linux
_LONGEST_S: Final = 1

subject = ""
"""The file that the line begins with."""
_kept: list[object] = []


def announce_crashes() -> None:
    """Have a crash of this process write one line. The process still ends by the signal."""
    if sys.platform != "linux":
        return
    import _signal  # type: ignore[import-not-found]  # see signals.py

    try:  # ctypes consists of this, and takes a millisecond longer to import
        from _ctypes import FUNCFLAG_CDECL, CFuncPtr, _SimpleCData, dlopen, dlsym
    except ImportError:  # a Python that was built without libffi
        return

    class Int(_SimpleCData):  # type: ignore[type-arg]
        _type_ = "i"

    class Pointer(_SimpleCData):  # type: ignore[type-arg]
        _type_ = "P"

    class Handler(CFuncPtr):
        _flags_, _argtypes_, _restype_ = FUNCFLAG_CDECL, (Int,), None

    class Signal(CFuncPtr):
        _flags_, _argtypes_, _restype_ = FUNCFLAG_CDECL, (Int, Pointer), Pointer

    set_handler = Signal(dlsym(dlopen("", 0), "signal"))
    before: dict[int, object] = {}

    def crashed(number: int) -> None:
        _signal.alarm(_LONGEST_S)  # the driver may hold a lock that Python needs
        set_handler(number, before[number])
        what, pointer, _ = progress.work()
        place = "".join(f"{part}: " for part in (subject, pointer) if part)
        line = f"error: {place}the process that ran it was ended by {FATAL[number]} while {what or 'starting'}\n"
        with suppress(OSError):
            os.write(2, line.encode(errors="backslashreplace"))
        os.kill(os.getpid(), number)

    progress.share()
    handler = Handler(crashed)
    _kept.append(handler)  # callbacks live as long as this reference
    for number in FATAL:
        before[number] = set_handler(number, handler)
