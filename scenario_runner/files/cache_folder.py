"""The user's cache folder with values by key, which several processes may use at once.

An entry holds the key beside the value, and a hit needs an equal key. So a checksum of the key is enough to find an
entry: two keys with the same checksum cause a miss, never a wrong value. Importing a cryptographic hash would take
longer than a hit.

Entries are trusted like code: nothing checks a plan before a device executes it. The checksum finds damage, not
forgery. So the cache only uses folders and files that belong to this user and that no other user may write.

Entry: 8 bytes magic, u64 key size, u64 value size, u32 CRC-32 of the value (little endian), the key, the value.
"""

import os
import re
import stat
import sys
import time
import zlib
from collections.abc import Collection
from io import FileIO
from typing import NamedTuple

from scenario_runner.errors import log
from scenario_runner.processes import temporary


class Kind(NamedTuple):
    """The suffix of a kind's files, and the most files and bytes to keep."""

    suffix: str
    most_files: int
    most_bytes: int


# Kinds of files by folder name.
KINDS = {
    "plans": Kind(".entry", 128, 256 << 20),
    "shaders": Kind(".entry", 128, 256 << 20),
    "checked": Kind(".entry", 128, 256 << 20),
    "pipelines": Kind(".cache", 2048, 256 << 20),
    "contents": Kind(".content", 100_000, 8 << 30),
}

LIMIT_VARIABLE = "SCENARIO_RUNNER_CACHE_SIZE"
_SIZE = re.compile(r"(\d{1,15})\s*([kmgt]?)(?:i?b)?", re.IGNORECASE)
_SHIFTS = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}
_STALE_TEMPORARY_S = 3600


class KeptFile(NamedTuple):
    """A cached file; ``used_s`` is the time of the last use in seconds since 1970, accurate to a day."""

    used_s: float
    size_bytes: int
    path: str


def kept_files(root: str, kind: str) -> list[KeptFile]:
    """List the files of a kind below ``root``; none if the folder is unreadable.

    Remove temporary files after an hour.
    """
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


def enforce_limits(root: str, kind: str) -> None:
    """Remove the least recently used files above the kind's limit, then files of all kinds above the user's limit.

    Callers do so after writing.
    """
    _shrink(kept_files(root, kind), KINDS[kind].most_files, KINDS[kind].most_bytes)
    limit = limit_bytes()
    if limit is not None:
        files = [file for name in KINDS for file in kept_files(root, name)]
        _shrink(files, len(files), limit)
    elif os.environ.get(LIMIT_VARIABLE):
        log.warning(__name__, "%s is not a size such as 500M or 2G, and is ignored", LIMIT_VARIABLE)


def _shrink(files: list[KeptFile], most_files: int, most_bytes: int) -> None:
    """Remove the least recently used files, down to three quarters of an exceeded limit."""
    files = sorted(files)
    total = sum(file.size_bytes for file in files)
    fewest = most_files * 3 // 4 if len(files) > most_files else len(files)
    smallest = most_bytes * 3 // 4 if total > most_bytes else total
    while len(files) > fewest or total > smallest:
        oldest = files.pop(0)
        remove([oldest])
        total -= oldest.size_bytes


def remove(files: Collection[KeptFile]) -> list[str]:
    """Remove files. Return an error for each file that could not be removed."""
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
    """Read SCENARIO_RUNNER_CACHE_SIZE, such as 500M or 2G; None if it is unset or not a size."""
    text = os.environ.get(LIMIT_VARIABLE, "").strip()
    match = _SIZE.fullmatch(text)
    return int(match[1]) << _SHIFTS[match[2].lower()] if match else None


_MAGIC = b"SRCACHE1"
_HEADER_BYTES = 28
_TOUCH_AFTER_S = 24 * 3600

_OPEN_FLAGS = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH

_warned: set[str] = set()


def default_cache_dir() -> str:
    """Return SCENARIO_RUNNER_CACHE, or ``scenario-runner`` in the platform's folder for caches."""
    chosen = os.environ.get("SCENARIO_RUNNER_CACHE")
    if chosen:
        return chosen
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or os.path.expanduser("~\\AppData\\Local")
    elif sys.platform == "darwin":
        base = os.path.expanduser("~/Library/Caches")
    else:
        base = os.environ.get("XDG_CACHE_HOME", "")
        if not os.path.isabs(base):  # the XDG specification ignores relative paths
            base = os.path.expanduser("~/.cache")
    return os.path.join(base, "scenario-runner")


def reason_to_distrust(status: os.stat_result) -> str:
    """Explain why a file or folder is not trusted; empty if only this user may write it."""
    if not hasattr(os, "geteuid"):
        return ""  # on Windows, folders for caches are private
    if status.st_uid != os.geteuid():
        return f"it belongs to the user with the id {status.st_uid}, not to {os.geteuid()}"
    return "other users may write to it" if status.st_mode & _OTHERS_WRITE else ""


def is_trusted(folder: str) -> bool:
    """Return whether only this user may write a folder, or it does not exist yet. Otherwise log a warning once."""
    try:
        reason = reason_to_distrust(os.stat(folder))
    except (OSError, ValueError):
        return True  # using the folder gives an error
    if reason:
        advice = "remove it, chmod it to 700, or name another by SCENARIO_RUNNER_CACHE"
        _warn_once(folder, "the cache folder %r is ignored: %s (%s)", folder, reason, advice)
    return not reason


def _warn_once(folder: str, message: str, *arguments: object) -> None:
    if folder not in _warned:
        _warned.add(folder)
        log.warning(__name__, message, *arguments)


def read_own(path: str, most_bytes: int) -> tuple[bytes, float]:
    """Read a file that only this user can have written. Return the content, and the time of writing.

    Raises OSError or ValueError for an unreadable or untrusted file.
    """
    descriptor = _open_own(path, os.O_RDONLY)
    try:
        status = os.fstat(descriptor)
        if status.st_size > most_bytes:
            raise OSError(f"it has {status.st_size} bytes, expected at most {most_bytes}")
        return os.read(descriptor, status.st_size), status.st_mtime
    finally:
        os.close(descriptor)


def _open_own(path: str, flags: int) -> int:
    """Open a file that only this user can have written. Raises OSError or ValueError."""
    descriptor = os.open(path, flags | _OPEN_FLAGS, 0o600)  # does not wait for the other end of a pipe
    try:
        status = os.fstat(descriptor)
        reason = reason_to_distrust(status) if stat.S_ISREG(status.st_mode) else "it is not a regular file"
        if reason:
            raise OSError(reason)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def touch(path: str, modified_s: float) -> None:
    """Note the use of a file, at most once a day. Eviction starts with the least recently used file."""
    if time.time() - modified_s > _TOUCH_AFTER_S:
        try:
            os.utime(path)
        except OSError:
            pass


def replace_own(path: str, data: bytes) -> None:
    """Replace a file by a private file of this user. Raises OSError or ValueError."""
    new, descriptor = temporary.create_file(os.path.dirname(path), 0o600)
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
        os.replace(new, path)
        temporary.keep(new)
    finally:
        temporary.remove(new)


def _head(key: bytes, value: bytes) -> bytes:
    """Encode the part of an entry before the value."""
    sizes = len(key).to_bytes(8, "little") + len(value).to_bytes(8, "little")
    return _MAGIC + sizes + zlib.crc32(value).to_bytes(4, "little") + key


def _value_in(entry: bytes, key: bytes) -> bytes | None:
    """Return the value in an entry; None if the entry is damaged or has another key."""
    value = entry[_HEADER_BYTES + len(key) :]
    return value if entry[: len(entry) - len(value)] == _head(key, value) else None


# The files of a cache.
_PACKS = 64
# A slot has the checksum of a key (8 bytes), and place and size of the entry (36 and 28 bits). The checksum chooses
# the first of several slots for a key.
_SLOTS, _SLOT_BYTES, _SLOTS_OF_KEY = 2048, 16, 8
_INDEX_BYTES = (_SLOTS + _SLOTS_OF_KEY) * _SLOT_BYTES
_SIZE_BITS = 28
# The limits are enforced once for so many bytes in a pack, and so after 16 MiB in all packs.
_BYTES_BETWEEN_LOOKS = 256 << 10


class ContentCache:
    """A cache folder for one of the `KINDS` of values. ``root`` is the parent folder, by default `default_cache_dir`.

    A file is a pack: an index of slots, then the entries in the order of storing. Making a file for each entry would
    take longer than planning a small scenario. No method raises errors of the file system. If the folder cannot be
    read or written, the cache never hits. A log message says so once.
    """

    def __init__(self, root: str | None, kind: str) -> None:
        self.root = default_cache_dir() if root is None else root
        self.folder = os.path.join(self.root, kind)
        self._kind = kind

    def path(self, key: bytes) -> str:
        """Return the path of the pack for ``key``."""
        return os.path.join(self.folder, f"{zlib.crc32(key) % _PACKS:02x}{KINDS[self._kind].suffix}")

    def load(self, key: bytes) -> bytes | None:
        """Return the value for ``key``; None if there is no undamaged entry."""
        path = self.path(key)
        if not (is_trusted(self.root) and is_trusted(self.folder)):
            return None
        try:
            with open(path, "rb", buffering=0, opener=_open_own) as pack:
                _, place, size_bytes = _find_slot(pack, key)
                pack.seek(place)
                value = _value_in(pack.read(size_bytes), key) if place else None
                touch(path, os.fstat(pack.fileno()).st_mtime)
                return value
        except (OSError, ValueError):
            return None

    def store(self, key: bytes, value: bytes) -> None:
        """Store the value for ``key``."""
        path, entry = self.path(key), _head(key, value) + value
        if len(entry) >> _SIZE_BITS:
            return
        for _ in range(2):
            if not (is_trusted(self.root) and is_trusted(self.folder)) or self._append(path, key, entry):
                return
            self._make(path)  # the pack is missing or damaged

    def _append(self, path: str, key: bytes, entry: bytes) -> bool:
        """Append an entry to a pack. Return False for a missing or damaged pack."""
        try:
            with (
                open(path, "r+b", buffering=0, opener=_open_own) as index,
                open(path, "ab", buffering=0, opener=_open_own) as end,
            ):
                if os.fstat(index.fileno()).st_size < _INDEX_BYTES or end.write(entry) < len(entry):
                    return False
                place = end.tell() - len(entry)  # other processes append, too
                index.seek(_find_slot(index, key)[0])
                numbers = _checksum(key), place << _SIZE_BITS | len(entry)
                index.write(b"".join(number.to_bytes(8, "little") for number in numbers))
        except (OSError, ValueError):
            return False
        if place // _BYTES_BETWEEN_LOOKS != (place + len(entry)) // _BYTES_BETWEEN_LOOKS:
            self.evict()
        return True

    def _make(self, path: str) -> None:
        """Make a pack without entries."""
        try:
            for folder in (self.root, self.folder):
                os.makedirs(folder, mode=0o700, exist_ok=True)
                if not is_trusted(folder):
                    return
            replace_own(path, bytes(_INDEX_BYTES))
        except (OSError, ValueError) as error:
            reason = (getattr(error, "strerror", None) or str(error)).lower()
            _warn_once(self.root, "nothing is kept for the next run: cannot write %r: %s", self.root, reason)

    def evict(self) -> None:
        """Drop the least recently used packs above the limits. Call it after storing few values that cost much."""
        enforce_limits(self.root, self._kind)


def _checksum(key: bytes) -> int:
    return zlib.adler32(key) << 32 | zlib.crc32(key)


def _find_slot(pack: FileIO, key: bytes) -> tuple[int, int, int]:
    """Find the slot of a key. Return its offset, and place and size of the entry: 0 for a key without an entry."""
    checksum = _checksum(key)
    first = checksum // _PACKS % _SLOTS * _SLOT_BYTES
    pack.seek(first)
    slots = pack.read(_SLOTS_OF_KEY * _SLOT_BYTES)
    for offset in range(0, len(slots), _SLOT_BYTES):
        known, place = (int.from_bytes(slots[at : at + 8], "little") for at in (offset, offset + 8))
        if known == checksum:
            return first + offset, place >> _SIZE_BITS, place & (1 << _SIZE_BITS) - 1
        if not known:
            return first + offset, 0, 0
    return first, 0, 0
