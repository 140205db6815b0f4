"""System limits for threads and processes, and the error for a refused thread or process."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator

from scenario_runner.errors import LimitError

_FILES_OF_PROCESS = 6  # pipes to a process during the start


def start(thread: threading.Thread) -> None:
    """Start a thread. Raises LimitError if the system refuses the thread."""
    try:
        thread.start()
    except RuntimeError as error:  # "can't start new thread" is all that Python says
        raise refusal("thread") from error


def processors() -> int:
    """Return the number of processors for this process. A container may limit them."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    for folder in control_groups("cpu"):
        try:
            with open(f"{folder}/cpu.max", encoding="ascii") as file:  # "max 100000" or microseconds of a period
                quota, period = file.read().split()
            count = min(count, max(1, int(quota) // int(period)))
        except (OSError, ValueError, ZeroDivisionError):
            continue
    return count


def refusal(what: str) -> LimitError:
    """Make the error about a refused ``what`` ('thread' or 'process'), with the exceeded limit or all known limits."""
    known = list(_limits())
    limits = [limit for limit in known if limit[1] + limit[3] > limit[2]] or known
    named = "; ".join(f"{name}: {used} of {most} in use, {more} more asked for" for name, used, most, more in limits)
    return LimitError(
        f"the system refuses to start another {what}" + (f" ({named})" if named else ""),
        help="raise the limit, or end other programs",
    )


def _limits() -> Iterator[tuple[str, int, int, int]]:
    """Yield the known limits for a new thread or process: name, amount in use, limit, and amount needed."""
    try:
        import resource
    except ImportError:  # not on this system
        return
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files != resource.RLIM_INFINITY:
        yield "open files (ulimit -n)", _open_files(files), files, _FILES_OF_PROCESS
    address_space, _ = resource.getrlimit(resource.RLIMIT_AS)
    stack, _ = resource.getrlimit(resource.RLIMIT_STACK)
    used = _number("/proc/self/statm")
    if address_space != resource.RLIM_INFINITY and used is not None:
        # a thread's stack is as large as this limit, or a few MiB without a limit
        stack = 2 << 20 if stack == resource.RLIM_INFINITY else stack
        yield "bytes of address space (ulimit -v)", used * resource.getpagesize(), address_space, stack
    processes, _ = resource.getrlimit(resource.RLIMIT_NPROC)
    if processes != resource.RLIM_INFINITY:
        yield "processes and threads of this user (ulimit -u)", _threads_of_user(), processes, 1
    for folder in control_groups("pids"):
        used, most = _number(f"{folder}/pids.current"), _number(f"{folder}/pids.max")
        if used is not None and most is not None:
            yield f"processes and threads of the control group ({folder}/pids.max)", used, most, 1


def _number(path: str) -> int | None:
    """Return the number at the start of a file, or None for other text such as 'max'."""
    try:
        with open(path, encoding="ascii") as file:
            return int(file.read().split()[0])
    except (OSError, ValueError, IndexError):
        return None


def _open_files(most: int) -> int:
    """Count this process's open files. Return ``most`` if no file can be opened to count."""
    try:
        return len(os.listdir("/proc/self/fd")) - 1
    except OSError:
        return most


def _threads_of_user() -> int:
    """Count this user's threads, by the real user id, in all visible processes."""
    from glob import glob  # for an error message

    count = 0
    for path in glob("/proc/[0-9]*/status"):
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                fields = dict(line.split(":", 1) for line in file)
            if int(fields["Uid"].split()[0]) == os.getuid():
                count += int(fields["Threads"])
        except (OSError, ValueError, KeyError):
            continue  # the process has ended
    return count


def control_groups(
    controller: str, groups: str = "/proc/self/cgroup", mounted: str = "/sys/fs/cgroup"
) -> Iterator[str]:
    """Yield the folders of this process's control groups, inner groups first (cgroups(7), both versions).

    A container may not see the outer folders.
    """
    try:
        with open(groups, encoding="utf-8") as file:
            lines = file.read().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if not controllers or controller in controllers.split(","):
            root = f"{mounted}/{controllers and controller}".rstrip("/")
            folder = root + path.rstrip("/")
            while folder != root:
                yield folder
                folder = os.path.dirname(folder)
            yield root
