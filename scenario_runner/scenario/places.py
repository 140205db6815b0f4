"""Where in the text a JSON pointer leads. Standard library only."""

from __future__ import annotations

from scenario_runner.scenario.syntax import line_and_column, scan

NO_FILE = "<text>"
"""What messages call a text that came from no file."""


class Places:
    """Finds the line and column of pointers in one valid JSON text.

    The first question finds the offsets of all entries of the top-level arrays; each one then reads a single entry.
    """

    __slots__ = ("_entry", "_inside", "_starts", "_text", "_top")

    def __init__(self, text: str) -> None:
        self._text = text
        self._top: dict[str, tuple[int, int]] = {}
        self._starts: dict[str, list[int]] = {}
        self._entry = ""
        self._inside: dict[str, tuple[int, int]] = {}

    def find(self, pointer: str, *, key: bool = False) -> tuple[int, int]:
        """Line and column of a value, or with ``key`` of its key. A pointer that leads nowhere means its parent."""
        while True:
            offsets = self._offsets(pointer)
            if offsets is not None:
                return line_and_column(self._text, offsets[0 if key else 1])
            pointer = pointer.rpartition("/")[0]
            key = False

    def _offsets(self, pointer: str) -> tuple[int, int] | None:
        """Offsets of a key and its value."""
        if not self._top:
            scan(self._text, self._remember_entry)
        if pointer.count("/") < 2:
            return self._top.get(pointer)
        _, top, index, *_ = pointer.split("/", 3)
        starts = self._starts.get(top, ())
        if not index.isdecimal() or int(index) >= len(starts):
            return None
        entry = f"/{top}/{index}"
        if entry != self._entry:
            self._inside = {}
            scan(self._text, self._remember_inside, start=starts[int(index)], pointer=entry)
            self._entry = entry
        return self._inside.get(pointer)

    def _remember_entry(self, pointer: str, key_at: int, value_at: int) -> None:
        depth = pointer.count("/")
        if depth < 2:
            self._top[pointer] = (key_at, value_at)
        elif depth == 2:
            self._starts.setdefault(pointer.split("/", 2)[1], []).append(value_at)

    def _remember_inside(self, pointer: str, key_at: int, value_at: int) -> None:
        self._inside[pointer] = (key_at, value_at)
