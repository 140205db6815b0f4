"""The commands dispatch_compute, dispatch_barrier and mark_boundary, as plan operations."""

from collections.abc import Hashable, Iterable
from math import prod
from operator import itemgetter
from typing import Any

from scenario_runner.plan.command_parts import (
    BindingPlanner,
    CommandContext,
    CommandResolver,
    Declared,
    content_of_binding,
    declared_by,
)
from scenario_runner.plan.plan import AnyBarrier, Barrier, Operation, frame_folder
from scenario_runner.plan.records import (
    BarrierScope,
    BufferBarrier,
    DescriptorList,
    Dispatch,
    MemoryBarrier,
    TensorBarrier,
)
from scenario_runner.scenario import DispatchBarrier, DispatchCompute, MarkBoundary

_WHOLE_SIZE = 2**64 - 1  # VK_WHOLE_SIZE: everything from the offset on
_FAR_MORE = 4  # times as many workgroups as elements; rounding up gives a few too many


class DispatchResolver(CommandResolver):
    """Resolves dispatch_compute. Equal dispatches share their pipelines, descriptors and push constants."""

    def __init__(self, context: CommandContext) -> None:
        super().__init__(context)
        self._declared: dict[str, Declared] = {}
        self._known: dict[Hashable, Dispatch | None] = {}

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
        if tables.pipelines[known.pipeline].label != command.shader_ref:  # a shader with equal content came first
            tables.names[index] = (command.shader_ref,)
        x, y, z = (*command.rangeND, 1, 1)[:3]
        if not (x and y and z) or images is not None:
            self._check_count(command, index, (x, y, z))
        return (known._replace(workgroup_count=(x, y, z), barrier_after=command.implicit_barrier, command=index),)

    def _check_count(self, command: DispatchCompute, index: int, workgroups: tuple[int, int, int]) -> None:
        """Warn of a dispatch without workgroups, or with far more workgroups than the images have texels."""
        context, shader = self.context, self.context.shaders[command.shader_ref]
        place = f"{context.scenario.command_pointer(index)}/rangeND"
        if not all(workgroups):
            message = (
                f"shader {shader.uid!r} runs in {' x '.join(map(str, workgroups))} workgroups, so no invocation runs"
            )
            help = "write at least 1 in each entry, or remove the command"
            context.problems.warn("SR-DISPATCH-001", place, message, help)
        parts = [part for binding in command.bindings for _, _, part in binding.parts()]
        bound = [(context.tables.resources.get(part.resource_ref), part.lod) for part in parts]
        amounts = [(plan.extent(lod), plan) for plan, lod in bound if plan is not None]
        images = [(amount, plan.uid) for amount, plan in amounts if plan.kind == "image"]
        count = prod(workgroups)
        if images and count > _FAR_MORE * max(amount for amount, _ in amounts):
            amount, uid = max(images, key=itemgetter(0))
            texels = f"{amount} texel{'' if amount == 1 else 's'}"
            message = f"{count} workgroups of shader {shader.uid!r} run for image {uid!r}, which has {texels}"
            size = " x ".join(map(str, shader.local_size))
            help = f"rangeND counts workgroups, not invocations: a workgroup of this shader has {size} of them"
            context.problems.warn("SR-DISPATCH-002", place, message, help)

    def _dispatch(self, command: DispatchCompute, index: int) -> Dispatch | None:
        """Resolve the first dispatch with these bindings. Return None after an error."""
        scenario, problems, tables, shaders = self.context[:4]
        shader = shaders.get(command.shader_ref)
        if shader is None:
            return None
        pointer = scenario.command_pointer(index)
        declared = self._declared.get(shader.uid)
        if declared is None:
            declared = self._declared[shader.uid] = declared_by([shader], shader.pointer, problems)
        bindings = command.bindings
        planner = BindingPlanner(declared, tables.resources, pointer, problems, self.context.readonly)
        bound = planner.plan(bindings)
        place = f"{pointer}/push_data_ref"
        push_constants = self.context.push_constants.bytes_for([shader], command.push_data_ref, pointer, place)
        if declared.layouts is None:
            return None
        if self.context.image_uses is not None:
            shader = self.context.image_uses.fit_shader(shader, bindings, pointer, problems)
        layouts = declared.layouts_for(bound, tables, pointer)
        pipeline = shader.pipeline(layouts, shader.push_constants_size)
        indices = tables.pipelines.add(pipeline), tables.lists.add(DescriptorList(layouts, bound))
        return Dispatch(*indices, (1, 1, 1), push_constants or b"", command.implicit_barrier, index)


class BarrierResolver(CommandResolver):
    """Resolves dispatch_barrier."""

    def resolve(self, command: DispatchBarrier, index: int) -> tuple[Barrier, ...]:
        scenario, resources, layouts = self.context.scenario, self.context.tables.resources, self.context.layouts
        barriers: list[AnyBarrier] = []
        for uid in command.memory_barrier_refs:
            barriers.append(MemoryBarrier(_scope(scenario.resource(uid))))
        for uid in command.buffer_barrier_refs:
            barrier: Any = scenario.resource(uid)
            buffer = resources.get(barrier.buffer_resource)
            if buffer is not None:
                size = buffer.size_bytes - barrier.offset if barrier.size == _WHOLE_SIZE else barrier.size
                barriers.append(BufferBarrier(_scope(barrier), buffer.uid, barrier.offset, size))
        if layouts is not None:
            for uid in command.image_barrier_refs:
                barriers += layouts.barriers(scenario.resource(uid), scenario.resource_pointer(uid))
        for uid in command.tensor_barrier_refs:
            barrier = scenario.resource(uid)
            barriers.append(TensorBarrier(_scope(barrier), barrier.tensor_resource))
        return (Barrier(tuple(barriers), index),) if barriers else ()


def _scope(barrier: Any) -> BarrierScope:
    return BarrierScope(barrier.src_stage, barrier.dst_stage, barrier.src_access, barrier.dst_access)


class BoundaryResolver(CommandResolver):
    """Resolves mark_boundary."""

    def __init__(self, context: CommandContext) -> None:
        super().__init__(context)
        self._known: dict[int, tuple[int, int]] = {}  # frame id → the frame's first command, and the command count

    def resolve(self, command: MarkBoundary, index: int) -> Iterable[Operation]:
        context, tables = self.context, self.context.tables
        number = len(tables.frames) if command.frame_id is None else command.frame_id
        self._warn_of_duplicate(number, index)
        captures = tuple(dict.fromkeys(uid for uid in command.resources if uid in tables.resources))
        tables.end_frame(captures, number, True, context.scenario.command_pointer(index), context.layouts)
        return ()

    def _warn_of_duplicate(self, number: int, index: int) -> None:
        context = self.context
        first, count = self._known.get(number, (index, 0))
        self._known[number] = first, count + 1
        if count:
            other = f"{context.scenario.command_pointer(first)} has the frame id {number}, too"
            message = f"{other}; this frame is captured into the folder {frame_folder(number, count + 1)!r}"
            help = "give each frame an id of its own: capture tools expect it"
            context.problems.warn("SR-FRAME-001", context.scenario.command_pointer(index), message, help)
