"""What people see: errors, warnings and log lines; in colour on a terminal, plain elsewhere."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, TextIO

from scenario_runner import log
from scenario_runner.errors import ScenarioRunnerError

if TYPE_CHECKING:
    import logging

_STYLES = {"error": "bold red", "warning": "yellow", "info": "cyan", "debug": "dim"}


def show_error(error: ScenarioRunnerError) -> None:
    """Print every problem of an error on standard error, each with its help on a line of its own."""
    for problem in error.problems:
        write("error", str(problem), problem.help)


def write(label: str, text: str, help: str | None = None, stream: TextIO | None = None) -> None:
    """Print ``label: text`` and the help, if there is one."""
    stream = stream or sys.stderr
    if stream is None:
        return  # whoever started us closed it
    if is_terminal(stream):
        console = rich_console(stream)
        console.print(f"[{_STYLES.get(label, 'bold')}]{label}:[/]", end=" ")
        console.print(text, markup=False, highlight=False, soft_wrap=True)
        if help:
            console.print(f"  help: {help}", style="green", markup=False, highlight=False, soft_wrap=True)
        return
    print(f"{label}: {text}", file=stream)
    if help:
        print(f"  help: {help}", file=stream)


def is_terminal(stream: TextIO) -> bool:
    """Whether a stream is a terminal."""
    try:
        return stream.isatty()
    except ValueError:  # closed
        return False


def rich_console(stream: TextIO) -> Any:
    """A rich console on ``stream``; rich takes a while to import, so only terminals pay for it."""
    from rich.console import Console

    return Console(file=stream)


def set_up_logging(level: str) -> None:
    """Send what the library logs, from ``level`` on, to standard error."""
    if level in ("debug", "info"):
        _listen(level)
    else:
        log.before_first_record(lambda: _listen(level))


def _listen(level: str) -> None:
    import logging

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            problem = record.args[0] if isinstance(record.args, tuple) and record.args else None
            write(record.levelname.lower(), record.getMessage(), getattr(problem, "help", None))

    logger = logging.getLogger("scenario_runner")
    logger.handlers[:] = [Handler()]
    logger.setLevel(level.upper())
    logger.propagate = False
