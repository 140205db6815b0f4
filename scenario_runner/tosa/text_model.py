"""The parser of functions and custom operations in MLIR text.

The parser skips all other operations by their brackets. It expects functions and returns in MLIR's default form, and
custom operations in the default or generic form. `NotUnderstoodError` stands for other text, which may still be valid
MLIR. Source: the MLIR language reference.
"""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from scenario_runner.errors.text import Json
from scenario_runner.tosa.model import CustomOperation, Function, Model, Value, ValueType

STRING = r'"[^"\\]*(?:\\.[^"\\]*)*"'
VALUE = r"%(?:[0-9]+|[A-Za-z$._\-][\w$.\-]*)"
_SPACE = re.compile(r"(?:\s+|//[^\n]*)*")
_STRING = re.compile(STRING, re.DOTALL)
_VALUE = re.compile(rf"({VALUE})(?:#([0-9]+))?")
_VALUES = re.compile(rf"{_VALUE.pattern}(?:\s*,\s*{_VALUE.pattern})*")
_KEY = re.compile(rf"({STRING})|[A-Za-z_][\w$.]*", re.DOTALL)
_SYMBOL = re.compile(rf"@(?:({STRING})|([A-Za-z_][\w$.]*))", re.DOTALL)
_ESCAPE = re.compile(rb"\\(n|t|\"|\\|[0-9A-Fa-f]{2})")
# Tokens that count while text is skipped: strings, comments, brackets, and arrows, which contain no bracket.
_BRACKET = re.compile(rf"({STRING})|//[^\n]*|->|[\[\](){{}}<>]|,", re.DOTALL)
_OPENING, _CLOSING = "[({<", "])}>"
_LOCATION = re.compile(r"loc\s*(?=\()")
_TYPE_NAME = re.compile(r"!?[A-Za-z_][\w$.]*")
_LONGEST_SIZE = 19
_DIMENSION = re.compile(r"(\*|\?|[0-9]+)x")


class NotUnderstoodError(Exception):
    """The parser does not know this way of writing a model."""


class Text(NamedTuple):
    """A string: the value, and the string's place with the quotes."""

    value: str
    span: tuple[int, int]


def unescaped(string: str) -> str:
    """Return the value of a quoted string. Raises NotUnderstoodError unless it is UTF-8."""

    def byte(match: re.Match[bytes]) -> bytes:
        code = match[1]
        return {b"n": b"\n", b"t": b"\t", b'"': b'"', b"\\": b"\\"}.get(code) or bytes.fromhex(code.decode())

    try:
        return _ESCAPE.sub(byte, string[1:-1].encode()).decode()
    except UnicodeDecodeError as error:
        raise NotUnderstoodError("a string is not UTF-8") from error


def escaped(value: str) -> str:
    """Quote a string."""
    plain = (chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else f"\\{byte:02X}" for byte in value.encode())
    return f'"{"".join(plain)}"'


class Cursor:
    """A position in the text. Reading moves it behind the text just read."""

    def __init__(self, text: str, at: int = 0) -> None:
        self.text = text
        self.at = at

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Read text that matches a pattern; None if the next text does not."""
        match = pattern.match(self.text, self.next)
        if match is not None:
            self.at = match.end()
        return match

    @property
    def next(self) -> int:
        """The position behind spaces and comments."""
        match = _SPACE.match(self.text, self.at)
        return match.end() if match else self.at

    def looks_at(self, token: str) -> bool:
        """Return whether ``token`` is next."""
        return self.text.startswith(token, self.next)

    def take(self, token: str) -> bool:
        """Read ``token`` if it is next. Return whether it was."""
        if not self.looks_at(token):
            return False
        self.at = self.next + len(token)
        return True

    def expect(self, token: str) -> None:
        """Read ``token``. Raises NotUnderstoodError if it is not next."""
        if not self.take(token):
            raise self.expected(repr(token))

    def expected(self, syntax: str) -> NotUnderstoodError:
        """Make the error for text other than ``syntax``."""
        return NotUnderstoodError(f"expected {syntax} at the offset {self.next}")

    def values(self) -> list[str]:
        """Read names of values with commas between them."""
        match = self.match(_VALUES)
        return [f"{name}#{number or 0}" for name, number in _VALUE.findall(match[0])] if match else []

    def entries(self, closing: str) -> Iterator[None]:
        """Yield before each entry of a list with commas. Read the commas and the closing bracket."""
        while not self.take(closing):
            yield
            if not self.take(",") and not self.looks_at(closing):
                raise self.expected(f"',' or {closing!r}")

    def skip_brackets(self) -> None:
        """Skip the next bracket and everything inside it."""
        self.at = self.next + 1
        while self.text[self.skip_entry()] == ",":
            self.at += 1
        self.at += 1

    def skip_entry(self) -> int:
        """Skip to the comma or closing bracket after an entry. Return the offset."""
        depth = 0
        for match in _BRACKET.finditer(self.text, self.at):
            token = match[0]
            if not depth and (token == "," or token in _CLOSING):
                self.at = match.start()
                return self.at
            depth += (token in _OPENING) - (token in _CLOSING)
        raise NotUnderstoodError(f"a bracket before the offset {self.at} is not closed")

    def skip_location(self) -> None:
        """Skip a location, if present."""
        if self.match(_LOCATION):
            self.skip_brackets()

    def attributes(self, *, is_inner: bool = False) -> dict[str, object]:
        """Read a dictionary of attributes. A string becomes `Text`, an inner dictionary a dict, any other value None.

        Dictionaries within an inner dictionary, which may be nested to any depth, become None too.
        """
        self.expect("{")
        attributes: dict[str, object] = {}
        for _ in self.entries("}"):
            match = self.match(_KEY)
            if match is None:
                raise self.expected("the name of an attribute")
            name = unescaped(match[0]) if match[1] else match[0]
            attributes[name] = self._attribute(is_inner) if self.take("=") else None
        return attributes

    def _attribute(self, is_inner: bool) -> object:
        if self.looks_at("{") and not is_inner:
            return self.attributes(is_inner=True)
        match = self.match(_STRING)
        if match is not None and (self.looks_at(",") or self.looks_at("}")):
            return Text(unescaped(match[0]), match.span())
        self.skip_entry()
        return None

    def type(self) -> ValueType:
        """Read a type. A type other than a tensor has no shape, and the whole text as the element."""
        match = self.match(_TYPE_NAME)
        if match is None:
            raise self.expected("a type")
        if match[0].startswith("!") and "." not in match[0]:
            raise NotUnderstoodError(f"the alias of a type at the offset {match.start()}")
        if self.text.startswith("<", self.at):
            self.skip_brackets()
        return tensor_type(self.text[match.start() : self.at])

    def types(self) -> list[ValueType]:
        """Read a type, or several types in parentheses, each with or without attributes."""
        if not self.take("("):
            return [self.type()]
        types = []
        for _ in self.entries(")"):
            types.append(self.type())
            if self.looks_at("{"):
                self.skip_brackets()
        return types


def tensor_type(text: str) -> ValueType:
    """Parse the text of a type."""
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


_RESULT = re.compile(rf"({VALUE})(?::([0-9]{{1,6}}))?")
_CUSTOM = r'(?:"tosa\.custom"|tosa\.custom(?![\w.$]))'
# The search stops at results with their custom operation, at strings and comments (they may hold anything), at braces,
# and at keywords. Most alternatives begin with a fixed character, so that Python's engine is fast. A list of
# results is a single match, since an operation may have thousands.
_STOP = re.compile(
    rf"(?P<results>{_RESULT.pattern}(?:\s*,\s*{_RESULT.pattern})*)(?:\s*=\s*(?P<custom>{_CUSTOM}))?|"
    rf"{STRING}|//[^\n]*|[{{}}]|"
    r"(?<![\w.$%@#!^])(?:tosa\.custom|func\.func|(?:func\.)?return)(?![\w.$])",
    re.DOTALL,
)
_VISIBILITY = re.compile(r"(?:public|private|nested)\b")


def parse_text(text: str, path: str) -> Model:
    """Parse a model. Raises NotUnderstoodError for text that the parser does not know."""
    functions: list[Function] = []
    at = depth = 0
    while match := _STOP.search(text, at):
        at = match.end()
        depth += (match[0] == "{") - (match[0] == "}")
        if depth < 0:
            raise NotUnderstoodError(f"no open brace matches the closing brace at the offset {match.start()}")
        if match[0] == "func.func":
            functions.append(_function(text, match.start()))
            at = functions[-1].span[1]
        elif match[0] == '"func.func"':
            raise NotUnderstoodError("a function in the generic form")
    if depth:
        raise NotUnderstoodError("a brace is not closed")
    return Model(path, text, tuple(functions))


def _function(text: str, start: int) -> Function:
    cursor = Cursor(text, start + len("func.func"))
    cursor.match(_VISIBILITY)
    symbol = cursor.match(_SYMBOL)
    if symbol is None:
        raise NotUnderstoodError("a function without a name")
    arguments = _arguments(cursor)
    result_types = cursor.types() if cursor.take("->") else []
    attributes = cursor.attributes() if cursor.take("attributes") else {}
    entry = attributes.get("tf.entry_function")
    function = Function(
        name=unescaped(symbol[1]) if symbol[1] else symbol[2],
        arguments=arguments,
        result_types=tuple(result_types),
        input_names=_names(entry, "inputs"),
        output_names=_names(entry, "outputs"),
        span=(start, cursor.at),
        has_body=cursor.take("{"),
    )
    return _with_body(function, text, cursor.at) if function.has_body else function


def _arguments(cursor: Cursor) -> tuple[Value, ...]:
    start = cursor.at
    cursor.expect("(")
    arguments: list[Value] = []
    for _ in cursor.entries(")"):
        name = cursor.match(_VALUE)
        if name is None:  # a declaration has only types
            cursor.at = start
            cursor.skip_brackets()
            return ()
        cursor.expect(":")
        arguments.append(Value(f"{name[1]}#0", cursor.type()))
        if cursor.looks_at("{"):
            cursor.skip_brackets()
        cursor.skip_location()
    return tuple(arguments)


def _names(entry: object, key: str) -> tuple[str, ...] | None:
    names = entry.get(key) if isinstance(entry, dict) else None
    if not isinstance(names, Text):
        return None
    return tuple(names.value.split(",")) if names.value else ()


def _with_body(function: Function, text: str, at: int) -> Function:
    """Parse the body of a function from the offset ``at`` on. Return the function and all operations in it."""
    operations: list[CustomOperation] = []
    nested: list[CustomOperation] = []
    spans: list[tuple[int, int]] = []
    returned: tuple[Value, ...] | None = None
    start, depth = at, 1
    counted, line = 0, 1  # an offset, and the line's number
    while depth:
        match = _STOP.search(text, at)
        if match is None:
            raise NotUnderstoodError("a function without an end")
        at, token = match.end(), match[0]
        depth += (token == "{") - (token == "}")
        if match["custom"] or token.strip('"') == "tosa.custom":
            line += text.count("\n", counted, at)
            counted = at
            operation = _custom(text, match, line)
            at = operation.span[1]
            (operations if depth == 1 else nested).append(operation)
            spans.append(operation.span)
        elif token in ("return", "func.return") and depth == 1:
            if returned is not None:
                raise NotUnderstoodError("a function with two returns")
            returned, at = _return(text, at)
            spans.append((match.start(), at))
        elif token == '"func.return"':
            raise NotUnderstoodError("a return in the generic form")
    if returned is None:
        raise NotUnderstoodError("a function without a return")
    all_are_shaders = bool(operations) and not nested and all(operation.is_shader for operation in operations)
    between = pairwise([(start, start), *spans, (at - 1, at)])  # shaders alone have only spaces and comments between
    return function._replace(
        operations=tuple(operations),
        nested=tuple(nested),
        returned=returned,
        is_only_shaders=all_are_shaders and all(Cursor(text, end).next >= start for (_, end), (start, _) in between),
        span=(function.span[0], at),
    )


def _return(text: str, at: int) -> tuple[tuple[Value, ...], int]:
    """Parse the values after a "return". Return them and the offset behind them."""
    cursor = Cursor(text, at)
    names = cursor.values()
    types: list[ValueType] = []
    while cursor.take("," if types else ":"):
        types.append(cursor.type())
    if len(types) != len(names):
        raise NotUnderstoodError("a return with different numbers of values and types")
    cursor.skip_location()
    return tuple(map(Value, names, types)), cursor.at


def _custom(text: str, match: re.Match[str], line: int) -> CustomOperation:
    """Parse a custom operation; ``match`` has the operation's results and name."""
    names = [
        f"{name}#{number}"
        for name, count in _RESULT.findall(match["results"] or "")
        for number in range(int(count or 1))
    ]
    cursor = Cursor(text, match.end())
    attributes: dict[str, Json] = {}
    is_generic = match[0].endswith('"')
    if is_generic:
        cursor.expect("(")
    operands = cursor.values()
    if is_generic:
        cursor.expect(")")
        if cursor.take("<"):
            attributes |= cursor.attributes()
            cursor.expect(">")
    if cursor.looks_at("{"):
        attributes |= cursor.attributes()
    cursor.expect(":")
    operand_types = cursor.types()
    cursor.expect("->")
    result_types = cursor.types()
    cursor.skip_location()
    keys = ("domain_name", "operator_name", "implementation_attrs")
    texts = [attributes[key] for key in keys if isinstance(attributes.get(key), Text)]
    if len(texts) < len(keys):
        raise NotUnderstoodError("a custom operation with attributes other than strings")
    domain, name, implementation = texts
    if len(operands) != len(operand_types) or len(names) != len(result_types):
        raise NotUnderstoodError("a custom operation with different numbers of values and types")
    return CustomOperation(
        name=name.value,
        domain=domain.value,
        attributes=implementation.value,
        operands=tuple(map(Value, operands, operand_types)),
        results=tuple(map(Value, names, result_types)),
        span=(match.start(), cursor.at),
        attributes_span=implementation.span,
        line=line,
    )
