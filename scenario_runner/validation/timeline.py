"""What each command of a scenario does to which memory, in order: the input of `checks.hazards`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

from scenario_runner.checks.bindings import Stages, slots_of
from scenario_runner.checks.hazards import Barriers, Boundary, Covered, Step, Use, Work
from scenario_runner.errors import ScenarioRunnerError
from scenario_runner.formats import find_format

if TYPE_CHECKING:
    from scenario_runner.plan.shaders import LoadedShader
    from scenario_runner.scenario import Scenario
    from scenario_runner.spirv import DescriptorBinding

_WHOLE_SIZE = 2**64 - 1
_STAGES = {"GLCompute": "compute", "Vertex": "vertex", "Fragment": "fragment"}
_GENERAL = "general"
# More than any image has; the number in the file may be anything.
_MOST_LEVELS = 64
Memory = tuple[str, int, int]
"""A memory object and the part of it, in bytes; for an image with memory of its own, in mip levels."""


class Effect(NamedTuple):
    """What a shader does at one set and binding; it touches ``extent_bytes`` at most, None for as many as there are.

    ``first_level`` tells that of an image bound without a level only the first one is touched.
    """

    stage: str
    reads: bool
    writes: bool
    atomic: bool
    extent_bytes: int | None
    first_level: bool


class GraphPart(NamedTuple):
    """One segment of a graph: where it runs, and the (set, binding) that it reads and writes."""

    stage: str
    inputs: frozenset[tuple[int, int]]
    outputs: frozenset[tuple[int, int]]


def steps_of(scenario: Scenario, shaders: Mapping[str, LoadedShader]) -> Iterator[Step]:
    """Every command as a step. Shaders that could not be loaded use nothing: what is wrong is said elsewhere."""
    timeline = _Timeline(scenario, shaders)
    for index, command in enumerate(scenario.commands):
        yield from timeline.steps(command, scenario.command_pointer(index))


class _Timeline:
    def __init__(self, scenario: Scenario, shaders: Mapping[str, LoadedShader]) -> None:
        self._resources: dict[str, Any] = {resource.uid: resource for resource in scenario.resources}
        self._scenario = scenario
        self._shaders = shaders
        self._memory: dict[tuple[str, int | None], Memory] = {}
        self._effects: dict[tuple[str, ...], dict[tuple[int, int], list[Effect]]] = {}
        self._graphs: dict[str, tuple[GraphPart, ...]] = {}
        self._layouts: dict[str, list[str]] = {}

    def steps(self, command: Any, pointer: str) -> Iterator[Step]:
        kind = command.kind
        if kind == "dispatch_barrier":
            yield Barriers(pointer, tuple(self._covered(command)))
        elif kind == "mark_boundary":
            yield Boundary()
        elif kind in ("dispatch_graph", "dispatch_spirv_graph"):
            yield from self._graph_steps(command, pointer)
        else:
            if kind == "dispatch_compute":
                name, uses = (
                    f"shader {command.shader_ref!r}",
                    self._shader_uses((command.shader_ref,), command.bindings),
                )
            elif kind == "dispatch_fragment":
                pair = (command.vertex_shader_ref, command.fragment_shader_ref)
                name = f"shader {command.fragment_shader_ref!r}"
                uses = [*self._shader_uses(pair, command.bindings), *self._attachments(command)]
            else:
                name, uses = "the optical flow", list(self._optical_flow(command))
            yield Work(pointer, name, tuple(uses), command.implicit_barrier)

    def _use(self, uid: str, lod: int | None, stage: str, reads: bool, writes: bool, atomic: bool = False) -> Use:
        resource = self._resources[uid]
        memory, first, end = self._range(uid, lod)
        grouped = resource.memory_group is not None
        unit = "mip level" if resource.kind == "image" and not grouped else "byte"
        base = resource.memory_group.offset if grouped else 0
        return Use(uid, resource.kind, memory, first, end, stage, reads, writes, atomic, unit, base)

    def _shader_uses(self, uids: tuple[str, ...], bindings: Iterable[Any]) -> list[Use]:
        effects = self._effects.get(uids)
        if effects is None:
            effects = self._effects[uids] = self._read_effects(uids)
        uses = []
        for binding in bindings:
            for effect in effects.get((binding.set, binding.id), ()):
                lod = 0 if binding.lod is None and effect.first_level else binding.lod
                use = self._use(binding.resource_ref, lod, *effect[:4])
                if effect.extent_bytes is not None and use.what == "buffer":
                    use = use._replace(end=min(use.end, use.first + effect.extent_bytes))
                uses.append(use)
        return uses

    def _read_effects(self, uids: tuple[str, ...]) -> dict[tuple[int, int], list[Effect]]:
        """(set, binding) → what each shader of a command does there."""
        effects: dict[tuple[int, int], list[Effect]] = {}
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
                    first_level = slot.kind == "storage_image"
                    effect = Effect(stage, reads, writes, atomic, _extent(touching), first_level)
                    effects.setdefault(place, []).append(effect)
        return effects

    def _attachments(self, command: Any) -> Iterator[Use]:
        for attachment in command.color_attachment_refs:
            yield self._use(attachment.resource_ref, attachment.lod, "attachment", False, True)

    def _optical_flow(self, command: Any) -> Iterator[Use]:
        for name, binding in command.bindings:
            if binding is not None:
                writes = name in ("output_image", "output_cost")
                yield self._use(binding.resource_ref, binding.lod, "graph", not writes, writes)

    def _graph_steps(self, command: Any, pointer: str) -> Iterator[Step]:
        """Each segment reads its inputs and writes its outputs, and is finished before the next one begins.

        Nothing is said of a graph that cannot be read.
        """
        uid = command.graph_ref
        if uid not in self._graphs:
            try:
                self._graphs[uid] = tuple(self._read_graph(self._resources[uid]))
            except ScenarioRunnerError:
                self._graphs[uid] = ()
        counted = self._resources[uid].kind == "graph"  # a VGF counts its inputs and outputs
        name, parts = f"graph {uid!r}", self._graphs[uid]
        if not parts:
            yield Work(pointer, name, (), command.implicit_barrier)
        for part in parts:
            uses = []
            for binding in command.bindings:
                place = (0 if counted else binding.set, binding.id)
                reads, writes = place in part.inputs, place in part.outputs
                if reads or writes:
                    uses.append(self._use(binding.resource_ref, binding.lod, part.stage, reads, writes))
            yield Work(pointer, name, tuple(uses), command.implicit_barrier or part is not parts[-1])

    def _read_graph(self, resource: Any) -> Iterator[GraphPart]:
        if resource.kind == "shader":
            from scenario_runner.plan.shaders import read_spirv
            from scenario_runner.spirv import read_module

            module = read_module(read_spirv(self._scenario, resource), name=resource.uid)
            for graph in module.graph_entry_points:
                if graph.name == resource.entry:
                    inputs = frozenset((each.set, each.binding) for each in graph.inputs)
                    yield GraphPart("graph", inputs, frozenset((each.set, each.binding) for each in graph.outputs))
            return
        import os

        from scenario_runner.vgf import input_ports, output_ports, parse_vgf, read_vgf

        if resource.data is not None:
            vgf = parse_vgf(resource.data, name=resource.uid)
        else:
            vgf = read_vgf(os.path.join(self._scenario.base_dir, resource.src or ""))
        inputs_of = {view: port.binding for port in input_ports(vgf) for view in port.view_indices}
        outputs_of = {view: port.binding for port in output_ports(vgf) for view in port.view_indices}
        for segment in vgf.segments:
            rows = [slot.resource_index for slot in segment.inputs]
            read = frozenset((0, places[row]) for places in (inputs_of, outputs_of) for row in rows if row in places)
            rows = [slot.resource_index for slot in segment.outputs]
            written = frozenset((0, outputs_of[row]) for row in rows if row in outputs_of)
            yield GraphPart(segment.type, read, written)

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
                    (f"uid {resource.uid}", 0, _mips(resource))
                    if lod is None
                    else (f"uid {resource.uid}", lod, lod + 1)
                )
            return f"uid {resource.uid}", 0, _size_bytes(resource)
        if resource.kind == "image":
            first, end = (0, _mips(resource)) if lod is None else (lod, lod + 1)
            return self._levels(resource, first, end)
        return f"group {group.id}", group.offset, group.offset + _size_bytes(resource)

    def _levels(self, image: Any, first: int, end: int) -> Memory:
        """Mip levels of an image, as a part of its memory; in a group as if they lay one behind the other."""
        if image.memory_group is None:
            return f"uid {image.uid}", first, end
        sizes = _level_sizes_bytes(image)
        start = image.memory_group.offset + sum(sizes[:first])
        return f"group {image.memory_group.id}", start, start + sum(sizes[first:end])

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
                name = f"{barrier.kind.replace('_', ' ')} {uid!r}"
                if barrier.kind == "memory_barrier":
                    yield Covered(*words, name=name)
                elif barrier.kind == "image_barrier":
                    image = self._resources[barrier.image_resource]
                    part = barrier.subresource_range
                    first, end = part.base_mip_level, min(_mips(image), part.base_mip_level + part.level_count)
                    moved = tuple(self._transitions(barrier, image, first, end))
                    yield Covered(*words, *self._levels(image, first, end), name, moved)
                else:
                    yield Covered(*words, *self._part(barrier), name)

    def _transitions(self, barrier: Any, image: Any, first: int, end: int) -> Iterator[Use]:
        """The levels whose layout changes, as far as they lie side by side in one use.

        What is there counts, not the old layout that the barrier names; with "undefined" the content is dropped, which
        is a change, too.
        """
        layouts = self._layouts.setdefault(image.uid, [_GENERAL] * _mips(image))
        start = None
        for level in range(first, end + 1):
            moves = level < end and (barrier.old_layout == "undefined" or layouts[level] != barrier.new_layout)
            if moves and start is None:
                start = level
            elif not moves and start is not None:
                memory = self._levels(image, start, level)
                unit = "byte" if image.memory_group is not None else "mip level"
                yield Use(image.uid, "image", *memory, "transition", False, True, unit=unit)
                start = None
        layouts[first:end] = [barrier.new_layout] * max(0, end - first)

    def _part(self, barrier: Any) -> Memory:
        if barrier.kind == "buffer_barrier":
            memory, first, end = self._range(barrier.buffer_resource, None)
            first += barrier.offset
            return memory, first, end if barrier.size == _WHOLE_SIZE else first + barrier.size
        return self._range(barrier.tensor_resource, None)


def _extent(variables: Iterable[DescriptorBinding]) -> int | None:
    """The bytes of a buffer that variables can touch: those of their blocks, unless one ends in a runtime array."""
    extents = [
        None if each.block is None or each.block.runtime_stride_bytes is not None else each.block.size_bytes
        for each in variables
    ]
    known = [extent for extent in extents if extent is not None]
    return max(known) if known and len(known) == len(extents) else None


def _mips(image: Any) -> int:
    return min(int(image.mips), _MOST_LEVELS)


def _level_sizes_bytes(image: Any) -> list[int]:
    """The least that each mip level takes; a byte where the format or the dimensions are wrong."""
    format = find_format(image.format)
    width, height = (*image.dims, 1, 1, 1)[1:3]
    sizes = []
    for level in range(_mips(image)):
        size = 1 if format is None else format.level_size_bytes(max(1, width >> level), max(1, height >> level))
        sizes.append(max(1, size))
    return sizes


def _size_bytes(resource: Any) -> int:
    """The least that a buffer or tensor takes; where a dimension is not known yet, one byte."""
    if resource.kind == "buffer":
        return int(resource.size)
    format = find_format(resource.format)
    if format is None:
        return 1
    return max(1, prod(resource.dims) * format.block_size_bytes) if all(size > 0 for size in resource.dims) else 1
