"""Sources for a compiler that must read no files: what `source` did not put in place, no compiler may go and look for.

Compilers look for includes themselves: ``#include MACRO``, or a directive that is written such that `source` does not
see it. They disagree about where comments end, so comments are taken out, and what is left must have no directive that
opens a file.
"""

from __future__ import annotations

import re

from scenario_runner.errors import Problem, SandboxError
from scenario_runner.files.sandbox import CODE

_COMMENT_OR_STRING = re.compile(rb"//(?:\\\r?\n|[^\n])*+|/\*.*?(?:\*/|\Z)|(\"(?:\\.|[^\"\\\n])*+\")", re.S)
_SPLICE = re.compile(rb"\\[ \t\f\v]*(?:\r\n?|\n)")
# `#` has two more spellings; `import` and `embed` are those of some compilers.
_OPENS_FILE = re.compile(rb"(?:#|%:|\?\?=)\s*(include|import|embed)")


def closed(text: bytes, place: str) -> bytes:
    """``text`` without comments; its lines stay where they are. Raises SandboxError where it would open files."""
    text = _COMMENT_OR_STRING.sub(lambda found: found[1] or b" " + b"\n" * found[0].count(b"\n"), text)
    found = _OPENS_FILE.search(_SPLICE.sub(b"", text))
    if found:
        raise SandboxError(
            Problem(
                f"has an #{found[1].decode()} that the compiler would follow by itself, which the sandbox forbids",
                place,
                help='write #include "file" on one line, without a macro',
                code=CODE,
            )
        )
    return text
