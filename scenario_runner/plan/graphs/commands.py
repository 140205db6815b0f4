"""The graphs that commands run: read first, because they say what shapes and shaders there are, then resolved."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scenario_runner.errors import ScenarioRunnerError
from scenario_runner.plan.graphs.model import VgfGraph
from scenario_runner.plan.graphs.spirv import SpirvGraph, resolve_spirv_dispatch
from scenario_runner.plan.graphs.vgf import VgfDispatch, shader_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from scenario_runner.files.source import Identity
    from scenario_runner.plan.layouts import LayoutTracker
    from scenario_runner.plan.model.plan import Operation
    from scenario_runner.plan.problems import Problems
    from scenario_runner.plan.push_constants import PushConstants
    from scenario_runner.plan.shaders import LoadedShader
    from scenario_runner.plan.tables import Tables
    from scenario_runner.scenario import Scenario, Shader


class Graphs:
    """Every graph that a command names; graphs that nothing runs are never opened."""

    def __init__(self, scenario: Scenario, tables: Tables, problems: Problems) -> None:
        """Reads the files; what is wrong with them is noted."""
        self._scenario = scenario
        self._tables = tables
        self._problems = problems
        self._graphs: dict[str, VgfGraph] = {}
        self._modules: dict[str, SpirvGraph] = {}
        failed: set[str] = set()
        for command in scenario.commands:
            uid: str = getattr(command, "graph_ref", "")
            if not uid or uid in failed or uid in self._graphs or uid in self._modules:
                continue
            resource: Any = scenario.resource(uid)
            try:
                if command.kind == "dispatch_graph":
                    self._graphs[uid] = VgfGraph(scenario, resource)
                else:
                    self._modules[uid] = SpirvGraph(scenario, resource)
            except ScenarioRunnerError as error:
                failed.add(uid)
                problems.add_error(error, f"{scenario.resource_pointer(uid)}/src")

    def files(self) -> Iterator[tuple[str, Identity | None]]:
        """The file of each graph with what it was when it was read; None for a graph that is not in a file."""
        yield from ((graph.path, graph.identity) for graph in self._graphs.values())
        yield from ((module.path, module.identity) for module in self._modules.values())

    def shapes(self, inputs: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
        """The shapes of tensors that leave some dimension to the graph they are bound to, where it says them."""
        open_uids = {
            resource.uid
            for resource in self._scenario.resources
            if resource.kind == "tensor" and any(size <= 0 for size in resource.dims)  # type: ignore[union-attr]
        }
        if not open_uids:
            return {}
        from scenario_runner.plan.graphs.shape_inference import infer_shapes

        return infer_shapes(self._scenario, self._graphs, self._modules, open_uids, inputs, self._problems)

    def add_shaders(self, shaders: list[Shader]) -> dict[str, str]:
        """Add the shaders that graphs run to those that are loaded; returns the pointers of the files' own."""
        places: dict[str, str] = {}
        known = {shader.uid for shader in shaders}
        for command in self._commands("dispatch_graph"):
            graph = self._graphs.get(command.graph_ref)
            if graph is None:
                continue
            for name in graph.compute_names():
                shader = shader_of(graph, command, name, self._scenario)
                if shader is None or shader.uid in known:
                    continue
                known.add(shader.uid)
                shaders.append(shader)
                if all(shader.uid != resource.uid for resource in self._scenario.resources):
                    places[shader.uid] = graph.pointer
        return places

    def operations(
        self,
        command: Any,
        index: int,
        shaders: Mapping[str, LoadedShader],
        push_constants: PushConstants,
        images: LayoutTracker | None,
    ) -> list[Operation]:
        """What one command does, segment by segment; what is wrong is noted."""
        if images is not None:
            images.check_shader_access(
                [(each.resource_ref, each.lod) for each in command.bindings], self._scenario.command_pointer(index)
            )
        if command.kind == "dispatch_spirv_graph":
            module = self._modules.get(command.graph_ref)
            if module is None:
                return []
            return resolve_spirv_dispatch(module, command, index, self._scenario, self._tables, self._problems)
        graph = self._graphs.get(command.graph_ref)
        if graph is None:
            return []
        dispatch = VgfDispatch(
            graph, command, index, self._scenario, self._tables, shaders, push_constants, self._problems
        )
        return dispatch.operations()

    def _commands(self, kind: str) -> Iterator[Any]:
        return (command for command in self._scenario.commands if command.kind == kind)
