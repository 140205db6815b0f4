"""Bindings and push constants of a command against what its shaders declare: kinds, descriptor types, sizes, access.

Source: Vulkan specification, "Shader Interfaces", sections "Descriptor Set Interface", "DescriptorSet and Binding
Assignment" and "Push Constant Interface".
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any, Final, NamedTuple

from scenario_runner.checks.resources import check_image, check_tensor, described, named, words
from scenario_runner.diagnostics import Diagnostic, error, warning
from scenario_runner.scenario import Binding
from scenario_runner.spirv import DescriptorBinding, Interface
from scenario_runner.spirv.index import SOURCE, Index
from scenario_runner.spirv.interface import push_constants_read

_HLSL = 5  # SPIR-V specification, "Source Language"


def check_registers(index: Index, uid: str, variables: Sequence[DescriptorBinding], pointer: str) -> list[Diagnostic]:
    """Report the problems of several variables of one kind that the shader ``uid`` uses at one binding.

    In GLSL this is a way to see one buffer as two types; it is a mistake in modules that were made from HLSL.
    """
    if not _is_from_hlsl(index):
        return []
    names = " and ".join(repr(variable.name) for variable in variables)
    first = variables[0]
    message = (
        f"the variables {names} of shader {uid!r} have the same set {first.set} and binding {first.binding}, so"
        " that one resource is bound to all of them"
    )
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
_SAMPLED: Final = frozenset({"sampled_image", "combined_image_sampler", "sampler"})

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
            if kind in _SAMPLED and all(other.kind in _SAMPLED for _, other in others):
                kind = "combined_image_sampler"
            elif used:
                other_uid, other = others[0]
                where = "it" if other_uid == uid else f"shader {other_uid!r}"
                message = (
                    f"shader {uid!r} declares {described(first)} where {where} also has"
                    f" a {words(other.kind)}{named(other)}"
                )
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
            message = (
                f"shader {uid!r} uses {described(first)}, an array of descriptors;"
                " a scenario binds one resource to each binding"
            )
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


def check_bindings(
    slots: Slots,
    uids: Sequence[str],
    bindings: Sequence[Binding],
    resources: Mapping[str, Any],
    readonly: Collection[str],
    pointer: str,
) -> list[Diagnostic]:
    """Find the problems of the bindings of one command at ``pointer``.

    ``uids`` are those of its shaders. ``resources`` are planned ones by uid, without those that something else is wrong
    with; the scenario calls those in ``readonly`` so.
    """
    names = " and ".join(map(repr, uids))
    shaders = f"shader {names} does" if len(uids) == 1 else f"the shaders {names} do"
    findings: list[Diagnostic] = []
    bound = set(map(attrgetter("set", "id"), bindings))
    missing = [slot for key, slot in slots.items() if slot.used and key not in bound]
    for index, binding in enumerate(bindings):
        slot = slots.get((binding.set, binding.id))
        if slot is None:
            meant = _meant(binding, missing, resources.get(binding.resource_ref))
            if meant is not None:
                missing.remove(meant)
                findings.append(_misplaced(binding, meant, shaders, f"{pointer}/bindings/{index}"))
                continue
            message = (
                f"resource {binding.resource_ref!r} is bound to set {binding.set}, binding {binding.id},"
                f" which {shaders} not use"
            )
            help = "nothing that is written here can depend on it"
            findings.append(warning("SR-BIND-002", f"{pointer}/bindings/{index}", message, help))
            continue
        what = resources.get(binding.resource_ref)
        if what is not None:
            findings += _check_binding(slot, binding, what, readonly, f"{pointer}/bindings/{index}")
    for slot in missing:
        message = f"nothing is bound to {described(slot.variable)}, which shader {slot.shader!r} uses"
        help = f'add {{"set": {slot.set}, "id": {slot.binding}, "resource_ref": "…"}}'
        findings.append(error("SR-BIND-001", f"{pointer}/bindings", message, help))
    return findings


def _meant(binding: Binding, missing: Iterable[Slot], resource: Any) -> Slot | None:
    """Of the slots that nothing is bound to, the one that a binding to none probably is for: its number is the next
    one, or the same in another set, and the resource is of its kind."""
    for slot in missing:
        near = abs(slot.binding - binding.id) == 1 if slot.set == binding.set else slot.binding == binding.id
        if near and (resource is None or RESOURCE_OF.get(slot.kind) == resource.kind):
            return slot
    return None


def _misplaced(binding: Binding, slot: Slot, shaders: str, place: str) -> Diagnostic:
    """A missing and an unused binding are one mistake where their numbers are next to each other."""
    key, wrong, right = ("set", binding.set, slot.set) if slot.set != binding.set else ("id", binding.id, slot.binding)
    message = (
        f"resource {binding.resource_ref!r} is bound to set {binding.set}, binding {binding.id}, which {shaders} not"
        f" use, and nothing is bound to {described(slot.variable)}, which shader {slot.shader!r} uses"
    )
    help = f"if {binding.resource_ref!r} is meant for it, write {right} in place of {wrong}"
    return error("SR-BIND-001", f"{place}/{key}", message, help)


def _check_binding(
    slot: Slot, binding: Binding, resource: Any, readonly: Collection[str], place: str
) -> list[Diagnostic]:
    expected_kind = RESOURCE_OF.get(slot.kind)
    variable, uid = slot.variable, binding.resource_ref
    if expected_kind is None:
        return []  # said where the shader is
    if resource.kind != expected_kind:
        message = (
            f"{resource.kind} {uid!r} is bound to {described(variable)}, for which shader {slot.shader!r} needs"
            f" {'an' if expected_kind[0] in 'aeiou' else 'a'} {expected_kind}"
        )
        return [error("SR-BIND-003", f"{place}/resource_ref", message)]
    findings = []
    kind = binding.descriptor_type.removeprefix("VK_DESCRIPTOR_TYPE_").removesuffix("_ARM").lower()
    if kind not in ("auto", slot.kind) and not (kind == "combined_image_sampler" and slot.kind in _SAMPLED):
        message = (
            f"descriptor type {binding.descriptor_type!r} does not match {described(variable)}"
            f" in shader {slot.shader!r}"
        )
        help = "leave descriptor_type out: it is taken from the shader"
        findings.append(error("SR-BIND-004", f"{place}/descriptor_type", message, help))
    for shader, declared in slot.variables if uid in readonly else ():
        # nothing stops such a write: the results are as the shader says, but the file says otherwise, and a readonly
        # resource is not returned as a result; writes that are only assumed (a pointer not followed) do not count
        if declared.writes and declared.writable and declared.followed:
            name = repr(declared.name) if declared.name else f"set {declared.set}, binding {declared.binding}"
            message = (
                f"shader {shader!r} writes {expected_kind} {uid!r} through {name}, but its shader_access is 'readonly'"
            )
            help = f"give {uid!r} the shader_access 'readwrite', or declare {name} readonly in the shader"
            findings.append(warning("SR-ACCESS-001", place, message, help))
            break
    if expected_kind == "buffer":
        block = variable.block
        if block is not None and block.size_bytes > resource.size_bytes:
            message = (
                f"buffer {uid!r} has {resource.size_bytes} bytes; {described(variable)} in shader {slot.shader!r}"
                f" declares {block.size_bytes}"
            )
            help = "a shader that touches what is missing reads or writes memory of something else"
            findings.append(warning("SR-BIND-005", place, message, help))
    elif expected_kind == "image":
        for shader, declared in slot.variables:
            findings += check_image(declared, shader, uid, resource.format, place)
    else:
        for shader, declared in slot.variables:
            if declared.tensor is not None:
                what = f"{described(declared)} in shader {shader!r}"
                findings += check_tensor(declared.tensor, what, uid, resource.dims, resource.format, place)
    return findings


MOST_BYTES = 1 << 16
"""Far above the maxPushConstantsSize of any device; keeps a wrong size or file from being taken into memory."""


def declared_size(interface: Interface) -> int:
    """Bytes of the block that a shader declares, as a multiple of 4."""
    block = interface.push_constants
    return 0 if block is None else -(-block.size_bytes // 4) * 4


def check_size(uid: str, interface: Interface, size: int, pointer: str) -> list[Diagnostic]:
    """A shader's push_constants_size, ``size`` (0: the shader's own), against what it reads; ``pointer`` is the
    shader's."""
    place = f"{pointer}/push_constants_size"
    if max(size, declared_size(interface)) > MOST_BYTES:
        size = max(size, declared_size(interface))
        return [error("SR-PUSH-004", place, f"push_constants_size is {size}; no device takes more than {MOST_BYTES}")]
    if size and size < declared_size(interface):
        read = push_constants_read(interface)
        if read > size:
            message = f"shader {uid!r} reads {read} bytes of push constants, but push_constants_size is {size}"
            help = f"set push_constants_size to {declared_size(interface)}, or leave it out"
            return [error("SR-PUSH-001", place, message, help)]
    return []


def check_data(
    shaders: str, interfaces: Sequence[Interface], size: int, data: str, data_size: int, pointer: str
) -> list[Diagnostic]:
    """The ``data_size`` bytes of the raw_data ``data`` against what ``shaders`` take and read.

    ``size`` is the largest push_constants_size of them (0: their own). What the data do not reach must not be read.
    """
    declared = max(map(declared_size, interfaces))
    most = size or declared
    if not most:
        message = f"no push constants are declared by {shaders}, but the command has raw_data {data!r} for them"
        return [error("SR-PUSH-005", pointer, message, "remove push_data_ref")]
    if data_size > most:
        has = (
            f"the push_constants_size of {shaders} is {size}"
            if size
            else f"the push constants of {shaders} have {declared}"
        )
        help = f"set push_constants_size to {-(-data_size // 4) * 4}, or give less data"
        return [error("SR-PUSH-002", pointer, f"raw_data {data!r} holds {data_size} bytes, but {has}", help)]
    read = max(map(push_constants_read, interfaces)) if data_size < declared else 0
    if data_size < read:
        message = f"raw_data {data!r} holds {data_size} bytes, but {read} bytes of push constants are read by {shaders}"
        return [error("SR-PUSH-002", pointer, message, "give as much data as the shader reads")]
    return []


def padded(data: bytes) -> bytes:
    """Data as vkCmdPushConstants takes it: a multiple of 4 bytes."""
    return data + bytes(-len(data) % 4)
