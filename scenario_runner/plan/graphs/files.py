"""The graphs that commands run: read before resources are planned, as they decide about shapes and shaders."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from scenario_runner.errors import ScenarioRunnerError
from scenario_runner.files.source import Identity
from scenario_runner.graphs import unwritten_inputs
from scenario_runner.plan.graphs.model import SpirvGraph, VgfGraph
from scenario_runner.plan.graphs.shape_inference import infer_shapes
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
        self._scenario = scenario
        self._problems = problems
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
            self.shapes = infer_shapes(scenario, self.vgfs, self.modules, open_uids, inputs, problems)
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
        for command in self._scenario.commands:
            if not isinstance(command, DispatchGraph) or command.graph_ref not in self.vgfs:
                continue
            graph = self.vgfs[command.graph_ref]
            for name in graph.compute_names():
                shader = graph.shader_of(command, name, self._scenario)
                if shader is None or shader.uid in known:
                    continue
                known.add(shader.uid)
                shaders.append(shader)
                if all(shader.uid != resource.uid for resource in self._scenario.resources):
                    places[shader.uid] = graph.pointer
        return places

    def _warn_of_unwritten(self, graph: VgfGraph) -> None:
        """Note what segments of a model read although nothing writes it."""
        for segment, slot in unwritten_inputs(graph.vgf):
            self._problems.warn(
                "SR-GRAPH-016",
                graph.pointer,
                f"{graph.path}: segment {segment.name or segment.index!r} reads resource {slot.resource_index} (binding"
                f" {slot.binding}), which no segment before it writes; it reads zeros",
            )
