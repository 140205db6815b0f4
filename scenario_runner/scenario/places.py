"""Where in the text a JSON pointer leads. Standard library only."""

from __future__ import annotations

from scenario_runner.scenario.syntax import line_and_column, scan


class Places:
    """Finds the line and column of pointers in one valid JSON text.

    The first question finds the offsets of all entries of the top-level arrays; each one then reads a single entry.
    """

    __slots__ = ("_entries", "_entry", "_inside", "_text")

    def __init__(self, text: str) -> None:
        self._text = text
        self._entries: dict[str, tuple[int, int]] | None = None
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
        entries = self._entries
        if entries is None:
            entries = self._entries = {"": (0, 0)}
            _index(self._text, entries)
        found = entries.get(pointer)
        if found is not None:
            return found
        entry = "/".join(pointer.split("/", 3)[:3])
        if entry not in entries:
            return None
        if entry != self._entry:
            inside: dict[str, tuple[int, int]] = {}

            def remember(pointer: str, key_at: int, value_at: int) -> None:
                inside[pointer] = (key_at, value_at)

            scan(self._text, remember, start=entries[entry][1], pointer=entry)
            self._entry, self._inside = entry, inside
        return self._inside.get(pointer)


def _index(text: str, entries: dict[str, tuple[int, int]]) -> None:
    def remember(pointer: str, key_at: int, value_at: int) -> None:
        if pointer.count("/") <= 2:
            entries[pointer] = (key_at, value_at)

    scan(text, remember)
