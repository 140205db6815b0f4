"""Turns compilers' messages about a shader into one problem, with places in the user's files and their source lines.

A shader that compiles without a warning needs nothing of this module.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, partial
from typing import NamedTuple

from scenario_runner.errors import log
from scenario_runner.errors.diagnostic import Diagnostic
from scenario_runner.shaders.compilers.table import SOURCE_NAME, MessageStyle
from scenario_runner.shaders.source import FIRST_FILE, OPTIONS_FILE, ShaderSource

_MAX_ERRORS = 1000
_MAX_LINE = 500
_MOST_CHARACTERS = 100
_QUOTED = re.compile(r"'([^']+)'")


def _lines(source: ShaderSource, path: str) -> list[str]:
    """Return the lines of a file of a shader; empty for a name that a #line directive made up."""
    if path not in source.files:
        return []
    text = source.contents[source.files.index(path)].decode(errors="replace")
    return re.split(r"\r\n|\r|\n", text)


def _quoted_line(message: _Message, lines_of: Callable[[str], list[str]]) -> tuple[list[str], int | None]:
    """Return the line of a message with a mark below the error, and the column of the mark (from 1) if known.

    There is nothing to quote if the file lacks the line. A compiler without columns mostly quotes the wrong word: the
    word is marked if the line has it once, or near the column.
    """
    number, column = message.line or 0, message.column
    lines = lines_of(message.file) if message.file is not None else []
    if not 0 < number <= len(lines) or not lines[number - 1].strip():
        return [], column
    line = "".join(character if character.isprintable() else " " for character in lines[number - 1])
    start, length = _marked(line, column, message.text)
    first = max(0, (start or 0) - _MOST_CHARACTERS // 2) if len(line) > _MOST_CHARACTERS else 0
    margin = f"{number:5} | "
    shown = [margin + line[first : first + _MOST_CHARACTERS].rstrip()]
    if start is not None:
        shown.append(" " * (len(margin) - 2) + "| " + " " * (start - first) + "^" + "~" * min(length - 1, 40))
    return shown, column if start is None else start + 1


def _marked(line: str, column: int | None, message: str) -> tuple[int | None, int]:
    """Find the start of the mark (from 0) and its length."""
    word = _QUOTED.match(message)
    if word:
        places = [match.start() for match in re.finditer(rf"(?<!\w){re.escape(word[1])}(?!\w)", line)]
        if not places and not word[1].isidentifier():
            places = [match.start() for match in re.finditer(re.escape(word[1]), line)]
        if len(places) == 1 or (places and column is not None):
            return min(places, key=lambda place: abs(place + 1 - (column or 1))), len(word[1])
    if column is not None and 0 < column <= len(line) + 1:
        lengths = [len(word) for word in _QUOTED.findall(message) if line.startswith(word, column - 1)]
        return column - 1, max(lengths, default=1)
    return None, 1


def log_warnings(source: ShaderSource, output: str, style: MessageStyle) -> None:
    """Log a compiler's messages about a compiled shader, with the names of the user's files."""
    names, message = _names(source), re.compile(style.message)
    lines = output.strip()[:2000].splitlines()
    for index, line in enumerate(lines):
        match = message.fullmatch(line)
        if match:
            file = names.get(match["file"], match["file"])
            lines[index] = line[: match.start("file")] + file + line[match.end("file") :]
    log.warning(__name__, "%s: the compiler warns: %s", source.request.place, "\n".join(lines))


def _names(source: ShaderSource) -> dict[str, str]:
    """Map compilers' names of files to the user's files."""
    names = {SOURCE_NAME: source.files[0], "0": source.files[0], str(OPTIONS_FILE): "build_options"}
    return names | {str(FIRST_FILE + index): name for index, name in enumerate(source.files)}


class _Message(NamedTuple):
    """An error of a compiler; without a place if it names none."""

    text: str
    file: str | None = None
    line: int | None = None
    column: int | None = None

    @property
    def at(self) -> str:
        """The place, for the start of a sentence."""
        place = "".join(f"{part}:" for part in (self.file, self.line, self.column) if part is not None)
        return f"{place} " if place else ""

    def and_more(self, text: str) -> _Message:
        """Append a line."""
        return self._replace(text=f"{self.text}\n  {text}")


def _messages(output: str, names: dict[str, str], style: MessageStyle) -> list[_Message]:
    """Parse the errors that a compiler printed, each once, with the names of the user's files; at least one."""
    messages: list[_Message] = []
    reason = ""
    message, noise = re.compile(style.message), re.compile(style.noise)
    warned = False
    for whole in _without_echoes(output, message) if style.echoes else output.splitlines():
        line = whole.strip()[:_MAX_LINE]
        match = message.fullmatch(line)
        if noise.fullmatch(line):
            reason = reason or (line.removeprefix("ERROR:").strip() if line.startswith("ERROR: Linking") else "")
        elif match:
            severity, column = match["severity"].lower(), int(match["column"][:9]) if match["column"] else None
            file = names.get(match["file"], match["file"])
            new = _Message(match["text"].strip(), file, int(match["line"][:9]), column)
            if severity == "note":
                if messages and not warned:
                    messages[-1] = messages[-1].and_more(f"{new.at}note: {new.text}")
                continue
            warned = severity == "warning" and style.echoes  # its notes and source lines follow
            if severity != "warning":
                messages.append(new)
        elif warned or line in ("", SOURCE_NAME):  # glslang's echo of the file name
            continue
        elif messages and not line.startswith(("ERROR:", "WARNING:")):
            messages[-1] = messages[-1].and_more(line)  # such as the name in a linker message
        elif not line.startswith("WARNING:"):
            messages.append(_Message(line.removeprefix("ERROR:").removeprefix("error:").strip()))
    return list(dict.fromkeys(messages)) or [_Message(reason or "the compiler gave no reason")]


def compile_problem(source: ShaderSource, output: str, style: MessageStyle) -> Diagnostic:
    """Make one problem from a compiler's messages: the place, text and source line of the first error, then the
    others."""
    first, *others = _messages(output, _names(source), style)
    if first.file == "build_options":
        first = first._replace(text=f"in build_options: {first.text}", file=None, line=None)
    request, lines_of = source.request, cache(partial(_lines, source))
    shown, column = _quoted_line(first, lines_of)
    lines = [f"{request.who}{first.text}", *shown]
    for other in others[: _MAX_ERRORS - 1]:
        quoted, at_column = _quoted_line(other, lines_of)
        lines += [f"  {other._replace(column=at_column).at}{other.text}", *quoted]
    if len(others) >= _MAX_ERRORS:
        lines.append(f"  and {len(others) + 1 - _MAX_ERRORS} more")
    help, place = None, first.file or request.place
    if "cannot find the include file" in output and source.missing:
        dirs = ", ".join(repr(folder) for folder in request.include_dirs) or "none"
        help = f"searched: the folder of the including file, then include_dirs ({dirs}), then -I of build_options"
    line = first.line if first.line and first.line > 0 else None
    return Diagnostic("SR-SHADER-010", "error", None, "\n".join(lines), help, place, line, column)


def _without_echoes(output: str, message: re.Pattern[str]) -> list[str]:
    """Remove echoed source lines, the marks below them, and suggested insertions."""
    kept: list[str] = []
    echoing = False
    for line in output.splitlines():
        if message.fullmatch(line.strip()[:_MAX_LINE]):
            echoing = False
        elif "^" in line and not line.strip("^~ \t"):
            if kept and not message.fullmatch(kept[-1].strip()[:_MAX_LINE]):
                kept.pop()
            echoing = True
        if not echoing:
            kept.append(line)
    return kept
