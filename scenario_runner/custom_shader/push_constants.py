"""Push constants: the text that names them with their sizes, and the block that the shader declares."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from scenario_runner.checks.dispatches import MOST_BYTES
from scenario_runner.custom_shader.attributes import PushConstant
from scenario_runner.diagnostics import Diagnostic, error, warning
from scenario_runner.scenario.wording import shown
from scenario_runner.visible import counted

if TYPE_CHECKING:
    from scenario_runner.custom_shader.attributes import Attributes
    from scenario_runner.spirv import Block, Interface

_PAIR = re.compile(r"\s*([^\s:,][^:,]*?)\s*:\s*([0-9]{1,9})\s*")
_MOST_FINDINGS = 20
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


def check_push_constants(attributes: Attributes, interface: Interface) -> list[Diagnostic]:
    """What ``push_constants`` and the shader's block say differently."""
    declared, block = attributes.push_constants, interface.push_constants
    if block is None or not block.members:
        if not declared:
            return []
        message = f"the shader uses no push constants, but the attributes have {shown(written(declared))}"
        return [warning("SR-CUSTOM-017", _POINTER, message)]
    of_shader = constants_of(block)
    help = f'the shader has "push_constants": "{written(of_shader)}"'
    if not declared:
        message = f"the shader uses {counted(len(of_shader), 'push constant')}, but the attributes have none"
        return [warning("SR-CUSTOM-017", _POINTER, message, help)]
    found = []
    if len(declared) != len(of_shader):
        found.append(f"the attributes have {counted(len(declared), 'push constant')}, the shader has {len(of_shader)}")
    for ours, theirs in zip(declared, of_shader, strict=False):
        if theirs.name and ours.name != theirs.name:
            found.append(f"the push constant {shown(ours.name)} is called {shown(theirs.name)} in the shader")
        elif ours.size_bytes != theirs.size_bytes:
            found.append(
                f"the push constant {shown(ours.name)} has {ours.size_bytes} bytes, in the shader {theirs.size_bytes}"
            )
    return [error("SR-CUSTOM-015", _POINTER, message, help) for message in found[:_MOST_FINDINGS]]


def constants_of(block: Block) -> tuple[PushConstant, ...]:
    """The members of a push constant block, in the order of their offsets; without names where it has none."""
    members = sorted(block.members, key=lambda member: member.offset_bytes or 0)
    return tuple(PushConstant(member.name, member.size_bytes, member.offset_bytes or 0) for member in members)


def laid_out(attributes: Attributes, interface: Interface | None) -> tuple[tuple[PushConstant, ...], int]:
    """The push constants at the offsets that the shader gives them, and the bytes of the range that holds them.

    The shader may leave gaps between them (a vec4 begins at a multiple of 16). Without an interface there are none.
    """
    declared = attributes.push_constants
    block = None if interface is None else interface.push_constants
    if block is None:
        return declared, attributes.push_constants_size_bytes
    of_shader = constants_of(block)
    if len(of_shader) == len(declared):
        declared = tuple(
            ours._replace(offset_bytes=theirs.offset_bytes) for ours, theirs in zip(declared, of_shader, strict=True)
        )
    return declared, max(-(-block.size_bytes // 4) * 4, attributes.push_constants_size_bytes)


def written(constants: Iterable[PushConstant]) -> str:
    """The text of the attribute for these."""
    return ", ".join(f"{constant.name[:100] or 'unnamed'}: {constant.size_bytes}" for constant in constants)
