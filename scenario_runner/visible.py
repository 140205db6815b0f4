"""Text as it is shown: names and messages of others, counts and sizes.

Nothing in text of others moves the cursor, colours the terminal or changes the direction of writing.

The command line sends all that it prints through `visible`. Names that stand inside a line go through `one_line`, so
that a newline in a name does not look like the next message.
"""

from __future__ import annotations

# Of what `str.isprintable` refuses, these spaces are harmless.
_SPACES = "\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
_LINES = "\n\t" + _SPACES


def visible(text: str) -> str:
    """``text`` with escape sequences instead of control and format characters (terminal escapes, bidirectional
    overrides, line separators, lone surrogates, ...), but for newlines and tabs."""
    if all(line.isprintable() for line in text.split("\n")):
        return text
    return _escaped(text, _LINES)


def one_line(text: str, longest: int = 1000) -> str:
    """The same on one line, and shortened in the middle where it has more characters than ``longest``."""
    if len(text) > longest:
        text = f"{text[: longest - 100]}...{text[-97:]}"
    return text if text.isprintable() else _escaped(text, _SPACES)


def counted(number: int, noun: str) -> str:
    """A number of things: '1 dispatch', '2 dispatches'."""
    return f"{number} {noun}" + ("" if number == 1 else "es" if noun.endswith("ch") else "s")


def distinct(value: float, bound: float) -> tuple[str, str]:
    """A number and what it is compared with, with at least six digits, and as many as show that they differ."""
    texts = ((f"{value:.{digits}g}", f"{bound:.{digits}g}") for digits in range(6, 18))
    return next((pair for pair in texts if pair[0] != pair[1]), (repr(value), repr(bound)))


def size_in_units(size_bytes: int) -> str:
    """A size: '12 bytes', '256.0 MiB'."""
    for unit, shift in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if size_bytes >= 1 << shift:
            return f"{size_bytes / (1 << shift):.1f} {unit}"
    return f"{size_bytes} bytes"


def _escaped(text: str, but: str) -> str:
    return "".join(letter if letter.isprintable() or letter in but else repr(letter)[1:-1] for letter in text)
