"""The line of a source that an error is about, with a mark below the column."""

from __future__ import annotations

import re

from scenario_runner.errors import ScenarioRunnerError
from scenario_runner.shaders.request import CompileRequest
from scenario_runner.shaders.source import read_source

_MOST_CHARACTERS = 100
_QUOTED = re.compile(r"'([^']+)'")


class SourceLines:
    """The lines of the files of one shader; each file is read again when it is first asked for."""

    def __init__(self, request: CompileRequest) -> None:
        self._request = request
        self._files: dict[str, list[str]] = {}

    def shown(self, path: str, number: int, column: int | None, message: str) -> tuple[list[str], int | None]:
        """The line ``number`` (from 1) of ``path`` with a mark where the error is, nothing where there is no such line;
        and the column of the mark (from 1), where it is known.

        A compiler that gives no column names the word that is wrong in quotes as a rule: where the line has it once,
        or near the column, it is marked.
        """
        lines = self._lines(path)
        if not 0 < number <= len(lines) or not lines[number - 1].strip():
            return [], column
        line = "".join(each if each.isprintable() else " " for each in lines[number - 1])
        start, length = _marked(line, column, message)
        first = max(0, (start or 0) - _MOST_CHARACTERS // 2) if len(line) > _MOST_CHARACTERS else 0
        margin = f"{number:5} | "
        shown = [margin + line[first : first + _MOST_CHARACTERS].rstrip()]
        if start is not None:
            shown.append(" " * (len(margin) - 2) + "| " + " " * (start - first) + "^" + "~" * min(length - 1, 40))
        return shown, column if start is None else start + 1

    def _lines(self, path: str) -> list[str]:
        if path not in self._files:
            request = self._request
            text: bytes | str = b""
            if path == request.place and request.path is None:
                text = request.source or ""
            else:
                try:
                    text = read_source(request.path if path == request.place and request.path is not None else path)
                except ScenarioRunnerError:
                    pass  # gone, or a name that a #line directive made up
            decoded = text if isinstance(text, str) else text.decode(errors="replace")
            self._files[path] = re.split(r"\r\n|\r|\n", decoded)
        return self._files[path]


def _marked(line: str, column: int | None, message: str) -> tuple[int | None, int]:
    """Where the mark begins, from 0, and how long it is."""
    word = _QUOTED.match(message)
    if word:
        places = [found.start() for found in re.finditer(rf"(?<!\w){re.escape(word[1])}(?!\w)", line)]
        if not places and not word[1].isidentifier():
            places = [found.start() for found in re.finditer(re.escape(word[1]), line)]
        if len(places) == 1 or (places and column is not None):
            return min(places, key=lambda place: abs(place + 1 - (column or 1))), len(word[1])
    if column is not None and 0 < column <= len(line) + 1:
        lengths = [len(each) for each in _QUOTED.findall(message) if line.startswith(each, column - 1)]
        return column - 1, max(lengths, default=1)
    return None, 1
