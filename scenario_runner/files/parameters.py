"""Parameters: ``${name}`` in the strings of a scenario or check file stands for a value, ``$${name}`` for ``${name}``.

A string ``"${name}"`` becomes the value, of any type. In a longer string, the value's text replaces ``${name}``. Keys
do not change. The replacement works on the text, so that all readers of an item's text see the same values.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import lru_cache

from scenario_runner.errors.diagnostic import Diagnostic
from scenario_runner.errors.text import Json, close_names, did_you_mean, first_of
from scenario_runner.files.input import MAX_SCENARIO_BYTES
from scenario_runner.files.json_text import MAX_DEPTH, LimitError, check_values, line_and_column

_USE = re.compile(r"(\$?)\$\{([A-Za-z_][A-Za-z_0-9]*)\}")
# A string before a colon is a key. A string without an end reaches to the end of the text, so that the search reads
# each quote once.
_STRING = re.compile(r'"((?:[^"\\]|\\.)*+)(?:(")(\s*:)?|\\?\Z)', re.DOTALL)
_MOST_SHOWN = 60
_NOTHING: Mapping[str, str] = {}


def is_value(value: Json, depth: int = MAX_DEPTH) -> bool:
    """Return whether a parameter can have a value: a string, finite number, boolean, or list of values.

    Lists can be nested ``depth`` times."""
    if isinstance(value, list | tuple):
        return depth > 0 and all(is_value(part, depth - 1) for part in value)
    return isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value))


def text_of(value: object) -> str:
    """Return the text of a value inside a longer string. Other values than strings become JSON."""
    return value if isinstance(value, str) else json.dumps(value)


def shown(parameters: Mapping[str, object]) -> str:
    """Format parameters for messages: ``n = 4, format = VK_FORMAT_R32_SFLOAT``."""
    return ", ".join(f"{name} = {text_of(value):.{_MOST_SHOWN}}" for name, value in parameters.items())


def as_options(parameters: Mapping[str, Json]) -> list[str]:
    """Return the options of a command line that set these parameters."""
    return [f"--set={name}={json.dumps(value)}" for name, value in parameters.items()]


def with_parameters(problem: Diagnostic, parameters: Mapping[str, object]) -> Diagnostic:
    """Add the parameter values to a diagnostic's message, unless it has them already."""
    note = f" (with {shown(parameters)})"
    is_noted = not parameters or problem.message.endswith(note)
    return problem if is_noted else problem._replace(message=f"{problem.message}{note}")


@lru_cache(4)
def uses(text: str) -> Mapping[str, int]:
    """Find the parameters of a JSON text. Return each name with the offset of the first string."""
    offsets: dict[str, int] = {}
    for string in _STRING.finditer(text) if "${" in text else ():
        for escape, name in _USE.findall(string[1]) if not string[3] else ():
            if not escape:
                offsets.setdefault(name, string.start())
    return offsets


def replaced(text: str, parameters: Mapping[str, Json]) -> str:
    """Replace the parameters of a JSON text by their values, and ``$${name}`` by ``${name}``. Other names stay.

    Raises LimitError if the result is too large for a scenario.
    """
    if ("${" if parameters else "$${") not in text:
        return text
    values: dict[str, str] = {}  # as JSON
    inner: dict[str, str] = {}  # within a string
    size = len(text)

    def value_of(name: str, use: str, texts: dict[str, str], make: Callable[[object], str]) -> str:
        nonlocal size
        if name not in texts:
            texts[name] = make(parameters[name])
        size += len(texts[name]) - len(use)
        if size > MAX_SCENARIO_BYTES:
            raise LimitError(f"more than {MAX_SCENARIO_BYTES >> 20} MiB with its parameters")
        return texts[name]

    def of_use(use: re.Match[str]) -> str:
        if use[1]:
            return use[0][1:]
        return value_of(use[2], use[0], inner, _within_string) if use[2] in parameters else use[0]

    def of_string(string: re.Match[str]) -> str:
        if string[3] or not string[2] or "${" not in string[1]:
            return string[0]
        whole = _USE.fullmatch(string[1])
        if whole and not whole[1] and whole[2] in parameters:
            return value_of(whole[2], string[0], values, json.dumps)
        return f'"{_USE.sub(of_use, string[1])}"'

    complete = _STRING.sub(of_string, text)
    check_values(complete)
    return complete


def _within_string(value: object) -> str:
    return json.dumps(text_of(value))[1:-1]


def unset(
    text: str, path: str | None, parameters: Collection[str], offers: Mapping[str, str] = _NOTHING
) -> Iterator[Diagnostic]:
    """Report each parameter of a text without a value. ``offers`` has hints about available values."""
    for name, offset in uses(text).items():
        if name not in parameters:
            help = f"--set {name}=VALUE{offers.get(name, '')}; $${{{name}}} stands for the text itself"
            place = path, *line_and_column(text, offset)
            close = did_you_mean(close_names(name, parameters, most=1))
            yield Diagnostic("SR-JSON-011", "error", None, f"the parameter {name!r} is not set{close}", help, *place)


def unused(text: str, path: str | None, parameters: Iterable[str]) -> Iterator[Diagnostic]:
    """Report each parameter that a text does not use."""
    names = uses(text)
    for name in parameters:
        if name not in names:
            message = f"the scenario has no parameter {name!r:.60}{did_you_mean(close_names(name, names, most=1))}"
            help = f"it has {first_of(list(names))}" if names else f'write "${{{name:.60}}}" where its value belongs'
            yield Diagnostic("SR-JSON-011", "error", None, message, help, path)
