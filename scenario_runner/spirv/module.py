"""A SPIR-V module as data: `read_module` makes a `Module` of bytes.

Source: SPIR-V specification, sections "Physical Layout of a SPIR-V Module and Instruction" and "Logical Layout of a
Module".
"""

from typing import NamedTuple

from scenario_runner.spirv.constants import Constants
from scenario_runner.spirv.entry_point import EntryPoint, default_constants, read_entry_points
from scenario_runner.spirv.enumerants import ADDRESSING_MODELS, CAPABILITIES, MEMORY_MODELS, name_of
from scenario_runner.spirv.graph import GraphConstant, GraphEntryPoint, read_graph_constants, read_graph_entry_points
from scenario_runner.spirv.index import Index
from scenario_runner.spirv.specialization import SpecConstant, read_spec_constants


class Module(NamedTuple):
    """One SPIR-V module.

    ``name`` is what errors call it. Names of capabilities and models are those of the SPIR-V specification; an unknown
    number gives its kind and the number, such as "Capability4711". ``spec_constants`` are sorted by SpecId,
    ``graph_constants`` by id. ``source`` is where all this was read.
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
        """The entry point of this name (and stage, where one is given); None when there is none."""
        for entry_point in self.entry_points:
            if entry_point.name == name and execution_model in (None, entry_point.execution_model):
                return entry_point
        return None

    def spec_constant(self, id: int) -> SpecConstant | None:
        """The specialization constant with this SpecId; None when there is none."""
        for constant in self.spec_constants:
            if constant.id == id:
                return constant
        return None


def read_module(data: bytes | bytearray | memoryview, *, name: str = "") -> Module:
    """Read a module of either byte order; ``name`` begins the message of every error about it.

    Function bodies are looked at when an entry point's interface is asked for. Raises `SpirvError` for bytes that are
    no module. Time and memory grow with the number of bytes, never with a number that the module states.
    """
    index = Index(data, name)
    words = index.words
    if index.memory_model is None:
        raise index.error("the module has no OpMemoryModel instruction")
    constants: Constants = default_constants(index)
    return Module(
        name=name,
        version=index.version,
        big_endian=index.big_endian,
        size_bytes=len(words) * 4,
        capabilities=tuple(
            [name_of(CAPABILITIES, number, "Capability") for number in dict.fromkeys(index.capabilities)]
        ),
        extensions=tuple([_text(index, at) for at in index.extensions]),
        ext_inst_imports=tuple([_text(index, index.definitions[id], 2) for id in index.imports]),
        addressing_model=name_of(ADDRESSING_MODELS, words[index.memory_model + 1], "AddressingModel"),
        memory_model=name_of(MEMORY_MODELS, words[index.memory_model + 2], "MemoryModel"),
        entry_points=read_entry_points(index),
        spec_constants=read_spec_constants(index, constants),
        graph_entry_points=read_graph_entry_points(index, constants),
        graph_constants=read_graph_constants(index, constants),
        source=index,
    )


def _text(index: Index, at: int, word: int = 1) -> str:
    """The literal string that begins at a word of the instruction at an offset."""
    return index.string(at + word, at + index.count(at))
