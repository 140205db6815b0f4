"""The memory of this machine, which is a software device's own: how much there still is, and getting it at once."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

_MEMINFO = "/proc/meminfo"
_GROUPS_OF_PROCESS = "/proc/self/cgroup"
_GROUPS = "/sys/fs/cgroup"
_NO_LIMIT_BYTES = 1 << 60  # the first version of control groups has a number for it
_MADV_POPULATE_WRITE = 23  # Linux 5.14
_PAGE_SIZE_BYTES = 4096
_SMALLEST_BYTES = 1 << 20


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


class Group(NamedTuple):
    """The files of a control group that bounds memory: its limit, what is used, and what that consists of."""

    limit: str
    used: str
    parts: str


@cache
def _groups() -> tuple[Group, ...]:
    return tuple(groups_of(_GROUPS_OF_PROCESS, _GROUPS))


def groups_of(process: str, root: str) -> Iterator[Group]:
    """The control groups of a process (``/proc/<pid>/cgroup``) and those around them, of both versions."""
    try:
        with open(process, encoding="utf-8") as file:
            lines = [line.rstrip("\n").split(":", 2) for line in file]
    except (OSError, ValueError):
        return
    for _, controllers, path in (line for line in lines if len(line) == 3):
        if not controllers:
            folder, limit, used = root, "memory.max", "memory.current"
        elif "memory" in controllers.split(","):
            folder, limit, used = os.path.join(root, "memory"), "memory.limit_in_bytes", "memory.usage_in_bytes"
        else:
            continue
        names = path.strip("/").split("/") if path.strip("/") else []
        for count in range(len(names), -1, -1):
            group = os.path.join(folder, *names[:count])
            if os.path.isfile(os.path.join(group, limit)):
                yield Group(*(os.path.join(group, name) for name in (limit, used, "memory.stat")))


def left_in(group: Group) -> int | None:
    """The memory in bytes that a group has left; None where it has no limit."""
    try:
        with open(group.limit, encoding="ascii") as file:
            limit = int(file.read())
        if limit >= _NO_LIMIT_BYTES:
            return None
        with open(group.used, encoding="ascii") as file:
            left = limit - int(file.read())
        with open(group.parts, encoding="ascii") as parts:
            amounts = dict(line.split() for line in parts)
    except (OSError, ValueError):  # "max": no limit
        return None
    prefix = "total_" if "total_inactive_file" in amounts else ""
    files = (int(amounts.get(f"{prefix}{state}_file", 0)) for state in ("active", "inactive"))
    return max(0, left + sum(files))  # the system drops cached files where programs need memory


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
