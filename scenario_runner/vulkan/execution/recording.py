"""Recording the operations of one frame into one command buffer: the hot path of scenarios with many commands."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import TYPE_CHECKING, Any

from scenario_runner.kinds import RECORDERS, load
from scenario_runner.plan.model.plan import FramePlan
from scenario_runner.plan.model.records import Dispatch
from scenario_runner.vulkan.api._generated import constants as vk
from scenario_runner.vulkan.api.ffi import ffi
from scenario_runner.vulkan.execution.prepared import Prepared, Recorder

if TYPE_CHECKING:
    from scenario_runner.vulkan.execution.labels import Labels
    from scenario_runner.vulkan.execution.timestamps import Timestamps


def memory_barrier(src_access: int, dst_access: int) -> Any:
    """A VkMemoryBarrier."""
    barrier = ffi.new("VkMemoryBarrier*")
    barrier.sType = vk.STRUCTURE_TYPE_MEMORY_BARRIER
    barrier.srcAccessMask = src_access
    barrier.dstAccessMask = dst_access
    return barrier


def record_frame(
    prepared: Prepared,
    command_buffer: Any,
    frame: FramePlan,
    timestamps: Timestamps | None = None,
    labels: Labels | None = None,
) -> None:
    """Record every operation of ``frame``, in order, each run of one kind by the recorder of this kind."""
    runs = [list(run) for _, run in groupby(frame.operations, type)]
    kinds = {run[0].kind for run in runs}
    alone = kinds <= {"dispatch", "barrier"}
    recorders: dict[str, Recorder] = {
        kind: load(RECORDERS[kind])(prepared, command_buffer, alone) for kind in sorted(kinds)
    }
    latest: Recorder | None = None
    if timestamps is not None:
        timestamps.begin(command_buffer, runs)
    for run in runs:
        recorder = recorders[run[0].kind]
        if recorder.binds and recorder is not latest:
            recorder.disturbed()
            latest = recorder
        target = recorder if labels is None else labels.recorder(recorder)
        if timestamps is None:
            target.record(run)
        else:
            timestamps.record(target, command_buffer, run)


class DispatchRecorder(Recorder):
    """Records dispatches of compute shaders.

    Pipelines, descriptor sets and push constants that are already bound are not bound again; implicit barriers are
    global and order compute work with whatever follows in the same frame.
    """

    def __init__(self, prepared: Prepared, commands: Any, alone: bool) -> None:
        super().__init__(prepared, commands, alone)
        if alone:
            later = (
                vk.ACCESS_SHADER_READ_BIT
                | vk.ACCESS_UNIFORM_READ_BIT
                | vk.ACCESS_SHADER_WRITE_BIT
                | vk.ACCESS_TRANSFER_READ_BIT
                | vk.ACCESS_TRANSFER_WRITE_BIT
            )
            self._everything = memory_barrier(vk.ACCESS_SHADER_WRITE_BIT, later)
            self._after_stages = vk.PIPELINE_STAGE_COMPUTE_SHADER_BIT | vk.PIPELINE_STAGE_TRANSFER_BIT
        else:  # graphs and drawings have stages of their own
            later = vk.ACCESS_MEMORY_READ_BIT | vk.ACCESS_MEMORY_WRITE_BIT
            self._everything = memory_barrier(vk.ACCESS_MEMORY_WRITE_BIT, later)
            self._after_stages = vk.PIPELINE_STAGE_ALL_COMMANDS_BIT
        self.disturbed()

    def disturbed(self) -> None:
        self._bound: tuple[int, int, Any, bytes | None] = (-1, -1, None, None)

    def record(self, operations: Iterable[Dispatch]) -> None:
        prepared, command_buffer, fn = self.prepared, self.commands, self.prepared.device.fn
        dispatch, bind_pipeline, bind_sets = fn.vkCmdDispatch, fn.vkCmdBindPipeline, fn.vkCmdBindDescriptorSets
        pipeline_barrier, push_constants = fn.vkCmdPipelineBarrier, fn.vkCmdPushConstants
        everything, after_stages, null = self._everything, self._after_stages, ffi.NULL
        bound_pipeline, bound_descriptors, bound_layout, bound_push = self._bound
        for operation in operations:
            if operation.pipeline != bound_pipeline:
                bound_pipeline = operation.pipeline
                pipeline = prepared.pipelines[bound_pipeline]
                bind_pipeline(command_buffer, vk.PIPELINE_BIND_POINT_COMPUTE, pipeline.handle)
                if pipeline.layout != bound_layout:
                    bound_layout = pipeline.layout
                    bound_descriptors = -1
                    bound_push = None
            if operation.descriptors != bound_descriptors:
                bound_descriptors = operation.descriptors
                sets, count = prepared.descriptor_sets[bound_descriptors]
                if count:
                    bind_sets(command_buffer, vk.PIPELINE_BIND_POINT_COMPUTE, bound_layout, 0, count, sets, 0, null)
            if operation.push_constants and operation.push_constants != bound_push:
                bound_push = operation.push_constants
                push_constants(
                    command_buffer,
                    bound_layout,
                    vk.SHADER_STAGE_COMPUTE_BIT,
                    0,
                    len(bound_push),
                    ffi.from_buffer(bound_push),
                )
            x, y, z = operation.workgroup_count
            dispatch(command_buffer, x, y, z)
            if operation.barrier_after:
                pipeline_barrier(
                    command_buffer,
                    vk.PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                    after_stages,
                    0,
                    1,
                    everything,
                    0,
                    null,
                    0,
                    null,
                )
        self._bound = (bound_pipeline, bound_descriptors, bound_layout, bound_push)
