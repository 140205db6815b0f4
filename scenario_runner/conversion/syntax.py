"""The parts of MLIR's text that custom operations are written in: strings, attributes, types, values.

Source: the MLIR language reference. What is not needed is skipped by its brackets, so that no other operation has to
be known. A cursor moves over the text; `NotUnderstoodError` says that the text is written in a way that is not read
here, though MLIR may accept it.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from scenario_runner.conversion.model import TensorType

STRING = r'"[^"\\]*(?:\\.[^"\\]*)*"'
VALUE = r"%(?:[0-9]+|[A-Za-z$._\-][\w$.\-]*)"
_SPACE = re.compile(r"(?:\s+|//[^\n]*)*")
_STRING = re.compile(STRING, re.DOTALL)
_VALUE = re.compile(rf"({VALUE})(?:#([0-9]+))?")
_KEY = re.compile(r"[A-Za-z_][\w$.]*")
_SYMBOL = re.compile(rf"@(?:({STRING})|([A-Za-z_][\w$.]*))", re.DOTALL)
_ESCAPE = re.compile(rb"\\(n|t|\"|\\|[0-9A-Fa-f]{2})")
# What matters when something is skipped: strings, comments, arrows (whose > closes nothing) and brackets.
_BRACKET = re.compile(rf"({STRING})|//[^\n]*|->|[\[\](){{}}<>]|,", re.DOTALL)
_OPENING, _CLOSING = "[({<", "])}>"
_TYPE_NAME = re.compile(r"!?[A-Za-z_][\w$.]*")
_LONGEST_SIZE = 19
_DIMENSION = re.compile(r"(\*|\?|[0-9]+)x")


class NotUnderstoodError(Exception):
    """The text is written in a way that is not read here."""


class Text(NamedTuple):
    """A string of the text: what it says, and where it stands with its quotes."""

    value: str
    start: int
    end: int


def unescaped(string: str) -> str:
    """What a string with its quotes says. Raises NotUnderstoodError where that is not UTF-8."""

    def byte(match: re.Match[bytes]) -> bytes:
        code = match[1]
        return {b"n": b"\n", b"t": b"\t", b'"': b'"', b"\\": b"\\"}.get(code) or bytes.fromhex(code.decode())

    try:
        return _ESCAPE.sub(byte, string[1:-1].encode()).decode()
    except UnicodeDecodeError as error:
        raise NotUnderstoodError("a string is not UTF-8") from error


def escaped(value: str) -> str:
    """A string with its quotes that says ``value``."""
    return (
        '"'
        + "".join(chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else f"\\{byte:02X}" for byte in value.encode())
        + '"'
    )


class Cursor:
    """A place in the text that moves on behind what is read."""

    def __init__(self, text: str, at: int = 0) -> None:
        self.text = text
        self.at = at

    def skip_space(self) -> None:
        """Move behind white space and comments."""
        match = _SPACE.match(self.text, self.at)
        assert match is not None
        self.at = match.end()

    def looks_at(self, token: str) -> bool:
        """Whether ``token`` is next."""
        self.skip_space()
        return self.text.startswith(token, self.at)

    def take(self, token: str) -> bool:
        """Move behind ``token`` where it is next."""
        if not self.looks_at(token):
            return False
        self.at += len(token)
        return True

    def expect(self, token: str) -> None:
        """Move behind ``token``."""
        if not self.take(token):
            raise NotUnderstoodError(f"expected {token!r} at the offset {self.at}")

    def string(self) -> Text | None:
        """The string that is next."""
        self.skip_space()
        match = _STRING.match(self.text, self.at)
        if match is None:
            return None
        self.at = match.end()
        return Text(unescaped(match[0]), match.start(), match.end())

    def symbol(self) -> str | None:
        """The name of the symbol that is next: ``@name``."""
        self.skip_space()
        match = _SYMBOL.match(self.text, self.at)
        if match is None:
            return None
        self.at = match.end()
        return unescaped(match[1]) if match[1] else match[2]

    def values(self) -> list[str]:
        """The names of the values that are next, separated by commas."""
        found: list[str] = []
        while True:
            self.skip_space()
            match = _VALUE.match(self.text, self.at)
            if match is None:
                if found:
                    raise NotUnderstoodError(f"expected a value at the offset {self.at}")
                return found
            found.append(f"{match[1]}#{match[2] or 0}")
            self.at = match.end()
            if not self.take(","):
                return found

    def skip_brackets(self) -> None:
        """Move behind the bracket that is next, and what it encloses."""
        depth = 0
        for match in _BRACKET.finditer(self.text, self.at):
            if match[0] in _OPENING:
                depth += 1
            elif match[0] in _CLOSING:
                depth -= 1
                if depth <= 0:
                    self.at = match.end()
                    return
        raise NotUnderstoodError(f"a bracket at the offset {self.at} is not closed")

    def skip_attribute(self) -> None:
        """Move to the comma or the closing bracket behind the attribute that is next."""
        depth = 0
        for match in _BRACKET.finditer(self.text, self.at):
            token = match[0]
            if not depth and (token == "," or token in _CLOSING):
                self.at = match.start()
                return
            depth += (token in _OPENING) - (token in _CLOSING)
        raise NotUnderstoodError(f"the attributes at the offset {self.at} have no end")

    def attributes(self) -> dict[str, Text | None]:
        """The dictionary of attributes that is next, with braces; None for those that are not a string."""
        self.expect("{")
        found: dict[str, Text | None] = {}
        while not self.take("}"):
            key = self._key()
            found[key] = None
            if self.take("="):
                found[key] = self.string()
                if not (self.looks_at(",") or self.looks_at("}")):
                    self.skip_attribute()
            if not self.take(",") and not self.looks_at("}"):
                raise NotUnderstoodError(f"expected ',' or '}}' at the offset {self.at}")
        return found

    def _key(self) -> str:
        quoted = self.string()
        if quoted is not None:
            return quoted.value
        match = _KEY.match(self.text, self.at)
        if match is None:
            raise NotUnderstoodError(f"expected the name of an attribute at the offset {self.at}")
        self.at = match.end()
        return match[0]

    def type(self) -> TensorType:
        """The type that is next. Types other than tensors have no shape, and their own text as the element."""
        self.skip_space()
        start = self.at
        match = _TYPE_NAME.match(self.text, start)
        if match is None:
            raise NotUnderstoodError(f"expected a type at the offset {start}")
        if match[0].startswith("!") and "." not in match[0]:
            raise NotUnderstoodError(f"the alias of a type at the offset {start}")
        self.at = match.end()
        if self.text.startswith("<", self.at):
            self.skip_brackets()
        return tensor_type(self.text[start : self.at])

    def types(self) -> list[TensorType]:
        """The types that are next, in parentheses."""
        self.expect("(")
        found: list[TensorType] = []
        while not self.take(")"):
            found.append(self.type())
            if not self.take(",") and not self.looks_at(")"):
                raise NotUnderstoodError(f"expected ',' or ')' at the offset {self.at}")
        return found


def tensor_type(text: str) -> TensorType:
    """The type that is written as ``text``."""
    text = "".join(text.split())
    if not (text.startswith("tensor<") and text.endswith(">")):
        return TensorType(text, None, text)
    rest, sizes = text[len("tensor<") : -1], list[str]()
    while match := _DIMENSION.match(rest):
        sizes.append(match[1])
        rest = rest[match.end() :]
    element = rest.partition(",")[0]  # an encoding may follow
    if any(len(size) > _LONGEST_SIZE for size in sizes):
        raise NotUnderstoodError("a type with a size beyond 64 bits")
    if "*" in sizes:
        return TensorType(text, None, element)
    return TensorType(text, tuple(None if size == "?" else int(size) for size in sizes), element)
