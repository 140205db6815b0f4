"""Bindings and push constants of a command against what its shaders declare: kinds, descriptor types, sizes, access.

Source: Vulkan specification, "Shader Interfaces", sections "Descriptor Set Interface", "DescriptorSet and Binding
Assignment" and "Push Constant Interface".
"""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from scenario_runner.checks.resources import described, named, words
from scenario_runner.diagnostics import Diagnostic, error, warning
from scenario_runner.spirv import DescriptorBinding, Interface
from scenario_runner.spirv.index import SOURCE, Index

_HLSL = 5  # SPIR-V specification, "Source Language"


def check_registers(index: Index, uid: str, variables: Sequence[DescriptorBinding], pointer: str) -> list[Diagnostic]:
    """Report the problems of several variables of one kind that the shader ``uid`` uses at one binding.

    In GLSL this is a way to see one buffer as two types; it is a mistake in modules that were made from HLSL.
    """
    if not _is_from_hlsl(index):
        return []
    names = " and ".join(repr(variable.name) for variable in variables)
    first = variables[0]
    place = f"set {first.set} and binding {first.binding}, so that one resource is bound to all of them"
    message = f"the variables {names} of shader {uid!r} have the same {place}"
    help = "give each register() a number of its own: t0 and u0 are one binding; or write [[vk::binding(1, 0)]]"
    return [warning("SR-BIND-010", pointer, message, help)]


def _is_from_hlsl(index: Index) -> bool:
    """Return whether the module says that its source was HLSL."""
    return any(index.words[at + 1] == _HLSL for at in index.offsets[SOURCE])


# The resource that a scenario binds to each kind of variable.
RESOURCE_OF: Final = {
    "storage_buffer": "buffer",
    "uniform_buffer": "buffer",
    "storage_image": "image",
    "sampled_image": "image",
    "combined_image_sampler": "image",
    "sampler": "image",
    "tensor": "tensor",
}
# Variables of these kinds may share one combined image sampler.
SAMPLED: Final = frozenset({"sampled_image", "combined_image_sampler", "sampler"})

MOST_SETS: Final = 1024
"""Far above the maxBoundDescriptorSets of any device; layouts are made for every set below the highest one."""

Stages = Sequence[tuple[str, Interface]]
"""The shaders of one command: uid and interface of each."""


class Slot(NamedTuple):
    """One set and binding as the shaders of a command see it.

    ``kind`` is that of the descriptor. ``variables`` are those that decide (the used ones, where any is used), each
    with the uid of its shader; the first one, ``variable`` of ``shader``, has the largest block. ``has_place`` tells
    whether the layout has a descriptor for it: where an entry point only lists a variable, drivers crash on a set that
    is not bound for it, and the emulation layers on a tensor that has no place.
    """

    set: int
    binding: int
    kind: str
    used: bool
    has_place: bool
    shader: str
    variable: DescriptorBinding
    variables: tuple[tuple[str, DescriptorBinding], ...]


Slots = Mapping[tuple[int, int], Slot]


def slots_of(stages: Stages, pointer: str) -> tuple[dict[tuple[int, int], Slot], list[Diagnostic]]:
    """Everything that the shaders of a command declare, and what makes it impossible to bind (at ``pointer``).

    From SPIR-V 1.4 on an entry point lists variables that its code never names. They have a slot, too, unless nothing
    could be bound there (arrays, texel buffers, high sets): a shader is not refused for what it leaves.
    """
    grouped: dict[tuple[int, int], list[tuple[str, DescriptorBinding]]] = {}
    findings: list[Diagnostic] = []
    for uid, interface in stages:
        for problem in interface.problems:
            findings.append(error("SR-BIND-009", pointer, f"shader {uid!r}: {problem}"))
        for variable in interface.bindings:
            grouped.setdefault((variable.set, variable.binding), []).append((uid, variable))
    slots: dict[tuple[int, int], Slot] = {}
    for (set, binding), variables in sorted(grouped.items()):
        used = [member for member in variables if member[1].used]
        deciding = used or variables
        if len(deciding) > 1:
            deciding = sorted(deciding, key=_block_size, reverse=True)
        uid, first = deciding[0]
        kind = first.kind
        if not used and (kind not in RESOURCE_OF or first.count != 1 or set > MOST_SETS):
            continue
        others = [member for member in deciding if member[1].kind != kind] if len(deciding) > 1 else []
        if others:
            if kind in SAMPLED and all(other.kind in SAMPLED for _, other in others):
                kind = "combined_image_sampler"
            elif used:
                other_uid, other = others[0]
                where = "it" if other_uid == uid else f"shader {other_uid!r}"
                also = f"a {words(other.kind)}{named(other)}"
                message = f"shader {uid!r} declares {described(first)} where {where} also has {also}"
                help = "give them bindings of their own: one resource cannot be both"
                findings.append(error("SR-BIND-006", pointer, message, help))
        elif len(used) > 1:
            for owner, interface in stages:
                own = [variable for stage, variable in used if stage == owner]
                if len(own) > 1:
                    findings += check_registers(interface.declarations.index, owner, own, pointer)
        if kind not in RESOURCE_OF:
            message = f"shader {uid!r} uses {described(first)}; scenarios have no resource that can be bound to it"
            findings.append(error("SR-BIND-008", pointer, message))
        elif first.count != 1:
            uses = f"shader {uid!r} uses {described(first)}, an array of descriptors"
            message = f"{uses}; a scenario binds one resource to each binding"
            findings.append(error("SR-BIND-007", pointer, message))
        if set > MOST_SETS:
            message = f"shader {uid!r} uses {described(first)}; no device has more than {MOST_SETS} descriptor sets"
            findings.append(error("SR-LIMIT-005", pointer, message))
        has_place = kind in RESOURCE_OF and (bool(used) or kind == "tensor")
        slots[set, binding] = Slot(set, binding, kind, bool(used), has_place, uid, first, tuple(deciding))
    return slots, findings


def _block_size(member: tuple[str, DescriptorBinding]) -> int:
    block = member[1].block
    return block.size_bytes if block else 0


MOST_BYTES = 1 << 16
"""Far above the maxPushConstantsSize of any device; keeps a wrong size or file from being taken into memory."""


def declared_size(interface: Interface) -> int:
    """Bytes of the block that a shader declares, as a multiple of 4."""
    block = interface.push_constants
    return 0 if block is None else -(-block.size_bytes // 4) * 4
