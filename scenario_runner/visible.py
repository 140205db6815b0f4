"""Text of others as it may be shown: nothing in it moves the cursor, colours the terminal or turns letters round.

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


def _escaped(text: str, but: str) -> str:
    return "".join(letter if letter.isprintable() or letter in but else repr(letter)[1:-1] for letter in text)
