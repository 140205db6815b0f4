"""What a VGF file is read from: memory, or a file on disk, of which only the parts that are asked for are read."""

from __future__ import annotations

from typing import Protocol

from scenario_runner.files.source import SourceFile


class Content(Protocol):
    """The bytes of a VGF file. ``is_memory``: parts are views of memory, which cost nothing however large they are."""

    is_memory: bool
    size_bytes: int

    def part(self, offset_bytes: int, size_bytes: int) -> memoryview:
        """At most ``size_bytes`` bytes from ``offset_bytes`` on, fewer where the file ends. Raises FileError."""


class MemoryContent:
    """A file that is in memory."""

    is_memory = True

    def __init__(self, content: bytes | bytearray | memoryview) -> None:
        self._view = memoryview(content).cast("B")
        self.size_bytes = self._view.nbytes

    def part(self, offset_bytes: int, size_bytes: int) -> memoryview:
        return self._view[offset_bytes : offset_bytes + size_bytes].toreadonly()


class DiskContent:
    """A file on disk. It is read, never mapped: a file that is cut short while it is mapped ends the process."""

    is_memory = False

    def __init__(self, file: SourceFile) -> None:
        self._file = file
        self.size_bytes = file.size_bytes

    def part(self, offset_bytes: int, size_bytes: int) -> memoryview:
        return memoryview(self._file.read(size_bytes, offset_bytes))
