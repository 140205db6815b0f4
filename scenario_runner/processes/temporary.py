"""Temporary files and folders. Their names are noted before they are made, and say which process makes them.

A process removes its unfinished files when it ends, whatever interrupts it. Later processes remove the files of killed
ones. A name is ``<prefix><host>-<process id>-<start time>-<random><suffix>``. ``host`` stands for one
boot of one machine and one PID namespace of it, so that containers and other machines with the same file system are
told apart; the start time tells a process from a later one with the same id.
"""

import atexit
import os
import stat
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

# Age at which files of another machine, or of this one before its last start, are removed: their process may live.
_FOREIGN_AGE_S = 24 * 3600
_UNKNOWN = "0"

_FOLDER_PREFIX = "scenario-runner-"
_PREFIX, _SUFFIX = ".new-", ".tmp"
_OPEN_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)

_owner: tuple[int, str] = 0, ""
_list, _is_listed = -1, False
_cleaned: set[tuple[str, str]] = set()
# The paths to remove when this process ends, in the order in which they were made, and the function for each.
_made: dict[str, Callable[[str], object]] = {}

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_made.clear)


def create_file(folder: str, mode: int = 0o666) -> tuple[str, int]:
    """Make a file in ``folder``; returns its path and descriptor. Raises OSError."""
    path = file_name(folder)
    try:
        return path, os.open(path, _OPEN_FLAGS, mode)
    except BaseException:
        remove(path)
        raise


def file_name(folder: str) -> str:
    """Note a name for a new file in ``folder``. It is short: its target's may be as long as the file system allows."""
    path = os.path.join(folder, f"{_PREFIX}{owner()}-{os.urandom(6).hex()}{_SUFFIX}")
    note(path)
    return path


def note(path: str, remover: Callable[[str], object] = os.unlink) -> None:
    """Have ``path``, which is about to be made, removed when this process ends, unless `keep` or `remove` is called."""
    global _is_listed
    _made[path] = remover
    if _list >= 0:
        _is_listed = True
        os.write(_list, os.fsencode(path) + b"\0")


def list_in(descriptor: int) -> None:
    """Note all paths in a file too: whoever kills this process calls `remove_listed`."""
    global _list
    _list = descriptor


def forget_listed() -> None:
    """Empty that file while there is nothing to remove."""
    global _is_listed
    if _is_listed and not _made:
        _is_listed = False
        os.ftruncate(_list, 0)


def remove_listed(path: str) -> None:
    """Remove the temporary files that a process has listed in the file at ``path``. The process has ended."""
    try:
        with open(path, "rb") as file:
            paths = list(map(os.fsdecode, file.read().split(b"\0")))
    except OSError:
        return
    for each in reversed(paths):
        is_temporary = os.path.basename(each).startswith((_PREFIX, _FOLDER_PREFIX))
        with suppress(OSError):
            if not os.path.isdir(each):
                if is_temporary:
                    os.unlink(each)
            elif is_temporary:
                _remove_folder(each)
            else:
                os.rmdir(each)  # one that was made for files which did not come


def keep(path: str) -> None:
    """Let ``path`` stay, or forget it where it has another name now."""
    _made.pop(path, None)


def remove(path: str) -> None:
    """Remove a noted path, if it is there."""
    remover = _made.get(path)
    if remover is None:
        return
    try:
        remover(path)
    except FileNotFoundError:
        pass  # it was not made, or somebody else removed it
    except OSError:
        return  # a folder that still has a file of ours, which goes later
    _made.pop(path, None)


@atexit.register
def remove_all() -> None:
    """Remove all that is still noted, the last one first."""
    for path in reversed(list(_made)):
        remove(path)


def make_folder(parent: str | None = None) -> str:
    """Make a folder in ``parent``, by default a private one among the system's temporary files, which stays until this
    process ends. Folders of killed processes are removed. Raises OSError."""
    import tempfile

    prefix, suffix, mode = (_FOLDER_PREFIX, "", 0o700) if parent is None else (_PREFIX, _SUFFIX, 0o777)
    parent = parent or tempfile.gettempdir()
    remove_stale(parent, prefix)
    path = os.path.join(parent, f"{prefix}{owner()}-{os.urandom(6).hex()}{suffix}")
    note(path, _remove_folder)
    os.mkdir(path, mode)
    return path


@contextmanager
def temporary_folder(parent: str | None = None) -> Iterator[str]:
    """Make a folder as `make_folder` does, and remove it at the end of the block unless it has another name by then.
    Raises OSError."""
    path = make_folder(parent)
    try:
        yield path
    finally:
        remove(path)


def owner() -> str:
    """Return the part of a name that stands for this process."""
    global _owner
    process_id = os.getpid()
    if _owner[0] != process_id:  # also after a fork
        _owner = process_id, f"{_host()}-{process_id}-{_start_of(process_id) or _UNKNOWN}"
    return _owner[1]


def remove_stale(folder: str, prefix: str = _PREFIX) -> None:
    """Remove the files and folders directly in ``folder`` with such names that this user's dead processes left, once
    in the life of this process. Files of others stay."""
    if (folder, prefix) in _cleaned:
        return
    _cleaned.add((folder, prefix))
    suffix = _SUFFIX if prefix == _PREFIX else ""
    try:
        names = [name for name in os.listdir(folder) if name.startswith(prefix) and name.endswith(suffix)]
    except OSError:
        return
    for name in names:
        path = os.path.join(folder, name)
        try:
            status = os.stat(path, follow_symlinks=False)
            # Only our own: other users' processes may be hidden from us, and would look dead.
            user = os.geteuid() if hasattr(os, "geteuid") else 0  # as os.stat has it on Windows
            if status.st_uid == user and _is_over(name[len(prefix) :], status.st_mtime):
                (_remove_folder if stat.S_ISDIR(status.st_mode) else os.unlink)(path)
        except OSError:
            pass  # another process removes it as well


def _is_over(rest: str, changed_s: float) -> bool:
    """Return whether the process that a name (without its prefix) stands for has ended."""
    parts = rest.split("-")
    if len(parts) != 4 or not (parts[1].isdecimal() and parts[2].isdecimal()):
        return False  # somebody else's
    host, process_id, start, _ = parts
    if host == _host() != _UNKNOWN:
        return _start_of(int(process_id)) != start
    return time.time() - changed_s > _FOREIGN_AGE_S


def _host() -> str:
    """8 hexadecimal digits for this boot and PID namespace; "0" where they are not to be had."""
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
    """Return the start of a process, in clock ticks since boot; "" when there is none, or one that has ended."""
    try:
        with open(f"/proc/{process_id}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in (b"Z", b"X") else fields[19].decode()


def _remove_folder(path: str) -> None:
    import shutil

    shutil.rmtree(path, ignore_errors=True)
