"""The SPIR-V module of a graph: read and checked once, then fixed to the shapes of each dispatch that needs it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scenario_runner.errors import ScenarioError, SpirvError
from scenario_runner.tosa.graph_body import FixedGraph, check_graph_body, fix_shapes
from scenario_runner.tosa.graph_parts import lost_part

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from scenario_runner.spirv import GraphEntryPoint
    from scenario_runner.tosa import Shape

# Models see a handful of shapes in one process; one that sees more finds the last ones.
_MOST_KEPT = 16


class GraphModule:
    """One module with graphs. ``is_open`` tells whether it was compiled for tensors of any size.

    ``unbuildable`` is why the emulation layers cannot build it, and what to do; empty where they can.
    """

    def __init__(self, code: bytes, name: str) -> None:
        """Raises SpirvError for a module that a driver may not be given."""
        from scenario_runner.spirv import read_module

        self.code = code
        self.module = read_module(code, name=name)
        self.is_open, self._largest, computed = check_graph_body(self.module, code)
        self.unbuildable = _unbuildable(computed, lost_part(self.module))
        self._fixed: dict[tuple[str, tuple[Shape | None, ...]], FixedGraph | ScenarioError] = {}

    def fixed(self, entry: GraphEntryPoint, inputs: Mapping[tuple[int, int], Shape]) -> FixedGraph:
        """The graph for inputs of these shapes by set and binding; those that are left out are not known.

        Raises ScenarioError where they do not fit each other.
        """
        if not self.is_open:
            return FixedGraph({}, self.code, "", self._largest)
        key = entry.name, tuple(inputs.get((each.set, each.binding)) for each in entry.inputs)
        found = self._fixed.get(key)
        if found is None:
            while len(self._fixed) >= _MOST_KEPT:
                del self._fixed[next(iter(self._fixed))]
            try:
                found = fix_shapes(self.module, self.code, entry.name, inputs)
            except SpirvError as error:
                # the module was found right when nothing was known of them
                found = ScenarioError([problem._replace(code="SR-GRAPH-012") for problem in error.problems])
            self._fixed[key] = found
        if isinstance(found, ScenarioError):
            raise ScenarioError(found.problems)
        return found


def _unbuildable(computed: tuple[str, str], lost: str) -> tuple[str, str]:
    layers = "the ML emulation layers, through which {device} runs graphs, end the process over such"
    if computed[0]:
        return f"{computed[0]}; {layers} an operand", f"make {computed[1]} a constant of the model"
    if lost:
        return f"no output depends on {lost}; {layers} a result", "return it from the model as well"
    return "", ""


def shape_problems(
    entry: GraphEntryPoint,
    fixed: FixedGraph,
    given: Mapping[tuple[int, int], Shape],
    names: Mapping[tuple[int, int], str],
) -> Iterator[tuple[str, str]]:
    """Codes and messages on the tensors at a graph's outputs, and on shapes that do not follow from its inputs'."""
    for declared in entry.outputs:
        place = declared.set, declared.binding
        made, found = fixed.outputs.get(place), given[place]
        if made is not None and (
            len(made) != len(found) or any(one not in (-1, other) for one, other in zip(made, found, strict=True))
        ):
            yield (
                "SR-TENSOR-003",
                f"the graph's output {declared.name!r} at set {place[0]}, binding {place[1]} is {list(made)} for these"
                f" inputs; {names[place]} has the shape {list(found)}",
            )
    if fixed.code is None:
        yield (
            "SR-GRAPH-007",
            f"the shape of {fixed.unknown} does not follow from the inputs'; convert the model with fixed shapes",
        )
