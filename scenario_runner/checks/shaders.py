"""One shader of a scenario: its entry point and workgroup size, specialization constants, block layouts and features.

Features are those that a module uses without declaring a capability for them. DXC leaves the capabilities of storage
out of modules that can calculate with types of 8 and 16 bits.

Source: Vulkan specification, "Shader Interfaces", section "Offset and Stride Assignment"; "Shaders" (LocalSizeId:
maintenance4; Workgroup variables with an initializer: shaderZeroInitializeWorkgroupMemory; writes in the stages of a
drawing: vertexPipelineStoresAndAtomics, fragmentStoresAndAtomics); "Features", storageBuffer16BitAccess and those like
it.
"""

from collections.abc import Iterable, Iterator

from scenario_runner.diagnostics import Diagnostic, error, warning
from scenario_runner.errors import SpirvError
from scenario_runner.scenario import SpecializationConstant
from scenario_runner.spirv import EntryPoint, Interface, Module
from scenario_runner.spirv.access import WORKGROUP
from scenario_runner.spirv.layout import BASE, SCALAR, check_layout
from scenario_runner.spirv.types import Array, Matrix, RuntimeArray, Scalar, Struct, Type, Vector

Need = tuple[str, str, str]
"""A device feature: its structure, its member, and what needs it in words."""
MODELS = {"compute": "GLCompute", "vertex": "Vertex", "fragment": "Fragment"}
"""A stage of a scenario → SPIR-V's execution model."""
_MOST_NAMED = 20
_MOST_CHARACTERS = 200


def find_entry_point(
    module: Module, uid: str, name: str, stage: str, pointer: str
) -> tuple[EntryPoint | None, list[Diagnostic]]:
    """The entry point of this name and stage, or what there is instead; ``pointer`` is the shader's."""
    model = MODELS[stage]
    entry = module.entry_point(name, model)
    if entry is not None:
        return entry, []
    there_are = [f"{_clipped(entry.name)!r} ({entry.execution_model})" for entry in module.entry_points[:_MOST_NAMED]]
    there_are += [f"{_clipped(graph.name)!r} (a graph)" for graph in module.graph_entry_points[:_MOST_NAMED]]
    listed = ", ".join(there_are[:_MOST_NAMED]) or "none"
    code = "SR-SHADER-001" if module.entry_point(name) is None else "SR-SHADER-002"
    message = f"shader {uid!r} has no entry point {name!r} for the {stage} stage; the entry points are: {listed}"
    return None, [error(code, f"{pointer}/entry" if name != "main" else pointer, message)]


def check_workgroup(interface: Interface, stage: str, uid: str, pointer: str) -> list[Diagnostic]:
    """A workgroup without invocations (a size or specialization constant of 0), and a compute shader without a size."""
    size = interface.local_size()
    if size is None and stage == "compute":
        message = f"shader {uid!r} has no workgroup size: expected LocalSize, LocalSizeId or the built-in WorkgroupSize"
        return [error("SR-SHADER-003", pointer, message)]
    if size is None or all(size):
        return []
    message = f"shader {uid!r} has a workgroup of {' x '.join(map(str, size))} invocations, expected at least 1"
    return [error("SR-SHADER-003", pointer, message)]


def _clipped(name: str) -> str:
    return name if len(name) <= _MOST_CHARACTERS else f"{name[:_MOST_CHARACTERS]}…"


def specialize(
    module: Module, uid: str, constants: Iterable[SpecializationConstant], pointer: str
) -> tuple[dict[int, tuple[bytes, bool | int | float]], list[Diagnostic]]:
    """The values that the module has constants for, as bytes and as numbers by SpecId; and what is wrong.

    ``pointer`` is where the list of constants is.
    """
    values: dict[int, tuple[bytes, bool | int | float]] = {}
    findings: list[Diagnostic] = []
    for index, constant in enumerate(constants):
        declared = module.spec_constant(constant.id)
        if declared is None:
            ids = [str(spec_constant.id) for spec_constant in module.spec_constants]
            there_are = ", ".join(ids[:_MOST_NAMED]) + (", …" if len(ids) > _MOST_NAMED else "") or "none"
            message = f"shader {uid!r} declares no specialization constant {constant.id} (it has: {there_are})"
            findings.append(warning("SR-SPEC-001", f"{pointer}/{index}/id", message))
            continue
        try:
            values[constant.id] = declared.encode(constant.value), constant.value
        except SpirvError as problem:
            findings.append(error("SR-SPEC-002", f"{pointer}/{index}/value", str(problem)))
    return values, findings


_SCALAR_BLOCKS = ("VkPhysicalDeviceVulkan12Features", "scalarBlockLayout")
_STD430_UNIFORMS = ("VkPhysicalDeviceVulkan12Features", "uniformBufferStandardLayout")


def check_blocks(interface: Interface, uid: str, pointer: str) -> tuple[list[Diagnostic], list[Need]]:
    """Find the problems of the blocks that an entry point of the shader ``uid`` uses, and the features that they
    take."""
    findings: list[Diagnostic] = []
    needs: list[Need] = []
    blocks: dict[tuple[int, bool], tuple[Struct, str]] = {}
    for binding in interface.bindings:
        if binding.block is not None:
            uniform = binding.kind == "uniform_buffer"
            blocks[binding.block.id, uniform] = (binding.block, binding.kind)
    if interface.push_constants is not None:
        blocks[interface.push_constants.id, False] = (interface.push_constants, "push_constants")
    for block, kind in blocks.values():
        uniform = kind == "uniform_buffer"
        if kind != "storage_buffer" and block.runtime_stride_bytes is not None:
            words = kind.replace("_", " ")
            message = f"shader {uid!r}: {words} {block.name!r} ends in a runtime array, which only storage buffers may"
            findings.append(error("SR-LAYOUT-001", pointer, message))
        what = f"the layout of {kind.replace('_', ' ')} {block.name!r} in shader {uid!r}"
        problems, alignment = check_layout(block)
        if not problems and alignment == SCALAR:
            needs.append((*_SCALAR_BLOCKS, what))
        elif not problems and alignment == BASE and uniform:
            needs.append((*_STD430_UNIFORMS, what))
        for problem, code in problems.items():
            finding = error if code == "SR-LAYOUT-001" else warning
            findings.append(finding(code, pointer, f"shader {uid!r}: {problem}"))
    return findings, needs


CALCULATING = frozenset({9, 22, 39})
"""Float16, Int16 and Int8: without these, a module needs the capabilities of storage."""
_VULKAN_1_3 = "VkPhysicalDeviceVulkan13Features"
_STORES = {"Vertex": "vertexPipelineStoresAndAtomics", "Fragment": "fragmentStoresAndAtomics"}
_LOCAL_SIZE_ID = 38
# Words of an OpVariable without an initializer.
_BARE_VARIABLE = 4


def module_features(entry: EntryPoint, uid: str) -> list[Need]:
    """The features that the entry point of the shader ``uid`` takes besides those of its blocks' layouts."""
    index, words = entry.source, entry.source.words
    stores = _STORES.get(entry.execution_model)
    features = []
    if stores is not None and any(binding.writes and binding.writable for binding in entry.interface.bindings):
        features.append(("VkPhysicalDeviceFeatures", stores, f"what shader {uid!r} writes besides its outputs"))
    if any(words[at + 2] == _LOCAL_SIZE_ID for at in index.execution_modes(entry.function)):
        features.append((_VULKAN_1_3, "maintenance4", f"the workgroup size by ids of shader {uid!r}"))
    for id in index.variables:
        at = index.definitions[id]
        if words[at + 3] == WORKGROUP and index.count(at) > _BARE_VARIABLE:
            what = f"the initialized shared memory of shader {uid!r}"
            features.append((_VULKAN_1_3, "shaderZeroInitializeWorkgroupMemory", what))
            break
    if not CALCULATING.isdisjoint(index.capabilities):
        features += small_type_features(entry, uid)
    return features


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


def small_type_features(entry: EntryPoint, uid: str) -> list[Need]:
    """The features for types of 8 and 16 bits in the blocks of the shader ``uid``."""
    interface = entry.interface
    declared = set(entry.source.capabilities)
    blocks = [
        (binding.kind, binding.block) for binding in interface.bindings if binding.used and binding.block is not None
    ]
    if interface.push_constants is not None:
        blocks.append(("push_constants", interface.push_constants))
    features = {}
    for kind, block in blocks:
        for bits in _widths(block):
            member, capabilities = _FEATURES.get((kind, bits), ("", declared))
            if member and capabilities.isdisjoint(declared):
                words = kind.replace("_", " ").removesuffix("s")
                features[_STRUCTURES[bits], member] = f"a type of {bits} bits in a {words} of shader {uid!r}"
    return [(structure, member, what) for (structure, member), what in features.items()]


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
