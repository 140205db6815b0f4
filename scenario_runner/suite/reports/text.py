"""A result as short text: a line, or the few lines that say what is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from scenario_runner.suite.records import NOT_RUN, Outcome, OutputCheck, Result
from scenario_runner.suite.reports.suite_info import SuiteInfo
from scenario_runner.visible import counted, one_line, visible

WORST_MAX: Final = 5
"""How many of the worst elements the short text of an output has."""

FULL_TEXT_MAX: Final = 65536
"""How many characters `full_text` has at most."""

_REASON_MAX: Final = 50  # lines
_BEFORE_MAX: Final = 100  # items that ran before


class _Limits(NamedTuple):
    """How many elements of an output, messages and lines are shown."""

    worst: int
    messages: int
    stack: int
    output: int


_SHORT: Final = _Limits(WORST_MAX, 10, 12, 5)
_EVERYTHING: Final = _Limits(64, 1000, 1000, 1000)


def headline(result: Result) -> str:
    """The verdict, the item and the first line of the reason: 'Fail a/scenario.json: 3 of 16 elements differ'."""
    reason = "" if result.last is None else result.last.reason.partition("\n")[0]
    return one_line(f"{result.verdict} {result.item.id}" + (f": {reason}" if reason else ""), 2000)


def details(result: Result) -> list[str]:
    """What more there is to say about the last attempt, a few lines: the rest of the reason (those of a compiler), the
    outputs that are wrong with their worst elements, messages, the stack of a crash and the last output of the driver.
    Empty for one that passed."""
    last = result.last
    if last is None or last.status == "Pass":
        return []
    rest = last.reason.split("\n")[1 : _REASON_MAX + 1]
    return [one_line(line) for text in (*rest, *_details(last, _SHORT)) for line in text.split("\n")]


def full_text(result: Result, info: SuiteInfo) -> str:
    """All that is known of a result, for a report without pictures; no longer than `FULL_TEXT_MAX` characters."""
    lines = [f"{result.verdict}: {result.item.id}"]
    count = len(result.attempts)
    for number, attempt in enumerate(result.attempts, 1):
        if count > 1:
            lines += ["", f"attempt {number} of {count}: {attempt.status} after {seconds_text(attempt.seconds)}"]
        if number < count and is_same(attempt, result.attempts[-1]):
            lines[-1] += ", as the last one"
            continue
        if attempt.reason:
            lines.append(attempt.reason)
        lines += _details(attempt, _EVERYTHING)
        if attempt.before and attempt.status not in ("Pass", *NOT_RUN):
            shown = attempt.before[-_BEFORE_MAX:]
            before = counted(max(attempt.before_count, len(shown)), "item")
            lines.append(f"the same process had run {before} before, at last:")
            lines += (f"  {each}" for each in shown)
    lines.append("")
    lines += [f"device: {result.device}"] if result.device else []
    lines += [f"driver: {result.driver}"] if result.driver else []
    lines += (f"repeat: {each}" for each in info.repeat_commands(result))
    return shortened("\n".join(visible(line) for line in lines), FULL_TEXT_MAX)


def is_same(one: Outcome, other: Outcome) -> bool:
    """Whether two attempts gave the same, whatever time they took and whatever had run before."""
    return _what(one) == _what(other)


def _what(outcome: Outcome) -> Outcome:
    return outcome._replace(seconds=0.0, output="", before=(), before_count=0)


def shortened(text: str, longest: int) -> str:
    """Text without its middle where it has more characters than ``longest``: how it began, and how it ended."""
    if len(text) <= longest:
        return text
    half = longest // 2 - 40
    return f"{text[:half]}\n... {len(text) - 2 * half} characters are left out ...\n{text[-half:]}"


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


def _details(outcome: Outcome, limits: _Limits) -> Iterator[str]:
    for output in outcome.outputs:
        if output.status != "Pass":
            yield from _output(output, outcome.reason, limits)
    for each in outcome.diagnostics[: limits.messages]:
        if each.get("message") and each["message"] in outcome.reason:
            yield f"{each.get('severity', 'error')}[{each.get('code', '')}]"
        else:
            yield diagnostic_text(each)
        if each.get("help"):
            yield f"  help: {each['help']}"
    if len(outcome.diagnostics) > limits.messages:
        yield f"and {counted(len(outcome.diagnostics) - limits.messages, 'message')} more"
    if outcome.status in ("Crash", "Timeout"):
        if outcome.stack:
            yield "stack:"
            yield from (f"  {line}" for line in outcome.stack.splitlines()[: limits.stack])
        if outcome.output:
            yield "last lines on standard error:"
            yield from (f"  {line}" for line in outcome.output.splitlines()[-limits.output :])


def diagnostic_text(given: dict[str, Any]) -> str:
    """A message of a run in one line: 'error[SR-BIND-003]: a.json:3:4: /commands/0: ...'."""
    place = ":".join(str(given[part]) for part in ("path", "line", "column") if given.get(part) is not None)
    parts = [part for part in (place, given.get("pointer"), given.get("message")) if part]
    return f"{given.get('severity', 'error')}[{given.get('code', '')}]: {': '.join(parts)}"


def _output(output: OutputCheck, reason: str, limits: _Limits) -> Iterator[str]:
    yield f"{output.name}: {output.message}" if output.message not in reason else f"{output.name}:"
    for index, expected, actual in output.worst[: limits.worst]:
        yield f"  {index}: expected {expected}, got {actual}"
    if output.metrics:
        yield "  " + ", ".join(f"{name} {number_text(value)}" for name, value in output.metrics.items())
