"""How much memory this machine can still give: a software device hands out more than there is, and dies using it."""

from __future__ import annotations

_MEMINFO = "/proc/meminfo"
_CGROUP_LIMIT = "/sys/fs/cgroup/memory.max"
_CGROUP_USED = "/sys/fs/cgroup/memory.current"


def available_bytes() -> int | None:
    """Memory that programs can still be given, within the limit of a container; None where that cannot be told."""
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
