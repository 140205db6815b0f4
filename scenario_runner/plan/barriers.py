"""dispatch_barrier and mark_boundary commands."""

from collections.abc import Iterable
from typing import Any

from scenario_runner.plan.commands import CommandContext, CommandResolver
from scenario_runner.plan.plan import AnyBarrier, Barrier, Operation, frame_folder
from scenario_runner.plan.records import Access, BufferBarrier, MemoryBarrier, Stage, TensorBarrier
from scenario_runner.scenario import DispatchBarrier, MarkBoundary

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
        tables.end_frame(captures, number, True, context.scenario.command_pointer(index), context.layouts)
        return ()

    def _warn_of_duplicate(self, number: int, index: int) -> None:
        context = self.context
        first, count = self._known.get(number, (index, 0))
        self._known[number] = first, count + 1
        if count:
            other = f"the frame id {number} is that of {context.scenario.command_pointer(first)} as well"
            message = f"{other}; this one is captured into the folder {frame_folder(number, count + 1)!r}"
            help = "give each frame an id of its own, as capture tools expect it"
            context.problems.warn("SR-FRAME-001", context.scenario.command_pointer(index), message, help)
