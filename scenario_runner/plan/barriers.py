"""Barrier commands: the barriers they list, looked up and checked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scenario_runner.errors import ScenarioError
from scenario_runner.plan.model import Barrier, BufferBarrier, BufferPlan, MemoryBarrier

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scenario_runner.plan.problems import Problems
    from scenario_runner.scenario import DispatchBarrier, Scenario


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
        if barrier.offset >= buffer.size_bytes or barrier.size > buffer.size_bytes - barrier.offset:
            problems.error(
                ScenarioError,
                f"{scenario.resource_pointer(uid)}/size",
                f"buffer barrier {uid!r} covers bytes {barrier.offset} to {barrier.offset + barrier.size}"
                f" of buffer {buffer.uid!r}, which has {buffer.size_bytes}",
            )
            continue
        found.append(
            BufferBarrier(
                barrier.src_stage,
                barrier.dst_stage,
                barrier.src_access,
                barrier.dst_access,
                buffer.uid,
                barrier.offset,
                barrier.size,
            )
        )
    return Barrier(tuple(found), index)
