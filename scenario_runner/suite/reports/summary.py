"""Common texts of reports: the suite, results in a few lines, and commands that run an item again."""

from __future__ import annotations

import math
import os
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

from scenario_runner.errors import MissingToolError
from scenario_runner.errors.diagnostic import Diagnostic
from scenario_runner.errors.text import Json, counted, one_line, visible
from scenario_runner.files.input import is_model
from scenario_runner.files.parameters import as_options
from scenario_runner.suite.combinations import scenario_path
from scenario_runner.suite.outcomes import NOT_RUN, Outcome, OutputCheck, Result

UNCOMPARED: Final = "compared with nothing"
"""What reports say about a Pass with outputs and no expectations."""

INCOMPLETE: Final = "suite is incomplete"
"""The name of a failed test for CI systems, if items have no result."""

Kind = Literal["passed", "failed", "skipped", "tolerated"]


class SuiteInfo(NamedTuple):
    """A suite that has run.

    ``started`` is in seconds since 1970 (UTC), ``seconds`` is the duration. ``devices`` are pairs of UUID and name.
    ``command`` is the command line, ``folder`` the current folder of the command. Paths in `OutputCheck.files` are
    relative to the folder ``results``; reports name no paths in a temporary folder. ``incomplete`` tells why items
    have no result. ``repeat`` returns the options to run an item again. JUnit's class names begin with ``package``.
    """

    title: str = "scenario-runner"
    started: float = 0.0
    seconds: float = 0.0
    devices: tuple[tuple[str, str], ...] = ()
    drivers: tuple[str, ...] = ()
    host: str = ""
    version: str = ""
    command: tuple[str, ...] = ()
    folder: str = ""
    results: str = ""
    is_temporary: bool = False
    incomplete: str = ""
    repeat: Callable[[Result], Repeat] = lambda result: Repeat()
    package: str = ""

    def repeat_command(self, result: Result) -> str:
        """Return the command to run an item again, for a shell in ``folder``."""
        return self.repeat(result).command(result, self.folder)

    def repeat_commands(self, result: Result) -> list[str]:
        """Return the command to run an item again, and after a crash or timeout also a command for a debugger."""
        commands = [self.repeat_command(result)]
        if not is_model(result.item.path) and result.last is not None and result.last.status in ("Crash", "Timeout"):
            commands.append(self.repeat(result).debug_command(result, self.folder))
        return commands

    def files_of(self, output: OutputCheck) -> dict[str, str]:
        """Return the absolute paths of the files about an output, by content, in the order of reports."""
        return {name: os.path.join(self.results, path) for name, path in output.files.items()}


def kind_of(result: Result) -> Kind:
    """Map a verdict to one of four kinds. A tolerated result is a failure that a list expects."""
    if result.is_bad or result.verdict in NOT_RUN:
        return "failed" if result.is_bad else "skipped"
    return "passed" if result.verdict in ("Pass", "Warn", "Flake") else "tolerated"


class Repeat(NamedTuple):
    """Options to run an item again, as words of a command line.

    ``options`` affect every result. ``lists`` affect verdicts: pairs of an option and an absolute path; names in lists
    are relative to the path of --root. ``devices`` are the requested devices. ``run_options`` are options of
    ``scenario-runner run``.
    """

    options: tuple[str, ...] = ()
    lists: tuple[tuple[str, str], ...] = ()
    devices: tuple[str, ...] = ()
    run_options: tuple[str, ...] = ()

    def command(self, result: Result, folder: str) -> str:
        """Return the command to run an item again, for a shell in ``folder``."""
        words = [*self.options, *self._device(result), *self._lists(result, folder)]
        return shlex.join(["scenario-runner", "test", *words, _path(result, folder)])

    def debug_command(self, result: Result, folder: str) -> str:
        """Return the command to run the scenario of an item in a debugger."""
        values = as_options(getattr(scenario_path(result.item), "parameters", {}))
        path = _path(result, folder).removesuffix(result.item.variant)
        words = [*self.run_options, *self._device(result), *values, path]
        return shlex.join(["gdb", "--args", "python3", "-m", "scenario_runner", "run", "--no-isolate", *words])

    def _device(self, result: Result) -> Iterator[str]:
        if len(self.devices) == 1 and self.devices[0] != "all":
            yield f"--device={self.devices[0]}"
        elif self.devices and not result.host:  # another host has other devices
            yield f"--device={result.device}" if result.device else f"--devices={','.join(self.devices)}"

    def _lists(self, result: Result, folder: str) -> Iterator[str]:
        improved = result.verdict.startswith("UnexpectedImprovement")
        for name, path in self.lists:
            is_needed = name == "--root" or improved or result.verdict in ("ExpectedFail", "KnownFlake")
            if is_needed and path != folder:
                yield f"{name}={shown_path(path, folder)}"


def _path(result: Result, folder: str) -> str:
    path = shown_path(result.item.path, folder) + result.item.variant
    return f"./{path}" if path.startswith(("-", "@")) else path


def shown_path(path: str, folder: str) -> str:
    """Return a path relative to ``folder`` if the path lies below."""
    below = folder.rstrip(os.sep) + os.sep
    return path[len(below) :] if folder and path.startswith(below) else path


_MOST_SHOWN = 5


def missing_tools(results: Sequence[Result]) -> MissingToolError | None:
    """Return the error for a suite with MissingTool results, if there are any."""
    if not results:
        return None
    lacks: dict[str, str] = {}  # messages by advice
    for last in filter(None, (result.last for result in results)):
        problem = last.diagnostics[0] if last.diagnostics else {}  # a journal may have been edited
        lacks.setdefault(str(problem.get("help") or ""), problem.get("message", last.reason))
    messages = "; ".join(list(lacks.values())[:_MOST_SHOWN])
    message = f"{counted(len(results), 'item')} did not run, because this machine lacks a tool: {messages}"
    advice = "; ".join([*filter(None, list(lacks)[:_MOST_SHOWN]), "'scenario-runner doctor' shows all"])
    return MissingToolError(Diagnostic(MissingToolError.code, "error", None, message, advice))


# A text in quotes, such as the name of a device, and the names of Vulkan's extensions, features and limits.
_QUOTED: Final = re.compile(r"""'[^']*'|"[^"]*\"""")
_VULKAN_NAME: Final = re.compile(r"\bVK_[A-Z0-9]+_\w+|\b[a-z]+\d*[A-Z]\w*")
_CAUSES_MAX: Final = 20  # in a list of causes; a page has them all


def cause_of(outcome: Outcome) -> str:
    """Return why an item is NotSupported: missing features and extensions, or the reason without names of devices."""
    messages = [each.get("message", "") for each in outcome.diagnostics if each.get("severity") == "error"]
    messages = messages or [outcome.reason.partition("\n")[0]]
    names = dict.fromkeys(name for text in messages for name in _VULKAN_NAME.findall(_QUOTED.sub("", text)))
    is_of_expectations = not outcome.diagnostics and "' lacks " not in messages[0]
    return one_line(messages[0] if is_of_expectations else ", ".join(names) or _QUOTED.sub("'…'", messages[0]))


def causes_of(results: Iterable[Result]) -> dict[str, list[str]]:
    """Group the ids of NotSupported items by cause, the most frequent cause first."""
    groups: dict[str, list[str]] = {}
    for result in results:
        if result.verdict == "NotSupported" and result.last is not None:
            groups.setdefault(cause_of(result.last), []).append(result.item.id)
    return dict(sorted(groups.items(), key=lambda group: (-len(group[1]), group[0])))


def cause_lines(groups: Mapping[str, Sequence[str]], *, with_items: bool = False) -> Iterator[str]:
    """Yield lines such as "39: shaderSubgroupPartitioned", and on request the items of each cause."""
    if groups:
        yield "not supported, by cause:"
    for cause, ids in list(groups.items())[:_CAUSES_MAX]:
        yield f"  {len(ids)}: {cause}"
        yield from (f"    {one_line(id)}" for id in ids if with_items)
    if len(groups) > _CAUSES_MAX:
        yield f"  and {counted(len(groups) - _CAUSES_MAX, 'more cause')}"


WORST_MAX: Final = 5
"""Most elements in a short text about an output."""

FULL_TEXT_MAX: Final = 65536
"""Most characters of `full_text`, and of a text in a report."""

_REASON_MAX: Final = 50  # lines
_BEFORE_MAX: Final = 100  # items


class _Limits(NamedTuple):
    """Limits for a text: elements of an output, messages, and lines."""

    worst: int = WORST_MAX
    messages: int = 10
    stack: int = 12
    output: int = 5
    printed: int = 10


_SHORT: Final = _Limits()
_EVERYTHING: Final = _Limits(64, 1000, 1000, 1000, 1000)


def reason_for(result: Result) -> str:
    """Return the first line of the reason for a verdict. The reason for a flake is the first attempt that failed."""
    last, count = result.last, len(result.attempts)
    reason = "" if last is None else last.reason
    if result.verdict == "Flake" and not reason:
        number, bad = next((pair for pair in enumerate(result.attempts, 1) if pair[1].status != "Pass"), (0, None))
        reason = f"attempt {number} of {count}: {bad.status}: {bad.reason}" if bad is not None else ""
    return reason.partition("\n")[0]


def attempt_groups(attempts: Sequence[Outcome]) -> Iterator[tuple[int, int, Outcome]]:
    """Group successive attempts that are alike. Yield each group's first and last number, and the last attempt.

    The last attempt of all forms a separate group.
    """
    first = 1
    for number, attempt in enumerate(attempts, 1):
        if number + 1 < len(attempts) and is_same(attempt, attempts[number]):
            continue
        yield first, number, attempt
        first = number + 1


def headline(result: Result) -> str:
    """Return verdict, item and first line of the reason: 'Fail a/scenario.json: 3 of 16 elements differ'."""
    reason = reason_for(result)
    reason = f": {reason}" if reason else ""
    about_item = f": {result.item.path}:"  # the name of the item comes first already
    if reason.startswith(about_item):
        reason = reason[len(about_item) - 1 :]
    return one_line(f"{result.verdict} {result.item.id}{reason}", 2000)


def details(result: Result) -> list[str]:
    """Return a few lines about the last attempt, or nothing for a Pass.

    The lines have the rest of the reason, wrong outputs with their worst elements, messages, the stack of a crash, and
    the last output of the driver.
    """
    last = result.last
    if last is None or last.status == "Pass":
        return []
    rest = last.reason.split("\n")[1 : _REASON_MAX + 1]
    return [one_line(line) for text in (*rest, *_details(last, _SHORT)) for line in text.split("\n")]


def full_text(result: Result, info: SuiteInfo) -> str:
    """Return all details of a result as text, at most `FULL_TEXT_MAX` characters."""
    lines = [f"{result.verdict}: {result.item.id}"]
    count = len(result.attempts)
    for first, number, attempt in attempt_groups(result.attempts):
        if count > 1:
            numbers = f"attempt {number}" if first == number else f"attempts {first} to {number}"
            lines += ["", f"{numbers} of {count}: {attempt.status} after {seconds_text(attempt.seconds)}"]
        if number < count and is_same(attempt, result.attempts[-1]):
            lines[-1] += ", like the last one"
            continue
        if attempt.reason:
            lines.append(attempt.reason)
        lines += _details(attempt, _EVERYTHING)
        if attempt.before and attempt.status not in ("Pass", *NOT_RUN):
            shown = attempt.before[-_BEFORE_MAX:]
            before = counted(max(attempt.before_count, len(shown)), "item")
            lines.append(f"the same process had run {before} before, most recently:")
            lines += (f"  {item_id}" for item_id in shown)
    lines.append("")
    lines += [f"device: {result.device}"] if result.device else []
    lines += [f"driver: {result.driver}"] if result.driver else []
    lines += (f"repeat: {repeat_command}" for repeat_command in info.repeat_commands(result))
    return shortened("\n".join(visible(line) for line in lines), FULL_TEXT_MAX)


def is_same(one: Outcome, other: Outcome) -> bool:
    """Return whether two attempts are equal, except for time, output and items before."""
    varying: dict[str, Any] = {"seconds": 0.0, "output": "", "before": (), "before_count": 0, "printed": ()}
    return one._replace(**varying) == other._replace(**varying)


def printable(value: Json, entries_max: int | None = None) -> Json:
    """Copy data for JSON without control characters, infinite numbers and overlong parts."""
    match value:
        case str():
            return visible(shortened(value, FULL_TEXT_MAX))
        case float() if not math.isfinite(value):
            return str(value)
        case dict():
            return {visible(name): printable(entry, entries_max) for name, entry in value.items()}
        case list() | tuple():
            return [printable(entry, entries_max) for entry in value[:entries_max]]
    return value


def shortened(text: str, longest: int) -> str:
    """Cut the middle out of a text with more than ``longest`` characters."""
    if len(text) <= longest:
        return text
    half = longest // 2 - 40
    return f"{text[:half]}\n... {len(text) - 2 * half} characters are left out ...\n{text[-half:]}"


def seconds_text(seconds: float) -> str:
    """Format a time with a unit: '12 ms', '3.20 s', '4 min 05 s', '2 h 03 min'."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.2f} s"
    minutes = int(seconds) // 60
    if minutes < 60:
        return f"{minutes} min {int(seconds) % 60:02} s"
    return f"{minutes // 60} h {minutes % 60:02} min"


def _details(outcome: Outcome, limits: _Limits) -> Iterator[str]:
    for output in outcome.outputs:
        if output.status != "Pass":
            yield from _output(output, outcome.reason, limits)
    for diagnostic in outcome.diagnostics[: limits.messages]:
        if diagnostic.get("message") and diagnostic["message"] in outcome.reason:
            yield f"code: scenario-runner explain {diagnostic.get('code', '')}"
        else:
            yield diagnostic_text(diagnostic)
        if diagnostic.get("help"):
            yield f"  help: {diagnostic['help']}"
    if len(outcome.diagnostics) > limits.messages:
        yield f"and {counted(len(outcome.diagnostics) - limits.messages, 'message')} more"
    if outcome.printed:
        yield "printed by shaders:"
        yield from (f"  {text}" for text in outcome.printed[: limits.printed])
        if len(outcome.printed) > limits.printed:
            yield f"  and {len(outcome.printed) - limits.printed} more"
    if outcome.status in ("Crash", "Timeout"):
        if outcome.stack:
            yield "stack:"
            yield from (f"  {line}" for line in outcome.stack.splitlines()[: limits.stack])
        if outcome.output:
            yield "last lines on standard error:"
            yield from (f"  {line}" for line in outcome.output.splitlines()[-limits.output :])


def diagnostic_text(diagnostic: dict[str, Json]) -> str:
    """Format a message of a run in one line: 'error[SR-BIND-003]: a.json:3:4: /commands/0: ...'."""
    place = ":".join(str(diagnostic[part]) for part in ("path", "line", "column") if diagnostic.get(part) is not None)
    parts = [part for part in (place, diagnostic.get("pointer"), diagnostic.get("message")) if part]
    return f"{diagnostic.get('severity', 'error')}[{diagnostic.get('code', '')}]: {': '.join(parts)}"


def _output(output: OutputCheck, reason: str, limits: _Limits) -> Iterator[str]:
    text = f"{output.name}: {output.message}"
    yield f"{output.name}:" if reason.startswith(text) else text
    for index, expected, actual in output.worst[: limits.worst]:
        yield f"  {index}: expected {expected}, got {actual}"
    if output.metrics:
        yield "  " + ", ".join(f"{name} {value:.6g}" for name, value in output.metrics.items())


def attached_files(outcome: Outcome, info: SuiteInfo) -> Iterator[tuple[str, str]]:
    """Yield the title and path of each file about a wrong output."""
    for output in () if info.is_temporary else outcome.outputs:
        if output.status != "Pass":
            for what, path in info.files_of(output).items():
                yield f"{output.name}: {what}", shown_path(path, info.folder)
