"""The program on a system that has less than Linux: ``python -m tests.robustness.other_system [arguments]``.

Modules and functions of Unix and of Linux are missing, and so are /proc and /sys. Without arguments all modules of the
package are imported, and their number is printed.
"""

import ctypes  # noqa: F401  these are imported while the platform has its name
import importlib
import multiprocessing  # noqa: F401
import os
import pkgutil
import runpy
import shutil  # noqa: F401
import subprocess  # noqa: F401
import sys
import sysconfig
import tempfile  # noqa: F401
from typing import Any

MODULES = {"fcntl", "grp", "pty", "pwd", "resource", "syslog", "termios", "tty"}
FUNCTIONS = (
    *("fork", "forkpty", "memfd_create", "pidfd_open", "posix_fadvise", "posix_fallocate", "posix_spawn"),
    *("register_at_fork", "sched_getaffinity"),
)
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
    """Take away what other systems lack."""
    sysconfig.get_config_vars()
    sys.meta_path.insert(0, Missing)  # type: ignore[arg-type]
    for name in MODULES:
        sys.modules.pop(name, None)
    for name in FUNCTIONS:
        if hasattr(os, name):
            delattr(os, name)
    sys.addaudithook(hide_folders)
    sys.platform = "freebsd14"


if __name__ == "__main__":
    reduce_system()
    if len(sys.argv) > 1:
        runpy.run_module("scenario_runner", run_name="__main__", alter_sys=True)
    import scenario_runner

    modules = [
        importlib.import_module(module.name)
        for module in pkgutil.walk_packages(scenario_runner.__path__, "scenario_runner.")
        if not module.name.endswith("__main__")
    ]
    print(len(modules))
