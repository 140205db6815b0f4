"""A SPIR-V module as data: `read_module` reads a `Module` from bytes.

Constants and graphs are read at once, an entry point's interface on request.

Source: SPIR-V specification, sections "Physical Layout of a SPIR-V Module and Instruction" and "Logical Layout of a
Module"; SPV_ARM_graph.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from scenario_runner.errors import SpirvError
from scenario_runner.shaders.spirv._generated import enumerants as spv
from scenario_runner.shaders.spirv._generated import opcodes as op
from scenario_runner.shaders.spirv.constants import Literal, encode
from scenario_runner.shaders.spirv.declarations import Declarations, declarations_of
from scenario_runner.shaders.spirv.index import Index, enumerant_name
from scenario_runner.shaders.spirv.interface import Interface, read_interface
from scenario_runner.shaders.spirv.stage_interface import StageInterface, read_stage_interface
from scenario_runner.shaders.spirv.types import Scalar, Tensor, innermost

_SPEC_CONSTANTS = (op.SPEC_CONSTANT_TRUE, op.SPEC_CONSTANT_FALSE, op.SPEC_CONSTANT)


@dataclass(frozen=True)
class EntryPoint:
    """An OpEntryPoint. ``execution_model`` is "GLCompute", "Vertex", "Fragment", ...

    ``source`` is the module, ``function`` the function's id, and ``listed`` the interface variables' ids. The interface
    is read from them.
    """

    name: str
    execution_model: str
    source: Index
    function: int
    listed: tuple[int, ...]

    @cached_property
    def interface(self) -> Interface:
        """The interface with default specialization constants, read on first use.

        Raises `SpirvError` if the relevant part of the module is invalid.
        """
        return self.specialized({})

    def specialized(self, specialization: Mapping[int, Literal]) -> Interface:
        """Read the interface with the given values (SpecId → value), which can decide lengths of arrays.

        Ids that the module lacks are ignored. Raises `SpirvError` as `interface` does, and for a value that does not
        fit the constant.
        """
        return read_interface(declarations_of(self.source, specialization), self.function, self.listed)

    def stage_interface(self, specialization: Mapping[int, Literal] | None = None) -> StageInterface:
        """Read the inputs and outputs by location, under a specialization (SpecId → value).

        Raises `SpirvError` if the type of an interface variable is invalid.
        """
        return read_stage_interface(declarations_of(self.source, specialization), self.listed)


class SpecConstant(NamedTuple):
    """One specialization constant (OpSpecConstant, OpSpecConstantTrue or OpSpecConstantFalse with a SpecId).

    ``id`` is the SpecId. ``type`` is "bool", "int32", "uint64", "float16", "bfloat16", ... ``size_bytes`` is the size
    for VkSpecializationMapEntry, 4 for a Boolean (a VkBool32). ``name`` is empty without an OpName.
    """

    id: int
    name: str
    scalar: Scalar
    default: Literal

    @property
    def type(self) -> str:
        """The constant's type as text."""
        return str(self.scalar)

    @property
    def size_bytes(self) -> int:
        """Bytes of the value in VkSpecializationInfo."""
        return self.scalar.size_bytes

    def encode(self, value: Literal) -> bytes:
        """Return the value as `size_bytes` bytes in this machine's byte order.

        An integer also accepts 3.0, a float 3, and a Boolean 0 and 1; true is 1. A float is rounded to the type's
        nearest value. Raises `SpirvError` for a value that does not fit.
        """
        try:
            return encode(self.scalar, value)
        except ValueError as error:
            name = f" {self.name!r}" if self.name else ""
            message = f"specialization constant {self.id}{name}: {value!r} does not fit {self.type}: {error}"
            raise SpirvError(message) from None


class GraphResource(NamedTuple):
    """A tensor that a graph reads or writes, at ``binding`` of descriptor set ``set``."""

    name: str
    set: int
    binding: int
    tensor: Tensor


class GraphEntryPoint(NamedTuple):
    """An OpGraphEntryPointARM, with inputs and outputs in the graph's order."""

    name: str
    inputs: tuple[GraphResource, ...]
    outputs: tuple[GraphResource, ...]


class GraphConstant(NamedTuple):
    """An OpGraphConstantARM. ``id`` is the GraphConstantID, the ``id`` of VkDataGraphPipelineConstantARM."""

    id: int
    tensor: Tensor


class Module(NamedTuple):
    """One SPIR-V module.

    ``name`` begins error messages. Capabilities and models have the names of the SPIR-V specification. An unknown
    number is shown with the kind, such as "Capability4711". ``spec_constants`` are sorted by SpecId,
    ``graph_constants`` by id. ``source`` has the words and the positions of instructions.
    """

    name: str
    version: tuple[int, int]
    big_endian: bool
    size_bytes: int
    capabilities: tuple[str, ...]
    extensions: tuple[str, ...]
    ext_inst_imports: tuple[str, ...]
    addressing_model: str
    memory_model: str
    entry_points: tuple[EntryPoint, ...]
    spec_constants: tuple[SpecConstant, ...]
    graph_entry_points: tuple[GraphEntryPoint, ...]
    graph_constants: tuple[GraphConstant, ...]
    source: Index

    def entry_point(self, name: str, execution_model: str | None = None) -> EntryPoint | None:
        """Return the entry point with this name (and stage), or None."""
        for entry in self.entry_points:
            if entry.name == name and execution_model in (None, entry.execution_model):
                return entry
        return None

    def spec_constant(self, id: int) -> SpecConstant | None:
        """Return the specialization constant with this SpecId, or None."""
        return next((constant for constant in self.spec_constants if constant.id == id), None)


def read_module(data: bytes | bytearray | memoryview, *, name: str = "") -> Module:
    """Read a module of either byte order. ``name`` begins the message of every error about it.

    Function bodies are read with an entry point's interface. Raises `SpirvError` if the bytes are not a module. Time
    and memory grow with the number of bytes, never with a number in the module.
    """
    index = Index(data, name)
    words = index.words
    if not index.offsets[op.MEMORY_MODEL]:
        raise index.error("the module has no OpMemoryModel instruction")
    declarations = declarations_of(index)
    models = index.offsets[op.MEMORY_MODEL][-1]
    return Module(
        name=name,
        version=index.version,
        big_endian=index.big_endian,
        size_bytes=len(words) * 4,
        capabilities=tuple(
            [enumerant_name(spv.CAPABILITIES, number, "Capability") for number in dict.fromkeys(index.capabilities)]
        ),
        extensions=tuple([index.text(at, 1) for at in index.offsets[op.EXTENSION]]),
        ext_inst_imports=tuple([index.text(at, 2) for at in index.offsets[op.EXT_INST_IMPORT]]),
        addressing_model=enumerant_name(spv.ADDRESSING_MODELS, words[models + 1], "AddressingModel"),
        memory_model=enumerant_name(spv.MEMORY_MODELS, words[models + 2], "MemoryModel"),
        entry_points=_read_entry_points(index),
        spec_constants=_read_spec_constants(declarations),
        graph_entry_points=tuple(
            [_read_graph_entry_point(declarations, at) for at in index.offsets[op.GRAPH_ENTRY_POINT]]
        ),
        graph_constants=_read_graph_constants(declarations),
        source=index,
    )


def _read_entry_points(index: Index) -> tuple[EntryPoint, ...]:
    """Read the entry points in the order of the module."""
    words = index.words
    entry_points = []
    for at in index.offsets[op.ENTRY_POINT]:
        end = at + index.count(at)
        name, behind = index.string_and_end(at + 3, end)
        model = enumerant_name(spv.EXECUTION_MODELS, words[at + 1], "ExecutionModel")
        entry_points.append(EntryPoint(name, model, index, words[at + 2], tuple(words[behind:end])))
    return tuple(entry_points)


def _read_spec_constants(declarations: Declarations) -> tuple[SpecConstant, ...]:
    """Read the module's specialization constants, sorted by SpecId.

    Constants without a SpecId cannot be set and are left out. If several share a SpecId (a GLSL workgroup size that is
    also a separate constant), the first with a name is listed.
    """
    index = declarations.index
    spec_constants: dict[int, SpecConstant] = {}
    for at in sorted(at for opcode in _SPEC_CONSTANTS for at in index.offsets[opcode]):
        id = index.words[at + 2]
        spec_id = index.decorations_of(id).get(spv.SPEC_ID)
        if spec_id is None:
            continue
        default = declarations.value(id, len(index.words))
        scalar = declarations.type(index.words[at + 1], at)
        assert isinstance(scalar, Scalar)
        assert not isinstance(default, tuple)
        if spec_id not in spec_constants or not spec_constants[spec_id].name:
            spec_constants[spec_id] = SpecConstant(spec_id, index.name_of(id), scalar, default)
    return tuple(spec_constants[spec_id] for spec_id in sorted(spec_constants))


def _read_graph_constants(declarations: Declarations) -> tuple[GraphConstant, ...]:
    """Read the module's graph constants, sorted by id. The same id with two types is an error."""
    index, words = declarations.index, declarations.index.words
    constants: dict[int, GraphConstant] = {}
    for at in index.offsets[op.GRAPH_CONSTANT]:
        tensor = declarations.type(words[at + 1], at)
        if not isinstance(tensor, Tensor):
            raise index.error(f"the graph constant {words[at + 3]} has the type {tensor}, not a tensor", "SR-GRAPH-014")
        constant = GraphConstant(words[at + 3], tensor)
        if constants.setdefault(constant.id, constant) != constant:
            raise index.error(f"the graph constant {constant.id} is declared with two different types", "SR-GRAPH-014")
    return tuple(constants[id] for id in sorted(constants))


def _read_graph_entry_point(declarations: Declarations, at: int) -> GraphEntryPoint:
    index, words = declarations.index, declarations.index.words
    end = at + index.count(at)
    name, behind = index.string_and_end(at + 2, end)

    def wrong(message: str) -> SpirvError:
        return index.error(f"the graph entry point {name!r} {message}", "SR-GRAPH-014")

    def resource(id: int) -> GraphResource:
        variable = index.definition(id, f"an interface variable of the graph entry point {name!r}")
        if index.opcode(variable) != op.VARIABLE:
            raise wrong(f"names the id {id}, which is not a variable")
        type = innermost(declarations.variable_type(id, variable))
        if not isinstance(type, Tensor):
            raise wrong(f"names the variable {id} of the type {type}, which is not a tensor")
        decorations = index.decorations_of(id)
        if spv.DESCRIPTOR_SET not in decorations or spv.BINDING not in decorations:
            raise wrong(f"names the variable {id}, which has no DescriptorSet or no Binding")
        return GraphResource(index.name_of(id), decorations[spv.DESCRIPTOR_SET], decorations[spv.BINDING], type)

    graph = index.graphs.get(words[at + 1])
    if graph is None:
        raise wrong(f"names the graph {words[at + 1]}, which does not exist")
    type = index.definition(words[graph + 1], f"the type of the graph {words[at + 1]}")
    if index.opcode(type) != op.TYPE_GRAPH:
        raise wrong(f"names a graph whose type is the id {words[graph + 1]}, which is not a graph type")
    input_count, resource_count = words[type + 2], index.count(type) - 3
    if end - behind != resource_count or input_count > resource_count:
        raise wrong(
            f"has {end - behind} interface variables, its graph type has {resource_count} inputs and outputs,"
            f" {input_count} of them inputs"
        )
    variables = words[behind:end]
    twice = next((id for i, id in enumerate(variables) if id in variables[:i]), None)
    if twice is not None:
        raise wrong(f"names the interface variable {twice} twice")
    resources = tuple([resource(id) for id in variables])
    return GraphEntryPoint(name, resources[:input_count], resources[input_count:])
