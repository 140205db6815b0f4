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
from scenario_runner.files.source import Identity
from scenario_runner.graphs import unwritten_inputs
from scenario_runner.graphs.tosa import Shape
from scenario_runner.plan.graph_models import SpirvGraph, VgfGraph, graph_entry
from scenario_runner.plan.problems import Problems
from scenario_runner.plan.tensors import is_open
from scenario_runner.scenario import DispatchGraph, Scenario, Shader


class GraphFiles:
    """Graphs by uid; those that no command runs are never opened.

    ``vgfs`` are graphs of VGF files, ``modules`` SPIR-V modules. ``shapes`` are those of tensors that leave some
    dimension to the graphs; ``deferred`` the tensors without a shape that some graph writes.
    """

    def __init__(self, scenario: Scenario, inputs: Mapping[str, Any], problems: Problems) -> None:
        """Reads the files; what is wrong with them is noted."""
        self.scenario = scenario
        self.problems = problems
        self.vgfs: dict[str, VgfGraph] = {}
        self.modules: dict[str, SpirvGraph] = {}
        failed: set[str] = set()
        for command in scenario.commands:
            uid: str = getattr(command, "graph_ref", "")
            if not uid or uid in failed or uid in self.vgfs or uid in self.modules:
                continue
            resource: Any = scenario.resource(uid)
            try:
                if command.kind == "dispatch_graph":
                    self.vgfs[uid] = VgfGraph(scenario, resource)
                    self._warn_of_unwritten(self.vgfs[uid])
                else:
                    self.modules[uid] = SpirvGraph(scenario, resource)
            except ScenarioRunnerError as error:
                failed.add(uid)
                problems.add_error(error, f"{scenario.resource_pointer(uid)}/src")
        open_uids = {resource.uid for resource in scenario.resources if is_open(resource)}
        self.shapes: dict[str, tuple[int, ...]] = {}
        if open_uids:
            self.shapes = _Inference(self, open_uids, inputs).shapes()
        # mostly the inputs of the graph are wrong, which is found later
        written = {uid for command in scenario.commands for uid in self.written(command)}
        self.deferred = frozenset(written & open_uids - self.shapes.keys())

    def files(self) -> Iterator[tuple[str, Identity | None]]:
        """The files with what each was when it was read (None: not in a file), for the plan cache."""
        yield from ((graph.path, graph.identity) for graph in self.vgfs.values())
        yield from ((module.path, module.identity) for module in self.modules.values())

    def written(self, command: Any) -> list[str]:
        """The resources that a command's graph writes; nothing for other commands."""
        graph = self.vgfs.get(getattr(command, "graph_ref", ""))
        module = self.modules.get(getattr(command, "graph_ref", ""))
        if graph is not None:
            counted = {port.binding for port in graph.outputs}
            return [each.resource_ref for each in command.bindings if each.id in counted]
        if module is not None:
            places = {(port.set, port.binding) for port in module.entry.outputs}
            return [each.resource_ref for each in command.bindings if (each.set, each.id) in places]
        return []

    def add_shaders(self, shaders: list[Shader]) -> dict[str, str]:
        """Add the shaders that models run; returns the pointers of those that are not resources."""
        places: dict[str, str] = {}
        known = {shader.uid for shader in shaders}
        for command in self.scenario.commands:
            if not isinstance(command, DispatchGraph) or command.graph_ref not in self.vgfs:
                continue
            graph = self.vgfs[command.graph_ref]
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


# One is enough for tensors that are written before they are read; each further one is for one that is not.
_MOST_PASSES = 64


class _Inference:
    """Finds the shapes of the tensors ``uids``, as far as a graph or their own content says them."""

    def __init__(self, files: GraphFiles, uids: Collection[str], inputs: Mapping[str, Any]) -> None:
        self._files = files
        self._scenario = files.scenario
        self._problems = files.problems
        self._wanted = uids
        self._failed: set[int] = set()
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
        if command.kind == "dispatch_graph" and command.graph_ref in self._files.vgfs:
            graph = self._files.vgfs[command.graph_ref]
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
        elif command.kind == "dispatch_spirv_graph" and command.graph_ref in self._files.modules:
            yield from self._of_module(index, command, self._files.modules[command.graph_ref])

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


def row_shapes(graph: VgfGraph, bound: Mapping[int, Shape]) -> dict[int, Shape]:
    """Shapes of open rows of the file by row; ``bound`` are those of inputs and outputs by binding number.

    Segments are followed in their order; what a shader writes is known only where it is bound. Raises ScenarioError
    where inputs do not fit each other, ShaderError for damaged modules.
    """
    rows = graph.vgf.resources
    if not graph.is_open:
        return {}
    known: dict[int, Shape] = {}
    for port in graph.inputs:
        if port.binding in bound:
            _note(graph, known, port.view_indices, bound[port.binding])
    for segment in graph.vgf.segments:
        if segment.type != "graph":
            continue
        module = graph.module(segment.module_index)
        plan = graph.vgf.modules[segment.module_index]
        entry = graph_entry(module.module, plan.entry_point, f"module {plan.name!r}")
        slots = {
            (each.index, slot.binding): slot.resource_index for each in segment.descriptor_sets for slot in each.slots
        }
        shapes = {
            place: known.get(row, rows[row].shape)
            for place, row in slots.items()
            if row in known or min(rows[row].shape, default=1) > 0
        }
        for place, shape in module.fixed(entry, shapes).outputs.items():
            if place in slots and min(shape) > 0:
                _note(graph, known, _views(graph, slots[place]), shape)
    for port in graph.outputs:
        if port.binding in bound:
            _note(graph, known, port.view_indices, bound[port.binding])
    return known


def _note(graph: VgfGraph, known: dict[int, Shape], views: tuple[int, ...], shape: Shape) -> None:
    """Note the shape of a value for those of its rows that leave it open, where it can be theirs."""
    for index in views:
        declared = graph.vgf.resources[index].shape
        if (
            index not in known
            and min(declared, default=1) < 0
            and len(declared) == len(shape)
            and all(one in (-1, other) for one, other in zip(declared, shape, strict=True))
        ):
            known[index] = shape


def _views(graph: VgfGraph, row: int) -> tuple[int, ...]:
    group = graph.vgf.resources[row].alias_group
    if group is None:
        return (row,)
    return tuple(index for index, each in enumerate(graph.vgf.resources) if each.alias_group == group)
