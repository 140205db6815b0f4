"""Graphs of SPV_ARM_graph: their entry points with inputs and outputs, and the constants they want from outside."""

from typing import NamedTuple

from scenario_runner.spirv import opcodes as op
from scenario_runner.spirv.constants import Constants
from scenario_runner.spirv.decorations import BINDING, DESCRIPTOR_SET
from scenario_runner.spirv.index import Index
from scenario_runner.spirv.types import Array, RuntimeArray, Tensor


class GraphResource(NamedTuple):
    """A tensor that a graph reads or writes, bound to ``binding`` of descriptor set ``set``."""

    name: str
    set: int
    binding: int
    tensor: Tensor


class GraphEntryPoint(NamedTuple):
    """One OpGraphEntryPointARM, with its inputs and outputs in the graph's order."""

    name: str
    inputs: tuple[GraphResource, ...]
    outputs: tuple[GraphResource, ...]


class GraphConstant(NamedTuple):
    """One OpGraphConstantARM: ``id`` is the GraphConstantID, which VkDataGraphPipelineConstantARM names as ``id``."""

    id: int
    tensor: Tensor


def read_graph_constants(index: Index, constants: Constants) -> tuple[GraphConstant, ...]:
    """The module's graph constants by rising id; one id twice with two types is an error."""
    words = index.words
    found: dict[int, GraphConstant] = {}
    for id in index.graph_constants:
        at = index.definitions[id]
        tensor = constants.types.type(words[at + 1], at)
        if not isinstance(tensor, Tensor):
            raise index.error(f"the graph constant {words[at + 3]} has the type {tensor}, not a tensor", "SR-GRAPH-014")
        constant = GraphConstant(words[at + 3], tensor)
        if found.setdefault(constant.id, constant) != constant:
            raise index.error(f"the graph constant {constant.id} is declared with two different types", "SR-GRAPH-014")
    return tuple(found[id] for id in sorted(found))


def read_graph_entry_points(index: Index, constants: Constants) -> tuple[GraphEntryPoint, ...]:
    """The graph entry points in the order of the module."""
    return tuple([_read_entry_point(index, constants, at) for at in index.graph_entry_points])


def _read_entry_point(index: Index, constants: Constants, at: int) -> GraphEntryPoint:
    words = index.words
    end = at + index.count(at)
    name, behind = index.string_and_end(at + 2, end)
    graph = index.graphs.get(words[at + 1])
    if graph is None:
        raise index.error(
            f"the graph entry point {name!r} names the graph {words[at + 1]}, which does not exist", "SR-GRAPH-014"
        )
    type = index.definition(words[graph + 1], f"the type of the graph {words[at + 1]}")
    if index.opcode(type) != op.TYPE_GRAPH:
        raise index.error(
            f"the type of the graph {words[at + 1]} is the id {words[graph + 1]}, which is not a graph type",
            "SR-GRAPH-014",
        )
    input_count = words[type + 2]
    resource_count = index.count(type) - 3
    if end - behind != resource_count or input_count > resource_count:
        raise index.error(
            f"the graph entry point {name!r} has {end - behind} interface variables, "
            f"its graph type has {resource_count} inputs and outputs, {input_count} of them inputs",
            "SR-GRAPH-014",
        )
    variables = words[behind:end]
    twice = next((id for i, id in enumerate(variables) if id in variables[:i]), None)
    if twice is not None:
        raise index.error(f"the graph entry point {name!r} names the interface variable {twice} twice", "SR-GRAPH-014")
    resources = tuple([_read_resource(index, constants, id, name) for id in variables])
    return GraphEntryPoint(name, resources[:input_count], resources[input_count:])


def _read_resource(index: Index, constants: Constants, id: int, graph: str) -> GraphResource:
    words = index.words
    at = index.definition(id, f"an interface variable of the graph entry point {graph!r}")
    pointer = index.definition(words[at + 1], f"the type of the variable {id}")
    if index.opcode(at) != op.VARIABLE or index.opcode(pointer) != op.TYPE_POINTER:
        raise index.error(
            f"the interface of the graph entry point {graph!r} names the id {id}, which is not a variable",
            "SR-GRAPH-014",
        )
    type = constants.types.type(words[pointer + 3], at)
    while isinstance(type, Array | RuntimeArray):
        type = type.element
    if not isinstance(type, Tensor):
        raise index.error(
            f"the interface variable {id} of the graph entry point {graph!r} has the type {type}, no tensor",
            "SR-GRAPH-014",
        )
    decorations = index.decorations_of(id)
    if DESCRIPTOR_SET not in decorations or BINDING not in decorations:
        raise index.error(
            f"the interface variable {id} of the graph entry point {graph!r} has no DescriptorSet or no Binding",
            "SR-GRAPH-014",
        )
    return GraphResource(index.name_of(id), decorations[DESCRIPTOR_SET], decorations[BINDING], type)
