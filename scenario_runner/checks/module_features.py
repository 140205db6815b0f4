"""Device features that a module uses without declaring a capability for them.

Source: Vulkan specification, "Shaders" (LocalSizeId: maintenance4; Workgroup variables with an initializer:
shaderZeroInitializeWorkgroupMemory; writes in the stages of a drawing: vertexPipelineStoresAndAtomics,
fragmentStoresAndAtomics).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scenario_runner.spirv.access import WORKGROUP

if TYPE_CHECKING:
    from scenario_runner.spirv import EntryPoint

CALCULATING = frozenset({9, 22, 39})
"""Float16, Int16 and Int8: without these, a module needs the capabilities of storage."""
_VULKAN_1_3 = "VkPhysicalDeviceVulkan13Features"
_STORES = {"Vertex": "vertexPipelineStoresAndAtomics", "Fragment": "fragmentStoresAndAtomics"}
_LOCAL_SIZE_ID = 38
# Words of an OpVariable without an initializer.
_BARE_VARIABLE = 4


def module_features(entry: EntryPoint, uid: str) -> list[tuple[str, str, str]]:
    """(structure, member, what needs it) for the entry point of the shader ``uid``."""
    index = entry.source
    stores = _STORES.get(entry.execution_model)
    words = index.words
    found = []
    if stores is not None and any(each.writes and each.writable for each in entry.interface.bindings):
        found.append(("VkPhysicalDeviceFeatures", stores, f"what shader {uid!r} writes besides its outputs"))
    if any(words[at + 2] == _LOCAL_SIZE_ID for at in index.execution_modes.get(entry.function, ())):
        found.append((_VULKAN_1_3, "maintenance4", f"the workgroup size by ids of shader {uid!r}"))
    for id in index.variables:
        at = index.definitions[id]
        if words[at + 3] == WORKGROUP and index.count(at) > _BARE_VARIABLE:
            what = f"the initialized shared memory of shader {uid!r}"
            found.append((_VULKAN_1_3, "shaderZeroInitializeWorkgroupMemory", what))
            break
    if not CALCULATING.isdisjoint(index.capabilities):
        from scenario_runner.checks.small_types import small_type_features

        found += small_type_features(entry, uid)
    return found
