"""The graphs that commands run: read first, because they say what shapes and shaders there are, then resolved."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scenario_runner.checks.access import check_writeonly_input
from scenario_runner.errors import ScenarioRunnerError
from scenario_runner.plan.graphs.model import VgfGraph
from scenario_runner.plan.graphs.spirv import SpirvGraph, resolve_spirv_dispatch
from scenario_runner.plan.graphs.vgf import VgfDispatch, shader_of
from scenario_runner.plan.tensors import report_unknown_shape

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from scenario_runner.files.source import Identity
    from scenario_runner.plan.layouts import LayoutTracker
    from scenario_runner.plan.model.plan import Operation
    from scenario_runner.plan.problems import Problems
    from scenario_runner.plan.push_constants import PushConstants
    from scenario_runner.plan.shaders import LoadedShader
    from scenario_runner.plan.tables import Tables
    from scenario_runner.scenario import Scenario, Shader


def _is_open(resource: Any) -> bool:
    """Whether it is a tensor that leaves some dimension to a graph."""
    return resource.kind == "tensor" and any(size <= 0 for size in resource.dims)


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
        open_uids = {resource.uid for resource in self._scenario.resources if _is_open(resource)}
        if not open_uids:
            return {}
        from scenario_runner.plan.graphs.shape_inference import infer_shapes

        return infer_shapes(self._scenario, self._graphs, self._modules, open_uids, inputs, self._problems)

    def deferred(self, shapes: Mapping[str, tuple[int, ...]]) -> frozenset[str]:
        """The tensors without a shape that some graph writes: mostly its inputs are wrong, which is found later."""
        return frozenset(
            uid
            for command in self._scenario.commands
            for uid in self._written(command)
            if uid not in shapes and _is_open(self._scenario.resource(uid))
        )

    def _written(self, command: Any) -> list[str]:
        """The resources that a command's graph writes; nothing for other commands."""
        graph = self._graphs.get(getattr(command, "graph_ref", ""))
        module = self._modules.get(getattr(command, "graph_ref", ""))
        if graph is not None:
            counted = {port.binding for port in graph.outputs}
            return [each.resource_ref for each in command.bindings if each.id in counted]
        if module is not None:
            places = {(port.set, port.binding) for port in module.entry.outputs}
            return [each.resource_ref for each in command.bindings if (each.set, each.id) in places]
        return []

    def report_unknown_shapes(self, deferred: frozenset[str]) -> None:
        """Note those of the ``deferred`` tensors for which nothing else that was noted accounts: neither an error of
        the commands that write them nor one of what these bind."""
        places = tuple(problem.pointer or "" for problem in self._problems.errors)
        explained: set[str] = set()
        before = -1
        while before < len(explained):
            before = len(explained)
            for index, command in enumerate(self._scenario.commands):
                written = deferred & set(self._written(command))
                if not written:
                    continue
                bound = {each.resource_ref for each in command.bindings}  # type: ignore[union-attr]
                causes = [self._scenario.command_pointer(index)]
                causes += [self._scenario.resource_pointer(uid) for uid in bound]
                if bound & explained or any(f"{place}/".startswith(f"{each}/") for each in causes for place in places):
                    explained |= written
        for uid in sorted(deferred - explained):
            tensor: Any = self._scenario.resource(uid)
            report_unknown_shape(tensor, self._scenario.resource_pointer(uid), self._problems)

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
            self._warn_of_writeonly(command, index, {(port.set, port.binding) for port in module.entry.inputs})
            return resolve_spirv_dispatch(module, command, index, self._scenario, self._tables, self._problems)
        graph = self._graphs.get(command.graph_ref)
        if graph is None:
            return []
        counted = {port.binding for port in graph.inputs}  # a VGF has no sets
        reads = {(each.set, each.id) for each in command.bindings if each.id in counted}
        self._warn_of_writeonly(command, index, reads)
        dispatch = VgfDispatch(
            graph, command, index, self._scenario, self._tables, shaders, push_constants, self._problems
        )
        return dispatch.operations()

    def _warn_of_writeonly(self, command: Any, index: int, inputs: Collection[tuple[int, int]]) -> None:
        """Note what a graph reads at the (set, binding) in ``inputs`` although the scenario says that it is written."""
        for number, binding in enumerate(command.bindings):
            resource: Any = self._scenario.resource(binding.resource_ref)
            if (binding.set, binding.id) in inputs and getattr(resource, "shader_access", "") == "writeonly":
                place = f"{self._scenario.command_pointer(index)}/bindings/{number}/resource_ref"
                finding = check_writeonly_input(resource.kind, resource.uid, command.graph_ref, place)
                self._problems.report([finding])

    def _commands(self, kind: str) -> Iterator[Any]:
        return (command for command in self._scenario.commands if command.kind == kind)
