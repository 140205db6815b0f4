"""A compiler's messages as a problem with places in the user's files, and the source lines that they are about."""

from __future__ import annotations

import re

from scenario_runner import log
from scenario_runner.diagnostics import Diagnostic
from scenario_runner.errors import ScenarioRunnerError
from scenario_runner.shaders.compilers import SOURCE_NAME, MessageStyle
from scenario_runner.shaders.source import FIRST_FILE, OPTIONS_FILE, Assembled, CompileRequest, read_source

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


_MAX_ERRORS = 1000
_MAX_LINE = 500


def log_warnings(request: CompileRequest, assembled: Assembled, said: str, style: MessageStyle) -> None:
    """Log what a compiler said of a shader that it compiled, where there is a warning in it, with the user's files."""
    if "WARNING:" in said or "warning:" in said:
        names, message = _names(request, assembled), re.compile(style.message)
        lines = said.strip()[:2000].splitlines()
        for index, line in enumerate(lines):
            found = message.fullmatch(line)
            if found:
                file = names.get(found["file"], found["file"])
                lines[index] = line[: found.start("file")] + file + line[found.end("file") :]
        log.warning(__name__, "%s: the compiler warns: %s", request.place, "\n".join(lines))


def _names(request: CompileRequest, assembled: Assembled) -> dict[str, str]:
    """The user's files by what compilers call them."""
    names = {SOURCE_NAME: request.place, "0": request.place, str(OPTIONS_FILE): "build_options"}
    return names | {str(FIRST_FILE + index): name for index, name in enumerate(assembled.files)}


def compile_problem(request: CompileRequest, assembled: Assembled, output: str, style: MessageStyle) -> Diagnostic:
    """What a compiler wrote in its ``style``, as one problem: the first error's place, text and source line; the
    further ones follow, with theirs."""
    names = _names(request, assembled)
    said: list[tuple[str | None, int | None, int | None, str]] = []
    noise: list[str] = []
    message, noisy = re.compile(style.message), re.compile(style.noise)
    warned = False
    for line in _without_echoes(output, message) if style.echoes else output.splitlines():
        line = line.strip()[:_MAX_LINE]
        if line == SOURCE_NAME or not line:  # glslang's echo of the file name
            continue
        found = message.fullmatch(line)
        if noisy.fullmatch(line):
            noise.append(line)
        elif found:
            severity = found["severity"].lower()
            file, at_line = names.get(found["file"], found["file"]), int(found["line"][:9])
            at_column = int(found["column"][:9]) if found["column"] else None
            if severity == "note":
                if said and not warned:
                    at = f"{file}:{at_line}:" + ("" if at_column is None else f"{at_column}:")
                    said[-1] = (*said[-1][:3], f"{said[-1][3]}\n  {at} note: {found['text'].strip()}")
                continue
            warned = severity == "warning" and style.echoes  # notes about it and its source lines follow
            if severity != "warning":
                said.append((file, at_line, at_column, found["text"].strip()))
        elif said and not warned and not line.startswith(("ERROR:", "WARNING:")):
            # a continuation, such as the name a linker message is about
            said[-1] = (*said[-1][:3], f"{said[-1][3]}\n  {line}")
        elif not warned and not line.startswith("WARNING:"):
            said.append((None, None, None, line.removeprefix("ERROR:").removeprefix("error:").strip()))
    if not said:
        reasons = [line.removeprefix("ERROR:").strip() for line in noise if line.startswith("ERROR: Linking")]
        text = next(iter(reasons), "the compiler gave no reason")
        said.append((None, None, None, text))
    said = list(dict.fromkeys(said))
    path, number, column, text = said[0]
    number = number if number is None or number > 0 else None
    source = SourceLines(request)
    shown: list[str] = []
    if path == "build_options":
        path, number, text = request.place, None, f"in build_options: {text}"
    elif path is not None and number is not None:
        shown, column = source.shown(path, number, column, text)
    who = f"shader {request.label!r}: " if request.label else ""
    lines = [f"{who}{text}", *shown]
    for other, on, col, more in said[1:_MAX_ERRORS]:
        quoted: list[str] = []
        if other is not None and on is not None:
            quoted, col = source.shown(other, on, col, more)
        place = "" if other is None else f"{other}:{on}: " if col is None else f"{other}:{on}:{col}: "
        lines += [f"  {place}{more}", *quoted]
    if len(said) > _MAX_ERRORS:
        lines.append(f"  and {len(said) - _MAX_ERRORS} more")
    return Diagnostic(
        "SR-SHADER-010",
        "error",
        None,
        "\n".join(lines),
        _help(request, assembled, output),
        path=path or request.place,
        line=number,
        column=column,
    )


def _without_echoes(output: str, message: re.Pattern[str]) -> list[str]:
    """The lines without a line of the source, the marks below it and what could be inserted there."""
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


def _help(request: CompileRequest, assembled: Assembled, output: str) -> str | None:
    if "cannot find the include file" in output and assembled.missing:
        dirs = ", ".join(repr(folder) for folder in request.include_dirs) or "none"
        return f"searched: the folder of the including file, then include_dirs ({dirs}), then -I of build_options"
    return None
