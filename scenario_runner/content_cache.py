"""Things made at some cost, by what they were made from, in the user's cache folder; safe under concurrent processes.

An entry holds the whole key beside the value, and a hit needs the key to be equal byte for byte. So the file's name
needs only a checksum of the key, no cryptographic hash (whose import costs more than a hit), and a clash of names is a
miss, never a wrong value.

Entry: 8 bytes magic, u64 key size, u64 value size, u32 CRC-32 of the value (little endian), the key, the value.
"""

from __future__ import annotations

import os
import sys
import time
import zlib

_MAGIC = b"SRCACHE1"
_HEADER = 28
_SUFFIX = ".entry"
_TOUCH_AFTER_S = 24 * 3600
_STALE_TEMPORARY_S = 3600

_warned: set[str] = set()


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


class ContentCache:
    """Values under ``folder`` of ``root`` (by default `default_cache_dir`), bounded in number and size.

    Nothing here raises because of the file system: a folder that cannot be read or written is a cache that never hits,
    which is logged once.
    """

    def __init__(self, root: str | None, folder: str, *, max_entries: int, max_total_bytes: int) -> None:
        self.root = default_cache_dir() if root is None else root
        self.folder = os.path.join(self.root, folder)
        self._max_entries = max_entries
        self._max_total_bytes = max_total_bytes

    def path(self, key: bytes) -> str:
        """Where the entry of ``key`` is kept."""
        name = f"{zlib.crc32(key):08x}{zlib.adler32(key):08x}{len(key):x}{_SUFFIX}"
        return os.path.join(self.folder, name)

    def load(self, key: bytes) -> bytes | None:
        """The value made from ``key``; None when there is none, or its entry is damaged."""
        path = self.path(key)
        try:
            with open(path, "rb", buffering=0) as file:
                status = os.fstat(file.fileno())
                if not _HEADER + len(key) < status.st_size <= self._max_total_bytes:
                    return None
                data = file.read()
        except (OSError, ValueError):
            return None
        start = _HEADER + len(key)
        value = data[start:]
        if (
            data[:8] != _MAGIC
            or int.from_bytes(data[8:16], "little") != len(key)
            or int.from_bytes(data[16:24], "little") != len(value)
            or data[_HEADER:start] != key
            or int.from_bytes(data[24:28], "little") != zlib.crc32(value)
        ):
            return None
        if time.time() - status.st_mtime > _TOUCH_AFTER_S:  # eviction goes by last use, to a day
            try:
                os.utime(path)
            except OSError:
                pass
        return value

    def store(self, key: bytes, value: bytes) -> None:
        """Keep ``value`` as what ``key`` makes."""
        sizes = len(key).to_bytes(8, "little") + len(value).to_bytes(8, "little")
        self.write(self.path(key), _MAGIC + sizes + zlib.crc32(value).to_bytes(4, "little") + key + value)

    def write(self, path: str, data: bytes) -> None:
        """Replace the file ``path`` under the root as a whole."""
        temporary = f"{path}.{os.getpid()}-{time.time_ns():x}.tmp"
        try:
            os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
            try:
                with open(temporary, "xb") as file:
                    file.write(data)
                os.replace(temporary, path)
            except BaseException:
                try:
                    os.unlink(temporary)
                except OSError:
                    pass
                raise
        except (OSError, ValueError) as error:
            self._warn(error)

    def evict(self) -> None:
        """Drop the entries used longest ago while there are too many, down to three quarters. Called after writing."""
        now = time.time()
        entries: list[tuple[float, int, str]] = []
        try:
            with os.scandir(self.folder) as scan:
                for item in scan:
                    status = item.stat(follow_symlinks=False)
                    if item.name.endswith(_SUFFIX):
                        entries.append((status.st_mtime, status.st_size, item.path))
                    elif item.name.endswith(".tmp") and now - status.st_mtime > _STALE_TEMPORARY_S:
                        os.unlink(item.path)
        except OSError:
            return  # another process evicts as well, or there is no folder
        total = sum(size for _, size, _ in entries)
        if len(entries) <= self._max_entries and total <= self._max_total_bytes:
            return
        entries.sort()
        left = len(entries)
        for _, size, path in entries:
            if left <= self._max_entries * 3 // 4 and total <= self._max_total_bytes * 3 // 4:
                break
            try:
                os.unlink(path)
            except OSError:
                pass
            left -= 1
            total -= size

    def _warn(self, error: Exception) -> None:
        if self.root in _warned:
            return
        _warned.add(self.root)
        from scenario_runner import log

        log.warning(__name__, "nothing is kept for the next run: cannot write %r: %s", self.root, error)
