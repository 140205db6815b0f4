"""The text of ``push_constants``: names and sizes."""

from __future__ import annotations

import re
from collections.abc import Iterable

from scenario_runner.checks.push_constants import MOST_BYTES
from scenario_runner.custom_shader.attributes import PushConstant
from scenario_runner.diagnostics import Diagnostic, error
from scenario_runner.scenario.wording import shown

_PAIR = re.compile(r"\s*([^\s:,][^:,]*?)\s*:\s*([0-9]{1,9})\s*")
_POINTER = "/push_constants"
_HELP = 'write names and sizes in bytes, such as "scale: 4, bias: 4"'


def read_push_constants(text: str) -> tuple[tuple[PushConstant, ...], list[Diagnostic]]:
    """The push constants that a text lists, each behind the one before it, and what is wrong with the text."""
    if not text.strip():
        return (), []
    found: list[PushConstant] = []
    problems: list[Diagnostic] = []
    offset = 0
    for part in text.split(","):
        pair = _PAIR.fullmatch(part)
        if pair is None:
            problems.append(_wrong(f"expected 'name: size', got {shown(part.strip())}"))
            continue
        name, size = pair[1], int(pair[2])
        if size < 1:
            problems.append(_wrong(f"the push constant {shown(name)} has {size} bytes, expected at least 1"))
        found.append(PushConstant(name, size, offset))
        offset += size
    problems += _repeated(constant.name for constant in found)
    if offset > MOST_BYTES and not problems:
        problems.append(_wrong(f"the push constants take {offset} bytes; no device has more than {MOST_BYTES}"))
    return tuple(found), problems


def _repeated(names: Iterable[str]) -> list[Diagnostic]:
    seen: set[str] = set()
    twice: dict[str, None] = {}
    for name in names:
        if name in seen:
            twice[name] = None
        seen.add(name)
    return [_wrong(f"the push constant {shown(name)} is listed twice") for name in twice]


def _wrong(message: str) -> Diagnostic:
    return error("SR-CUSTOM-006", _POINTER, message, _HELP)
