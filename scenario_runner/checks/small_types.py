"""Device features for types of 8 and 16 bits in buffers, which a module may use without declaring a capability.

DXC leaves the capabilities of storage out of modules that can calculate with such types.

Source: Vulkan specification, "Features", storageBuffer16BitAccess and those like it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scenario_runner.spirv.types import Array, Matrix, RuntimeArray, Scalar, Struct, Type, Vector

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scenario_runner.spirv import EntryPoint

_STRUCTURES = {16: "VkPhysicalDeviceVulkan11Features", 8: "VkPhysicalDeviceVulkan12Features"}
# (kind of variable, bits) → the member of the structure, and the capabilities that stand for it
_FEATURES = {
    ("storage_buffer", 16): ("storageBuffer16BitAccess", {4433, 4434}),
    ("uniform_buffer", 16): ("uniformAndStorageBuffer16BitAccess", {4434}),
    ("push_constants", 16): ("storagePushConstant16", {4435}),
    ("storage_buffer", 8): ("storageBuffer8BitAccess", {4448, 4449}),
    ("uniform_buffer", 8): ("uniformAndStorageBuffer8BitAccess", {4449}),
    ("push_constants", 8): ("storagePushConstant8", {4450}),
}


def small_type_features(entry: EntryPoint, uid: str) -> list[tuple[str, str, str]]:
    """(structure, member, what needs it) for the entry point of the shader ``uid``."""
    interface = entry.interface
    declared = set(entry.source.capabilities)
    blocks = [(each.kind, each.block) for each in interface.bindings if each.used and each.block is not None]
    if interface.push_constants is not None:
        blocks.append(("push_constants", interface.push_constants))
    found = {}
    for kind, block in blocks:
        for bits in _widths(block.struct):
            member, capabilities = _FEATURES.get((kind, bits), ("", declared))
            if member and capabilities.isdisjoint(declared):
                words = kind.replace("_", " ").removesuffix("s")
                found[_STRUCTURES[bits], member] = f"a type of {bits} bits in a {words} of shader {uid!r}"
    return [(structure, member, what) for (structure, member), what in found.items()]


def _widths(struct: Struct) -> Iterator[int]:
    """The bits of all scalars in a structure, some of them several times."""
    types: list[Type] = [struct]
    structs: set[int] = set()
    while types:
        type = types.pop()
        if isinstance(type, Array | RuntimeArray):
            types.append(type.element)
        elif isinstance(type, Struct):
            if type.id not in structs:
                structs.add(type.id)
                types += [member.type for member in type.members]
        elif isinstance(type, Scalar | Vector | Matrix):
            vector = type.column if isinstance(type, Matrix) else type
            yield (vector.component if isinstance(vector, Vector) else vector).width_bits
