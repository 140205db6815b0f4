"""Recording optical flows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scenario_runner.vulkan.execution.graph_recording import GraphRecorder
from scenario_runner.vulkan.pipelines.optical_flow import dispatch_info

if TYPE_CHECKING:
    from scenario_runner.plan.model.optical_flow import OpticalFlowDispatch


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
