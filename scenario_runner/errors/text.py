"""Text for users: escaped names and messages, counts and sizes, and suggestions for misspelt names.

Foreign text must not move the cursor, colour the terminal or change the writing direction. The command line escapes
its whole output with `visible`. Names inside a line go through `one_line`, so that a newline in a name does not look
like the next message.
"""

import os
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any, TypeAlias

# A text, or a text and a terminal style.
Span: TypeAlias = "str | tuple[str, str]"

# A value from `json.loads`. Readers check the parts' types.
Json: TypeAlias = Any

# `str.isprintable` refuses these spaces, but they are harmless.
_SPACES = "\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
_LINES = "\n\t" + _SPACES


def visible(text: str) -> str:
    """Escape control and format characters of a text, except newlines and tabs.

    These are terminal escapes, bidirectional overrides, line separators, lone surrogates and others."""
    if all(line.isprintable() for line in text.split("\n")):
        return text
    return _escaped(text, _LINES)


def one_line(text: str, longest: int = 1000) -> str:
    """Escape a text like `visible`, with newlines and tabs, and cut the middle of more than ``longest`` characters."""
    if len(text) > longest:
        text = f"{text[: longest - 100]}...{text[-97:]}"
    return text if text.isprintable() else _escaped(text, _SPACES)


def counted(number: int, noun: str) -> str:
    """Return a number with a noun: '1 dispatch', '2 dispatches'."""
    return f"{number} {noun}" + ("" if number == 1 else "es" if noun.endswith("ch") else "s")


def with_article(noun: str) -> str:
    """Return a noun with an article: 'a buffer', 'an image'."""
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


def share_of(number: int, total: int, noun: str) -> str:
    """Return a share with a verb: '1 of 4 elements (25 %) is', '2 of 4 elements (50 %) are'."""
    return f"{number} of {counted(total, noun)} ({100 * number / total:.3g} %) {'is' if number == 1 else 'are'}"


def first_of(names: Sequence[str], most: int = 10) -> str:
    """List the first names of many: "a, b and 3 more"."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return (", ".join(one_line(name) for name in names[:most]) or "none") + more


def distinct(value: float, bound: float) -> tuple[str, str]:
    """Format a number and a bound with six digits, or with more digits until the two texts differ."""
    texts = ((f"{value:.{digits}g}", f"{bound:.{digits}g}") for digits in range(6, 18))
    return next((pair for pair in texts if pair[0] != pair[1]), (repr(value), repr(bound)))


def size_in_units(size_bytes: int) -> str:
    """Format a size: '12 bytes', '256.0 MiB'."""
    for unit, shift in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if size_bytes >= 1 << shift:
            return f"{size_bytes / (1 << shift):.1f} {unit}"
    return f"{size_bytes} bytes"


def _escaped(text: str, but: str) -> str:
    return "".join(letter if letter.isprintable() or letter in but else repr(letter)[1:-1] for letter in text)


_MOST_CHARACTERS = 100
_MOST_ENTRIES = 5000  # in a folder


def close_names(name: str, candidates: Iterable[str], *, most: int = 3, cutoff: float = 0.6) -> list[str]:
    """Return the candidates most like ``name``, the nearest first. Case does not matter."""
    return list(_close_names(name, tuple(candidates), most, cutoff))


@lru_cache(64)  # all combinations of parameters have the same misspelt names
def _close_names(name: str, candidates: tuple[str, ...], most: int, cutoff: float) -> tuple[str, ...]:
    from difflib import get_close_matches

    folded: dict[str, str] = {}
    for candidate in candidates:
        folded.setdefault(candidate.lower(), candidate)
    matches = get_close_matches(name[:_MOST_CHARACTERS].lower(), folded, n=most, cutoff=cutoff)
    return tuple(folded[match] for match in matches)


def did_you_mean(names: Iterable[str]) -> str:
    """Return `` (did you mean 'a' or 'b'?)``, or an empty string without names."""
    shown = " or ".join(repr(name) for name in names)
    return f" (did you mean {shown}?)" if shown else ""


def numbered(stem: str, extension: str, is_taken: Callable[[str], bool]) -> str:
    """Return a free name: the plain name, or a name with a number such as ``stem~2.npy``.

    The search doubles the number until a name is free, so that thousands of equal names cost little.
    """

    def name_of(number: int) -> str:
        return f"{stem}~{number}{extension}" if number > 1 else f"{stem}{extension}"

    last, free = 0, 1
    while is_taken(name_of(free)):
        last, free = free, 2 * free
    while free - last > 1:
        middle = (last + free) // 2
        last, free = (middle, free) if is_taken(name_of(middle)) else (last, middle)
    return name_of(free)


def close_files_help(path: str, error: Exception | None = None) -> str | None:
    """Return help for a missing file: up to three existing files with similar paths.

    Return None if there are none, or if ``error`` is not about a missing file.
    """
    if error is not None and not isinstance(error, (FileNotFoundError, NotADirectoryError)):
        return None
    try:
        files = [close_file for close_file in _close_files(path) if os.path.isfile(close_file)]
    except (OSError, ValueError):
        return None
    unique = list(dict.fromkeys(files))[:3]
    return f"did you mean {' or '.join(map(repr, unique))}?" if unique else None


def _close_files(path: str) -> Iterable[str]:
    """Yield paths like ``path``, the likeliest first. Some are not files."""
    folder, name = os.path.split(path)
    missing: list[str] = []
    while folder and not os.path.isdir(folder):
        folder, part = os.path.split(folder)
        if not part:
            return
        missing.insert(0, part)
    entries = _entries(folder)
    if missing:
        for part in close_names(missing[0], entries):
            yield os.path.join(folder, part, *missing[1:], name)
        yield os.path.join(folder, name)
        return
    stem, extension = os.path.splitext(name)
    stems: dict[str, list[str]] = {}
    for entry in entries:
        stems.setdefault(os.path.splitext(entry)[0].lower(), []).append(entry)
    for close in close_names(stem, stems):
        for entry in sorted(stems[close], key=lambda entry: os.path.splitext(entry)[1].lower() != extension.lower()):
            yield os.path.join(folder, entry)
    for entry in entries:  # the right name in the wrong folder
        yield os.path.join(folder, entry, name)
    yield os.path.join(os.path.dirname(os.path.abspath(folder)), name)


def _entries(folder: str) -> list[str]:
    with os.scandir(folder or ".") as entries:
        return sorted(entry.name for entry in islice(entries, _MOST_ENTRIES))


def reason_of(error: OSError | ValueError) -> str:
    """Return the operating system's reason in lower case. Python raises ``ValueError`` for a NUL in a path."""
    if isinstance(error, ValueError):
        return "no path can hold a NUL character"
    text = error.strerror or str(error) or type(error).__name__
    return text[:1].lower() + text[1:]


def json_reason(error: ValueError | RecursionError) -> str:
    """Return why ``json.loads`` refused a text."""
    return "it is nested too deeply" if isinstance(error, RecursionError) else str(error)


def listed(names: Iterable[str]) -> str:
    """Return names in quotes, with commas."""
    return ", ".join(repr(name) for name in names)


def close_match(name: object, candidates: Iterable[str]) -> str:
    """Return `` (did you mean 'x'?)`` for the candidate most like a name, or an empty string."""
    if not isinstance(name, str) or not name:
        return ""
    return did_you_mean(close_names(name, candidates, most=1))
