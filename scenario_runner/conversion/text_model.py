"""Custom operations and functions in MLIR text: strings, attributes, types, values, and where they stand.

Only these are read; all other operations are passed over, and skipped by their brackets. Functions and returns are
expected as MLIR prints them by default, custom operations as that or in the generic form. `NotUnderstoodError` says
that the text is written in a way that is not read here, though MLIR may accept it. Source: the MLIR language reference.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from scenario_runner.conversion.model import CustomOperation, Function, Model, Value
from scenario_runner.custom_shader.attributes import ValueType

STRING = r'"[^"\\]*(?:\\.[^"\\]*)*"'
VALUE = r"%(?:[0-9]+|[A-Za-z$._\-][\w$.\-]*)"
_SPACE = re.compile(r"(?:\s+|//[^\n]*)*")
_STRING = re.compile(STRING, re.DOTALL)
_VALUE = re.compile(rf"({VALUE})(?:#([0-9]+))?")
_KEY = re.compile(r"[A-Za-z_][\w$.]*")
_SYMBOL = re.compile(rf"@(?:({STRING})|([A-Za-z_][\w$.]*))", re.DOTALL)
_ESCAPE = re.compile(rb"\\(n|t|\"|\\|[0-9A-Fa-f]{2})")
# Tokens that matter when something is skipped: strings, comments, arrows (whose > closes nothing) and brackets.
_BRACKET = re.compile(rf"({STRING})|//[^\n]*|->|[\[\](){{}}<>]|,", re.DOTALL)
_OPENING, _CLOSING = "[({<", "])}>"
_LOCATION = re.compile(r"loc\s*(?=\()")
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
    """Read a string with its quotes. Raises NotUnderstoodError where that is not UTF-8."""

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

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Move behind what matches ``pattern`` where that is next."""
        self.skip_space()
        match = pattern.match(self.text, self.at)
        if match is not None:
            self.at = match.end()
        return match

    def looks_at(self, token: str) -> bool:
        """Tell whether ``token`` is next."""
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
        match = self.match(_STRING)
        return None if match is None else Text(unescaped(match[0]), match.start(), match.end())

    def symbol(self) -> str | None:
        """The name of the symbol that is next: ``@name``."""
        match = self.match(_SYMBOL)
        return None if match is None else unescaped(match[1]) if match[1] else match[2]

    def values(self) -> list[str]:
        """The names of the values that are next, separated by commas."""
        values: list[str] = []
        while match := self.match(_VALUE):
            values.append(f"{match[1]}#{match[2] or 0}")
            if not self.take(","):
                return values
        if values:
            raise NotUnderstoodError(f"expected a value at the offset {self.at}")
        return values

    def entries(self, closing: str) -> Iterator[None]:
        """Step through what is separated by commas, to behind the closing bracket."""
        while not self.take(closing):
            yield
            if not self.take(",") and not self.looks_at(closing):
                raise NotUnderstoodError(f"expected ',' or {closing!r} at the offset {self.at}")

    def skip_brackets(self) -> None:
        """Move behind the bracket that is next, and what it encloses."""
        self.skip_space()
        self.at += 1
        while self.text[self.skip_entry()] == ",":
            self.at += 1
        self.at += 1

    def skip_entry(self) -> int:
        """Move to the comma or the closing bracket behind what is next; gives the offset."""
        depth = 0
        for match in _BRACKET.finditer(self.text, self.at):
            token = match[0]
            if not depth and (token == "," or token in _CLOSING):
                self.at = match.start()
                return self.at
            depth += (token in _OPENING) - (token in _CLOSING)
        raise NotUnderstoodError(f"a bracket before the offset {self.at} is not closed")

    def skip_location(self) -> None:
        """Move behind the location that is next."""
        at = self.at
        if self.match(_LOCATION):
            self.skip_brackets()
        else:
            self.at = at

    def attributes(self) -> dict[str, Text | None]:
        """The dictionary of attributes that is next, with braces; None for those that are not a string."""
        self.expect("{")
        attributes: dict[str, Text | None] = {}
        for _ in self.entries("}"):
            key = self._key()
            attributes[key] = None
            if self.take("="):
                attributes[key] = self.string()
                if not (self.looks_at(",") or self.looks_at("}")):
                    self.skip_entry()
        return attributes

    def _key(self) -> str:
        quoted = self.string()
        if quoted is not None:
            return quoted.value
        match = self.match(_KEY)
        if match is None:
            raise NotUnderstoodError(f"expected the name of an attribute at the offset {self.at}")
        return match[0]

    def type(self) -> ValueType:
        """The type that is next. Types other than tensors have no shape, and their own text as the element."""
        match = self.match(_TYPE_NAME)
        if match is None:
            raise NotUnderstoodError(f"expected a type at the offset {self.at}")
        if match[0].startswith("!") and "." not in match[0]:
            raise NotUnderstoodError(f"the alias of a type at the offset {match.start()}")
        if self.text.startswith("<", self.at):
            self.skip_brackets()
        return tensor_type(self.text[match.start() : self.at])

    def types(self) -> list[ValueType]:
        """The types that are next, in parentheses."""
        self.expect("(")
        return [self.type() for _ in self.entries(")")]


def tensor_type(text: str) -> ValueType:
    """The type that is written as ``text``."""
    text = "".join(text.split())
    if not (text.startswith("tensor<") and text.endswith(">")):
        return ValueType(None, text, text)
    rest, sizes = text[len("tensor<") : -1], list[str]()
    while match := _DIMENSION.match(rest):
        sizes.append(match[1])
        rest = rest[match.end() :]
    element = rest.partition(",")[0]  # an encoding may follow
    if any(len(size) > _LONGEST_SIZE for size in sizes):
        raise NotUnderstoodError("a type with a size beyond 64 bits")
    if "*" in sizes:
        return ValueType(None, element, text)
    return ValueType(tuple(None if size == "?" else int(size) for size in sizes), element, text)


# What the search stops at: strings and comments (which may hold anything), braces, and the operations that matter.
_STOP = re.compile(
    rf"({STRING})|//[^\n]*|[{{}}]|"
    r"(?<![\w.$%@#!^])(?:func\.func|tosa\.custom|(?:func\.)?return)(?![\w.$])",
    re.DOTALL,
)
_RESULTS = re.compile(rf"((?:{VALUE}(?::[0-9]{{1,6}})?\s*,\s*)*{VALUE}(?::[0-9]{{1,6}})?)\s*=\s*$")
_RESULT = re.compile(rf"({VALUE})(?::([0-9]+))?")
_RESULT_CHARACTERS = 64
_VISIBILITY = re.compile(r"(?:public|private|nested)\b")


def parse_text(text: str, path: str) -> Model:
    """The model that ``text`` is. Raises NotUnderstoodError where it is written in a way that is not read here."""
    functions: list[Function] = []
    declarations: list[Function] = []
    at = depth = 0
    while match := _STOP.search(text, at):
        at = match.end()
        depth += (match[0] == "{") - (match[0] == "}")
        if depth < 0:
            raise NotUnderstoodError(f"the brace at the offset {match.start()} closes nothing")
        if match[0] == "func.func":
            function = _Function(text, match.start()).read()
            at = function.span[1]
            (functions if function.has_body else declarations).append(function)
        elif match[0] == '"func.func"':
            raise NotUnderstoodError("a function in the generic form")
    if depth:
        raise NotUnderstoodError("a brace is not closed")
    return Model(path, text, tuple(functions), declarations=tuple(declarations))


class _Function:
    """Reads one function."""

    def __init__(self, text: str, start: int) -> None:
        self._text = text
        self._start = start
        self._counted, self._line = 0, 1  # the number of the line at an offset
        self._operations: list[CustomOperation] = []
        self._nested: list[CustomOperation] = []
        self._returned: tuple[Value, ...] = ()
        self._has_return = False
        self._spans: list[tuple[int, int]] = []

    def read(self) -> Function:
        cursor = Cursor(self._text, self._start + len("func.func"))
        cursor.match(_VISIBILITY)
        name = cursor.symbol()
        if name is None:
            raise NotUnderstoodError("a function without a name")
        arguments = self._arguments(cursor)
        result_types = self._result_types(cursor) if cursor.take("->") else []
        inputs = outputs = None
        if cursor.take("attributes"):
            start = cursor.at
            cursor.skip_brackets()
            inputs, outputs = _entry_names(self._text[start : cursor.at])
        has_body = cursor.take("{")
        body = cursor.at
        if has_body:
            cursor.at = self._body(body)
        return Function(
            name=name,
            arguments=arguments,
            result_types=tuple(result_types),
            operations=tuple(self._operations),
            nested=tuple(self._nested),
            returned=self._returned,
            is_only_shaders=has_body and self._is_only_shaders(body, cursor.at - 1),
            input_names=inputs,
            output_names=outputs,
            span=(self._start, cursor.at),
            has_body=has_body,
        )

    def _arguments(self, cursor: Cursor) -> tuple[Value, ...]:
        cursor.expect("(")
        arguments: list[Value] = []
        for _ in cursor.entries(")"):
            names = cursor.values() if not arguments or cursor.looks_at("%") else []
            if len(names) != 1:
                # a declaration has types only
                cursor.at = self._text.index("(", self._start)
                cursor.skip_brackets()
                return ()
            cursor.expect(":")
            arguments.append(Value(names[0], cursor.type()))
            if cursor.looks_at("{"):
                cursor.skip_brackets()
            cursor.skip_location()
        return tuple(arguments)

    def _result_types(self, cursor: Cursor) -> list[ValueType]:
        if not cursor.take("("):
            return [cursor.type()]
        types: list[ValueType] = []
        for _ in cursor.entries(")"):
            types.append(cursor.type())
            if cursor.looks_at("{"):
                cursor.skip_brackets()
        return types

    def _body(self, at: int) -> int:
        """Read the operations from ``at`` on; where the body ends, its closing brace included."""
        text, depth = self._text, 1
        while match := _STOP.search(text, at):
            token, at = match[0], match.end()
            if token == "{":
                depth += 1
            elif token == "}":
                depth -= 1
                if not depth:
                    if not self._has_return:
                        raise NotUnderstoodError("a function without a return")
                    return at
            elif token in ("tosa.custom", '"tosa.custom"'):
                self._line += text.count("\n", self._counted, match.start())
                self._counted = match.start()
                operation = _custom(text, match, self._line)
                at = operation.span[1]
                (self._operations if depth == 1 else self._nested).append(operation)
                self._spans.append(operation.span)
            elif token in ("return", "func.return"):
                if depth == 1:
                    if self._has_return:
                        raise NotUnderstoodError("a function with two returns")
                    at = self._return(match)
            elif token == '"func.return"':
                raise NotUnderstoodError("a return in the generic form")
        raise NotUnderstoodError("a function without an end")

    def _return(self, match: re.Match[str]) -> int:
        self._has_return = True
        cursor = Cursor(self._text, match.end())
        names = cursor.values()
        if names:
            cursor.expect(":")
            types = [cursor.type()]
            while cursor.take(","):
                types.append(cursor.type())
            if len(types) != len(names):
                raise NotUnderstoodError("a return with other types than values")
            self._returned = tuple(map(Value, names, types))
        cursor.skip_location()
        self._spans.append((match.start(), cursor.at))
        return cursor.at

    def _is_only_shaders(self, start: int, end: int) -> bool:
        if self._nested or not self._operations or not all(operation.is_shader for operation in self._operations):
            return False
        for first, last in [*self._spans, (end, end)]:
            cursor = Cursor(self._text, start)
            cursor.skip_space()
            if cursor.at < first:
                return False
            start = last
        return True


def _entry_names(attributes: str) -> tuple[tuple[str, ...] | None, tuple[str, ...] | None]:
    """The names of ``tf.entry_function`` in the attributes of a function."""
    match = re.search(rf"({STRING})|(?<![\w.$])tf\.entry_function\s*=\s*(?={{)", attributes, re.DOTALL)
    while match is not None and match[1] is not None:
        match = re.compile(match.re).search(attributes, match.end())
    if match is None:
        return None, None
    entry_attributes = Cursor(attributes, match.end()).attributes()
    inputs, outputs = (_split(entry_attributes.get(key)) for key in ("inputs", "outputs"))
    return inputs, outputs


def _split(names: Text | None) -> tuple[str, ...] | None:
    return None if names is None else tuple(names.value.split(",")) if names.value else ()


def _custom(text: str, match: re.Match[str], line: int) -> CustomOperation:
    """The custom operation whose name was found."""
    start, names = _results(text, match.start())
    cursor = Cursor(text, match.end())
    texts: dict[str, Text | None] = {}
    if match[1]:
        cursor.expect("(")
        operands = cursor.values()
        cursor.expect(")")
        if cursor.take("<"):
            texts |= cursor.attributes()
            cursor.expect(">")
    else:
        operands = cursor.values()
    if cursor.looks_at("{"):
        texts |= cursor.attributes()
    cursor.expect(":")
    operand_types = cursor.types()
    cursor.expect("->")
    result_types = cursor.types() if cursor.looks_at("(") else [cursor.type()]
    cursor.skip_location()
    strings = [texts.get(key) for key in ("domain_name", "operator_name", "implementation_attrs")]
    domain, name, attributes = strings
    if domain is None or name is None or attributes is None:
        raise NotUnderstoodError("a custom operation whose attributes are not strings")
    if len(operands) != len(operand_types) or len(names) != len(result_types):
        raise NotUnderstoodError("a custom operation with other types than values")
    return CustomOperation(
        name=name.value,
        domain=domain.value,
        attributes=attributes.value,
        operands=tuple(map(Value, operands, operand_types)),
        results=tuple(map(Value, names, result_types)),
        span=(start, cursor.at),
        attributes_span=(attributes.start, attributes.end),
        line=line,
    )


def _results(text: str, at: int) -> tuple[int, list[str]]:
    """Find the start of the operation whose name is at ``at``, and the names of its results."""
    size = _RESULT_CHARACTERS
    while True:
        start = max(0, at - size)
        match = _RESULTS.search(text[start:at])
        if match is None:
            return at, []
        if match.start() or not start:
            break
        size *= 4  # there may be more of them
    names: list[str] = []
    for result in _RESULT.finditer(match[1]):
        names += [f"{result[1]}#{number}" for number in range(int(result[2] or 1))]
    return start + match.start(), names
