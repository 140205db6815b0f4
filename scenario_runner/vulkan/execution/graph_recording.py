"""Recording dispatches of graphs and optical flows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from scenario_runner.vulkan.api._generated import constants as vk
from scenario_runner.vulkan.api.ffi import ffi
from scenario_runner.vulkan.execution.recording import Prepared, Recorder
from scenario_runner.vulkan.pipelines.optical_flow import dispatch_info

if TYPE_CHECKING:
    from scenario_runner.plan.model.commands import GraphDispatch, OpticalFlowDispatch


class GraphRecorder(Recorder):
    """Records the graph dispatches of one frame.

    A session has memory of its own, so that two dispatches with it must not overlap: where the scenario asks for no
    barrier between them, one is recorded.
    """

    def __init__(self, prepared: Prepared, commands: Any, alone: bool) -> None:
        super().__init__(prepared, commands, alone)
        fn = prepared.device.fn
        self._bind_pipeline = fn.vkCmdBindPipeline
        self._bind_sets = fn.vkCmdBindDescriptorSets
        self._dispatch = fn.vkCmdDispatchDataGraphARM
        self._running: set[int] = set()
        self._bound: tuple[int, int] | None = None

    def record(self, operations: Iterable[GraphDispatch]) -> None:
        for operation in operations:
            self._record(operation)

    def _record(self, operation: Any) -> None:
        """One dispatch, and the barrier after it."""
        commands, graph = self.commands, self.prepared.graphs[operation.pipeline]
        if operation.pipeline in self._running:
            self.barrier()
        wanted = (operation.pipeline, operation.descriptors)
        if wanted != self._bound:
            self._bound = wanted
            self._bind_pipeline(commands, vk.PIPELINE_BIND_POINT_DATA_GRAPH_ARM, graph.handle)
            sets, count = self._sets(operation)
            self._bind_sets(commands, vk.PIPELINE_BIND_POINT_DATA_GRAPH_ARM, graph.layout, 0, count, sets, 0, ffi.NULL)
        self._dispatch(commands, graph.session, self._info(operation))
        if operation.barrier_after:
            self.barrier()
        else:
            self._running.add(operation.pipeline)

    def _sets(self, operation: Any) -> tuple[Any, int]:
        """What is bound for a dispatch: VkDescriptorSet*, count."""
        sets: tuple[Any, int] = self.prepared.descriptor_sets[operation.descriptors]
        return sets

    def _info(self, operation: Any) -> Any:
        """The VkDataGraphPipelineDispatchInfoARM of a dispatch."""
        return ffi.NULL

    def barrier(self) -> None:
        """Everything before, before everything after: graphs, shaders and copies."""
        self._running.clear()
        self.prepared.device.barrier(self.commands)

    def disturbed(self) -> None:
        self._bound = None


class OpticalFlowRecorder(GraphRecorder):
    """Records the optical flows of one frame: dispatches of graphs with flags and a hint of their own."""

    def _record(self, operation: OpticalFlowDispatch) -> None:
        inputs = self.prepared.flow_inputs.get(operation.descriptors)
        if inputs is not None:
            self.barrier()  # the scenario's barriers are about the optical flow, not about copies of what it reads
            for copy in inputs.copies:
                copy.record_in(self.commands)
        super()._record(operation)

    def _sets(self, operation: OpticalFlowDispatch) -> tuple[Any, int]:
        inputs = self.prepared.flow_inputs.get(operation.descriptors)
        return super()._sets(operation) if inputs is None else inputs.sets

    def _info(self, operation: OpticalFlowDispatch) -> Any:
        return dispatch_info(operation)
