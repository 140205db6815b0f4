"""The memory of this machine, which is a software device's own: how much there still is, and getting it at once."""

from __future__ import annotations

from functools import cache
from typing import Any

_MEMINFO = "/proc/meminfo"
_CGROUP_LIMIT = "/sys/fs/cgroup/memory.max"
_CGROUP_USED = "/sys/fs/cgroup/memory.current"
_MADV_POPULATE_WRITE = 23  # Linux 5.14
_PAGE_SIZE_BYTES = 4096
_SMALLEST_BYTES = 1 << 20


def available_bytes() -> int | None:
    """Memory that programs can still be given, within the limit of a container; None where that cannot be told.

    A software device hands out more than there is, and dies using it.
    """
    found = [amount for amount in (_of_machine(), _of_container()) if amount is not None]
    return min(found) if found else None


def _of_machine() -> int | None:
    try:
        with open(_MEMINFO, encoding="ascii") as file:
            for line in file:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    return None


def _of_container() -> int | None:
    try:
        with open(_CGROUP_LIMIT, encoding="ascii") as limit, open(_CGROUP_USED, encoding="ascii") as used:
            return max(0, int(limit.read()) - int(used.read()))
    except (OSError, ValueError):  # "max": no limit
        return None


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
