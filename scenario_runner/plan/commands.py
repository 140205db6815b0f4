"""The commands that every device runs: dispatch_compute, dispatch_barrier and mark_boundary.

Also what resolvers of all kinds of commands share: the tables of the plan that they add to, what commands bind, and
push constants.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from math import prod
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from scenario_runner.checks.bindings import (
    RESOURCE_OF,
    Slots,
    check_bindings,
    check_data,
    check_size,
    padded,
    slots_of,
)
from scenario_runner.errors import ScenarioRunnerError
from scenario_runner.plan.plan import AnyBarrier, Barrier, FramePlan, Operation, ResourcePlan, frame_folder
from scenario_runner.plan.records import (
    Access,
    BufferBarrier,
    Descriptor,
    DescriptorKind,
    DescriptorList,
    Dispatch,
    ImageLayout,
    LayoutBinding,
    MemoryBarrier,
    NeededFeature,
    Source,
    Stage,
    TensorBarrier,
)
from scenario_runner.plan.shaders import LoadedShader
from scenario_runner.plan.sources import content_of
from scenario_runner.scenario import Binding, DispatchCompute, MarkBoundary, Scenario
from scenario_runner.scenario.scenario import Problems
from scenario_runner.spirv import Module

if TYPE_CHECKING:
    from scenario_runner.plan.graph_models import GraphFiles
    from scenario_runner.plan.images import FittedShaders
    from scenario_runner.plan.layouts import LayoutTracker
    from scenario_runner.scenario import DispatchBarrier

SetLayouts = tuple[tuple[LayoutBinding, ...], ...]
_FAR_MORE = 4  # a few workgroups too many are what rounding up gives


class Entries(list[Any]):
    """Entries of one table of a plan; those of equal content share an index, which never changes."""

    def __init__(self) -> None:
        super().__init__()
        self._indices: dict[Hashable, int] = {}

    def add(self, entry: Any, content: Hashable) -> int:
        """Add an entry unless there is one of this content; returns its index."""
        index = self._indices.setdefault(content, len(self))
        if index == len(self):
            self.append(entry)
        return index


class Tables:
    """``resources`` by uid, pipelines of all kinds, descriptor lists, and frames.

    ``operations`` are those of the frame that has not ended yet.
    ``made`` are the uids of resources that are not the scenario's, but lie inside graphs. ``graph_modules`` are the
    SPIR-V modules of graphs by their labels, with the pointers of what names them, for what they require of a device.
    ``names`` are those of the plan. ``features`` are those of the device that commands need beyond those of shaders.
    """

    def __init__(self, resources: dict[str, ResourcePlan]) -> None:
        self.resources = resources
        self.made: set[str] = set()
        self.pipelines = Entries()
        self.graph_pipelines = Entries()
        self.graphics_pipelines = Entries()
        self.lists = Entries()
        self.frames: list[FramePlan] = []
        self.operations: list[Operation] = []
        self.graph_modules: dict[str, tuple[Module, str]] = {}
        self.names: dict[int, tuple[str, ...]] = {}
        self.features: dict[NeededFeature, None] = {}

    def end_frame(
        self,
        captures: tuple[str, ...],
        frame_id: int,
        boundary: bool,
        pointer: str,
        layouts: tuple[tuple[str, tuple[ImageLayout, ...]], ...] = (),
    ) -> None:
        """Make a frame of ``operations``; see `FramePlan`."""
        self.frames.append(FramePlan(tuple(self.operations), captures, frame_id, boundary, pointer, layouts))
        self.operations.clear()


class PushConstants(NamedTuple):
    """Reads each raw_data once, and only when a command uses it; what is wrong goes into ``problems``.

    ``sources`` are those of all raw_data by uid; ``read`` gets the bytes of those that were read.
    """

    scenario: Scenario
    problems: Problems
    sources: Mapping[str, Source]
    read: dict[str, bytes]

    def of(self, command: Any, shaders: Sequence[LoadedShader], pointer: str) -> bytes:
        """The push constants of a dispatch_compute or dispatch_fragment; empty where something is wrong with them."""
        size: int = max(map(attrgetter("push_constants_size"), shaders))
        if size:  # those that leave it out have what their blocks need
            size = max([shader.push_constants_size or shader.block_size for shader in shaders])
        good = True
        for shader in shaders:
            good &= self.problems.report(check_size(shader.uid, shader.interface, size, shader.pointer))
        if not good:
            return b""
        uid: str | None = command.push_data_ref
        if uid is None:
            for shader in shaders:
                if shader.block_size:
                    message = f"shader {shader.uid!r} reads push constants, but the command has no push_data_ref"
                    self.problems.warn("SR-PUSH-003", pointer, f"{message}; zeros are used")
            return bytes(max(map(attrgetter("range_size"), shaders)))
        source = self.sources.get(uid)
        if source is None:
            return b""  # reported where the raw_data is
        label = ("shader " if len(shaders) == 1 else "shaders ") + " and ".join(repr(shader.uid) for shader in shaders)
        interfaces = [shader.interface for shader in shaders]
        problem = check_data(label, interfaces, size, uid, source.size_bytes, f"{pointer}/push_data_ref")
        return padded(self.data(uid) or b"") if self.problems.report(problem) else b""

    def data(self, uid: str) -> bytes | None:
        """The bytes of a raw_data; None where something is wrong with it, which is reported there."""
        source = self.sources.get(uid)
        if source is None:
            return None
        if uid not in self.read:
            try:
                self.read[uid] = content_of(source)
            except ScenarioRunnerError as error:
                self.problems.add_error(error, f"{self.scenario.resource_pointer(uid)}/src")
                self.read[uid] = bytes(source.size_bytes)
        return self.read[uid]


class CommandContext(NamedTuple):
    """Input of the resolving of commands.

    ``shaders`` are those that could be loaded, by uid; ``readonly`` the uids of resources that the scenario calls so;
    ``layouts`` and ``fitted`` are None without images, ``graphs`` without commands that run graphs.
    """

    scenario: Scenario
    problems: Problems
    tables: Tables
    shaders: Mapping[str, LoadedShader]
    push_constants: PushConstants
    readonly: frozenset[str]
    layouts: LayoutTracker | None
    fitted: FittedShaders | None
    graphs: GraphFiles | None


class CommandResolver:
    """Plans the commands of one kind, or of several; one is made for each plan that has such commands.

    ``resolve(command, index)`` gives the operations of the command number ``index``, in order. Errors and warnings go
    into the problems of the context.
    """

    def __init__(self, context: CommandContext) -> None:
        self.context = context


class Declared(NamedTuple):
    """Bindings that shaders declare that run together.

    ``layouts`` are the descriptor set layouts that they ask for, from set 0 on, gaps as empty sets; None where nothing
    can be bound to them. Every descriptor that they use has its place, and nothing else.
    """

    uids: tuple[str, ...]
    slots: Slots
    layouts: SetLayouts | None


def declared_by(shaders: Sequence[LoadedShader], pointer: str, problems: Problems) -> Declared:
    """Look at the bindings of shaders; what is wrong with them is noted at ``pointer``."""
    slots, findings = slots_of(list(map(attrgetter("uid", "interface"), shaders)), pointer)
    stages = dict(map(attrgetter("uid", "stage"), shaders))
    if not problems.report(findings):
        return Declared(tuple(stages), slots, None)
    by_set: dict[int, list[LayoutBinding]] = {}
    for slot in slots.values():  # in the order of sets and bindings
        if slot.has_place:
            kind: DescriptorKind = slot.kind  # type: ignore[assignment]
            seen_by = tuple(sorted({stages[uid] for uid, _ in slot.variables}))
            by_set.setdefault(slot.set, []).append(LayoutBinding(slot.binding, kind, seen_by))
    return Declared(
        tuple(stages), slots, tuple([tuple(by_set.get(set, ())) for set in range(max(by_set, default=-1) + 1)])
    )


def descriptors(
    declared: Declared,
    bindings: Sequence[Binding],
    resources: Mapping[str, ResourcePlan],
    pointer: str,
    problems: Problems,
    readonly: Collection[str] = (),
) -> tuple[Descriptor, ...]:
    """The descriptors of a command at ``pointer``; none where something is wrong with a binding, which is noted.

    ``readonly`` are the resources that the scenario calls so.
    """
    findings = check_bindings(declared.slots, declared.uids, bindings, resources, readonly, pointer)
    if not problems.report(findings):
        return ()
    descriptor_list = []
    for binding in bindings:
        slot = declared.slots.get((binding.set, binding.id))
        if slot is not None and slot.has_place and binding.resource_ref in resources:
            kind: DescriptorKind = slot.kind  # type: ignore[assignment]
            level = _level(binding, kind, resources[binding.resource_ref]) if RESOURCE_OF[kind] == "image" else None
            descriptor_list.append(Descriptor(binding.set, binding.id, kind, binding.resource_ref, level))
    return tuple(descriptor_list)


def _level(binding: Binding, kind: DescriptorKind, image: Any) -> int | None:
    """The mip level that the binding names, or all (None); of a storage image the first one then."""
    if kind == "sampler":
        return None
    return 0 if image.mips == 1 or (binding.lod is None and kind == "storage_image") else binding.lod


content_of_binding = attrgetter("set", "id", "resource_ref", "lod", "descriptor_type")
"""Returns all that tells two bindings apart."""


class Dispatches(CommandResolver):
    """Resolves dispatch_compute; equal dispatches share their pipelines, descriptors and push constants."""

    def __init__(self, context: CommandContext) -> None:
        super().__init__(context)
        self._declared: dict[str, Declared] = {}
        self._known: dict[Any, Dispatch | None] = {}

    def resolve(self, command: DispatchCompute, index: int) -> tuple[Dispatch, ...]:
        tables, images = self.context.tables, self.context.layouts
        if images is not None:
            images.check_bindings(command, index)
        key = (command.shader_ref, command.push_data_ref, tuple(map(content_of_binding, command.bindings)))
        if key not in self._known:
            self._known[key] = self._dispatch(command, index)
        known = self._known[key]
        if known is None:
            return ()
        if tables.pipelines[known.pipeline].label != command.shader_ref:  # another shader has the same content
            tables.names[index] = (command.shader_ref,)
        x, y, z = (*command.rangeND, 1, 1)[:3]
        if not (x and y and z) or images is not None:
            self._check_count(command, index, (x, y, z))
        return (known._replace(workgroup_count=(x, y, z), barrier_after=command.implicit_barrier, command=index),)

    def _check_count(self, command: DispatchCompute, index: int, workgroups: tuple[int, int, int]) -> None:
        """Warn of a dispatch that runs nothing, and of far more workgroups than anything that is bound has parts."""
        context, shader = self.context, self.context.shaders[command.shader_ref]
        place = f"{context.scenario.command_pointer(index)}/rangeND"
        if not all(workgroups):
            message = f"{' x '.join(map(str, workgroups))} workgroups run nothing of shader {shader.uid!r}"
            help = "write at least 1 in each entry, or remove the command"
            context.problems.warn("SR-DISPATCH-001", place, message, help)
        bound = [(context.tables.resources.get(binding.resource_ref), binding.lod) for binding in command.bindings]
        amounts = [(plan.extent(lod), plan) for plan, lod in bound if plan is not None]
        images = [(amount, plan.uid) for amount, plan in amounts if plan.kind == "image"]
        count = prod(workgroups)
        if images and count > _FAR_MORE * max(amount for amount, _ in amounts):
            amount, uid = max(images, key=itemgetter(0))
            texels = f"{amount} texel{'' if amount == 1 else 's'}"
            message = f"{count} workgroups of shader {shader.uid!r} run for image {uid!r}, which has {texels}"
            size = " x ".join(map(str, shader.interface.local_size() or (1, 1, 1)))
            help = f"rangeND counts workgroups, not invocations: a workgroup of this shader has {size} of them"
            context.problems.warn("SR-DISPATCH-002", place, message, help)

    def _dispatch(self, command: DispatchCompute, index: int) -> Dispatch | None:
        """A dispatch unlike any before; None where something is wrong with it."""
        scenario, problems, tables, shaders = self.context[:4]
        shader = shaders.get(command.shader_ref)
        if shader is None:
            return None
        pointer = scenario.command_pointer(index)
        declared = self._declared.get(shader.uid)
        if declared is None:
            declared = self._declared[shader.uid] = declared_by([shader], shader.pointer, problems)
        bindings, readonly = command.bindings, self.context.readonly
        bound = descriptors(declared, bindings, tables.resources, pointer, problems, readonly)
        push_constants = self.context.push_constants.of(command, [shader], pointer)
        if declared.layouts is None:
            return None
        if self.context.fitted is not None:
            shader = self.context.fitted.of(shader, bindings, pointer, problems)
        pipeline = shader.pipeline(declared.layouts, shader.push_constants_size)
        descriptor_list = DescriptorList(declared.layouts, bound)
        return Dispatch(
            pipeline=tables.pipelines.add(pipeline, pipeline.content),
            descriptors=tables.lists.add(descriptor_list, descriptor_list),
            workgroup_count=(1, 1, 1),
            push_constants=push_constants,
            barrier_after=command.implicit_barrier,
            command=index,
        )


# VK_WHOLE_SIZE: all from the offset on
_WHOLE_SIZE = 2**64 - 1


class Barriers(CommandResolver):
    """Resolves dispatch_barrier."""

    def resolve(self, command: DispatchBarrier, index: int) -> tuple[Barrier, ...]:
        scenario, resources, layouts = self.context.scenario, self.context.tables.resources, self.context.layouts
        barriers: list[AnyBarrier] = []
        for uid in command.memory_barrier_refs:
            barriers.append(MemoryBarrier(*_scope(scenario.resource(uid))))
        for uid in command.buffer_barrier_refs:
            barrier: Any = scenario.resource(uid)
            buffer = resources.get(barrier.buffer_resource)
            if buffer is not None:
                # that it stays inside its buffer was checked with the scenario
                size = buffer.size_bytes - barrier.offset if barrier.size == _WHOLE_SIZE else barrier.size
                barriers.append(BufferBarrier(*_scope(barrier), buffer.uid, barrier.offset, size))
        if layouts is not None:
            for uid in command.image_barrier_refs:
                barriers += layouts.barriers(scenario.resource(uid), scenario.resource_pointer(uid))
        for uid in command.tensor_barrier_refs:
            barrier = scenario.resource(uid)
            barriers.append(TensorBarrier(*_scope(barrier), barrier.tensor_resource))
        return (Barrier(tuple(barriers), index),) if barriers else ()


def _scope(barrier: Any) -> tuple[tuple[Stage, ...], tuple[Stage, ...], Access, Access]:
    return barrier.src_stage, barrier.dst_stage, barrier.src_access, barrier.dst_access


class Boundaries(CommandResolver):
    """Resolves mark_boundary."""

    def __init__(self, context: CommandContext) -> None:
        super().__init__(context)
        self._known: dict[int, tuple[int, int]] = {}  # frame ids, each with its first command and how many have it

    def resolve(self, command: MarkBoundary, index: int) -> Iterable[Operation]:
        context, tables = self.context, self.context.tables
        number = len(tables.frames) if command.frame_id is None else command.frame_id
        self._warn_of_duplicate(number, index)
        captures = tuple(dict.fromkeys(uid for uid in command.resources if uid in tables.resources))
        layouts = () if context.layouts is None else context.layouts.differing()
        tables.end_frame(captures, number, True, context.scenario.command_pointer(index), layouts)
        return ()

    def _warn_of_duplicate(self, number: int, index: int) -> None:
        context = self.context
        first, count = self._known.get(number, (index, 0))
        self._known[number] = first, count + 1
        if count:
            message = (
                f"the frame id {number} is that of {context.scenario.command_pointer(first)} as well;"
                f" this one is captured into the folder {frame_folder(number, count + 1)!r}"
            )
            help = "give each frame an id of its own, as capture tools expect it"
            context.problems.warn("SR-FRAME-001", context.scenario.command_pointer(index), message, help)
