"""Shapes that a scenario leaves to its graphs: dimensions of 0 or less.

Commands are followed in their order: what is known of a graph's inputs, from the scenario or from the content of files,
says what its outputs are, which may be the inputs of the next graph.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from scenario_runner.byte_data import array_of
from scenario_runner.errors import ScenarioRunnerError
from scenario_runner.files.npy import read_header
from scenario_runner.plan.graphs.model import SpirvGraph, VgfGraph
from scenario_runner.plan.graphs.shapes import row_shapes
from scenario_runner.plan.problems import Problems
from scenario_runner.scenario import Scenario

Shape = tuple[int, ...]

# One is enough for tensors that are written before they are read; each further one is for one that is not.
_MOST_PASSES = 64


def infer_shapes(
    scenario: Scenario,
    graphs: Mapping[str, VgfGraph],
    modules: Mapping[str, SpirvGraph],
    uids: Collection[str],
    inputs: Mapping[str, Any],
    problems: Problems,
) -> dict[str, Shape]:
    """The shapes of the tensors in ``uids``, as far as a graph or their own content says them.

    What does not fit each other goes into ``problems``.
    """
    return _Inference(scenario, graphs, modules, uids, inputs, problems).shapes()


class _Inference:
    def __init__(
        self,
        scenario: Scenario,
        graphs: Mapping[str, VgfGraph],
        modules: Mapping[str, SpirvGraph],
        uids: Collection[str],
        inputs: Mapping[str, Any],
        problems: Problems,
    ) -> None:
        self._scenario = scenario
        self._graphs = graphs
        self._modules = modules
        self._wanted = uids
        self._problems = problems
        self._failed: set[int] = set()
        self._found: dict[str, Shape] = {}
        self._known: dict[str, Shape] = {}
        for resource in scenario.resources:
            if resource.kind == "tensor":
                given: Any = resource
                shape = _content_shape(scenario, given.uid, inputs) if given.uid in uids else given.dims
                if shape is not None:
                    self._known[given.uid] = shape or (1,)

    def shapes(self) -> dict[str, Shape]:
        """Go over the commands until nothing new is found: a graph may be given what a later command works out."""
        before = -1
        for _ in range(_MOST_PASSES):
            if len(self._found) in (before, len(self._wanted)):
                break
            before = len(self._found)
            for index, command in enumerate(self._scenario.commands):
                each: Any = command
                for uid, shape in self._of_command(index, each):
                    self._note(index, uid, shape)
        for uid in self._wanted - self._found.keys():
            if uid in self._known:
                self._found[uid] = self._known[uid]
        return self._found

    def _note(self, index: int, uid: str, shape: Shape) -> None:
        if uid not in self._wanted or uid in self._found or min(shape, default=1) < 1:
            return
        tensor: Any = self._scenario.resource(uid)
        self._found[uid] = shape
        self._known.setdefault(uid, shape)
        some = any(size > 0 for size in tensor.dims)
        if some and (
            len(tensor.dims) != len(shape)
            or any(one not in (0, size) for one, size in zip(map(_at_least_0, tensor.dims), shape, strict=True))
        ):
            self._problems.error(
                "SR-TENSOR-003",
                f"{self._scenario.resource_pointer(uid)}/dims",
                f"tensor {uid!r} has the shape {list(tensor.dims)}, but the graph of"
                f" {self._scenario.command_pointer(index)} makes {list(shape)} of it",
            )

    def _of_command(self, index: int, command: Any) -> Iterator[tuple[str, Shape]]:
        """The tensors that are bound to a graph, with the shapes that the graph says they have."""
        if command.kind == "dispatch_graph" and command.graph_ref in self._graphs:
            graph = self._graphs[command.graph_ref]
            bound = {
                each.id: self._known[each.resource_ref] for each in command.bindings if each.resource_ref in self._known
            }
            shapes: Mapping[int, Shape] = {}
            try:
                shapes = row_shapes(graph, bound)
            except ScenarioRunnerError as error:
                self._fail(index, error)
            rows = {port.binding: port.resource_index for port in (*graph.inputs, *graph.outputs)}
            for binding in command.bindings:
                row = rows.get(binding.id)
                if row is not None:
                    yield binding.resource_ref, shapes.get(row, graph.vgf.resources[row].shape)
        elif command.kind == "dispatch_spirv_graph" and command.graph_ref in self._modules:
            yield from self._of_module(index, command, self._modules[command.graph_ref])

    def _of_module(self, index: int, command: Any, graph: SpirvGraph) -> Iterator[tuple[str, Shape]]:
        declared = {(one.set, one.binding): one.tensor.shape for one in (*graph.entry.inputs, *graph.entry.outputs)}
        if graph.body.is_open:
            inputs = {(one.set, one.binding) for one in graph.entry.inputs}
            given = {
                (each.set, each.id): self._known[each.resource_ref]
                for each in command.bindings
                if each.resource_ref in self._known and (each.set, each.id) in inputs
            }
            try:
                declared |= graph.body.fixed(graph.entry, given).outputs
            except ScenarioRunnerError as error:
                self._fail(index, error)
        for binding in command.bindings:
            shape = declared.get((binding.set, binding.id))
            if shape is not None:
                yield binding.resource_ref, shape

    def _fail(self, index: int, error: ScenarioRunnerError) -> None:
        """Note, once for a command, that its graph cannot be given what is bound."""
        if index not in self._failed:
            self._failed.add(index)
            self._problems.add_error(error, f"{self._scenario.command_pointer(index)}/bindings")


def _at_least_0(size: int) -> int:
    return max(size, 0)


def _content_shape(scenario: Scenario, uid: str, inputs: Mapping[str, Any]) -> Shape | None:
    """The shape of the array or file that a tensor starts with."""
    tensor: Any = scenario.resource(uid)
    data = inputs.get(uid, tensor.data)
    if data is not None:
        shape = getattr(array_of(data, uid), "shape", None)
        return None if shape is None else tuple(shape)
    if tensor.src is None:
        return None
    try:
        return read_header(os.path.join(scenario.base_dir, tensor.src)).shape
    except ScenarioRunnerError:
        return None  # reported where the file is opened
