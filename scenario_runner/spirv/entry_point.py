"""Entry points of a module: their names and stages at once, their interfaces when somebody asks."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from scenario_runner.spirv.constants import Constants
from scenario_runner.spirv.enumerants import EXECUTION_MODELS, name_of
from scenario_runner.spirv.index import Index
from scenario_runner.spirv.interface import Interface, read_interface
from scenario_runner.spirv.literals import Literal

if TYPE_CHECKING:
    from scenario_runner.spirv.stage_interface import StageInterface


class EntryPoint(NamedTuple):
    """One OpEntryPoint. ``execution_model`` is "GLCompute", "Vertex", "Fragment", ...

    ``source``, ``at``, ``function`` and ``listed`` are where its interface is read: the module, the offset of the
    instruction, the id of the function and those of the interface variables.
    """

    name: str
    execution_model: str
    source: Index
    at: int
    function: int
    listed: tuple[int, ...]

    @property
    def interface(self) -> Interface:
        """What the entry point wants from outside, with all specialization constants at their defaults.

        Worked out at the first call. Raises `SpirvError` where the part of the module that it needs is not valid.
        """
        index = self.source
        interfaces = index.once(_interfaces)
        found = interfaces.get(self.at)
        if found is None:
            found = read_interface(index, self.function, self.listed, default_constants(index), {})
            interfaces[self.at] = found
        return found

    def specialized(self, specialization: Mapping[int, Literal]) -> Interface:
        """The interface with the lengths of arrays that follow from the given values (SpecId → value).

        Ids that the module does not have are ignored. Raises `SpirvError` as `interface` does, and for a value that
        does not fit its constant.
        """
        index = self.source
        return read_interface(index, self.function, self.listed, Constants(index, specialization), dict(specialization))

    def stage_interface(self, specialization: Mapping[int, Literal] | None = None) -> "StageInterface":
        """Its inputs and outputs by location, under a specialization (SpecId → value).

        Raises `SpirvError` where the types of the variables that the entry point lists are not valid.
        """
        from scenario_runner.spirv.stage_interface import read_stage_interface  # compute shaders have none

        index = self.source
        constants = Constants(index, specialization) if specialization else default_constants(index)
        return read_stage_interface(index, self.listed, constants)


def default_constants(index: Index) -> Constants:
    """The module's constants with all specialization constants at their defaults."""
    return index.once(Constants)


def _interfaces(index: Index) -> dict[int, Interface]:
    """The interfaces of a module that were asked for, by the offset of their entry point: none at first."""
    return {}


def read_entry_points(index: Index) -> tuple[EntryPoint, ...]:
    """The entry points in the order of the module."""
    words = index.words
    found = []
    for at in index.entry_points:
        end = at + index.count(at)
        name, behind = index.string_and_end(at + 3, end)
        model = name_of(EXECUTION_MODELS, words[at + 1], "ExecutionModel")
        found.append(EntryPoint(name, model, index, at, words[at + 2], tuple(words[behind:end])))
    return tuple(found)
