"""Registers of HLSL that become one binding: t0 and u0 are different registers, and the same binding.

Compilers of HLSL to SPIR-V say nothing about it: the number of a register is the binding, whatever its letter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scenario_runner.diagnostics import Diagnostic, warning

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scenario_runner.spirv import DescriptorBinding
    from scenario_runner.spirv.index import Index

_SOURCE = 3  # OpSource
_HLSL = 5  # SPIR-V specification, "Source Language"


def check_registers(index: Index, uid: str, variables: Sequence[DescriptorBinding], pointer: str) -> list[Diagnostic]:
    """What is to be said of several variables of one kind that the shader ``uid`` uses at one binding.

    In GLSL this is a way to see one buffer as two types; it is a mistake in modules that were made from HLSL.
    """
    if not _is_from_hlsl(index):
        return []
    names = " and ".join(repr(each.name) for each in variables)
    first = variables[0]
    return [
        warning(
            "SR-BIND-010",
            pointer,
            f"the variables {names} of shader {uid!r} have the same set {first.set} and binding {first.binding}, so"
            " that one resource is bound to all of them",
            "give each register() a number of its own: t0 and u0 are one binding; or write [[vk::binding(1, 0)]]",
        )
    ]


def _is_from_hlsl(index: Index) -> bool:
    """Whether the module says that its source was HLSL."""
    words = index.words
    at = index.memory_model or 0
    while at < len(words) and words[at] >> 16 and not 18 < words[at] & 0xFFFF < 40:  # up to the first type
        if words[at] & 0xFFFF == _SOURCE and words[at] >> 16 > 1:
            return words[at + 1] == _HLSL
        at += words[at] >> 16
    return False
