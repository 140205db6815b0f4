"""Results of operators with several (FFT2D, RFFT2D) that no output of a graph depends on.

The specification allows them; the emulation layers leave such a value out and then follow a null pointer to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scenario_runner.spirv._generated import opcodes as op
from scenario_runner.tosa import COUNT, operator

if TYPE_CHECKING:
    from scenario_runner.spirv import Module

_TOSA = "TOSA.001000.1"


def lost_part(module: Module) -> str:
    """What messages call the first result that nothing needs; empty where there is none. The module was checked."""
    words, at = module.source.words, 5
    places: list[int] = []
    members: dict[int, int] = {}  # how many a structure has
    while at < len(words):
        opcode = words[at] & 0xFFFF
        if opcode == op.TYPE_STRUCT:
            members[words[at + 1]] = (words[at] >> 16) - 2
        elif opcode in (op.EXT_INST, op.COMPOSITE_EXTRACT, op.GRAPH_SET_OUTPUT):
            places.append(at)
        at += words[at] >> 16
    if not members:
        return ""
    needed: set[int] = set()
    parts: dict[int, set[int]] = {}
    lost = ""
    for at in reversed(places):  # a value is defined before it is used
        opcode, count = words[at] & 0xFFFF, words[at] >> 16
        if opcode == op.GRAPH_SET_OUTPUT:
            needed.add(words[at + 1])
        elif opcode == op.COMPOSITE_EXTRACT:
            if words[at + 2] in needed:
                needed.add(words[at + 3])
                parts.setdefault(words[at + 3], set()).add(words[at + 4])
        else:
            result = words[at + 2]
            unused = set(range(members.get(words[at + 1], 0))) - parts.get(result, set())
            if unused:
                lost = f"result {min(unused)} of the operator{_name(module, at)} with the id {result}"
            if result in needed:
                needed.update(words[at + 5 : at + count])
    return lost


def _name(module: Module, at: int) -> str:
    """A space and the name of the operator at a word, where its instruction set is TOSA's."""
    words = module.source.words
    place = module.source.definition(words[at + 3], "the instruction set")
    if module.source.string(place + 2, place + module.source.count(place)) != _TOSA or words[at + 4] >= COUNT:
        return ""
    return f" {operator(words[at + 4]).name}"
