"""Rules for the shaders of a dispatch or a draw.

A shader has rules for the entry point, workgroup size, specialization constants, block layouts and device features. In
a draw, the outputs of the vertex shader must match the inputs of the fragment shader.

A module can use a feature without declaring the capability for it, because compilers leave out capabilities that other
capabilities imply. The rules here find such features.

Source: Vulkan specification, "Shader Interfaces", sections "Offset and Stride Assignment" and "Interface Matching";
"Shaders" (LocalSizeId: maintenance4; Workgroup variables with an initializer: shaderZeroInitializeWorkgroupMemory;
writes in the stages of a drawing: vertexPipelineStoresAndAtomics, fragmentStoresAndAtomics); "Features",
storageBuffer16BitAccess and similar features; the SPIR-V environment's rules on interpolation and execution modes for
fragment shaders.
"""

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from scenario_runner.errors import SpirvError, error_of
from scenario_runner.errors.diagnostic import Diagnostic, error, warning
from scenario_runner.scenario import SpecializationConstant
from scenario_runner.shaders.spirv import EntryPoint, Interface, Module
from scenario_runner.shaders.spirv._generated import enumerants as spv
from scenario_runner.shaders.spirv._generated import opcodes as op
from scenario_runner.shaders.spirv._generated.enumerants import CAPABILITIES
from scenario_runner.shaders.spirv.access import PUSH_CONSTANT, STORAGE_BUFFER, UNIFORM, WORKGROUP
from scenario_runner.shaders.spirv.block_layout import BASE, SCALAR, check_layout
from scenario_runner.shaders.spirv.declarations import Declarations
from scenario_runner.shaders.spirv.interface import array_uses, variable_type
from scenario_runner.shaders.spirv.stage_interface import INPUT, OUTPUT, StageInterface, StageVariable
from scenario_runner.shaders.spirv.types import Array, Struct, Type, Vector, innermost, scalars

Need = tuple[str, str, str]
"""A device feature: the structure, the member, and the part of the shader that needs the feature, in words."""
MODELS = {"compute": "GLCompute", "vertex": "Vertex", "fragment": "Fragment"}
"""A stage of a scenario → SPIR-V's execution model."""
_MOST_NAMED = 20
_MOST_CHARACTERS = 200


def find_entry_point(
    module: Module, uid: str, name: str, stage: str, pointer: str
) -> tuple[EntryPoint | None, list[Diagnostic]]:
    """Return the entry point with this name and stage, or an error that lists the module's entry points.

    ``pointer`` is the shader's place.
    """
    model = MODELS[stage]
    entry = module.entry_point(name, model)
    if entry is not None:
        return entry, []
    there_are = [f"{_clipped(entry.name)!r} ({entry.execution_model})" for entry in module.entry_points[:_MOST_NAMED]]
    there_are += [f"{_clipped(graph.name)!r} (a graph)" for graph in module.graph_entry_points[:_MOST_NAMED]]
    listed = ", ".join(there_are[:_MOST_NAMED]) or "none"
    code = "SR-SHADER-001" if module.entry_point(name) is None else "SR-SHADER-002"
    message = f"shader {uid!r} has no entry point {name!r} for the {stage} stage; the entry points are: {listed}"
    others = [entry.name for entry in module.entry_points if entry.execution_model == model]
    help = f'write "entry": "{_clipped(others[0])}"' if others else None
    return None, [error(code, f"{pointer}/entry" if name != "main" else pointer, message, help)]


def refuse_errors(findings: Iterable[Diagnostic], path: str) -> None:
    """Raise the errors among findings about the shader file ``path``. They point to the file."""
    errors = [finding._replace(pointer=None, path=path) for finding in findings if finding.severity == "error"]
    if errors:
        raise error_of(errors)


def check_workgroup(interface: Interface, stage: str, uid: str, pointer: str) -> list[Diagnostic]:
    """Report an empty workgroup (a size or specialization constant of 0), and a compute shader without a size."""
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
    """Return the module's constant values by SpecId, each as bytes and as a number, and the findings.

    ``pointer`` is the place of the constant list.
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
    """Find problems in the blocks that the shader ``uid`` uses, and the device features that the blocks need."""
    findings: list[Diagnostic] = []
    needs: list[Need] = []
    used = [(binding.block, binding.kind) for binding in interface.bindings if binding.block is not None]
    if interface.push_constants is not None:
        used.append((interface.push_constants, "push_constants"))
    blocks = {(block.id, kind == "uniform_buffer"): (block, kind) for block, kind in used}
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


_VULKAN_1_3 = "VkPhysicalDeviceVulkan13Features"
_STORES = {"Vertex": "vertexPipelineStoresAndAtomics", "Fragment": "fragmentStoresAndAtomics"}
_LOCAL_SIZE_ID = 38
# Words of an OpVariable without an initializer.
_BARE_VARIABLE = 4


def module_features(entry: EntryPoint, interface: Interface, uid: str) -> list[Need]:
    """Return the device features that an entry point of the shader ``uid`` needs, without block features."""
    index, words = entry.source, entry.source.words
    stores = _STORES.get(entry.execution_model)
    features = []
    if stores is not None and any(binding.writes and binding.writable for binding in interface.bindings):
        features.append(("VkPhysicalDeviceFeatures", stores, f"the writes of shader {uid!r} to storage resources"))
    if any(words[at + 2] == _LOCAL_SIZE_ID for at in index.execution_modes(entry.function)):
        features.append((_VULKAN_1_3, "maintenance4", f"the workgroup size by ids of shader {uid!r}"))
    for id in index.variables:
        at = index.definitions[id]
        if words[at + 3] == WORKGROUP and index.count(at) > _BARE_VARIABLE:
            what = f"the initialized shared memory of shader {uid!r}"
            features.append((_VULKAN_1_3, "shaderZeroInitializeWorkgroupMemory", what))
            break
    return [*features, *array_features(interface, uid), *small_type_features(interface.declarations, uid)]


_ARRAYS = {
    "uniform_buffer": "UniformBuffer",
    "storage_buffer": "StorageBuffer",
    "sampled_image": "SampledImage",
    "combined_image_sampler": "SampledImage",
    "sampler": "SampledImage",
    "storage_image": "StorageImage",
    "uniform_texel_buffer": "UniformTexelBuffer",
    "storage_texel_buffer": "StorageTexelBuffer",
}
"""A kind of descriptors → the word in the features for arrays of them."""


def array_features(interface: Interface, uid: str) -> Iterator[Need]:
    """Find features for indices into arrays of descriptors. Compilers often omit the capabilities."""
    uses, declared = array_uses(interface), interface.declarations.index.capabilities
    for binding in interface.bindings:
        use, name = uses.get(binding.variable), _ARRAYS.get(binding.kind)
        if use is None or name is None:
            continue
        what = f"shader {uid!r}, which picks from the array {binding.name!r} by an index,"
        for way, is_used in (("DynamicIndexing", use.dynamic), ("NonUniformIndexing", use.non_uniform)):
            is_core = way == "DynamicIndexing" and "Texel" not in name
            if is_used and not any(CAPABILITIES.get(number) == f"{name}Array{way}" for number in declared):
                structure = "VkPhysicalDeviceFeatures" if is_core else "VkPhysicalDeviceVulkan12Features"
                yield structure, f"shader{name}Array{way}", what


_FLOAT_CONTROLS = {
    4459: "DenormPreserve",
    4460: "DenormFlushToZero",
    4461: "SignedZeroInfNanPreserve",
    4462: "RoundingModeRTE",
    4463: "RoundingModeRTZ",
}
"""SPIR-V's execution modes for floats of one width; Vulkan has a property for each width."""
_STAGE_BITS = {"Vertex": 1, "Fragment": 16, "GLCompute": 32}
_SUBGROUPS = frozenset(range(61, 69))
"""GroupNonUniform and the capabilities that build on it."""


def module_properties(entry: EntryPoint, uid: str) -> Iterator[tuple[Need, int]]:
    """Find device properties that an entry point of the shader ``uid`` needs, with the needed bits."""
    index, words = entry.source, entry.source.words
    for at in index.execution_modes(entry.function):
        mode = _FLOAT_CONTROLS.get(words[at + 2])
        if mode is not None and index.count(at) > 3:
            member = f"shader{mode}Float{words[at + 3]}"
            what = f"the execution mode {mode} {words[at + 3]} of shader {uid!r}"
            yield ("VkPhysicalDeviceVulkan12Properties", member, what), 1
    is_alone = len(index.offsets[op.ENTRY_POINT]) == 1  # else another stage may need the capabilities
    if is_alone and not _SUBGROUPS.isdisjoint(index.capabilities) and entry.execution_model in _STAGE_BITS:
        what = f"the subgroup operations of shader {uid!r} in the stage {entry.execution_model}"
        bits = _STAGE_BITS[entry.execution_model]
        yield ("VkPhysicalDeviceVulkan11Properties", "subgroupSupportedStages", what), bits


_STRUCTURES = {16: "VkPhysicalDeviceVulkan11Features", 8: "VkPhysicalDeviceVulkan12Features"}
_PHYSICAL_STORAGE_BUFFER = 5349
# Storage class → the feature, with a place for the number of bits, and the class in words.
_STORAGE = ("storageBuffer{}BitAccess", "storage buffer")
_INTERFACE = ("storageInputOutput{}", "stage's input or output")
_HOLDERS = {
    STORAGE_BUFFER: _STORAGE,
    _PHYSICAL_STORAGE_BUFFER: _STORAGE,
    UNIFORM: ("uniformAndStorageBuffer{}BitAccess", "uniform buffer"),
    PUSH_CONSTANT: ("storagePushConstant{}", "push constant"),
    INPUT: _INTERFACE,
    OUTPUT: _INTERFACE,
}


def small_type_features(declarations: Declarations, uid: str) -> list[Need]:
    """Find the features for 8-bit and 16-bit types in a shader's buffers, push constants, inputs and outputs.

    The types decide, not the capabilities. SPIR-V's capability for uniform buffers includes storage buffers, while
    Vulkan has a feature for each of them.
    """
    index = declarations.index
    words = index.words
    held = [(words[index.definitions[id] + 3], variable_type(declarations, id)) for id in index.variables]
    pointers = [at for at in index.offsets[op.TYPE_POINTER] if words[at + 2] == _PHYSICAL_STORAGE_BUFFER]
    held += [(_PHYSICAL_STORAGE_BUFFER, declarations.type(words[at + 3], at)) for at in pointers]
    features = {}
    for storage_class, type in held:
        if type is None:
            continue
        block = innermost(type)
        is_storage = storage_class == UNIFORM and isinstance(block, Struct) and block.block == "BufferBlock"
        feature, holder = _HOLDERS.get(STORAGE_BUFFER if is_storage else storage_class, ("", ""))
        for width in {scalar.width_bits for scalar in scalars(type)} & _STRUCTURES.keys():
            if feature and (width, holder) != (8, _INTERFACE[1]):  # inputs and outputs have at least 16 bits
                what = f"a type of {width} bits in a {holder} of shader {uid!r}"
                features[_STRUCTURES[width], feature.format(width)] = what
    return [(structure, member, what) for (structure, member), what in features.items()]


_POINT_SIZE: Final = 1  # a BuiltIn
# Execution modes (SPIR-V specification, "Execution Mode").
_PIXEL_CENTER_INTEGER: Final = 6
_ORIGIN_UPPER_LEFT: Final = 7
_ORIGIN_LOWER_LEFT: Final = 8
_DEPTH_REPLACING: Final = 12


class Stage(NamedTuple):
    """One shader in a draw with inputs and outputs. ``pointer`` is the shader's place."""

    uid: str
    pointer: str
    entry: EntryPoint
    interface: StageInterface

    @property
    def label(self) -> str:
        """The name in messages."""
        return f"shader {self.uid!r}"


def check_stages(vertex: Stage, fragment: Stage, pointer: str) -> tuple[list[Diagnostic], list[Need]]:
    """Check the inputs and outputs of a draw's shaders. Return the findings, and the device features they need.

    ``pointer`` is the place of the draw. Impossible declarations stand alone, since nothing matches them.
    """
    findings = [
        error("SR-STAGE-004", stage.pointer, f"{stage.label}: {problem}")
        for stage in (vertex, fragment)
        for problem in stage.interface.problems
    ]
    if findings:
        return findings, []
    if "Position" not in vertex.interface.outputs_built_in:
        message = f"{vertex.label} never writes a position (gl_Position), so the draw is undefined"
        findings.append(warning("SR-STAGE-007", vertex.pointer, message))
    for sentence in _wrong_modes(fragment):
        findings.append(error("SR-STAGE-006", fragment.pointer, f"{fragment.label} {sentence}"))
    for input_ in fragment.interface.inputs:
        is_float = input_.scalar.is_float and input_.scalar.width_bits != 64
        if not (input_.flat or input_.per_vertex or is_float):
            what = f"{fragment.label} interpolates {described('input', input_)}"
            message = f"{what}, but only floats of 16 and 32 bits can be interpolated"
            findings.append(error("SR-STAGE-003", fragment.pointer, message, "declare it flat"))
    outputs = {(output.location, output.component): output for output in vertex.interface.outputs}
    needs: list[Need] = []
    for input_ in fragment.interface.inputs:
        output = outputs.get((input_.location, input_.component))
        if output is not None and _is_part(input_, output):
            needed_by = f"{described('input', input_)} of {fragment.label}, a part of a vector"
            needs.append(("VkPhysicalDeviceVulkan13Features", "maintenance4", needed_by))
        else:
            findings += _check_input(vertex, fragment, input_, output, f"{pointer}/fragment_shader_ref")
    return findings, needs


def writes_point_size(vertex: Stage) -> bool:
    """Return whether a vertex shader writes gl_PointSize, as a variable or as a member of a block."""
    index = vertex.entry.source
    words, definitions = index.words, index.definitions
    if any(index.decorations_of(id).get(spv.BUILT_IN) == _POINT_SIZE for id in index.variables):
        return True
    for at in index.instructions():
        if index.opcode(at) in (op.ACCESS_CHAIN, op.IN_BOUNDS_ACCESS_CHAIN) and words[at + 3] in index.variables:
            pointer, constant = definitions[words[definitions[words[at + 3]] + 1]], definitions.get(words[at + 4])
            if constant is not None and index.opcode(constant) == op.CONSTANT:
                member = index.member_decorations_of(words[pointer + 3], words[constant + 3])
                if member.get(spv.BUILT_IN) == _POINT_SIZE:
                    return True
    return False


def _check_input(
    vertex: Stage, fragment: Stage, input_: StageVariable, output: StageVariable | None, place: str
) -> Iterator[Diagnostic]:
    """Check a fragment shader's input against the output at the same location and component."""
    what = f"{fragment.label} takes {described('input', input_)}"
    if output is None:
        instead = f"has nothing at {_place(input_)}"
        for around in vertex.interface.outputs:
            if (input_.location, input_.component) in around.words():
                instead = f"has {described('output', around)} there, which begins elsewhere"
        message = f"{what}; {vertex.label} {instead}"
        yield error("SR-STAGE-001", place, message, "declare the same variable as an output there")
    elif not _same(_read_type(input_), output.type):
        message = f"{what} as {input_.type}; {vertex.label} writes {output.name!r} there as {output.type}"
        yield error("SR-STAGE-002", place, message, "declare both with the same type")


def _read_type(input_: StageVariable) -> Type:
    """Return the type that an input has for each vertex."""
    return input_.type.element if input_.per_vertex and isinstance(input_.type, Array) else input_.type


def _is_part(input_: StageVariable, output: StageVariable) -> bool:
    """Return whether the input is a vector, and the output a longer vector with the same type of components."""
    read, written = _read_type(input_), output.type
    if not isinstance(read, Vector) or not isinstance(written, Vector):
        return False
    return read.component == written.component and read.components < written.components


def _wrong_modes(fragment: Stage) -> list[str]:
    """Find errors in a fragment shader's execution modes, as sentence ends."""
    entry = fragment.entry
    modes = {entry.source.words[at + 2] for at in entry.source.execution_modes(entry.function)}
    wrong = []
    if _ORIGIN_LOWER_LEFT in modes:
        wrong.append("has the execution mode OriginLowerLeft, which Vulkan does not allow")
    elif _ORIGIN_UPPER_LEFT not in modes:
        wrong.append("lacks the execution mode OriginUpperLeft, which every fragment shader needs")
    if _PIXEL_CENTER_INTEGER in modes:
        wrong.append("has the execution mode PixelCenterInteger, which Vulkan does not allow")
    if "FragDepth" in fragment.interface.outputs_built_in and _DEPTH_REPLACING not in modes:
        wrong.append("has the output FragDepth without the execution mode DepthReplacing")
    return wrong


def _same(first: Type, second: Type) -> bool:
    """Return whether two declarations mean the same type, apart from ids and names."""
    if isinstance(first, Array) and isinstance(second, Array):
        return first.length == second.length and _same(first.element, second.element)
    if isinstance(first, Struct) and isinstance(second, Struct):
        return len(first.members) == len(second.members) and all(
            _same(mine.type, theirs.type) for mine, theirs in zip(first.members, second.members, strict=True)
        )
    return first == second


def _place(variable: StageVariable) -> str:
    component = f", component {variable.component}" if variable.component else ""
    return f"location {variable.location}{component}"


def described(way: str, variable: StageVariable) -> str:
    """Name an input or output in messages."""
    return f"{way} {variable.name!r} at {_place(variable)}"
