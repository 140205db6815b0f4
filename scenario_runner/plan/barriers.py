"""Barrier commands: the barriers they list, looked up and checked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scenario_runner.plan.model import Barrier, BufferBarrier, BufferPlan, MemoryBarrier

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scenario_runner.plan.problems import Problems
    from scenario_runner.scenario import DispatchBarrier, Scenario

# VK_WHOLE_SIZE: all from the offset on
_WHOLE_SIZE = 2**64 - 1


def resolve_barrier(
    scenario: Scenario,
    command: DispatchBarrier,
    index: int,
    buffers: Mapping[str, BufferPlan],
    problems: Problems,
) -> Barrier:
    """The memory and buffer barriers of one command (image and tensor barriers come with their resources)."""
    found: list[MemoryBarrier | BufferBarrier] = []
    for uid in command.memory_barrier_refs:
        barrier: Any = scenario.resource(uid)
        found.append(MemoryBarrier(barrier.src_stage, barrier.dst_stage, barrier.src_access, barrier.dst_access))
    for uid in command.buffer_barrier_refs:
        barrier = scenario.resource(uid)
        buffer = buffers.get(barrier.buffer_resource)
        if buffer is None:
            continue
        # that it stays inside its buffer was checked with the scenario
        size = buffer.size_bytes - barrier.offset if barrier.size == _WHOLE_SIZE else barrier.size
        found.append(
            BufferBarrier(
                barrier.src_stage,
                barrier.dst_stage,
                barrier.src_access,
                barrier.dst_access,
                buffer.uid,
                barrier.offset,
                size,
            )
        )
    return Barrier(tuple(found), index)
