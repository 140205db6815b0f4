"""The commands that run graphs."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from scenario_runner.checks.bindings import check_writeonly_input
from scenario_runner.plan.context import CommandContext, CommandResolver
from scenario_runner.plan.graph_files import GraphFiles
from scenario_runner.plan.graphs.spirv import resolve_spirv_dispatch
from scenario_runner.plan.graphs.vgf import VgfDispatch
from scenario_runner.plan.model.plan import Operation
from scenario_runner.plan.model.records import NeededFeature
from scenario_runner.plan.tensors import report_unknown_shape


class Graphs(CommandResolver):
    """Resolves dispatch_graph and dispatch_spirv_graph."""

    def __init__(self, context: CommandContext) -> None:
        super().__init__(context)
        self._scenario = context.scenario
        self._problems = context.problems
        self._files: GraphFiles = context.graphs

    def resolve(self, command: Any, index: int) -> list[Operation]:
        """What one command does, segment by segment; what is wrong is noted."""
        context, images = self.context, self.context.layouts
        if images is not None:
            images.check_bindings(command, index)
        if command.kind == "dispatch_spirv_graph":
            module = self._files.modules.get(command.graph_ref)
            if module is None:
                return []
            self._warn_of_writeonly(command, index, {(port.set, port.binding) for port in module.entry.inputs})
            return resolve_spirv_dispatch(module, command, index, self._scenario, context.tables, self._problems)
        graph = self._files.vgfs.get(command.graph_ref)
        if graph is None:
            return []
        counted = {port.binding for port in graph.inputs}  # a VGF has no sets
        reads = {(each.set, each.id) for each in command.bindings if each.id in counted}
        self._warn_of_writeonly(command, index, reads)
        return VgfDispatch(graph, command, index, context).operations()

    def finish(self) -> tuple[NeededFeature, ...]:
        """Note those of the deferred tensors for which nothing else that was noted accounts: neither an error of the
        commands that write them nor one of what these bind."""
        deferred = self._files.deferred
        places = tuple(problem.pointer or "" for problem in self._problems.errors)
        explained: set[str] = set()
        before = -1
        while before < len(explained):
            before = len(explained)
            for index, each in enumerate(self._scenario.commands):
                command: Any = each
                written = deferred & set(self._files.written(command))
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
        return ()

    def _warn_of_writeonly(self, command: Any, index: int, inputs: Collection[tuple[int, int]]) -> None:
        """Note what a graph reads at the (set, binding) in ``inputs`` although the scenario says that it is written."""
        for number, binding in enumerate(command.bindings):
            resource: Any = self._scenario.resource(binding.resource_ref)
            if (binding.set, binding.id) in inputs and getattr(resource, "shader_access", "") == "writeonly":
                place = f"{self._scenario.command_pointer(index)}/bindings/{number}/resource_ref"
                finding = check_writeonly_input(resource.kind, resource.uid, command.graph_ref, place)
                self._problems.report([finding])
