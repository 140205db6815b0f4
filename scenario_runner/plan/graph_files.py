"""The graphs that commands run: read before resources are planned, as they decide about shapes and shaders.

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
from scenario_runner.graphs import unwritten_inputs
from scenario_runner.graphs.tosa import Shape
from scenario_runner.plan.graph_models import SpirvGraph, VgfGraph
from scenario_runner.plan.tensors import is_open
from scenario_runner.scenario import Scenario, Shader
from scenario_runner.scenario.scenario import Problems


class GraphFiles:
    """Graphs by uid; those that no command runs are never opened.

    ``shapes`` are those of tensors that leave some dimension to the graphs; ``deferred`` the tensors without a shape
    that some graph writes.
    """

    def __init__(self, scenario: Scenario, inputs: Mapping[str, Any], problems: Problems) -> None:
        """Reads the files; what is wrong with them is noted."""
        self.scenario = scenario
        self.problems = problems
        self.graphs: dict[str, VgfGraph | SpirvGraph] = {}
        failed: set[str] = set()
        for command in scenario.commands:
            uid: str = getattr(command, "graph_ref", "")
            if not uid or uid in failed or uid in self.graphs:
                continue
            resource: Any = scenario.resource(uid)
            try:
                if command.kind == "dispatch_graph":
                    self.graphs[uid] = graph = VgfGraph(scenario, resource)
                    self._warn_of_unwritten(graph)
                else:
                    self.graphs[uid] = SpirvGraph(scenario, resource)
            except ScenarioRunnerError as error:
                failed.add(uid)
                problems.add_error(error, f"{scenario.resource_pointer(uid)}/src")
        open_uids = {resource.uid for resource in scenario.resources if is_open(resource)}
        self.shapes: dict[str, Shape] = _Inference(self, open_uids, inputs).shapes() if open_uids else {}
        # mostly the inputs of the graph are wrong, which is found later
        written = {
            binding.resource_ref
            for command, graph in self.dispatches()
            for binding in command.bindings
            if graph.key(binding) in graph.writes
        }
        self.deferred = frozenset(written & open_uids - self.shapes.keys())

    def dispatches(self) -> Iterator[tuple[Any, VgfGraph | SpirvGraph]]:
        """Iterate over the commands that run graphs that could be read, in their order."""
        for command in self.scenario.commands:
            graph = self.graphs.get(getattr(command, "graph_ref", ""))
            if graph is not None:
                yield command, graph

    def add_shaders(self, shaders: list[Shader]) -> dict[str, str]:
        """Add the shaders that models run; returns the pointers of those that are not resources."""
        places: dict[str, str] = {}
        known = {shader.uid for shader in shaders}
        for command, graph in self.dispatches():
            if not isinstance(graph, VgfGraph):
                continue
            for name in graph.compute_names():
                shader = graph.shader_of(command, name, self.scenario)
                if shader is None or shader.uid in known:
                    continue
                known.add(shader.uid)
                shaders.append(shader)
                if all(shader.uid != resource.uid for resource in self.scenario.resources):
                    places[shader.uid] = graph.pointer
        return places

    def _warn_of_unwritten(self, graph: VgfGraph) -> None:
        """Note what segments of a model read although nothing writes it."""
        for segment, slot in unwritten_inputs(graph.vgf):
            self.problems.warn(
                "SR-GRAPH-016",
                graph.pointer,
                f"{graph.path}: segment {segment.name or segment.index!r} reads resource {slot.resource_index} (binding"
                f" {slot.binding}), which no segment before it writes; it reads zeros",
            )


class _Inference:
    """Finds the shapes of the tensors ``uids``, as far as a graph or their own content says them."""

    def __init__(self, files: GraphFiles, uids: Collection[str], inputs: Mapping[str, Any]) -> None:
        self._files = files
        self._scenario = files.scenario
        self._problems = files.problems
        self._wanted = uids
        self._found: dict[str, Shape] = {}
        self._known: dict[str, Shape] = {}
        for resource in self._scenario.resources:
            if resource.kind == "tensor":
                given: Any = resource
                shape = _content_shape(self._scenario, given.uid, inputs) if given.uid in uids else given.dims
                if shape is not None:
                    self._known[given.uid] = shape or (1,)

    def shapes(self) -> dict[str, Shape]:
        """Go over the commands until nothing new is found: a graph may be given what a later command works out."""
        before = -1
        while len(self._found) not in (before, len(self._wanted)):
            before = len(self._found)
            for index, command in enumerate(self._scenario.commands):
                self._follow(index, command)
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
            len(tensor.dims) != len(shape) or any(0 < one != size for one, size in zip(tensor.dims, shape, strict=True))
        ):
            self._problems.error(
                "SR-TENSOR-003",
                f"{self._scenario.resource_pointer(uid)}/dims",
                f"tensor {uid!r} has the shape {list(tensor.dims)}, but the graph of"
                f" {self._scenario.command_pointer(index)} makes {list(shape)} of it",
            )

    def _follow(self, index: int, command: Any) -> None:
        """Note the shapes that the graph of a command gives to the tensors that are bound to it."""
        graph = self._files.graphs.get(getattr(command, "graph_ref", ""))
        if graph is None:
            return
        bound = [(graph.key(binding), binding.resource_ref) for binding in command.bindings]
        shapes = graph.declared
        try:
            shapes = shapes | graph.inferred({key: self._known[uid] for key, uid in bound if uid in self._known})
        except ScenarioRunnerError as error:
            self._problems.add_error(error, f"{self._scenario.command_pointer(index)}/bindings")
        for key, uid in bound:
            if key in shapes:
                self._note(index, uid, shapes[key])


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
