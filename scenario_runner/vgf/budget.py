"""How much one section may expand to, so that a small file cannot ask for unbounded time and memory.

A FlatBuffers vector may be shared by any number of tables: a file of 100 kB can describe billions of slots. No writer
shares vectors of numbers, so a section cannot rightly hold more elements than its bytes have room for.
"""

from __future__ import annotations

from scenario_runner.diagnostics import Diagnostic
from scenario_runner.errors import FileError

_SMALLEST_ELEMENT_BYTES = 4
# Strings may be shared (many modules called alike), hence some room.
_TEXT_FACTOR = 16


class Budget:
    """Counts the elements and the text read from one section. Not thread-safe; lives as long as one read."""

    def __init__(self, size_bytes: int, path: str, section: str) -> None:
        self._elements = size_bytes // _SMALLEST_ELEMENT_BYTES
        self._text = size_bytes * _TEXT_FACTOR
        self._path, self._section = path, section

    def elements(self, count: int) -> range:
        """``range(count)``. Raises FileError when the section would hold more elements than it has room for."""
        self._elements -= count
        if self._elements < 0:
            raise self._overdrawn("table entries")
        return range(count)

    def text(self, text: str) -> str:
        """``text`` itself. Raises FileError when the section would hold more text than it has room for."""
        self._text -= len(text)
        if self._text < 0:
            raise self._overdrawn("text")
        return text

    def code(self, view: memoryview | None) -> bytes | None:
        """A copy of ``view``. Raises FileError when the section would hold more code than it has room for."""
        if view is None:
            return None
        self._elements -= view.nbytes // _SMALLEST_ELEMENT_BYTES
        if self._elements < 0:
            raise self._overdrawn("code")
        return bytes(view)

    def _overdrawn(self, what: str) -> FileError:
        message = f"the {self._section} section describes more {what} than its bytes have room for"
        return FileError(Diagnostic("SR-FILE-013", "error", None, message, "the file is damaged", path=self._path))
