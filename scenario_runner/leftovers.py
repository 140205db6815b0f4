"""What processes that were killed left behind: temporary files and folders whose names say which process made them.

A name is ``<prefix><host>-<process id>-<start time>-<random><suffix>``. ``host`` stands for one boot of one machine and
one PID namespace of it, so that containers and other machines with the same file system are told apart; the start time
tells a process from a later one with the same id.
"""

from __future__ import annotations

import os

# What another machine made, or this one before it was started again, is left alone for so long: its process may live.
_FOREIGN_AGE_S = 24 * 3600
_UNKNOWN = "0"

_FOLDER_PREFIX = "scenario-runner-"

_owner: tuple[int, str] = 0, ""
_cleaned: set[tuple[str, str]] = set()


def owner() -> str:
    """The part of a name that stands for this process."""
    global _owner
    process_id = os.getpid()
    if _owner[0] != process_id:  # also after a fork
        _owner = process_id, f"{_host()}-{process_id}-{_start_of(process_id) or _UNKNOWN}"
    return _owner[1]


def folder_prefix() -> str:
    """How the name of a folder of this process begins, among the system's temporary files. What others left there is
    removed. Raises FileNotFoundError where there is no place for temporary files."""
    import tempfile

    remove_leftovers(tempfile.gettempdir(), _FOLDER_PREFIX)
    return f"{_FOLDER_PREFIX}{owner()}-"


def remove_leftovers(folder: str, prefix: str, suffix: str = "") -> None:
    """Remove the files and folders directly in ``folder`` with such names that this user's dead processes left, once
    in the life of this process. What cannot be removed stays."""
    if (folder, prefix) in _cleaned:
        return
    _cleaned.add((folder, prefix))
    try:
        names = [name for name in os.listdir(folder) if name.startswith(prefix) and name.endswith(suffix)]
    except OSError:
        return
    for name in names:
        path = os.path.join(folder, name)
        try:
            status = os.stat(path, follow_symlinks=False)
            # Only our own: other users' processes may be hidden from us, and would look dead.
            if status.st_uid == _user_id() and _is_over(name[len(prefix) :], status.st_mtime):
                _remove(path, status.st_mode)
        except OSError:
            pass  # another process removes it as well


def _is_over(rest: str, changed_s: float) -> bool:
    """Whether the process that a name (without its prefix) stands for has ended."""
    parts = rest.split("-")
    if len(parts) != 4 or not (parts[1].isdecimal() and parts[2].isdecimal()):
        return False  # somebody else's
    host, process_id, start, _ = parts
    if host == _host() != _UNKNOWN:
        return _start_of(int(process_id)) != start
    import time

    return time.time() - changed_s > _FOREIGN_AGE_S


def _host() -> str:
    """8 hexadecimal digits for this boot and PID namespace; "0" where they are not to be had."""
    import zlib

    try:
        with open("/proc/sys/kernel/random/boot_id", "rb") as file:
            boot = file.read()
        namespace = os.stat("/proc/self/ns/pid").st_ino
        if int(os.readlink("/proc/self")) != os.getpid():
            return _UNKNOWN  # a /proc of another namespace
    except OSError:
        return _UNKNOWN
    return f"{zlib.crc32(boot + str(namespace).encode()):08x}"


def _start_of(process_id: int) -> str:
    """When a process began, in clock ticks since boot; "" when there is none, or one that has ended."""
    try:
        with open(f"/proc/{process_id}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in (b"Z", b"X") else fields[19].decode()


def _user_id() -> int:
    return os.geteuid() if hasattr(os, "geteuid") else 0  # as os.stat has it on Windows


def _remove(path: str, mode: int) -> None:
    import stat

    if not stat.S_ISDIR(mode):
        os.unlink(path)
        return
    import shutil

    shutil.rmtree(path, ignore_errors=True)
