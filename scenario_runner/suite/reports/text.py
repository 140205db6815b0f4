"""A result as short text: a line, or the few lines that say what is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from scenario_runner.suite.records import Outcome, OutputCheck, Result
from scenario_runner.visible import counted, one_line

WORST_MAX: Final = 5
"""How many of the worst elements the short text of an output has."""

_LAST_WORDS_MAX: Final = 5  # lines of what a process that ended badly wrote last
_DIAGNOSTICS_MAX: Final = 10
_STACK_MAX: Final = 12


def headline(result: Result) -> str:
    """The verdict, the item and the reason, in one line: 'Fail a/scenario.json: 3 of 16 elements differ'."""
    reason = "" if result.last is None else result.last.reason
    return one_line(f"{result.verdict} {result.item.id}" + (f": {reason}" if reason else ""), 2000)


def details(result: Result) -> list[str]:
    """What more there is to say about the last attempt, a few lines: the outputs that are wrong with their worst
    elements, messages, the Python stack and the driver's last words. Empty for one that passed."""
    last = result.last
    if last is None or last.status == "Pass":
        return []
    return [one_line(line) for line in _details(last)]


def seconds_text(seconds: float) -> str:
    """A time with a unit: '12 ms', '3.20 s', '4 min 05 s', '2 h 03 min'."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.2f} s"
    minutes = int(seconds) // 60
    if minutes < 60:
        return f"{minutes} min {int(seconds) % 60:02} s"
    return f"{minutes // 60} h {minutes % 60:02} min"


def number_text(value: float) -> str:
    """A metric with as many digits as a reader needs."""
    return f"{value:.6g}"


def _details(last: Outcome) -> Iterator[str]:
    for output in last.outputs:
        if output.status != "Pass":
            yield from _output(output, last.reason)
    for each in last.diagnostics[:_DIAGNOSTICS_MAX]:
        place = ":".join(str(each[part]) for part in ("path", "line", "column") if each.get(part) is not None)
        where = ": ".join(part for part in (place, each.get("pointer")) if part)
        yield (
            f"{each.get('severity', 'error')}[{each.get('code', '')}]: "
            + (f"{where}: " if where else "")
            + str(each.get("message", ""))
        )
        if each.get("help"):
            yield f"  help: {each['help']}"
    if len(last.diagnostics) > _DIAGNOSTICS_MAX:
        yield f"and {counted(len(last.diagnostics) - _DIAGNOSTICS_MAX, 'message')} more"
    if last.status in ("Crash", "Timeout"):
        if last.stack:
            yield "Python stack:"
            yield from (f"  {line}" for line in last.stack.splitlines()[:_STACK_MAX])
        if last.output:
            yield "last lines on standard error:"
            yield from (f"  {line}" for line in last.output.splitlines()[-_LAST_WORDS_MAX:])


def _output(output: OutputCheck, reason: str) -> Iterator[str]:
    yield f"{output.name}: {output.message}" if output.message not in reason else f"{output.name}:"
    for index, expected, actual in output.worst[:WORST_MAX]:
        yield f"  {index}: expected {expected}, got {actual}"
    if output.metrics:
        yield "  " + ", ".join(f"{name} {number_text(value)}" for name, value in output.metrics.items())
