"""Command output: messages, tables and log lines, in colour on a terminal and plain elsewhere.

The standard streams escape control characters.
"""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Callable, Container, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import TYPE_CHECKING, TextIO

from scenario_runner.errors import FileError, ScenarioRunnerError, UsageError, log
from scenario_runner.errors.diagnostic import Diagnostic
from scenario_runner.errors.text import Span, one_line, visible
from scenario_runner.files.input import is_stream, read_file

if TYPE_CHECKING:
    from logging import LogRecord

    from scenario_runner.cli.terminal import Terminal

_LONGEST_LINE, _MOST_LINES = 4000, 200
_QUOTED = ("SR-JSON", "SR-EXPECT")
"""The codes of findings with a line of the file."""
_QUOTED_BEFORE, _LARGEST_QUOTED_BYTES = 50, 1 << 20
_OF_SHADER = re.compile(r"[^\n]+: shader '[^\n]*': ")
_folder = ""  # the current folder, which messages leave out
_STYLES = {"error": "bold red", "warning": "yellow", "info": "cyan", "debug": "dim"}


def show_error(error: ScenarioRunnerError) -> None:
    """Print every problem of an error on standard error."""
    for problem in error.problems:
        write_finding(problem)


def write(label: str, text: str, help: str | None = None) -> None:
    """Print ``label: text`` on standard error, and the help on the next line."""
    _show(sys.stderr, (f"{label}:", _STYLES.get(label, "bold")), f" {_readable(_relative(text))}")
    if help:
        _show(sys.stderr, (f"  help: {_readable(_relative(help))}", "green"))


def write_finding(finding: Diagnostic) -> None:
    """Print a finding with severity, code, source line and help. The place of a shader's error comes first."""
    text, place = str(finding), ""
    if finding.code.startswith("SR-SHADER") and _OF_SHADER.match(finding.message):
        text, place = finding.message, str(finding._replace(message="")).rstrip(": ")
    first, _, rest = text.partition("\n")
    code = f" [{finding.code}]" if finding.code and finding.code != UsageError.code else ""
    lines = [f"{first}{code}", rest, _quoted(finding), f"  in {place}" if place else ""]
    write(finding.severity, "\n".join(filter(None, lines)), finding.help)


def _quoted(finding: Diagnostic) -> str:
    """Return the line of a JSON file with a mark below the column, or "" for other findings."""
    path, line, column = finding.path, finding.line, finding.column
    if path is None or line is None or column is None or not finding.code.startswith(_QUOTED) or is_stream(path):
        return ""
    with suppress(OSError, ValueError, IndexError, ScenarioRunnerError):
        text = read_file(path, _LARGEST_QUOTED_BYTES).decode("utf-8-sig").split("\n")[line - 1]
        start = max(0, column - _QUOTED_BEFORE)
        shown = text[start : start + 2 * _QUOTED_BEFORE].rstrip().replace("\t", " ")
        return f"{line:>5} | {shown}\n      | {' ' * (column - 1 - start)}^"
    return ""


def keep_absolute_paths(words: Iterable[str]) -> None:
    """Show absolute paths in messages if the command line has an absolute path into the current folder."""
    global _folder
    with suppress(OSError):
        folder = os.path.join(os.getcwd(), "")
        _folder = "" if len(folder) < 2 or any(folder in word for word in words) else folder


def _relative(text: str) -> str:
    """Remove the current folder from the paths in a message."""
    if not _folder or _folder not in text:
        return text
    return re.sub(rf"(?<![^\s'\"(=,:]){re.escape(_folder)}(?=[^/\s])", "", text)


def show(*spans: Span) -> None:
    """Print texts as a line on standard output. A terminal shows the styles."""
    _show(sys.stdout, *spans)


def _show(stream: TextIO | None, *spans: Span) -> None:
    console = terminal(stream)
    if console is not None:
        console.show(*spans)
    elif stream is not None:
        print("".join(span if isinstance(span, str) else span[0] for span in spans), file=stream)


def show_table(
    rows: Sequence[Sequence[object]],
    *,
    right: Container[int] = (),
    indent: int = 2,
    heading: str = "bold",
    most: int | None = None,
) -> None:
    """Print a table; the first row is the heading. Columns numbered ``right`` are right-aligned.

    After ``most`` rows, a last line counts the others.
    """
    shown = rows if most is None else rows[: most + 1]
    texts = [[one_line(str(cell)) for cell in row] for row in shown]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    formats = [f"{{:{'>' if column in right else '<'}{width}}}" for column, width in enumerate(widths)]
    for number, row in enumerate(texts):
        show(" " * indent, ("  ".join(formats).format(*row).rstrip(), "" if number else heading))
    if len(rows) > len(shown):
        print(f"{' ' * indent}and {len(rows) - len(shown)} more")


def show_first(lines: Sequence[str], most: int, indent: str = "") -> None:
    """Print the first ``most`` lines, and count the rest."""
    for line in lines[:most]:
        print(indent + line)
    if len(lines) > most:
        print(f"{indent}and {len(lines) - most} more")


def _readable(text: str) -> str:
    """Shorten a message to a readable length. Indent later lines, so that none looks like a new message."""
    if "\n" not in text:
        return one_line(text, _LONGEST_LINE)
    first, *lines = (one_line(line, _LONGEST_LINE) for line in text.split("\n", _MOST_LINES)[:_MOST_LINES])
    return "\n".join([first, *(line if line.startswith("  ") else f"  {line}" for line in lines)])


def terminal(stream: TextIO | None) -> Terminal | None:
    """Return a terminal for a stream, None for a file, a pipe or a closed stream."""
    if stream is None or stream.closed or not stream.isatty():
        return None
    from scenario_runner.cli.terminal import Terminal

    return Terminal(stream)


def live(stream: TextIO | None, rows: Callable[[], Iterable[Iterable[Span]]]) -> AbstractContextManager[object]:
    """Keep rows below the other lines of a terminal while a block runs. Other streams show nothing."""
    console = terminal(stream)
    return nullcontext() if console is None else console.live(rows)


def read_standard_input() -> bytes:
    """Read all of standard input. Raises FileError."""
    try:
        return sys.stdin.buffer.read()
    except (OSError, AttributeError) as error:
        raise FileError("standard input cannot be read") from error


def set_up_logging(level: str | None, *, lines: bool = False) -> None:
    """Print records of the library's log on standard error, from ``level`` on (None: warnings).

    With ``lines`` and the level "info", records get the reference runner's form, with time and level. Scripts read this
    form from standard output; errors still go to standard error.
    """
    if level in ("debug", "info"):
        _listen(level, lines and level == "info")
    else:
        log.before_first_record(lambda: _listen(level or "warning", False))


def _listen(level: str, lines: bool) -> None:
    import logging

    formatter = logging.Formatter("%(asctime)s [Scenario-Runner] %(levelname)s: %(message)s")

    class Handler(logging.Handler):
        def emit(self, record: LogRecord) -> None:
            problem = record.args[0] if isinstance(record.args, tuple) and record.args else None
            help = getattr(problem, "help", None)
            if not lines:
                write(record.levelname.lower(), record.getMessage(), help)
                return
            stream = sys.stderr if record.levelno >= logging.ERROR else sys.stdout
            print(_readable(formatter.format(record)), *([f"  help: {help}"] if help else []), sep="\n", file=stream)

    logger = logging.getLogger("scenario_runner")
    logger.handlers[:] = [Handler()]
    logger.setLevel(level.upper())
    logger.propagate = False


class VisibleStream(io.TextIOWrapper):
    """A text stream that escapes control characters. In a GitHub job it also escapes workflow commands."""

    def write(self, text: str) -> int:
        shown = visible(text)
        if ("::" in shown or "##[" in shown) and "GITHUB_ACTIONS" in os.environ:
            lines = shown.replace("##[", r"#\x23[").split("\n")
            begins = [line.lstrip().startswith("::") for line in lines]
            shown = "\n".join(line.replace("::", r"\x3a:", begin) for line, begin in zip(lines, begins, strict=True))
        super().write(shown)
        return len(text)

    def write_styled(self, text: str) -> int:
        """Write text without escaping, for our own colours and commands."""
        return super().write(text)


def set_up_streams() -> None:
    """Replace the standard streams by `VisibleStream` objects. A closed stream stays None."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper):
            encoding, by_line, at_once = stream.encoding, stream.line_buffering, stream.write_through
            # "backslashreplace" escapes letters that the encoding lacks
            new = VisibleStream(stream.detach(), encoding, "backslashreplace", None, by_line, at_once)
            setattr(sys, name, new)
