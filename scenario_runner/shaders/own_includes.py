"""Includes that `source` does not put in place and that a compiler would follow by itself.

``#include MACRO``, or a directive that is written such that `source` does not see it. The module then comes from more
than the text that is compiled; and in a sandbox no compiler may open files.
"""

from __future__ import annotations

import re

# Compiled when they are needed, which few shaders make them.
_COMMENT_OR_STRING = rb"//(?:\\\r?\n|[^\n])*+|/\*.*?(?:\*/|\Z)|(\"(?:\\.|[^\"\\\n])*+\")"
_SPLICE = rb"\\[ \t\f\v]*(?:\r\n?|\n)"
# `#` has two more spellings; `import` and `embed` are those of some compilers.
_WORDS = (b"include", b"import", b"embed")
_OPENS_FILE = rb"(?:#|%:|\?\?=)\s*(include|import|embed)"


def own_include(text: bytes) -> str:
    """The name of the first directive that makes a compiler open a file; empty where there is none."""
    text = re.sub(_SPLICE, b"", text) if b"\\" in text else text
    if not any(_has_word(text, word) for word in _WORDS):
        return ""
    found = re.search(_OPENS_FILE, without_comments(text))
    return found[1].decode() if found else ""


def without_comments(text: bytes) -> bytes:
    """``text`` with a space for each comment; its lines stay where they are.

    Compilers disagree about where comments end. What is not there, none of them can take for a directive.
    """

    def replaced(found: re.Match[bytes]) -> bytes:
        return found[1] or b" " + b"\n" * found[0].count(b"\n")

    return re.sub(_COMMENT_OR_STRING, replaced, text, flags=re.S)


def _has_word(text: bytes, word: bytes) -> bool:
    """Whether some word begins so; GL_GOOGLE_include_directive does not."""
    at = text.find(word)
    while at > 0 and (text[at - 1 : at].isalnum() or text[at - 1] == ord("_")):
        at = text.find(word, at + 1)
    return at >= 0
