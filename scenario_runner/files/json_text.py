"""JSON text: fast parsing, faults with their places, and the places of JSON pointers.

Python's parser is fast, but it explains errors poorly and does not give the places of values. `scan` finds both, and
reads every character once.
"""

import json
import operator
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import lru_cache, partial, reduce
from json.decoder import scanstring  # type: ignore[attr-defined]  # the part of Python's parser for strings
from typing import NoReturn

from scenario_runner.errors.diagnostic import Diagnostic, escape
from scenario_runner.errors.text import Json

# Most nested arrays and objects. A scenario needs fewer than ten.
MAX_DEPTH = 64

# Most faults per text.
MAX_FAULTS = 100

# Most values in a file, enough for 100,000 commands. A parsed value takes ten times the memory of the text.
MAX_VALUES = 2_000_000

# Most digits in a number, more than a scenario can use.
MAX_DIGITS = 400

# Findings with these codes point to the key instead of the value.
_ABOUT_KEYS = frozenset(
    {"SR-JSON-002", "SR-JSON-003", "SR-JSON-006", "SR-EXPECT-002", "SR-CUSTOM-002", "SR-CUSTOM-007"}
)

_SPACE = re.compile(r"[ \t\n\r]*")
_NUMBER = re.compile(r"(?>-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)(?![^\W_])")
_WORD = re.compile(r"-?[A-Za-z_][A-Za-z_0-9]*")
_UNICODE_ESCAPE = re.compile(r"\\u[0-9a-fA-F]{4}")
_NUMBER_NAMES = {"NaN": "nan", "Infinity": "inf", "-Infinity": "-inf"}
_COMMENT = ("//", "/*", "#")
_NULL = "null is not used in scenarios"
_TOO_DEEP = f"more than {MAX_DEPTH} arrays and objects nested in one another"

Visit = Callable[[str, int, int], None]


def line_and_column(text: str, offset: int) -> tuple[int, int]:
    """Return the line and column of an offset. Both count from 1, and columns count characters."""
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


class LimitError(ValueError):
    """A JSON text beyond a limit; the message names the limit, as in "more than 64 arrays"."""


def parse(text: str | bytes, *, is_lenient: bool = False) -> Json:
    """Return the data of a JSON text.

    ``is_lenient`` accepts repeated keys and words such as NaN, and cuts numbers with too many digits. Raises LimitError
    for more than `MAX_DEPTH` nested arrays and objects, and ValueError for other faults.
    """
    try:
        if is_lenient:
            tree: Json = json.loads(text, parse_int=lambda digits: int(digits[:MAX_DIGITS]))
        else:
            tree = json.loads(text, object_pairs_hook=_unique, parse_constant=_not_json)
    except RecursionError:
        raise LimitError(_TOO_DEEP) from None
    level = [tree]
    for _ in range(MAX_DEPTH + 1):
        level = [part for part in level if isinstance(part, dict | list)]
        if not level:
            return tree
        level = [part for value in level for part in (value.values() if isinstance(value, dict) else value)]
    raise LimitError(_TOO_DEEP)


def has_null(tree: Json, *, in_arrays: bool = True) -> bool:
    """Return whether JSON data has a null. Without ``in_arrays``, ignore nulls in arrays."""
    open_values = [tree]
    while open_values:
        value = open_values.pop()
        if type(value) is dict:
            parts: Json = value.values()
        elif type(value) is list:
            parts = value if in_arrays else [part for part in value if part is not None]
        elif value is None:
            return True
        else:
            continue
        open_values.extend(parts)
    return False


def value_at(tree: Json, path: Sequence[str | int]) -> Json:
    """Return the value at a path of keys and indices."""
    return reduce(operator.getitem, path, tree)


def changed(tree: Json, path: Sequence[str | int], value: Json = None) -> Json:
    """Copy JSON data with another value at a path, or without the value there. The caller may own the original."""
    copy: Json = list(tree) if isinstance(tree, list | tuple) else dict(tree)
    if len(path) > 1:
        copy[path[0]] = changed(tree[path[0]], path[1:], value)
    elif value is None:
        del copy[path[0]]
    else:
        copy[path[0]] = value
    return copy


def check_values(text: str) -> None:
    """Raise LimitError for a JSON text that has more than `MAX_VALUES` values."""
    if len(text) > MAX_VALUES and text.count(",") + text.count("[") + text.count("{") > MAX_VALUES:
        raise LimitError(f"more than {MAX_VALUES:,} values")


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    mapping = dict(pairs)
    if len(mapping) != len(pairs):
        raise ValueError("a key appears twice")
    return mapping


def _not_json(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON")


def scan(
    text: str,
    path: str = "",
    visit: Visit = lambda pointer, key_at, value_at: None,
    *,
    start: int = 0,
    pointer: str = "",
    with_null: bool = False,
) -> tuple[list[Diagnostic], bool]:
    """Read a JSON value from the file ``path``. Return the problems in order, and whether a problem ended the reading.

    The scanner calls ``visit(pointer, key_offset, value_offset)`` for every value. In arrays both offsets are equal.
    With ``start``, it reads only the value that begins there and has this ``pointer``. ``with_null`` accepts nulls,
    which scenarios cannot have.
    """
    scanner = _Scanner(text, path, visit)
    with suppress(_Stop):
        scanner.whole_value(start, pointer)
    problems = [problem for problem in scanner.problems if not with_null or problem.message != _NULL]
    return problems, scanner.is_broken


class _Stop(Exception):  # noqa: N818  (control flow inside this module)
    """Ends the reading."""


class _Scanner:
    """Reads values. The methods return the offset after the value."""

    def __init__(self, text: str, path: str, visit: Visit) -> None:
        self.problems: list[Diagnostic] = []
        self.is_broken = False
        self._text = text
        self._path = path
        self._visit = visit
        self._open: list[tuple[int, str]] = []  # offset and pointer of each open array and object

    def whole_value(self, start: int, pointer: str) -> None:
        """Read a value. The text must end after the root value."""
        text, at = self._text, self._skip(start)
        if at == len(text):
            expected = "an object with the keys 'resources' and 'commands'"
            self._stop(start, pointer, "the file is empty", f"expected {expected}")
        self._visit(pointer, at, at)
        at = self._value(at, pointer)
        if start == 0 and (at := self._skip(at)) < len(text):
            help = _advice(text, at) if text.startswith(_COMMENT, at) else None
            self._stop(at, "", f"expected the end of the file, got {_excerpt(text, at)}", help)

    def _value(self, at: int, pointer: str) -> int:
        text = self._text
        if not text.startswith(("{", "["), at):
            return self._scalar(at, pointer)
        if len(self._open) == MAX_DEPTH:
            message = f"more than {MAX_DEPTH} arrays and objects are nested in one another"
            self._stop(at, self._open[0][1], message)
        is_object, close = text[at] == "{", "}" if text[at] == "{" else "]"
        keys: dict[str, int] = {}
        count = 0
        self._open.append((at, pointer))
        at = self._skip(at + 1)
        while count or not text.startswith(close, at):
            key_at, inner = at, f"{pointer}/{count}"
            if is_object:
                at, inner = self._key(at, pointer, keys)
            self._visit(inner, key_at, at)
            at = self._skip(self._value(at, inner))
            if text.startswith(close, at):
                break
            if not text.startswith(",", at):
                self._unexpected(at, f"',' or {close!r}")
            comma, at = at, self._skip(at + 1)
            if text.startswith(close, at):
                self._stop(comma, pointer, f"a ',' before {close!r} is not allowed", "remove the comma")
            count += 1
        self._open.pop()
        return at + 1

    def _key(self, key_at: int, pointer: str, keys: dict[str, int]) -> tuple[int, str]:
        """Skip a key, and return the value's offset and pointer."""
        text = self._text
        if not text.startswith('"', key_at):
            self._unexpected(key_at, "a key in double quotes")
        key, end = self._string(key_at, pointer)
        pointer = f"{pointer}/{escape(key)}"
        self._check_surrogates(key, key_at, pointer)
        first = keys.setdefault(key, key_at)
        if first != key_at:
            line, _ = line_and_column(text, first)
            message = f"the key {key!r:.80} appears twice in one object, first on line {line}"
            self._add(key_at, pointer, message, "keep one of the two", code="SR-JSON-002")
        at = self._skip(end)
        if not text.startswith(":", at):
            self._unexpected(at, f"':' after the key {key!r:.80}")
        return self._skip(at + 1), pointer

    def _scalar(self, at: int, pointer: str) -> int:
        """Skip a string, number or word."""
        text = self._text
        if text.startswith('"', at):
            string, end = self._string(at, pointer)
            self._check_surrogates(string, at, pointer)
            return end
        match = _NUMBER.match(text, at)
        if match is not None:
            if match.end() - at > MAX_DIGITS:
                message = f"a number of {match.end() - at} characters is too long"
                self._add(at, pointer, message, code="SR-JSON-005")
            return match.end()
        match = _WORD.match(text, at)
        word = match.group() if match else ""
        if word == "null":
            self._add(at, pointer, _NULL, "leave the key out to get its default", code="SR-JSON-005")
        elif word in _NUMBER_NAMES:
            help = f'write "{_NUMBER_NAMES[word]}"' if "/values/" in pointer else "write a number"
            self._add(at, pointer, f"{word} is not valid JSON", help)
        elif word not in ("true", "false"):
            self._unexpected(at, "a value" if self._open else "an object")
        return at + len(word)

    def _string(self, at: int, pointer: str) -> tuple[str, int]:
        """Return the string at an offset, and the offset after the string."""
        text = self._text
        try:
            string, end = scanstring(text, at + 1)
            return string, end
        except json.JSONDecodeError as error:
            end = error.pos
            escape_at = text.rfind("\\", at, end + 1)
            if end == at or _UNICODE_ESCAPE.fullmatch(text, escape_at):  # a right escape at the end of the text
                self._stop(at, pointer, "the file ends inside a string", "the file may be truncated")
            if text[end] in "\n\r":
                self._stop(at, pointer, "the string does not end on its line")
            if text[end] < " ":
                self._stop(end, pointer, f"control character {text[end]!r} in a string")
            message = f"unknown escape {text[escape_at : escape_at + 2]!r} in a string"
            self._stop(escape_at, pointer, message, r"a backslash is written as \\")

    def _check_surrogates(self, string: str, at: int, pointer: str) -> None:
        try:
            string.encode()
        except UnicodeEncodeError:
            message = "the string contains half of a surrogate pair, which is not a character"
            self._add(at, pointer, message, code="SR-JSON-005")

    def _skip(self, at: int) -> int:
        """Skip white space."""
        match = _SPACE.match(self._text, at)
        return match.end() if match else at

    def _add(self, at: int, pointer: str, message: str, help: str | None = None, *, code: str = "SR-JSON-001") -> None:
        place = self._path, *line_and_column(self._text, at)
        self.problems.append(Diagnostic(code, "error", pointer or None, message, help, *place))
        if len(self.problems) == MAX_FAULTS:
            raise _Stop

    def _stop(self, at: int, pointer: str, message: str, help: str | None = None) -> NoReturn:
        self.is_broken = True
        self.problems.clear()
        self._add(at, pointer, message, help)
        raise _Stop

    def _unexpected(self, at: int, expected: str) -> NoReturn:
        """Stop at an unexpected character."""
        text = self._text
        start, pointer = self._open[-1] if self._open else (0, "")
        if at < len(text):
            self._stop(at, pointer, f"expected {expected}, got {_excerpt(text, at)}", _advice(text, at))
        line, column = line_and_column(text, start)
        what = "object" if text[start] == "{" else "array"
        message = f"the file ends inside the {what} that begins at {line}:{column}: expected {expected}"
        self._stop(at, pointer, message, "the file may be truncated")


_IN_JSON = {"True": "true", "False": "false", "TRUE": "true", "FALSE": "false"}


def _advice(text: str, at: int) -> str | None:
    """Return advice for syntax of other languages."""
    if text.startswith(_COMMENT, at):
        return "JSON has no comments; remove it"
    if text.startswith("'", at):
        return "JSON has strings in double quotes only"
    match = _WORD.match(text, at)
    word = match.group() if match else ""
    if word in ("None", "undefined", "nil"):
        return "leave the key out to get its default"
    if word in _IN_JSON:
        return f"write {_IN_JSON[word]}"
    if re.compile(r"[-+]?0[xXbBoO]|[+]|[-+]?[.]").match(text, at):
        return "JSON has decimal numbers only, such as 16 or -0.5"
    return None


def _excerpt(text: str, at: int) -> str:
    """Return the word, comment mark or character at an offset, for messages."""
    comment = next((mark for mark in _COMMENT if text.startswith(mark, at)), None)
    if comment is not None:
        return f"a comment ({comment!r})"
    match = re.compile(r"[\w.+-]{1,40}").match(text, at)
    return repr(match.group() if match else text[at])


@lru_cache(4)
def places_of(text: str) -> "Places":
    """Return a text's places. All problems and all combinations of parameters share them."""
    return Places(text)


@lru_cache(4)
def faults(text: str, path: str) -> tuple[tuple[Diagnostic, ...], bool]:
    """Return the cached result of `scan`, which all combinations of parameters share."""
    problems, is_broken = scan(text, path)
    return tuple(problems), is_broken


class Places:
    """Finds the line and column of pointers in a valid JSON text.

    The first search scans the two outer levels, such as the entries of a scenario. Later searches scan single entries.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._offsets: dict[str, tuple[int, int]] = {}
        self._read: set[str] = set()  # the entries, and "" for the outer levels

    def find(self, pointer: str, *, key: bool = False) -> tuple[int, int]:
        """Return line and column of a value, or with ``key`` of the key. A missing value gets the parent's place."""
        while (offsets := self.offsets(pointer)) is None:
            pointer, key = pointer.rpartition("/")[0], False
        return line_and_column(self._text, offsets[0 if key else 1])

    def placed(self, problem: Diagnostic, path: str, pointer: str = "") -> Diagnostic:
        """Add the file, line and column to a problem. The JSON pointer of the problem starts below ``pointer``."""
        pointer += problem.pointer or ""
        line, column = self.find(pointer, key=problem.code in _ABOUT_KEYS)
        return problem._replace(path=path, pointer=pointer or None, line=line, column=column)

    def offsets(self, pointer: str) -> tuple[int, int] | None:
        """Return the offsets of a key and the key's value, or None."""
        entry = "/".join(pointer.split("/", 3)[:3])
        for part in ("",) if pointer == entry else ("", entry):
            if part not in self._read and (not part or part in self._offsets):
                start = self._offsets[part][1] if part else 0
                scan(self._text, visit=partial(self._remember, part), start=start, pointer=part)
                self._read.add(part)  # last, for other threads
        return self._offsets.get(pointer)

    def _remember(self, part: str, pointer: str, key_at: int, value_at: int) -> None:
        if (part and pointer != part) or (not part and pointer.count("/") <= 2):
            self._offsets[pointer] = (key_at, value_at)
