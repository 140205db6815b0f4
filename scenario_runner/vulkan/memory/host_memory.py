"""The memory of this machine, which is a software device's own: how much there still is, and getting it at once."""

from __future__ import annotations

import os
from functools import cache
from typing import Any

from scenario_runner.system_limits import control_groups

_MEMINFO = "/proc/meminfo"
_MADV_POPULATE_WRITE = 23  # Linux 5.14
_PAGE_SIZE_BYTES = 4096
_SMALLEST_BYTES = 1 << 20
_NO_LIMIT_BYTES = 1 << 60  # the first version of control groups has a number for it


def available_bytes() -> int | None:
    """Memory that programs can still be given, within the limits of containers and of jobs on a cluster; None where
    that cannot be told.

    A software device hands out more than there is, and dies using it.
    """
    found = [amount for amount in (_of_machine(), *map(left_in, _groups())) if amount is not None]
    return min(found, default=None)


def _of_machine() -> int | None:
    try:
        with open(_MEMINFO, encoding="ascii") as file:
            for line in file:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    return None


@cache
def _groups() -> tuple[str, ...]:
    return tuple(folder for folder in control_groups("memory") if left_in(folder) is not None)


def left_in(group: str) -> int | None:
    """The memory in bytes that the control group with this folder has left; None where it has no limit."""
    is_first = os.path.exists(f"{group}/memory.limit_in_bytes")
    names = ("limit_in_bytes", "usage_in_bytes") if is_first else ("max", "current")
    try:
        limit, used = (int(_text(f"{group}/memory.{name}")) for name in names)
        amounts = dict(line.split() for line in _text(f"{group}/memory.stat").splitlines())
    except (OSError, ValueError):  # "max": no limit
        return None
    if limit >= _NO_LIMIT_BYTES:
        return None
    prefix = "total_" if is_first else ""
    files = sum(int(amounts.get(f"{prefix}{state}_file", 0)) for state in ("active", "inactive"))
    return max(0, limit - used + files)  # the system drops cached files where programs need memory


def _text(path: str) -> str:
    with open(path, encoding="ascii") as file:
        return file.read()


def populate(view: memoryview) -> None:
    """Have the system provide the pages of ``view`` now: one call is cheaper than a fault for each page.

    What the pages hold stays. Only an aid: where the system does not know it, or for little memory, it does nothing.
    """
    if view.nbytes < _SMALLEST_BYTES:
        return
    import ctypes

    start = ctypes.addressof(ctypes.c_char.from_buffer(view))
    first = -(-start // _PAGE_SIZE_BYTES) * _PAGE_SIZE_BYTES
    end = (start + view.nbytes) // _PAGE_SIZE_BYTES * _PAGE_SIZE_BYTES
    madvise = _madvise()
    if madvise is not None:
        madvise(first, end - first, _MADV_POPULATE_WRITE)


@cache
def _madvise() -> Any:
    """The C library's function; None where it has none."""
    import ctypes

    function = getattr(ctypes.CDLL(None), "madvise", None)
    if function is not None:
        function.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    return function
