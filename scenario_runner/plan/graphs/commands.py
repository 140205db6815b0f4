"""The graphs that commands run: read first, because they say what shapes and shaders there are, then resolved."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from scenario_runner.checks.bindings import check_writeonly_input
from scenario_runner.errors import ScenarioRunnerError
from scenario_runner.files.source import Identity
from scenario_runner.graphs import unwritten_inputs
from scenario_runner.plan.context import CommandResolver, PlanContext
from scenario_runner.plan.graphs.model import VgfGraph
from scenario_runner.plan.graphs.spirv import SpirvGraph, resolve_spirv_dispatch
from scenario_runner.plan.graphs.vgf import VgfDispatch, shader_of
from scenario_runner.plan.model.plan import Operation
from scenario_runner.plan.tensors import is_open, report_unknown_shape
from scenario_runner.scenario import Shader


class Graphs(CommandResolver):
    """Resolves dispatch_graph and dispatch_spirv_graph; graphs that nothing runs are never opened."""

    def __init__(self, context: PlanContext) -> None:
        """Reads the files; what is wrong with them is noted."""
        super().__init__(context)
        self._scenario = scenario = context.scenario
        self._problems = problems = context.problems
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
                    self._warn_of_unwritten(self._graphs[uid])
                else:
                    self._modules[uid] = SpirvGraph(scenario, resource)
            except ScenarioRunnerError as error:
                failed.add(uid)
                problems.add_error(error, f"{scenario.resource_pointer(uid)}/src")

    def files(self) -> Iterator[tuple[str, Identity | None]]:
        yield from ((graph.path, graph.identity) for graph in self._graphs.values())
        yield from ((module.path, module.identity) for module in self._modules.values())

    def shapes(self) -> dict[str, tuple[int, ...]]:
        open_uids = {resource.uid for resource in self._scenario.resources if is_open(resource)}
        inputs = self.context.inputs
        if not open_uids:
            return {}
        from scenario_runner.plan.graphs.shape_inference import infer_shapes

        return infer_shapes(self._scenario, self._graphs, self._modules, open_uids, inputs, self._problems)

    def deferred(self) -> frozenset[str]:
        # mostly the inputs of the graph are wrong, which is found later
        return frozenset(
            uid
            for command in self._scenario.commands
            for uid in self._written(command)
            if uid not in self.context.shapes and is_open(self._scenario.resource(uid))
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

    def finish(self) -> None:
        """Note those of the deferred tensors for which nothing else that was noted accounts: neither an error of the
        commands that write them nor one of what these bind."""
        deferred = self.context.deferred
        places = tuple(problem.pointer or "" for problem in self._problems.errors)
        explained: set[str] = set()
        before = -1
        while before < len(explained):
            before = len(explained)
            for index, each in enumerate(self._scenario.commands):
                command: Any = each
                written = deferred & set(self._written(command))
                if not written:
                    continue
                bound = {binding.resource_ref for binding in command.bindings}
                causes = [self._scenario.command_pointer(index)]
                causes += [self._scenario.resource_pointer(uid) for uid in bound]
                if bound & explained or any(f"{place}/".startswith(f"{each}/") for each in causes for place in places):
                    explained |= written
        for uid in sorted(deferred - explained):
            tensor: Any = self._scenario.resource(uid)
            report_unknown_shape(tensor, self._scenario.resource_pointer(uid), self._problems)

    def add_shaders(self, shaders: list[Shader]) -> dict[str, str]:
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

    def resolve(self, command: Any, index: int) -> list[Operation]:
        """What one command does, segment by segment; what is wrong is noted."""
        context, images = self.context, self.context.layouts
        if images is not None:
            images.check_shader_access(
                [(each.resource_ref, each.lod) for each in command.bindings],
                f"{self._scenario.command_pointer(index)}/bindings",
            )
        if command.kind == "dispatch_spirv_graph":
            module = self._modules.get(command.graph_ref)
            if module is None:
                return []
            self._warn_of_writeonly(command, index, {(port.set, port.binding) for port in module.entry.inputs})
            return resolve_spirv_dispatch(module, command, index, self._scenario, context.tables, self._problems)
        graph = self._graphs.get(command.graph_ref)
        if graph is None:
            return []
        counted = {port.binding for port in graph.inputs}  # a VGF has no sets
        reads = {(each.set, each.id) for each in command.bindings if each.id in counted}
        self._warn_of_writeonly(command, index, reads)
        return VgfDispatch(graph, command, index, context).operations()

    def _warn_of_unwritten(self, graph: VgfGraph) -> None:
        """Note what segments of a model read although nothing writes it."""
        for segment, slot in unwritten_inputs(graph.vgf):
            self._problems.warn(
                "SR-GRAPH-016",
                graph.pointer,
                f"{graph.path}: segment {segment.name or segment.index!r} reads resource {slot.resource_index} (binding"
                f" {slot.binding}), which no segment before it writes; it reads zeros",
            )

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
