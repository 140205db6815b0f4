"""What each command of a scenario does to which memory, in order: the input of `checks.hazards`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from math import prod
from typing import TYPE_CHECKING, Any

from scenario_runner.checks.bindings import Stages, slots_of
from scenario_runner.checks.hazards import Barriers, Boundary, Covered, Step, Use, Work
from scenario_runner.errors import ScenarioRunnerError
from scenario_runner.formats import find_format

if TYPE_CHECKING:
    from scenario_runner.plan.shaders import LoadedShader
    from scenario_runner.scenario import Scenario

_WHOLE_SIZE = 2**64 - 1
_STAGES = {"GLCompute": "compute", "Vertex": "vertex", "Fragment": "fragment"}
Memory = tuple[str, int, int]
"""A memory object and the part of it, in bytes; for an image with memory of its own, in mip levels."""


def steps_of(scenario: Scenario, shaders: Mapping[str, LoadedShader]) -> Iterator[Step]:
    """Every command as a step. Shaders that could not be loaded use nothing: what is wrong is said elsewhere."""
    timeline = _Timeline(scenario, shaders)
    for index, command in enumerate(scenario.commands):
        step = timeline.step(command, scenario.command_pointer(index))
        if step is not None:
            yield step


class _Timeline:
    def __init__(self, scenario: Scenario, shaders: Mapping[str, LoadedShader]) -> None:
        self._resources: dict[str, Any] = {resource.uid: resource for resource in scenario.resources}
        self._scenario = scenario
        self._shaders = shaders
        self._memory: dict[tuple[str, int | None], Memory] = {}
        self._effects: dict[tuple[str, ...], dict[tuple[int, int], list[tuple[str, bool, bool, bool]]]] = {}
        self._graphs: dict[str, tuple[set[tuple[int, int]], set[tuple[int, int]]]] = {}

    def step(self, command: Any, pointer: str) -> Step | None:
        kind = command.kind
        if kind == "dispatch_barrier":
            return Barriers(pointer, tuple(self._covered(command)))
        if kind == "mark_boundary":
            return Boundary()
        if kind == "dispatch_compute":
            name, uses = f"shader {command.shader_ref!r}", self._shader_uses((command.shader_ref,), command.bindings)
        elif kind == "dispatch_fragment":
            pair = (command.vertex_shader_ref, command.fragment_shader_ref)
            name = f"shader {command.fragment_shader_ref!r}"
            uses = [*self._shader_uses(pair, command.bindings), *self._attachments(command)]
        elif kind == "dispatch_optical_flow":
            name, uses = "the optical flow", list(self._optical_flow(command))
        else:
            name, uses = f"graph {command.graph_ref!r}", list(self._graph_uses(command))
        return Work(pointer, name, tuple(uses), command.implicit_barrier)

    def _use(self, uid: str, lod: int | None, stage: str, reads: bool, writes: bool, atomic: bool = False) -> Use:
        return Use(uid, self._resources[uid].kind, *self._range(uid, lod), stage, reads, writes, atomic)

    def _shader_uses(self, uids: tuple[str, ...], bindings: Iterable[Any]) -> list[Use]:
        effects = self._effects.get(uids)
        if effects is None:
            effects = self._effects[uids] = self._read_effects(uids)
        return [
            self._use(binding.resource_ref, binding.lod, *effect)
            for binding in bindings
            for effect in effects.get((binding.set, binding.id), ())
        ]

    def _read_effects(self, uids: tuple[str, ...]) -> dict[tuple[int, int], list[tuple[str, bool, bool, bool]]]:
        """(set, binding) → (stage, reads, writes, atomic) of each shader of a command."""
        effects: dict[tuple[int, int], list[tuple[str, bool, bool, bool]]] = {}
        for uid in uids:
            shader = self._shaders.get(uid)
            if shader is None:
                continue
            stages: Stages = [(uid, shader.interface)]
            stage = _STAGES.get(shader.entry.execution_model, "compute")
            for place, slot in slots_of(stages, "")[0].items():
                touching = [each for _, each in slot.variables if each.reads or each.writes]
                if touching:
                    reads = any(each.reads for each in touching)
                    writes = any(each.writes and each.writable for each in touching)
                    atomic = all(each.atomic for each in touching)
                    effects.setdefault(place, []).append((stage, reads, writes, atomic))
        return effects

    def _attachments(self, command: Any) -> Iterator[Use]:
        for attachment in command.color_attachment_refs:
            yield self._use(attachment.resource_ref, attachment.lod, "attachment", False, True)

    def _optical_flow(self, command: Any) -> Iterator[Use]:
        for name, binding in command.bindings:
            if binding is not None:
                writes = name in ("output_image", "output_cost")
                yield self._use(binding.resource_ref, binding.lod, "graph", not writes, writes)

    def _graph_uses(self, command: Any) -> Iterator[Use]:
        """Inputs are read and outputs written; nothing is said of a graph that cannot be read."""
        uid = command.graph_ref
        if uid not in self._graphs:
            try:
                self._graphs[uid] = self._read_graph(self._resources[uid])
            except ScenarioRunnerError:
                self._graphs[uid] = (set(), set())
        inputs, outputs = self._graphs[uid]
        counted = self._resources[uid].kind == "graph"  # a VGF counts its inputs and outputs
        for binding in command.bindings:
            place = (0 if counted else binding.set, binding.id)
            if place in inputs or place in outputs:
                yield self._use(binding.resource_ref, binding.lod, "graph", place in inputs, place in outputs)

    def _read_graph(self, resource: Any) -> tuple[set[tuple[int, int]], set[tuple[int, int]]]:
        if resource.kind == "shader":
            from scenario_runner.plan.shaders import read_spirv
            from scenario_runner.spirv import read_module

            module = read_module(read_spirv(self._scenario, resource), name=resource.uid)
            graphs = [graph for graph in module.graph_entry_points if graph.name == resource.entry]
            inputs = {(each.set, each.binding) for graph in graphs for each in graph.inputs}
            return inputs, {(each.set, each.binding) for graph in graphs for each in graph.outputs}
        import os

        from scenario_runner.vgf import input_ports, output_ports, parse_vgf, read_vgf

        if resource.data is not None:
            vgf = parse_vgf(resource.data, name=resource.uid)
        else:
            vgf = read_vgf(os.path.join(self._scenario.base_dir, resource.src or ""))
        return {(0, port.binding) for port in input_ports(vgf)}, {(0, port.binding) for port in output_ports(vgf)}

    def _range(self, uid: str, lod: int | None) -> Memory:
        """Where a resource, or one mip level of it, lies."""
        key = (uid, lod)
        found = self._memory.get(key)
        if found is None:
            resource = self._resources[uid]
            found = self._memory[key] = self._find_range(resource, lod if resource.kind == "image" else None)
        return found

    def _find_range(self, resource: Any, lod: int | None) -> Memory:
        group = resource.memory_group
        if group is None:
            if resource.kind == "image":
                return (
                    (f"uid {resource.uid}", 0, resource.mips) if lod is None else (f"uid {resource.uid}", lod, lod + 1)
                )
            return f"uid {resource.uid}", 0, _size_bytes(resource)
        return f"group {group.id}", group.offset, group.offset + _size_bytes(resource)

    def _covered(self, command: Any) -> Iterator[Covered]:
        for names in (
            command.memory_barrier_refs,
            command.buffer_barrier_refs,
            command.image_barrier_refs,
            command.tensor_barrier_refs,
        ):
            for uid in names:
                barrier = self._resources[uid]
                words = (barrier.src_stage, barrier.dst_stage, barrier.src_access, barrier.dst_access)
                yield Covered(*words, *self._part(barrier))

    def _part(self, barrier: Any) -> tuple[str, int, int] | tuple[()]:
        if barrier.kind == "memory_barrier":
            return ()
        if barrier.kind == "buffer_barrier":
            memory, first, end = self._range(barrier.buffer_resource, None)
            first += barrier.offset
            return memory, first, end if barrier.size == _WHOLE_SIZE else first + barrier.size
        if barrier.kind == "image_barrier":
            memory, first, end = self._range(barrier.image_resource, None)
            if self._resources[barrier.image_resource].memory_group is None:
                part = barrier.subresource_range
                return memory, part.base_mip_level, min(end, part.base_mip_level + part.level_count)
            return memory, first, end
        return self._range(barrier.tensor_resource, None)


def _size_bytes(resource: Any) -> int:
    """The least that a resource takes; where a dimension is not known yet, one byte."""
    if resource.kind == "buffer":
        return int(resource.size)
    format = find_format(resource.format)
    if format is None:
        return 1
    if resource.kind == "image":
        width, height = (*resource.dims, 1, 1, 1)[1:3]
        return max(1, format.level_size_bytes(width, height))
    return max(1, prod(resource.dims) * format.block_size_bytes) if all(size > 0 for size in resource.dims) else 1
