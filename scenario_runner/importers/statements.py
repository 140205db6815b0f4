"""The statements of a script: lines as words, and text up to END."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, TypeVar

from scenario_runner.errors import FileError, UnsupportedError
from scenario_runner.errors.text import close_names, did_you_mean
from scenario_runner.importers.item_folders import file_error
from scenario_runner.importers.memory_layouts import Bytes, Element, Number

MOST_BYTES: Final = 1 << 30
"""The greatest size of a buffer."""
MOST_LEVELS: Final = 31
_TOKEN: Final = re.compile(r'"(?:\\.|[^"\\\n])*"|[(),]|#.*|\\\r?\n|\n|[^\s(),]+')
_NO_END: Final = "the END of this statement is missing"
_Value = TypeVar("_Value")


def words_of(text: str) -> list[str]:
    """Return the words of a text without comments."""
    return [word for word in _TOKEN.findall(text) if not word.startswith(("#", "\\", "\n"))]


class Tolerance(NamedTuple):
    """A tolerance of an expectation, or a percentage."""

    value: float
    is_percent: bool

    def of(self, number: float) -> float:
        """Return the tolerance around a number."""
        return abs(number) * self.value / 100 if self.is_percent else self.value


class Statement:
    """The words of a statement, which may continue on further lines.

    ``line`` is the number of the first line.
    """

    def __init__(self, path: str, line: int, words: list[str]) -> None:
        self.path, self.line, self._words = path, line, words

    def wrong(self, message: str) -> FileError:
        """Make the error for this line."""
        return file_error(self.path, message, "correct the script", line=self.line)

    def peek(self) -> str:
        """Return the next word; empty after the last word."""
        return self._words[0] if self._words else ""

    def word(self, meaning: str) -> str:
        """Take the next word."""
        if not self._words:
            raise self.wrong(f"{meaning} is missing")
        word = self._words.pop(0).strip('"')
        if not word:
            raise self.wrong(f"{meaning} is empty")
        return word

    def expect(self, *words: str) -> str:
        """Take the next word. Raises an error unless it is one of ``words``."""
        found = self.word(" or ".join(words))
        if found not in words:
            raise self.wrong(f"unexpected {found!r}, expected {' or '.join(words)}")
        return found

    def suffix(self, prefix: str, words: Sequence[str]) -> str:
        """Take the next word, a prefix and one of ``words``, and return the part after the prefix."""
        return self.expect(*(prefix + word for word in words)).removeprefix(prefix)

    def has(self, word: str) -> bool:
        """Take the next word if it is this word."""
        if self.peek() != word:
            return False
        self._words.pop(0)
        return True

    def switch(self) -> bool:
        """Take the next word, on or off."""
        return self.expect("on", "off") == "on"

    def known(self, table: Mapping[str, object], kind: str) -> str:
        """Take the next word, a name in a table."""
        name = self.word(f"the name of a {kind}")
        if name not in table:
            raise self.wrong(f"there is no {kind} {name!r:.60}{did_you_mean(close_names(name, table))}")
        return name

    def rest(self) -> list[str]:
        """Take all further words."""
        words, self._words = self._words, []
        return words

    def options(self, table: Mapping[str, Callable[[], _Value]]) -> dict[str, _Value]:
        """Take keywords in any order up to the end of the line. Each has a function that takes the value."""
        found: dict[str, _Value] = {}
        while self.peek():
            keyword = self.expect(*table)
            found[keyword] = table[keyword]()
        return found

    def integer(self, meaning: str, least: int = 0, most: int = MOST_BYTES) -> int:
        """Take an integer in a range, also in hexadecimal."""
        return self.as_count(self.word(meaning), meaning, least, most)

    def as_count(self, word: str, meaning: str, least: int = 0, most: int = MOST_BYTES) -> int:
        """Convert a word to an integer in a range."""
        number = self.as_integer(word, meaning)
        if not least <= number <= most:
            raise self.wrong(f"{meaning} must be from {least} to {most}, not {word:.60}")
        return number

    def integers(self, count: int, meaning: str) -> list[int]:
        """Take several integers."""
        return [self.integer(meaning) for _ in range(count)]

    def as_integer(self, word: str, meaning: str) -> int:
        """Convert a word to an integer."""
        try:
            return int(word, 16 if word.lower().startswith("0x") else 10)
        except ValueError:
            raise self.wrong(f"{meaning} must be an integer, not {word!r:.60}") from None

    def number(self, meaning: str) -> float:
        """Take a number."""
        return self.as_number(self.word(meaning), meaning)

    def as_number(self, word: str, meaning: str) -> float:
        """Convert a word to a finite number."""
        number = self.value(word, "float64")
        if not math.isfinite(number):
            raise self.wrong(f"{meaning} must be finite, not {word!r:.60}")
        return float(number)

    def as_tolerance(self, word: str) -> Tolerance:
        """Convert a word such as 0.5 or 2% to a tolerance."""
        number = self.as_number(word.removesuffix("%"), "a tolerance")
        if number < 0:
            raise self.wrong(f"a tolerance must not be negative, not {word!r:.60}")
        return Tolerance(number, word.endswith("%"))

    def values(self, words: list[str], element: Element) -> list[Number]:
        """Convert one word or more to numbers of elements."""
        if not words:
            raise self.wrong("there is no value")
        types = [dtype for _, dtype in element.numbers]
        return [self.value(word, types[index % len(types)]) for index, word in enumerate(words)]

    def packed(self, words: list[str], element: Element) -> Bytes:
        """Convert words to the bytes of elements."""
        values = self.values(words, element)
        if len(values) * element.size_bytes > MOST_BYTES * len(element.numbers):
            raise self.wrong(f"the values fill more than {MOST_BYTES >> 30} GiB")
        return element.pack(values)

    def value(self, word: str, dtype: str) -> Number:
        """Convert a word to a number of a type."""
        if not dtype.startswith("float"):
            return int(self.as_number(word, "a value")) if "." in word else self.as_integer(word, "a value")
        try:
            return float(int(word, 16) if word.lower().startswith("0x") else float(word))
        except (OverflowError, ValueError):
            raise self.wrong(f"{word!r:.60} is not a number") from None

    def check_offset(self, offset: int, element: Element) -> None:
        """Check that an element may begin at an offset in bytes."""
        if offset % element.size_bytes:
            raise self.wrong(f"the offset {offset} is not a multiple of the {element.size_bytes} bytes of an element")

    def end(self) -> None:
        """Check that no word is left."""
        if self._words:
            raise self.wrong(f"unexpected {self._words[0]!r} at the end of the line")

    def run(self, table: Mapping[str, Callable[[Statement], object]], unsupported: Mapping[str, str]) -> None:
        """Call the function of the first word. ``unsupported`` has the reasons for commands that scenarios lack."""
        keyword = self.word("a command")
        if keyword in unsupported:
            raise UnsupportedError(unsupported[keyword])
        if keyword not in table:
            raise self.wrong(f"unknown command {keyword!r:.60}{did_you_mean(close_names(keyword, table))}")
        table[keyword](self)
        self.end()


class Lines:
    """The lines of a script as statements, without comments, and as text."""

    def __init__(self, path: str, text: str, first_line: int = 1) -> None:
        self.text, self.first_line = text, first_line
        self._path = path
        self._lines = text.splitlines()
        self._line = 0  # the number of lines that were read
        self.statements = self._read()

    def _read(self) -> Iterator[Statement]:
        while self._line < len(self._lines):
            first, text = self.first_line + self._line, self._next()
            while text.rstrip().endswith("\\") and not text.lstrip().startswith("#") and self._line < len(self._lines):
                text = text.rstrip()[:-1] + " " + self._next()
            words = words_of(text)
            if words:
                yield Statement(self._path, first, words)

    def _next(self) -> str:
        self._line += 1
        return self._lines[self._line - 1]

    def block(self, opened: Statement) -> Iterator[Statement]:
        """Yield the statements up to END."""
        opened.end()
        for row in self.statements:
            if row.has("END"):
                row.end()
                return
            yield row
        raise opened.wrong(_NO_END)

    def words_before_end(self, opened: Statement) -> list[str]:
        """Return the words up to END, which may stand on further lines."""
        words = opened.rest()
        while "END" not in words:
            further = next(self.statements, None)
            if further is None:
                raise opened.wrong(_NO_END)
            words += further.rest()
        if words.index("END") != len(words) - 1:
            raise opened.wrong("there are words after END")
        return words[:-1]

    def text_before_end(self, opened: Statement) -> str:
        """Return the lines up to END."""
        taken: list[str] = []
        while self._line < len(self._lines):
            line = self._next()
            if line.split()[:1] == ["END"]:
                return "\n".join(taken) + "\n"
            taken.append(line)
        raise opened.wrong(_NO_END)
