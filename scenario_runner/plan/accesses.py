"""Accesses by operations to resources, missing barriers that are certain, and dumps after commands.

The SPIR-V modules of shaders and graphs tell the accesses. A plan with dumps has more frames with captures, so that a
run handles frames only.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final, NamedTuple

from scenario_runner.checks.first_invocation import Touch, certain_touches
from scenario_runner.checks.hazards import Use, find_hazards
from scenario_runner.checks.hazards import Work as Step
from scenario_runner.errors import UsageError
from scenario_runner.errors.diagnostic import Diagnostic
from scenario_runner.errors.text import close_names, did_you_mean
from scenario_runner.plan.image_layouts import LevelLayouts
from scenario_runner.plan.image_records import Draw, Transfer, TransferPart, bytes_of
from scenario_runner.plan.plan import FramePlan, Operation, Plan, ResourcePlan, Work, memory_groups, span_of
from scenario_runner.plan.records import Descriptor, overlap
from scenario_runner.plan.shader_modules import LoadedShader
from scenario_runner.scenario import Copy, Fill, Scenario
from scenario_runner.shaders.spirv import DescriptorBinding, read_module
from scenario_runner.shaders.spirv.types import Array, RuntimeArray, Scalar, Struct, Vector

_MOST_USES: Final = 250  # that the search for certain hazards compares
_Variables = dict[tuple[int, int], list[DescriptorBinding]]


class ResourceAccess(NamedTuple):
    """Access by one stage in an operation to a resource or an image's mip ``level`` (None: all levels).

    An ``atomic`` access consists of atomic operations only. In a buffer, the access covers ``extent_bytes`` from
    ``offset_bytes`` on; None is the rest, as for a block that ends in a runtime array.
    """

    uid: str
    level: int | None
    stage: str
    reads: bool
    writes: bool
    atomic: bool = False
    extent_bytes: int | None = None
    offset_bytes: int = 0


class Accesses:
    """Finds how operations access resources, once for each pipeline and descriptor list.

    ``shaders`` are the plan's loaded shaders by uid. A plan from the cache has none, so modules are read again.
    """

    def __init__(self, plan: Plan, shaders: Mapping[str, LoadedShader] | None = None) -> None:
        self._plan = plan
        self._shaders = shaders or {}
        self._known: dict[Hashable, tuple[ResourceAccess, ...]] = {}
        self._stages: dict[tuple[str, int], list[tuple[str, _Variables]]] = {}
        self._sharing: dict[str, set[str]] = {}
        for members in memory_groups(plan.resources.values()).values():
            for plan_of_member in members:
                span = span_of(plan_of_member)
                same = {other.uid for other in members if overlap(span, span_of(other))}
                self._sharing[plan_of_member.uid] = {plan_of_member.uid, *same}

    def accesses_of(self, operation: Operation) -> tuple[ResourceAccess, ...]:
        """Return an operation's accesses."""
        if operation.kind == "barrier":
            return ()
        if isinstance(operation, Transfer):
            return tuple(_of_transfer(part, writes=part is operation.target) for part in operation.parts)
        further = tuple(self._beside_shaders(operation)) if operation.kind == "draw" else ()
        key = (operation.kind, operation.pipeline, operation.descriptors, further)
        if key not in self._known:
            bound = self._of_shaders if operation.kind in ("dispatch", "draw") else self._of_graph
            self._known[key] = (*bound(operation), *further)
        return self._known[key]

    def changed_by(self, operation: Operation) -> set[str]:
        """Return resources an operation may change: written resources, and others sharing their bytes."""
        written = {access.uid for access in self.accesses_of(operation) if access.writes}
        return {member for uid in written for member in self._sharing.get(uid, (uid,))}

    def elements(self) -> dict[str, str]:
        """Return element types such as "float32" by uid, for buffers with the same type in all shaders."""
        seen: dict[str, set[str | None]] = {}
        for operation in (operation for frame in self._plan.frames for operation in frame.operations):
            if operation.kind in ("dispatch", "draw"):
                for descriptor, _, variables in self.bound(operation):
                    names = {element_name(variable.block) for variable in variables if variable.block is not None}
                    seen.setdefault(descriptor.uid, set()).update(names)
        return {uid: name for uid, names in seen.items() for name in names if name is not None and len(names) == 1}

    def _of_shaders(self, operation: Work) -> Iterator[ResourceAccess]:
        for descriptor, stage, variables in self.bound(operation):
            used = [variable for variable in variables if variable.reads or variable.writes]
            if used:
                blocks = [variable.block for variable in used]
                sizes = [block.size_bytes for block in blocks if block and block.runtime_stride_bytes is None]
                extents = [max(sizes)] if len(sizes) == len(used) else []
                extents += [] if descriptor.size_bytes is None else [descriptor.size_bytes]
                yield ResourceAccess(
                    descriptor.uid,
                    descriptor.level,
                    stage,
                    reads=any(variable.reads for variable in used),
                    writes=any(variable.writes and variable.writable for variable in used),
                    atomic=all(variable.atomic for variable in used),
                    extent_bytes=min(extents, default=None),
                    offset_bytes=descriptor.offset_bytes,
                )

    def _beside_shaders(self, draw: Draw) -> Iterator[ResourceAccess]:
        """Yield a draw's accesses to attachments, vertex buffers and indices."""
        pipeline, vertices = self._plan.graphics_pipelines[draw.pipeline], draw.vertices
        for uid, level, is_depth in draw.targets:
            writes = pipeline.depth.write if is_depth and pipeline.depth is not None else True
            yield ResourceAccess(uid, level, "attachment", reads=is_depth, writes=writes)
        for attribute, (uid, offset) in zip(pipeline.attributes, vertices.buffers, strict=True):
            first, count = vertices.elements(attribute) or (0, None)
            offset += first * attribute.stride_bytes
            size = None if count is None else bytes_of(attribute, count)
            yield _of_vertices(uid, offset, size)
        if vertices.index_buffer is not None:
            uid, offset = vertices.index_buffer
            size = vertices.index_size_bytes
            yield _of_vertices(uid, offset + vertices.first * size, vertices.vertex_count * size)

    def _of_graph(self, operation: Work) -> Iterator[ResourceAccess]:
        resources = self._plan.graph_pipelines[operation.pipeline].resources
        by_place = {(resource.set, resource.binding): resource for resource in resources}
        for descriptor in self._plan.descriptor_lists[operation.descriptors].descriptors:
            resource = by_place.get((descriptor.set, descriptor.binding))
            if resource is not None:
                yield ResourceAccess(descriptor.uid, descriptor.level, "graph", resource.reads, resource.writes)

    def bound(self, operation: Work) -> Iterator[tuple[Descriptor, str, list[DescriptorBinding]]]:
        """Yield the descriptors for a dispatch or a draw, with each stage and the variables reading or writing them."""
        key = (operation.kind, operation.pipeline)
        if key not in self._stages:
            self._stages[key] = list(self._variables(*key))
        for descriptor in self._plan.descriptor_lists[operation.descriptors].descriptors:
            for stage, variables in self._stages[key]:
                if (descriptor.set, descriptor.binding) in variables:
                    yield descriptor, stage, variables[descriptor.set, descriptor.binding]

    def _variables(self, kind: str, pipeline: int) -> Iterator[tuple[str, _Variables]]:
        """Yield a pipeline's stages, with their variables by set and binding."""
        plan: Any = self._plan
        stages = {"compute": plan.pipelines[pipeline]} if kind == "dispatch" else {}
        if kind == "draw":
            stages = dict(zip(("vertex", "fragment"), plan.graphics_pipelines[pipeline], strict=False))
        for name, stage in stages.items():
            shader = self._shaders.get(stage.label)
            by_place: _Variables = {}
            if shader is None:
                entries = read_module(stage.code).entry_points
                interface = next(entry.interface for entry in entries if entry.name == stage.entry)
            else:
                interface = shader.interface
            for variable in interface.bindings:
                by_place.setdefault((variable.set, variable.binding), []).append(variable)
            yield name, by_place


def _of_vertices(uid: str, offset: int, size: int | None) -> ResourceAccess:
    """Return the access of a draw to a vertex or index buffer."""
    return ResourceAccess(uid, None, "vertex_input", True, False, False, size, offset)


def _of_transfer(part: TransferPart, *, writes: bool) -> ResourceAccess:
    """Return the access of a fill or copy to a part of a resource."""
    return ResourceAccess(
        part.uid, part.level, "transfer", not writes, writes, False, part.size_bytes, part.offset_bytes
    )


def element_name(type: object) -> str | None:
    """Name the number type in a structure; None for several types, or gaps between the numbers."""
    if isinstance(type, Struct):
        return element_name(type.members[0].type) if len(type.members) == 1 else None
    if isinstance(type, Array | RuntimeArray):
        inner = type.element
        if not isinstance(inner, Scalar | Vector) or type.stride_bytes not in (None, inner.size_bytes):
            return None
        return element_name(inner)
    if isinstance(type, Vector):
        return element_name(type.component)
    if not isinstance(type, Scalar) or type.is_bool:
        return None
    return type.encoding or f"{type.kind}{type.width_bits}"


def work_name(command: object) -> str:
    """Name a command's work in messages."""
    for key, kind in (("shader_ref", "shader"), ("fragment_shader_ref", "shader"), ("graph_ref", "graph")):
        if hasattr(command, key):
            return f"{kind} {getattr(command, key)!r}"
    return f"the {command.kind}" if isinstance(command, Copy | Fill) else "the optical flow"


def certain_hazards(scenario: Scenario, plan: Plan, shaders: Mapping[str, LoadedShader]) -> list[Diagnostic]:
    """Find reads and writes after a write without any barrier between them, if both certainly use the same memory."""
    findings = find_hazards(_certain_steps(scenario, plan, shaders))
    return [finding for finding in findings if finding.code in ("SR-HAZARD-001", "SR-HAZARD-003")]


def _certain_steps(scenario: Scenario, plan: Plan, shaders: Mapping[str, LoadedShader]) -> Iterator[Step]:
    """Yield each operation with its certain uses.

    A frame ends with a barrier. Before a draw, an optical flow, a transfer to an image and the next run of a graph, the
    program itself may record a barrier. So no operation before them counts. After many uses, none before them counts.
    """

    @cache
    def touches_of(pipeline: int) -> frozenset[Touch]:
        return certain_touches(shaders[plan.pipelines[pipeline].label].interface)

    accesses, ordered = Accesses(plan, shaders), Step("", "", (), True)
    running: set[int] = set()
    known: dict[Hashable, tuple[Use, ...]] = {}  # of dispatches with equal pipelines and descriptors
    count = 0
    for frame in plan.frames:
        for operation in frame.operations:
            to_image = isinstance(operation, Transfer) and operation.target.level is not None
            runs_again = operation.kind == "graph_dispatch" and operation.pipeline in running
            if to_image or runs_again or operation.kind in ("barrier", "draw", "optical_flow_dispatch"):
                yield ordered
                running.clear()
            if operation.kind == "graph_dispatch":
                running.add(operation.pipeline)
            if operation.kind != "barrier":
                name = work_name(scenario.commands[operation.command])
                key: Hashable = operation
                if operation.kind == "dispatch":
                    key = operation.pipeline, operation.descriptors, all(operation.workgroup_count)
                if key not in known:
                    known[key] = tuple(_certain_uses(operation, plan, accesses, touches_of))
                uses = known[key]
                count += len(uses)
                if count > _MOST_USES:
                    yield ordered
                    count = len(uses)
                yield Step(scenario.command_pointer(operation.command), name, uses, operation.barrier_after)
        yield ordered


def _certain_uses(
    operation: Work | Transfer, plan: Plan, accesses: Accesses, touches_of: Callable[[int], frozenset[Touch]]
) -> Iterator[Use]:
    """Yield an operation's certain uses, in bytes of buffers, texels of mip levels and elements of tensors."""
    if isinstance(operation, Transfer) or operation.kind == "graph_dispatch":
        for access in accesses.accesses_of(operation):
            resource, first = plan.resources[access.uid], access.offset_bytes
            end = resource.extent(access.level)
            if resource.kind == "buffer" and access.extent_bytes is not None:
                end = first + access.extent_bytes
            yield _use(resource, access.level, first, end, access.stage, access.reads, access.writes)
    elif operation.kind == "dispatch" and all(operation.workgroup_count):
        for descriptor, stage, variables in accesses.bound(operation):
            ids = {variable.variable for variable in variables}
            for touch in (touch for touch in touches_of(operation.pipeline) if touch.variable in ids):
                resource = plan.resources[descriptor.uid]
                first, end, most = _touched(touch, descriptor, resource)
                if end <= most:  # robustness decides about the others
                    yield _use(resource, descriptor.level, first, end, stage, not touch.writes, touch.writes)


def _touched(touch: Touch, descriptor: Descriptor, resource: ResourcePlan) -> tuple[int, int, int]:
    """Return the first unit of a touch, the end, and the end of the bound part."""
    if resource.kind == "image":
        x, y = touch.place
        part = resource.part_of(descriptor.level or 0)
        first = y * part.width + x
        return first, first + 1, part.width * part.height if x < part.width else 0
    assert resource.kind == "buffer", "the code reads and writes tensors by other instructions"
    unit = 1 if descriptor.format is None else descriptor.format.block_size_bytes
    first = descriptor.offset_bytes + touch.place[0] * unit
    return first, first + (touch.size_bytes or unit), descriptor.offset_bytes + descriptor.bound_bytes(resource)


def _use(resource: ResourcePlan, level: int | None, first: int, end: int, stage: str, reads: bool, writes: bool) -> Use:
    memory = f"{resource.uid} {level or 0}"
    return Use(resource.uid, resource.kind, memory, first, end, stage, reads, writes)


START = -1  # before the first command


class DumpTarget(NamedTuple):
    """A dump after the command ``last``: the resource ``uid``, or all changes by the commands from ``first`` on."""

    first: int
    last: int
    uid: str | None = None


class DumpPoint(NamedTuple):
    """A point in a run to read resources back: after ``command`` (`START`: before all), or after a graph ``segment``.

    ``end`` is the place in the plan: a frame's index, and how many operations come before the point.
    ``label`` names the segment.
    """

    command: int
    segment: int | None
    uids: tuple[str, ...]
    end: tuple[int, int]
    label: str = ""


class DumpPoints:
    """Finds the points in a plan for targets."""

    def __init__(self, plan: Plan, scenario: Scenario) -> None:
        self._plan = plan
        self._scenario = scenario
        self._declared = {resource.uid for resource in scenario.resources}
        self._accesses = Accesses(plan)
        self._work: dict[int, list[Operation]] = {}
        # (command, segment or None) → the end in the plan
        self._ends: dict[tuple[int, int | None], tuple[int, int]] = {}
        for number, frame in enumerate(plan.frames):
            for place, operation in enumerate(frame.operations, 1):
                self._ends[operation.command, None] = number, place
                if operation.kind != "barrier":
                    work = self._work.setdefault(operation.command, [])
                    self._ends[operation.command, len(work)] = number, place
                    work.append(operation)
        self._found: defaultdict[tuple[int, int | None], set[str]] = defaultdict(set)

    def list_points(self, targets: Sequence[DumpTarget], *, everything: bool) -> list[DumpPoint]:
        """List the points in order. Raise UsageError for unknown commands and resources.

        ``everything`` dumps all resources at the start, and after each command the resources the command may change.
        """
        if everything:
            self._found[START, None] = self._declared & self._plan.resources.keys()
            for command in range(len(self._scenario.commands)):
                self._add_changes(command, command)
        for target in targets:
            self._add_target(target)
        order = {uid: number for number, uid in enumerate(self._plan.resources)}
        points = []
        for (command, segment), uids in self._found.items():
            if uids:
                in_order = tuple(sorted(uids, key=order.__getitem__))
                end, label = self._end(command, segment), self._label(command, segment)
                points.append(DumpPoint(command, segment, in_order, end, label))
        return sorted(points, key=lambda point: (point.command, point.segment is None, point.segment or 0))

    def _add_target(self, target: DumpTarget) -> None:
        count = len(self._scenario.commands)
        if not target.first <= target.last < count:
            there_are = f"the commands are 0 to {count - 1}" if count else "there are no commands"
            raise UsageError(f"--dump-after: the scenario has no command {max(target.first, target.last)}: {there_are}")
        if target.uid is None:
            if not self._add_changes(target.first, target.last):
                message = f"command {target.last} ({self._scenario.commands[target.last].kind}) changes no resource"
                help = f"name a resource: --dump-after {target.last}:RESOURCE"
                raise UsageError(f"--dump-after: {message}", help=help)
            return
        self._check_uid(target.uid)
        command, segment = target.last, None
        if target.uid not in self._declared:  # a value inside a graph: later segments may reuse the memory
            writing = [
                (number, segment)
                for number in range(target.first, target.last + 1)
                for segment, operation in enumerate(self._work.get(number, ()))
                if target.uid in self._accesses.changed_by(operation) and len(self._work[number]) > 1
            ]
            command, segment = writing[-1] if writing else (command, None)
        self._found[command, segment].add(target.uid)

    def _add_changes(self, first: int, last: int) -> bool:
        """Add the changes by several commands after the last; for a single graph, after each segment."""
        changed: set[str] = set()
        for command in range(first, last + 1):
            for number, operation in enumerate(self._work.get(command, ())):
                uids = self._accesses.changed_by(operation)
                changed |= uids
                if first == last and len(self._work[command]) > 1:
                    self._found[command, number] |= uids
        if first < last or len(self._work.get(last, ())) == 1:
            self._found[last, None] |= changed & self._declared if first < last else changed
        return bool(changed)

    def _check_uid(self, uid: str) -> None:
        if uid in self._plan.resources:
            return
        if uid in self._declared:
            message = f"{uid!r} is a {self._scenario.resource(uid).kind}, which has no content on the device"
            raise UsageError(f"--dump-after: {message}", help="name a buffer, an image or a tensor")
        meant = did_you_mean(close_names(uid, self._plan.resources))
        there_are = f"there are: {', '.join(map(repr, list(self._plan.resources)[:20])) or 'none'}"
        message = f"--dump-after: no resource has the uid {uid!r:.100}{meant}"
        raise UsageError(message, help=None if meant else there_are)

    def _end(self, command: int, segment: int | None) -> tuple[int, int]:
        """Return where a command or a segment ends. A command without operations ends with the previous command."""
        while command != START and (command, segment) not in self._ends:
            command -= 1
        return self._ends.get((command, segment), (0, 0))

    def _label(self, command: int, segment: int | None) -> str:
        if segment is None:
            return ""
        operation: Any = self._work[command][segment]
        plan = self._plan
        tables: Any = plan.pipelines if operation.kind == "dispatch" else plan.graph_pipelines
        return str(tables[operation.pipeline].label)


def with_whole_images(plan: Plan, points: Sequence[DumpPoint]) -> Plan:
    """Read dumped images back with all levels."""
    dumped = {uid for point in points for uid in point.uids}
    resources: dict[str, Any] = dict(plan.resources)
    for uid in dumped:
        if resources[uid].kind == "image":
            resources[uid] = resources[uid]._replace(size_bytes=resources[uid].parts[-1].end_bytes)
    return plan._replace(resources=resources)


def with_dumps(plan: Plan, scenario: Scenario, points: Sequence[DumpPoint]) -> Plan:
    """Split the plan's frames at the dumps.

    The part before a point becomes a frame that captures the dumped resources, without a boundary. The last part of a
    frame keeps the boundary and the captures.
    """
    due: dict[tuple[int, int], list[DumpPoint]] = {}
    for point in points:
        due.setdefault(point.end, []).append(point)
    layouts = LevelLayouts(plan.resources)
    frames: list[FramePlan] = []
    for number, frame in enumerate(plan.frames or (FramePlan((), (), 0, False, "/commands"),)):
        operations: list[Operation] = []
        for place in range(len(frame.operations) + 1):
            for point in due.get((number, place), ()):
                pointer = "/commands" if point.command == START else scenario.command_pointer(point.command)
                captured = point.uids, frame.frame_id, False, pointer, layouts.differing()
                frames.append(FramePlan(tuple(operations), *captured))
                operations = []
            if place < len(frame.operations):
                operations.append(frame.operations[place])
                layouts.follow(frame.operations[place])
        if operations or frame.boundary:
            frames.append(frame._replace(operations=tuple(operations)))
    return plan._replace(frames=tuple(frames))
