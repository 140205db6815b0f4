"""The user's cache folder: values by the content they were made from; safe under concurrent processes.

An entry holds the whole key beside the value, and a hit needs the key to be equal byte for byte. So the file's name
needs only a checksum of the key, no cryptographic hash (whose import costs more than a hit), and a clash of names is a
miss, never a wrong value.

Entries are trusted: a plan says what a device runs, and is not checked, as code is not. The checksum finds damage, not
forgery. So only folders and files are used that belong to this user and that no other user may write to.

Entry: 8 bytes magic, u64 key size, u64 value size, u32 CRC-32 of the value (little endian), the key, the value.
"""

import os
import re
import stat
import sys
import time
import zlib
from collections.abc import Collection
from typing import NamedTuple

from scenario_runner.errors import log
from scenario_runner.processes import temporary


class Kind(NamedTuple):
    """The ending of a kind's files, and how many files and bytes of it are kept."""

    suffix: str
    most_files: int
    most_bytes: int


# Each kind of file, by the name of its folder.
KINDS = {
    # those of a suite must all fit: of one that is a little larger none would be found again
    "plans": Kind(".entry", 16384, 256 << 20),
    "shaders": Kind(".entry", 4096, 256 << 20),
    "checked": Kind(".entry", 4096, 256 << 20),
    "pipelines": Kind(".cache", 2048, 256 << 20),
    "contents": Kind(".content", 100_000, 8 << 30),
}

LIMIT_VARIABLE = "SCENARIO_RUNNER_CACHE_SIZE"
_SIZE = re.compile(r"(\d{1,15})\s*([kmgt]?)(?:i?b)?", re.IGNORECASE)
_SHIFTS = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}
_STALE_TEMPORARY_S = 3600


class KeptFile(NamedTuple):
    """One file; ``used_s`` is when it was written or last used, to a day (seconds since 1970)."""

    used_s: float
    size_bytes: int
    path: str


def kept_files(root: str, kind: str) -> list[KeptFile]:
    """The files of a kind below ``root``; none where the folder cannot be read. Temporary files of processes that ended
    an hour ago or longer are removed."""
    files = []
    now = time.time()
    try:
        with os.scandir(os.path.join(root, kind)) as scan:
            for item in scan:
                try:
                    status = item.stat(follow_symlinks=False)
                    if item.name.endswith(KINDS[kind].suffix):
                        files.append(KeptFile(status.st_mtime, status.st_size, item.path))
                    elif item.name.endswith(".tmp") and now - status.st_mtime > _STALE_TEMPORARY_S:
                        os.unlink(item.path)
                except FileNotFoundError:
                    pass  # another process removes files as well
    except OSError:
        pass
    return files


def bound(root: str, kind: str) -> None:
    """Remove the files of a kind that were used longest ago where there are too many, and those of all kinds where the
    user's limit is exceeded. Called after writing."""
    _shrink(kept_files(root, kind), KINDS[kind].most_files, KINDS[kind].most_bytes)
    limit = limit_bytes()
    if limit is not None:
        files = [file for name in KINDS for file in kept_files(root, name)]
        _shrink(files, len(files), limit)
    elif os.environ.get(LIMIT_VARIABLE):
        log.warning(__name__, "%s is not a size such as 500M or 2G, and is ignored", LIMIT_VARIABLE)


def _shrink(files: list[KeptFile], most_files: int, most_bytes: int) -> None:
    """Remove the files used longest ago, down to three quarters of what is exceeded."""
    files = sorted(files)
    total = sum(file.size_bytes for file in files)
    fewest = most_files * 3 // 4 if len(files) > most_files else len(files)
    smallest = most_bytes * 3 // 4 if total > most_bytes else total
    while len(files) > fewest or total > smallest:
        oldest = files.pop(0)
        remove([oldest])
        total -= oldest.size_bytes


def remove(files: Collection[KeptFile]) -> list[str]:
    """Remove files; returns what could not be removed, and why."""
    problems = []
    for file in files:
        try:
            os.unlink(file.path)
        except FileNotFoundError:
            pass
        except OSError as error:
            problems.append(f"{file.path}: {error.strerror}")
    return problems


def limit_bytes() -> int | None:
    """SCENARIO_RUNNER_CACHE_SIZE, such as 500M or 2G; None where it is not set, or is not a size."""
    text = os.environ.get(LIMIT_VARIABLE, "").strip()
    match = _SIZE.fullmatch(text)
    return int(match[1]) << _SHIFTS[match[2].lower()] if match else None


_MAGIC = b"SRCACHE1"
_HEADER_BYTES = 28
_TOUCH_AFTER_S = 24 * 3600

_OPEN_FLAGS = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH

_warned: set[str] = set()
_trusted: set[str] = set()


def default_cache_dir() -> str:
    """SCENARIO_RUNNER_CACHE, else ``scenario-runner`` in the platform's folder for caches."""
    chosen = os.environ.get("SCENARIO_RUNNER_CACHE")
    if chosen:
        return chosen
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or os.path.expanduser("~\\AppData\\Local")
    elif sys.platform == "darwin":
        base = os.path.expanduser("~/Library/Caches")
    else:
        base = os.environ.get("XDG_CACHE_HOME", "")
        if not os.path.isabs(base):  # the XDG specification has relative ones ignored
            base = os.path.expanduser("~/.cache")
    return os.path.join(base, "scenario-runner")


def distrust(status: os.stat_result) -> str:
    """The reason to distrust what a file or folder holds; empty where it is this user's alone."""
    if not hasattr(os, "geteuid"):
        return ""  # Windows keeps the folders for caches to their users
    if status.st_uid != os.geteuid():
        return f"it belongs to the user with the id {status.st_uid}, not to {os.geteuid()}"
    return "other users may write to it" if status.st_mode & _OTHERS_WRITE else ""


def is_trusted(folder: str) -> bool:
    """Return whether a folder of a cache is this user's alone, or does not exist yet; if not, a warning is logged
    once."""
    if folder in _trusted:
        return True
    try:
        reason = distrust(os.stat(folder))
    except (OSError, ValueError):
        return True  # whoever wants to use it will see
    if not reason:
        _trusted.add(folder)
    else:
        advice = "remove it, chmod it to 700, or name another by SCENARIO_RUNNER_CACHE"
        _warn_once(folder, "the cache folder %r is ignored: %s (%s)", folder, reason, advice)
    return not reason


def _warn_once(folder: str, message: str, *arguments: object) -> None:
    if folder not in _warned:
        _warned.add(folder)
        log.warning(__name__, message, *arguments)


def read_own(path: str, most_bytes: int) -> tuple[bytes, float]:
    """The content of a file that only this user can have written, and when that was (seconds since 1970).

    Raises OSError or ValueError for one that cannot be opened, and OSError for another file.
    """
    descriptor = os.open(path, _OPEN_FLAGS)  # which does not wait for the other end of a pipe
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError("it is not a regular file")
        if status.st_size > most_bytes:
            raise OSError(f"it has {status.st_size} bytes, of {most_bytes} at most")
        reason = distrust(status)
        if reason:
            raise OSError(reason)
        return os.read(descriptor, status.st_size), status.st_mtime
    finally:
        os.close(descriptor)


def touch(path: str, modified_s: float) -> None:
    """Make a file that was used one that is kept: eviction goes by last use, to a day."""
    if time.time() - modified_s > _TOUCH_AFTER_S:
        try:
            os.utime(path)
        except OSError:
            pass


def replace_own(path: str, data: bytes) -> None:
    """Replace a file as a whole by one that only this user may read and write. Raises OSError or ValueError."""
    new, descriptor = temporary.create_file(os.path.dirname(path), 0o600)
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
        os.replace(new, path)
        temporary.keep(new)
    finally:
        temporary.remove(new)


def _head(key: bytes, value: bytes) -> bytes:
    """The part of an entry before the value."""
    sizes = len(key).to_bytes(8, "little") + len(value).to_bytes(8, "little")
    return _MAGIC + sizes + zlib.crc32(value).to_bytes(4, "little") + key


class ContentCache:
    """Values of one of `KINDS` below ``root`` (by default `default_cache_dir`).

    Nothing here raises because of the file system: a folder that cannot be read or written is a cache that never hits,
    which is logged once.
    """

    def __init__(self, root: str | None, kind: str) -> None:
        self.root = default_cache_dir() if root is None else root
        self.folder = os.path.join(self.root, kind)
        self._kind = kind

    def path(self, key: bytes) -> str:
        """The path of the entry of ``key``."""
        name = f"{zlib.crc32(key):08x}{zlib.adler32(key):08x}{len(key):x}{KINDS[self._kind].suffix}"
        return os.path.join(self.folder, name)

    def load(self, key: bytes) -> bytes | None:
        """The value made from ``key``; None when there is none, or its entry is damaged."""
        path = self.path(key)
        entry = self.read(path, KINDS[self._kind].most_bytes)
        if entry is None:
            return None
        data, modified_s = entry
        value = data[_HEADER_BYTES + len(key) :]
        if data[: len(data) - len(value)] != _head(key, value):
            return None
        touch(path, modified_s)
        return value

    def read(self, path: str, most_bytes: int) -> tuple[bytes, float] | None:
        """The content of the file ``path`` under the root and when it was written (seconds since 1970).

        None where it is not a file of at most ``most_bytes`` that only this user can have written.
        """
        if not (is_trusted(self.root) and is_trusted(os.path.dirname(path))):
            return None
        try:
            return read_own(path, most_bytes)
        except (OSError, ValueError):
            return None

    def store(self, key: bytes, value: bytes) -> None:
        """Keep ``value`` as what ``key`` makes."""
        self.write(self.path(key), _head(key, value) + value)

    def write(self, path: str, data: bytes) -> None:
        """Replace the file ``path`` under the root as a whole."""
        try:
            for folder in dict.fromkeys((self.root, os.path.dirname(path))):
                os.makedirs(folder, mode=0o700, exist_ok=True)
                if not is_trusted(folder):
                    return
            replace_own(path, data)
        except (OSError, ValueError) as error:
            reason = (getattr(error, "strerror", None) or str(error)).lower()
            _warn_once(self.root, "nothing is kept for the next run: cannot write %r: %s", self.root, reason)

    def evict(self) -> None:
        """Drop the entries used longest ago while there are too many, down to three quarters. Called after writing."""
        bound(self.root, self._kind)
