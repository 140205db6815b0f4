"""Interface of an entry point: descriptors, push constants, workgroup size and workgroup memory.

Source: Vulkan specification, "Shader Interfaces", sections "Shader Resource Interface" and "Push Constant Interface",
and "Shaders", section "Static Use".
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from scenario_runner.errors import SpirvError
from scenario_runner.shaders.spirv._generated import enumerants as spv
from scenario_runner.shaders.spirv._generated import opcodes as op
from scenario_runner.shaders.spirv.access import (
    COMPARED,
    LOST,
    PLAIN,
    PUSH_CONSTANT,
    READ,
    TEXEL_POINTER,
    UNIFORM,
    UNIFORM_CONSTANT,
    WORKGROUP,
    WRITE,
    Access,
)
from scenario_runner.shaders.spirv.declarations import Declarations
from scenario_runner.shaders.spirv.index import Index
from scenario_runner.shaders.spirv.types import (
    Array,
    Image,
    Opaque,
    RuntimeArray,
    SampledImage,
    Struct,
    Tensor,
    Type,
    Vector,
    align_up,
    extent_bytes,
    natural_size_and_alignment,
)

_OPAQUE_KINDS: Final = {"OpTypeSampler": "sampler", "OpTypeAccelerationStructureKHR": "acceleration_structure"}
_WRITABLE_KINDS: Final = frozenset({"storage_buffer", "storage_image", "storage_texel_buffer", "tensor"})

# Execution modes and the built-in that set the workgroup size (SPIR-V specification, "Execution Mode", "BuiltIn").
_LOCAL_SIZE: Final = 17
_LOCAL_SIZE_ID: Final = 38
_WORKGROUP_SIZE: Final = 25


class DescriptorBinding(NamedTuple):
    """A variable that a descriptor is bound to.

    ``kind`` is "storage_buffer", "uniform_buffer", "storage_image", "sampled_image", "combined_image_sampler",
    "sampler", "uniform_texel_buffer", "storage_texel_buffer", "input_attachment", "acceleration_structure" or "tensor".
    ``count`` is the number of descriptors, None for a runtime-sized array. ``name`` is the variable's name, or the
    block's if the variable has none.

    ``used`` means that an instruction in the entry point's call tree names the variable. From SPIR-V 1.4 on, an entry
    point also lists variables that it only declares. ``readable`` and ``writable`` follow the declaration (NonReadable,
    NonWritable, and read-only kinds). ``reads`` and ``writes`` follow the code's accesses to texels, elements and
    members; a query of the size is no access. If a pointer cannot be followed, both are True and ``followed`` is False.
    ``atomic`` means that all reads and writes are atomic operations, ``has_atomic_texels`` that some accesses to an
    image are. ``compared`` means that a sample compares depths.

    ``image`` is set for images and texel buffers, ``tensor`` for tensors, ``block`` for buffers.
    """

    set: int
    binding: int
    name: str
    kind: str
    count: int | None  # type: ignore[assignment]  # tuple.count gives way to the word of Vulkan
    used: bool
    readable: bool
    writable: bool
    reads: bool
    writes: bool
    image: Image | None = None
    tensor: Tensor | None = None
    block: Struct | None = None
    input_attachment_index: int | None = None
    variable: int = 0
    atomic: bool = False
    has_atomic_texels: bool = False
    followed: bool = True
    compared: bool = False

    @property
    def has_sampler(self) -> bool:
        """Return whether the descriptor is a sampler, alone or with an image."""
        return self.kind in ("sampler", "combined_image_sampler")


class Interface(NamedTuple):
    """Interface of an entry point under a specialization.

    ``bindings`` are sorted by set and binding; several variables may share a binding. ``push_constants`` is None
    without used push constants. ``workgroup_memory_bytes`` is the least size of the used Workgroup variables by std430
    rules; among variables with an explicit layout, the largest counts. ``problems`` are sentences about declarations
    that cannot be bound. ``declarations`` belong to the module under the specialization, ``function`` is the id of the
    entry point's function.
    """

    bindings: tuple[DescriptorBinding, ...]
    push_constants: Struct | None
    workgroup_memory_bytes: int
    problems: tuple[str, ...]
    declarations: Declarations
    function: int

    def local_size(self) -> tuple[int, int, int] | None:
        """Return the invocations of a workgroup in x, y and z; None for a stage without workgroups.

        The built-in WorkgroupSize overrides LocalSize and LocalSizeId. Raises `SpirvError` for unsuitable values.
        """
        declarations, index = self.declarations, self.declarations.index
        words, end = index.words, len(index.words)
        for id, decorations in index.decorations.items():
            if decorations.get(spv.BUILT_IN) == _WORKGROUP_SIZE and id in index.definitions:
                if index.opcode(index.definitions[id]) in (op.VARIABLE, op.UNTYPED_VARIABLE):
                    continue
                size = declarations.integers(id, end, "the workgroup size")
                if len(size) != 3:
                    raise index.error(f"the workgroup size {id} has {len(size)} components, not 3")
                return size[0], size[1], size[2]
        for at in index.execution_modes(self.function):
            mode = words[at + 2]
            if mode not in (_LOCAL_SIZE, _LOCAL_SIZE_ID):
                continue
            if index.count(at) < 6:
                raise index.too_short(at, 6)
            x, y, z = words[at + 3 : at + 6]
            if mode == _LOCAL_SIZE_ID:
                what = "a component of the workgroup size"
                x, y, z = (declarations.integer(id, end, what) for id in (x, y, z))
            return x, y, z
        return None


def read_interface(declarations: Declarations, function: int, listed: tuple[int, ...]) -> Interface:
    """Read the interface of the entry point with this function and these interface variables."""
    index = declarations.index
    access = index.cached(Access)
    used = access.variables(function)
    # Before SPIR-V 1.4, only inputs and outputs are listed. Since then, listing is static use as well.
    extra = [id for id in listed if id in access.storage_classes and id not in used] if index.version >= (1, 4) else []
    bindings: list[DescriptorBinding] = []
    push_constants: Struct | None = None
    workgroup: list[Type] = []
    problems: list[str] = []
    for id in [*used, *dict.fromkeys(extra)]:
        type, storage_class = variable_type(declarations, id), access.storage_classes[id]
        if storage_class not in (WORKGROUP, PUSH_CONSTANT):
            binding = _binding(index, id, storage_class, type, used.get(id), problems)
            bindings += [] if binding is None else [binding]
        elif id in used and storage_class == WORKGROUP:
            workgroup += [] if type is None else [type]
        elif id in used and not isinstance(type, Struct):
            problems.append(f"{_label(index, id, type)} holds push constants, but it is not a structure")
        elif id in used and push_constants is not None:
            problems.append(
                f"{_label(index, id, type)} is a second push constant block besides {push_constants.name!r}, "
                "an entry point may use one"
            )
        elif isinstance(type, Struct) and id in used:
            push_constants = type
    return Interface(
        bindings=tuple(sorted(bindings, key=lambda binding: (binding.set, binding.binding, binding.variable))),
        push_constants=push_constants,
        workgroup_memory_bytes=_workgroup_memory_bytes(workgroup),
        problems=tuple(problems),
        declarations=declarations,
        function=function,
    )


def variable_type(declarations: Declarations, id: int) -> Type | None:
    """Return a variable's type; None for an untyped variable without a data type."""
    index = declarations.index
    at = index.definitions[id]
    if index.opcode(at) == op.UNTYPED_VARIABLE:
        return declarations.type(index.words[at + 4], at) if index.count(at) > 4 else None
    return declarations.variable_type(id, at)


def _name(index: Index, id: int, type: Type | None) -> str:
    return index.name_of(id) or (type.name if isinstance(type, Struct) else "")


def _label(index: Index, id: int, type: Type | None) -> str:
    name = _name(index, id, type)
    return f"the variable {name!r}" if name else f"the variable with the id {id}"


def _binding(
    index: Index, id: int, storage_class: int, type: Type | None, flags: int | None, problems: list[str]
) -> DescriptorBinding | None:
    """Return the binding of a variable, or None and a new entry in ``problems`` if nothing can be bound to it.

    ``flags`` are the flags of `access`, None for a variable that is only listed.
    """
    count: int | None = 1
    while isinstance(type, Array | RuntimeArray):
        count = None if count is None or isinstance(type, RuntimeArray) else count * type.length
        type = type.element
    kind, label = _kind(storage_class, type), _label(index, id, type)
    if kind is None:
        problems.append(f"{label} has the type {type}, which no descriptor can be bound to")
        return None
    block = type if isinstance(type, Struct) else None
    if block is not None and block.block is None:
        problems.append(f"{label} is a structure without the Block decoration")
    decorations = index.decorations_of(id)
    places = {"DescriptorSet": spv.DESCRIPTOR_SET, "Binding": spv.BINDING}
    missing = [name for name, decoration in places.items() if decoration not in decorations]
    if missing:
        problems.append(f"{label} has no {' and no '.join(missing)} decoration, so nothing can be bound to it")
        return None
    members = () if block is None else block.members
    readable = spv.NON_READABLE not in decorations and (not members or any(member.readable for member in members))
    writable = spv.NON_WRITABLE not in decorations and (not members or any(member.writable for member in members))
    uses = flags or 0
    return DescriptorBinding(
        set=decorations[spv.DESCRIPTOR_SET],
        binding=decorations[spv.BINDING],
        name=_name(index, id, type),
        kind=kind,
        count=count,
        used=flags is not None,
        readable=readable,
        writable=writable and kind in _WRITABLE_KINDS,
        reads=bool(uses & READ),
        writes=bool(uses & WRITE) and kind in _WRITABLE_KINDS,
        image=type if isinstance(type, Image) else type.image if isinstance(type, SampledImage) else None,
        tensor=type if isinstance(type, Tensor) else None,
        block=block,
        input_attachment_index=decorations.get(spv.INPUT_ATTACHMENT_INDEX),
        variable=id,
        atomic=bool(uses & (READ | WRITE)) and not uses & PLAIN,
        has_atomic_texels=bool(uses & TEXEL_POINTER),
        followed=not uses & LOST,
        compared=bool(uses & COMPARED),
    )


def _workgroup_memory_bytes(types: Iterable[Type]) -> int:
    """Count the storage of Workgroup variables: Vulkan specification, "Shaders", "Workgroup memory"."""
    block_size = total = 0
    others = []
    for type in types:
        if isinstance(type, Struct) and type.block:
            block_size = max(block_size, type.size_bytes)
        else:
            others.append(natural_size_and_alignment(type))
    # Any order is allowed. The largest alignment first leaves the fewest gaps.
    for size, alignment in sorted(others, key=lambda item: -item[1]):
        total = align_up(total, alignment) + size
    return block_size + total


def _kind(storage_class: int, type: Type | None) -> str | None:
    """Return a variable's descriptor kind: Vulkan, "Shader Resource and Descriptor Type Correspondence"."""
    if storage_class != UNIFORM_CONSTANT:
        if not isinstance(type, Struct):
            return None
        return "uniform_buffer" if storage_class == UNIFORM and type.block != "BufferBlock" else "storage_buffer"
    if isinstance(type, SampledImage):
        return "uniform_texel_buffer" if type.image.dim == "Buffer" else "combined_image_sampler"
    if isinstance(type, Image):
        if type.dim == "SubpassData":
            return "input_attachment"
        stored = type.sampled is False
        if type.dim == "Buffer":
            return "storage_texel_buffer" if stored else "uniform_texel_buffer"
        return "storage_image" if stored else "sampled_image"
    if isinstance(type, Tensor):
        return "tensor"
    if isinstance(type, Opaque):
        return _OPAQUE_KINDS.get(type.name)
    return None


class ArrayUse(NamedTuple):
    """The descriptors of an array that code picks. ``constants`` are the constant indices. ``dynamic`` means that code
    also uses other indices.

    ``non_uniform`` means that invocations may pick different descriptors at once.
    """

    constants: frozenset[int]
    dynamic: bool
    non_uniform: bool


def array_uses(interface: Interface) -> dict[int, ArrayUse]:
    """Return how code picks from each used array of descriptors, by the id of the variable.

    Functions outside the entry point's call tree count too.
    """
    arrays = {binding.variable for binding in interface.bindings if binding.used and binding.count != 1}
    if not arrays:
        return {}
    index, declarations = interface.declarations.index, interface.declarations
    constants: dict[int, set[int]] = {variable: set() for variable in arrays}
    dynamic: dict[int, bool] = {}  # by variable: whether an index is non-uniform
    for at, variable, indices in _uses(index, arrays):
        number = _index(declarations, indices[0], at) if indices else None
        if number is not None:
            constants[variable].add(number)
            continue
        ids = (index.words[at + 2], indices[0]) if indices else ()
        marked = any(spv.NON_UNIFORM in index.decorations_of(id) for id in ids)
        dynamic[variable] = dynamic.get(variable, False) or marked
    return {
        variable: ArrayUse(frozenset(constants[variable]), variable in dynamic, dynamic.get(variable, False))
        for variable in arrays
    }


def _uses(index: Index, variables: set[int]) -> Iterator[tuple[int, int, Sequence[int]]]:
    """Yield the instructions in functions that name a variable: offset, variable, and the indices of an access chain.

    There are no indices in other instructions.
    """
    words = index.words
    for at in index.instructions(min(index.functions.values(), default=len(words))):
        opcode, count = words[at] & 0xFFFF, words[at] >> 16
        is_chain = opcode in (op.ACCESS_CHAIN, op.IN_BOUNDS_ACCESS_CHAIN) and count > 4
        for variable in variables.intersection(words[at + 1 : at + count]):
            yield at, variable, words[at + 4 : at + count] if is_chain and words[at + 3] == variable else ()


def _index(declarations: Declarations, id: int, at: int) -> int | None:
    """Return the value of an index that is constant under the specialization, else None."""
    try:
        return declarations.integer(id, at, "the index")
    except SpirvError:
        return None


def push_constants_read(interface: Interface) -> int:
    """Count the bytes of push constants up to the last that an access chain can reach; 0 without a block.

    Constant indices are followed into structures and arrays. A dynamic index reaches all elements. Other uses of the
    block read the whole block. Functions outside the entry point's call tree count too.
    """
    block = interface.push_constants
    if block is None:
        return 0
    index = interface.declarations.index
    variables = {id for id in index.variables if index.words[index.definitions[id] + 3] == PUSH_CONSTANT}
    uses = (indices for _, _, indices in _uses(index, variables))
    ends = [_end(block, [_constant(index, id) for id in ids]) if ids else block.size_bytes for ids in uses]
    return min(max(ends, default=0), block.size_bytes)


def _end(type: Type, indices: Sequence[int | None]) -> int:
    """Compute the end offset of an access chain in a value; None is an index that is not constant."""
    start = 0
    for number in indices:
        if isinstance(type, Struct) and number is not None and number < len(type.members):
            member = type.members[number]
            if member.offset_bytes is None or not isinstance(member.type, Array | Struct | Vector):
                return start + (member.offset_bytes or 0) + member.size_bytes
            start += member.offset_bytes
            type = member.type
        elif isinstance(type, Array) and number is not None and type.stride_bytes is not None:
            start += type.stride_bytes * number
            type = type.element
        elif isinstance(type, Vector) and number is not None:
            return start + type.component.size_bytes * (number + 1)
        else:
            break
    return start + extent_bytes(type)


def _constant(index: Index, id: int) -> int | None:
    """Return the value of an integer constant; None for any other id, specialization constants included."""
    at = index.definitions.get(id)
    if at is None or index.opcode(at) not in (op.CONSTANT, op.CONSTANT_NULL):
        return None
    return 0 if index.opcode(at) == op.CONSTANT_NULL else index.words[at + 3]
