"""A system that calls itself macOS, for each Python with this folder in PYTHONPATH.

Modules and functions that macOS or Windows lacks are missing, and so are /proc and /sys.
"""

import _signal
import ctypes  # noqa: F401  these are imported while the platform has its name
import multiprocessing.connection  # noqa: F401
import os
import select
import selectors
import signal
import subprocess
import sys
import sysconfig
import tempfile  # noqa: F401
from types import SimpleNamespace
from typing import Any

MODULES = {"fcntl", "grp", "pty", "pwd", "resource", "syslog", "termios", "tty"}
FUNCTIONS = (
    *("fork", "forkpty", "memfd_create", "pidfd_open", "posix_fadvise", "posix_fallocate", "posix_spawn"),
    *("register_at_fork", "sched_getaffinity"),
    *("geteuid", "killpg", "pathconf", "pread", "preadv", "set_blocking", "setpgid", "statvfs"),
    *("O_ASYNC", "O_CLOEXEC"),
)
SIGNALS = ("SIGCHLD", "SIGHUP", "SIGKILL", "SIGURG", "SIGUSR1", "SIGUSR2", "pthread_sigmask")
FOLDERS = ("/proc/", "/sys/")


class Missing:
    """A finder of modules that hides some."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        """Raise ModuleNotFoundError for those."""
        if name in MODULES:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def hide_folders(event: str, arguments: tuple[Any, ...]) -> None:
    """Raise FileNotFoundError for files that only Linux has."""
    if event in ("open", "os.listdir", "os.scandir") and f"{arguments[0]}/".startswith(FOLDERS):
        raise FileNotFoundError(2, "no such file", arguments[0])


def reduce_system() -> None:
    """Remove the modules and functions that other systems lack."""
    sysconfig.get_config_vars()
    sys.meta_path.insert(0, Missing)  # type: ignore[arg-type]
    for name in MODULES:
        sys.modules.pop(name, None)
    subprocess.signal = SimpleNamespace(**vars(signal))  # type: ignore[attr-defined]  # it kills with SIGKILL here
    selectors.DefaultSelector = selectors.SelectSelector  # type: ignore[assignment, misc]
    removed = ((os, FUNCTIONS), (signal, SIGNALS), (_signal, SIGNALS), (select, ("epoll",)))
    for module, names in removed:
        for name in names:
            if hasattr(module, name):
                delattr(module, name)
    sys.addaudithook(hide_folders)
    sys.modules["_scproxy"] = SimpleNamespace(_get_proxies=dict, _get_proxy_settings=dict)  # type: ignore[assignment]
    sys.platform = "darwin"


reduce_system()
