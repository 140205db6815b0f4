"""The one reader of scenario text: what is wrong in it and where, where a JSON pointer leads, and which files it names.

Python's own parser is the fast way in, but it says little about what it refuses and nothing about where a value stood.
`scan` is iterative, so that no nesting can exhaust the stack, and reads every character once. Standard library only.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from json.decoder import scanstring  # type: ignore[attr-defined]  # the part of Python's parser for strings
from typing import Any, NamedTuple

from scenario_runner.diagnostics import Diagnostic, escape

MAX_DEPTH = 64
"""Arrays and objects inside one another; a scenario needs fewer than ten."""

MAX_FAULTS = 100
"""Faults after which reading stops."""

MAX_DIGITS = 400
"""Digits of one number; more than any number that a scenario can use."""

_SPACE = re.compile(r"[ \t\n\r]*")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_WORD = re.compile(r"-?[A-Za-z_][A-Za-z_0-9]*")
_UNICODE_ESCAPE = re.compile(r"\\u[0-9a-fA-F]{4}")
_STARTS_NUMBER = frozenset("-0123456789")

Visit = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that JSON text must not contain. ``fatal`` means that nothing after it could be read."""

    offset: int
    pointer: str
    message: str
    help: str | None = None
    fatal: bool = False
    code: str = "SR-JSON-001"


def line_and_column(text: str, offset: int) -> tuple[int, int]:
    """The line and column of an offset, both counted from 1; a column is a character."""
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


def problems_of(faults: list[Fault], text: str, path: str) -> list[Diagnostic]:
    """Faults of a text as errors at their places; one after which nothing could be read stands alone."""
    return [
        Diagnostic(
            *(fault.code, "error", fault.pointer or None, fault.message, fault.help),
            *(path, *line_and_column(text, fault.offset)),
        )
        for fault in (faults[-1:] if faults and faults[-1].fatal else faults)
    ]


class _Container:
    """An array or object that is being read."""

    __slots__ = ("count", "is_object", "keys", "offset", "pointer")

    def __init__(self, is_object: bool, offset: int, pointer: str) -> None:
        self.is_object = is_object
        self.offset = offset
        self.pointer = pointer
        self.count = 0
        self.keys: dict[str, int] = {}


class _Enough(Exception):  # noqa: N818  (control flow inside this module)
    """There are `MAX_FAULTS`."""


_COMMENT = ("//", "/*", "#")
_NULL = "null is not used in scenarios"
_NO_COMMENTS = "JSON has no comments; remove it"


class _Fatal(Exception):  # noqa: N818  (control flow inside this module)
    def __init__(self, offset: int, pointer: str, message: str, help: str | None = None) -> None:
        self.fault = Fault(offset, pointer, message, help, fatal=True)


def scan(
    text: str, visit: Visit | None = None, *, start: int = 0, pointer: str = "", with_null: bool = False
) -> list[Fault]:
    """Read one JSON value and report what is wrong with it, in the order of the text.

    ``visit(pointer, key_offset, value_offset)`` is called for every value; the key offset of an array's entry is that
    of the entry. With ``start``, only the value that begins there is read; ``pointer`` is its name. ``with_null`` is
    for texts that may have nulls, which scenarios may not.
    """
    faults: list[Fault] = []
    try:
        _scan(text, visit or (lambda pointer, key, value: None), start, pointer, faults, whole=start == 0)
    except _Fatal as stop:
        faults.append(stop.fault)
    except _Enough:
        pass
    return [fault for fault in faults if fault.message != _NULL] if with_null else faults


def _scan(text: str, visit: Visit, start: int, pointer: str, faults: list[Fault], *, whole: bool) -> None:
    stack: list[_Container] = []
    at = _skip(text, start)
    if at == len(text):
        raise _Fatal(start, pointer, "the file is empty", "expected an object with the keys 'resources' and 'commands'")
    visit(pointer, at, at)
    while True:
        # Here a value begins.
        opened = text[at] if at < len(text) else ""
        if opened == "{" or opened == "[":
            if len(stack) == MAX_DEPTH:
                message = f"more than {MAX_DEPTH} arrays and objects are nested in one another"
                raise _Fatal(at, stack[0].pointer, message)
            stack.append(_Container(opened == "{", at, pointer))
            at = _skip(text, at + 1)
            if at < len(text) and text[at] == ("}" if opened == "{" else "]"):
                stack.pop()
                at += 1
            else:
                at, pointer = _entry(text, at, stack[-1], visit, faults)
                continue
        else:
            at = _scalar(text, at, pointer, stack, faults)
        # Here a value has ended: close what closes, until another value begins.
        while True:
            if not stack:
                if whole:
                    at = _skip(text, at)
                    if at < len(text):
                        advice = _NO_COMMENTS if text.startswith(_COMMENT, at) else None
                        raise _Fatal(at, "", f"expected the end of the file, got {_excerpt(text, at)}", advice)
                return
            inner = stack[-1]
            at = _skip(text, at)
            close = "}" if inner.is_object else "]"
            mark = text[at] if at < len(text) else ""
            if mark == close:
                stack.pop()
                at += 1
                continue
            if mark != ",":
                raise _unexpected(text, at, inner, f"',' or {close!r}")
            comma, at = at, _skip(text, at + 1)
            if at < len(text) and text[at] == close:
                raise _Fatal(comma, inner.pointer, f"a ',' before {close!r} is not allowed", "remove the comma")
            inner.count += 1
            at, pointer = _entry(text, at, inner, visit, faults)
            break


def _entry(text: str, at: int, inner: _Container, visit: Visit, faults: list[Fault]) -> tuple[int, str]:
    """Step over the key of the next entry, if it has one; gives the offset and the pointer of its value."""
    if not inner.is_object:
        pointer = f"{inner.pointer}/{inner.count}"
        visit(pointer, at, at)
        return at, pointer
    key_at = at
    if text[at : at + 1] != '"':
        raise _unexpected(text, at, inner, "a key in double quotes")
    key, end = _string(text, at, inner.pointer)
    pointer = f"{inner.pointer}/{escape(key)}"
    _check_surrogates(key, key_at, pointer, faults)
    first = inner.keys.setdefault(key, key_at)
    if first != key_at:
        line, _ = line_and_column(text, first)
        message = f"the key {key!r:.80} appears twice in one object, first on line {line}"
        _add(faults, Fault(key_at, pointer, message, "keep one of the two", code="SR-JSON-002"))
    at = _skip(text, end)
    if at >= len(text) or text[at] != ":":
        raise _unexpected(text, at, inner, f"':' after the key {key!r:.80}")
    at = _skip(text, at + 1)
    visit(pointer, key_at, at)
    return at, pointer


def _scalar(text: str, at: int, pointer: str, stack: list[_Container], faults: list[Fault]) -> int:
    """Step over a string, number or word; gives the offset behind it."""
    first = text[at] if at < len(text) else ""
    if first == '"':
        string, end = _string(text, at, pointer)
        _check_surrogates(string, at, pointer, faults)
        return end
    if first in _STARTS_NUMBER:
        match = _NUMBER.match(text, at)
        if match is not None and not text[match.end() : match.end() + 1].isalnum():
            if match.end() - at > MAX_DIGITS:
                message = f"a number of {match.end() - at} characters is too long"
                _add(faults, Fault(at, pointer, message, code="SR-JSON-005"))
            return match.end()
    match = _WORD.match(text, at)
    word = match.group() if match else ""
    if match and word in ("true", "false"):
        return match.end()
    if match and word == "null":
        _add(faults, Fault(at, pointer, _NULL, "leave the key out to get its default", code="SR-JSON-005"))
        return match.end()
    if match and word in ("NaN", "Infinity", "-Infinity"):
        _add(faults, Fault(at, pointer, f"{word} is not a number of JSON"))
        return match.end()
    if not stack:
        raise _Fatal(at, pointer, f"expected an object, got {_excerpt(text, at)}", _advice(text, at))
    raise _unexpected(text, at, stack[-1], "a value")


def _add(faults: list[Fault], fault: Fault) -> None:
    faults.append(fault)
    if len(faults) == MAX_FAULTS:
        raise _Enough


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _check_surrogates(string: str, at: int, pointer: str, faults: list[Fault]) -> None:
    try:
        string.encode()
    except UnicodeEncodeError:
        message = "the string contains half of a surrogate pair, which is not a character"
        _add(faults, Fault(at, pointer, message, code="SR-JSON-005"))


def _string(text: str, at: int, pointer: str) -> tuple[str, int]:
    """The string that begins here, and the offset behind it."""
    try:
        string, end = scanstring(text, at + 1)
        return string, end
    except json.JSONDecodeError as error:
        end = error.pos
        escape_at = text.rfind("\\", at, end + 1)
        if end == at or _UNICODE_ESCAPE.fullmatch(text, escape_at):  # which is right, and the last that there is
            raise _Fatal(at, pointer, "the file ends inside a string", "the file may be truncated") from None
        if text[end] in "\n\r":
            raise _Fatal(at, pointer, "the string does not end on its line") from None
        if text[end] < " ":
            raise _Fatal(end, pointer, f"control character {text[end]!r} in a string") from None
        message = f"unknown escape {text[escape_at : escape_at + 2]!r} in a string"
        raise _Fatal(escape_at, pointer, message, r"a backslash is written as \\") from None


def _unexpected(text: str, at: int, inner: _Container, expected: str) -> _Fatal:
    """The error for a place where something else should stand."""
    if at >= len(text):
        line, column = line_and_column(text, inner.offset)
        what = "object" if inner.is_object else "array"
        message = f"the file ends inside the {what} that begins at {line}:{column}: expected {expected}"
        return _Fatal(at, inner.pointer, message, "the file may be truncated")
    return _Fatal(at, inner.pointer, f"expected {expected}, got {_excerpt(text, at)}", _advice(text, at))


_IN_JSON = {"True": "true", "False": "false", "TRUE": "true", "FALSE": "false"}


def _advice(text: str, at: int) -> str | None:
    """Advise on something that other languages have here."""
    if text.startswith(_COMMENT, at):
        return _NO_COMMENTS
    if text[at : at + 1] == "'":
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
    """The word, the mark of a comment, or the one character, that stands here."""
    comment = next((mark for mark in _COMMENT if text.startswith(mark, at)), None)
    if comment is not None:
        return f"a comment ({comment!r})"
    match = re.compile(r"[\w.+-]{1,40}").match(text, at)
    return repr(match.group() if match else text[at])


NO_FILE = "<text>"
"""Name in messages of a text that came from no file."""


class Places:
    """Finds the line and column of pointers in one valid JSON text.

    The first question finds the offsets of the two outer levels, such as the entries of the arrays of a scenario; each
    entry of these is then read alone.
    """

    __slots__ = ("_entry", "_inside", "_outer", "_text")

    def __init__(self, text: str) -> None:
        self._text = text
        self._outer: dict[str, tuple[int, int]] = {}
        self._entry = ""
        self._inside: dict[str, tuple[int, int]] = {}

    def find(self, pointer: str, *, key: bool = False) -> tuple[int, int]:
        """Line and column of a value, or with ``key`` of its key. A pointer that leads nowhere means its parent."""
        while (offsets := self.offsets(pointer)) is None:
            pointer, key = pointer.rpartition("/")[0], False
        return line_and_column(self._text, offsets[0 if key else 1])

    def offsets(self, pointer: str) -> tuple[int, int] | None:
        """Offsets of a key and its value."""
        if not self._outer:
            scan(self._text, self._remember_outer)
        entry = "/".join(pointer.split("/", 3)[:3])
        if pointer == entry or entry not in self._outer:
            return self._outer.get(pointer)
        if entry != self._entry:
            self._inside, self._entry = {}, entry
            scan(self._text, self._remember_inside, start=self._outer[entry][1], pointer=entry)
        return self._inside.get(pointer)

    def _remember_outer(self, pointer: str, key_at: int, value_at: int) -> None:
        if pointer.count("/") <= 2:
            self._outer[pointer] = (key_at, value_at)

    def _remember_inside(self, pointer: str, key_at: int, value_at: int) -> None:
        self._inside[pointer] = (key_at, value_at)


# In JSON a quote inside of a string is escaped, so that these can only be keys.
_NAMED = re.compile(r'"(src|dst)"\s*:\s*("(?:[^"\\]|\\.)+")')
_BOUNDARIES = ("mark_boundary", "frame_boundary")


class DeclaredFiles(NamedTuple):
    """``writes`` and ``reads`` are paths; ``captures`` are (number of the frame, uid)."""

    writes: tuple[str, ...]
    reads: tuple[str, ...]
    captures: frozenset[tuple[int, str]]

    def on_disk(self) -> list[str]:
        """The output files that are there, by what they hold; what the scenario reads is not among them."""
        inputs = {_identity(path) for path in self.reads}
        return [path for path in dict.fromkeys(self.writes) if _holds_output(path) and _identity(path) not in inputs]


def declared_files(text: str, base_dir: str, output_dir: str | None = None) -> DeclaredFiles:
    """The files of a scenario with this text whose relative paths start from ``base_dir``."""
    named: dict[str, list[str]] = {"src": [], "dst": []}
    for key, string in _NAMED.findall(text):
        path = string[1:-1]
        if "\\" in path or not path.isprintable():
            try:
                path = json.loads(string)
                os.fsencode(path)
            except ValueError:
                continue
        named[key].append(path)
    target = base_dir if output_dir is None else output_dir
    return DeclaredFiles(
        tuple(os.path.join(target, path) for path in named["dst"] if "\0" not in path),
        tuple(os.path.join(base_dir, path) for path in named["src"] if "\0" not in path),
        _captures(text),
    )


def _captures(text: str) -> frozenset[tuple[int, str]]:
    if not any(word in text for word in _BOUNDARIES):
        return frozenset()
    names: set[tuple[int, str]] = set()
    count = 0
    try:
        commands: Any = json.loads(text)["commands"]
        for command in commands:
            for word in _BOUNDARIES:
                if word in command:
                    number = command[word].get("frame_id", count)
                    names.update((number, uid) for uid in command[word]["resources"])
                    count += 1
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        pass  # the run says what is wrong
    return frozenset(names)


def _identity(path: str) -> tuple[int, int] | None:
    """Identify a file, however it is named; None for none."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _holds_output(path: str) -> bool:
    from scenario_runner.files.codec import all_codecs

    if not os.path.isfile(path):
        return False
    try:
        with open(path, "rb") as file:
            return file.read(16).startswith(tuple(codec.signature for codec in all_codecs()))
    except OSError:
        return False
