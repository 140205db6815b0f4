"""Temporary files and folders. Each name is noted before the file is made, and identifies the process.

A process removes unfinished files at the end, after any interrupt. Later processes remove the files of killed
processes. A name is ``<prefix><host>-<process id>-<start time>-<random><suffix>``. ``host`` identifies a boot, a
machine and a PID namespace, for containers and machines that share a file system. The start time distinguishes a
process from a later process with the same id.
"""

import atexit
import os
import stat
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

# Age at which files from other machines or earlier boots are removed. Their processes may still run.
_FOREIGN_AGE_S = 24 * 3600
_UNKNOWN = "0"

_FOLDER_PREFIX = "scenario-runner-"
_PREFIX, _SUFFIX = ".new-", ".tmp"
_OPEN_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)

_owner: tuple[int, str] = 0, ""
_list, _is_listed = -1, False
_cleaned: set[tuple[str, str]] = set()
# Paths to remove when this process ends, in creation order, each with a function.
_made: dict[str, Callable[[str], object]] = {}

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_made.clear)


def create_file(folder: str, mode: int = 0o666) -> tuple[str, int]:
    """Make a file in a folder, and return the path and the descriptor. Raises OSError."""
    path = file_name(folder)
    try:
        return path, os.open(path, _OPEN_FLAGS, mode)
    except BaseException:
        remove(path)
        raise


def file_name(folder: str) -> str:
    """Choose and note a name for a new file in a folder. The name is short, as file systems limit names."""
    path = os.path.join(folder, f"{_PREFIX}{owner()}-{os.urandom(6).hex()}{_SUFFIX}")
    note(path)
    return path


def note(path: str, remover: Callable[[str], object] = os.unlink) -> None:
    """Note a path before it is made. At the end, this process removes the path, except after `keep` or `remove`."""
    global _is_listed
    _made[path] = remover
    if _list >= 0:
        _is_listed = True
        os.write(_list, os.fsencode(path) + b"\0")


def list_in(descriptor: int) -> None:
    """Note all paths also in a file. A process that kills this process calls `remove_listed`."""
    global _list
    _list = descriptor


def forget_listed() -> None:
    """Empty the file of `list_in`, unless temporary files remain."""
    global _is_listed
    if _is_listed and not _made:
        _is_listed = False
        os.ftruncate(_list, 0)


def remove_listed(path: str) -> None:
    """Remove the temporary files that an ended process has listed in a file."""
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
                os.rmdir(each)  # an empty folder for output files


def keep(path: str) -> None:
    """Forget a path, which stays or has another name now."""
    _made.pop(path, None)


def remove(path: str) -> None:
    """Remove a noted path, if it exists."""
    remover = _made.get(path)
    if remover is None:
        return
    try:
        remover(path)
    except FileNotFoundError:
        pass  # the path was not made, or is removed already
    except OSError:
        return  # the folder has files that will be removed later
    _made.pop(path, None)


@atexit.register
def remove_all() -> None:
    """Remove all noted paths, the last first."""
    for path in reversed(list(_made)):
        remove(path)


def make_folder(parent: str | None = None) -> str:
    """Make a folder that stays until this process ends. Raises OSError.

    Without ``parent``, the folder is private, among the system's temporary files. Folders of killed processes are
    removed.
    """
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
    """Make a folder for a block, as `make_folder` does. The block may rename the folder to keep it. Raises OSError."""
    path = make_folder(parent)
    try:
        yield path
    finally:
        remove(path)


def owner() -> str:
    """Return the name part that identifies this process."""
    global _owner
    process_id = os.getpid()
    if _owner[0] != process_id:  # also after a fork
        _owner = process_id, f"{_host()}-{process_id}-{_start_of(process_id) or _UNKNOWN}"
    return _owner[1]


def remove_stale(folder: str, prefix: str = _PREFIX) -> None:
    """Remove the files and folders that this user's dead processes left in a folder, once per process."""
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
            # Processes of other users may be hidden, and would look dead.
            user = os.geteuid() if hasattr(os, "geteuid") else 0  # os.stat says 0 on Windows
            if status.st_uid == user and _is_over(name[len(prefix) :], status.st_mtime):
                (_remove_folder if stat.S_ISDIR(status.st_mode) else os.unlink)(path)
        except OSError:
            pass  # another process removes the same file


def _is_over(rest: str, changed_s: float) -> bool:
    """Return whether the process that made a temporary name has ended. ``rest`` is the name without the prefix."""
    parts = rest.split("-")
    if len(parts) != 4 or not (parts[1].isdecimal() and parts[2].isdecimal()):
        return False  # a name of another program
    host, process_id, start, _ = parts
    if host == _host() != _UNKNOWN:
        return _start_of(int(process_id)) != start
    return time.time() - changed_s > _FOREIGN_AGE_S


def _host() -> str:
    """Return 8 hexadecimal digits for this boot and PID namespace, or "0" if the system does not tell them."""
    try:
        with open("/proc/sys/kernel/random/boot_id", "rb") as file:
            boot = file.read()
        namespace = os.stat("/proc/self/ns/pid").st_ino
        if int(os.readlink("/proc/self")) != os.getpid():
            return _UNKNOWN  # /proc belongs to another namespace
    except OSError:
        return _UNKNOWN
    return f"{zlib.crc32(boot + str(namespace).encode()):08x}"


def _start_of(process_id: int) -> str:
    """Return the start time of a process in clock ticks since boot, or "" if the process has ended."""
    try:
        with open(f"/proc/{process_id}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in (b"Z", b"X") else fields[19].decode()


def _remove_folder(path: str) -> None:
    import shutil

    shutil.rmtree(path, ignore_errors=True)
