"""What a VGF file is read from: memory, or a file on disk, of which only the parts that are asked for are read."""

from __future__ import annotations

from typing import Protocol

from scenario_runner.files.source import SourceFile


class Content(Protocol):
    """The bytes of a VGF model, which begins at ``start_bytes`` of its file.

    ``is_memory``: parts are views of memory, which cost nothing however large they are.
    """

    is_memory: bool
    start_bytes: int
    size_bytes: int

    def part(self, offset_bytes: int, size_bytes: int) -> memoryview:
        """At most ``size_bytes`` bytes from ``offset_bytes`` on, fewer where the file ends. Raises FileError."""


class MemoryContent:
    """A file that is in memory."""

    is_memory = True
    start_bytes = 0

    def __init__(self, content: bytes | bytearray | memoryview) -> None:
        self._view = memoryview(content).cast("B")
        self.size_bytes = self._view.nbytes

    def part(self, offset_bytes: int, size_bytes: int) -> memoryview:
        return self._view[offset_bytes : offset_bytes + size_bytes].toreadonly()


class DiskContent:
    """A file on disk, or a part of one.

    It is read, never mapped: a file that is cut short while it is mapped ends the process.
    """

    is_memory = False

    def __init__(self, file: SourceFile, start_bytes: int = 0, size_bytes: int | None = None) -> None:
        self._file = file
        self.start_bytes = start_bytes
        self.size_bytes = file.size_bytes if size_bytes is None else size_bytes

    def part(self, offset_bytes: int, size_bytes: int) -> memoryview:
        size_bytes = max(0, min(size_bytes, self.size_bytes - offset_bytes))
        return memoryview(self._file.read(size_bytes, self.start_bytes + offset_bytes))
